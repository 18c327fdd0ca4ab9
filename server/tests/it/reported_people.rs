//! What went wrong for others between a person and a decision, tried here at the people's doors. The ids are those of
//! [`crate::cases`].

use crate::{reported_calls::plain, support::*};
use cloudhal_engine::sites;
use reqwest::Method;
use std::collections::BTreeSet;

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

    async fn ask(&self) -> String {
        let publish = json!({"site": self.server.site});
        self.bot.ask("publish", publish).await
    }

    async fn set_policy(&self, policy: Value) {
        let path = format!("/api/sites/{}/policy", self.server.site);
        let seen = Seen::of(self.ada.request(Method::PUT, &path).json(&policy)).await;
        assert_eq!(seen.status, 200, "{}", seen.text);
    }

    /// The page of a request, as its reader sees it.
    async fn page(&self, id: &str) -> String {
        let page = self.ada.get(&format!("/approvals/{id}")).await;
        assert_eq!(page.status, 200);
        plain(&page.text)
    }
}

/// [C27, C30] Who owns the asking agent may not approve where another is asked for: not by the API, not by the plain form, not
/// in bulk, not with a key, and there is no server function and no command that decides. Denying stays open to them.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_approves_their_own_agents_request_by_any_door() {
    let scene = Scene::set().await;
    let (server, ada) = (&scene.server, &scene.ada);
    let bea = server.as_member("bea", Role::Approver).await;
    let distinct = json!({"default": {"requireDistinctApprover": true}});
    scene.set_policy(distinct).await;
    let id = scene.ask().await;
    let digest = ada.record(&server.site, &id).await["seenDigest"]
        .as_str()
        .unwrap()
        .to_owned();

    let seen = ada.decide(&server.site, &id, "approve").await;
    assert_refused(&seen, Code::Forbidden, "by the API");
    let page = format!("/approvals/{id}");
    for decision in ["approve", "approve_all"] {
        let fields = [("seenDigest", digest.as_str()), ("decision", decision)];
        let seen = ada.post_form(&page, &fields).await;
        let to = seen.location();
        assert!(
            to.ends_with("=forbidden") || to.ends_with("=invalid_arguments"),
            "{to}"
        );
    }
    for function in crate::reach::server_functions() {
        let path = function.strip_prefix("POST ").unwrap();
        let body = json!({
            "id": id, "seenDigest": digest, "decision": "approve", "verdict": "approve", "slug": SLUG, "node": id, "site": null,
            "cursor": null, "from": 0,
            "query": {"tab": "all", "text": "", "site": "", "agent": "", "tool": "", "cursor": null},
        });
        ada.post_json(path, body).await;
    }
    let seen = scene.bot.call("approve", json!({"approvalId": id})).await;
    assert_refused(&seen, Code::UnknownTool, "with the key");
    let record = ada.record(&server.site, &id).await;
    assert_eq!(
        (&record["status"], &record["decisions"]),
        (&json!("pending"), &json!([]))
    );

    // In bulk there is only denying, whatever the field says.
    let second = {
        let node = scene.bot.node(&server.site, "rye").await;
        let delete = json!({"site": server.site, "node": node});
        scene.bot.ask("delete", delete).await
    };
    let bulk = [
        ("ids", second.as_str()),
        ("decision", "approve"),
        ("confirm", SLUG),
    ];
    ada.post_form("/approvals/deny", &bulk).await;
    assert_eq!(ada.record(&server.site, &second).await["status"], "denied");

    bea.approve(&server.site, &id).await;
    let ran = scene
        .bot
        .call_with(&id, "publish", json!({"site": server.site}));
    assert_eq!(ran.await.code(), "ok");
    scene.server.done().await;
}

/// [C36] Looking is not deciding, and an owner is nobody special where a group is asked for: the owner's approval is on record,
/// and the request still waits for the group.
#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_and_an_owner_outside_the_group_do_not_get_it_through() {
    let scene = Scene::set().await;
    let (server, ada) = (&scene.server, &scene.ada);
    let vera = server.as_member("vera", Role::Viewer).await;
    let bea = server.as_member("bea", Role::Approver).await;
    let account = server.account("bea").await;
    let path = format!("/api/sites/{}/members/{}", server.site, account.id());
    let legal = json!({"role": "approver", "groups": ["legal"]});
    let seen = Seen::of(ada.request(Method::PUT, &path).json(&legal)).await;
    assert_eq!(seen.status, 200, "{}", seen.text);
    scene
        .set_policy(json!({"default": {"groups": ["legal"]}}))
        .await;
    let id = scene.ask().await;
    for verdict in ["approve", "deny"] {
        let seen = vera.decide(&server.site, &id, verdict).await;
        assert_refused(&seen, Code::Forbidden, verdict);
    }
    let seen = ada.decide(&server.site, &id, "approve").await;
    assert_eq!(seen.body["status"], "pending", "{}", seen.text);
    let publish = json!({"site": server.site});
    let answer = scene.bot.call_with(&id, "publish", publish.clone()).await;
    assert_eq!(
        (answer.status, &answer.body["approved"]),
        (202, &json!(false))
    );
    let told = server.journal().await;
    let decided = told
        .iter()
        .filter(|entry| entry["kind"] == "approval.decided");
    let by: Vec<&Value> = decided.map(|entry| &entry["actorName"]).collect();
    assert_eq!(by, [&json!("ada")], "and it is journaled");
    bea.approve(&server.site, &id).await;
    let ran = scene.bot.call_with(&id, "publish", publish).await;
    assert_eq!(ran.code(), "ok", "{}", ran.text);
    scene.server.done().await;
}

/// [C40] Direction, invisible and look-alike characters and coded host names, in the site's own title and in what is published:
/// each is marked, and the exact characters can be read.
#[tokio::test(flavor = "multi_thread")]
async fn odd_characters_are_marked_wherever_they_stand() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let account = server.account("ada").await;
    let title = "Bak\u{202e}yre\u{2066}\u{200b} p\u{430}yroll";
    let site = sites::create_site(server.engine(), "odd", title, Some(&account))
        .await
        .unwrap();
    let odd = server.agent_for("odd", "ada", &[&site], &[]).await;
    let home = json!({
        "site": site, "title": "Home \u{202e}\u{2066}\u{200b}", "slug": "",
        "body": "Pay at https://xn--pple-43d.com/ or p\u{430}y.example.\u{200b}",
    });
    odd.ok("node-create", home).await;
    let seen = odd.call("publish", json!({"site": site})).await;
    let id = seen.body["approvalId"].as_str().unwrap().to_owned();
    let html = scene.ada.get(&format!("/approvals/{id}")).await.text;
    let body = &html[html.find("<body").unwrap()..];
    let shown = body.split("<script").next().unwrap();
    for hidden in ['\u{202e}', '\u{2066}', '\u{200b}'] {
        let code = format!("U+{:04X}", hidden as u32);
        assert!(!shown.contains(hidden), "{code} is on the page as itself");
        assert!(shown.contains(&code), "no mark for {code}");
    }
    let page = plain(shown);
    assert!(page.contains("mixed letters"), "no warning of a look-alike");
    assert!(page.contains("coded name"), "no warning of a coded host");
    assert!(page.contains("\\u{200b}"), "no escaped view");

    // In the arguments themselves, where a draft tool waits.
    scene
        .set_policy(json!({"extraGatedTools": ["node-update"]}))
        .await;
    let node = bot.node(&server.site, "visit").await;
    let change = json!({"site": server.site, "node": node, "title": "Visit\u{202e} \u{430}b", "body": "xn--pple-43d.com"});
    let id = bot.ask("node-update", change).await;
    let page = scene.page(&id).await;
    for wanted in [
        "U+202E",
        "mixed letters",
        "coded name",
        "\\u{202e}",
        "\\u{0430}",
    ] {
        assert!(page.contains(wanted), "{wanted} is not on the page");
    }
    scene.server.done().await;
}

/// [C42] The end of a long text and the last of many changes are on the page, or on one that it leads to; the counts are shown.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_long_hides_its_end() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let long = format!("{}\n\nFinally: pay twice.", "All is well. ".repeat(1600));
    assert!(long.len() > 20_000);
    bot.edit(&server.site, "visit", &long).await;
    for at in 0..220 {
        let new = json!({"site": server.site, "title": format!("Page no. {at}."), "slug": format!("p-{at}")});
        bot.ok("node-create", new).await;
    }
    let id = scene.ask().await;
    let mut all = scene.page(&id).await;
    let mut followed = BTreeSet::new();
    while let Some(next) = further(&all, &id).difference(&followed).next().cloned() {
        let page = scene.ada.get(&next).await;
        assert_eq!(page.status, 200, "{next}");
        all.push_str(&plain(&page.text));
        followed.insert(next);
    }
    assert!(!followed.is_empty(), "there was nothing to read on");
    // The first page lists by id, so that any one of them may stand on a later one.
    assert!(all.contains("Finally: pay twice."), "the tail is not there");
    for at in 0..220 {
        assert!(
            all.contains(&format!("Page no. {at}.")),
            "page {at} of 220 is nowhere"
        );
    }
    assert!(all.contains("224"), "the count is not shown");
    scene.server.done().await;
}

/// The links to more of the changes.
fn further(pages: &str, id: &str) -> BTreeSet<String> {
    let start = format!("/approvals/{id}/changes?from=");
    let rest = |(at, _): (usize, &str)| pages[at..].split(['"', '#', '<', '\\']).next();
    pages
        .match_indices(&start)
        .filter_map(rest)
        .map(str::to_owned)
        .collect()
}

/// [C43] Generated from the schemas: whatever a call that waits can say, its page says, and every digest that binds it.
#[tokio::test(flavor = "multi_thread")]
async fn every_field_that_binds_is_on_the_page() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    // Two versions, and version 2 is live: there is one to roll back to.
    for text in ["One.", "Two."] {
        bot.edit(&server.site, "visit", text).await;
        let id = scene.ask().await;
        scene.ada.approve(&server.site, &id).await;
        let publish = json!({"site": server.site});
        bot.call_with(&id, "publish", publish).await.data();
    }
    bot.edit(&server.site, "visit", "Three.").await;
    let drafts = ["node-create", "node-move", "node-update"];
    scene.set_policy(json!({"extraGatedTools": drafts})).await;
    let (node, parent) = (
        bot.node(&server.site, "rye").await,
        bot.node(&server.site, "visit").await,
    );
    let rev = {
        let which = json!({"site": server.site, "node": node});
        bot.ok("node-get", which).await["rev"].clone()
    };
    let value = |tool: &str, name: &str| match name {
        "site" => json!(server.site),
        "node" => json!(node),
        "parent" => json!(parent),
        "version" => json!(1),
        "kind" => json!("entry"),
        "title" => json!(format!("Title for {tool}")),
        "slug" => json!(format!("slug-for-{tool}")),
        "body" => json!(format!("Body & <text> for {tool}")),
        "fields" => json!({"colour": format!("green for {tool}"), "count": 4711}),
        "position" => json!(12_345),
        "expectedRev" => rev.clone(),
        other => panic!("{tool} takes {other}: say here what that may be"),
    };
    let listed = bot.get("/tools").await.body["tools"].clone();
    let mut asked = 0;
    for tool in listed.as_array().unwrap() {
        let name = tool["id"].as_str().unwrap();
        if tool["effect"] != "gated" && !drafts.contains(&name) {
            continue;
        }
        // `approvalId` and `reason` are never part of the call.
        let fields = tool["inputSchema"]["properties"]
            .as_object()
            .unwrap()
            .keys();
        let fields = fields.filter(|field| !["approvalId", "reason"].contains(&field.as_str()));
        let arguments: Map<String, Value> = fields
            .map(|field| (field.clone(), value(name, field)))
            .collect();
        let id = bot.ask(name, arguments.clone().into()).await;
        let page = scene.page(&id).await;
        for (field, value) in &arguments {
            assert!(
                page.contains(&format!("<code>{field}</code>")),
                "{name}: no {field}"
            );
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            assert!(page.contains(&text), "{name}: {field} is not {text}");
        }
        let record = scene.ada.record(&server.site, &id).await;
        for binding in ["tool", "argsHash", "stateHash", "seenDigest", "id"] {
            let text = record[binding].as_str().unwrap();
            assert!(page.contains(text), "{name}: no {binding}");
        }
        let version = tool["version"].as_str().unwrap();
        for text in [version, "The bakery", "bot", "over HTTP"] {
            assert!(page.contains(text), "{name}: {text} is not on its page");
        }
        asked += 1;
    }
    assert_eq!(asked, 6);
    scene.server.done().await;
}

/// [C46] Loaded again, in another browser, by somebody else, after a restart: the same request in the same state.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_loaded_again_shows_the_same() {
    let scene = Scene::set().await;
    let id = scene.ask().await;
    let digest = |page: &Seen| PersonClient::field(page, "seenDigest");
    let path = format!("/approvals/{id}");
    let first = scene.ada.get(&path).await;
    assert!(first.text.contains("Waiting for you"));
    let phone = scene.server.as_person("ada").await;
    for page in [scene.ada.get(&path).await, phone.get(&path).await] {
        assert_eq!(digest(&page), digest(&first));
        assert!(page.text.contains("Waiting for you"));
    }
    let cookie = scene.ada.cookie();
    let server = scene.server.restart().await;
    let after = Raw::new("GET", &path)
        .header("host", server.host())
        .header("cookie", &cookie)
        .send(&server)
        .await;
    assert_eq!((after.status, digest(&after)), (200, digest(&first)));
    let ada = server.as_person("ada").await;
    ada.approve(&server.site, &id).await;
    let decided = ada.get(&path).await;
    assert!(
        !decided.text.contains("name=\"seenDigest\""),
        "nothing is left to decide"
    );
    let server = server.restart().await;
    let ada = server.as_person("ada").await;
    let again = ada.get(&path).await;
    assert!(again.text.contains("Approved by"), "{}", again.text);
    server.done().await;
}

/// [C47] The page is whole without a script: it says that nothing was decided, and its form decides.
#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_the_page_is_whole_and_its_form_decides() {
    let scene = Scene::set().await;
    let id = scene.ask().await;
    let path = format!("/approvals/{id}");
    let page = scene.ada.get(&path).await;
    let body = page.text[page.text.find("<body").unwrap()..].to_owned();
    let form = &body[body.find("<form").unwrap()..];
    assert!(body.contains("Waiting for you"));
    assert!(form.contains(&format!("action=\"{path}\"")) && form.contains("method=\"post\""));
    for button in ["approve", "deny"] {
        let at = form.find(&format!("<button id=\"{button}\"")).unwrap();
        let tag = &form[at..at + form[at..].find('>').unwrap()];
        assert!(!tag.contains(" disabled"), "only a script would open {tag}");
    }
    let answer = scene
        .bot
        .call_with(&id, "publish", json!({"site": scene.server.site}));
    assert_eq!(answer.await.status, 202, "the agent is told nothing else");
    let fields = [
        ("seenDigest", PersonClient::field(&page, "seenDigest")),
        ("decision", "approve".to_owned()),
    ];
    let fields = fields
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    assert_eq!(scene.ada.post_form(&path, &fields).await.location(), path);
    let record = scene.ada.record(&scene.server.site, &id).await;
    assert_eq!(record["status"], "approved");
    scene.server.done().await;
}

/// [C75] A link in a chat is a navigation from another site: the session counts, and signed out one hop leads back to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_from_another_site_arrives_signed_in() {
    let scene = Scene::set().await;
    let id = scene.ask().await;
    let path = format!("/approvals/{id}");
    let from_a_chat = |request: reqwest::RequestBuilder| {
        request
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "navigate")
            .header("sec-fetch-dest", "document")
            .header("referer", "https://chat.example/")
    };
    let seen = Seen::of(from_a_chat(scene.ada.bare(Method::GET, &path))).await;
    assert_eq!(seen.status, 200);
    assert!(seen.text.contains("Waiting for you"));
    let nobody = PersonClient::new(&scene.server);
    let seen = Seen::of(from_a_chat(nobody.bare(Method::GET, &path))).await;
    assert_eq!(seen.location(), format!("/login?next={path}"));
    scene.server.done().await;
}
