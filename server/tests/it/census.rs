//! The census: nothing that can be reached with an agent's key, without a session, or from a page elsewhere changes a decision.
//!
//! Every people's route and every server function, found by [`crate::reach`], meets everybody who may not use it [C25, C27,
//! C71, C89]; every other route and every method of MCP meets everybody there is. What is added is counted without anybody
//! remembering to.

mod targets;

use crate::{
    cases, reach,
    support::*,
    webhooks::{Receiver, allowing},
};
use reqwest::{Method, RequestBuilder};
use targets::{Known, Target};

/// Where a site of two versions, with everybody and everything that there can be, waits for a decision.
struct Scene {
    server: TestServer,
    bot: AgentClient,
    ada: PersonClient,
    root: PersonClient,
    /// Sign-in links that were used to come here.
    spent: i64,
    id: String,
    targets: Vec<Target>,
    _receiver: Receiver,
}

const SETTINGS: &str = "/sites/bakery/settings";
const SPENT: &str = "select count(*) from sign_in_links where used_at is not null";

impl Scene {
    async fn set() -> Self {
        let receiver = Receiver::start().await;
        let server = TestServer::start_as(allowing(&[receiver.addr])).await;
        let server = server.unwrap();
        let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
        let root = server.as_owner("root").await;
        for text in ["First.", "Second."] {
            bot.edit(&server.site, "visit", text).await;
            let state = ("stateHash", &*state(&server).await);
            let published = ada.post_form("/sites/bakery/publish", &[state]).await;
            assert_eq!(published.location(), "/sites/bakery?notice=published");
        }
        bot.edit(&server.site, "visit", "New.").await;
        let id = bot.ask("publish", json!({"site": server.site})).await;
        let known = known(&server, &bot, &ada, &id, &receiver.url()).await;
        let desk = json!({"name": "desk"});
        let made = root.ok(Method::POST, "/api/personal-keys", desk).await;
        let known = Known {
            personal: text(&made["id"]),
            ..known
        };
        let targets = known.targets();
        assert!(
            targets.len() > 80,
            "the census found only {} targets",
            targets.len()
        );
        Self {
            spent: server.database.number(SPENT).await,
            server,
            bot,
            ada,
            root,
            id,
            targets,
            _receiver: receiver,
        }
    }

    /// Nothing was decided, run, filed or spent.
    async fn assert_untouched(&self, about: &str) {
        let record = self.ada.record(&self.server.site, &self.id).await;
        assert_eq!(record["status"], "pending", "{about}");
        let spent = self.server.database.number(SPENT).await;
        assert_eq!(spent, self.spent, "{about}");
    }

    async fn done(self) {
        // The owner is not refused what everybody else was.
        self.ada.approve(&self.server.site, &self.id).await;
        self.server.done().await;
    }
}

async fn state(server: &TestServer) -> String {
    let sql = "select state_hash from sites";
    server.database.texts(sql).await.remove(0)
}

/// Makes one of everything that a route may be about.
async fn known(
    server: &TestServer,
    bot: &AgentClient,
    ada: &PersonClient,
    id: &str,
    url: &str,
) -> Known {
    let owner = server.account("ada").await;
    let link = cloudhal_engine::people::sign_in_link(server.engine(), &owner)
        .await
        .unwrap();
    server.as_member("ben", Role::Editor).await;
    server.account("eve").await;
    let account = async |name: &str| server.account(name).await.id().as_str().to_owned();
    let (ada_id, ben, zed) = (
        account("ada").await,
        account("ben").await,
        account("zed").await,
    );
    let off = format!("update people set disabled_at = 1 where id = '{zed}'");
    server.database.try_sql(&off).await.unwrap();
    server
        .agent_for("parked", "ben", &[&server.site], &[])
        .await;
    server.as_agent("resting").await;
    let agent = async |name: &str| server.agent_id(name).await;
    let (parked, resting) = (agent("parked").await, agent("resting").await);
    let take_off = [("form", "take_off"), ("agent", &*parked)];
    ada.post_form(SETTINGS, &take_off).await;
    let disable = [("form", "disable"), ("agent", &*resting)];
    ada.post_form("/agents", &disable).await;

    let hooks = format!("/api/sites/{}/webhooks", server.site);
    let made = ada.post_json(&hooks, json!({"url": url})).await.body;
    let webhook = made["id"].as_str().unwrap().to_owned();
    let test = [("form", "hook"), ("webhook", &*webhook), ("do", "test")];
    let arrived = ada.post_form(SETTINGS, &test).await;
    assert!(arrived.location().ends_with("webhook_arrived"));
    let told = ada.get(&format!("{hooks}/{webhook}/deliveries")).await.body;
    let page = ada.get(SETTINGS).await;
    Known {
        state: state(server).await,
        approval: id.to_owned(),
        digest: text(&ada.record(&server.site, id).await["seenDigest"]),
        node: bot.node(&server.site, "visit").await,
        ada: ada_id,
        ben,
        zed,
        bot: agent("bot").await,
        key: bot.key[4..30].to_owned(),
        resting,
        personal: String::new(),
        parked,
        scope: format!("{} ", server.site),
        policy: PersonClient::policy_seen(&page),
        url: url.to_owned(),
        webhook,
        delivery: text(&told["items"][0]["id"]),
        token: link.rsplit('/').next().unwrap().to_owned(),
        site: server.site.clone(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The census would prove nothing if what it sends could not be taken from anybody: an owner's is, and the journal tells it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_taken_from_an_owner() {
    let scene = Scene::set().await;
    for target in scene.targets.iter().filter(|one| !one.changes_something()) {
        if target.is_nowhere() || target.is_for_everybody() || target.path == "/api/events" {
            continue;
        }
        let request = scene.root.request(target.method.clone(), &target.path);
        let seen = Seen::of(target.on(request)).await;
        // Neither is a page: the one is where a form goes.
        let expect = match target.path.as_str() {
            "/nothing" | "/approvals/deny" => 404,
            _ => 200,
        };
        assert_eq!(seen.status, expect, "{}", target.name());
    }
    let changes = |scene: &Scene| {
        let all = scene.targets.iter().enumerate();
        let changing = all.filter(|(_, target)| target.changes_something());
        changing.map(|(at, _)| at).collect::<Vec<usize>>()
    };
    let all = changes(&scene);
    assert!(all.len() > 40, "only {}", all.len());
    scene.done().await;
    for at in all {
        let scene = Scene::set().await;
        let target = &scene.targets[at];
        let about = target.name();
        let journaled = "select count(*) from journal";
        let before = scene.server.database.number(journaled).await;
        let request = scene.root.request(target.method.clone(), &target.path);
        let seen = Seen::of(target.on(request)).await;
        let notice = match seen.status {
            303 => seen.location().split("notice=").nth(1).unwrap_or_default(),
            status => {
                assert_eq!(status, 200, "{about}: {}", seen.text);
                ""
            }
        };
        assert!(
            Code::ALL.iter().all(|code| code.as_str() != notice),
            "{about}: {notice}"
        );
        let after = scene.server.database.number(journaled).await;
        assert!(after > before, "{about} changed nothing");
        scene.server.done().await;
    }
}

/// Nobody who may only look changes anything by what an owner sends.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_only_look_changes_nothing() {
    let scene = Scene::set().await;
    let viewer = scene.server.as_member("vic", Role::Viewer).await;
    let journaled = "select count(*) from journal";
    let before = (
        scene.server.everything().await,
        scene.server.database.number(journaled).await,
    );
    let all = scene.targets.iter();
    for target in all.filter(|one| one.changes_something() && !one.is_ones_own()) {
        let request = viewer.request(target.method.clone(), &target.path);
        let seen = Seen::of(target.on(request)).await;
        let about = target.name();
        match seen.status {
            303 => {
                let notice = seen.location().split("notice=").nth(1).unwrap_or_default();
                let refused = ["forbidden", "not_found", "denied_some"];
                assert!(refused.contains(&notice), "{about}: {notice}");
            }
            status => assert!(
                matches!(status, 403 | 404),
                "{about}: {status} {}",
                seen.text
            ),
        }
        let after = (
            scene.server.everything().await,
            scene.server.database.number(journaled).await,
        );
        assert_eq!(after, before, "{about}");
    }
    scene.ada.approve(&scene.server.site, &scene.id).await;
    scene.server.done().await;
}

/// [C25] The server functions are those of the pages' own program, too; see below.
#[tokio::test(flavor = "multi_thread")]
async fn no_key_opens_a_peoples_route() {
    let scene = Scene::set().await;
    let before = scene.server.everything().await;
    let origin = scene.server.origin.clone();
    for target in &scene.targets {
        for with_cookie in [false, true] {
            for method in [
                target.method.clone(),
                Method::PUT,
                Method::DELETE,
                Method::PATCH,
            ] {
                let request = scene.bot.request(method, &target.path);
                let request = request
                    .header("origin", &origin)
                    .header("sec-fetch-site", "same-origin");
                let request = match with_cookie {
                    true => request.header("cookie", scene.ada.cookie()),
                    false => request,
                };
                let seen = Seen::of(target.on(request)).await;
                assert_refused(&seen, Code::AgentsNotAllowed, &target.name());
            }
        }
    }
    // In whatever case the scheme is written, and beside another credential.
    for scheme in ["bearer", "BEARER", "Bearer "] {
        let request = scene.ada.request(Method::GET, "/api/sites");
        let seen =
            Seen::of(request.header("authorization", format!("{scheme} {}", scene.bot.key))).await;
        assert_refused(&seen, Code::AgentsNotAllowed, scheme);
    }
    let seen = Raw::new("GET", "/api/sites")
        .header("host", scene.server.host())
        .header("cookie", &scene.ada.cookie())
        .header("authorization", "Basic YTpi")
        .header("authorization", &format!("Bearer {}", scene.bot.key))
        .send(&scene.server)
        .await;
    assert_refused(&seen, Code::AgentsNotAllowed, "second of two");
    assert_eq!(scene.server.everything().await, before);
    scene.assert_untouched("after an agent").await;
    scene.done().await;
}

/// [C89]
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_let_in_without_a_session() {
    let scene = Scene::set().await;
    let before = scene.server.everything().await;
    let somebody = PersonClient::new(&scene.server);
    for target in scene
        .targets
        .iter()
        .filter(|target| !target.is_for_everybody())
    {
        let request = somebody.request(target.method.clone(), &target.path);
        let seen = Seen::of(target.on(request)).await;
        let name = target.name();
        if target.is_nowhere() {
            assert_refused(&seen, Code::NotFound, &name);
        } else if target.path.starts_with("/_fn") {
            assert_eq!(seen.status, 401, "{name}: {}", seen.text);
            assert!(
                seen.text.contains("\"unauthorized\""),
                "{name}: {}",
                seen.text
            );
        } else if target.is_json() {
            assert_refused(&seen, Code::Unauthorized, &name);
        } else if target.path.starts_with("/preview/") {
            assert_eq!(seen.status, 404, "{name}: {}", seen.text);
        } else {
            assert!(
                seen.location().starts_with("/login?next="),
                "{name} to {}",
                seen.location()
            );
        }
        assert!(
            seen.headers.get("set-cookie").is_none(),
            "{name} starts a session"
        );
    }
    assert_eq!(scene.server.everything().await, before);
    scene.assert_untouched("after nobody").await;
    scene.done().await;
}

/// What a page elsewhere, or no page at all, can make a browser send.
const ELSEWHERE: [&[(&str, &str)]; 14] = [
    &[],
    &[("sec-fetch-site", "same-origin")],
    &[("sec-fetch-site", "none")],
    &[("sec-fetch-site", "none"), ("origin", "OURS")],
    &[("sec-fetch-site", "cross-site"), ("origin", "OURS")],
    &[("sec-fetch-site", "same-site"), ("origin", "OURS")],
    &[("sec-fetch-site", ""), ("origin", "OURS")],
    &[("origin", "null")],
    &[("origin", "https://evil.example")],
    &[("origin", "OURS/")],
    &[("origin", "OURS.evil.example")],
    &[("origin", "https://127.0.0.1")],
    &[
        ("sec-fetch-site", "same-origin"),
        ("origin", "http://127.0.0.1.nip.io"),
    ],
    &[
        ("sec-fetch-site", "same-origin"),
        ("origin", "OURS"),
        ("origin", "https://evil.example"),
    ],
];

/// [C64, C71]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_elsewhere_cannot_use_the_session() {
    let scene = Scene::set().await;
    let before = scene.server.everything().await;
    for target in scene
        .targets
        .iter()
        .filter(|target| target.method != Method::GET)
    {
        let method = || target.method.clone();
        for elsewhere in ELSEWHERE {
            let mut request = scene.ada.bare(method(), &target.path);
            for (name, value) in elsewhere {
                request = request.header(*name, value.replace("OURS", &scene.server.origin));
            }
            let about = format!("{} with {elsewhere:?}", target.name());
            let seen = Seen::of(target.on(request)).await;
            assert_refused(&seen, Code::CrossOrigin, &about);
        }
        // The body that needs no leave of another origin: a form's text/plain that reads as JSON.
        for origin in [None, Some("https://evil.example")] {
            let mut request = scene
                .ada
                .bare(method(), &target.path)
                .header("content-type", "text/plain");
            request = match origin {
                Some(origin) => request.header("origin", origin),
                None => request,
            };
            let seen = Seen::of(request.body("{\"id\":\"x\",\"a\":\"=\"}")).await;
            assert_refused(&seen, Code::CrossOrigin, &target.name());
        }
    }
    assert_eq!(scene.server.everything().await, before);
    scene.assert_untouched("after another origin").await;
    scene.done().await;
}

/// [C71]
#[tokio::test(flavor = "multi_thread")]
async fn only_a_post_decides() {
    let scene = Scene::set().await;
    let before = scene.server.everything().await;
    for target in &scene.targets {
        for method in [Method::PUT, Method::PATCH, Method::DELETE] {
            let meant = |other: &Target| other.path == target.path && other.method == method;
            if scene.targets.iter().any(meant) {
                continue;
            }
            let seen = Seen::of(target.on(scene.ada.request(method.clone(), &target.path))).await;
            let refused =
                seen.status == 405 || (target.path.starts_with("/api") && seen.status == 404);
            assert!(
                refused,
                "{method} {}: {} {}",
                target.path, seen.status, seen.text
            );
        }
        if target.method != Method::POST {
            continue;
        }
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            let request = scene.ada.request(method.clone(), &target.path);
            let request = request
                .header("x-http-method-override", "POST")
                .header("x-http-method", "POST")
                .header("x-method-override", "POST");
            let seen = Seen::of(target.on(request)).await;
            if target.path.starts_with("/_fn")
                || target.path.starts_with("/api/") && target.path.contains("/approvals/")
            {
                assert_eq!(seen.status, 405, "{method} {}: {}", target.path, seen.text);
            }
            assert_ne!(seen.status, 303, "{method} {} acts", target.path);
        }
        let query = format!("{}?_method=POST&decision=approve&seenDigest=x", target.path);
        let seen = scene.ada.get(&query).await;
        assert_ne!(seen.status, 303, "{query} acts");
    }
    assert_eq!(scene.server.everything().await, before);
    scene.assert_untouched("after other methods").await;
    scene.done().await;
}

/// The routes that are not the people's, with every method and whoever may come: they know no decision.
#[tokio::test(flavor = "multi_thread")]
async fn no_other_route_decides() {
    let scene = Scene::set().await;
    let before = scene.server.effects().await;
    let record = scene.ada.record(&scene.server.site, &scene.id).await;
    let body = json!({
        "seenDigest": record["seenDigest"], "decision": "approve", "verdict": "approve", "approved": true, "ids": [scene.id],
        "approvalId": scene.id, "id": scene.id, "arguments": {"approvalId": scene.id},
    });
    let others: Vec<_> = reach::routes()
        .into_iter()
        .filter(|route| !route.for_people)
        .collect();
    assert!(others.len() > 10, "only {} routes", others.len());
    for route in others {
        let path = route
            .path
            .replace("{slug}", SLUG)
            .replace("{tool}", "approvals-get")
            .replace("{*path}", &format!("approvals/{}/approve", scene.id))
            .replace("{*file}", "x")
            .replace("{file}", "x")
            .replace("{version}", "x");
        assert!(!path.contains('{'), "say here what to put into {path}");
        for method in [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ] {
            let ours = scene.ada.request(method.clone(), &path);
            let theirs = scene
                .ada
                .bare(method.clone(), &path)
                .header("origin", "https://evil.example");
            let key = scene.bot.request(method.clone(), &path);
            let nobody = scene.server.anonymous().request(method, &path);
            for request in [ours, theirs, key, nobody] {
                // The head alone: a stream does not end.
                let seen = request.json(&body).send().await.unwrap();
                assert!(seen.status().as_u16() < 500, "{path}: {}", seen.status());
            }
        }
    }
    assert_eq!(scene.server.effects().await, before);
    scene.assert_untouched("after every other route").await;
    scene.done().await;
}

/// Methods of the protocol in its two eras, and what somebody would hope for.
const MCP_METHODS: [&str; 34] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/result",
    "tasks/update",
    "tasks/list",
    "tasks/cancel",
    "elicitation/create",
    "elicitation/complete",
    "sampling/createMessage",
    "roots/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/tasks/status",
    "approvals/approve",
    "approvals/deny",
    "approvals/decide",
    "tools/approve",
    "approve",
    "decide",
    "",
];

/// Every method, and every tool, with the id of what waits: by the agent that asked, by another one, with a session instead
/// of a key, and from a page elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn no_method_of_mcp_decides() {
    let scene = Scene::set().await;
    let site = &scene.server.site;
    let other = scene.server.as_agent("other").await;
    let asked = scene.bot.mcp_call("publish", json!({"site": site})).await;
    let structured = &asked.body["result"]["structuredContent"];
    let id = structured["approvalId"].as_str().unwrap().to_owned();
    let digest = scene.ada.record(site, &id).await["seenDigest"].clone();
    let answer = json!({"action": "accept", "content": {"decision": "approve", "approved": true}});
    let params = |tool: &str| {
        let mut arguments = json!({"approvalId": id});
        if ["publish", "rollback", "delete"].contains(&tool) {
            arguments["site"] = json!(site);
        }
        json!({
            "name": tool, "arguments": arguments, "taskId": id, "requestId": id, "elicitationId": id, "approvalId": id,
            "uri": format!("{}/approvals/{id}", scene.server.origin), "seenDigest": digest, "decision": "approve",
            "inputResponses": {id.as_str(): answer}, "result": answer, "_meta": {"approved": true},
        })
    };
    let listed = scene.bot.get("/tools").await.body["tools"].clone();
    let tools: Vec<String> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["id"].as_str().unwrap().replace('-', "_"))
        // An agent may withdraw what it asked, which is no decision.
        .filter(|tool| tool != "approvals_cancel")
        .collect();
    let mut messages = Vec::new();
    for method in MCP_METHODS {
        let message = |tool: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params(tool)});
        match method {
            "tools/call" => messages.extend(tools.iter().map(|tool| message(tool))),
            _ => messages.push(message("publish")),
        }
    }
    // An answer to a question that was never put.
    messages.push(json!({"jsonrpc": "2.0", "id": 1, "result": answer}));
    messages.push(json!({"jsonrpc": "2.0", "id": id, "result": answer}));
    let before = scene.server.effects().await;
    for message in &messages {
        for version in ["2025-11-25", "2026-07-28", "2025-03-26"] {
            let dressed = |request: RequestBuilder| {
                let method = message["method"].as_str().unwrap_or("x");
                request
                    .header("accept", "application/json, text/event-stream")
                    .header("mcp-protocol-version", version)
                    .header("mcp-method", if method.is_empty() { "x" } else { method })
                    .header(
                        "mcp-name",
                        message["params"]["name"].as_str().unwrap_or("x"),
                    )
                    .json(message)
            };
            let elsewhere = scene.bot.request(Method::POST, "/mcp");
            for request in [
                scene.bot.request(Method::POST, "/mcp"),
                other.request(Method::POST, "/mcp"),
                scene.ada.request(Method::POST, "/mcp"),
                elsewhere.header("origin", "https://evil.example"),
            ] {
                let seen = dressed(request).send().await.unwrap();
                let about = format!("{message} in {version}");
                assert!(seen.status().as_u16() < 500, "{about}: {}", seen.status());
            }
            let decided = "select count(*) from decisions";
            let decided = scene.server.database.number(decided).await;
            assert_eq!(decided, 0, "{message} in {version}");
        }
    }
    let record = scene.ada.record(site, &id).await;
    assert_eq!(record["status"], "pending");
    assert_eq!(scene.server.effects().await.0, before.0, "nothing ran");
    scene.assert_untouched("after every method").await;
    scene.done().await;
}

/// The browser's half knows no server function that the server's half does not list: both come from these attributes.
#[test]
fn the_census_knows_every_server_function_in_the_sources() {
    let mut named = std::collections::BTreeSet::new();
    let mut files = Vec::new();
    cases::collect(&reach::root().join("app/src"), &mut files);
    for file in files {
        let source = std::fs::read_to_string(file).unwrap();
        for attribute in source.split("#[server").skip(1) {
            let attribute = attribute.split(")]").next().unwrap();
            let endpoint = attribute.split("endpoint = \"").nth(1).unwrap();
            let endpoint = endpoint.split('"').next().unwrap();
            named.insert(format!("POST /_fn/{endpoint}"));
        }
    }
    assert_eq!(named, reach::server_functions());
}

/// [C56] Mail scanners and chat previews open links, many times and with any method that is safe.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_previews_change_nothing() {
    let scene = Scene::set().await;
    let page = format!("/approvals/{}", scene.id);
    let before = scene.ada.record(&scene.server.site, &scene.id).await;
    let journal = scene.server.journal().await.len();
    let agents = [
        "Slackbot-LinkExpanding 1.0",
        "Mozilla/5.0",
        "WhatsApp/2.0",
        "facebookexternalhit/1.1",
    ];
    for round in 0..100 {
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            let request = match round % 2 {
                0 => scene.server.anonymous().request(method, &page),
                _ => scene
                    .ada
                    .request(method, &page)
                    .header("purpose", "prefetch")
                    .header("sec-purpose", "prefetch;prerender"),
            };
            let seen = Seen::of(request.header("user-agent", agents[round / 2 % 4])).await;
            assert!(seen.status < 500, "{}", seen.text);
        }
    }
    assert_eq!(
        scene.ada.record(&scene.server.site, &scene.id).await,
        before
    );
    assert_eq!(scene.server.journal().await.len(), journal);
    scene.done().await;
}
