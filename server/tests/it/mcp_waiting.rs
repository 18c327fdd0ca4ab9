//! A waiting call over MCP 2026-07-28 as a client finds it on the wire: a task, and what can be looked at beside it.

use crate::support::*;
use reqwest::Method;
use serde_json::{Value, json};

impl AgentClient {
    fn modern(&self, method: &str, mut params: Value) -> reqwest::RequestBuilder {
        let named = ["name", "uri", "taskId"].map(|name| params[name].as_str());
        let name = named.into_iter().flatten().next().unwrap_or_default();
        let mut request = self
            .request(Method::POST, "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        if !name.is_empty() {
            request = request.header("mcp-name", name);
        }
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "unit", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        request.body(message.to_string())
    }

    async fn result(&self, method: &str, params: Value) -> Value {
        let seen = Seen::of(self.modern(method, params)).await;
        assert!(seen.body["result"].is_object(), "{method}: {}", seen.text);
        seen.body["result"].clone()
    }

    async fn publish_as_task(&self, site: &SiteId) -> String {
        let params = json!({"name": "publish", "arguments": {"site": site}});
        let task = self.result("tools/call", params).await;
        assert_eq!(task["resultType"], "task", "{task}");
        task["taskId"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_looked_at_without_a_trace_and_runs_once() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let setup = Setup {
            kind,
            ..Default::default()
        };
        if let Some(server) = TestServer::start_as(setup).await {
            a_task_on(server).await;
        }
    }
}

async fn a_task_on(server: TestServer) {
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let site = server.site.clone();
    let id = bot.publish_as_task(&site).await;
    let traces = async || {
        let events = server.database.number("select count(*) from events").await;
        (server.effects().await, server.journal().await.len(), events)
    };
    let before = traces().await;
    let of_site = format!("cloudhal://sites/{site}");
    let filter = json!({"resourceSubscriptions": [of_site, format!("cloudhal://approvals/{id}")]});
    let listens = bot.modern("subscriptions/listen", json!({"notifications": filter}));
    let mut stream = listens.send().await.unwrap();
    let hello = stream.chunk().await.unwrap().unwrap();
    let hello = String::from_utf8_lossy(&hello);
    assert!(hello.contains("subscriptions/acknowledged"), "{hello}");
    for _ in 0..10 {
        let task = bot.result("tasks/get", json!({"taskId": id})).await;
        assert_eq!(task["status"], "working", "{task}");
        let answers = json!({"approve": {"action": "accept"}});
        bot.result(
            "tasks/update",
            json!({"taskId": id, "inputResponses": answers}),
        )
        .await;
        bot.result("resources/list", json!({})).await;
        bot.result("resources/read", json!({"uri": of_site})).await;
        let explain = json!({"name": "explain-denial", "arguments": {"approvalId": id}});
        bot.result("prompts/get", explain).await;
        let complete = json!({
            "ref": {"type": "ref/prompt", "name": "propose-change"},
            "argument": {"name": "site", "value": "b"},
        });
        bot.result("completion/complete", complete).await;
    }
    assert_eq!(traces().await, before, "waiting writes nothing");

    ada.approve(&site, &id).await;
    let all = (0..8).map(|_| bot.result("tasks/get", json!({"taskId": id})));
    let mut ran = 0;
    for task in futures::future::join_all(all).await {
        assert_eq!(task["status"], "completed", "{task}");
        let answer = &task["result"]["structuredContent"];
        assert_eq!(answer["status"], "ok", "{task}");
        ran += i32::from(answer["replayed"] == false);
    }
    assert_eq!(ran, 1, "one of them ran it, the others were told");
    let versions = "select count(*) from versions";
    assert_eq!(server.database.number(versions).await, 1);
    // Whoever listens holds up no stop.
    server.done().await;
    let mut rest = String::new();
    while let Ok(Some(chunk)) = stream.chunk().await {
        rest.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(rest.contains("notifications/resources/updated"), "{rest}");
    assert!(rest.contains("\"resultType\":\"complete\""), "{rest}");
}
