//! The door as a client finds it: whole requests through the server's own router, on a demo site.

use super::handler::Pace;
use crate::{App, config::Origins, routes};
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use cloudhal_domain::{
    approval::Verdict,
    id::{AgentId, ApprovalId, SiteId},
    limits, origin,
};
use cloudhal_engine::{
    Engine, Settings, agents, approvals,
    authority::{Decider, Steward},
    demo, people,
    secret::Secret,
    sites,
};
use futures::{StreamExt as _, stream::BoxStream};
use serde_json::{Value, json};
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::watch;
use tower::ServiceExt as _;

mod calls;
mod door;
mod doors;
mod own_client;
mod prompts;
mod resources;
mod streams;
mod tasks;

const OURS: &str = "http://127.0.0.1:3000";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Era {
    Legacy,
    Modern,
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A server with the demo in it, and the demo's agent.
struct Demo {
    engine: Engine,
    app: App,
    router: Router,
    key: String,
    _data: tempfile::TempDir,
    stop: watch::Sender<bool>,
}

struct Seen {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Seen {
    fn structured(&self) -> &Value {
        &self.body["result"]["structuredContent"]
    }

    fn text(&self) -> &str {
        self.body["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or("")
    }
}

impl Demo {
    async fn start() -> Self {
        Self::start_with(Settings::for_url(OURS)).await
    }

    async fn start_with(settings: Settings) -> Self {
        let data = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/test.db", data.path().display());
        let engine = Engine::open(&url, settings, Secret::random())
            .await
            .unwrap();
        let demo = demo::fill(&engine, proof()).await.unwrap();
        let (stop, stopping) = watch::channel(false);
        let app = App {
            engine: engine.clone(),
            origins: Arc::new(Origins::new(OURS, None).unwrap()),
            stopping,
        };
        Self {
            engine,
            router: routes::router(app.clone()),
            app,
            key: demo.agent_key,
            _data: data,
            stop,
        }
    }

    fn request(&self) -> axum::http::request::Builder {
        Request::post("/mcp")
            .header("host", "127.0.0.1:3000")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    async fn send(&self, request: Request<Body>) -> Seen {
        let (parts, body) = self
            .router
            .clone()
            .oneshot(request)
            .await
            .unwrap()
            .into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Seen {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    async fn raw(&self, body: impl Into<Body>) -> Seen {
        let request = self.request().header("authorization", self.bearer());
        self.send(request.body(body.into()).unwrap()).await
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.key)
    }

    async fn rpc(&self, era: Era, method: &str, params: Value) -> Seen {
        self.rpc_as(&self.key, era, method, params).await
    }

    async fn rpc_as(&self, key: &str, era: Era, method: &str, params: Value) -> Seen {
        self.send(self.asks(key, era, method, params)).await
    }

    fn asks(&self, key: &str, era: Era, method: &str, mut params: Value) -> Request<Body> {
        let mut request = self
            .request()
            .header("authorization", format!("Bearer {key}"));
        if era == Era::Modern {
            request = request
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", method);
            let names = ["name", "uri", "taskId"].map(|name| params[name].as_str());
            if let Some(name) = names.into_iter().flatten().next() {
                request = request.header("mcp-name", name);
            }
            let mut meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "unit", "version": "1.2"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            if let Some(own) = params["_meta"].as_object() {
                meta.as_object_mut().unwrap().extend(own.clone());
            }
            params["_meta"] = meta;
        } else {
            request = request.header("mcp-protocol-version", "2025-11-25");
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        request.body(Body::from(body.to_string())).unwrap()
    }

    /// An answer that comes as a stream, and is read as it comes.
    async fn stream(&self, request: Request<Body>) -> Stream {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Stream {
            body: answer.into_body().into_data_stream().boxed(),
            read: String::new(),
        }
    }

    /// The same server with another pace, so that nothing is waited for in earnest. Its door stands alone, without the checks
    /// that the whole router makes before it.
    fn at_pace(mut self, progress: Duration, recheck: Duration) -> Self {
        self.router = super::router_at(self.app.clone(), Pace { progress, recheck });
        self
    }

    /// The same with the other doors beside it.
    fn at_pace_with_every_door(mut self, progress: Duration, recheck: Duration) -> Self {
        let pace = Pace { progress, recheck };
        let mcp = super::router_at(self.app.clone(), pace);
        let tools = self.router.clone();
        self.router = mcp.fallback_service(tools);
        self
    }

    /// Another agent of the same person on the same site, with these tools, and its key.
    async fn agent(&self, name: &str, tools: &[&str]) -> (AgentId, String) {
        let new = agents::NewAgent {
            name: name.into(),
            sites: vec![SiteId::new(self.site().await)],
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            expires_at: None,
        };
        let added = agents::add(&self.engine, &self.ada().await, new).await;
        added.unwrap()
    }

    /// Leaves an agent these tools and no others.
    async fn narrow(&self, agent: &AgentId, tools: &[&str]) {
        let change = agents::Change {
            sites: None,
            tools: Some(tools.iter().map(|tool| (*tool).to_owned()).collect()),
            disabled: None,
            only_after: None,
        };
        let changed = agents::change(&self.engine, &Steward::operator(), agent, change).await;
        changed.unwrap();
    }

    /// A site of the same person that the demo's agent does not work on.
    async fn foreign_site(&self) -> String {
        let ada = self.ada().await;
        let made = sites::create_site(&self.engine, "elsewhere", "Elsewhere", Some(&ada));
        made.await.unwrap().as_str().to_owned()
    }

    async fn call(&self, era: Era, tool: &str, arguments: Value) -> Seen {
        let params = json!({"name": tool, "arguments": arguments});
        self.rpc(era, "tools/call", params).await
    }

    async fn site(&self) -> String {
        let seen = self.call(Era::Modern, "site_list", json!({})).await;
        let id = &seen.structured()["data"]["items"][0]["id"];
        id.as_str().unwrap().to_owned()
    }

    async fn versions(&self, site: &str) -> usize {
        let seen = self
            .call(Era::Modern, "version_list", json!({"site": site}))
            .await;
        seen.structured()["data"]["items"].as_array().unwrap().len()
    }

    /// Changes a page, so that there is something to publish.
    async fn edit(&self, site: &str, text: &str) {
        let list = self
            .call(Era::Modern, "node_list", json!({"site": site}))
            .await;
        let node = &list.structured()["data"]["items"][0]["id"];
        let arguments = json!({"site": site, "node": node, "body": text});
        let seen = self.call(Era::Modern, "node_update", arguments).await;
        assert_eq!(seen.structured()["status"], "ok", "{}", seen.body);
    }

    async fn decide(&self, site: &str, id: &str, verdict: Verdict) {
        let reason = (verdict == Verdict::Deny).then_some("Not on a Friday");
        self.decide_because(site, id, verdict, reason).await;
    }

    async fn deny(&self, site: &str, id: &str, reason: &str) {
        self.decide_because(site, id, Verdict::Deny, Some(reason))
            .await;
    }

    async fn decide_because(&self, site: &str, id: &str, verdict: Verdict, reason: Option<&str>) {
        let person = self.ada().await;
        let decider = Decider::new(&person, proof());
        let (site, id) = (SiteId::new(site), ApprovalId::new(id));
        let stored = approvals::for_person(&self.engine, &person, &id)
            .await
            .unwrap();
        let seen = stored
            .approval
            .record(self.engine.now(), String::new())
            .seen_digest;
        approvals::decide(
            &self.engine,
            &decider,
            &site,
            &id,
            verdict,
            seen.as_str(),
            reason.map(str::to_owned),
        )
        .await
        .unwrap();
    }

    async fn ada(&self) -> people::Person {
        let found = people::by_email(&self.engine, "ada@example.com").await;
        found.unwrap().unwrap()
    }

    async fn tools(&self, key: &str, era: Era) -> Vec<Value> {
        let seen = self.rpc_as(key, era, "tools/list", json!({})).await;
        seen.body["result"]["tools"].as_array().unwrap().clone()
    }
}

fn proof() -> origin::SameOrigin {
    origin::prove(OURS, None, Some(OURS)).unwrap()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

/// A stream of server-sent events.
struct Stream {
    body: BoxStream<'static, Result<axum::body::Bytes, axum::Error>>,
    read: String,
}

impl Stream {
    /// The next message, or `None` where the stream has ended.
    async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.read.split_once("\n\n") {
                let data: Vec<&str> = event
                    .lines()
                    .filter_map(|line| line.strip_prefix("data:"))
                    .collect();
                let data = data.join("\n");
                self.read = rest.to_owned();
                if !data.trim().is_empty() {
                    return Some(serde_json::from_str(&data).unwrap());
                }
            }
            let bytes = self.body.next().await?.unwrap();
            self.read.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }
}

/// How many requests wait for a person.
async fn waiting(demo: &Demo) -> i64 {
    let viewer = cloudhal_engine::studio::viewer(&demo.engine, &demo.ada().await).await;
    viewer.unwrap().waiting
}

/// Drives a future for a number of wake-ups, then drops it, as a hang-up does.
async fn poll_some(future: impl Future, wake_ups: usize) {
    let mut future = std::pin::pin!(future);
    let mut left = wake_ups;
    std::future::poll_fn(|context| {
        let done = future.as_mut().poll(context).is_ready();
        if done || left == 0 {
            return std::task::Poll::Ready(());
        }
        left -= 1;
        std::task::Poll::Pending
    })
    .await;
}
