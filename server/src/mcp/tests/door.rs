//! What comes in at all, and in which shape every no goes out.

use super::*;

/// C11: a gated call in a batch, without an id or read in two ways is none.
#[tokio::test]
async fn a_body_that_is_no_single_message_does_nothing() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "Unread.").await;
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"publish","arguments":{arguments}}}}}"#
        )
    };
    let check = async |body: String, code: i64, id: Value| {
        let seen = demo.raw(body.clone()).await;
        assert_eq!(seen.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(seen.body["error"]["code"], code, "{body}: {}", seen.body);
        assert_eq!(seen.body["id"], id, "{body}");
    };
    check("{".into(), -32700, Value::Null).await;
    check(
        format!("[{}]", call(&json!({"site": site}).to_string())),
        -32600,
        Value::Null,
    )
    .await;
    check(
        call(&format!(r#"{{"site":"x","site":"{site}"}}"#)),
        -32602,
        json!(7),
    )
    .await;
    check(
        call(&format!(r#"{{"site":"x","s\u0069te":"{site}"}}"#)),
        -32602,
        json!(7),
    )
    .await;
    // Parameters of the wrong shape get as far as the protocol, and no further.
    for arguments in ["7", "[]", "\"x\""] {
        let seen = demo.raw(call(arguments)).await;
        assert_eq!(
            seen.body["error"]["code"], -32602,
            "{arguments}: {}",
            seen.body
        );
    }
    let seen = demo.raw(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    assert_eq!(seen.status, StatusCode::BAD_REQUEST);
    assert_eq!(seen.body["error"]["code"], -32600);
    let notified = call(&json!({"site": site}).to_string()).replace(r#""id":7,"#, "");
    let seen = demo.raw(notified).await;
    assert_eq!(seen.status, StatusCode::ACCEPTED);
    assert_eq!(waiting(&demo).await, 0);
}

#[tokio::test]
async fn what_comes_in_carries_its_caller_and_no_credential() {
    let demo = Demo::start().await;
    let request = demo
        .request()
        .header("authorization", demo.bearer())
        .header("cookie", "session=1")
        .body(Body::from(r#"{"id":1.0,"jsonrpc":"2.0","method":"ping"}"#));
    let Ok(admitted) = crate::mcp::admission::admit(&demo.app, request.unwrap()).await else {
        panic!("it has a good key")
    };
    assert!(!admitted.headers().contains_key("authorization"));
    assert!(!admitted.headers().contains_key("cookie"));
    let caller = admitted
        .extensions()
        .get::<cloudhal_engine::callers::Caller>()
        .unwrap();
    assert_eq!(caller.name(), "copy-editor");
    let body = to_bytes(admitted.into_body(), usize::MAX).await.unwrap();
    let seen: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(seen, json!({"id": 1, "jsonrpc": "2.0", "method": "ping"}));
}

#[tokio::test]
async fn whoever_waits_when_the_server_stops_is_told_to_ask_again() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "Stop.").await;
    let waits = demo
        .call(Era::Legacy, "publish", json!({"site": site}))
        .await;
    let arguments = json!({"approvalId": waits.structured()["approvalId"], "waitSeconds": 45});
    demo.stop.send(true).unwrap();
    for era in ERAS {
        let seen = demo.call(era, "approvals_get", arguments.clone()).await;
        assert_eq!(
            seen.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{}",
            seen.body
        );
        assert_eq!(seen.body["error"]["code"], "unavailable");
        assert_eq!(seen.body["error"]["retryable"], true);
    }
}

#[tokio::test]
async fn the_door_asks_for_a_key_and_says_how_to_get_in() {
    let demo = Demo::start().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let good = demo.bearer();
    let wrong = format!("{}x", demo.key);
    let cases: [(&str, Vec<(&str, &str)>); 6] = [
        ("no key", vec![]),
        ("unknown key", vec![("authorization", "Bearer clh_nobody")]),
        ("typing error", vec![("authorization", &wrong)]),
        ("another scheme", vec![("authorization", "Basic YTpi")]),
        (
            "two keys",
            vec![("authorization", &good), ("authorization", &good)],
        ),
        ("a cookie", vec![("cookie", "session=1")]),
    ];
    for (name, headers) in cases {
        let mut request = demo.request();
        for (header, value) in headers {
            request = request.header(header, value);
        }
        let seen = demo
            .send(request.body(Body::from(body.clone())).unwrap())
            .await;
        assert_eq!(seen.status, StatusCode::UNAUTHORIZED, "{name}");
        assert_eq!(seen.body["error"]["code"], "unauthorized", "{name}");
        let challenge = seen.headers["www-authenticate"].to_str().unwrap();
        assert_eq!(
            challenge,
            "Bearer resource_metadata=\"http://127.0.0.1:3000/.well-known/oauth-protected-resource\""
        );
    }
    let in_query = Request::post(format!("/mcp?key={0}&access_token={0}", demo.key))
        .header("host", "127.0.0.1:3000")
        .body(Body::from(body))
        .unwrap();
    assert_eq!(demo.send(in_query).await.status, StatusCode::UNAUTHORIZED);
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let request = Request::get(path)
            .header("host", "127.0.0.1:3000")
            .body(Body::empty())
            .unwrap();
        let seen = demo.send(request).await;
        assert_eq!(seen.body["resource"], "http://127.0.0.1:3000/mcp", "{path}");
        assert_eq!(seen.body["bearer_methods_supported"], json!(["header"]));
    }
}

#[tokio::test]
async fn foreign_pages_and_foreign_names_are_turned_away_unread() {
    let demo = Demo::start().await;
    let check = async |header: &str, values: &[&str], expect: u16| {
        let mut request = demo.request().header("authorization", demo.bearer());
        if header == "host" {
            request = Request::post("/mcp").header("authorization", demo.bearer());
        }
        for value in values {
            request = request.header(header, *value);
        }
        let seen = demo.send(request.body(Body::from("{")).unwrap()).await;
        assert_eq!(seen.status.as_u16(), expect, "{header}: {values:?}");
    };
    // 400: it came as far as its body, which is broken.
    check("origin", &["http://127.0.0.1:3000"], 400).await;
    check("origin", &["https://evil.example"], 403).await;
    check("origin", &["null"], 403).await;
    check("origin", &["http://127.0.0.1:3001"], 403).await;
    check("origin", &["https://127.0.0.1:3000"], 403).await;
    check("origin", &["http://127.0.0.1.nip.io:3000"], 403).await;
    check(
        "origin",
        &["http://127.0.0.1:3000", "https://evil.example"],
        403,
    )
    .await;
    check("host", &["127.0.0.1:3000"], 400).await;
    check("host", &["evil.example"], 403).await;
    check("host", &["127.0.0.1.:3000"], 403).await;
    check("host", &["127.0.0.1.nip.io:3000"], 403).await;
    check("host", &["127.0.0.1:3000", "127.0.0.1:3000"], 403).await;
    check("host", &[], 403).await;
}

#[tokio::test]
async fn the_envelope_of_http_is_checked_and_every_no_has_a_code() {
    let demo = Demo::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for method in ["GET", "DELETE", "PUT"] {
        let request = demo
            .request()
            .method(method)
            .header("authorization", demo.bearer());
        let seen = demo.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(seen.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(seen.body["error"]["code"], "method_not_allowed");
        assert_eq!(seen.headers["allow"], "POST");
    }
    let large = demo.raw("x".repeat(limits::BODY_BYTES_MAX + 1)).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(large.body["error"]["code"], "payload_too_large");
    for (header, value, status) in [
        ("accept", "text/html", 406),
        ("content-type", "text/plain", 415),
        ("mcp-protocol-version", "1999-01-01", 400),
    ] {
        let mut request = demo
            .request()
            .header("authorization", demo.bearer())
            .body(Body::from(ping))
            .unwrap();
        let headers = request.headers_mut();
        headers.insert(header, value.parse().unwrap());
        let seen = demo.send(request).await;
        assert_eq!(seen.status.as_u16(), status, "{header}");
        assert_eq!(
            seen.body["error"]["code"], "malformed",
            "{header}: {}",
            seen.body
        );
    }
    assert_eq!(demo.raw(ping).await.status, StatusCode::OK);
}

#[tokio::test]
async fn headers_that_disagree_with_the_body_are_refused() {
    let demo = Demo::start().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "unit", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let site = demo.site().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "publish", "arguments": {"site": site}, "_meta": meta}});
    let check = async |version: &str, method: &str, name: &str| {
        let request = demo
            .request()
            .header("authorization", demo.bearer())
            .header("mcp-protocol-version", version)
            .header("mcp-method", method)
            .header("mcp-name", name);
        let seen = demo
            .send(request.body(Body::from(body.to_string())).unwrap())
            .await;
        assert_eq!(
            seen.status,
            StatusCode::BAD_REQUEST,
            "{version} {method} {name}"
        );
        assert_eq!(seen.body["error"]["code"], -32020, "{}", seen.body);
    };
    check("2026-07-28", "tools/call", "site_list").await;
    check("2026-07-28", "tools/list", "publish").await;
    check("2025-11-25", "tools/call", "publish").await;
    assert_eq!(waiting(&demo).await, 0);
    for method in ["sites/burn", "initialize", "ping"] {
        let seen = demo.rpc(Era::Modern, method, json!({})).await;
        assert_eq!(seen.status, StatusCode::NOT_FOUND, "{method}");
        assert_eq!(seen.body["error"]["code"], -32601, "{method}");
    }
}
