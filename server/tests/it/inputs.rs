//! The fifteen families of bad input, as far as they reach these doors. For each: a typed refusal, no effect, and the next good
//! call works. The inputs are tables in `tests/data`; others are made here because a file could not hold them.

use crate::support::*;
use serde::Deserialize;

/// One input: its text (or bytes as hexadecimal), and the code that refuses it; `ok` where it is fine, and must be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    text: String,
    #[serde(default)]
    hex: String,
    #[serde(default = "publish")]
    tool: String,
    code: String,
}

fn publish() -> String {
    "publish".into()
}

fn table(text: &str, at_least: usize) -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_str(text).unwrap();
    assert!(cases.len() >= at_least, "only {} cases", cases.len());
    cases
}

struct Scene {
    server: TestServer,
    bot: AgentClient,
    node: String,
}

impl Scene {
    async fn set() -> Self {
        let server = TestServer::start().await;
        let bot = server.as_agent("bot").await;
        let node = bot.node(&server.site, "visit").await;
        Self { server, bot, node }
    }

    fn filled(&self, text: &str) -> String {
        text.replace("$SITE", self.server.site.as_str())
            .replace("$NODE", &self.node)
    }

    /// The invariant: refused with that code, nothing moved, and a good call is answered.
    async fn check(&self, seen: Seen, code: &str, before: &(Vec<String>, i64, i64), about: &str) {
        let about = &about[..about.floor_char_boundary(200)];
        assert!(seen.status < 500, "{about}: {}", seen.text);
        let code = Code::from_text(code).unwrap_or_else(|| panic!("{code} is no code"));
        assert_refused(&seen, code, about);
        assert_eq!(&self.server.effects().await, before, "{about}");
        self.good_call().await;
    }

    async fn good_call(&self) {
        let seen = self
            .bot
            .call("site-get", json!({"site": self.server.site}))
            .await;
        assert_eq!(seen.code(), "ok", "{}", seen.text);
    }

    /// The same through MCP: an error of the protocol or of the tool, never a result and never our fault.
    async fn check_mcp(&self, arguments: &str, tool: &str, before: &(Vec<String>, i64, i64)) {
        let tool = tool.replace('-', "_");
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let seen = self.bot.mcp(message).await;
        let about = &arguments[..arguments.floor_char_boundary(200)];
        let refused = !seen.body["error"].is_null() || seen.body["result"]["isError"] == true;
        assert!(
            seen.status < 500 && refused,
            "{about}: {} {}",
            seen.status,
            seen.text
        );
        assert_eq!(&self.server.effects().await, before, "{about}");
    }

    /// Arguments of a call, at both doors.
    async fn run(&self, cases: Vec<Case>) {
        for case in cases {
            let before = self.server.effects().await;
            let arguments = self.filled(&case.text);
            let body = format!(r#"{{"arguments":{arguments}}}"#);
            let seen = self.bot.send(&case.tool, body.clone()).await;
            if case.code == "ok" {
                assert_eq!(seen.code(), "ok", "{arguments}: {}", seen.text);
                continue;
            }
            self.check(seen, &case.code, &before, &body).await;
            self.check_mcp(&arguments, &case.tool, &before).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn family_1_broken_json() {
    let scene = Scene::set().await;
    let before = scene.server.effects().await;
    for case in table(include_str!("../data/1-broken-json.json"), 50) {
        let bytes = match case.hex.is_empty() {
            true => scene.filled(&case.text).into_bytes(),
            false => data_encoding::HEXLOWER_PERMISSIVE
                .decode(case.hex.as_bytes())
                .unwrap(),
        };
        let about = String::from_utf8_lossy(&bytes).into_owned();
        let seen = scene.bot.send(&case.tool, bytes.clone()).await;
        scene.check(seen, &case.code, &before, &about).await;
        let seen = scene.bot.mcp(bytes).await;
        assert_eq!(seen.status, 400, "{about}: {}", seen.text);
        assert!(
            seen.body["error"]["code"].is_i64(),
            "{about}: {}",
            seen.text
        );
    }
    scene.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn family_2_keys_that_stand_twice() {
    let scene = Scene::set().await;
    scene
        .run(table(include_str!("../data/2-keys.json"), 20))
        .await;
    // At the top of the body, too [C80].
    let before = scene.server.effects().await;
    for body in [
        r#"{"arguments":{"site":"$SITE"},"arguments":{}}"#,
        r#"{"arguments":{"site":"$SITE"},"argument\u0073":{}}"#,
        r#"{"approvalId":"a","arguments":{"site":"$SITE"},"approvalId":null}"#,
        r#"{"arguments":{"site":"$SITE"},"":1}"#,
        r#"{"arguments":{"site":"$SITE"},"__proto__":{}}"#,
        r#"{"Arguments":{"site":"$SITE"}}"#,
    ] {
        let body = scene.filled(body);
        let seen = scene.bot.send("publish", body.clone()).await;
        scene.check(seen, "invalid_arguments", &before, &body).await;
    }
    scene.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn family_3_numbers() {
    let scene = Scene::set().await;
    scene
        .run(table(include_str!("../data/3-numbers.json"), 25))
        .await;
    scene.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn family_4_and_5_strings() {
    let scene = Scene::set().await;
    scene
        .run(table(include_str!("../data/4-strings.json"), 15))
        .await;
    // What is odd but legitimate is kept to the letter, and shown as what it is.
    for text in [
        "مرحبا بالعالم",
        "שלום עולם",
        "e\u{301}",
        "👩‍👩‍👧‍👦",
        "A\r\nB",
        "a\u{2028}b",
        "x".repeat(100_000).as_str(),
    ] {
        let before = json!({"site": scene.server.site, "node": scene.node, "body": text});
        scene.bot.ok("node-update", before).await;
        let node = scene
            .bot
            .ok(
                "node-get",
                json!({"site": scene.server.site, "node": scene.node}),
            )
            .await;
        assert_eq!(node["body"], text);
    }
    scene.server.done().await;
}

/// [C40, C42] Deceptive characters reach the person as marks, in the page and in its previews.
#[tokio::test(flavor = "multi_thread")]
async fn family_5_deceptive_characters_are_shown() {
    let scene = Scene::set().await;
    let ada = scene.server.as_person("ada").await;
    let title = "Pay\u{202e}moc.live\u{2066}\u{200b}\u{e0041}";
    let seen = scene
        .bot
        .call(
            "node-update",
            json!({"site": scene.server.site, "node": scene.node, "title": title}),
        )
        .await;
    assert_eq!(seen.code(), "ok", "{}", seen.text);
    let body = json!({"arguments": {"site": scene.server.site}, "reason": format!("Approved by legal.{title}")});
    let asked = scene.bot.send("publish", body.to_string()).await;
    let id = asked.body["approvalId"].as_str().unwrap();
    let page = ada.get(&format!("/approvals/{id}")).await;
    let body = &page.text[page.text.find("<body").unwrap()..];
    let shown = body.split("<script").next().unwrap();
    for hidden in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{e0041}'] {
        assert!(
            !shown.contains(hidden),
            "U+{:04X} is on the page as itself",
            hidden as u32
        );
    }
    assert!(shown.contains("202E"), "and as a mark");
    scene.server.done().await;
}

/// Family 6 on the pages that the server renders [C44, C45]: inert wherever an agent can put it.
#[tokio::test(flavor = "multi_thread")]
async fn family_6_markup_is_inert() {
    let scene = Scene::set().await;
    let ada = scene.server.as_person("ada").await;
    let hostile: Vec<String> = serde_json::from_str(include_str!("../data/6-markup.json")).unwrap();
    assert!(hostile.len() >= 20);
    for text in &hostile {
        let title: String = text.chars().filter(|c| !c.is_control()).take(150).collect();
        let change = json!({"site": scene.server.site, "node": scene.node, "title": title, "body": text, "fields": {"description": text, "key": text}});
        scene.bot.ok("node-update", change).await;
        let body = json!({"arguments": {"site": scene.server.site}, "reason": text});
        let asked = scene.bot.send("publish", body.to_string()).await;
        let id = asked.body["approvalId"]
            .as_str()
            .unwrap_or_else(|| panic!("{}", asked.text))
            .to_owned();
        let node = &scene.node;
        for path in [
            format!("/approvals/{id}"),
            "/approvals".into(),
            "/sites/bakery".into(),
            format!("/sites/bakery/nodes/{node}"),
            format!("/preview/approvals/{id}/{node}/after"),
            format!("/preview/sites/bakery/{node}"),
        ] {
            let page = ada.get(&path).await;
            assert_eq!(page.status, 200, "{path} with {text}");
            assert_inert(&page, &path, text);
        }
        // In an address, where an error page could repeat it.
        let escaped: String = url::form_urlencoded::byte_serialize(text.as_bytes())
            .collect::<String>()
            .replace('+', "%20");
        for path in [
            format!("/approvals/{escaped}"),
            format!("/sites/{escaped}"),
            format!("/approvals?text={escaped}&notice={escaped}"),
            format!("/live/{escaped}/"),
        ] {
            let page = ada.get(&path).await;
            assert!(page.status < 500, "{path}");
            assert_inert(&page, &path, text);
        }
        let seen = scene.bot.call(&escaped, json!({})).await;
        assert!(
            seen.header("content-type").starts_with("application/json"),
            "{escaped}"
        );
        ada.deny(&scene.server.site, &id).await;
    }
    scene.server.done().await;
}

/// Every script of the page carries the page's nonce, and no element of the hostile text became one.
#[track_caller]
fn assert_inert(page: &Seen, path: &str, text: &str) {
    let mut page = page.clone();
    // What stands in the title is judged by a test of its own.
    if let (Some(start), Some(end)) = (page.text.find("<title>"), page.text.rfind("</title>")) {
        page.text.replace_range(start..end, "");
    }
    let policy = page.header("content-security-policy");
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    for (at, _) in page.text.match_indices("<script") {
        let tag = &page.text[at..at + page.text[at..].find('>').unwrap()];
        let ours = nonce.is_some_and(|nonce| tag.contains(&format!("nonce=\"{nonce}\"")));
        let around = &page.text[page.text.floor_char_boundary(at.saturating_sub(200))
            ..page.text.floor_char_boundary(at + 60)];
        assert!(ours, "{path}: {tag} from {text} in {around}");
    }
    let lower = page.text.to_lowercase();
    for mark in [
        "<svg onload",
        "<img src=x",
        "<iframe src=",
        "<svg/onload",
        "<body onload",
        "<math>",
        "<base",
        "href=\"javascript:",
        "<style>@import",
    ] {
        assert!(!lower.contains(mark), "{path}: {mark} from {text}");
    }
}

/// [A27, C45] A title is left by what looks like its end: a page of ours would then hold whatever the address says.
#[tokio::test(flavor = "multi_thread")]
async fn family_6_a_title_cannot_be_left() {
    let scene = Scene::set().await;
    let ada = scene.server.as_person("ada").await;
    let hostile = "</title><meta http-equiv=refresh content=0;url=//evil.example>";
    let change = json!({"site": scene.server.site, "node": scene.node, "title": hostile});
    scene.bot.ok("node-update", change).await;
    let escaped: String = url::form_urlencoded::byte_serialize(hostile.as_bytes()).collect();
    for path in [
        format!("/sites/{escaped}"),
        format!("/sites/bakery/nodes/{}", scene.node),
    ] {
        let page = ada.get(&path).await;
        assert!(
            !page.text.contains("<meta http-equiv=refresh"),
            "{path}: {}",
            page.text
        );
    }
    scene.server.done().await;
}

/// Family 7 [C88]: bodies made to cost much. Each is refused while it is read.
#[tokio::test(flavor = "multi_thread")]
async fn family_7_structure_bombs() {
    let scene = Scene::set().await;
    let before = scene.server.effects().await;
    let site = scene.server.site.as_str();
    let keys: String = (0..100_000).map(|at| format!("\"k{at}\":1,")).collect();
    let few_keys: String = (0..65).map(|at| format!("\"k{at}\":1,")).collect();
    let bombs = [
        (
            "payload_too_large",
            format!(r#"{{"arguments":{{"site":"{}"}}}}"#, "x".repeat(300_000)),
        ),
        ("payload_too_large", "x".repeat(5 * 1024 * 1024)),
        ("payload_too_large", format!("{{{keys}\"z\":1}}")),
        (
            "invalid_arguments",
            format!(r#"{{"arguments":{{{few_keys}"site":"{site}"}}}}"#),
        ),
        ("invalid_arguments", "[".repeat(10_000)),
        (
            "invalid_arguments",
            format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        ),
        ("invalid_arguments", r#"{"a":"#.repeat(10_000)),
        (
            "invalid_arguments",
            format!(
                r#"{{"arguments":{{"fields":{}1{}}}}}"#,
                "[".repeat(40),
                "]".repeat(40)
            ),
        ),
        (
            "invalid_arguments",
            format!("[{}]", "{},".repeat(1000).trim_end_matches(',')),
        ),
    ];
    for (code, bomb) in bombs {
        let about: String = bomb.chars().take(60).collect();
        let seen = scene.bot.send("publish", bomb.clone()).await;
        scene.check(seen, code, &before, &about).await;
        // Refused by its announced length, before it is sent: no HTTP library likes that.
        let raw = Raw::new("POST", "/mcp")
            .header("host", scene.server.host())
            .header("content-type", "application/json");
        let raw = raw
            .header("accept", "application/json, text/event-stream")
            .header("authorization", &format!("Bearer {}", scene.bot.key));
        let seen = raw.body(bomb).send(&scene.server).await;
        assert!(
            [400, 413].contains(&seen.status),
            "{about}: {} {}",
            seen.status,
            seen.text
        );
    }
    scene.server.done().await;
}

/// Family 7 [C88]: bodies that do not end, or not where they said.
#[tokio::test(flavor = "multi_thread")]
async fn family_7_endless_and_broken_bodies() {
    let scene = Scene::set().await;
    let before = scene.server.effects().await;
    let ada = scene.server.as_person("ada").await;
    for path in [
        "/tools/publish",
        "/mcp",
        "/login",
        "/_fn/viewer",
        "/api/sites/x/approvals/y/approve",
    ] {
        let (as_agent, kind) = (
            path == "/mcp" || path.starts_with("/tools"),
            if path == "/login" {
                "application/x-www-form-urlencoded"
            } else {
                "application/json"
            },
        );
        let request = || {
            let request = Raw::new("POST", path)
                .header("host", scene.server.host())
                .header("content-type", kind)
                .header("accept", "application/json, text/event-stream");
            match as_agent {
                true => request.header("authorization", &format!("Bearer {}", scene.bot.key)),
                false => request
                    .header("origin", &scene.server.origin)
                    .header("cookie", &ada.cookie()),
            }
        };
        let endless = request().send_endlessly(&scene.server, &[b' '; 8192]).await;
        assert_refused(&endless, Code::PayloadTooLarge, path);
        let announced = request()
            .header("content-length", "9999999999")
            .send_and_hang_up(&scene.server, b"{")
            .await;
        assert!(
            announced.status == 0 || (400..500).contains(&announced.status),
            "{path}: {} {}",
            announced.status,
            announced.text
        );
        let cut = request()
            .header("content-length", "100")
            .send_and_hang_up(&scene.server, b"{\"arguments\":")
            .await;
        assert!(
            cut.status == 0 || (400..500).contains(&cut.status),
            "{path}: {} {}",
            cut.status,
            cut.text
        );
        let bad_chunk = request()
            .header("transfer-encoding", "chunked")
            .send_and_hang_up(&scene.server, b"zz\r\n{}\r\n0\r\n\r\n")
            .await;
        assert!(
            bad_chunk.status == 0 || (400..500).contains(&bad_chunk.status),
            "{path}: {} {}",
            bad_chunk.status,
            bad_chunk.text
        );
    }
    assert_eq!(scene.server.effects().await, before);
    scene.good_call().await;
    scene.server.done().await;
}

/// Family 9: headers that say something else than the body, and requests that two readers would cut differently.
#[tokio::test(flavor = "multi_thread")]
async fn family_9_the_http_envelope() {
    let scene = Scene::set().await;
    let before = scene.server.effects().await;
    let site = scene.server.site.as_str();
    let body = json!({"arguments": {"site": site}}).to_string();
    let to = |path: &str| {
        let request = Raw::new("POST", path).header("host", scene.server.host());
        request.header("authorization", &format!("Bearer {}", scene.bot.key))
    };
    // gzip is not undone: the bytes are not JSON.
    let gzip = data_encoding::HEXLOWER
        .decode(b"1f8b0800000000000003ab56050043bfa6a302000000")
        .unwrap();
    let seen = to("/tools/publish")
        .header("content-encoding", "gzip")
        .body(gzip)
        .send(&scene.server)
        .await;
    scene.check(seen, "malformed", &before, "gzip").await;
    for path in [
        "/tools/",
        "/tools/publish/",
        "/tools//publish",
        "/TOOLS/publish",
        "/tools/publish%00",
        "/tools/%2e%2e/api/sites",
        "/tools/..%2fpublish",
        "/tools/publish;x=1",
        "/tools/PUBLISH",
        "/tools/site_publish",
        "/tools/publish%20",
    ] {
        let seen = to(path).body(body.clone()).send(&scene.server).await;
        assert!(
            [403, 404, 405].contains(&seen.status),
            "{path}: {} {}",
            seen.status,
            seen.text
        );
        assert_eq!(scene.server.effects().await, before, "{path}");
    }
    for method in [
        "GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "publish",
    ] {
        let request = Raw::new(method, "/tools/publish").header("host", scene.server.host());
        let request = request
            .header("authorization", &format!("Bearer {}", scene.bot.key))
            .header("x-http-method-override", "POST");
        let seen = request.body(body.clone()).send(&scene.server).await;
        assert!(
            [400, 405].contains(&seen.status),
            "{method}: {} {}",
            seen.status,
            seen.text
        );
    }
    // Two lengths, or a length and chunks: refused, or the connection ends after one answer; never a second request.
    let hidden = format!(
        "POST /tools/publish HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
        scene.server.host(),
        scene.bot.key,
        body.len()
    );
    let both = to("/tools/site-list")
        .header("content-length", "4")
        .header("transfer-encoding", "chunked");
    let _ = both
        .send_and_hang_up(
            &scene.server,
            format!("2\r\n{{}}\r\n0\r\n\r\n{hidden}").as_bytes(),
        )
        .await;
    let two = to("/tools/site-list")
        .header("content-length", "2")
        .header("content-length", "3");
    let seen = two
        .send_and_hang_up(&scene.server, format!("{{}}{hidden}").as_bytes())
        .await;
    assert_ne!(seen.status, 202);
    assert_eq!(
        scene.server.effects().await,
        before,
        "a smuggled call was run"
    );
    // The body is what counts, whatever it is called.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-7",
        "",
    ] {
        let seen = to("/tools/site-list")
            .header("content-type", kind)
            .body("{}")
            .send(&scene.server)
            .await;
        assert!(
            seen.status == 200 || seen.status == 415,
            "{kind}: {}",
            seen.text
        );
    }
    scene.good_call().await;
    scene.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn family_10_identifiers() {
    let scene = Scene::set().await;
    let before = scene.server.effects().await;
    let mut ids: Vec<String> =
        serde_json::from_str(include_str!("../data/10-identifiers.json")).unwrap();
    assert!(ids.len() >= 20);
    ids.push("a".repeat(10_000));
    ids.push(scene.server.site.as_str().to_uppercase());
    ids.push(format!("{{{}}}", scene.server.site));
    ids.push(format!(" {} ", scene.server.site));
    ids.push(scene.node.clone());
    let ada = scene.server.as_person("ada").await;
    for id in &ids {
        let is_slug = id == SLUG;
        let missing = if id.contains('\0') {
            "invalid_arguments"
        } else {
            "not_found"
        };
        for tool in ["site-get", "publish", "delete", "node-list"] {
            let seen = scene.bot.call(tool, json!({"site": id})).await;
            scene
                .check(seen, missing, &before, &format!("{tool} {id:?}"))
                .await;
        }
        let seen = scene
            .bot
            .call("node-get", json!({"site": scene.server.site, "node": id}))
            .await;
        if *id != scene.node {
            scene
                .check(seen, missing, &before, &format!("node {id:?}"))
                .await;
        }
        let seen = scene
            .bot
            .call_with(id, "publish", json!({"site": scene.server.site}))
            .await;
        scene
            .check(
                seen,
                "approval_not_found",
                &before,
                &format!("approval {id:?}"),
            )
            .await;
        let escaped: String = url::form_urlencoded::byte_serialize(id.as_bytes())
            .collect::<String>()
            .replace('+', "%20");
        for path in [
            format!("/api/sites/{escaped}/approvals"),
            format!("/api/sites/{}/approvals/{escaped}", scene.server.site),
            format!("/approvals/{escaped}"),
            format!("/sites/{escaped}"),
            format!("/sites/bakery/nodes/{escaped}"),
        ] {
            let seen = ada.get(&path).await;
            let fine = [404, 414, 431].contains(&seen.status)
                || id.is_empty()
                || is_slug
                || ([".", ".."].contains(&id.as_str()))
                || path.ends_with(&scene.node);
            assert!(fine, "{path}: {}", seen.status);
        }
    }
    scene.server.done().await;
}

/// Family 11 [C02]: an approval id that does not fit. The record stays as it was.
#[tokio::test(flavor = "multi_thread")]
async fn family_11_approval_ids_misused() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let ada = server.as_person("ada").await;
    let publish = json!({"site": server.site});
    let id = bot.ask("publish", publish.clone()).await;
    let pending = bot.call_with(&id, "publish", publish.clone()).await;
    assert_eq!(
        (pending.status, &pending.body["approved"]),
        (202, &json!(false))
    );
    ada.approve(&server.site, &id).await;
    let before = server.effects().await;
    let misuses = [
        ("delete", publish.clone(), "approval_mismatch"),
        (
            "rollback",
            json!({"site": server.site, "version": 1}),
            "approval_mismatch",
        ),
        (
            "publish",
            json!({"site": "a".repeat(26)}),
            "approval_mismatch",
        ),
        (
            "publish",
            json!({"site": server.site, "force": true}),
            "invalid_arguments",
        ),
        (
            "publish",
            json!({"site": [server.site]}),
            "invalid_arguments",
        ),
        ("publish", json!({}), "invalid_arguments"),
        ("site-get", publish.clone(), "approval_mismatch"),
        (
            "node-update",
            json!({"site": server.site, "node": scene.node, "body": "x"}),
            "approval_mismatch",
        ),
        ("no-such-tool", publish.clone(), "unknown_tool"),
    ];
    for (tool, arguments, code) in misuses {
        let seen = bot.call_with(&id, tool, arguments.clone()).await;
        scene
            .check(seen, code, &before, &format!("{tool} {arguments}"))
            .await;
    }
    for odd in [
        format!(" {id}"),
        id.to_uppercase(),
        format!("{id}\u{0}"),
        format!("{id},{id}"),
        String::new(),
    ] {
        let seen = bot.call_with(&odd, "publish", publish.clone()).await;
        scene.check(seen, "approval_not_found", &before, &odd).await;
    }
    assert_eq!(ada.record(&server.site, &id).await["status"], "approved");
    // [family 12] Thirty-two at once: one runs, the others are told what it did.
    let tries: Vec<_> = (0..32)
        .map(|_| {
            let (bot, id, publish) = (bot.clone(), id.clone(), publish.clone());
            tokio::spawn(async move { bot.call_with(&id, "publish", publish).await })
        })
        .collect();
    let mut fresh = 0;
    for one in tries {
        let seen = one.await.unwrap();
        assert_eq!(seen.code(), "ok", "{}", seen.text);
        fresh += i32::from(seen.body["replayed"] == false);
    }
    assert_eq!(fresh, 1);
    assert_eq!(
        server
            .database
            .number("select count(*) from versions")
            .await,
        1
    );
    scene.server.done().await;
}

/// Family 12: a hundred equal calls at once file one request [C53]; it survives a restart, and so does its result [C09].
#[tokio::test(flavor = "multi_thread")]
async fn family_12_repetition_and_restart() {
    let scene = Scene::set().await;
    let (site, bot) = (scene.server.site.clone(), scene.bot.clone());
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let (bot, site) = (bot.clone(), site.clone());
            tokio::spawn(async move { bot.ask("publish", json!({"site": site})).await })
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    for call in calls {
        ids.insert(call.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
    let rows = "select count(*) from approvals";
    assert_eq!(scene.server.database.number(rows).await, 1);
    let id = ids.first().unwrap();
    let ada = scene.server.as_person("ada").await;
    ada.approve(&site, id).await;

    let server = scene.server.restart().await;
    let bot = AgentClient::new(&server, bot.key);
    let ran = bot.call_with(id, "publish", json!({"site": site})).await;
    assert_eq!(
        (ran.code(), &ran.body["replayed"]),
        ("ok", &json!(false)),
        "{}",
        ran.text
    );
    let server = server.restart().await;
    let bot = AgentClient::new(&server, bot.key);
    let again = bot.call_with(id, "publish", json!({"site": site})).await;
    assert_eq!(
        (&again.body["replayed"], &again.body["data"]),
        (&json!(true), &ran.body["data"])
    );
    server.done().await;
}

/// Family 15: requests that are well formed and make no sense.
#[tokio::test(flavor = "multi_thread")]
async fn family_15_business_nonsense() {
    let scene = Scene::set().await;
    let (server, bot) = (&scene.server, &scene.bot);
    let ada = server.as_person("ada").await;
    let account = server.account("ada").await;
    let empty =
        cloudhal_engine::sites::create_site(server.engine(), "empty", "Empty", Some(&account))
            .await
            .unwrap();
    let builder = server.agent_for("builder", "ada", &[&empty], &[]).await;
    let before = server.effects().await;
    let seen = builder.call("publish", json!({"site": empty})).await;
    scene
        .check(seen, "conflict", &before, "publish an empty site")
        .await;
    for version in [1, 2, 99, limits_of_integers()] {
        let seen = bot
            .call("rollback", json!({"site": server.site, "version": version}))
            .await;
        let code = seen.code().to_owned();
        assert!(
            ["not_found", "conflict"].contains(&code.as_str()),
            "{}",
            seen.text
        );
        scene
            .check(seen, &code, &before, "roll back to nothing")
            .await;
    }
    scene
        .run(table(include_str!("../data/15-nonsense.json"), 10))
        .await;

    let id = bot.ask("publish", json!({"site": server.site})).await;
    ada.approve(&server.site, &id).await;
    bot.call_with(&id, "publish", json!({"site": server.site}))
        .await
        .data();
    let before = server.effects().await;
    let seen = bot
        .call("rollback", json!({"site": server.site, "version": 1}))
        .await;
    scene
        .check(seen, "conflict", &before, "roll back to what is live")
        .await;
    let twice = ["one", "two"].map(|_| json!({"site": server.site, "node": scene.node}));
    let id = bot.ask("delete", twice[0].clone()).await;
    ada.approve(&server.site, &id).await;
    bot.call_with(&id, "delete", twice[1].clone()).await.data();
    let before = server.effects().await;
    let seen = bot.call("delete", twice[0].clone()).await;
    assert_refused(&seen, Code::NotFound, "delete twice");
    assert_eq!(server.effects().await, before);
    scene.server.done().await;
}

fn limits_of_integers() -> i64 {
    (1 << 53) - 1
}
