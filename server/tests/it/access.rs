//! Who there is and who may what, through the doors that people have: the API, and the plain forms of the pages
//! [P5, P7, C25, C30, C32, C35, C36, C39].

use crate::support::*;
use reqwest::Method;

/// Runs a test on SQLite, and on PostgreSQL where one is at hand.
async fn on_each<F: Future<Output = ()>>(test: impl Fn(TestServer) -> F) {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let setup = Setup {
            kind,
            ..Setup::default()
        };
        match TestServer::start_as(setup).await {
            Some(server) => test(server).await,
            None => eprintln!("skipped: TEST_POSTGRES_URL is not set"),
        }
    }
}

/// Follows a sign-in link as a browser does.
async fn follow(server: &TestServer, link: &str) -> PersonClient {
    let person = PersonClient::new(server);
    let path = link.strip_prefix(&server.origin).unwrap();
    assert_eq!(person.get(path).await.status, 200);
    let seen = person.post_form(path, &[("next", "")]).await;
    assert_eq!(seen.location(), "/approvals");
    person
}

/// The whole of it: people are added and made members, two must approve, one of them of the group legal.
#[tokio::test(flavor = "multi_thread")]
async fn two_approvers_one_from_legal() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        let bot = server.as_agent("bot").await;
        let site = server.site.clone();
        let (members, policy) = (
            format!("/api/sites/{site}/members"),
            format!("/api/sites/{site}/policy"),
        );
        let mut people = Vec::new();
        for (name, groups) in [("ben", json!([])), ("lea", json!(["legal"]))] {
            let email = format!("{name}@example.com");
            let new = json!({"email": email, "name": name});
            let made = root.ok(Method::POST, "/api/people", new).await;
            assert_eq!(made["person"]["workspaceOwner"], false);
            let member = json!({"email": email, "role": "approver", "groups": groups});
            root.ok(Method::POST, &members, member).await;
            people.push(follow(&server, made["signInLink"].as_str().unwrap()).await);
        }
        let (ben, lea) = (&people[0], &people[1]);
        let two = json!({"tools": {"publish": {"approvers": 2, "groups": ["legal"]}}});
        let refused = ben.send_json(Method::PUT, &policy, two.clone()).await;
        assert_refused(&refused, Code::Forbidden, "an approver sets no policy");
        root.ok(Method::PUT, &policy, two).await;

        let id = bot.ask("publish", json!({"site": site})).await;
        ben.approve(&site, &id).await;
        let waits = bot.call_with(&id, "publish", json!({"site": site})).await;
        assert_eq!(
            (waits.status, &waits.body["approved"]),
            (202, &json!(false))
        );
        lea.approve(&site, &id).await;
        let done = bot.call_with(&id, "publish", json!({"site": site})).await;
        assert_eq!((done.status, done.code()), (200, "ok"), "{}", done.text);

        // Lea leaves: nobody from legal is left, and whoever took her off is told.
        let listed = root.get(&members).await.body;
        let items = listed["items"].as_array().unwrap();
        let lea = items.iter().find(|one| one["name"] == "lea").unwrap();
        let path = format!("{members}/{}", lea["person"].as_str().unwrap());
        let left = root.ok(Method::PUT, &path, json!({"role": null})).await;
        assert_eq!(left["unsatisfiable"][0]["pointer"], "/tools/publish");
        server.done().await;
    })
    .await;
}

/// C39: a revoked key stops at its next call, and a rotated one goes on; what is listed holds no secret.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_listed_and_revoked() {
    on_each(async |server: TestServer| {
        let ada = server.as_person("ada").await;
        let site = server.site.clone();
        let new = json!({"name": "writer", "sites": [site]});
        let seen = ada.send_json(Method::POST, "/api/agents", new).await;
        assert_eq!(seen.status, 200, "{}", seen.text);
        assert_eq!(seen.header("cache-control"), "no-store");
        let (agent, secret) = (
            seen.body["agent"]["id"].as_str().unwrap().to_owned(),
            seen.body["key"].as_str().unwrap().to_owned(),
        );
        let writer = AgentClient::new(&server, secret.clone());
        let id = writer.ask("publish", json!({"site": site})).await;
        ada.approve(&site, &id).await;

        let keys = format!("/api/agents/{agent}/keys");
        let further = ada.ok(Method::POST, &keys, json!({})).await;
        let rotated = AgentClient::new(&server, further["key"].as_str().unwrap().into());
        let listed = ada.get(&keys).await;
        assert_eq!(listed.body["items"].as_array().unwrap().len(), 2);
        let tail = &secret[31..];
        for path in [
            "/api/agents",
            &keys,
            &format!("/api/agents/{agent}"),
            "/agents",
        ] {
            assert!(!ada.get(path).await.text.contains(tail), "{path}");
        }
        let path = format!("{keys}/{}", seen.body["id"].as_str().unwrap());
        let left = ada.ok(Method::DELETE, &path, json!({})).await;
        let items = left["items"].as_array().unwrap();
        let ended = items.iter().find(|one| one["id"] == seen.body["id"]);
        assert!(ended.unwrap()["revokedAt"].is_string());
        assert_refused(&writer.get("/tools").await, Code::Unauthorized, "revoked");
        let late = writer
            .call_with(&id, "publish", json!({"site": site}))
            .await;
        assert_refused(&late, Code::Unauthorized, "revoked");
        let again = ada.send_json(Method::DELETE, &path, json!({})).await;
        assert_refused(&again, Code::NotFound, "revoked already");
        let done = rotated
            .call_with(&id, "publish", json!({"site": site}))
            .await;
        assert_eq!(done.code(), "ok", "{}", done.text);

        // C35: without the tool, the next approval does not redeem.
        rotated.edit(&site, "visit", "We moved.").await;
        let id = rotated.ask("publish", json!({"site": site})).await;
        ada.approve(&site, &id).await;
        let narrow = json!({"tools": ["site-list", "node-list"]});
        let row = ada
            .ok(Method::PATCH, &format!("/api/agents/{agent}"), narrow)
            .await;
        assert_eq!(row["tools"], json!(["node-list", "site-list"]));
        let late = rotated
            .call_with(&id, "publish", json!({"site": site}))
            .await;
        assert_refused(&late, Code::InsufficientScope, "the tool was taken away");
        let off = json!({"disabled": true});
        ada.ok(Method::PATCH, &format!("/api/agents/{agent}"), off)
            .await;
        assert_refused(&rotated.get("/tools").await, Code::Unauthorized, "disabled");
        server.done().await;
    })
    .await;
}

/// C39, P5: a disabled account is signed out at once and counts for nothing, its stream included.
#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_account_is_out_at_once() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        let ben = server.as_member("ben", Role::Approver).await;
        let bot = server.as_agent("bot").await;
        let site = server.site.clone();
        let id = bot.ask("publish", json!({"site": site})).await;
        ben.approve(&site, &id).await;
        let mut stream = ben
            .request(Method::GET, "/api/events")
            .send()
            .await
            .unwrap();
        assert!(stream.chunk().await.unwrap().is_some());
        let who = server.account("ben").await.id().as_str().to_owned();
        let path = format!("/api/people/{who}");
        let account = root
            .ok(Method::PATCH, &path, json!({"disabled": true}))
            .await;
        assert!(account["disabledAt"].is_string());
        while stream.chunk().await.unwrap().is_some() {}
        assert_refused(&ben.get("/api/sites").await, Code::Unauthorized, "disabled");
        assert!(ben.get("/approvals").await.location().starts_with("/login"));
        let late = bot.call_with(&id, "publish", json!({"site": site})).await;
        assert_refused(&late, Code::ApprovalVoided, "its approver is disabled");
        assert_eq!(late.details()["cause"], "access_lost");
        // Enabled again, he signs in anew: the session of before stays ended.
        root.ok(Method::PATCH, &path, json!({"disabled": false}))
            .await;
        assert_refused(&ben.get("/api/sites").await, Code::Unauthorized, "ended");
        server.as_person("ben").await;
        server.done().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_owner_of_the_workspace_stays() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        let ada = server.as_person("ada").await;
        let who = server.account("root").await.id().as_str().to_owned();
        let path = format!("/api/people/{who}");
        for last in [json!({"disabled": true}), json!({"workspaceOwner": false})] {
            let seen = root.send_json(Method::PATCH, &path, last.clone()).await;
            assert_refused(&seen, Code::Conflict, "the last one");
            let seen = ada.send_json(Method::PATCH, &path, last).await;
            assert_refused(&seen, Code::Forbidden, "no owner of the workspace");
        }
        for bad in [
            json!([]),
            json!(["x"]),
            json!({"owner": true}),
            json!({"disabled": "yes"}),
        ] {
            let seen = root.send_json(Method::PATCH, &path, bad.clone()).await;
            assert_refused(&seen, Code::InvalidArguments, &bad.to_string());
        }
        assert_refused(&ada.get("/api/people").await, Code::Forbidden, "ada");
        assert_eq!(ada.get("/people").await.status, 403);
        // An owner of a site leaves it where an owner of the workspace is there to keep it.
        let members = format!("/api/sites/{}/members", server.site);
        let ada_id = server.account("ada").await.id().as_str().to_owned();
        let own = format!("{members}/{ada_id}");
        let list = json!(["owner", []]);
        let seen = ada.send_json(Method::PUT, &own, list).await;
        assert_refused(&seen, Code::InvalidArguments, "a list is no membership");
        let left = ada.ok(Method::PUT, &own, json!({"role": null})).await;
        assert_eq!(left["items"], json!([]));
        assert_refused(&ada.get(&members).await, Code::NotFound, "gone");
        server.done().await;
    })
    .await;
}

/// A page that was opened before changes what was typed on it, and gives nothing back that was taken meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_page_gives_nothing_back() {
    let server = TestServer::start().await;
    let root = server.as_owner("root").await;
    server.as_owner("dee").await;
    let ids = server
        .database
        .texts("select id from people where name = 'dee'");
    let dee_id = ids.await.remove(0);
    let rename = |owner: &'static str| {
        let mut fields = vec![
            ("form", "change"),
            ("person", dee_id.as_str()),
            ("name", "Dee"),
        ];
        fields.extend([("wasOwner", "on"), ("owner", owner)]);
        fields
    };
    let owners = "select name from people where workspace_owner = 1 order by name";
    root.post_form("/people", &rename("")).await;
    assert_eq!(server.database.texts(owners).await, ["root"], "unticked");
    root.post_form("/people", &rename("on")).await;
    assert_eq!(
        server.database.texts(owners).await,
        ["root"],
        "renamed from before"
    );
}

/// A secret stands in the answer to the form, once; in no address and on no page after it.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_shown_once_and_in_no_address() {
    let server = TestServer::start().await;
    let root = server.as_owner("root").await;
    let bot = server.as_agent("bot").await;
    let agent = server.agent_id("bot").await;
    let key = format!("key:{agent}");
    let fields = [("form", key.as_str()), ("agent", &agent), ("ends", "30")];
    let seen = root.post_form("/agents", &fields).await;
    assert_eq!(
        (seen.status, seen.header("cache-control")),
        (200, "no-store")
    );
    assert!(seen.headers.get("location").is_none());
    let made = seen.text.split("<code>clh_").nth(1).unwrap();
    let made = format!("clh_{}", made.split('<').next().unwrap());
    let further = AgentClient::new(&server, made.clone());
    assert_eq!(further.get("/tools").await.status, 200);
    assert!(!root.get("/agents").await.text.contains(&made));

    let new = [
        ("form", "add"),
        ("name", "Ben"),
        ("email", "ben@example.com"),
    ];
    let seen = root.post_form("/people", &new).await;
    assert_eq!(
        (seen.status, seen.header("cache-control")),
        (200, "no-store")
    );
    let start = format!("{}/login/link/", server.origin);
    let link = seen.text.split(&start).nth(1).unwrap();
    let link = format!("{start}{}", link.split('<').next().unwrap());
    assert!(!root.get("/people").await.text.contains("/login/link/"));
    follow(&server, &link).await;

    // C39, at the page: revoked, and the agent's next call is refused.
    let key = &bot.key[4..30];
    let revoke = [("form", "revoke"), ("agent", agent.as_str()), ("key", key)];
    let seen = root.post_form("/agents", &revoke).await;
    assert_eq!(seen.location(), "/agents?notice=key_revoked");
    assert_refused(&bot.get("/tools").await, Code::Unauthorized, "revoked");
    server.done().await;
}

/// What could not be taken comes back as it was typed, each fault at its field, and nothing has changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_wrong_comes_back_whole() {
    let server = TestServer::start().await;
    let root = server.as_owner("root").await;
    let before = server.everything().await;
    let wrong = |page: &Seen, id: &str| page.text.contains(&format!("id=\"{id}-wrong\""));
    let typed = |page: &Seen, value: &str| page.text.contains(&format!("value=\"{value}\""));

    let new = [
        ("form", "add"),
        ("name", "Ben Okafor"),
        ("email", "no address"),
    ];
    let page = root.post_form("/people", &new).await;
    assert_eq!(page.status, 422);
    assert!(wrong(&page, "add.email") && typed(&page, "Ben Okafor") && typed(&page, "no address"));

    let new = [("form", "add"), ("name", "writer"), ("reach", "some")];
    let page = root.post_form("/agents", &new).await;
    assert_eq!(page.status, 422);
    assert!(wrong(&page, "add.sites") && typed(&page, "writer"));

    let settings = "/sites/bakery/settings";
    let add = [
        ("form", "add"),
        ("email", "nobody@example.com"),
        ("role", "viewer"),
        ("groups", "legal"),
    ];
    let page = root.post_form(settings, &add).await;
    assert_eq!(page.status, 404);
    assert!(
        wrong(&page, "add.email") && typed(&page, "nobody@example.com") && typed(&page, "legal")
    );

    let seen = server
        .database
        .texts("select policy from sites")
        .await
        .remove(0);
    assert_eq!(seen, "{}");
    let shown = PersonClient::policy_seen(&root.get(settings).await);
    let policy = [
        ("form", "policy"),
        ("seen", shown.as_str()),
        ("default.approvers", "1"),
        ("publish.own", "on"),
        ("publish.approvers", "2"),
        ("publish.groups", "Legal, brand"),
        ("publish.lifetime", "soon"),
        ("publish.lifetimeUnit", "days"),
    ];
    let page = root.post_form(settings, &policy).await;
    assert_eq!(page.status, 422);
    for field in ["publish.groups", "publish.lifetime"] {
        assert!(wrong(&page, &format!("policy.{field}")), "{field}");
    }
    assert!(typed(&page, "Legal, brand") && typed(&page, "soon"));
    assert_eq!(server.everything().await, before);

    // Nobody could satisfy it: the rule itself is at fault.
    let hopeless = [&policy[..4], &[("publish.approvers", "9")]].concat();
    let page = root.post_form(settings, &hopeless).await;
    assert!(page.status == 422 && wrong(&page, "policy.publish"));
    let good = [
        &policy[..4],
        &[
            ("publish.approvers", "2"),
            ("publish.coolDown", "10"),
            ("publish.coolDownUnit", "minutes"),
        ],
    ]
    .concat();
    let done = root.post_form(settings, &good).await;
    assert_eq!(
        done.location(),
        "/sites/bakery/settings?notice=policy_saved"
    );
    let page = root.get(settings).await;
    assert!(page.text.contains(
        "Two people must approve. After a denial the same call is refused for 10 minutes."
    ));
    // What an older page sends does not undo it unseen.
    let page = root.post_form(settings, &good).await;
    assert!(page.status == 409 && page.text.contains("Somebody changed the policy"));
    assert_eq!(
        root.post_form(settings, &[("form", "nothing")])
            .await
            .status,
        422
    );
    server.done().await;
}

/// C36, C32: whoever may only look sees the settings and changes nothing; whoever may not see the site finds nothing.
#[tokio::test(flavor = "multi_thread")]
async fn settings_are_changed_by_owners_alone() {
    let server = TestServer::start().await;
    let bot = server.as_agent("bot").await;
    let agent = server.agent_id("bot").await;
    let ada_id = server.account("ada").await.id().as_str().to_owned();
    let settings = "/sites/bakery/settings";
    for role in [Role::Viewer, Role::Editor, Role::Approver] {
        let somebody = server.as_member(role.as_str(), role).await;
        let own = server.account(role.as_str()).await.id().as_str().to_owned();
        let page = somebody.get(settings).await;
        assert_eq!(page.status, 200);
        assert!(
            !page.text.contains("name=\"form\""),
            "{role:?} is offered a form"
        );
        let before = server.everything().await;
        let member = format!("member:{own}");
        for fields in [
            vec![
                ("form", member.as_str()),
                ("person", &own),
                ("role", "owner"),
            ],
            vec![("form", "remove"), ("person", &ada_id)],
            vec![
                ("form", "add"),
                ("email", "ada@example.com"),
                ("role", "viewer"),
            ],
            vec![("form", "take_off"), ("agent", &agent)],
            vec![
                ("form", "policy"),
                ("seen", "{}"),
                ("default.approvers", "1"),
            ],
        ] {
            let seen = somebody.post_form(settings, &fields).await;
            assert!(
                matches!(seen.status, 403 | 409),
                "{role:?} {fields:?}: {}",
                seen.status
            );
        }
        for (page, fields) in [
            (
                "/people",
                vec![("form", "disable"), ("person", ada_id.as_str())],
            ),
            (
                "/agents",
                vec![
                    ("form", "revoke"),
                    ("agent", &agent),
                    ("key", &bot.key[4..30]),
                ],
            ),
            ("/agents", vec![("form", "disable"), ("agent", &agent)]),
        ] {
            let seen = somebody.post_form(page, &fields).await;
            assert!(
                matches!(seen.status, 403 | 404),
                "{role:?} {fields:?}: {}",
                seen.status
            );
        }
        assert_eq!(server.everything().await, before, "{role:?}");
    }
    server.done().await;
}

/// Whoever says what they read does not overwrite what somebody set meanwhile; whoever does not say sets it as ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_set_over_the_one_that_was_read() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        let path = format!("/api/sites/{}/policy", server.site);
        let lives = |seconds: u64| json!({"default": {"lifetimeSeconds": seconds}});
        let put = async |seconds, tag: Option<&str>| {
            let request = root.request(Method::PUT, &path).json(&lives(seconds));
            Seen::of(match tag {
                Some(tag) => request.header("if-match", tag),
                None => request,
            })
            .await
        };
        let read = async || {
            let seen = root.get(&path).await;
            (seen.header("etag").to_owned(), seen.body)
        };
        let (first, _) = read().await;
        assert!(
            first.starts_with("\"sha256:") && first.ends_with('"'),
            "{first}"
        );
        let set = put(100, None).await;
        assert_eq!(
            (set.status, read().await),
            (200, (set.header("etag").to_owned(), set.body.clone()))
        );
        let (now, before) = read().await;
        assert_ne!(now, first);

        let bare = now.trim_matches('"');
        let (weak, no_longer) = (format!("W/{now}"), format!("{first}, \"other\""));
        for stale in [&first, &weak, &no_longer, "\"\"", "\"*\""] {
            let seen = put(200, Some(stale)).await;
            assert_refused(&seen, Code::Conflict, stale);
            assert!(seen.text.contains("Read it again"), "{}", seen.text);
        }
        for wrong in [
            bare,
            "",
            ",",
            "*, *",
            &format!("{now} {now}"),
            &format!("{now},"),
            &format!("w/{now}"),
        ] {
            assert_refused(&put(200, Some(wrong)).await, Code::InvalidArguments, wrong);
        }
        let twice = root.request(Method::PUT, &path).json(&lives(200));
        let twice = twice.header("if-match", &first).header("if-match", "*");
        assert_refused(&Seen::of(twice).await, Code::InvalidArguments, "two lines");
        assert_eq!(read().await.1, before);

        // The same policy has the same tag, however it came about.
        assert_eq!(put(300, Some("*")).await.status, 200);
        assert_eq!(put(100, None).await.header("etag"), now);
        let named = format!("{first} , {now}");
        let set = put(400, Some(&named)).await;
        assert_eq!(
            (set.status, &set.body["default"]["lifetimeSeconds"]),
            (200, &json!(400))
        );

        let (tag, _) = read().await;
        let (one, other) = tokio::join!(put(500, Some(&tag)), put(600, Some(&tag)));
        let mut both = [one.status, other.status];
        both.sort();
        assert_eq!(both, [200, 409]);

        // Whoever may not set it is told that, whatever they read.
        let ben = server.as_member("ben", Role::Approver).await;
        let theirs = ben.request(Method::PUT, &path).json(&lives(700));
        let seen = Seen::of(theirs.header("if-match", &first)).await;
        assert_refused(&seen, Code::Forbidden, "an approver");
    })
    .await;
}
