//! One story at every door: what is answered, and what happened, is the same.

use super::{Demo, Era, own_client::Piped};
use axum::{
    body::{Body, to_bytes},
    http::Request,
};
use cloudhal_domain::approval::Verdict;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt as _;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Tools,
    Mcp(Era),
    /// By a client that wants to hear of progress, so that an answer may come as a stream.
    Streamed(Era),
    Pipes(Era),
}

const WAYS: [Way; 7] = [
    Way::Tools,
    Way::Mcp(Era::Legacy),
    Way::Mcp(Era::Modern),
    Way::Streamed(Era::Legacy),
    Way::Streamed(Era::Modern),
    Way::Pipes(Era::Legacy),
    Way::Pipes(Era::Modern),
];

/// A caller at one of them; over pipes it is the person's own client.
struct Door {
    demo: Demo,
    way: Way,
    pipes: Option<Piped>,
    site: String,
    told: Vec<String>,
}

impl Door {
    async fn open(way: Way) -> Self {
        let demo = Demo::start()
            .await
            .at_pace_with_every_door(Duration::from_millis(1), Duration::from_secs(3600));
        let mut pipes = match way {
            Way::Pipes(_) => Some(Piped::start(&demo, false).await),
            _ => None,
        };
        if let (Some(pipes), Way::Pipes(Era::Legacy)) = (&mut pipes, way) {
            pipes.hello("{}").await;
        }
        Self {
            site: demo.site().await,
            demo,
            way,
            pipes,
            told: Vec::new(),
        }
    }

    /// The answer as CONTRACT §4 has it.
    async fn call(&mut self, tool: &str, arguments: Value, approval: Option<&str>) -> Value {
        if self.way == Way::Tools {
            let mut body = json!({"arguments": arguments});
            if let Some(id) = approval {
                body["approvalId"] = json!(id);
            }
            return self.over_tools(tool, body).await;
        }
        let mut arguments = arguments;
        if let Some(id) = approval {
            arguments["approvalId"] = json!(id);
        }
        let mut params = json!({"name": tool.replace('-', "_"), "arguments": arguments});
        let message = match self.way {
            Way::Tools => unreachable!("answered above"),
            Way::Mcp(era) => self.demo.rpc(era, "tools/call", params).await.body,
            Way::Streamed(era) => {
                params["_meta"] = json!({"progressToken": "p"});
                self.streamed(era, params).await
            }
            Way::Pipes(era) => {
                if era == Era::Modern {
                    params["_meta"] = json!({
                        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                        "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "2"},
                        "io.modelcontextprotocol/clientCapabilities": {},
                    });
                }
                let pipes = self.pipes.as_mut().unwrap();
                pipes.send(1, "tools/call", params).await;
                pipes.next().await
            }
        };
        match &message["result"]["structuredContent"] {
            Value::Null => json!({"status": "error", "error": message["error"]["data"]}),
            answer => answer.clone(),
        }
    }

    async fn over_tools(&self, tool: &str, body: Value) -> Value {
        let request = Request::post(format!("/tools/{tool}"))
            .header("host", "127.0.0.1:3000")
            .header("authorization", self.demo.bearer())
            .body(Body::from(body.to_string()));
        self.demo.send(request.unwrap()).await.body
    }

    /// The last message, however it comes.
    async fn streamed(&self, era: Era, params: Value) -> Value {
        let request = self.demo.asks(&self.demo.key, era, "tools/call", params);
        let answer = self.demo.router.clone().oneshot(request).await.unwrap();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        let last = text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .rfind(|data| !data.trim().is_empty())
            .unwrap_or(text);
        serde_json::from_str(last).unwrap()
    }

    /// A step of the story, and what came of it in a few words.
    async fn step(
        &mut self,
        what: &str,
        tool: &str,
        arguments: Value,
        approval: Option<&str>,
    ) -> Value {
        let answer = self.call(tool, arguments, approval).await;
        let mut words = vec![format!("{what}: {}", answer["status"].as_str().unwrap())];
        for (name, value) in [
            ("code", &answer["error"]["code"]),
            ("replayed", &answer["replayed"]),
            ("approved", &answer["approved"]),
            ("cause", &answer["error"]["details"]["cause"]),
        ] {
            if !value.is_null() {
                words.push(format!("{name} {value}"));
            }
        }
        self.told.push(words.join(", "));
        answer
    }

    /// A page is changed, and its publish asked for.
    async fn asked(&mut self, text: &str) -> String {
        let site = self.site.clone();
        self.demo.edit(&site, text).await;
        let answer = self
            .step(text, "publish", json!({"site": site}), None)
            .await;
        answer["approvalId"].as_str().unwrap().to_owned()
    }

    async fn reads_and_edits(&mut self) {
        let site = self.site.clone();
        self.step("list", "site-list", json!({}), None).await;
        self.step("unknown site", "site-get", json!({"site": "x"}), None)
            .await;
        self.step("wrong shape", "site-get", json!({"sight": site}), None)
            .await;
        self.step("no such tool", "decide", json!({"site": site}), None)
            .await;
        let nodes = self.call("node-list", json!({"site": site}), None).await;
        let node = &nodes["data"]["items"][0];
        let (id, rev) = (node["id"].clone(), node["rev"].as_i64().unwrap());
        let edit = |rev: i64, title: &str| json!({"site": site, "node": id, "expectedRev": rev, "title": title});
        self.step("edit", "node-update", edit(rev, "One"), None)
            .await;
        self.step("stale edit", "node-update", edit(rev, "Two"), None)
            .await;
    }

    async fn approved(&mut self) {
        let site = self.site.clone();
        let publish = || json!({"site": site});
        let id = self.asked("first").await;
        let again = self.step("asked again", "publish", publish(), None).await;
        assert_eq!(again["approvalId"], id.as_str(), "{:?}", self.way);
        let one = json!({"approvalId": id});
        self.step("looked at", "approvals-get", one.clone(), None)
            .await;
        self.step("too early", "publish", publish(), Some(&id))
            .await;
        self.step("resumed too early", "approvals-resume", one.clone(), None)
            .await;
        let back = json!({"site": site, "version": 1});
        self.step("another call", "rollback", back, Some(&id)).await;
        self.step("made up", "publish", publish(), Some("made-up"))
            .await;
        self.demo.decide(&site, &id, Verdict::Approve).await;
        self.step("without its id", "publish", publish(), None)
            .await;
        self.step("runs", "publish", publish(), Some(&id)).await;
        self.step("once", "publish", publish(), Some(&id)).await;
        self.step("resumed late", "approvals-resume", one, None)
            .await;
    }

    async fn not_approved(&mut self) {
        let site = self.site.clone();
        let publish = || json!({"site": site});
        let id = self.asked("to be denied").await;
        self.demo.decide(&site, &id, Verdict::Deny).await;
        self.step("denied", "publish", publish(), Some(&id)).await;
        let id = self.asked("to be withdrawn").await;
        self.step(
            "withdraws",
            "approvals-cancel",
            json!({"approvalId": id}),
            None,
        )
        .await;
        self.step("withdrawn", "publish", publish(), Some(&id))
            .await;
        let id = self.asked("to be voided").await;
        self.demo.decide(&site, &id, Verdict::Approve).await;
        self.demo.edit(&site, "Something else.").await;
        self.step("voided", "publish", publish(), Some(&id)).await;
    }
}

#[tokio::test]
async fn every_door_tells_the_same_story() {
    let mut stories = Vec::new();
    for way in WAYS {
        let mut door = Door::open(way).await;
        door.reads_and_edits().await;
        door.approved().await;
        door.not_approved().await;
        let versions = door
            .call("version-list", json!({"site": door.site.clone()}), None)
            .await;
        let count = versions["data"]["items"].as_array().unwrap().len();
        door.told.push(format!("{count} versions"));
        stories.push((way, door.told));
    }
    let (_, first) = &stories[0];
    assert!(
        first.contains(&"runs: ok, replayed false".to_owned()),
        "{first:#?}"
    );
    assert!(first.contains(&"2 versions".to_owned()), "{first:#?}");
    for (way, story) in &stories {
        assert_eq!(story, first, "{way:?}");
    }
}
