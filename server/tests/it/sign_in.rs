//! Signing in and out, as browsers do it: passwords, one-time links, the first account, sessions and their end.

use crate::support::*;
use cloudhal_engine::{
    clock::{Clock as _, SystemClock},
    people,
    secret::token_digest,
};
use std::net::Ipv4Addr;

const PASSWORD: &str = "correct horse battery";

/// Tries are counted by address, for the whole process: each test that tries passwords comes from its own.
fn from(server: &TestServer, last: u8) -> PersonClient {
    PersonClient::from(server, Ipv4Addr::new(127, 0, 1, last))
}

async fn link(server: &TestServer, name: &str) -> String {
    let account = server.account(name).await;
    let link = people::sign_in_link(server.engine(), &account)
        .await
        .unwrap();
    link.strip_prefix(&server.origin).unwrap().to_owned()
}

async fn is_signed_in(person: &PersonClient) -> bool {
    let seen = person.get("/api/sites").await;
    assert!([200, 401].contains(&seen.status), "{}", seen.text);
    seen.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once_and_only_by_its_button() {
    let server = TestServer::start().await;
    let path = link(&server, "ada").await;
    let ada = PersonClient::new(&server);
    for _ in 0..5 {
        let page = ada.get(&path).await;
        assert_eq!(page.status, 200);
        assert!(
            page.text.contains(&format!("action=\"{path}\"")),
            "{}",
            page.text
        );
        ada.request(reqwest::Method::HEAD, &path)
            .send()
            .await
            .unwrap();
        assert!(!is_signed_in(&ada).await, "[A21] a GET signs nobody in");
    }
    assert_eq!(
        ada.post_form(&path, &[("next", "")]).await.location(),
        "/approvals"
    );
    assert!(is_signed_in(&ada).await);
    let second = PersonClient::new(&server);
    assert_eq!(
        second.post_form(&path, &[("next", "")]).await.location(),
        "/login?notice=link_spent"
    );
    assert!(!is_signed_in(&second).await);

    let old = link(&server, "ada").await;
    server.advance(limits::SIGN_IN_LINK_TTL);
    for path in [
        old.as_str(),
        "/login/link/aaaa",
        "/login/link/%00",
        "/login/link/'%20or%201=1",
    ] {
        assert_eq!(
            second.post_form(path, &[]).await.location(),
            "/login?notice=link_spent",
            "{path}"
        );
    }
    server.done().await;
}

/// Sixteen windows press the button of one link at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_spent_by_one_of_many() {
    let server = TestServer::start().await;
    let path = link(&server, "ada").await;
    let tries = (0..16).map(|_| {
        let (somebody, path) = (PersonClient::new(&server), path.clone());
        tokio::spawn(async move { somebody.post_form(&path, &[]).await.location() == "/approvals" })
    });
    let mut winners = 0;
    for signed_in in tries.collect::<Vec<_>>() {
        winners += i32::from(signed_in.await.unwrap());
    }
    assert_eq!(winners, 1);
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_name_look_the_same() {
    let server = TestServer::start().await;
    server.account_with_password("pia", PASSWORD).await;
    let pia = from(&server, 1);
    let try_in = async |email: &str, password: &str| {
        pia.post_form(
            "/login",
            &[("email", email), ("password", password), ("next", "")],
        )
        .await
    };
    let wrong = try_in("pia@example.com", "wrong horse battery").await;
    assert_eq!(wrong.location(), "/login?next=&notice=sign_in_failed");
    for (email, password) in [
        ("nobody@example.com", PASSWORD),
        ("pia@example.com", ""),
        ("ada@example.com", PASSWORD),
        ("' or 1=1 --", "x"),
        ("pia@example.com", "a\u{0}b"),
    ] {
        let seen = try_in(email, password).await;
        assert_eq!(seen.alike(), wrong.alike(), "{email}");
    }
    assert!(!is_signed_in(&pia).await);
    assert!(
        pia.get("/login?next=&notice=sign_in_failed")
            .await
            .text
            .contains("role=\"status\"")
    );
    let seen = try_in(" PIA@example.com ", PASSWORD).await;
    assert_eq!(seen.location(), "/approvals");
    assert!(is_signed_in(&pia).await);
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_cannot_be_tried_for_ever() {
    let server = TestServer::start().await;
    server.account_with_password("pia", PASSWORD).await;
    let pia = from(&server, 2);
    let wrong = [
        ("email", "pia@example.com"),
        ("password", "wrong horse"),
        ("next", ""),
    ];
    let mut tries = 0;
    while !pia
        .post_form("/login", &wrong)
        .await
        .location()
        .ends_with("notice=rate_limited")
    {
        tries += 1;
        assert!(tries < 40, "forty tries from one address");
    }
    assert!(tries >= 10, "an honest person may mistype {tries} times");
    let right = [
        ("email", "pia@example.com"),
        ("password", PASSWORD),
        ("next", ""),
    ];
    let elsewhere = from(&server, 3);
    assert_eq!(
        elsewhere.post_form("/login", &right).await.location(),
        "/approvals"
    );
    server.done().await;
}

/// [C74] The id from before signing in is worth nothing after it.
#[tokio::test(flavor = "multi_thread")]
async fn signing_in_gives_a_new_session() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    let planted = ada.cookie();
    let path = link(&server, "vera").await;
    // The victim signs in while carrying a cookie that somebody else planted.
    let seen = Raw::new("POST", &path)
        .header("host", server.host())
        .header("origin", &server.origin)
        .header("cookie", &planted)
        .header("content-type", "application/x-www-form-urlencoded")
        .body("next=")
        .send(&server)
        .await;
    let given = seen
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(seen.location(), "/approvals");
    assert_ne!(given, planted);
    let with = async |cookie: &str| {
        let request = Raw::new("POST", "/_fn/viewer")
            .header("host", server.host())
            .header("origin", &server.origin);
        request
            .header("cookie", cookie)
            .header("content-type", "application/json")
            .body("{}")
            .send(&server)
            .await
    };
    assert!(with(&given).await.text.contains("vera@example.com"));
    assert!(
        !with(&planted).await.text.contains("vera"),
        "the planted id must not have become hers"
    );
    let made_up = format!("cloudhal={}", "A".repeat(22));
    for odd in [
        made_up.as_str(),
        "cloudhal=",
        "cloudhal=%00",
        "cloudhal=../../x",
        "theme=dark",
    ] {
        assert_eq!(with(odd).await.status, 401, "{odd}");
    }
    server.done().await;
}

/// [C74] Requests that were under way while somebody signed out bring no session back.
#[tokio::test(flavor = "multi_thread")]
async fn signing_out_among_fifty_requests_signs_out() {
    let server = TestServer::start().await;
    for _ in 0..3 {
        let ada = server.as_person("ada").await;
        // Each of them has something to write: the idle time is due to be moved.
        rewrite(&server, &ada, |data| {
            data["seen"] = (data["seen"].as_i64().unwrap() - 120).into()
        })
        .await;
        let requests: Vec<_> = (0..50)
            .map(|at| {
                let ada = ada.clone();
                tokio::spawn(async move {
                    match at {
                        25 => ada.post_form("/logout", &[]).await.status,
                        _ => ada.get("/api/sites").await.status,
                    }
                })
            })
            .collect();
        let cookie = ada.cookie();
        for request in requests {
            assert!([200, 303, 401].contains(&request.await.unwrap()));
        }
        let stolen = Raw::new("GET", "/api/sites")
            .header("host", server.host())
            .header("cookie", &cookie);
        assert_eq!(
            stolen.send(&server).await.status,
            401,
            "the old cookie still opens"
        );
        assert!(!is_signed_in(&ada).await);
    }
    server.done().await;
}

/// Changes what is kept of a session, since its clock is the machine's.
async fn rewrite(server: &TestServer, person: &PersonClient, change: impl FnOnce(&mut Value)) {
    let (key, text, expires) = kept(server, person).await.unwrap();
    let mut data: Value = serde_json::from_str(&text).unwrap();
    change(&mut data);
    let store = server.engine().store();
    assert!(
        store
            .update_session(key, data.to_string(), expires)
            .await
            .unwrap()
    );
}

async fn kept(server: &TestServer, person: &PersonClient) -> Option<(String, String, i64)> {
    let cookie = person.cookie();
    let key = token_digest(cookie.split_once('=').unwrap().1);
    let (data, expires) = server.engine().store().session(&key, 0).await.unwrap()?;
    Some((key, data, expires))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_it_is_idle_or_old() {
    let server = TestServer::start().await;
    let idle = server.as_person("ada").await;
    let (key, data, _) = kept(&server, &idle).await.unwrap();
    assert!(is_signed_in(&idle).await);
    let past = SystemClock.now().ms() - 1000;
    server
        .engine()
        .store()
        .update_session(key, data, past)
        .await
        .unwrap();
    assert!(!is_signed_in(&idle).await, "idle for too long");

    let old = server.as_person("ada").await;
    let twelve_hours = limits::SESSION_ABSOLUTE.as_secs() as i64;
    rewrite(&server, &old, |data| {
        data["since"] = (data["since"].as_i64().unwrap() - twelve_hours + 60).into()
    })
    .await;
    assert!(is_signed_in(&old).await, "a minute is left");
    rewrite(&server, &old, |data| {
        data["since"] = (data["since"].as_i64().unwrap() - 60).into()
    })
    .await;
    assert!(
        old.get("/approvals").await.location().starts_with("/login"),
        "twelve hours are over"
    );
    assert!(kept(&server, &old).await.is_none(), "and the row is gone");
    server.done().await;
}

/// CONTRACT §5: a live-update stream is no activity; a read moves the idle time, but not every read writes.
#[tokio::test(flavor = "multi_thread")]
async fn only_activity_moves_the_idle_time() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    let seen = async || {
        serde_json::from_str::<Value>(&kept(&server, &ada).await.unwrap().1).unwrap()["seen"]
            .as_i64()
            .unwrap()
    };
    let begun = seen().await;
    rewrite(&server, &ada, |data| data["seen"] = (begun - 120).into()).await;
    let stream = ada
        .request(reqwest::Method::GET, "/api/events")
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status(), 200);
    drop(stream);
    assert_eq!(seen().await, begun - 120);
    assert!(is_signed_in(&ada).await);
    assert!(seen().await >= begun);
    let after = seen().await - 10;
    rewrite(&server, &ada, |data| data["seen"] = after.into()).await;
    assert!(is_signed_in(&ada).await);
    assert_eq!(seen().await, after, "within a minute nothing is written");
    server.done().await;
}

/// The account is read afresh: disabled or with a new password, every session of it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_account_is_signed_out_everywhere() {
    let server = TestServer::start().await;
    for change in [
        "disabled_at = 1",
        "session_key = 'another', disabled_at = null",
    ] {
        let (one, two) = (server.as_person("ada").await, server.as_person("ada").await);
        assert!(is_signed_in(&one).await && is_signed_in(&two).await);
        let sql = format!("update people set {change} where email_key = 'ada@example.com'");
        server.database.try_sql(&sql).await.unwrap();
        assert!(
            !is_signed_in(&one).await && !is_signed_in(&two).await,
            "{change}"
        );
        server
            .database
            .try_sql("update people set disabled_at = null")
            .await
            .unwrap();
    }
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_say_what_they_must() {
    for (url, expect) in [
        (None, ("cloudhal=", false)),
        (
            Some("https://hal.example".to_owned()),
            ("__Host-cloudhal=", true),
        ),
    ] {
        let setup = Setup {
            public_url: url,
            ..Setup::default()
        };
        let server = TestServer::start_as(setup).await.unwrap();
        let path = link(&server, "ada").await;
        let ada = PersonClient::new(&server);
        let seen = ada.post_form(&path, &[]).await;
        let cookie = seen.header("set-cookie").to_owned();
        let parts: Vec<&str> = cookie.split(';').map(str::trim).collect();
        let (name, secure) = expect;
        assert!(parts[0].starts_with(name), "{cookie}");
        for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
            assert!(parts.contains(&part), "{part} is not in {cookie}");
        }
        assert_eq!(parts.contains(&"Secure"), secure, "{cookie}");
        assert!(!cookie.to_lowercase().contains("domain="), "{cookie}");
        let theme = ada
            .post_form("/theme", &[("theme", "dark"), ("next", "/sites")])
            .await;
        assert_eq!(theme.location(), "/sites");
        assert_eq!(theme.header("set-cookie").contains("Secure"), secure);
        server.done().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_theme_is_what_the_page_is_drawn_with() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    for (theme, shown) in [("dark", true), ("light", true), ("\"><script>", false)] {
        let seen = ada
            .post_form(
                "/theme",
                &[("theme", theme), ("next", "https://evil.example/")],
            )
            .await;
        assert_eq!(seen.location(), "/approvals");
        let page = ada.get("/approvals").await;
        let head = &page.text[..page.text.find("<head").unwrap()];
        assert_eq!(head.contains(theme), shown, "{head}");
    }
    server.done().await;
}

/// [C73, family 14] Thirty ways to ask for another origin, through the sign-in itself.
#[tokio::test(flavor = "multi_thread")]
async fn signing_in_leads_nowhere_else() {
    let server = TestServer::start().await;
    let payloads: Vec<String> = serde_json::from_str(include_str!("../data/next.json")).unwrap();
    assert!(payloads.len() >= 30);
    for payload in &payloads {
        let path = link(&server, "ada").await;
        let ada = PersonClient::new(&server);
        let seen = ada.post_form(&path, &[("next", payload)]).await;
        let to = seen.location();
        let ours = reqwest::Url::parse(&server.origin).unwrap();
        let landed = ours.join(to).unwrap();
        assert_eq!(landed.origin(), ours.origin(), "{payload:?} to {to}");
        assert!(
            to.starts_with("/approvals") || to.starts_with("/sites"),
            "{payload:?} to {to}"
        );
        assert!(
            !to.contains("//") && !to.contains('\\') && !to.contains('%'),
            "{payload:?} to {to}"
        );
        let page = ada
            .get(&format!(
                "/login?next={}",
                url::form_urlencoded::byte_serialize(payload.as_bytes()).collect::<String>()
            ))
            .await;
        assert_eq!(page.status, 200, "{payload:?}");
        assert!(!page.text.contains("<script>alert"), "{payload:?}");
        // What the page's own form would carry on, whatever it made of it.
        let next = PersonClient::field(&page, "next");
        let next = crate::reported_calls::plain(&next);
        let path = link(&server, "ada").await;
        let seen = ada.post_form(&path, &[("next", &next)]).await;
        let landed = ours.join(seen.location()).unwrap();
        assert_eq!(landed.origin(), ours.origin(), "{payload:?} as {next:?}");
    }
    // The deep link itself survives, by password too.
    server.account_with_password("pia", PASSWORD).await;
    let pia = from(&server, 4);
    let deep = format!("/approvals/{}", "a".repeat(26));
    let sent = pia.get(&format!("{deep}?tab=all")).await;
    let login = sent.location().to_owned();
    let page = pia.get(&login).await;
    let next = PersonClient::field(&page, "next").replace("&amp;", "&");
    let seen = pia
        .post_form(
            "/login",
            &[
                ("email", "pia@example.com"),
                ("password", PASSWORD),
                ("next", &next),
            ],
        )
        .await;
    assert_eq!(seen.location(), format!("{deep}?tab=all"));
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_account_is_made_once_with_the_printed_link() {
    let setup = Setup {
        with_site: false,
        ..Setup::default()
    };
    let server = TestServer::start_as(setup).await.unwrap();
    let path = async || {
        let link = people::set_up_link(server.engine()).await.unwrap();
        link.strip_prefix(&server.origin).unwrap().to_owned()
    };
    let older = path().await;
    let good = path().await;
    let fields = |password: &'static str| {
        [
            ("name", "Ada"),
            ("email", "ada@example.com"),
            ("password", password),
        ]
    };
    let somebody = PersonClient::new(&server);
    assert_eq!(somebody.get(&good).await.status, 200);
    for odd in [older.as_str(), "/setup/aaaa"] {
        assert_eq!(
            somebody.post_form(odd, &fields(PASSWORD)).await.location(),
            "/login?notice=link_spent",
            "{odd}"
        );
    }
    for bad in ["", "too short", "äöüäöüäöü"] {
        let seen = somebody.post_form(&good, &fields(bad)).await;
        assert_eq!(
            seen.location(),
            format!("{good}?notice=password_too_short"),
            "{bad:?}"
        );
    }
    let long: &'static str = Box::leak("x".repeat(limits::PASSWORD_BYTES_MAX + 1).into_boxed_str());
    assert!(
        somebody
            .post_form(&good, &fields(long))
            .await
            .location()
            .ends_with("invalid_arguments")
    );
    for (name, email) in [
        ("", "ada@example.com"),
        ("Ada\u{202e}", "ada@example.com"),
        ("Ada", "ada"),
        ("Ada", "a b@example.com"),
        ("Ada", "@"),
    ] {
        let seen = somebody
            .post_form(
                &good,
                &[("name", name), ("email", email), ("password", PASSWORD)],
            )
            .await;
        assert!(
            seen.location().ends_with("notice=invalid_arguments"),
            "{name:?} {email:?}"
        );
    }
    assert!(people::is_empty(server.engine()).await.unwrap());
    assert_eq!(
        somebody
            .post_form(&good, &fields(PASSWORD))
            .await
            .location(),
        "/approvals"
    );
    assert!(is_signed_in(&somebody).await);
    let viewer = somebody.post_json("/_fn/viewer", json!({})).await;
    assert!(
        viewer.text.replace('\\', "").contains("\"owner\":true"),
        "{}",
        viewer.text
    );

    let late = path().await;
    for path in [good, late] {
        let seen = PersonClient::new(&server)
            .post_form(
                &path,
                &[
                    ("name", "Eve"),
                    ("email", "eve@example.com"),
                    ("password", PASSWORD),
                ],
            )
            .await;
        assert_eq!(seen.location(), "/login?notice=link_spent");
    }
    assert_eq!(
        server.database.number("select count(*) from people").await,
        1
    );
    server.done().await;
}
