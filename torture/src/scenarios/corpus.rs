//! R11: bodies and frames that make no sense, at both of the agents' doors. A typed refusal each, no effect, and the next good
//! call works. The corpus is made here; standard input and output have no door yet.

use crate::{
    checker::Checker,
    clients::{Agent, Door, word},
    context::Context,
    http::{Http, Request},
    node::{How, Node},
    report::Report,
    world::{Size, World},
};
use anyhow::Result;
use serde_json::json;
use std::collections::BTreeMap;

const MEMORY_GROWTH_MAX: u64 = 64 * 1024 * 1024;
/// Growth is measured from here: the first requests fill pools and caches.
const WARM_UP: usize = 200;

/// Bodies that are not JSON, are JSON that is refused, or are JSON of another shape.
const BODIES: &[&[u8]] = &[
    b"",
    b" ",
    b"\xef\xbb\xbf{}",
    b"{",
    b"}",
    b"[",
    b"nul",
    b"NaN",
    b"Infinity",
    b"-",
    b"01",
    b"1.",
    b".5",
    b"1e",
    b"+1",
    b"'a'",
    b"\"",
    b"\"\\x\"",
    b"\"\\ud800\"",
    b"\"\\udc00\\ud800\"",
    b"\"\xff\"",
    b"\"\n\"",
    b"{\"a\":1,}",
    b"{\"a\" 1}",
    b"{a:1}",
    b"{1:1}",
    b"{\"a\":1}{\"a\":1}",
    b"{\"arguments\":{}}x",
    b"[1,]",
    b"[,1]",
    b"/* */{}",
    b"{}//",
    b"\0",
    b"{\"a\":\0}",
    b"\xff\xfe{\0}\0",
    b"null",
    b"true",
    b"1",
    b"[]",
    b"\"x\"",
    b"{}",
    b"{\"arguments\":null}",
    b"{\"arguments\":[]}",
    b"{\"arguments\":1}",
    b"{\"arguments\":{},\"arguments\":{}}",
    b"{\"arguments\":{\"site\":\"a\",\"site\":\"b\"}}",
    b"{\"arguments\":{\"site\":\"a\",\"s\\u0069te\":\"b\"}}",
    b"{\"arguments\":{\"site\":1}}",
    b"{\"arguments\":{\"site\":null}}",
    b"{\"arguments\":{\"site\":\"\\u0000\"}}",
    b"{\"arguments\":{\"site\":{}}}",
    b"{\"arguments\":{\"limit\":1e400}}",
    b"{\"arguments\":{\"limit\":9007199254740993}}",
    b"{\"arguments\":{\"limit\":18446744073709551616}}",
    b"{\"arguments\":{\"limit\":-0}}",
    b"{\"arguments\":{\"limit\":1.5}}",
    b"{\"arguments\":{\"__proto__\":{}}}",
    b"{\"arguments\":{\"\":\"\"}}",
    b"{\"approvalId\":1}",
    b"{\"approvalId\":[]}",
    b"{\"approvalId\":\"' or 1=1 --\"}",
    b"{\"approved\":true}",
    b"{\"reason\":{}}",
    b"{\"jsonrpc\":\"1.0\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/call\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/list\"}",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"publish\"}}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}",
    b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}]",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[]}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":1}}",
];

/// R11.
pub async fn malformed(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 4,
    };
    let world = World::new(context, size).await?;
    let node = Node::start(context, &world, How::default()).await?;
    let mut agent = Agent::new(&world, &world.agents[0], Door::Tools);
    let mut http = Http::new(world.target());
    let mut rng = context.rng(11);
    let state = "select state_hash from sites";
    let before = world.database.texts(state).await?;
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    let mut memory = 0;
    for frame in 0..context.figure.max(BODIES.len() * 2) {
        if frame == WARM_UP {
            memory = node.memory()?;
        }
        let door = if frame % 2 == 0 {
            "/tools/publish"
        } else {
            "/mcp"
        };
        let body = match BODIES.get(frame / 2) {
            Some(body) => body.to_vec(),
            None => made_up(&mut rng, &world),
        };
        let request = Request {
            method: "POST",
            path: door,
            headers: headers(&world, &mut rng),
            body: &body,
        };
        match http.send(&request).await {
            Ok(answer) => {
                *statuses.entry(answer.status).or_default() += 1;
                report.expect(answer.status < 500, || {
                    format!(
                        "{door} answered {} to {}",
                        answer.status,
                        String::from_utf8_lossy(&body)
                    )
                });
            }
            Err(error) => report.fault(format!(
                "{door}: {error:#} for {}",
                String::from_utf8_lossy(&body)
            )),
        }
        let good = agent
            .call("site-get", json!({"site": world.sites[0]}), None)
            .await?;
        report.expect(word(&good) == "ok", || {
            format!("a good call after it: {}", good.body)
        });
    }
    let grown = node.memory()?.saturating_sub(memory);
    report.expect(memory == 0 || grown < MEMORY_GROWTH_MAX, || {
        format!("memory grew by {} MiB", grown >> 20)
    });
    report.expect(world.database.texts(state).await? == before, || {
        "a site changed".into()
    });
    report.expect(!node.log().contains("panicked"), || {
        "the server panicked".into()
    });
    for (status, count) in statuses {
        report.fact(&status.to_string(), count);
    }
    report.fact("memory grew by", format!("{} MiB", grown >> 20));
    Checker::new(&world)
        .conclude(context, &world, &mut report)
        .await?;
    node.stop().await?;
    Ok(report)
}

fn headers(world: &World, rng: &mut fastrand::Rng) -> String {
    let mut headers = format!(
        "Authorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n",
        world.agents[0].key
    );
    headers.push_str(match rng.u32(..6) {
        0 => "Content-Type: text/plain\r\n",
        1 => "",
        _ => "Content-Type: application/json\r\n",
    });
    headers.push_str(match rng.u32(..6) {
        0 => "MCP-Protocol-Version: 1999-01-01\r\n",
        1 => "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: delete\r\n",
        2 => "",
        _ => "MCP-Protocol-Version: 2025-11-25\r\n",
    });
    headers
}

/// A frame that was good until some of it was bitten off, doubled, swapped or blown up.
fn made_up(rng: &mut fastrand::Rng, world: &World) -> Vec<u8> {
    let node = &world.agents[0].node;
    let arguments = json!({"site": world.sites[0], "node": node, "reason": "because"});
    let good = match rng.bool() {
        true => json!({"arguments": arguments, "approvalId": "aaaaaaaaaaaaaaaaaaaaaaaaaa"}),
        false => {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "node_get", "arguments": arguments}})
        }
    };
    let mut body = good.to_string().into_bytes();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..body.len().max(1)).min(body.len());
        match rng.u32(..8) {
            0 => body.truncate(at),
            1 => body.insert(at, rng.u8(..)),
            2 if at < body.len() => body[at] = rng.u8(..),
            3 if at < body.len() => drop(body.remove(at)),
            4 => {
                let copy = body[at..].to_vec();
                body.extend(copy);
            }
            5 => {
                let deep = rng.usize(1..5_000);
                body.splice(at..at, b"[".repeat(deep));
            }
            6 => {
                let long = rng.usize(1..300_000);
                body.splice(at..at, b"x".repeat(long));
            }
            _ => {
                let keys: String = (0..rng.usize(1..200))
                    .map(|key| format!("\"k{key}\":{key},"))
                    .collect();
                body.splice(at..at, keys.into_bytes());
            }
        }
        // Larger ones are refused by their length alone, which needs no corpus.
        body.truncate(400_000);
    }
    body
}
