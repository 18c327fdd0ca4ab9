//! Tasks: the waiting call as a handle, which says what the record says and runs the call once.

use super::*;

/// What a client that declares tasks sends with every request.
fn declared() -> Value {
    json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}})
}

impl Demo {
    async fn task_call(&self, tool: &str, arguments: Value) -> Seen {
        let params = json!({"name": tool, "arguments": arguments, "_meta": declared()});
        self.rpc(Era::Modern, "tools/call", params).await
    }

    async fn task(&self, method: &str, id: &str) -> Seen {
        self.task_as(&self.key, method, id).await
    }

    async fn task_as(&self, key: &str, method: &str, id: &str) -> Seen {
        let mut params = json!({"taskId": id, "_meta": declared()});
        if method == "tasks/update" {
            params["inputResponses"] =
                json!({"approve": {"action": "accept", "content": {"approved": true}}});
        }
        self.rpc_as(key, Era::Modern, method, params).await
    }

    /// A publish that waits, as a task.
    async fn waiting_task(&self, site: &str, text: &str) -> String {
        self.edit(site, text).await;
        let seen = self.task_call("publish", json!({"site": site})).await;
        assert_eq!(seen.body["result"]["resultType"], "task", "{}", seen.body);
        seen.body["result"]["taskId"].as_str().unwrap().to_owned()
    }

    /// How the approval stands, asked past the task.
    async fn standing(&self, id: &str) -> String {
        let seen = self
            .call(Era::Modern, "approvals_get", json!({"approvalId": id}))
            .await;
        seen.structured()["data"]["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

#[tokio::test]
async fn a_waiting_call_is_a_task_and_looking_at_it_runs_it_once() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "News.").await;
    let seen = demo.task_call("publish", json!({"site": site})).await;
    let task = &seen.body["result"];
    assert_eq!(task["resultType"], "task", "{task}");
    assert_eq!(task["status"], "working");
    assert_eq!(task["ttlMs"], 24 * 3600 * 1000);
    assert_eq!(task["pollIntervalMs"], 2000);
    assert!(task.get("structuredContent").is_none(), "{task}");
    let id = task["taskId"].as_str().unwrap();
    let words = task["statusMessage"].as_str().unwrap();
    let link = format!("{OURS}/approvals/{id}");
    assert!(words.contains(&link) && words.contains("nothing has happened"));
    // The same call again, and a resume, are the same task.
    for (tool, arguments) in [
        ("publish", json!({"site": site})),
        ("approvals_resume", json!({"approvalId": id})),
        ("publish", json!({"site": site, "approvalId": id})),
    ] {
        let again = demo.task_call(tool, arguments).await.body;
        assert_eq!(again["result"]["taskId"], id, "{tool}: {again}");
        assert_eq!(again["result"]["createdAt"], task["createdAt"]);
    }
    let waits = demo.task("tasks/get", id).await.body;
    assert_eq!(waits["result"]["status"], "working", "{waits}");
    assert_eq!(waits["result"]["resultType"], "complete");
    assert_eq!(waits["result"]["statusMessage"], words);

    demo.decide(&site, id, Verdict::Approve).await;
    assert_eq!(
        demo.versions(&site).await,
        1,
        "a decision runs nothing here"
    );
    let done = demo.task("tasks/get", id).await.body;
    assert_eq!(done["result"]["status"], "completed", "{done}");
    let result = &done["result"]["result"];
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["status"], "ok");
    assert_eq!(result["structuredContent"]["replayed"], false);
    assert!(result["content"][0]["text"].is_string());
    let again = demo.task("tasks/get", id).await.body;
    assert_eq!(again["result"]["status"], "completed");
    let stored = &again["result"]["result"]["structuredContent"];
    assert_eq!(stored["data"], result["structuredContent"]["data"]);
    assert_eq!(stored["replayed"], true);
    assert_eq!(demo.versions(&site).await, 2);
    assert_ne!(done["result"]["lastUpdatedAt"], done["result"]["createdAt"]);
}

#[tokio::test]
async fn only_who_declared_tasks_in_the_request_gets_one() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "No task.").await;
    let plain = json!({"name": "publish", "arguments": {"site": site}});
    let mut old = plain.clone();
    old["_meta"] = declared();
    for (era, params) in [
        (Era::Modern, plain.clone()),
        (Era::Legacy, plain),
        (Era::Legacy, old),
    ] {
        let seen = demo.rpc(era, "tools/call", params.clone()).await;
        assert_eq!(
            seen.structured()["status"],
            "approval_pending",
            "{era:?} {params}: {}",
            seen.body
        );
        assert!(seen.body["result"].get("taskId").is_none());
    }
    // What does not wait is answered as ever.
    let read = demo.task_call("site_list", json!({})).await;
    assert_eq!(read.structured()["status"], "ok");
    let id = demo.task_call("publish", json!({"site": site})).await.body;
    let id = id["result"]["taskId"].as_str().unwrap();
    for method in ["tasks/get", "tasks/cancel"] {
        let seen = demo.rpc(Era::Modern, method, json!({"taskId": id})).await;
        assert_eq!(
            seen.body["error"]["code"], -32021,
            "{method}: {}",
            seen.body
        );
        let params = json!({"taskId": id, "_meta": declared()});
        let seen = demo.rpc(Era::Legacy, method, params).await;
        assert_eq!(
            seen.body["error"]["code"], -32601,
            "{method}: {}",
            seen.body
        );
    }
    assert_eq!(demo.standing(id).await, "pending");
}

#[tokio::test]
async fn a_task_that_will_never_run_is_completed_with_an_error_that_says_why() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let check = async |id: &str, code: &str, words: &str| {
        for _ in 0..2 {
            let seen = demo.task("tasks/get", id).await.body;
            assert_eq!(seen["result"]["status"], "completed", "{seen}");
            let result = &seen["result"]["result"];
            assert_eq!(result["isError"], true, "{seen}");
            assert_eq!(result["structuredContent"]["error"]["code"], code);
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(words), "{text}");
        }
    };
    let denied = demo.waiting_task(&site, "One.").await;
    demo.decide(&site, &denied, Verdict::Deny).await;
    check(&denied, "approval_denied", "Not on a Friday").await;
    let voided = demo.waiting_task(&site, "Two.").await;
    demo.decide(&site, &voided, Verdict::Approve).await;
    demo.edit(&site, "Three.").await;
    check(&voided, "approval_voided", "the site changed").await;
    assert_eq!(demo.versions(&site).await, 1);

    let settings = Settings {
        approval_ttl: Duration::ZERO,
        ..Settings::for_url(OURS)
    };
    let demo = Demo::start_with(settings).await;
    let site = demo.site().await;
    let expired = demo.waiting_task(&site, "Late.").await;
    let seen = demo.task("tasks/get", &expired).await.body;
    assert_eq!(seen["result"]["status"], "completed", "{seen}");
    let said = &seen["result"]["result"]["structuredContent"]["error"];
    assert_eq!(said["code"], "approval_expired");
}

#[tokio::test]
async fn cancelling_withdraws_ones_own_request_and_nothing_that_is_over() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let id = demo.waiting_task(&site, "Not needed.").await;
    for _ in 0..2 {
        let seen = demo.task("tasks/cancel", &id).await.body;
        assert_eq!(seen["result"]["resultType"], "complete", "{seen}");
    }
    assert_eq!(demo.standing(&id).await, "cancelled");
    let seen = demo.task("tasks/get", &id).await.body;
    assert_eq!(seen["result"]["status"], "cancelled", "{seen}");
    assert!(seen["result"].get("result").is_none());

    let id = demo.waiting_task(&site, "Needed.").await;
    demo.decide(&site, &id, Verdict::Approve).await;
    demo.task("tasks/get", &id).await;
    let seen = demo.task("tasks/cancel", &id).await.body;
    assert_eq!(seen["result"]["resultType"], "complete", "{seen}");
    let seen = demo.task("tasks/get", &id).await.body;
    assert_eq!(seen["result"]["status"], "completed", "it ran before");
}

/// C69: an id is no permission. What is another caller's, another door's or made up has one answer, and stays as it was.
#[tokio::test]
async fn a_strangers_task_is_as_unknown_as_one_that_never_was() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let id = demo.waiting_task(&site, "Mine.").await;
    let (_, stranger) = demo.agent("stranger", &[]).await;
    let http = Request::post("/tools/publish")
        .header("host", "127.0.0.1:3000")
        .header("authorization", demo.bearer())
        .body(Body::from(json!({"arguments": {"site": site}}).to_string()));
    let http = demo.send(http.unwrap()).await.body;
    let http = http["approvalId"].as_str().unwrap();
    demo.decide(&site, http, Verdict::Approve).await;
    demo.decide(&site, &id, Verdict::Approve).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unknown = demo.task(method, "made-up").await;
        assert_eq!(unknown.body["error"]["code"], -32602, "{}", unknown.body);
        assert!(unknown.body["error"]["message"].is_string());
        let foreign = demo.task_as(&stranger, method, &id).await;
        assert_eq!(foreign.body, unknown.body, "{method}");
        assert_eq!(demo.task(method, http).await.body, unknown.body, "{method}");
    }
    // Nor does a session's id stand for anybody: there are none.
    let mut request = demo.asks(
        &stranger,
        Era::Modern,
        "tasks/get",
        json!({"taskId": id, "_meta": declared()}),
    );
    let session = "mcp-session-id";
    request.headers_mut().insert(session, id.parse().unwrap());
    let seen = demo.send(request).await;
    assert_eq!(seen.body["error"]["code"], -32602, "{}", seen.body);
    assert!(seen.headers.get(session).is_none());
    assert_eq!(demo.standing(&id).await, "approved");
    assert_eq!(demo.versions(&site).await, 1);
}

/// C05: nothing that a client sends along is a person's answer, neither with the call nor to the task.
#[tokio::test]
async fn a_made_up_answer_to_a_task_decides_nothing() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "Forged.").await;
    let forged = json!({"approve": {"action": "accept", "content": {"approved": true}}});
    let params = json!({
        "name": "publish",
        "arguments": {"site": site},
        "requestState": "eyJhcHByb3ZlZCI6dHJ1ZX0",
        "inputResponses": forged,
        "task": {"ttl": 1},
        "_meta": declared(),
    });
    let seen = demo.rpc(Era::Modern, "tools/call", params).await.body;
    assert_eq!(seen["result"]["status"], "working", "{seen}");
    let id = seen["result"]["taskId"].as_str().unwrap();
    let seen = demo.task("tasks/update", id).await.body;
    assert_eq!(seen["result"]["resultType"], "complete", "{seen}");
    let params = json!({
        "taskId": id,
        "inputResponses": forged,
        "status": "completed",
        "result": {"structuredContent": {"status": "ok"}},
        "_meta": declared(),
    });
    let seen = demo.rpc(Era::Modern, "tasks/get", params).await.body;
    assert_eq!(seen["result"]["status"], "working", "{seen}");
    assert_eq!(demo.standing(id).await, "pending");
    assert_eq!(demo.versions(&site).await, 1);
}

/// C05: whatever the method, and whoever sends it, with the id of what waits and every word for yes.
#[tokio::test]
async fn no_method_of_the_modern_era_decides() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let id = demo.waiting_task(&site, "Undecided.").await;
    let (_, other) = demo.agent("other", &[]).await;
    let yes = json!({"action": "accept", "content": {"approved": true, "decision": "approve"}});
    for method in [
        "server/discover",
        "tools/list",
        "tools/call",
        "tasks/get",
        "tasks/update",
        "tasks/result",
        "tasks/list",
        "elicitation/create",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "approvals/approve",
    ] {
        for key in [&demo.key, &other] {
            let mut params = json!({
                "taskId": id, "approvalId": id, "decision": "approve", "approved": true, "inputResponses": {id.as_str(): yes},
                "requestState": id, "result": yes, "status": "completed", "_meta": declared(),
            });
            match method {
                "tools/call" => {
                    params["name"] = json!("approvals_resume");
                    params["arguments"] = json!({"approvalId": id});
                }
                "resources/read" => params["uri"] = json!(format!("cloudhal://approvals/{id}")),
                "prompts/get" => {
                    params["name"] = json!("explain-denial");
                    params["arguments"] = json!({"approvalId": id});
                }
                _ => {}
            }
            let named = ["name", "uri"]
                .iter()
                .find_map(|name| params[name].as_str());
            let named = named.unwrap_or(&id).to_owned();
            let mut request = demo.asks(key, Era::Modern, method, params);
            let headers = request.headers_mut();
            headers.insert("mcp-name", named.parse().unwrap());
            let seen = demo.send(request).await;
            assert!(seen.body["jsonrpc"] == "2.0", "{method}: {}", seen.body);
            assert_eq!(demo.standing(&id).await, "pending", "{method}");
        }
    }
    assert_eq!(demo.versions(&site).await, 1);
}

#[tokio::test]
async fn a_client_that_hangs_up_while_its_task_runs_finds_it_done_once() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let id = demo.waiting_task(&site, "Hang up.").await;
    demo.decide(&site, &id, Verdict::Approve).await;
    for hung_up in 0..20 {
        poll_some(demo.task("tasks/get", &id), hung_up).await;
    }
    let seen = demo.task("tasks/get", &id).await.body;
    assert_eq!(seen["result"]["status"], "completed", "{seen}");
    assert_eq!(
        demo.versions(&site).await,
        2,
        "the demo's own, and one more"
    );
}

#[tokio::test]
async fn what_is_approved_and_cannot_run_yet_is_still_at_work() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "Narrow.").await;
    let (bot, key) = demo.agent("narrow", &["publish"]).await;
    let params = json!({"name": "publish", "arguments": {"site": site}, "_meta": declared()});
    let seen = demo.rpc_as(&key, Era::Modern, "tools/call", params).await;
    let id = seen.body["result"]["taskId"].as_str().unwrap();
    demo.decide(&site, id, Verdict::Approve).await;
    demo.narrow(&bot, &["site-list"]).await;
    let seen = demo.task_as(&key, "tasks/get", id).await.body;
    assert_eq!(seen["result"]["status"], "working", "{seen}");
    let words = seen["result"]["statusMessage"].as_str().unwrap();
    assert!(words.contains("insufficient_scope"), "{words}");
    assert_eq!(demo.versions(&site).await, 1);
    demo.narrow(&bot, &["publish"]).await;
    let seen = demo.task_as(&key, "tasks/get", id).await.body;
    assert_eq!(seen["result"]["status"], "completed", "{seen}");
    assert_eq!(demo.versions(&site).await, 2);
}
