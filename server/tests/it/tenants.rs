//! Nothing crosses from one site to another [P7, C32, C33]: what is foreign answers exactly as what was never there.

use crate::{reach, support::*};
use reqwest::Method;

/// [C32, C33]
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_site_sees_what_nobody_sees() {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    let zoe_account = server.account("zoe").await;
    server.add_site("cinema", &zoe_account).await;
    let zoe = server.as_person("zoe").await;
    let id = bot.ask("publish", json!({"site": server.site})).await;
    let node = bot.node(&server.site, "visit").await;
    let (agent, key) = (server.agent_id("bot").await, bot.key[4..30].to_owned());
    let nowhere = "a".repeat(26);
    let before = server.everything().await;

    for route in reach::routes().iter().filter(|route| route.for_people) {
        let names_one = ["{site}", "{id}", "{slug}", "{node}", "{agent}", "{person}"]
            .iter()
            .any(|part| route.path.contains(part));
        if !names_one {
            continue;
        }
        let with = |site: &str, id: &str, slug: &str, node: &str| {
            let path = route.path.replace("{site}", site).replace("{id}", id);
            path.replace("{slug}", slug)
                .replace("{node}", node)
                .replace("{side}", "after")
                .replace("{person}", id)
                .replace(
                    "{agent}",
                    if site == server.site.as_str() {
                        &agent
                    } else {
                        id
                    },
                )
                .replace(
                    "{key}",
                    if site == server.site.as_str() {
                        &key
                    } else {
                        id
                    },
                )
        };
        let theirs = with(server.site.as_str(), &id, SLUG, &node);
        let unknown = with(&nowhere, &nowhere, "nowhere", &nowhere);
        let malformed = with("..%2f..", "A'--", "NO%20SUCH", "{x}");
        for method in &route.methods {
            let (method, is_json) = (method.to_uppercase(), route.path.starts_with("/api"));
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let send = async |path: &str| {
                let request = zoe.request(method.clone(), path);
                let slug = if path == theirs { SLUG } else { "nowhere" };
                let fields = [
                    ("decision", "approve"),
                    ("seenDigest", "sha256:x"),
                    ("confirm", slug),
                    ("stateHash", "sha256:x"),
                    ("version", "1"),
                ];
                let request = match (&method, is_json) {
                    (&Method::POST, true) if route.path.ends_with("/members") => {
                        request.json(&json!({"email": "zoe@example.com", "role": "owner"}))
                    }
                    (&Method::POST, true) if !route.path.contains("{id}") => {
                        request.json(&json!({}))
                    }
                    (&Method::PATCH, _) => request.json(&json!({"disabled": true})),
                    (&Method::POST, true) => request.json(&json!({"seenDigest": "sha256:x"})),
                    (&Method::PUT, _) if route.path.ends_with("/policy") => {
                        request.json(&json!({}))
                    }
                    (&Method::PUT, _) => request.json(&json!({"role": "viewer"})),
                    (&Method::POST, false) => request.form(&fields),
                    _ => request,
                };
                Seen::of(request).await
            };
            let name = format!("{method} {}", route.path);
            let (foreign, absent, odd) = (
                send(&theirs).await,
                send(&unknown).await,
                send(&malformed).await,
            );
            assert_alike(&foreign, &absent, &theirs, &unknown, &name);
            assert_eq!(
                odd.status, foreign.status,
                "{name}: a malformed id is told apart"
            );
            if is_json {
                // Whoever keeps no people is told so, whomever they name.
                let code = match route.path.starts_with("/api/people") {
                    true => Code::Forbidden,
                    false => Code::NotFound,
                };
                assert_refused(&foreign, code, &name);
                assert_eq!(odd.alike(), foreign.alike(), "{name}");
            }
            for secret in ["Visit us", "bot", id.as_str()] {
                let echoed = foreign.text.replace(&theirs, "").replace(&id, "");
                assert!(
                    secret == id || !echoed.contains(&format!(">{secret}<")),
                    "{name} tells {secret}"
                );
            }
        }
    }
    assert_eq!(server.everything().await, before);
    server.done().await;
}

/// Equal but for the address that was asked for, which a page may repeat, and the nonce, which is never the same.
#[track_caller]
fn assert_alike(foreign: &Seen, absent: &Seen, theirs: &str, unknown: &str, name: &str) {
    let plain = |seen: &Seen, path: &str| {
        let (status, headers, text) = seen.alike();
        let nonce = headers
            .iter()
            .find(|(name, _)| name == "content-security-policy");
        let nonce =
            nonce.and_then(|(_, policy)| policy.split("'nonce-").nth(1)?.split('\'').next());
        let mut last = path
            .rsplit('/')
            .find(|part| part.len() > 6 || *part == SLUG)
            .unwrap_or(path)
            .to_owned();
        if ["publish", "rollback", "delete", "settings"].contains(&last.as_str()) {
            last = path.split('/').nth(2).unwrap().to_owned();
        }
        let id = path
            .split('/')
            .nth(if path.starts_with("/preview") { 3 } else { 2 })
            .unwrap_or("")
            .to_owned();
        let clean = |text: &str| {
            let text = nonce.map_or(text.to_owned(), |nonce| text.replace(nonce, "NONCE"));
            text.replace(path, "PATH")
                .replace(&last, "ID")
                .replace(&id, "ID")
        };
        let headers: Vec<(String, String)> = headers
            .iter()
            .filter(|(name, _)| name != "content-length")
            .map(|(name, value)| (name.clone(), clean(value)))
            .collect();
        (status, headers, clean(text))
    };
    assert_eq!(
        plain(foreign, theirs),
        plain(absent, unknown),
        "{name}: foreign and unknown can be told apart"
    );
}

/// [C32] What only reads through a server function, and lists that must not hold what is foreign.
#[tokio::test(flavor = "multi_thread")]
async fn server_functions_and_lists_keep_to_ones_own_sites() {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    let zoe_account = server.account("zoe").await;
    server.add_site("cinema", &zoe_account).await;
    let (zoe, ada) = (server.as_person("zoe").await, server.as_person("ada").await);
    let id = bot.ask("publish", json!({"site": server.site})).await;
    let node = bot.node(&server.site, "visit").await;
    let nowhere = "a".repeat(26);
    let one = |id: &str, slug: &str, node: &str| json!({"id": id, "slug": slug, "node": node, "cursor": null});
    for function in ["approval", "site", "settings", "node", "versions"] {
        let path = format!("/_fn/{function}");
        let foreign = zoe.post_json(&path, one(&id, SLUG, &node)).await;
        let absent = zoe
            .post_json(&path, one(&nowhere, "nowhere", &nowhere))
            .await;
        assert_eq!(foreign.status, 404, "{function}: {}", foreign.text);
        assert_eq!(foreign.alike(), absent.alike(), "{function}");
        assert_eq!(
            ada.post_json(&path, one(&id, SLUG, &node)).await.status,
            200,
            "{function}"
        );
    }
    let query = json!({"query": {"tab": "all", "text": "", "site": "", "agent": "", "tool": "", "cursor": null}, "site": null, "cursor": null});
    for function in ["inbox", "sites", "agents", "viewer"] {
        let path = format!("/_fn/{function}");
        let theirs = ada.post_json(&path, query.clone()).await;
        let seen = zoe.post_json(&path, query.clone()).await;
        assert_eq!(
            (theirs.status, seen.status),
            (200, 200),
            "{function}: {} {}",
            theirs.text,
            seen.text
        );
        for secret in [server.site.as_str(), id.as_str(), "bakery"] {
            assert!(
                !seen.text.contains(secret),
                "{function} tells {secret}: {}",
                seen.text
            );
        }
    }
    let foreign = zoe
        .post_json("/_fn/journal", json!({"site": SLUG, "cursor": null}))
        .await;
    let absent = zoe
        .post_json("/_fn/journal", json!({"site": "nowhere", "cursor": null}))
        .await;
    assert_eq!(foreign.alike(), absent.alike());
    assert!(!zoe.get("/api/sites").await.text.contains("bakery"));
    assert!(zoe.get("/api/sites").await.text.contains("cinema"));
    server.done().await;
}

/// [C33] An agent of one site on another: as if it were not there, whatever it tries.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_another_site_finds_nothing() {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    let zoe = server.account("zoe").await;
    let cinema = server.add_site("cinema", &zoe).await;
    let usher = server.agent_for("usher", "zoe", &[&cinema], &[]).await;
    let node = bot.node(&server.site, "visit").await;
    let own_node = usher.node(&cinema, "visit").await;
    let before = server.everything().await;
    let nowhere = "a".repeat(26);
    for tool in usher.get("/tools").await.body["tools"].as_array().unwrap() {
        let needs_site = tool["inputSchema"]["properties"]["site"].is_object();
        if !needs_site {
            continue;
        }
        let name = tool["id"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        let call = async |site: &str, node: &str| {
            let all = json!({
                "site": site, "node": node, "version": 1, "kind": "page", "title": "x", "slug": "x-y", "query": "x",
                "from": 1, "to": 1, "parent": node, "text": "x",
            });
            let arguments: Map<String, Value> = all
                .as_object()
                .unwrap()
                .clone()
                .into_iter()
                .filter(|(name, _)| properties.contains_key(name))
                .collect();
            usher.call(name, arguments.into()).await
        };
        let foreign = call(server.site.as_str(), &node).await;
        let absent = call(&nowhere, &nowhere).await;
        assert_refused(&foreign, Code::NotFound, name);
        assert_eq!(foreign.alike(), absent.alike(), "{name}");
        // A foreign node under one's own site.
        if properties.contains_key("node") {
            let smuggled = call(cinema.as_str(), &node).await;
            assert_refused(&smuggled, Code::NotFound, name);
        }
    }
    assert_eq!(server.everything().await, before);
    usher
        .ok("node-get", json!({"site": cinema, "node": own_node}))
        .await;
    server.done().await;
}
