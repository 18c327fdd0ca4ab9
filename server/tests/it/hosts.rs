//! Hosts and origins [C64, A39]: a page under another name that reaches us is turned away before anything is read.

use crate::support::*;

/// One path of each door.
const DOORS: [(&str, &str); 9] = [
    ("POST", "/mcp"),
    ("GET", "/tools"),
    ("POST", "/tools/site-list"),
    ("GET", "/api/sites"),
    ("POST", "/_fn/sites"),
    ("GET", "/approvals"),
    ("POST", "/login"),
    ("GET", "/live/bakery/"),
    ("GET", "/openapi.json"),
];

fn foreign(server: &TestServer) -> Vec<Vec<String>> {
    let (ours, port) = (server.host().to_owned(), server.addr.port());
    let mut hosts: Vec<Vec<String>> = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        format!("127.0.0.1.:{port}"),
        format!("localhost:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        format!("2130706433:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("{ours}@evil.example"),
        format!("evil.example/{ours}"),
        format!("{ours}, evil.example"),
        format!("{ours}\u{a0}"),
        String::new(),
    ]
    .into_iter()
    .map(|host| vec![host])
    .collect();
    hosts.push(Vec::new());
    hosts.push(vec![ours.clone(), "evil.example".into()]);
    hosts.push(vec!["evil.example".into(), ours.clone()]);
    hosts.push(vec![ours.clone(), ours]);
    hosts
}

/// [C64]
#[tokio::test(flavor = "multi_thread")]
async fn another_host_is_turned_away_before_anything_is_read() {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    for (method, path) in DOORS {
        for hosts in foreign(&server) {
            let mut request =
                Raw::new(method, path).header("authorization", &format!("Bearer {}", bot.key));
            for host in &hosts {
                request = request.header("host", host);
            }
            // A body that no door would take: its fault must not be what is answered.
            let seen = request.body("{\"a\":").send(&server).await;
            // An HTTP/1.1 request whose Host is no text may fail in the HTTP library already.
            let unusable = hosts.iter().any(|host| host.contains('\u{a0}'));
            if !(unusable && seen.status == 400) {
                assert_refused(
                    &seen,
                    Code::HostNotAllowed,
                    &format!("{method} {path} {hosts:?}"),
                );
            }
            assert!(!seen.text.contains("malformed"), "{}", seen.text);
        }
    }
    // In the request line, as a proxy would write it, against the header.
    let line = Raw::new("GET", "http://evil.example/tools").header("host", server.host());
    assert_eq!(line.send(&server).await.status, 403);
    for path in ["/healthz", "/readyz"] {
        let seen = Raw::new("GET", path)
            .header("host", "10.0.0.7:8080")
            .send(&server)
            .await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
    }
    let named = server.host().to_uppercase();
    let seen = Raw::new("GET", "/openapi.json")
        .header("host", &named)
        .send(&server)
        .await;
    assert_eq!(seen.status, 200);
    server.done().await;
}

/// [C64]
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_cannot_borrow_a_key() {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    let ours = server.origin.clone();
    let foreign: [Vec<String>; 9] = [
        vec!["https://evil.example".into()],
        vec!["null".into()],
        vec![format!("{ours}/")],
        vec![format!("{ours}.evil.example")],
        vec![ours.replace("http:", "https:")],
        vec![ours.clone(), "https://evil.example".into()],
        vec![String::new()],
        vec![ours.replace("127.0.0.1", "127.0.0.1.")],
        vec![ours.replace("127.0.0.1", "127.0.0.1.nip.io")],
    ];
    for (method, path) in &DOORS[..3] {
        for origins in &foreign {
            let mut request = Raw::new(method, path)
                .header("host", server.host())
                .header("authorization", &format!("Bearer {}", bot.key));
            for origin in origins {
                request = request.header("origin", origin);
            }
            let seen = request.body("{\"a\":").send(&server).await;
            assert_refused(
                &seen,
                Code::CrossOrigin,
                &format!("{method} {path} {origins:?}"),
            );
        }
    }
    let ours = Raw::new("GET", "/tools")
        .header("host", server.host())
        .header("origin", &ours)
        .header("authorization", &format!("Bearer {}", bot.key));
    assert_eq!(ours.send(&server).await.status, 200);
    server.done().await;
}

/// Published sites on an origin of their own: neither origin serves what belongs to the other.
#[tokio::test(flavor = "multi_thread")]
async fn published_sites_can_live_elsewhere() {
    let setup = Setup {
        live_url: Some("http://pages.example".into()),
        ..Setup::default()
    };
    let server = TestServer::start_as(setup).await.unwrap();
    let at = async |host: &str, path: &str| {
        Raw::new("GET", path)
            .header("host", host)
            .send(&server)
            .await
    };
    let here = at(server.host(), "/live/bakery/visit/?a=b").await;
    assert_eq!(here.status, 308);
    assert_eq!(
        here.header("location"),
        "http://pages.example/live/bakery/visit/?a=b"
    );
    assert_eq!(
        at("pages.example", "/live/bakery/").await.status,
        404,
        "not published, but served"
    );
    for path in [
        "/approvals",
        "/login",
        "/api/sites",
        "/tools",
        "/mcp",
        "/openapi.json",
        "/_fn/sites",
        "/live",
        "/livex/",
    ] {
        let seen = at("pages.example", path).await;
        assert_refused(&seen, Code::HostNotAllowed, path);
    }
    server.done().await;
}
