//! What went wrong for others between an agent and a gate, tried here at the agents' doors. The ids are those of [`crate::cases`].

use crate::support::*;
use reqwest::Method;
use std::collections::{BTreeMap, BTreeSet};

struct Scene {
    server: TestServer,
    bot: AgentClient,
    ada: PersonClient,
}

impl Scene {
    async fn set() -> Self {
        let server = TestServer::start().await;
        let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
        Self { server, bot, ada }
    }

    fn publish(&self) -> Value {
        json!({"site": self.server.site})
    }

    async fn versions(&self) -> i64 {
        let sql = "select count(*) from versions";
        self.server.database.number(sql).await
    }

    /// Deletes the node `slug`, as arguments.
    async fn deletion(&self, slug: &str) -> Value {
        json!({"site": self.server.site, "node": self.bot.node(&self.server.site, slug).await})
    }

    /// Ada lets draft tools wait on the site.
    async fn gate_drafts(&self) {
        let policy = json!({"extraGatedTools": ["node-create", "node-move", "node-update"]});
        self.set_policy(policy).await;
    }

    /// What equals 1 is the same call, and what only looks like it is none.
    async fn numbers_in_other_spellings(&self) {
        let (server, bot) = (&self.server, &self.bot);
        for text in ["One.", "Two."] {
            bot.edit(&server.site, "visit", text).await;
            let id = bot.ask("publish", self.publish()).await;
            self.ada.approve(&server.site, &id).await;
            bot.call_with(&id, "publish", self.publish()).await.data();
        }
        let to = |version: &str| {
            let site = &server.site;
            let body = format!(r#"{{"arguments":{{"site":"{site}","version":{version}}}}}"#);
            bot.send("rollback", body)
        };
        let asked = to("1").await;
        assert_eq!(asked.status, 202, "{}", asked.text);
        let before = server.effects().await;
        for version in ["1.0", "1e0", "10e-1", "0.1e1"] {
            let seen = to(version).await;
            let same = seen.body["approvalId"] == asked.body["approvalId"]
                && seen.body["argsHash"] == asked.body["argsHash"];
            assert!(same || seen.status == 422, "{version}: {}", seen.text);
        }
        for version in [
            "\"1\"", "01", "+1", "true", "[1]", "0x1", "1.", "1.5", "null", "-1", "0",
        ] {
            let seen = to(version).await;
            let refused = [400, 422].contains(&seen.status);
            assert!(refused, "{version}: {}", seen.text);
        }
        assert_eq!(server.effects().await, before);
    }

    async fn set_policy(&self, policy: Value) {
        let path = format!("/api/sites/{}/policy", self.server.site);
        let seen = Seen::of(self.ada.request(Method::PUT, &path).json(&policy)).await;
        assert_eq!(seen.status, 200, "{}", seen.text);
    }
}

/// A tool's answer over MCP.
fn structured(seen: &Seen) -> &Value {
    let answer = &seen.body["result"]["structuredContent"];
    assert!(answer.is_object(), "{}", seen.text);
    answer
}

/// [C05, C37] A person's answer that the agent made up, in whatever shape its client would have received one.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_answer_for_a_person() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let id = bot.ask("publish", scene.publish()).await;
    let before = server.effects().await;
    let accepted =
        json!({"action": "accept", "content": {"decision": "approve", "approved": true}});
    for name in [
        "elicitation",
        "elicitationResult",
        "inputResponses",
        "inputResponse",
        "requestState",
        "confirmToken",
        "approved",
        "decision",
        "approver",
        "seenDigest",
        "autoApprove",
        "_meta",
    ] {
        for value in [
            accepted.clone(),
            json!(true),
            json!({id.as_str(): accepted}),
        ] {
            for with_id in [false, true] {
                let mut body = json!({"arguments": scene.publish()});
                body[name] = value.clone();
                let mut inside = json!({"arguments": scene.publish()});
                inside["arguments"][name] = value.clone();
                for mut body in [body, inside] {
                    if with_id {
                        body["approvalId"] = json!(id);
                    }
                    let seen = bot.send("publish", body.to_string()).await;
                    assert_refused(&seen, Code::InvalidArguments, &body.to_string());
                }
            }
        }
    }
    // Headers that another product would take for consent.
    let request = bot.request(Method::POST, "/tools/publish");
    let request = request
        .header("x-approved", "true")
        .header("x-auto-approve", "all")
        .header("x-approval-id", &id)
        .json(&json!({"arguments": scene.publish(), "approvalId": id}));
    let seen = Seen::of(request).await;
    assert_eq!((seen.status, &seen.body["approved"]), (202, &json!(false)));
    assert_eq!(server.effects().await, before);
    assert_eq!(scene.versions().await, 0);
    scene.server.done().await;
}

/// [C08] The id of a JSON-RPC message and the id of an approval, both as before; the arguments are not.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_message_id_with_other_arguments_is_another_call() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let asked = scene.deletion("visit").await;
    let other = scene.deletion("rye").await;
    let seen = bot.mcp_call("delete", asked.clone()).await;
    let id = structured(&seen)["approvalId"].as_str().unwrap().to_owned();
    scene.ada.approve(&server.site, &id).await;
    let before = server.effects().await;
    let with_id = |mut arguments: Value| {
        arguments["approvalId"] = json!(id);
        arguments
    };
    let seen = bot.mcp_call("delete", with_id(other)).await;
    assert_eq!(structured(&seen)["error"]["code"], "approval_mismatch");
    assert_eq!(seen.body["result"]["isError"], true);
    assert_eq!(server.effects().await, before);
    let ran = bot.mcp_call("delete", with_id(asked)).await;
    assert_eq!(structured(&ran)["status"], "ok", "{}", ran.text);
    scene.server.done().await;
}

/// [C11] However the answer is wanted and the body is packed, a gated call waits; several in one body are refused.
#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_send_a_gated_call_suspends() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let body = json!({"arguments": scene.publish()});
    for (name, value) in [
        ("accept", "application/json"),
        ("accept", "text/event-stream"),
        ("accept", "application/json;q=0, text/event-stream"),
        ("accept", "*/*"),
        ("accept", ""),
        ("prefer", "respond-async"),
        ("expect", "100-continue"),
        ("mcp-session-id", "a"),
        ("mcp-protocol-version", "2026-07-28"),
        ("idempotency-key", "a"),
        ("content-type", "application/json-seq"),
    ] {
        let request = bot.request(Method::POST, "/tools/publish");
        let request = request.header(name, value).body(body.to_string());
        let seen = Seen::of(request).await;
        let got = (seen.status, seen.code());
        assert_eq!(got, (202, "approval_pending"), "{name}: {value}");
    }
    let before = server.effects().await;
    for many in [
        json!([body]),
        json!([body, body]),
        json!([[body]]),
        json!({"calls": [body]}),
    ] {
        let seen = bot.send("publish", many.to_string()).await;
        assert_refused(&seen, Code::InvalidArguments, &many.to_string());
    }
    for lines in [format!("{body}\n{body}"), format!("\u{1e}{body}\n")] {
        let seen = bot.send("publish", lines.clone()).await;
        assert_refused(&seen, Code::Malformed, &lines);
    }
    assert_eq!(server.effects().await, before);
    assert_eq!(before.1, 1, "and all of them were one request");
    assert_eq!(scene.versions().await, 0);
    scene.server.done().await;
}

/// [C14] Every tool that is listed, and every name that somebody would guess: what is gated waits, and the rest is unknown.
#[tokio::test(flavor = "multi_thread")]
async fn every_tool_that_is_listed_or_guessed() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let id = bot.ask("publish", scene.publish()).await;
    scene.ada.approve(&server.site, &id).await;
    bot.call_with(&id, "publish", scene.publish()).await.data();
    bot.edit(&server.site, "visit", "New.").await;
    let node = bot.node(&server.site, "rye").await;
    let fill = |tool: &Value, at: usize| {
        let value = |name: &str| match name {
            "site" => json!(server.site),
            "node" => json!(node),
            "approvalId" => json!(id),
            "title" | "query" => json!("x"),
            "slug" => json!(format!("x-{at}")),
            "version" => json!(1),
            other => panic!("say here what {other} is, for {}", tool["id"]),
        };
        let needed = tool["inputSchema"]["required"].as_array();
        let needed = needed
            .into_iter()
            .flatten()
            .map(|name| name.as_str().unwrap());
        Value::Object(needed.map(|name| (name.to_owned(), value(name))).collect())
    };
    let live = "select slug || coalesce(cast(live_version as text), '') || cast(coalesce(deleted_at, 0) as text) from sites";
    let live = async || (server.database.texts(live).await, scene.versions().await);
    let before = live().await;
    let mut gated = BTreeSet::new();
    let listed = bot.get("/tools").await.body["tools"].clone();
    for (at, tool) in listed.as_array().unwrap().iter().enumerate() {
        let name = tool["id"].as_str().unwrap();
        let mut arguments = fill(tool, at);
        if name == "rollback" {
            // To what is live already there is nothing to ask.
            let other = bot.ask("publish", scene.publish()).await;
            scene.ada.approve(&server.site, &other).await;
            bot.call_with(&other, "publish", scene.publish())
                .await
                .data();
            arguments["version"] = json!(1);
        }
        let before = live().await;
        let seen = bot.call(name, arguments).await;
        match tool["effect"].as_str().unwrap() {
            "gated" => {
                assert_eq!(
                    (seen.status, seen.code()),
                    (202, "approval_pending"),
                    "{name}"
                );
                gated.insert(name.to_owned());
            }
            _ => assert_ne!(seen.status, 202, "{name}: {}", seen.text),
        }
        assert_eq!(live().await, before, "{name} changed what is live");
    }
    assert_eq!(
        gated,
        ["delete", "publish", "rollback"].map(str::to_owned).into()
    );
    drop(before);
    let before = (live().await, server.effects().await);
    for name in GUESSES {
        let escaped: String = url::form_urlencoded::byte_serialize(name.as_bytes())
            .collect::<String>()
            .replace('+', "%20");
        let seen = bot.call(&escaped, scene.publish()).await;
        assert_refused(&seen, Code::UnknownTool, name);
        let seen = bot.mcp_call(name, scene.publish()).await;
        let refused = !seen.body["error"].is_null() || seen.body["result"]["isError"] == true;
        assert!(
            refused && !seen.text.contains("approval_pending"),
            "{name}: {}",
            seen.text
        );
    }
    assert_eq!((live().await, server.effects().await), before);
    scene.server.done().await;
}

const GUESSES: [&str; 26] = [
    "site_publish",
    "site-publish",
    "publish ",
    " publish",
    "PUBLISH",
    "Publish",
    "publish\n",
    "publish\u{200b}",
    "publ\u{456}sh",
    "publish.v1",
    "publish_all",
    "bulk-publish",
    "publish,rollback",
    "roll-back",
    "rollback ",
    "delete_site",
    "delete-node",
    "remove",
    "unpublish",
    "invoice-issue",
    "approve",
    "approvals-approve",
    "approvals-decide",
    "approvals-deny",
    "update-collection-status",
    "tools/publish",
];

/// [C19] One operation in four spellings is one request, and an odd spelling is none.
#[tokio::test(flavor = "multi_thread")]
async fn one_operation_written_four_ways_is_one_request() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let arguments = scene.deletion("visit").await;
    let (site, node) = (
        arguments["site"].as_str().unwrap(),
        arguments["node"].as_str().unwrap(),
    );
    let coded: String = node
        .chars()
        .map(|c| format!("\\u{:04x}", c as u32))
        .collect();
    let spellings = [
        format!(r#"{{"arguments":{{"site":"{site}","node":"{node}"}}}}"#),
        format!(r#"{{"arguments":{{"node":"{node}","site":"{site}"}}}}"#),
        format!(
            "\n{{ \"arguments\"\t:\r\n {{ \"node\" : \"{node}\" , \"site\" : \"{site}\" }} }} "
        ),
        format!(r#"{{"\u0061rguments":{{"s\u0069te":"{site}","node":"{coded}"}}}}"#),
    ];
    let mut asked = BTreeSet::new();
    for body in &spellings {
        let seen = bot.send("delete", body.clone()).await;
        assert_eq!(seen.status, 202, "{body}: {}", seen.text);
        let text = |name: &str| seen.body[name].as_str().unwrap().to_owned();
        assert_eq!(seen.body["arguments"], arguments);
        asked.insert((text("approvalId"), text("argsHash")));
    }
    assert_eq!(asked.len(), 1, "{asked:?}");
    // What may be left out, and its default: the same again.
    let whole = bot.ask("delete", scene.publish()).await;
    let null = json!({"site": site, "node": null});
    assert_eq!(bot.ask("delete", null).await, whole);
    let before = server.effects().await;
    for odd in [
        json!({"site": site, "node": [node]}),
        json!({"site": site, "node": {"id": node}}),
        json!({"site": site, "node": 7}),
        json!({"site": site, "node": false}),
        json!({"site": site, "Node": node}),
        json!({"site": site, "node_id": node}),
    ] {
        let seen = bot.call("delete", odd.clone()).await;
        assert_refused(&seen, Code::InvalidArguments, &odd.to_string());
    }
    assert_eq!(server.effects().await, before);
    scene.numbers_in_other_spellings().await;
    scene.server.done().await;
}

/// [C18] What is left out, padded or in another case: page, hash and effect agree on one value, the one that is stored.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_is_what_is_hashed_and_what_runs() {
    let scene = Scene::set().await;
    scene.gate_drafts().await;
    let (server, bot, ada) = (&scene.server, &scene.bot, &scene.ada);
    let title = "  Opening  hours ";
    for slug in ["Hours", " hours", "hours ", "HOURS"] {
        let padded = json!({"site": server.site, "title": title, "slug": slug});
        let seen = bot.call("node-create", padded).await;
        assert_refused(&seen, Code::InvalidArguments, slug);
    }
    let sent = json!({"site": server.site, "title": title, "slug": "hours"});
    let id = bot.ask("node-create", sent.clone()).await;
    let record = ada.record(&server.site, &id).await;
    let stored = &record["arguments"];
    assert_eq!(
        (&stored["title"], &stored["kind"]),
        (&json!(title), &json!("page"))
    );
    let hashed = cloudhal_domain::digest::of_arguments(stored);
    assert_eq!(record["argsHash"], json!(hashed));
    let page = plain(&ada.get(&format!("/approvals/{id}")).await.text);
    let text = cloudhal_domain::canonical::text(stored);
    assert!(page.contains(&text), "{text} is not on the page");
    // With every default written out it is the same call.
    assert_eq!(bot.ask("node-create", stored.clone()).await, id);
    ada.approve(&server.site, &id).await;
    let made = bot.call_with(&id, "node-create", sent).await.data();
    assert_eq!(
        (&made["title"], &made["kind"]),
        (&json!(title), &json!("page"))
    );
    let which = json!({"site": server.site, "node": made["id"]});
    let node = bot.ok("node-get", which).await;
    assert_eq!(
        (&node["title"], &node["slug"], &node["body"]),
        (&json!(title), &json!("hours"), &json!(""))
    );
    scene.server.done().await;
}

/// The text of a page, with what HTML escapes put back.
pub fn plain(html: &str) -> String {
    html.replace("<!>", "")
        .replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// [C20] What surrounds a call does not bind it: headers, tokens, the order of keys, white space.
#[tokio::test(flavor = "multi_thread")]
async fn what_surrounds_a_call_does_not_bind_it() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let arguments = scene.deletion("visit").await;
    let request = |headers: [(&'static str, &'static str); 4], body: String| {
        let request = bot.request(Method::POST, "/tools/delete");
        let request = headers.into_iter().fold(request, |request, (name, value)| {
            request.header(name, value)
        });
        Seen::of(request.body(body))
    };
    let first = [
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        ("x-request-id", "one"),
        ("user-agent", "one/1.0"),
        ("idempotency-key", "one"),
    ];
    let second = [
        (
            "traceparent",
            "00-ffffffffffffffffffffffffffffffff-00f067aa0ba902b7-00",
        ),
        ("x-request-id", "two"),
        ("user-agent", "two/2.0"),
        ("idempotency-key", "two"),
    ];
    let seen = request(first, json!({"arguments": arguments}).to_string()).await;
    let id = seen.body["approvalId"].as_str().unwrap().to_owned();
    scene.ada.approve(&server.site, &id).await;
    let turned = format!(
        " {{\n \"approvalId\" : \"{id}\",\n \"arguments\" : {{ \"node\" : {} , \"site\" : {} }} }}\r\n",
        arguments["node"], arguments["site"]
    );
    let ran = request(second, turned).await;
    assert_eq!((ran.status, ran.code()), (200, "ok"), "{}", ran.text);

    // Over MCP: other `_meta`, another progress token, another message id.
    let call = |message: Value, meta: Value, approval: Option<&str>| {
        let mut arguments = scene.publish();
        if let Some(id) = approval {
            arguments["approvalId"] = json!(id);
        }
        let body = json!({
            "jsonrpc": "2.0", "id": message, "method": "tools/call",
            "params": {"_meta": meta, "name": "publish", "arguments": arguments},
        });
        bot.mcp(body.to_string())
    };
    let asked = call(json!(1), json!({"progressToken": "a"}), None).await;
    let id = structured(&asked)["approvalId"]
        .as_str()
        .unwrap()
        .to_owned();
    let again = call(
        json!("two"),
        json!({"traceparent": "x", "vendor.example/run": 7}),
        None,
    )
    .await;
    assert_eq!(structured(&again)["approvalId"], json!(id));
    scene.ada.approve(&server.site, &id).await;
    let ran = call(
        json!(3),
        json!({"progressToken": 99, "approved": false}),
        Some(&id),
    )
    .await;
    assert_eq!(structured(&ran)["status"], "ok", "{}", ran.text);
    scene.server.done().await;
}

/// [C26] Whoever the caller says they are: who is recorded comes from the key and from the session alone.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_who_they_say_they_are() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    server.as_member("bea", Role::Approver).await;
    let names = [
        "x-forwarded-user",
        "x-user",
        "x-remote-user",
        "x-forwarded-email",
        "x-auth-request-email",
        "x-agent-id",
    ];
    let claiming = |request: reqwest::RequestBuilder| {
        let claim = |request: reqwest::RequestBuilder, name: &&str| {
            request.header(*name, "bea@example.com")
        };
        names.iter().fold(request, claim)
    };
    for name in [
        "actor",
        "approver",
        "userId",
        "agent_id",
        "agentId",
        "requestedBy",
        "callerId",
    ] {
        for body in [
            json!({"arguments": scene.publish(), name: "bea"}),
            json!({"arguments": {"site": server.site, name: "bea"}}),
        ] {
            let request = bot.request(Method::POST, "/tools/publish").json(&body);
            let seen = Seen::of(claiming(request)).await;
            assert_refused(&seen, Code::InvalidArguments, &body.to_string());
        }
    }
    let request = bot.request(Method::POST, "/tools/publish");
    let seen = Seen::of(claiming(
        request.json(&json!({"arguments": scene.publish()})),
    ))
    .await;
    let id = seen.body["approvalId"].as_str().unwrap().to_owned();
    let record = scene.ada.record(&server.site, &id).await;
    assert_eq!(
        (
            &record["requestedBy"]["kind"],
            &record["requestedBy"]["name"]
        ),
        (&json!("agent"), &json!("bot"))
    );
    // Deciding: the session's person decides, whatever stands in the body.
    let path = format!("/api/sites/{}/approvals/{id}/approve", server.site);
    let body = json!({
        "seenDigest": record["seenDigest"], "actor": "bea", "approver": "bea", "userId": "bea", "by": {"name": "bea"},
        "via": "client_elicitation",
    });
    let nobody = PersonClient::new(server);
    let seen = Seen::of(claiming(nobody.request(Method::POST, &path)).json(&body)).await;
    assert_refused(&seen, Code::Unauthorized, "no session, many names");
    let seen = Seen::of(claiming(scene.ada.request(Method::POST, &path)).json(&body)).await;
    if seen.status != 200 {
        assert_refused(&seen, Code::InvalidArguments, "refused, then");
        scene.ada.approve(&server.site, &id).await;
    }
    let decision = &scene.ada.record(&server.site, &id).await["decisions"][0];
    assert_eq!(
        (&decision["by"]["name"], &decision["via"]),
        (&json!("ada"), &json!("session"))
    );
    scene.server.done().await;
}

/// [C51] A hundred polls that nobody waited for are no decision.
#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_was_left_is_no_denial() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let id = bot.ask("publish", scene.publish()).await;
    let before = (server.effects().await, server.journal().await.len());
    for at in 0..100 {
        let body = json!({"arguments": {"approvalId": id, "waitSeconds": 45}}).to_string();
        let poll = Raw::new("POST", "/tools/approvals-get")
            .header("host", server.host())
            .header("authorization", &format!("Bearer {}", bot.key))
            .body(body);
        // Some are gone before they were read, some while they wait.
        poll.send_and_leave(server, at % 10).await;
    }
    let still = bot.ok("approvals-get", json!({"approvalId": id})).await;
    assert_eq!(still["status"], "pending");
    assert_eq!(
        (server.effects().await, server.journal().await.len()),
        before
    );
    scene.ada.approve(&server.site, &id).await;
    let ran = bot.call_with(&id, "publish", scene.publish()).await;
    assert_eq!(ran.code(), "ok", "{}", ran.text);
    scene.server.done().await;
}

/// [C52] Waiting, late, overtaken, refused and withdrawn: five answers that nobody can mix up, each saying that nothing ran.
#[tokio::test(flavor = "multi_thread")]
async fn each_way_not_to_run_says_so_in_its_own_words() {
    let scene = Scene::set().await;
    let (server, bot, ada) = (&scene.server, &scene.bot, &scene.ada);
    let mut said: BTreeMap<(bool, String), String> = BTreeMap::new();
    for mcp in [false, true] {
        for how in ["pending", "denied", "voided", "cancelled", "expired"] {
            let id = match mcp {
                false => bot.ask("publish", scene.publish()).await,
                true => {
                    let seen = bot.mcp_call("publish", scene.publish()).await;
                    structured(&seen)["approvalId"].as_str().unwrap().to_owned()
                }
            };
            match how {
                "denied" => ada.deny(&server.site, &id).await,
                "voided" => {
                    bot.edit(&server.site, "visit", &format!("{mcp} {how}"))
                        .await;
                }
                "cancelled" => {
                    let which = json!({"approvalId": id});
                    match mcp {
                        false => drop(bot.ok("approvals-cancel", which).await),
                        true => drop(bot.mcp_call("approvals_cancel", which).await),
                    }
                }
                "expired" => server.advance(25 * HOUR),
                _ => {}
            }
            let (answer, is_error) = match mcp {
                false => {
                    let seen = bot.call_with(&id, "publish", scene.publish()).await;
                    (seen.body.clone(), seen.status >= 400)
                }
                true => {
                    let arguments = json!({"site": server.site, "approvalId": id});
                    let seen = bot.mcp_call("publish", arguments).await;
                    let is_error = seen.body["result"]["isError"] == true;
                    (structured(&seen).clone(), is_error)
                }
            };
            assert_eq!(is_error, how != "pending", "{how}: {answer}");
            let (code, message) = match how {
                "pending" => (&answer["status"], &answer["message"]),
                _ => (&answer["error"]["code"], &answer["error"]["message"]),
            };
            assert_eq!(code, &json!(format!("approval_{how}")));
            let message = message.as_str().unwrap();
            assert!(message.starts_with("Not executed"), "{how}: {message}");
            let other = said.insert((mcp, code.to_string()), message.to_owned());
            assert_eq!(other, None);
        }
    }
    let words: BTreeSet<&String> = said
        .iter()
        .filter(|((mcp, _), _)| !mcp)
        .map(|(_, message)| message)
        .collect();
    assert_eq!(words.len(), 5, "{words:?}");
    assert_eq!(scene.versions().await, 0);
    scene.server.done().await;
}

/// [C65] The asker hangs up as soon as it has sent its call, before or after the approval was spent: it runs once.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_left_runs_once_or_not_yet() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    for at in 0..20 {
        bot.edit(&server.site, "visit", &format!("Text {at}."))
            .await;
        let id = bot.ask("publish", scene.publish()).await;
        scene.ada.approve(&server.site, &id).await;
        let body = json!({"arguments": scene.publish(), "approvalId": id}).to_string();
        let call = Raw::new("POST", "/tools/publish")
            .header("host", server.host())
            .header("authorization", &format!("Bearer {}", bot.key))
            .body(body);
        call.send_and_leave(server, at).await;
        let seen = bot.call_with(&id, "publish", scene.publish()).await;
        assert_eq!(seen.code(), "ok", "{}", seen.text);
        assert_eq!(scene.versions().await, at as i64 + 1);
    }
    scene.server.done().await;
}

/// [C66] What no parser takes ends nothing: on the same connection the next call works.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_call_does_not_end_the_connection() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let good = json!({"arguments": {"site": server.site}}).to_string();
    let mut with_bom = "\u{feff}".as_bytes().to_vec();
    with_bom.extend_from_slice(good.as_bytes());
    let bad: [(&str, Vec<u8>); 4] = [
        ("bad JSON", b"{\"arguments\":{\"site\":}}".to_vec()),
        ("a byte order mark", with_bom),
        (
            "invalid UTF-8",
            b"{\"arguments\":{\"site\":\"\xff\xfe\"}}".to_vec(),
        ),
        ("an empty body", Vec::new()),
    ];
    for (what, body) in bad {
        let bodies = vec![body, good.clone().into_bytes()];
        let answers = Raw::pipelined(server, "/tools/site-get", &bot.key, &bodies).await;
        let [refused, served] = answers.as_slice() else {
            panic!("{what}: {} answers", answers.len())
        };
        assert_refused(refused, Code::Malformed, what);
        assert_eq!(served.code(), "ok", "after {what}: {}", served.text);
    }
    // A line without an end is not read to it.
    let seen = Raw::new("POST", "/tools/site-get")
        .header("host", server.host())
        .header("authorization", &format!("Bearer {}", bot.key))
        .send_endlessly(server, &[b'x'; 65_536])
        .await;
    assert_refused(&seen, Code::PayloadTooLarge, "no end");
    bot.ok("site-get", scene.publish()).await;
    scene.server.done().await;
}

/// [C68] Thirty-two clients, each with a key and a site of its own, two hundred calls each: no answer reaches another one.
#[tokio::test(flavor = "multi_thread")]
async fn answers_do_not_cross_over() {
    const CLIENTS: usize = 32;
    const CALLS: usize = 200;
    let server = TestServer::start().await;
    let ada = server.account("ada").await;
    let mut clients = Vec::new();
    for at in 0..CLIENTS {
        let site = server.add_site(&format!("site-{at}"), &ada).await;
        let name = format!("bot-{at}");
        let bot = server.agent_for(&name, "ada", &[&site], &[]).await;
        clients.push((bot, site));
    }
    let runs = clients.into_iter().enumerate().map(|(at, (bot, site))| {
        tokio::spawn(async move {
            for call in 0..CALLS {
                let tag = format!("tag-{at}-{call}");
                let seen = match call % 3 {
                    0 => bot.ok("site-get", json!({"site": site})).await,
                    1 => {
                        // A refusal names the argument that it did not know.
                        let unknown = json!({"site": site, tag.as_str(): 1});
                        let seen = bot.call("site-get", unknown).await;
                        assert_refused(&seen, Code::InvalidArguments, &tag);
                        let named = format!("'{tag}'");
                        assert!(seen.text.contains(&named), "{tag}: {}", seen.text);
                        continue;
                    }
                    _ => {
                        let params = json!({"name": "site_get", "arguments": {"site": site}});
                        let message = json!({"jsonrpc": "2.0", "id": tag, "method": "tools/call", "params": params});
                        let mut seen = bot.mcp(message.to_string()).await.body;
                        assert_eq!(seen["id"], json!(tag));
                        seen["result"]["structuredContent"]["data"].take()
                    }
                };
                assert_eq!(
                    (&seen["id"], &seen["slug"]),
                    (&json!(site), &json!(format!("site-{at}")))
                );
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
    server.done().await;
}

/// [C80] A key that stands twice, at any depth, plainly or escaped: refused at both doors, and nothing is filed or changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_stands_twice_at_any_depth() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let node = bot.node(&server.site, "visit").await;
    let before = server.effects().await;
    for depth in [0, 1, 2, 3, 5, 8, 13, 21] {
        for twin in ["k", "\\u006b", "\\u006B"] {
            for in_list in [false, true] {
                let (open, close) = if in_list {
                    ("[{\"n\":", "}]")
                } else {
                    ("{\"n\":", "}")
                };
                let depth = if in_list { depth / 2 } else { depth };
                let twice = format!(
                    "{}{{\"k\":1,\"{twin}\":1}}{}",
                    open.repeat(depth),
                    close.repeat(depth)
                );
                let arguments = format!(
                    r#"{{"site":"{}","node":"{node}","fields":{{"f":{twice}}}}}"#,
                    server.site
                );
                let seen = bot
                    .send("node-update", format!(r#"{{"arguments":{arguments}}}"#))
                    .await;
                assert_refused(&seen, Code::InvalidArguments, &twice);
                let message = format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"node_update","arguments":{arguments}}}}}"#
                );
                let seen = bot.mcp(message).await;
                let refused =
                    seen.body["error"]["code"] == -32602 || seen.text.contains("invalid_arguments");
                assert!(refused, "{twice}: {}", seen.text);
            }
        }
    }
    assert_eq!(server.effects().await, before);
    scene.server.done().await;
}
