//! What every page carries: its policy, and the headers that keep other pages out; and how published addresses behave.

use crate::support::*;

fn directive<'p>(policy: &'p str, name: &str) -> Option<&'p str> {
    let found = policy
        .split(';')
        .map(str::trim)
        .find(|d| d.split(' ').next() == Some(name))?;
    Some(found[name.len()..].trim())
}

async fn published() -> (TestServer, AgentClient, PersonClient, String) {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let id = bot.ask("publish", json!({"site": server.site})).await;
    ada.approve(&server.site, &id).await;
    assert_eq!(
        bot.call_with(&id, "publish", json!({"site": server.site}))
            .await
            .code(),
        "ok"
    );
    let node = bot.node(&server.site, "visit").await;
    (server, bot, ada, node)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_its_headers() {
    let (server, bot, ada, node) = published().await;
    let id = bot.ask("publish", json!({"site": server.site})).await;
    let anonymous = server.anonymous();
    let mut seen = vec![
        ("/tools", bot.get("/tools").await),
        ("/tools/x", bot.call("x", json!({})).await),
        ("/healthz", anonymous.get("/healthz").await),
        ("/live/bakery/", anonymous.get("/live/bakery/").await),
        ("/live/nowhere/", anonymous.get("/live/nowhere/").await),
        ("/openapi.json", anonymous.get("/openapi.json").await),
        ("/mcp", anonymous.get("/mcp").await),
        (
            "host",
            Raw::new("GET", "/")
                .header("host", "evil.example")
                .send(&server)
                .await,
        ),
    ];
    let approval = format!("/approvals/{id}");
    let preview = format!("/preview/sites/bakery/{node}");
    for path in [
        "/",
        "/approvals",
        &approval,
        "/sites",
        "/sites/bakery",
        "/login",
        "/nothing",
        "/api/sites",
        "/preview/sites/bakery/x",
        &preview,
    ] {
        seen.push(("ada", ada.get(path).await));
        seen.push(("nobody", anonymous.get(path).await));
    }
    for (about, seen) in seen {
        let about = format!("{about}: {}", &seen.text[..seen.text.len().min(80)]);
        assert_eq!(seen.header("x-content-type-options"), "nosniff", "{about}");
        assert_eq!(seen.header("referrer-policy"), "same-origin", "{about}");
        assert_eq!(
            seen.header("cross-origin-opener-policy"),
            "same-origin",
            "{about}"
        );
        assert!(
            seen.header("permissions-policy").contains("camera=()"),
            "{about}"
        );
        assert_eq!(
            seen.header("strict-transport-security"),
            "",
            "{about}: on plain http"
        );
        let policy = seen.header("content-security-policy");
        assert_eq!(
            directive(policy, "default-src"),
            Some("'none'"),
            "{about}: {policy}"
        );
        assert!(
            directive(policy, "frame-ancestors").is_some(),
            "{about}: {policy}"
        );
        assert!(
            seen.headers
                .get_all("content-security-policy")
                .iter()
                .count()
                == 1,
            "{about}"
        );
    }
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_studio_runs_its_own_scripts_and_no_others() {
    let (server, bot, ada, _) = published().await;
    let id = bot.ask("publish", json!({"site": server.site})).await;
    let mut nonces = std::collections::BTreeSet::new();
    let approval = format!("/approvals/{id}");
    let pages = [
        approval.as_str(),
        "/approvals",
        "/sites/bakery",
        "/login",
        "/nothing",
        "/approvals",
    ];
    for path in pages {
        let page = ada.get(path).await;
        let policy = page.header("content-security-policy").to_owned();
        let scripts = directive(&policy, "script-src").unwrap();
        let nonce = scripts
            .split("'nonce-")
            .nth(1)
            .unwrap()
            .split('\'')
            .next()
            .unwrap()
            .to_owned();
        assert!(nonce.len() >= 16, "{nonce}");
        assert!(
            !scripts.contains("unsafe-inline") && !scripts.contains("'unsafe-eval'"),
            "{scripts}"
        );
        assert_eq!(directive(&policy, "frame-ancestors"), Some("'none'"));
        assert_eq!(directive(&policy, "form-action"), Some("'self'"));
        assert_eq!(directive(&policy, "base-uri"), Some("'none'"));
        assert_eq!(page.header("cache-control"), "no-store", "{path}");
        for (at, _) in page.text.match_indices("<script") {
            let tag = &page.text[at..at + page.text[at..].find('>').unwrap()];
            assert!(tag.contains(&format!("nonce=\"{nonce}\"")), "{path}: {tag}");
        }
        assert!(page.text.contains("<script"), "{path}");
        assert!(nonces.insert(nonce), "{path}: a nonce came twice");
    }
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_peoples_text_cannot_run_or_post() {
    let (server, bot, ada, node) = published().await;
    let hostile = "<script>alert(1)</script><form action=/approvals/x method=post><button>x</button></form><img src=x onerror=alert(1)>";
    bot.edit(&server.site, "visit", hostile).await;
    let asked = bot.ask("publish", json!({"site": server.site})).await;
    let live = server.anonymous().get("/live/bakery/visit/").await;
    let policy = live.header("content-security-policy");
    assert_eq!(directive(policy, "script-src"), Some("'none'"));
    assert_eq!(directive(policy, "form-action"), Some("'none'"));
    assert!(live.headers.get("set-cookie").is_none());
    let with_cookie = Seen::of(ada.request(reqwest::Method::GET, "/live/bakery/visit/")).await;
    assert_eq!(with_cookie.alike(), live.alike(), "no cookies are read");

    let draft = format!("/preview/sites/bakery/{node}");
    let sides = ["before", "after"].map(|side| format!("/preview/approvals/{asked}/{node}/{side}"));
    for path in [draft, sides[0].clone(), sides[1].clone()] {
        let framed = ada.get(&path).await;
        assert_eq!(framed.status, 200, "{path}");
        let policy = framed.header("content-security-policy");
        assert_eq!(directive(policy, "sandbox"), Some(""), "{policy}");
        assert_eq!(
            directive(policy, "script-src"),
            None,
            "default-src 'none' covers it: {policy}"
        );
        assert_eq!(directive(policy, "form-action"), Some("'none'"), "{policy}");
        assert_eq!(
            directive(policy, "frame-ancestors"),
            Some("'self'"),
            "{policy}"
        );
        for mark in ["<script", "<form", "onerror="] {
            assert!(!framed.text.contains(mark), "{path} has {mark}");
        }
    }
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn https_is_said_to_stay() {
    let setup = Setup {
        public_url: Some("https://hal.example".into()),
        ..Setup::default()
    };
    let server = TestServer::start_as(setup).await.unwrap();
    for path in ["/login", "/healthz", "/live/nowhere/", "/tools"] {
        let seen = server.anonymous().get(path).await;
        assert!(
            seen.header("strict-transport-security")
                .starts_with("max-age="),
            "{path}"
        );
    }
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn published_addresses() {
    let (server, _, _, _) = published().await;
    let get = async |path: &str| server.anonymous().get(path).await;
    for (path, to) in [
        ("/live/bakery", "/live/bakery/"),
        ("/live/bakery/visit", "/live/bakery/visit/"),
        ("/live/bakery/bread/rye", "/live/bakery/bread/rye/"),
    ] {
        let seen = get(path).await;
        assert_eq!((seen.status, seen.header("location")), (308, to));
    }
    for path in [
        "/live/bakery/",
        "/live/bakery/visit/",
        "/live/bakery/bread/",
        "/live/bakery/bread/rye/",
    ] {
        assert_eq!(get(path).await.status, 200, "{path}");
    }
    let odd = [
        "/live/nowhere/",
        "/live/bakery/nowhere/",
        "/live/bakery/..%2f..%2fetc%2fpasswd",
        "/live/%2e%2e%2f/",
        "/live/bakery/%00/",
        "/live/bakery/visit/visit/",
        "/live/BAKERY/",
        "/live/bakery/VISIT/",
        "/live/'%20or%201=1/",
        "/live/bakery/a.b",
    ];
    for path in odd {
        assert_eq!(get(path).await.status, 404, "{path}");
    }
    // A slug that would lead elsewhere as the head of an address.
    for path in [
        "/live//evil.example",
        "/live/%2Fevil.example",
        "/live/%5Cevil.example/x",
        "/live/bakery/%2F%2Fevil.example",
    ] {
        let seen = get(path).await;
        let to = seen.header("location");
        assert!(to.is_empty() || to.starts_with("/live/"), "{path} to {to}");
    }
    server.done().await;
}

/// Files with a digest in their address, and nothing beside them.
#[tokio::test(flavor = "multi_thread")]
async fn assets_are_served_and_nothing_else_is() {
    let server = TestServer::start().await;
    let get = async |path: &str| server.anonymous().get(path).await;
    let page = get("/login").await;
    let start = page.text.find("/assets/").unwrap();
    let sheet = &page.text[start..start + page.text[start..].find('"').unwrap()];
    let seen = get(sheet).await;
    assert_eq!(
        (seen.status, seen.header("content-type")),
        (200, "text/css; charset=utf-8")
    );
    assert!(seen.header("cache-control").contains("immutable"));
    for path in [
        "/assets/x/../../Cargo.toml",
        "/assets/x/secret",
        "/fonts/..%2flive.css",
        "/fonts/inter-OFL.txt",
        "/pkg/x/..%2f..%2fCargo.toml",
        "/pkg/x/nothing.js",
        "/_dev/events",
    ] {
        assert_ne!(get(path).await.status, 200, "{path}");
    }
    server.done().await;
}
