//! R11: bodies and frames that make no sense, at both of the agents' doors. A typed refusal each, no effect, and the next good
//! call works.

use super::texts;
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
    let corpus = texts::all();
    for frame in 0..context.figure.max(corpus.len() * 2) {
        if frame == WARM_UP {
            memory = node.memory()?;
        }
        let door = if frame % 2 == 0 {
            "/tools/publish"
        } else {
            "/mcp"
        };
        let body = match corpus.get(frame / 2) {
            Some(text) => text.clone(),
            None => texts::made_up(&mut rng, &world),
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
