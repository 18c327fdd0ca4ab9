//! [C84, A43] A story with everything logged; then no secret is found in the log, nor in any answer that was not meant to give it.

use crate::support::{
    binary::{Operator, call},
    *,
};
use reqwest::{Client, redirect::Policy};

const PASSWORD: &str = "correct horse battery staple";

/// [C84]
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_logged_or_repeated() {
    let operator = Operator::new()
        .with("CLOUDHAL_LOG", "trace")
        .with("CLOUDHAL_WEBHOOKS", "listed")
        .with("CLOUDHAL_WEBHOOK_ALLOW", "127.0.0.1:9");
    let serving = operator.serve(&["--demo"]);
    let add = [
        "person",
        "add",
        "--email",
        "pia@example.com",
        "--name",
        "Pia",
        "--owner",
        "--password-stdin",
    ];
    let added = operator.run_with_input(&add, PASSWORD);
    assert!(added.ok, "{}", added.err);
    let (url, key) = (
        serving.url().to_owned(),
        serving.said("agent-key").to_owned(),
    );
    let link = serving.said("sign-in").to_owned();
    let mut bodies = vec![added.out, added.err];

    // The agent's part, with its mistakes.
    let site = {
        let seen = call(&url, &key, "site-list", json!({})).await;
        bodies.push(seen.text.clone());
        seen.body["data"]["items"][0]["id"].clone()
    };
    let publish = json!({"arguments": {"site": site}});
    let asked = call(&url, &key, "publish", publish.clone()).await;
    let id = asked.body["approvalId"].as_str().unwrap().to_owned();
    bodies.push(asked.text);
    let broken_key = &key[..key.len() - 3];
    for (key, tool, body) in [
        (key.as_str(), "no-such", publish.clone()),
        (&key, "publish", json!({"arguments": {}})),
        (broken_key, "publish", publish.clone()),
    ] {
        bodies.push(call(&url, key, tool, body).await.text);
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let mcp = Client::new()
        .post(format!("{url}/mcp"))
        .bearer_auth(&key)
        .header("accept", "application/json, text/event-stream")
        .json(&message);
    bodies.push(Seen::of(mcp).await.text);

    // A person's part: by link, then by password.
    let browser = Client::builder()
        .cookie_store(true)
        .redirect(Policy::none())
        .build()
        .unwrap();
    let post = |path: &str, fields: &[(&str, &str)]| {
        let to = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{url}{path}")
        };
        Seen::of(browser.post(to).header("origin", &url).form(fields))
    };
    let by_link = post(&link, &[("next", "")]).await;
    let record = Seen::of(browser.get(format!(
        "{url}/api/sites/{}/approvals/{id}",
        site.as_str().unwrap()
    )))
    .await;
    let digest = record.body["seenDigest"].as_str().unwrap().to_owned();
    let decided = post(
        &format!("/approvals/{id}"),
        &[("seenDigest", &digest), ("decision", "approve")],
    )
    .await;
    assert_eq!(decided.status, 303);
    let again = post(&link, &[]).await;
    let out = post("/logout", &[]).await;
    let wrong = post(
        "/login",
        &[
            ("email", "pia@example.com"),
            ("password", &format!("{PASSWORD}!")),
        ],
    )
    .await;
    let by_password = post(
        "/login",
        &[("email", "pia@example.com"), ("password", PASSWORD)],
    )
    .await;
    assert_eq!(by_password.location(), "/approvals");
    // New ones, each told once: by the API, and by the answer to a form.
    let json = |path: &str, body: Value| {
        let request = browser.post(format!("{url}{path}"));
        Seen::of(request.header("origin", &url).json(&body))
    };
    let agents = Seen::of(browser.get(format!("{url}/api/agents")))
        .await
        .body;
    let agent = agents["items"][0]["id"].as_str().unwrap().to_owned();
    let made = json(&format!("/api/agents/{agent}/keys"), json!({})).await;
    let api_key = made.body["key"].as_str().unwrap().to_owned();
    let new = json!({"email": "eve@example.com", "name": "Eve"});
    let invited = json("/api/people", new).await;
    let api_link = invited.body["signInLink"].as_str().unwrap().to_owned();
    let which = format!("key:{agent}");
    let shown = post("/agents", &[("form", &which), ("agent", &agent)]).await;
    let (_, rest) = shown.text.split_once("<code>clh_").unwrap();
    let form_key = rest.split('<').next().unwrap().to_owned();
    let eve = invited.body["person"]["id"].as_str().unwrap();
    let shown = post("/people", &[("form", "link"), ("person", eve)]).await;
    let (_, rest) = shown.text.split_once("/login/link/").unwrap();
    let form_token = rest.split('<').next().unwrap().to_owned();
    let settings = "/sites/harbour-street-bakery/settings";
    let hook_secret = |seen: &Seen| {
        let (_, rest) = seen.text.split_once("<code>whsec_").unwrap();
        rest.split('<').next().unwrap().to_owned()
    };
    let to = "http://127.0.0.1:9/in";
    let added = post(settings, &[("form", "webhook"), ("url", to)]).await;
    let first_hook_secret = hook_secret(&added);
    let hook = PersonClient::field(&added, "webhook");
    let form = format!("hook:{hook}");
    let rotate = [
        ("form", form.as_str()),
        ("webhook", &hook),
        ("do", "secret"),
    ];
    let second_hook_secret = hook_secret(&post(settings, &rotate).await);
    for path in [
        settings,
        "/approvals",
        "/agents",
        "/people",
        "/api/agents",
        "/api/people",
        "/journal",
        "/sites",
        "/api/sites",
    ] {
        bodies.push(Seen::of(browser.get(format!("{url}{path}"))).await.text);
    }
    bodies.push(
        call(
            &url,
            &key,
            "publish",
            json!({"arguments": {"site": site}, "approvalId": id}),
        )
        .await
        .text,
    );
    for seen in [
        &by_link,
        &record,
        &decided,
        &again,
        &out,
        &wrong,
        &by_password,
    ] {
        bodies.push(format!("{} {}", seen.text, seen.header("location")));
    }

    let cookie = |seen: &Seen| {
        seen.header("set-cookie")
            .split(';')
            .next()
            .unwrap()
            .split_once('=')
            .unwrap()
            .1
            .to_owned()
    };
    let secret = std::fs::read_to_string(operator.path("data/secret")).unwrap();
    let secrets = [
        ("the agent's key", key.clone()),
        (
            "its secret part",
            key.rsplit('_').next().unwrap()[..40].to_owned(),
        ),
        ("the cookie of the first session", cookie(&by_link)),
        ("the cookie of the second session", cookie(&by_password)),
        (
            "the token of the sign-in link",
            link.rsplit('/').next().unwrap().to_owned(),
        ),
        ("a key of the API's", api_key),
        ("a key of a form's", form_key),
        (
            "the token of the API's link",
            api_link.rsplit('/').next().unwrap().to_owned(),
        ),
        ("the token of a form's link", form_token),
        ("the secret of a webhook", first_hook_secret),
        ("the next secret of a webhook", second_hook_secret),
        ("the password", PASSWORD.to_owned()),
        (
            "the password as a form sends it",
            PASSWORD.replace(' ', "+"),
        ),
        ("the signing secret", secret.trim().to_owned()),
    ];
    let (printed, log) = serving.stop();
    assert!(
        log.len() > 50_000,
        "the log is not at TRACE: {} bytes",
        log.len()
    );
    bodies.push(printed);
    bodies.push(operator.ok(&["journal", "export"]).out);
    for (name, secret) in secrets {
        assert!(secret.len() >= 20, "{name}");
        if let Some(line) = log.lines().find(|line| line.contains(&secret)) {
            panic!("{name} is in the log: {line}");
        }
        let body = bodies.iter().find(|body| body.contains(&secret));
        assert_eq!(body, None, "{name} is in an answer");
        // What we sign with is kept as it is; all that others show to us is kept as a hash.
        if name.ends_with("of a webhook") {
            continue;
        }
        let bytes = std::fs::read(operator.database()).unwrap();
        let found = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "{name} is in the database");
    }
}
