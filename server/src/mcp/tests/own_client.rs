//! A person's own client, at both of its doors: `/mcp` with a key from a session, and standard input and output.

use super::{Demo, Era, Seen, proof};
use crate::mcp::{handler::Handler, stdio};
use axum::body::Body;
use cloudhal_domain::{approval::Verdict, id::SiteId, limits};
use cloudhal_engine::{
    callers::Caller,
    personal_keys::{self, Session},
    policies,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
    split,
};

const FORMS: &str = r#"{"elicitation": {"form": {}}}"#;
const LINKS: &str = r#"{"elicitation": {"url": {}}}"#;
const BOTH: &str = r#"{"elicitation": {"form": {}, "url": {}}}"#;

impl Demo {
    /// A key that Ada made in a session of hers.
    async fn personal_key(&self) -> String {
        let (ada, now) = (self.ada().await, self.engine.now());
        let ends_at = now.plus(Duration::from_secs(3600));
        let session = Session {
            id: "session".into(),
            ends_at,
        };
        let store = self.engine.store();
        store
            .save_session(session.id.clone(), "{}".into(), ends_at.ms())
            .await
            .unwrap();
        let made = personal_keys::make(&self.engine, &ada, proof(), session, "laptop").await;
        made.unwrap().secret
    }

    /// A call of the newer era by a client that declares this.
    async fn call_declaring(
        &self,
        key: &str,
        declared: &str,
        tool: &str,
        mut params: Value,
    ) -> Seen {
        params["name"] = json!(tool);
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "laptop", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(declared).unwrap(),
        });
        let request = self
            .request()
            .header("authorization", format!("Bearer {key}"))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        self.send(request.body(Body::from(body.to_string())).unwrap())
            .await
    }

    async fn studio_only(&self, site: &str) {
        let policy = json!({"default": {"studioOnly": true}});
        let (ada, site) = (self.ada().await, SiteId::new(site));
        policies::set(&self.engine, &ada, proof(), &site, policy, None)
            .await
            .unwrap();
    }

    async fn asked_in_a_form(&self, key: &str, site: &str) -> (Value, String) {
        let call = json!({"arguments": {"site": site}});
        let seen = self.call_declaring(key, FORMS, "publish", call).await;
        let result = &seen.body["result"];
        assert_eq!(result["resultType"], "input_required", "{}", seen.body);
        let request = result["inputRequests"]["decision"].clone();
        (request, result["requestState"].as_str().unwrap().to_owned())
    }
}

fn brings(site: &str, state: &str, name: &str, response: Value) -> Value {
    json!({"arguments": {"site": site}, "requestState": state, "inputResponses": {name: response}})
}

fn says(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}

#[tokio::test]
async fn a_persons_client_is_asked_by_a_form_and_the_answer_runs_the_call() {
    let demo = Demo::start().await;
    let (key, site) = (demo.personal_key().await, demo.site().await);
    let before = demo.versions(&site).await;
    demo.edit(&site, "By hand.").await;
    let (asked, state) = demo.asked_in_a_form(&key, &site).await;
    let message = asked["params"]["message"].as_str().unwrap();
    for part in ["Publish 1 changed page", "edited", "/approvals/"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let properties = &asked["params"]["requestedSchema"]["properties"];
    assert_eq!(properties["decision"]["oneOf"][0]["const"], "approve");
    assert_eq!(properties["decision"]["default"], Value::Null);
    assert_eq!(demo.versions(&site).await, before);
    let answer = brings(&site, &state, "decision", says("approve"));
    let ran = demo
        .call_declaring(&key, FORMS, "publish", answer.clone())
        .await;
    assert_eq!(ran.structured()["status"], "ok", "{}", ran.body);
    assert_eq!(demo.versions(&site).await, before + 1);
    // The answer brought once more is an answer to what was decided already.
    let again = demo.call_declaring(&key, FORMS, "publish", answer).await;
    assert_eq!(
        again.structured()["error"]["code"],
        "already_decided",
        "{}",
        again.body
    );
    assert_eq!(demo.versions(&site).await, before + 1);
}

#[tokio::test]
async fn whoever_would_not_answer_decided_nothing() {
    let demo = Demo::start().await;
    let (key, site) = (demo.personal_key().await, demo.site().await);
    demo.edit(&site, "By hand.").await;
    let (_, state) = demo.asked_in_a_form(&key, &site).await;
    for response in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"decision": "yes"}}),
        json!({"action": "accept", "content": {"decision": true}}),
        json!("approve"),
    ] {
        let answer = brings(&site, &state, "decision", response.clone());
        let seen = demo.call_declaring(&key, FORMS, "publish", answer).await;
        assert_eq!(
            seen.structured()["status"],
            "approval_pending",
            "{response}: {}",
            seen.body
        );
    }
    let deny = json!({"action": "accept", "content": {"decision": "deny", "reason": "Not today."}});
    let denied = demo
        .call_declaring(
            &key,
            FORMS,
            "publish",
            brings(&site, &state, "decision", deny),
        )
        .await;
    assert_eq!(
        denied.structured()["error"]["code"],
        "approval_denied",
        "{}",
        denied.body
    );
    assert!(denied.text().contains("Not today."));
}

/// C05: of all that a client may claim, nothing is believed that this server did not ask and sign.
#[tokio::test]
async fn c05_made_up_answers_and_states_run_nothing() {
    let demo = Demo::start().await;
    let (key, site) = (demo.personal_key().await, demo.site().await);
    let before = demo.versions(&site).await;
    demo.edit(&site, "By hand.").await;
    let (_, state) = demo.asked_in_a_form(&key, &site).await;
    let pending = demo
        .call_declaring(&key, "{}", "publish", json!({"arguments": {"site": site}}))
        .await;
    let id = pending.structured()["approvalId"]
        .as_str()
        .unwrap()
        .to_owned();
    let signed = state.split_once('.').unwrap().1;
    for forged in [
        "",
        "x",
        &id,
        &format!("{id}."),
        &format!("{id}.{}", signed.to_uppercase()),
        &format!("x.{signed}"),
    ] {
        let seen = demo
            .call_declaring(
                &key,
                FORMS,
                "publish",
                brings(&site, forged, "decision", says("approve")),
            )
            .await;
        assert_eq!(
            seen.structured()["error"]["code"],
            "stale_view",
            "{forged}: {}",
            seen.body
        );
    }
    // An answer to a form is none that came by the link, and the other way round.
    let seen = demo
        .call_declaring(
            &key,
            BOTH,
            "publish",
            brings(&site, &state, "link", json!({"action": "accept"})),
        )
        .await;
    assert_eq!(
        seen.structured()["error"]["code"],
        "stale_view",
        "{}",
        seen.body
    );
    // An agent that brings it is not listened to, also with what a person was asked.
    let answer = brings(&site, &state, "decision", says("approve"));
    let seen = demo
        .call_declaring(&demo.key, BOTH, "publish", answer)
        .await;
    assert_eq!(seen.structured()["status"], "error", "{}", seen.body);
    assert_eq!(demo.versions(&site).await, before);
    // With another call than the one that was asked for: nothing is decided.
    let other = json!({"arguments": {"site": site, "version": 1}, "requestState": state, "inputResponses": {"decision": says("approve")}});
    let seen = demo.call_declaring(&key, FORMS, "rollback", other).await;
    assert_eq!(
        seen.structured()["error"]["code"],
        "approval_mismatch",
        "{}",
        seen.body
    );
    assert_eq!(demo.versions(&site).await, before);
    let call = json!({"arguments": {"site": site}});
    let seen = demo.call_declaring(&key, "{}", "publish", call).await;
    assert_eq!(seen.structured()["approved"], false, "{}", seen.body);
}

/// C37.
#[tokio::test]
async fn c37_agents_and_sites_that_decide_in_the_studio_are_never_asked() {
    let demo = Demo::start().await;
    let (key, site) = (demo.personal_key().await, demo.site().await);
    demo.edit(&site, "By hand.").await;
    let call = || json!({"arguments": {"site": site}});
    for declared in [FORMS, LINKS, BOTH, r#"{"elicitation": {}}"#] {
        let seen = demo
            .call_declaring(&demo.key, declared, "publish", call())
            .await;
        assert_eq!(
            seen.structured()["status"],
            "approval_pending",
            "{declared}: {}",
            seen.body
        );
    }
    // A client that does not say it can ask is not made to.
    let seen = demo.call_declaring(&key, "{}", "publish", call()).await;
    assert_eq!(seen.structured()["status"], "approval_pending");
    // In the older era nothing is known of a client over HTTP.
    let seen = demo
        .rpc_as(
            &key,
            Era::Legacy,
            "tools/call",
            json!({"name": "publish", "arguments": {"site": site}}),
        )
        .await;
    assert_eq!(seen.structured()["status"], "approval_pending");
    demo.studio_only(&site).await;
    let seen = demo.call_declaring(&key, FORMS, "publish", call()).await;
    assert_eq!(
        seen.structured()["status"],
        "approval_pending",
        "{}",
        seen.body
    );
    let seen = demo.call_declaring(&key, BOTH, "publish", call()).await;
    assert!(
        seen.body["result"]["inputRequests"]["link"].is_object(),
        "{}",
        seen.body
    );
}

#[tokio::test]
async fn a_client_that_opens_links_is_sent_to_the_studio_and_waits() {
    let demo = Demo::start().await;
    let (key, site) = (demo.personal_key().await, demo.site().await);
    let before = demo.versions(&site).await;
    demo.edit(&site, "By hand.").await;
    let seen = demo
        .call_declaring(&key, LINKS, "publish", json!({"arguments": {"site": site}}))
        .await;
    let request = &seen.body["result"]["inputRequests"]["link"];
    assert_eq!(request["params"]["mode"], "url", "{}", seen.body);
    let url = request["params"]["url"].as_str().unwrap();
    let id = url.rsplit('/').next().unwrap().to_owned();
    let state = seen.body["result"]["requestState"]
        .as_str()
        .unwrap()
        .to_owned();
    let answer = brings(&site, &state, "link", json!({"action": "accept"}));
    // It was opened, and that is all that accepting says: the call waits for the decision, and then runs.
    let (ran, ()) = tokio::join!(demo.call_declaring(&key, LINKS, "publish", answer), async {
        while super::waiting(&demo).await == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(demo.versions(&site).await, before);
        demo.decide(&site, &id, cloudhal_domain::approval::Verdict::Approve)
            .await;
    });
    assert_eq!(ran.structured()["status"], "ok", "{}", ran.body);
    assert_eq!(demo.versions(&site).await, before + 1);
}

/// A client of the older era at its end of two pipes.
pub(super) struct Piped {
    to: WriteHalf<DuplexStream>,
    from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Piped {
    pub(super) async fn start(demo: &Demo, confirm_tokens: bool) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let handler = Handler::here(
            demo.engine.clone(),
            Caller::here(&demo.ada().await),
            confirm_tokens,
        );
        let (input, output) = split(theirs);
        let serving = tokio::spawn(stdio::serve(handler, input, output));
        let (from, to) = split(ours);
        Self {
            to,
            from: BufReader::new(from).lines(),
            serving,
        }
    }

    async fn line(&mut self, line: impl AsRef<[u8]>) {
        self.to.write_all(line.as_ref()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    pub(super) async fn next(&mut self) -> Value {
        serde_json::from_str(&self.from.next_line().await.unwrap().unwrap()).unwrap()
    }

    pub(super) async fn send(&mut self, id: u32, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.line(message.to_string()).await;
    }

    pub(super) async fn hello(&mut self, declared: &str) {
        let declared: Value = serde_json::from_str(declared).unwrap();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": declared, "clientInfo": {"name": "desk", "version": "2"}});
        self.send(0, "initialize", params).await;
        assert_eq!(
            self.next().await["result"]["serverInfo"]["name"],
            "cloudhal"
        );
        self.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
    }

    async fn call(&mut self, id: u32, tool: &str, arguments: Value) -> Value {
        self.send(
            id,
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
        )
        .await;
        self.next().await
    }

    /// What it still has to say once its input has ended.
    async fn rest(mut self) -> Vec<Value> {
        self.to.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.from.next_line().await.unwrap() {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.serving.await.unwrap().unwrap();
        rest
    }
}

fn structured(message: &Value) -> &Value {
    &message["result"]["structuredContent"]
}

#[tokio::test]
async fn over_pipes_an_older_client_is_asked_while_its_call_waits() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let before = demo.versions(&site).await;
    demo.edit(&site, "By hand.").await;
    let mut desk = Piped::start(&demo, false).await;
    desk.hello(FORMS).await;
    for (decision, status, code) in [
        ("deny", "error", json!("approval_denied")),
        ("approve", "ok", Value::Null),
    ] {
        demo.edit(&site, &format!("Before {decision}.")).await;
        let asked = desk.call(1, "publish", json!({"site": site})).await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": says(decision)});
        desk.line(answer.to_string()).await;
        let ran = desk.next().await;
        assert_eq!(structured(&ran)["status"], status, "{ran}");
        assert_eq!(structured(&ran)["error"]["code"], code, "{ran}");
    }
    assert_eq!(demo.versions(&site).await, before + 1);
    demo.studio_only(&site).await;
    demo.edit(&site, "In the Studio.").await;
    let waits = desk.call(2, "publish", json!({"site": site})).await;
    assert_eq!(structured(&waits)["status"], "approval_pending", "{waits}");
    assert!(desk.rest().await.is_empty());
}

/// C66: whatever a line holds, the next one is answered.
#[tokio::test]
async fn c66_a_line_that_is_no_message_ends_nothing() {
    let demo = Demo::start().await;
    let mut desk = Piped::start(&demo, false).await;
    let long = vec![b'x'; limits::BODY_BYTES_MAX + 1];
    let huge = vec![b'['; 10 << 20];
    let bad: &[(&[u8], i64)] = &[
        (b"{", -32700),
        (b"\xef\xbb\xbf{}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700),
        (&long, -32700),
        (&huge, -32700),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        (b"null", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"a\":1,\"a\":2}}", -32602),
    ];
    for begun in [false, true] {
        if begun {
            desk.hello("{}").await;
        }
        for (line, code) in bad {
            desk.line(line).await;
            let answer = desk.next().await;
            assert_eq!(answer["error"]["code"], *code, "{answer}");
            desk.send(7, "ping", json!({})).await;
            assert_eq!(desk.next().await["id"], 7);
        }
        // An answer to nothing, a word about nothing, an empty line, a line's end as another system has it.
        desk.line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#).await;
        desk.line(r#"{"jsonrpc":"2.0","method":"notifications/unheard"}"#)
            .await;
        desk.line("").await;
        desk.line("{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}\r")
            .await;
        assert_eq!(desk.next().await["id"], 8);
    }
    let list = desk.call(9, "site_list", json!({})).await;
    assert_eq!(structured(&list)["status"], "ok", "{list}");
    // What was asked last is answered although the input ends, also without an end of its line.
    let ping = br#"{"jsonrpc":"2.0","id":10,"method":"tools/list"}"#;
    desk.to.write_all(ping).await.unwrap();
    let rest = desk.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert!(rest[0]["result"]["tools"].is_array());
}

/// Nobody answers what was cancelled, so nobody waits for an answer to it.
#[tokio::test]
async fn a_cancelled_call_does_not_keep_the_pipes_open() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "By hand.").await;
    let mut desk = Piped::start(&demo, false).await;
    desk.hello("{}").await;
    let asked = desk.call(1, "publish", json!({"site": site})).await;
    let id = structured(&asked)["approvalId"].clone();
    let wait = json!({"name": "approvals_get", "arguments": {"approvalId": id, "waitSeconds": 45}});
    desk.send(2, "tools/call", wait).await;
    let word = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    desk.line(word).await;
    // Its answer comes after what was sent before it.
    desk.send(3, "ping", json!({})).await;
    assert_eq!(desk.next().await["id"], 3);
    assert!(desk.rest().await.is_empty());
}

/// A client that went away while its person was asked: nobody waits for their answer.
#[tokio::test]
async fn a_question_ends_with_the_pipes() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "By hand.").await;
    let mut desk = Piped::start(&demo, false).await;
    desk.hello(FORMS).await;
    let asked = desk.call(1, "publish", json!({"site": site})).await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    // A question that is waited out is taken back; this one was given up.
    let rest = desk.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(structured(&rest[0])["status"], "approval_pending");
}

#[tokio::test]
async fn the_newer_era_works_over_pipes_without_a_handshake() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "By hand.").await;
    let mut desk = Piped::start(&demo, false).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": serde_json::from_str::<Value>(FORMS).unwrap(),
    });
    let mut params = json!({"name": "publish", "arguments": {"site": site}, "_meta": meta});
    desk.send(1, "tools/call", params.clone()).await;
    let asked = desk.next().await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = json!({"decision": says("approve")});
    desk.send(2, "tools/call", params).await;
    let ran = desk.next().await;
    assert_eq!(structured(&ran)["status"], "ok", "{ran}");
    assert!(desk.rest().await.is_empty());
}

#[tokio::test]
async fn a_confirm_token_runs_its_call_once_where_the_operator_allows_it() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let before = demo.versions(&site).await;
    demo.edit(&site, "By hand.").await;
    let mut desk = Piped::start(&demo, true).await;
    desk.hello("{}").await;
    let pending = desk.call(1, "publish", json!({"site": site})).await;
    let token = structured(&pending)["confirmToken"]
        .as_str()
        .unwrap()
        .to_owned();
    for wrong in [json!("x"), json!(7), json!(format!("{token}0"))] {
        let seen = desk
            .call(2, "publish", json!({"site": site, "confirmToken": wrong}))
            .await;
        assert_eq!(structured(&seen)["error"]["code"], "stale_view", "{seen}");
    }
    let other = desk
        .call(
            3,
            "rollback",
            json!({"site": site, "version": 1, "confirmToken": token}),
        )
        .await;
    assert_eq!(
        structured(&other)["error"]["code"],
        "approval_mismatch",
        "{other}"
    );
    assert_eq!(demo.versions(&site).await, before);
    let pending = desk.call(4, "publish", json!({"site": site})).await;
    assert_eq!(structured(&pending)["approved"], false, "{pending}");
    demo.edit(&site, "By hand, again.").await;
    let late = desk
        .call(4, "publish", json!({"site": site, "confirmToken": token}))
        .await;
    assert_eq!(
        structured(&late)["error"]["code"],
        "approval_voided",
        "{late}"
    );
    let pending = desk.call(5, "publish", json!({"site": site})).await;
    let token = structured(&pending)["confirmToken"].clone();
    let ran = desk
        .call(6, "publish", json!({"site": site, "confirmToken": token}))
        .await;
    assert_eq!(structured(&ran)["status"], "ok", "{ran}");
    let again = desk
        .call(7, "publish", json!({"site": site, "confirmToken": token}))
        .await;
    assert_eq!(
        structured(&again)["error"]["code"],
        "already_decided",
        "{again}"
    );
    assert_eq!(demo.versions(&site).await, before + 1);
    demo.studio_only(&site).await;
    demo.edit(&site, "In the Studio.").await;
    let pending = desk.call(8, "publish", json!({"site": site})).await;
    assert_eq!(
        structured(&pending)["confirmToken"],
        Value::Null,
        "{pending}"
    );
    drop(desk);
    // Without the flag there is none, and an argument of that name is not taken.
    let mut desk = Piped::start(&demo, false).await;
    desk.hello("{}").await;
    let seen = desk
        .call(1, "rollback", json!({"site": site, "version": 1}))
        .await;
    assert_eq!(structured(&seen)["confirmToken"], Value::Null, "{seen}");
    let seen = desk
        .call(
            2,
            "rollback",
            json!({"site": site, "version": 1, "confirmToken": "x"}),
        )
        .await;
    assert_eq!(
        structured(&seen)["error"]["code"],
        "invalid_arguments",
        "{seen}"
    );
}

/// A person is asked first; a client of theirs that brings no answer holds a task like anybody's.
#[tokio::test]
async fn a_persons_client_that_declares_both_is_asked_and_then_holds_a_task() {
    let demo = Demo::start().await;
    let (key, site) = (demo.personal_key().await, demo.site().await);
    let before = demo.versions(&site).await;
    demo.edit(&site, "By hand.").await;
    let declared =
        r#"{"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}"#;
    let call = json!({"arguments": {"site": site}});
    let asked = demo.call_declaring(&key, declared, "publish", call).await;
    let asked = &asked.body["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = asked["requestState"].as_str().unwrap();
    let answer = brings(&site, state, "decision", json!({"action": "decline"}));
    let task = demo.call_declaring(&key, declared, "publish", answer).await;
    assert_eq!(task.body["result"]["resultType"], "task", "{}", task.body);
    let id = task.body["result"]["taskId"].as_str().unwrap();
    let look = async |key: &str| {
        let declared: Value = serde_json::from_str(declared).unwrap();
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": declared});
        let params = json!({"taskId": id, "_meta": meta});
        demo.rpc_as(key, Era::Modern, "tasks/get", params).await
    };
    assert_eq!(look(&key).await.body["result"]["status"], "working");
    assert_eq!(
        look(&demo.key).await.body["error"]["code"],
        -32602,
        "an agent's key"
    );
    demo.decide(&site, id, Verdict::Approve).await;
    let done = look(&key).await;
    assert_eq!(done.body["result"]["status"], "completed", "{}", done.body);
    assert_eq!(demo.versions(&site).await, before + 1);
}

#[tokio::test]
async fn over_pipes_a_stream_tells_what_moved_and_ends_with_the_input() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let uri = format!("cloudhal://sites/{site}");
    let mut desk = Piped::start(&demo, false).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"notifications": {"resourceSubscriptions": [uri]}, "_meta": meta});
    desk.send(1, "subscriptions/listen", params).await;
    let hello = desk.next().await;
    assert_eq!(hello["method"], "notifications/subscriptions/acknowledged");
    demo.edit(&site, "Heard.").await;
    let told = desk.next().await;
    assert_eq!(told["params"]["uri"], uri, "{told}");
    desk.send(2, "resources/read", json!({"uri": uri, "_meta": meta}))
        .await;
    assert_eq!(desk.next().await["result"]["contents"][0]["uri"], uri);
    let rest = desk.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["result"]["resultType"], "complete", "{rest:?}");
}

/// C11: over pipes a gated call waits as well, in both eras.
#[tokio::test]
async fn over_pipes_a_gated_call_of_a_client_that_asks_nobody_waits() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let before = demo.versions(&site).await;
    demo.edit(&site, "By hand.").await;
    let mut desk = Piped::start(&demo, false).await;
    desk.hello("{}").await;
    let waits = desk.call(1, "publish", json!({"site": site})).await;
    assert_eq!(structured(&waits)["status"], "approval_pending", "{waits}");
    assert!(desk.rest().await.is_empty());
    let mut desk = Piped::start(&demo, false).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "desk", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let params = json!({"name": "publish", "arguments": {"site": site}, "_meta": meta});
    desk.send(1, "tools/call", params).await;
    let task = desk.next().await;
    assert_eq!(task["result"]["status"], "working", "{task}");
    assert_eq!(
        task["result"]["taskId"],
        structured(&waits)["approvalId"],
        "one request"
    );
    assert!(desk.rest().await.is_empty());
    assert_eq!(demo.versions(&site).await, before);
}

#[tokio::test]
async fn a_stream_does_not_outlive_a_persons_key() {
    let soon = Duration::from_millis(1);
    let demo = Demo::start().await.at_pace(soon, soon);
    let (key, site) = (demo.personal_key().await, demo.site().await);
    let uri = format!("cloudhal://sites/{site}");
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let listens = demo.asks(&key, Era::Modern, "subscriptions/listen", filter);
    let mut stream = demo.stream(listens).await;
    stream.next().await.unwrap();
    demo.edit(&site, "Heard.").await;
    assert_eq!(stream.next().await.unwrap()["params"]["uri"], uri);
    let ada = demo.ada().await;
    let keys = personal_keys::list(&demo.engine, &ada).await.unwrap();
    let ended = personal_keys::end(&demo.engine, &ada, proof(), &keys[0].id).await;
    ended.unwrap();
    let end = stream.next().await.unwrap();
    assert_eq!(end["error"]["data"]["code"], "unauthorized", "{end}");
    assert_eq!(stream.next().await, None);
}
