//! The plain forms of the Studio: each ends with a 303 to a page that says how it went, and works with no script at all.

use crate::support::*;

/// A site that is live, edited since, with somebody of each role.
struct Scene {
    server: TestServer,
    bot: AgentClient,
    ada: PersonClient,
}

impl Scene {
    async fn set() -> Self {
        let server = TestServer::start().await;
        let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
        let scene = Self { server, bot, ada };
        let seen = scene
            .click(&scene.ada, "/sites/bakery", "publish", &[])
            .await;
        assert_eq!(seen.location(), "/sites/bakery?notice=published");
        scene
            .bot
            .edit(&scene.server.site, "visit", "We moved.")
            .await;
        scene
    }

    /// Opens a page, and presses one of its buttons with the state that the page showed.
    async fn click(
        &self,
        person: &PersonClient,
        page: &str,
        action: &str,
        more: &[(&str, &str)],
    ) -> Seen {
        let state = self.state().await;
        let shown = person.get(page).await;
        assert_eq!(shown.status, 200, "{page}");
        let fields = [&[("stateHash", state.as_str())], more].concat();
        let base = page.trim_end_matches("/versions");
        person.post_form(&format!("{base}/{action}"), &fields).await
    }

    async fn state(&self) -> String {
        let sql = "select state_hash from sites where slug = 'bakery' order by deleted_at desc";
        self.server.database.texts(sql).await.remove(0)
    }

    async fn live(&self, path: &str) -> Seen {
        self.server
            .anonymous()
            .get(&format!("/live/bakery/{path}"))
            .await
    }
}

/// Every notice has words of its own on the page that it leads to.
async fn says(person: &PersonClient, location: &str) {
    let page = person.get(location).await;
    assert!(page.status == 200, "{location}: {}", page.status);
    assert!(
        page.text.contains("role=\"status\""),
        "{location} says nothing"
    );
    assert!(
        !page
            .text
            .contains("That did not work, and nothing was changed"),
        "{location} has no words of its own"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deciding_on_the_page() {
    let Scene { server, bot, ada } = Scene::set().await;
    let id = bot.ask("publish", json!({"site": server.site})).await;
    let path = format!("/approvals/{id}");
    let page = ada.get(&path).await;
    let digest = PersonClient::field(&page, "seenDigest");
    assert_eq!(digest, ada.record(&server.site, &id).await["seenDigest"]);

    let vera = server.as_member("vera", Role::Viewer).await;
    let back = async |person: &PersonClient, fields: &[(&str, &str)]| {
        person.post_form(&path, fields).await.location().to_owned()
    };
    let with = |notice: &str| format!("{path}?notice={notice}");
    assert_eq!(
        back(&vera, &[("seenDigest", &digest), ("decision", "approve")]).await,
        with("forbidden")
    );
    assert_eq!(
        back(&ada, &[("seenDigest", "sha256:0"), ("decision", "approve")]).await,
        with("stale_view")
    );
    assert_eq!(
        back(&ada, &[("decision", "approve")]).await,
        with("stale_view")
    );
    for decision in ["", "yes", "APPROVE", "approved"] {
        assert_eq!(
            back(&ada, &[("seenDigest", &digest), ("decision", decision)]).await,
            with("invalid_arguments")
        );
    }
    let json_body = ada
        .post_json(&path, json!({"seenDigest": digest, "decision": "approve"}))
        .await;
    assert_refused(&json_body, Code::Malformed, "JSON on a form's route");
    assert_eq!(ada.record(&server.site, &id).await["status"], "pending");

    assert_eq!(
        back(
            &ada,
            &[
                ("seenDigest", &digest),
                ("decision", "approve"),
                ("reason", "Looks right.")
            ]
        )
        .await,
        path
    );
    let record = ada.record(&server.site, &id).await;
    assert_eq!(
        (&record["status"], &record["decisions"][0]["by"]["name"]),
        (&json!("approved"), &json!("ada"))
    );
    assert_eq!(record["decisions"][0]["reason"], "Looks right.");
    // [C49] Pressed twice, and the other way by somebody else.
    for decision in ["approve", "deny"] {
        assert_eq!(
            back(&ada, &[("seenDigest", &digest), ("decision", decision)]).await,
            with("already_decided")
        );
    }
    for notice in [
        "forbidden",
        "stale_view",
        "invalid_arguments",
        "already_decided",
    ] {
        says(&ada, &with(notice)).await;
    }
    assert_eq!(
        bot.call_with(&id, "publish", json!({"site": server.site}))
            .await
            .code(),
        "ok"
    );
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_closed_meanwhile_is_not_decided() {
    let Scene { server, bot, ada } = Scene::set().await;
    let publish = json!({"site": server.site});
    let decide = async |id: &str, digest: &Value| {
        let fields = [
            ("seenDigest", digest.as_str().unwrap()),
            ("decision", "approve"),
        ];
        ada.post_form(&format!("/approvals/{id}"), &fields)
            .await
            .location()
            .to_owned()
    };
    let id = bot.ask("publish", publish.clone()).await;
    let digest = ada.record(&server.site, &id).await["seenDigest"].clone();
    bot.edit(&server.site, "rye", "Changed meanwhile.").await;
    let newer = bot.ask("publish", publish.clone()).await;
    assert_eq!(
        decide(&id, &digest).await,
        format!("/approvals/{id}?notice=approval_voided"),
        "[C13]"
    );
    assert_eq!(
        ada.record(&server.site, &newer).await["status"],
        "pending",
        "[C13] the newer one is untouched"
    );

    let digest = ada.record(&server.site, &newer).await["seenDigest"].clone();
    bot.ok("approvals-cancel", json!({"approvalId": newer}))
        .await;
    assert_eq!(
        decide(&newer, &digest).await,
        format!("/approvals/{newer}?notice=approval_cancelled")
    );
    let last = bot.ask("publish", publish).await;
    let digest = ada.record(&server.site, &last).await["seenDigest"].clone();
    server.advance(25 * HOUR);
    assert_eq!(
        decide(&last, &digest).await,
        format!("/approvals/{last}?notice=approval_expired")
    );
    for (id, notice) in [
        (&id, "approval_voided"),
        (&newer, "approval_cancelled"),
        (&last, "approval_expired"),
    ] {
        says(&ada, &format!("/approvals/{id}?notice={notice}")).await;
    }
    server.done().await;
}

/// [A4] The end of a site is typed by hand, whoever asks for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_irreversible_request_needs_the_name_typed() {
    let Scene { server, bot, ada } = Scene::set().await;
    let id = bot.ask("delete", json!({"site": server.site})).await;
    let path = format!("/approvals/{id}");
    let digest = PersonClient::field(&ada.get(&path).await, "seenDigest");
    for confirm in ["", "Bakery", "BAKERY", "bakery2", "The bakery"] {
        let seen = ada
            .post_form(
                &path,
                &[
                    ("seenDigest", &digest),
                    ("decision", "approve"),
                    ("confirm", confirm),
                ],
            )
            .await;
        assert_eq!(
            seen.location(),
            format!("{path}?notice=confirm_needed"),
            "{confirm}"
        );
    }
    says(&ada, &format!("{path}?notice=confirm_needed")).await;
    let seen = ada
        .post_form(
            &path,
            &[
                ("seenDigest", &digest),
                ("decision", "approve"),
                ("confirm", " bakery "),
            ],
        )
        .await;
    assert_eq!(seen.location(), path);
    assert_eq!(server.anonymous().get("/live/bakery/").await.status, 200);
    assert_eq!(
        bot.call_with(&id, "delete", json!({"site": server.site}))
            .await
            .code(),
        "ok"
    );
    assert_eq!(server.anonymous().get("/live/bakery/").await.status, 410);
    let again = bot
        .call_with(&id, "delete", json!({"site": server.site}))
        .await;
    assert_eq!(
        again.body["replayed"], true,
        "a repeat works after the site is gone"
    );
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_are_denied_at_once_and_none_approved() {
    let Scene { server, bot, ada } = Scene::set().await;
    let mut ids = Vec::new();
    for slug in ["visit", "rye", "bread"] {
        let node = bot.node(&server.site, slug).await;
        ids.push(
            bot.ask("delete", json!({"site": server.site, "node": node}))
                .await,
        );
    }
    let zoe = server.as_person("zoe").await;
    let back = async |person: &PersonClient, ids: &[&str]| {
        let mut fields: Vec<(&str, &str)> = ids.iter().map(|id| ("ids", *id)).collect();
        fields.extend([("decision", "approve"), ("reason", "Not now.")]);
        person
            .post_form("/approvals/deny", &fields)
            .await
            .location()
            .to_owned()
    };
    assert_eq!(back(&ada, &[]).await, "/approvals?notice=nothing_selected");
    assert_eq!(
        back(&zoe, &[&ids[0], &ids[1]]).await,
        "/approvals?notice=denied_some"
    );
    assert_eq!(
        ada.record(&server.site, &ids[0]).await["status"],
        "pending",
        "[P7]"
    );
    assert_eq!(
        back(&ada, &[&ids[0], &ids[1]]).await,
        "/approvals?notice=denied_all"
    );
    assert_eq!(
        back(&ada, &[&ids[1], &ids[2], "nothing"]).await,
        "/approvals?notice=denied_some"
    );
    for id in &ids {
        let record = ada.record(&server.site, id).await;
        assert_eq!(
            (&record["status"], &record["decisions"][0]["reason"]),
            (&json!("denied"), &json!("Not now."))
        );
    }
    for notice in ["nothing_selected", "denied_some", "denied_all"] {
        says(&ada, &format!("/approvals?notice={notice}")).await;
    }
    server.done().await;
}

/// A person's own click runs at once, needs the role and the state that the page showed, and is journaled as `direct`.
#[tokio::test(flavor = "multi_thread")]
async fn a_persons_click_publishes() {
    let scene = Scene::set().await;
    let server = &scene.server;
    let before = server.effects().await;
    for role in [Role::Viewer, Role::Editor] {
        let person = server.as_member(role.as_str(), role).await;
        let seen = scene.click(&person, "/sites/bakery", "publish", &[]).await;
        assert_eq!(seen.location(), "/sites/bakery?notice=forbidden");
        let seen = scene
            .click(
                &person,
                "/sites/bakery/versions",
                "rollback",
                &[("version", "1")],
            )
            .await;
        assert_eq!(seen.location(), "/sites/bakery/versions?notice=forbidden");
        says(&person, "/sites/bakery?notice=forbidden").await;
    }
    let approver = server.as_member("bea", Role::Approver).await;
    for state in ["", "sha256:0", before.0[0].trim_start_matches("sha256:")] {
        let seen = approver
            .post_form("/sites/bakery/publish", &[("stateHash", state)])
            .await;
        assert_eq!(seen.location(), "/sites/bakery?notice=conflict");
    }
    assert_eq!(server.effects().await, before);
    assert!(!scene.live("visit/").await.text.contains("We moved."));

    let pending = scene.bot.ask("publish", json!({"site": server.site})).await;
    let seen = scene
        .click(&approver, "/sites/bakery", "publish", &[])
        .await;
    assert_eq!(seen.location(), "/sites/bakery?notice=published");
    assert!(scene.live("visit/").await.text.contains("We moved."));
    assert_eq!(
        scene.ada.record(&server.site, &pending).await["status"],
        "voided",
        "[P4] the click is a change, too"
    );
    let journal = server.journal().await;
    let ran = journal
        .iter()
        .rev()
        .find(|entry| entry["kind"] == "tool.ran")
        .unwrap();
    assert_eq!(
        (&ran["body"]["surface"], &ran["body"]["tool"]),
        (&json!("direct"), &json!("publish"))
    );
    assert!(
        ran["actor"].as_str().unwrap().starts_with("person:"),
        "{ran}"
    );
    assert_eq!(ran["actorName"], "bea");

    let seen = scene
        .click(
            &approver,
            "/sites/bakery/versions",
            "rollback",
            &[("version", "1")],
        )
        .await;
    assert_eq!(seen.location(), "/sites/bakery/versions?notice=rolled_back");
    assert!(
        !scene.live("visit/").await.text.contains("We moved."),
        "[C61] the old version is live"
    );
    let draft = scene
        .bot
        .ok(
            "node-get",
            json!({"site": server.site, "node": scene.bot.node(&server.site, "visit").await}),
        )
        .await;
    assert!(
        draft.to_string().contains("We moved."),
        "[C61] and the draft is kept"
    );
    for version in ["0", "-1", "99", "x", "", "1e0", "9223372036854775808"] {
        let seen = scene
            .click(
                &approver,
                "/sites/bakery/versions",
                "rollback",
                &[("version", version)],
            )
            .await;
        assert!(
            seen.location()
                .starts_with("/sites/bakery/versions?notice="),
            "{version}"
        );
        assert!(!seen.location().ends_with("rolled_back"), "{version}");
    }
    says(&approver, "/sites/bakery?notice=published").await;
    says(&approver, "/sites/bakery/versions?notice=rolled_back").await;
    scene.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_deleted_by_its_owner_and_its_name() {
    let scene = Scene::set().await;
    let server = &scene.server;
    let approver = server.as_member("bea", Role::Approver).await;
    let seen = scene
        .click(
            &approver,
            "/sites/bakery",
            "delete",
            &[("confirm", "bakery")],
        )
        .await;
    assert_eq!(seen.location(), "/sites/bakery?notice=forbidden");
    for confirm in ["", "Bakery", "the-bakery"] {
        let seen = scene
            .click(
                &scene.ada,
                "/sites/bakery",
                "delete",
                &[("confirm", confirm)],
            )
            .await;
        assert_eq!(
            seen.location(),
            "/sites/bakery?notice=confirm_needed",
            "{confirm}"
        );
    }
    let node = scene.bot.node(&server.site, "rye").await;
    let path = format!("/sites/bakery/nodes/{node}/delete");
    let seen = approver
        .post_form(&path, &[("stateHash", &scene.state().await)])
        .await;
    assert_eq!(seen.location(), "/sites/bakery?notice=deleted");
    let gone = scene
        .bot
        .call("node-get", json!({"site": server.site, "node": node}))
        .await;
    assert_refused(&gone, Code::NotFound, "deleted");
    assert_eq!(
        scene.live("bread/rye/").await.status,
        200,
        "out of the draft only"
    );

    let waiting = scene.bot.ask("publish", json!({"site": server.site})).await;
    let seen = scene
        .click(
            &scene.ada,
            "/sites/bakery",
            "delete",
            &[("confirm", "bakery")],
        )
        .await;
    assert_eq!(seen.location(), "/sites?notice=deleted");
    says(&scene.ada, "/sites?notice=deleted").await;
    for path in ["", "visit/", "nowhere/"] {
        assert_eq!(scene.live(path).await.status, 410, "{path}");
    }
    for tool in ["site-get", "publish", "node-list"] {
        let seen = scene.bot.call(tool, json!({"site": server.site})).await;
        assert_refused(&seen, Code::NotFound, tool);
    }
    let seen = scene
        .bot
        .call_with(&waiting, "publish", json!({"site": server.site}))
        .await;
    assert_refused(
        &seen,
        Code::ApprovalVoided,
        "a request on a site that is gone",
    );
    // The name is free again.
    let ada = server.account("ada").await;
    server.add_site(SLUG, &ada).await;
    assert_eq!(scene.live("").await.status, 404);
    scene.server.done().await;
}

/// [family 12, C49] Thirty-two windows press Approve at once; then sixteen press Publish with one state.
#[tokio::test(flavor = "multi_thread")]
async fn pressed_many_times_it_happens_once() {
    let Scene { server, bot, ada } = Scene::set().await;
    let id = bot.ask("publish", json!({"site": server.site})).await;
    let digest = ada.record(&server.site, &id).await["seenDigest"]
        .as_str()
        .unwrap()
        .to_owned();
    let tries: Vec<_> = (0..32)
        .map(|at| {
            let (ada, id, digest) = (ada.clone(), id.clone(), digest.clone());
            let decision = if at % 2 == 0 { "approve" } else { "deny" };
            tokio::spawn(async move {
                let fields = [("seenDigest", digest.as_str()), ("decision", decision)];
                ada.post_form(&format!("/approvals/{id}"), &fields)
                    .await
                    .location()
                    .to_owned()
            })
        })
        .collect();
    let mut won = 0;
    for one in tries {
        let to = one.await.unwrap();
        won += i32::from(to == format!("/approvals/{id}"));
        assert!(
            to == format!("/approvals/{id}") || to.ends_with("notice=already_decided"),
            "{to}"
        );
    }
    assert_eq!(won, 1);
    assert_eq!(
        ada.record(&server.site, &id).await["decisions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let state = server
        .database
        .texts("select state_hash from sites")
        .await
        .remove(0);
    let versions = server
        .database
        .number("select count(*) from versions")
        .await;
    let tries: Vec<_> = (0..16)
        .map(|_| {
            let (ada, state) = (ada.clone(), state.clone());
            tokio::spawn(async move {
                ada.post_form("/sites/bakery/publish", &[("stateHash", &state)])
                    .await
                    .location()
                    .to_owned()
            })
        })
        .collect();
    let mut published = 0;
    for one in tries {
        let to = one.await.unwrap();
        published += i64::from(to.ends_with("notice=published"));
        assert!(
            to.ends_with("notice=published") || to.ends_with("notice=conflict"),
            "{to}"
        );
    }
    assert_eq!(published, 1);
    assert_eq!(
        server
            .database
            .number("select count(*) from versions")
            .await,
        versions + 1
    );
    server.done().await;
}
