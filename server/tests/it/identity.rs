//! Who calls (family 13): one identical 401 for every way of not having a good key, and nothing else is ever believed.

use crate::support::*;
use cloudhal_domain::time::Timestamp;
use cloudhal_engine::agents::{self, NewAgent};

/// A request to an agents' door with these headers.
async fn ask(server: &TestServer, path: &str, headers: &[(&str, String)]) -> Seen {
    let method = if path == "/tools" { "GET" } else { "POST" };
    let mut request = Raw::new(method, path).header("host", server.host());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request.body("{}").send(server).await
}

/// [C26]
#[tokio::test(flavor = "multi_thread")]
async fn every_bad_key_gets_the_same_answer() {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let good = bot.key.clone();
    let revoked = server.as_agent("gone").await.key;
    agents::revoke_by_prefix(server.engine(), &revoked)
        .await
        .unwrap();
    let soon = NewAgent {
        name: "short-lived".into(),
        sites: vec![server.site.clone()],
        tools: Vec::new(),
        expires_at: Some(Timestamp(START_MS + 1000)),
    };
    let expired = server.agent_with("ada", soon).await.key;
    server.advance(Duration::from_secs(2));
    let mut swapped = good.clone();
    swapped.replace_range(4..30, &revoked[4..30]);

    let bearer = |key: &str| vec![("authorization", format!("Bearer {key}"))];
    let cookie = || ("cookie", ada.cookie());
    let mut bad: Vec<Vec<(&str, String)>> = vec![
        vec![],
        bearer(""),
        bearer("clh_"),
        bearer(&good[..good.len() - 1]),
        bearer(&format!("{good}a")),
        bearer(&good.to_uppercase()),
        bearer(&good.replace("clh_", "sk_")),
        bearer(&swapped),
        bearer(&revoked),
        bearer(&expired),
        bearer(&format!("{good} {good}")),
        bearer("' OR 1=1 --"),
        bearer(&"a".repeat(5000)),
        vec![("authorization", format!("Basic {good}"))],
        vec![("authorization", good.clone())],
        vec![("authorization", format!("Bearer: {good}"))],
        vec![("authorization", format!("Bearer\u{e9} {good}"))],
        [bearer(&good), bearer(&good)].concat(),
        [bearer(&revoked), bearer(&good)].concat(),
        [
            bearer(&good),
            vec![("authorization", "Basic YTpi".to_owned())],
        ]
        .concat(),
        vec![cookie()],
        [bearer(&revoked), vec![cookie()]].concat(),
        vec![("x-api-key", good.clone())],
        vec![("proxy-authorization", format!("Bearer {good}"))],
    ];
    // What a proxy of somebody else's would vouch for [C26].
    for name in [
        "x-forwarded-user",
        "x-user",
        "x-remote-user",
        "x-forwarded-email",
        "x-auth-request-user",
        "x-original-authorization",
        "forwarded",
    ] {
        bad.push(vec![(name, "ada@example.com".to_owned())]);
    }
    for path in ["/tools", "/tools/site-list", "/tools/no-such-tool", "/mcp"] {
        let none = ask(&server, path, &[]).await;
        assert_refused(&none, Code::Unauthorized, path);
        for headers in &bad {
            let seen = ask(&server, path, headers).await;
            assert_eq!(seen.alike(), none.alike(), "{path} with {headers:?}");
        }
        for query in [
            "?key=",
            "?access_token=",
            "?authorization=Bearer%20",
            "?api_key=",
        ] {
            let seen = ask(&server, &format!("{path}{query}{good}"), &[]).await;
            assert_ne!(seen.status, 200, "{path}{query}");
        }
    }
    let seen = server
        .anonymous()
        .get(&format!("/tools?access_token={good}"))
        .await;
    assert_refused(&seen, Code::Unauthorized, "a key in the query");
    server.done().await;
}

/// A good key beside a good cookie is an agent at the agents' doors, and nobody at the people's.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_and_a_cookie_together_add_nothing() {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let key = format!("Bearer {}", bot.key);
    let both = [
        ("authorization", key),
        ("cookie", ada.cookie()),
        ("x-forwarded-user", "ada".to_owned()),
    ];
    let seen = ask(&server, "/tools/publish", &both).await;
    assert_refused(&seen, Code::InvalidArguments, "read as the agent's call");
    let id = bot.ask("publish", json!({"site": server.site})).await;
    let record = ada.record(&server.site, &id).await;
    assert_eq!(record["requestedBy"]["kind"], "agent");

    let path = format!("/api/sites/{}/approvals/{id}/approve", server.site);
    let seen = Raw::new("POST", &path)
        .header("host", server.host())
        .header("origin", &server.origin)
        .header("sec-fetch-site", "same-origin")
        .header("cookie", &ada.cookie())
        .header("authorization", &format!("bearer {}", bot.key))
        .body(json!({"seenDigest": record["seenDigest"]}).to_string())
        .send(&server)
        .await;
    assert_refused(&seen, Code::AgentsNotAllowed, "the session does not help");
    server.done().await;
}

/// A caller is the agent, not the key; another agent, or the same one's approval under another key, is as good as unknown [C69].
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_belongs_to_its_caller() {
    let server = TestServer::start().await;
    let (bot, other) = (server.as_agent("bot").await, server.as_agent("other").await);
    let ada = server.as_person("ada").await;
    let publish = json!({"site": server.site});
    let id = bot.ask("publish", publish.clone()).await;
    ada.approve(&server.site, &id).await;
    let unknown = other
        .call_with(&"a".repeat(26), "publish", publish.clone())
        .await;
    let foreign = other.call_with(&id, "publish", publish.clone()).await;
    assert_refused(&unknown, Code::ApprovalNotFound, "unknown");
    assert_eq!(foreign.alike(), unknown.alike());
    // The agent's own, but asked at another door.
    let at_mcp = bot
        .mcp_call("publish", json!({"site": server.site, "approvalId": id}))
        .await;
    assert!(
        at_mcp.text.contains("approval_not_found"),
        "{}",
        at_mcp.text
    );
    for tool in ["approvals-get", "approvals-cancel", "approvals-resume"] {
        let seen = other.call(tool, json!({"approvalId": id})).await;
        let nothing = other
            .call(tool, json!({"approvalId": "a".repeat(26)}))
            .await;
        assert_eq!(seen.alike(), nothing.alike(), "{tool}");
    }
    assert_eq!(bot.call_with(&id, "publish", publish).await.code(), "ok");
    server.done().await;
}

/// [C39] A key that was revoked after the approval opens nothing any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_does_not_redeem() {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let id = bot.ask("publish", json!({"site": server.site})).await;
    ada.approve(&server.site, &id).await;
    agents::revoke_by_prefix(server.engine(), &bot.key)
        .await
        .unwrap();
    let seen = bot
        .call_with(&id, "publish", json!({"site": server.site}))
        .await;
    assert_refused(&seen, Code::Unauthorized, "revoked");
    assert_eq!(server.anonymous().get("/live/bakery/").await.status, 404);
    server.done().await;
}
