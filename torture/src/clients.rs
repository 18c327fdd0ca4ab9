//! Who acts: agents with a key at one of the three doors, people in a session. With a trace they write down every attempt
//! that counts before it is made, and every answer.

use crate::{
    http::{Http, Request, Target},
    trace::{Attempt, Got, Trace},
    world::{AgentKey, World},
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::time::Duration;

/// How an agent comes in. An approval belongs to the door that it was asked at, `/mcp` in either era being one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Tools,
    Mcp2025,
    Mcp2026,
}

impl Door {
    pub const ALL: [Self; 3] = [Self::Tools, Self::Mcp2025, Self::Mcp2026];
}

/// What an answer says, in one word: `ok`, `replayed`, `approval_pending` or a code.
pub fn word(got: &Got) -> &str {
    match got.body["status"].as_str() {
        Some("ok") if got.body["replayed"] == true => "replayed",
        Some("error") => got.body["error"]["code"].as_str().unwrap_or("?"),
        Some(status) => status,
        None => "?",
    }
}

pub struct Agent {
    pub key: AgentKey,
    door: Door,
    http: Http,
    trace: Option<Trace>,
}

impl Agent {
    pub fn new(world: &World, key: &AgentKey, door: Door) -> Self {
        Self {
            key: key.clone(),
            door,
            http: Http::new(world.target()),
            trace: None,
        }
    }

    pub fn traced(mut self, world: &World) -> Result<Self> {
        self.trace = Some(Trace::new(&world.traces(), &self.key.name)?);
        Ok(self)
    }

    /// Goes to another node from now on, or to the same one after a restart.
    pub fn to(&mut self, target: &Target) {
        self.http.to(target.clone());
    }

    /// An error means that no answer came.
    pub async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        approval: Option<&str>,
    ) -> Result<Got> {
        let body = self.body(tool, arguments, approval);
        let answer = self.http.send(&self.request(tool, body.as_bytes())).await?;
        let body = match self.door {
            Door::Tools => answer.json(),
            // Whoever is not let in gets the object by itself, as no message was read.
            _ if answer.json()["status"] == "error" => answer.json(),
            _ => answer.json()["result"]["structuredContent"].take(),
        };
        if body.is_null() {
            bail!(
                "an answer of another shape, {}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
        }
        Ok(Got {
            status: answer.status,
            body,
        })
    }

    pub async fn ask(&mut self) -> Result<Got> {
        let site = self.key.site.clone();
        let attempt = Attempt::Ask { site: site.clone() };
        self.attempt(attempt, "publish", json!({"site": site}), None)
            .await
    }

    pub async fn redeem(&mut self, approval: &str) -> Result<Got> {
        let attempt = Attempt::Redeem {
            approval: approval.to_owned(),
        };
        let arguments = json!({"site": self.key.site});
        self.attempt(attempt, "publish", arguments, Some(approval))
            .await
    }

    /// Writes a text that no other edit has.
    pub async fn edit(&mut self, text: &str) -> Result<Got> {
        let attempt = Attempt::Edit {
            node: self.key.node.clone(),
            text: text.to_owned(),
        };
        let arguments = json!({"site": self.key.site, "node": self.key.node, "body": text});
        self.attempt(attempt, "node-update", arguments, None).await
    }

    async fn attempt(
        &mut self,
        attempt: Attempt,
        tool: &str,
        arguments: Value,
        approval: Option<&str>,
    ) -> Result<Got> {
        let n = self.trace.as_mut().map(|trace| trace.before(&attempt));
        let got = self.call(tool, arguments, approval).await;
        if let (Some(trace), Some(n)) = (&mut self.trace, n) {
            let outcome = got.as_ref().map(Clone::clone).map_err(|e| format!("{e:#}"));
            trace.after(n?, outcome)?;
        }
        got
    }

    /// Waits for a decision, as long as a long poll lasts at most.
    pub async fn wait(&mut self, approval: &str, seconds: u64) -> Result<Got> {
        let arguments = json!({"approvalId": approval, "waitSeconds": seconds});
        self.call("approvals-get", arguments, None).await
    }

    /// Sends a redeeming call and resets the connection after a while.
    pub async fn redeem_and_hang_up(&mut self, approval: &str, after: Duration) -> Result<()> {
        let body = self.body("publish", json!({"site": self.key.site}), Some(approval));
        let request = self.request("publish", body.as_bytes());
        self.http.send_and_hang_up(&request, after).await
    }

    fn body(&self, tool: &str, mut arguments: Value, approval: Option<&str>) -> String {
        if self.door == Door::Tools {
            let mut body = json!({"arguments": arguments});
            if let Some(id) = approval {
                body["approvalId"] = id.into();
            }
            return body.to_string();
        }
        if let Some(id) = approval {
            arguments["approvalId"] = id.into();
        }
        let mut params = json!({"name": tool.replace('-', "_"), "arguments": arguments});
        if self.door == Door::Mcp2026 {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "torture", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    }

    fn request<'r>(&self, tool: &'r str, body: &'r [u8]) -> Request<'r> {
        let mut headers = format!(
            "Authorization: Bearer {}\r\nContent-Type: application/json\r\n",
            self.key.key
        );
        if self.door == Door::Tools {
            return Request {
                method: "POST",
                path: tool_path(tool),
                headers,
                body,
            };
        }
        headers.push_str("Accept: application/json, text/event-stream\r\n");
        match self.door {
            Door::Mcp2025 => headers.push_str("MCP-Protocol-Version: 2025-11-25\r\n"),
            _ => headers.push_str(&format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\n",
                tool.replace('-', "_")
            )),
        }
        Request {
            method: "POST",
            path: "/mcp",
            headers,
            body,
        }
    }
}

fn tool_path(tool: &str) -> &'static str {
    match tool {
        "publish" => "/tools/publish",
        "delete" => "/tools/delete",
        "node-update" => "/tools/node-update",
        "node-get" => "/tools/node-get",
        "approvals-get" => "/tools/approvals-get",
        "site-list" => "/tools/site-list",
        _ => "/tools/site-get",
    }
}

/// A browser's session.
pub struct Person {
    pub name: String,
    http: Http,
    cookie: String,
    origin: String,
    trace: Option<Trace>,
}

impl Person {
    /// Spends one of the world's sign-in links.
    pub async fn sign_in(world: &World, which: usize) -> Result<Self> {
        let mut person = Self {
            name: format!("person-{which}"),
            http: Http::new(world.target()),
            cookie: String::new(),
            origin: world.public_url(),
            trace: None,
        };
        let path = world.links.get(which).context("a sign-in link")?;
        let headers = format!(
            "Origin: {0}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n",
            person.origin
        );
        let request = Request {
            method: "POST",
            path,
            headers,
            body: b"",
        };
        let answer = person.http.send(&request).await?;
        let cookie = answer
            .header("set-cookie")
            .with_context(|| format!("no session: {}", answer.head))?;
        person.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(person)
    }

    pub fn traced(mut self, world: &World) -> Result<Self> {
        self.trace = Some(Trace::new(&world.traces(), &self.name)?);
        Ok(self)
    }

    /// Goes to another node from now on, or to the same one after a restart.
    pub fn to(&mut self, target: &Target) {
        self.http.to(target.clone());
    }

    /// Another window of the same browser.
    pub fn window(&self, target: Target) -> Self {
        Self {
            name: self.name.clone(),
            http: Http::new(target),
            cookie: self.cookie.clone(),
            origin: self.origin.clone(),
            trace: None,
        }
    }

    pub async fn get(&mut self, path: &str) -> Result<Got> {
        let request = Request {
            method: "GET",
            path,
            headers: format!("Cookie: {}\r\n", self.cookie),
            body: b"",
        };
        let answer = self.http.send(&request).await?;
        Ok(Got {
            status: answer.status,
            body: answer.json(),
        })
    }

    /// Looks at a request and decides it. The answer to the look where that was refused.
    pub async fn decide(&mut self, site: &str, approval: &str, approve: bool) -> Result<Got> {
        let record = format!("/api/sites/{site}/approvals/{approval}");
        let seen = self.get(&record).await?;
        if seen.status != 200 {
            return Ok(seen);
        }
        let attempt = Attempt::Decide {
            approval: approval.to_owned(),
            approve,
        };
        let n = self.trace.as_mut().map(|trace| trace.before(&attempt));
        let verb = if approve { "approve" } else { "deny" };
        let body = json!({"seenDigest": seen.body["seenDigest"]}).to_string();
        let headers = format!(
            "Cookie: {}\r\nOrigin: {}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n",
            self.cookie, self.origin
        );
        let request = Request {
            method: "POST",
            path: &format!("{record}/{verb}"),
            headers,
            body: body.as_bytes(),
        };
        let got = self.http.send(&request).await.map(|answer| Got {
            status: answer.status,
            body: answer.json(),
        });
        if let (Some(trace), Some(n)) = (&mut self.trace, n) {
            let outcome = got.as_ref().map(Clone::clone).map_err(|e| format!("{e:#}"));
            trace.after(n?, outcome)?;
        }
        got
    }
}
