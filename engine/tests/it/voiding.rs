//! Any change voids (DESIGN §4, rule 5), what is no change does not, and an ungated tool never changes what is live.

use crate::support::*;
use cloudhal_engine::{
    authority::Author,
    journal::{self, Entry},
    people,
    sites::LockedSite,
};
use tokio::sync::oneshot;

on_both! {
    an_edit_after_the_approval_voids_it_and_is_named,
    an_edit_and_its_revert_void_too,
    an_edit_that_changes_nothing_voids_nothing,
    every_kind_of_change_voids_every_open_request,
    a_refused_edit_voids_nothing,
    another_site_is_not_touched,
    a_voided_request_is_never_reused,
    ungated_tools_never_change_what_is_live,
    deleting_the_site_leaves_a_tombstone,
    a_restore_voids_everything_that_was_open,
    a_restore_ends_sessions_and_links_of_before,
    a_restore_waits_for_whoever_writes_to_a_site,
    a_restore_while_others_ask_hurts_nobody,
    a_changed_tool_voids,
}

/// C59.
async fn an_edit_after_the_approval_voids_it_and_is_named(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    scene.edit("Something else.").await;
    let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "state_changed");
    assert!(
        refusal
            .message
            .contains("the site changed after the approval was requested")
    );
    assert_eq!(
        refusal.details["changed"],
        json!([{"node": scene.rye, "title": "Rye", "path": "bread/rye", "what": "edited", "rev": 2}])
    );
    assert_eq!(scene.versions().await, 0);
    let told = scene.journal(&id).await;
    assert_eq!(told.last().unwrap(), "approval.voided");
    // Who edited is who voided.
    let by = world
        .text("select actor from journal where kind = 'approval.voided'")
        .await;
    assert_eq!(by, format!("agent:{}", scene.bot.id));
}

async fn an_edit_and_its_revert_void_too(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    scene.edit("Something else.").await;
    scene.edit("Rye, as it was.").await;
    scene.redeem(&id).await.refused(Code::ApprovalVoided);
    let id = scene.approved().await;
    let move_to = async |parent: &str| {
        let arguments =
            json!({"site": scene.site, "node": scene.rye, "parent": parent, "position": 10});
        scene.bot.call("node-move", arguments).await.ok();
    };
    let bread = world.node(&scene.site, "bread").await;
    move_to("").await;
    move_to(bread.as_str()).await;
    scene.redeem(&id).await.refused(Code::ApprovalVoided);
}

async fn an_edit_that_changes_nothing_voids_nothing(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let state = async || {
        world
            .texts("select state_hash || ' ' || cast(state_rev as text) from sites")
            .await
    };
    let before = state().await;
    for arguments in [
        json!({"body": "Rye, as it was."}),
        json!({"title": "Rye", "slug": "rye", "fields": {}}),
        json!({}),
        json!({"expectedRev": 1}),
    ] {
        let mut arguments = arguments;
        arguments["site"] = json!(scene.site);
        arguments["node"] = json!(scene.rye);
        let node = scene.bot.call("node-update", arguments).await.ok();
        assert_eq!(node["rev"], 1);
    }
    let still = json!({"site": scene.site, "node": scene.rye});
    scene.bot.call("node-move", still).await.ok();
    assert_eq!(state().await, before);
    scene.redeem(&id).await.ok();
}

async fn every_kind_of_change_voids_every_open_request(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.publish().await;
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    let site = &scene.site;
    let changes = [
        (
            "node-create",
            json!({"site": site, "title": "New", "slug": "new"}),
        ),
        (
            "node-update",
            json!({"site": site, "node": scene.rye, "title": "Dark rye"}),
        ),
        (
            "node-move",
            json!({"site": site, "node": scene.rye, "position": 99}),
        ),
        ("publish", json!({"site": site})),
        ("rollback", json!({"site": site, "version": 1})),
        ("delete", json!({"site": site, "node": scene.rye})),
        ("delete", json!({"site": site})),
    ];
    for (tool, arguments) in changes {
        let approved = scene.approved().await;
        let waiting = other
            .call("publish", scene.publish_args())
            .await
            .pending()
            .approval_id;
        match tool {
            "publish" | "rollback" | "delete" => {
                drop(scene.ada.act(tool, arguments).await.unwrap());
            }
            _ => drop(scene.bot.call(tool, arguments).await.ok()),
        }
        let refusal = scene.redeem(&approved).await.refused(Code::ApprovalVoided);
        assert_eq!(refusal.details["cause"], "state_changed", "{tool}");
        let changed = refusal.details["changed"].as_array().unwrap();
        assert!(!changed.is_empty(), "{tool} is named");
        assert_eq!(scene.stored_status(&waiting).await, "voided", "{tool}");
    }
}

async fn a_refused_edit_voids_nothing(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let arguments = json!({"site": scene.site, "title": "Twin", "slug": "visit"});
    let answer = scene.bot.call("node-create", arguments).await;
    answer.refused(Code::Conflict);
    let arguments = json!({"site": scene.site, "node": scene.rye, "expectedRev": 7, "body": "x"});
    let answer = scene.bot.call("node-update", arguments).await;
    answer.refused(Code::Conflict);
    scene.redeem(&id).await.ok();
}

async fn another_site_is_not_touched(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    let bot = world.agent("florist bot", &scene.ada, &[&florist]).await;
    let id = scene.approved().await;
    let arguments = json!({"site": florist, "title": "New", "slug": "new"});
    bot.call("node-create", arguments).await.ok();
    scene.redeem(&id).await.ok();
}

async fn a_voided_request_is_never_reused(world: World) {
    let scene = world.scene().await;
    let old = scene.asked().await;
    scene.edit("Else.").await;
    let new = scene.asked().await;
    assert_ne!(old, new);
    scene.ada.approve(&new).await.unwrap();
    scene.redeem(&old).await.refused(Code::ApprovalVoided);
    scene.redeem(&new).await.ok();
    assert_eq!(scene.published_rye(1).await, "Else.");
}

/// C62.
async fn ungated_tools_never_change_what_is_live(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    let live = async || {
        let sql = "select node_id || ' ' || cast(rev as text) || ' ' || slug || ' ' || parent || ' ' || cast(from_version as text) || ' ' || coalesce(cast(to_version as text), '-') from published order by 1";
        let rows = world.texts(sql).await;
        (rows, scene.live_version().await)
    };
    let before = live().await;
    let site = &scene.site;
    for (tool, arguments) in [
        (
            "node-create",
            json!({"site": site, "title": "New", "slug": "new"}),
        ),
        (
            "node-update",
            json!({"site": site, "node": scene.rye, "slug": "dark-rye", "title": "Dark", "body": "x"}),
        ),
        (
            "node-move",
            json!({"site": site, "node": scene.rye, "parent": ""}),
        ),
    ] {
        scene.bot.call(tool, arguments).await.ok();
    }
    assert_eq!(live().await, before);
}

async fn deleting_the_site_leaves_a_tombstone(world: World) {
    let scene = world.scene().await;
    let ran_before = scene.approved().await;
    let published = scene.redeem(&ran_before).await.ok();
    let denied = scene.asked().await;
    scene.ada.deny(&denied, "no").await.unwrap();
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    let waiting = other
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    let deletion = scene
        .bot
        .call("delete", scene.publish_args())
        .await
        .pending();
    scene.ada.approve(&deletion.approval_id).await.unwrap();
    let ran = scene
        .bot
        .call_with(&deletion.approval_id, "delete", scene.publish_args())
        .await
        .ok();
    assert_eq!(ran, json!({"deleted": "site", "nodes": 4}));

    // Its record and every older one still answer, in the contract's order.
    let again = scene
        .bot
        .call_with(&deletion.approval_id, "delete", scene.publish_args())
        .await;
    assert_eq!(again.replayed(), ran);
    assert_eq!(scene.redeem(&ran_before).await.replayed(), published);
    scene.redeem(&denied).await.refused(Code::ApprovalDenied);
    let voided = other
        .call_with(&waiting, "publish", scene.publish_args())
        .await;
    let refusal = voided.refused(Code::ApprovalVoided);
    assert_eq!(
        refusal.details["changed"],
        json!([{"site": scene.site, "what": "deleted"}])
    );
    refused(scene.ada.approve(&waiting).await, Code::ApprovalVoided);
    assert_eq!(
        scene.ada.look(&ran_before).await.unwrap().status,
        Status::Redeemed
    );

    // Nothing new happens to it, and its slug is free.
    for (tool, arguments) in [
        ("publish", scene.publish_args()),
        ("site-get", scene.publish_args()),
        ("node-list", scene.publish_args()),
        ("delete", scene.publish_args()),
        (
            "node-create",
            json!({"site": scene.site, "title": "x", "slug": "x"}),
        ),
    ] {
        scene
            .bot
            .call(tool, arguments)
            .await
            .refused(Code::NotFound);
    }
    refused(
        scene.ada.act("publish", scene.publish_args()).await,
        Code::NotFound,
    );
    let new = world.site("bakery", &scene.ada).await;
    assert_ne!(new, scene.site);
    assert!(!scene.journal(&ran_before).await.is_empty());
}

/// A19, R16.
async fn a_restore_voids_everything_that_was_open(world: World) {
    let scene = world.scene().await;
    let ran = scene.approved().await;
    let result = scene.redeem(&ran).await.ok();
    let approved = scene.approved().await;
    let florist = world.site("florist", &scene.ada).await;
    let bot = world.agent("florist bot", &scene.ada, &[&florist]).await;
    let waiting = bot
        .call("publish", json!({"site": florist}))
        .await
        .pending()
        .approval_id;
    assert_eq!(background::start_epoch(world.engine()).await.unwrap(), 2);
    let refusal = scene.redeem(&approved).await.refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "restored");
    refused(scene.ada.approve(&waiting).await, Code::ApprovalVoided);
    assert_eq!(scene.redeem(&ran).await.replayed(), result);
    let new = scene.approved().await;
    assert_ne!(new, approved);
    scene.redeem(&new).await.ok();
}

/// What was signed out, spent or ended after the backup would otherwise open something again.
async fn a_restore_ends_sessions_and_links_of_before(world: World) {
    let engine = world.engine();
    let ben = world.person("ben").await;
    let link = async || {
        let link = people::sign_in_link(engine, ben.person()).await.unwrap();
        link.rsplit('/').next().unwrap().to_owned()
    };
    let later = engine.now().plus(HOUR).ms();
    let save = async |id: &str| {
        let save = engine.store().save_session(id.into(), "{}".into(), later);
        save.await.unwrap();
    };
    let token = link().await;
    save("before").await;
    let client = OwnClient::made(engine, ben.person(), "desk").await.unwrap();
    client.caller().await.unwrap();
    background::start_epoch(engine).await.unwrap();
    let spent = people::spend_sign_in_link(engine, &token).await;
    refused(spent, Code::SignInFailed);
    // A key of their own client goes with its session.
    refused(client.caller().await, Code::Unauthorized);
    let now = engine.now().ms();
    assert_eq!(engine.store().session("before", now).await.unwrap(), None);
    let told = "select body from journal where kind = 'instance.restored'";
    let told: Value = serde_json::from_str(&world.text(told).await).unwrap();
    assert_eq!(
        (&told["sessions"], &told["signInLinks"]),
        (&json!(2), &json!(1))
    );
    // What is made from now on works.
    save("after").await;
    people::spend_sign_in_link(engine, &link().await)
        .await
        .unwrap();
    assert!(
        engine
            .store()
            .session("after", now)
            .await
            .unwrap()
            .is_some()
    );
}

/// `cloudhal restored` may be run while others write: it takes a site's lock before it touches the site's journal.
async fn a_restore_waits_for_whoever_writes_to_a_site(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let (engine, site) = (world.engine().clone(), scene.site.clone());
    let (is_held, held) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let writer = tokio::spawn(async move {
        let unit = engine.store().write(move |tx| {
            Box::pin(async move {
                let now = LockedSite::expect(tx, &site).await?.now();
                let entry = Entry {
                    kind: "test.wrote",
                    actor: &Author::system(),
                    approval: None,
                    body: json!({}),
                };
                journal::site(tx, site.as_str(), now, entry).await?;
                is_held.send(()).unwrap();
                released.await.unwrap();
                Ok(())
            })
        });
        unit.await
    });
    held.await.unwrap();
    let engine = world.engine().clone();
    let restore = tokio::spawn(async move { background::start_epoch(&engine).await });
    if world.database().kind() == Kind::Postgres {
        // On SQLite it stands in the writer's queue.
        let blocked = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while world.number(blocked).await == 0 {}
    }
    release.send(()).unwrap();
    writer.await.unwrap().unwrap();
    assert_eq!(restore.await.unwrap().unwrap(), 1);
    scene.redeem(&id).await.refused(Code::ApprovalVoided);
}

/// The same as a storm.
async fn a_restore_while_others_ask_hurts_nobody(world: World) {
    let scene = world.scene().await;
    for _ in 0..rounds(10) {
        scene.asked().await;
        let edits = (0..8).map(|n| {
            let scene = scene.clone();
            tokio::spawn(async move {
                scene
                    .edit(&format!("{n} {}", cloudhal_engine::clock::fresh_id()))
                    .await;
                scene
                    .bot
                    .call("publish", scene.publish_args())
                    .await
                    .pending();
            })
        });
        let engine = world.engine().clone();
        let restore = tokio::spawn(async move { background::start_epoch(&engine).await });
        for edit in futures::future::join_all(edits).await {
            edit.unwrap();
        }
        restore.await.unwrap().unwrap();
    }
}

/// R17 in small: the record was made by another build, whose tool differed.
async fn a_changed_tool_voids(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    world
        .sql("update approvals set tool_version = '0.0000000000000000'")
        .await;
    world.tampers();
    let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "tool_changed");
    assert_eq!(scene.stored_status(&id).await, "voided");
    assert_eq!(scene.journal(&id).await.last().unwrap(), "approval.voided");
    assert_eq!(scene.versions().await, 0);
}
