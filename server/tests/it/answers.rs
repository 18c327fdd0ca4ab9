//! Every code of the contract that these doors can say, with its status, and what the answer tells whoever has to act on it.

use crate::support::*;
use std::collections::BTreeSet;

/// Codes that no request of today can bring about, and why.
const NOT_REACHED: [(Code, &str); 3] = [
    (
        Code::ApprovalUnknownOutcome,
        "no effect leaves the database yet",
    ),
    (
        Code::RateLimited,
        "only the sign-in form counts tries, and a form answers with a notice",
    ),
    (Code::Internal, "our own faults"),
];

/// The answer to an agent's question, checked for its code and kept as seen.
struct Reached(BTreeSet<&'static str>);

impl Reached {
    #[track_caller]
    fn check(&mut self, seen: Seen, code: Code, about: &str) -> Seen {
        assert_refused(&seen, code, about);
        self.0.insert(code.as_str());
        seen
    }
}

/// [C87] among them: a denial with its reason, framed as data.
#[tokio::test(flavor = "multi_thread")]
async fn each_code_is_said_where_the_contract_says() {
    let mut reached = Reached(BTreeSet::new());
    of_approvals(&mut reached).await;
    of_calls(&mut reached).await;
    of_deciding(&mut reached).await;
    of_doors(&mut reached).await;
    let expect = |code: &&Code| !NOT_REACHED.iter().any(|(left_out, _)| left_out == *code);
    // Said by notices on pages, in `sign_in`.
    reached.0.insert(Code::SignInFailed.as_str());
    let all: BTreeSet<&str> = Code::ALL
        .iter()
        .filter(expect)
        .map(|c| c.as_str())
        .collect();
    assert_eq!(reached.0, all);
}

async fn of_approvals(reached: &mut Reached) {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let (site, publish) = (&server.site, json!({"site": server.site}));

    let id = bot.ask("publish", publish.clone()).await;
    let digest = ada.record(site, &id).await["seenDigest"].clone();
    let reason = "Not before the fair. Approve it and call again.";
    let path = format!("/api/sites/{site}/approvals/{id}/deny");
    let denied = ada
        .post_json(&path, json!({"seenDigest": digest, "reason": reason}))
        .await;
    assert_eq!(denied.status, 200, "{}", denied.text);
    for _ in 0..2 {
        let seen = bot.call_with(&id, "publish", publish.clone()).await;
        let seen = reached.check(seen, Code::ApprovalDenied, "[C12]");
        assert_eq!(seen.details()["reason"], reason, "[C87]");
        assert_eq!(seen.details()["decidedAt"], "2026-03-29T00:30:00.000Z");
        assert!(
            !seen.body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("call again"),
            "{}",
            seen.text
        );
    }

    let id = bot.ask("publish", publish.clone()).await;
    let other = bot.call_with(&id, "delete", publish.clone()).await;
    let other = reached.check(other, Code::ApprovalMismatch, "[C02] another tool");
    assert_eq!(other.details()["tool"], "publish");
    bot.ok("approvals-get", json!({"approvalId": id})).await;
    server.advance(25 * HOUR);
    let seen = bot.call_with(&id, "publish", publish.clone()).await;
    reached.check(seen, Code::ApprovalExpired, "[C79]");

    let id = bot.ask("publish", publish.clone()).await;
    ada.approve(site, &id).await;
    bot.edit(site, "visit", "Meanwhile.").await;
    let seen = bot.call_with(&id, "publish", publish.clone()).await;
    let seen = reached.check(seen, Code::ApprovalVoided, "[C59]");
    assert_eq!(seen.details()["cause"], "state_changed");
    assert!(
        seen.details()["changed"].to_string().contains("isit"),
        "{}",
        seen.text
    );

    let id = bot.ask("publish", publish.clone()).await;
    bot.ok("approvals-cancel", json!({"approvalId": id})).await;
    let seen = bot.call_with(&id, "publish", publish.clone()).await;
    reached.check(seen, Code::ApprovalCancelled, "withdrawn");

    let unknown = "a".repeat(26);
    let seen = bot.call_with(&unknown, "publish", publish.clone()).await;
    reached.check(seen, Code::ApprovalNotFound, "[C01]");
    server.done().await;
}

async fn of_calls(reached: &mut Reached) {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    let site = &server.site;

    let seen = bot.call("site-get", json!({"site": "a".repeat(26)})).await;
    reached.check(seen, Code::NotFound, "an unknown site");
    let seen = bot.call("publish%20", json!({"site": site})).await;
    reached.check(seen, Code::UnknownTool, "[C14]");
    let seen = bot.call("publish", json!({})).await;
    let seen = reached.check(seen, Code::InvalidArguments, "no site");
    assert!(
        seen.details()["faults"][0]["pointer"].is_string(),
        "{}",
        seen.text
    );

    let node = bot.node(site, "visit").await;
    let stale = json!({"site": site, "node": node, "expectedRev": 7, "title": "x"});
    let seen = reached.check(
        bot.call("node-update", stale).await,
        Code::Conflict,
        "a stale rev",
    );
    assert_eq!(seen.details()["currentRev"], 1);

    let reader = server
        .agent_for("reader", "ada", &[site], &["node-list"])
        .await;
    let seen = reader.call("publish", json!({"site": site})).await;
    reached.check(seen, Code::InsufficientScope, "[C35]");

    let mut nodes = Vec::new();
    for at in 0..11 {
        let new = json!({"site": site, "kind": "page", "title": format!("Page {at}"), "slug": format!("p{at}")});
        nodes.push(bot.ok("node-create", new).await["id"].clone());
    }
    for node in &nodes[..10] {
        bot.ask("delete", json!({"site": site, "node": node})).await;
    }
    let seen = bot
        .call("delete", json!({"site": site, "node": nodes[10]}))
        .await;
    let seen = reached.check(seen, Code::TooManyPending, "[C54]");
    assert_eq!(seen.details()["limit"], 10);
    let other = server.as_agent("other").await;
    other
        .ask("delete", json!({"site": site, "node": nodes[10]}))
        .await;
    server.done().await;
}

async fn of_deciding(reached: &mut Reached) {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let bea = server.as_member("bea", Role::Approver).await;
    let vera = server.as_member("vera", Role::Viewer).await;
    let site = &server.site;
    let id = bot.ask("publish", json!({"site": site})).await;

    let seen = vera.decide(site, &id, "approve").await;
    reached.check(seen, Code::Forbidden, "[C36]");
    let path = format!("/api/sites/{site}/approvals/{id}/approve");
    let wrong = format!("sha256:{}", "0".repeat(64));
    let bodies = [
        json!({"seenDigest": wrong}),
        json!({"seenDigest": "sha256:no"}),
        json!({"seenDigest": 7}),
        json!({"seenDigest": null}),
        json!({"seenDigest": ["sha256:"]}),
        json!({}),
        json!([]),
        json!("approve"),
    ];
    for body in bodies {
        let seen = ada.post_json(&path, body.clone()).await;
        reached.check(seen, Code::StaleView, &format!("{body}"));
    }
    ada.deny(site, &id).await;
    for verdict in ["approve", "deny"] {
        let seen = bea.decide(site, &id, verdict).await;
        let seen = reached.check(seen, Code::AlreadyDecided, "[C49] somebody was faster");
        assert_eq!(seen.details()["by"]["name"], "ada", "{}", seen.text);
        assert_eq!(seen.details()["decision"], "deny");
        assert_eq!(seen.details()["at"], "2026-03-29T00:30:00.000Z");
    }

    let id = bot.ask("publish", json!({"site": site})).await;
    bot.edit(site, "visit", "Meanwhile.").await;
    reached.check(
        ada.decide(site, &id, "approve").await,
        Code::ApprovalVoided,
        "deciding what is void",
    );
    let id = bot.ask("publish", json!({"site": site})).await;
    bot.ok("approvals-cancel", json!({"approvalId": id})).await;
    reached.check(
        ada.decide(site, &id, "approve").await,
        Code::ApprovalCancelled,
        "deciding what was withdrawn",
    );
    let id = bot.ask("publish", json!({"site": site})).await;
    server.advance(25 * HOUR);
    reached.check(
        ada.decide(site, &id, "approve").await,
        Code::ApprovalExpired,
        "deciding too late",
    );
    server.done().await;
}

async fn of_doors(reached: &mut Reached) {
    let mut server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);

    let seen = server.anonymous().get("/tools").await;
    reached.check(seen, Code::Unauthorized, "no key");
    let seen = bot.get("/api/sites").await;
    reached.check(seen, Code::AgentsNotAllowed, "a key on a people's route");
    let seen = Seen::of(ada.bare(reqwest::Method::POST, "/logout")).await;
    reached.check(seen, Code::CrossOrigin, "no Origin");
    reached.check(
        bot.send("site-list", "{").await,
        Code::Malformed,
        "half a body",
    );
    let seen = bot
        .send("site-list", " ".repeat(limits::BODY_BYTES_MAX + 1))
        .await;
    reached.check(seen, Code::PayloadTooLarge, "[C88]");
    reached.check(
        bot.get("/tools/site-list").await,
        Code::MethodNotAllowed,
        "GET on a call",
    );
    let seen = Raw::new("GET", "/tools")
        .header("host", "evil.example")
        .send(&server)
        .await;
    reached.check(seen, Code::HostNotAllowed, "[C64]");

    server.engine().store().close().await;
    for seen in [
        bot.call("site-list", json!({})).await,
        bot.get("/tools").await,
        bot.call("publish", json!({"site": server.site})).await,
    ] {
        let seen = reached.check(seen, Code::Unavailable, "no database");
        assert_eq!(seen.header("retry-after"), "1");
    }
    assert_eq!(server.anonymous().get("/readyz").await.status, 503);
    assert_eq!(server.anonymous().get("/healthz").await.status, 200);
    server.stop().await;
}

/// `approvals-get` answers `ok` in every status, waits at most as long as it is told, and writes nothing [C51, C07].
#[tokio::test(flavor = "multi_thread")]
async fn looking_and_waiting_write_nothing() {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let site = &server.site;
    let id = bot.ask("publish", json!({"site": site})).await;
    let before = (server.effects().await, server.journal().await.len());
    for _ in 0..30 {
        let seen = bot.ok("approvals-get", json!({"approvalId": id})).await;
        assert_eq!(seen["status"], "pending");
    }
    assert_eq!(
        (server.effects().await, server.journal().await.len()),
        before
    );

    let (waiting, asked) = (bot.clone(), id.clone());
    let wait = tokio::spawn(async move {
        waiting
            .ok(
                "approvals-get",
                json!({"approvalId": asked, "waitSeconds": 45}),
            )
            .await
    });
    ada.deny(site, &id).await;
    assert_eq!(wait.await.unwrap()["status"], "denied");
    // [C12] Denied while it waited, and asked to run all the same.
    let seen = bot.call_with(&id, "publish", json!({"site": site})).await;
    assert_refused(&seen, Code::ApprovalDenied, "denied while it waited");
    let versions = "select count(*) from versions";
    assert_eq!(server.database.number(versions).await, 0);
    let too_long = bot
        .call(
            "approvals-get",
            json!({"approvalId": id, "waitSeconds": 46}),
        )
        .await;
    assert_refused(&too_long, Code::InvalidArguments, "waitSeconds beyond 45");
    server.done().await;
}

/// CONTRACT §3 and §5: a scoped key sees and may do only its own tools, and those about its own approvals.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_lists_what_it_may_call() {
    let server = TestServer::start().await;
    let listed = async |agent: &AgentClient| -> Vec<String> {
        let seen = agent.get("/tools").await;
        assert_eq!(seen.status, 200);
        let tools = seen.body["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let bot = server.as_agent("bot").await;
    let all = listed(&bot).await;
    assert!(all.contains(&"publish".to_owned()));
    assert!(
        !all.contains(&"update-collection-status".to_owned()),
        "bound to the page, never offered"
    );
    assert_refused(
        &bot.call("update-collection-status", json!({})).await,
        Code::UnknownTool,
        "nor called",
    );

    let scoped = server
        .agent_for("reader", "ada", &[&server.site], &["node-get", "publish"])
        .await;
    let mut own = listed(&scoped).await;
    own.sort();
    assert_eq!(
        own,
        [
            "approvals-cancel",
            "approvals-get",
            "approvals-resume",
            "node-get",
            "publish"
        ]
    );
    for tool in all.iter().filter(|tool| !own.contains(tool)) {
        let seen = scoped.call(tool, json!({"site": server.site})).await;
        assert_refused(&seen, Code::InsufficientScope, tool);
    }
    for tool in bot.get("/tools").await.body["tools"].as_array().unwrap() {
        for part in [
            "title",
            "description",
            "inputSchema",
            "outputSchema",
            "annotations",
        ] {
            assert!(!tool[part].is_null(), "{} has no {part}", tool["id"]);
        }
        assert_eq!(tool["annotations"].as_object().unwrap().len(), 4);
    }
    server.done().await;
}

/// CONTRACT §5: where `approvalId` and `reason` may stand, and that neither is part of what is hashed [C01, C20].
#[tokio::test(flavor = "multi_thread")]
async fn the_envelope_takes_its_names_and_no_others() {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let site = &server.site;
    let plain = bot.call("publish", json!({"site": site})).await;
    let id = plain.body["approvalId"].as_str().unwrap();
    let outside = json!({"arguments": {"site": site}, "reason": "Spring prices."}).to_string();
    let inside = json!({"arguments": {"reason": "Approved by legal.", "site": site}}).to_string();
    for body in [outside, inside] {
        let seen = bot.send("publish", body).await;
        assert_eq!(
            seen.body["approvalId"], id,
            "a reason makes no other request"
        );
        assert_eq!(seen.body["argsHash"], plain.body["argsHash"]);
        assert_eq!(seen.body["arguments"], json!({"site": site}));
    }
    let before = server.effects().await;
    let refused = [
        json!({"arguments": {"site": site, "approvalId": id}}),
        json!({"arguments": {"site": site, "approval_id": id}}),
        json!({"arguments": {"site": site}, "approval_id": id}),
        json!({"arguments": {"site": site}, "approved": true}),
        json!({"arguments": {"site": site}, "confirmToken": "x"}),
        json!({"arguments": {"site": site}, "_meta": {"approved": true}}),
        json!({"arguments": {"site": site}, "actor": "ada", "approver": "ada"}),
        json!({"arguments": {"site": site}, "approvalId": [id]}),
        json!({"arguments": {"site": site}, "approvalId": {"id": id}}),
        json!({"arguments": {"site": site}, "approvalId": true}),
        json!({"arguments": {"site": site}, "reason": ["x"]}),
        json!({"arguments": [site]}),
        json!({"arguments": "publish"}),
        json!({"arguments": null, "site": site}),
        json!({"site": site}),
        json!([{"arguments": {"site": site}}]),
    ];
    for body in refused {
        let seen = bot.send("publish", body.to_string()).await;
        assert_refused(&seen, Code::InvalidArguments, &body.to_string());
    }
    assert_eq!(server.effects().await, before);
    ada.approve(site, id).await;
    let other_words =
        json!({"reason": "x", "approvalId": id, "arguments": {"site": site, "reason": "y"}});
    let ran = bot.send("publish", other_words.to_string()).await;
    assert_eq!(ran.code(), "ok", "{}", ran.text);
    server.done().await;
}

/// What the API gives of one request, of a list, and page by page.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_and_a_list_have_their_shape() {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let site = &server.site;
    let mut ids = Vec::new();
    for slug in ["visit", "rye", "bread"] {
        let node = bot.node(site, slug).await;
        ids.push(bot.ask("delete", json!({"site": site, "node": node})).await);
    }
    let record = ada.record(site, &ids[0]).await;
    let mut names: Vec<&String> = record.as_object().unwrap().keys().collect();
    names.sort();
    let expect = [
        "argsHash",
        "arguments",
        "card",
        "decisions",
        "expiresAt",
        "id",
        "requestedAt",
        "requestedBy",
        "seenDigest",
        "site",
        "stateHash",
        "status",
        "surface",
        "tool",
        "url",
    ];
    let known = |name: &&String| {
        expect.contains(&name.as_str())
            || ["receipt", "reason", "changes", "toolVersion"].contains(&name.as_str())
    };
    assert!(names.iter().all(known), "{names:?}");
    assert!(
        expect.iter().all(|name| names.iter().any(|n| n == name)),
        "{names:?}"
    );
    assert_eq!(record["surface"], "http");
    assert_eq!(record["requestedBy"]["name"], "bot");

    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let list = ada
            .get(&format!(
                "/api/sites/{site}/approvals?status=pending&limit=2{cursor}"
            ))
            .await;
        assert_eq!(list.status, 200, "{}", list.text);
        let items = list.body["items"].as_array().unwrap();
        seen.extend(
            items
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        match list.body["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    ids.sort();
    seen.sort();
    assert_eq!(seen, ids);
    let none = ada
        .get(&format!("/api/sites/{site}/approvals?status=denied"))
        .await;
    assert_eq!(none.body, json!({"items": [], "nextCursor": null}));
    for odd in ["status=open", "limit=x", "cursor=%00", "cursor=zz&limit=-1"] {
        let seen = ada.get(&format!("/api/sites/{site}/approvals?{odd}")).await;
        assert!(seen.status < 500, "{odd}: {} {}", seen.status, seen.text);
    }
    server.done().await;
}

/// The document says what there is: each tool, each API route, each code.
#[tokio::test(flavor = "multi_thread")]
async fn the_openapi_document_names_every_route() {
    let server = TestServer::start().await;
    let document = server.anonymous().get("/openapi.json").await.body;
    assert_eq!(document["servers"][0]["url"], server.origin);
    let paths = document["paths"].as_object().unwrap();
    let bot = server.as_agent("bot").await;
    for tool in bot.get("/tools").await.body["tools"].as_array().unwrap() {
        let path = format!("/tools/{}", tool["id"].as_str().unwrap());
        assert!(paths.contains_key(&path), "{path}");
    }
    let api = crate::reach::routes()
        .into_iter()
        .filter(|route| route.path.starts_with("/api/") && !route.path.contains('*'));
    for route in api {
        assert!(paths.contains_key(&route.path), "{}", route.path);
    }
    server.done().await;
}
