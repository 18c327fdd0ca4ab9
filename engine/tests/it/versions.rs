//! Versions: a publish writes what changed, any version reads back exactly, a rollback never touches the draft.

use crate::support::*;
use cloudhal_domain::id::ApprovalId;
use cloudhal_engine::{authority::Author, studio};
use std::collections::BTreeMap;

on_both! {
    a_publish_writes_only_what_changed,
    any_version_reads_back_exactly,
    versions_and_the_draft_are_compared,
    a_card_names_the_address_that_each_side_has,
    a_long_change_can_be_read_to_its_end_at_any_later_time,
    a_rollback_moves_the_pointer_and_never_the_draft,
    a_publish_after_a_rollback_follows_the_newest_version,
    what_ran_counts_as_the_card_did_after_a_rollback,
    what_was_put_back_has_not_moved,
    a_waiting_answer_says_what_would_happen,
    a_rollback_to_what_is_live_or_unknown_is_refused,
    deleting_a_node_takes_its_subtree_out_of_the_draft_only,
    an_empty_site_cannot_be_published,
    publishing_again_with_nothing_changed_is_a_version,
    a_person_acts_at_once_with_the_role_and_not_without,
    a_person_never_acts_on_a_state_they_did_not_see,
}

async fn a_publish_writes_only_what_changed(world: World) {
    let scene = world.scene().await;
    for n in 0..30 {
        let new = json!({"site": scene.site, "title": "x", "slug": format!("page-{n}")});
        scene.bot.call("node-create", new).await.ok();
    }
    let rows = async || world.number("select count(*) from published").await;
    scene.publish().await;
    assert_eq!(rows().await, 34);
    scene.edit("Two.").await;
    scene.edit("Three.").await;
    scene.publish().await;
    assert_eq!(rows().await, 35, "one node changed, however often");
    scene.publish().await;
    assert_eq!(rows().await, 35);
    let delete = json!({"site": scene.site, "node": scene.rye});
    scene.ada.act("delete", delete).await.unwrap();
    scene.publish().await;
    assert_eq!(rows().await, 35, "a removal only closes");
}

async fn versions_and_the_draft_are_compared(world: World) {
    let scene = world.scene().await;
    let compare = async |from: Value, to: Value| {
        let mut args = json!({"site": scene.site});
        for (name, version) in [("from", from), ("to", to)] {
            if !version.is_null() {
                args[name] = version;
            }
        }
        scene.bot.call("version-compare", args).await
    };
    let counts = |found: &Value| json!([found["added"], found["edited"], found["removed"]]);
    let first = compare(Value::Null, Value::Null).await.ok();
    assert_eq!(
        counts(&first),
        json!([4, 0, 0]),
        "nothing is live: all is new"
    );
    assert_eq!(first["from"], Value::Null);

    scene.publish().await;
    let none = compare(Value::Null, Value::Null).await.ok();
    assert_eq!(
        (counts(&none), none["from"].clone()),
        (json!([0, 0, 0]), json!(1))
    );
    scene.edit("Rye, darker.").await;
    let visit = world.node(&scene.site, "visit").await;
    let delete = json!({"site": scene.site, "node": visit});
    scene.ada.act("delete", delete).await.unwrap();
    let draft = compare(json!(1), Value::Null).await.ok();
    assert_eq!(counts(&draft), json!([0, 1, 1]));
    assert_eq!(draft["more"], 0);
    assert_eq!(
        draft["nodes"][0],
        json!({"node": scene.rye, "change": "edited", "kind": "entry", "title": "Rye", "path": "bread/rye",
            "pathBefore": null, "revBefore": 1, "revAfter": 2, "wordsAdded": 1, "wordsRemoved": 3})
    );
    scene.publish().await;
    let forth = compare(json!(1), json!(2)).await.ok();
    assert_eq!(forth["nodes"], draft["nodes"]);
    let back = compare(json!(2), json!(1)).await.ok();
    assert_eq!(counts(&back), json!([1, 1, 0]));
    compare(json!(3), Value::Null).await.refused(Code::NotFound);
    compare(json!(1), json!(0))
        .await
        .refused(Code::InvalidArguments);
}

/// Rule 11: addresses are those of the states that are compared, whatever the draft calls its pages meanwhile.
async fn a_card_names_the_address_that_each_side_has(world: World) {
    let scene = world.scene().await;
    let rename = async |node: &NodeId, slug: &str| {
        let new = json!({"site": scene.site, "node": node, "slug": slug});
        scene.bot.call("node-update", new).await.ok();
    };
    let changes = async |id: &ApprovalId| {
        let card = scene.ada.look(id).await.unwrap().card;
        let listed = card.changes.unwrap().nodes;
        let paths = listed.into_iter().map(|n| (n.path_before, n.path));
        (paths.collect::<Vec<_>>(), card.facts)
    };
    scene.publish().await;
    let bread = world.node(&scene.site, "bread").await;
    rename(&bread, "loaves").await;
    let id = scene.asked().await;
    let (paths, facts) = changes(&id).await;
    assert_eq!(paths, [(Some("bread".into()), "loaves".into())]);
    assert!(
        facts
            .iter()
            .any(|f| f.value.contains("/bread/") && f.value.contains("/loaves/")),
        "{facts:?}"
    );
    let view = studio::approval(world.engine(), scene.ada.person(), &id)
        .await
        .unwrap();
    assert_eq!(view.diffs[0].fields[0].name, "Address");

    scene.edit("New crumb.").await;
    scene.publish().await;
    // The draft goes on; a rollback shows what is live and what would be.
    rename(&bread, "bakes").await;
    rename(&scene.rye, "dark").await;
    let back = json!({"site": scene.site, "version": 1});
    let id = scene.bot.call("rollback", back).await.pending().approval_id;
    let (paths, _) = changes(&id).await;
    let expected = [
        (Some("loaves".into()), "bread".into()),
        (Some("loaves/rye".into()), "bread/rye".into()),
    ];
    assert_eq!(paths, expected);
}

/// A card lists the first changes and binds them all: the others are drawn again from what never changes.
async fn a_long_change_can_be_read_to_its_end_at_any_later_time(world: World) {
    const MANY: usize = 230;
    let scene = world.scene().await;
    let page = |at: usize| sites::NewNode {
        path: vec!["archive".to_owned(), format!("page-{at}")],
        kind: "entry".into(),
        title: format!("Page {at}"),
        position: at as i64,
        body: format!("Text {at}."),
        fields: Map::new(),
    };
    let archive = sites::NewNode {
        path: vec!["archive".to_owned()],
        kind: "collection".into(),
        ..page(0)
    };
    let nodes = std::iter::once(archive)
        .chain((0..MANY).map(page))
        .collect();
    let by = Author::person(scene.ada.person());
    sites::fill(world.engine(), &scene.site, by, nodes)
        .await
        .unwrap();
    let total = 4 + 1 + MANY as i64;

    let all = async |id: &ApprovalId, total: i64| {
        let (mut from, mut seen) = (Some(0), std::collections::BTreeSet::new());
        while let Some(at) = from {
            let view = studio::changes(world.engine(), scene.ada.person(), id, at)
                .await
                .unwrap();
            assert_eq!(view.total, total);
            seen.extend(view.diffs.into_iter().map(|d| d.change.node));
            from = view.after;
        }
        assert_eq!(seen.len() as i64, total);
    };
    let first = scene
        .bot
        .call("publish", json!({"site": scene.site}))
        .await
        .pending()
        .approval_id;
    all(&first, total).await;
    scene.ada.approve(&first).await.unwrap();
    let redeemed = scene
        .bot
        .call_with(&first, "publish", json!({"site": scene.site}))
        .await;
    redeemed.ok();

    let archive = world.node(&scene.site, "archive").await;
    let asked = json!({"site": scene.site, "node": archive});
    let delete = scene
        .bot
        .call("delete", asked.clone())
        .await
        .pending()
        .approval_id;
    all(&delete, 1 + MANY as i64).await;
    scene.ada.act("delete", asked).await.unwrap();
    let second = scene
        .bot
        .call("publish", json!({"site": scene.site}))
        .await
        .pending()
        .approval_id;
    all(&second, 1 + MANY as i64).await;
    scene.publish().await;
    let back = scene
        .bot
        .call("rollback", json!({"site": scene.site, "version": 1}))
        .await
        .pending()
        .approval_id;
    scene.edit("Much later.").await;

    // All of them are over, and each can still be read whole.
    all(&first, total).await;
    all(&delete, 1 + MANY as i64).await;
    all(&second, 1 + MANY as i64).await;
    all(&back, 1 + MANY as i64).await;
}

/// A version as (path of ids and slugs, revision), read as an export reads it.
async fn version(world: &World, site: &SiteId, version: i64) -> BTreeMap<String, (i64, String)> {
    let sql = format!(
        "select node_id || '|' || cast(rev as text) || '|' || parent || '/' || slug || '@' || cast(position as text) || ' ' || title from published
         where site_id = '{site}' and from_version <= {version} and (to_version is null or to_version > {version})"
    );
    world.texts(&sql).await.into_iter().map(split).collect()
}

async fn draft(world: &World, site: &SiteId) -> BTreeMap<String, (i64, String)> {
    let sql = format!(
        "select id || '|' || cast(rev as text) || '|' || parent || '/' || slug || '@' || cast(position as text) || ' ' || title from nodes
         where site_id = '{site}' and deleted_at is null"
    );
    world.texts(&sql).await.into_iter().map(split).collect()
}

fn split(row: String) -> (String, (i64, String)) {
    let mut parts = row.splitn(3, '|');
    let mut next = || parts.next().unwrap().to_owned();
    (next(), (next().parse().unwrap(), next()))
}

async fn any_version_reads_back_exactly(world: World) {
    let scene = world.scene().await;
    let mut kept = vec![BTreeMap::new()];
    let mut seed = 7_u64;
    let mut chance = |below: u64| {
        // A plain linear generator: the same walk on every run.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..15 {
        for step in 0..chance(4) {
            let ids: Vec<String> = draft(&world, &scene.site).await.into_keys().collect();
            let node = ids[chance(ids.len() as u64) as usize].clone();
            let (tool, mut arguments) = match chance(4) {
                0 => (
                    "node-create",
                    json!({"title": "New", "slug": format!("n-{round}-{step}")}),
                ),
                1 => (
                    "node-update",
                    json!({"node": node, "title": format!("T {round} {step}")}),
                ),
                2 => ("node-move", json!({"node": node, "position": chance(1000)})),
                _ => ("delete", json!({"node": node})),
            };
            arguments["site"] = json!(scene.site);
            match tool {
                "delete" => drop(scene.ada.act(tool, arguments).await),
                _ => drop(scene.bot.call(tool, arguments).await.ok()),
            }
            if draft(&world, &scene.site).await.is_empty() {
                let new = json!({"site": scene.site, "title": "Home", "slug": ""});
                scene.bot.call("node-create", new).await.ok();
            }
        }
        if chance(4) == 0 && kept.len() > 2 {
            let back = json!({"site": scene.site, "version": 1 + chance(kept.len() as u64 - 1)});
            drop(scene.ada.act("rollback", back).await);
        }
        let number = scene.publish().await;
        kept.push(draft(&world, &scene.site).await);
        assert_eq!(number, kept.len() as i64 - 1);
    }
    for (number, expect) in kept.iter().enumerate().skip(1) {
        assert_eq!(
            version(&world, &scene.site, number as i64).await,
            *expect,
            "version {number}"
        );
    }
}

/// C61.
async fn a_rollback_moves_the_pointer_and_never_the_draft(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.publish().await;
    scene.edit("An open draft.").await;
    let before = draft(&world, &scene.site).await;
    let arguments = json!({"site": scene.site, "version": 1});
    let asked = scene
        .bot
        .call("rollback", arguments.clone())
        .await
        .pending();
    let record = scene.ada.approve(&asked.approval_id).await.unwrap();
    assert_eq!(record.card.sentence, "Roll The bakery back to version 1");
    let changes = record.card.changes.unwrap();
    assert_eq!(
        (changes.total, changes.nodes[0].path.as_str()),
        (1, "bread/rye")
    );
    let ran = scene
        .bot
        .call_with(&asked.approval_id, "rollback", arguments)
        .await;
    assert_eq!(ran.ok(), json!({"liveVersion": 1}));
    assert_eq!(scene.live_version().await, Some(1));
    assert_eq!(draft(&world, &scene.site).await, before);
    assert_eq!(scene.versions().await, 2);
    let node = json!({"site": scene.site, "node": scene.rye});
    let node = scene.bot.call("node-get", node).await.ok();
    assert_eq!(node["body"], "An open draft.");
}

async fn a_publish_after_a_rollback_follows_the_newest_version(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.publish().await;
    let back = json!({"site": scene.site, "version": 1});
    scene.ada.act("rollback", back).await.unwrap();
    let asked = scene
        .bot
        .call("publish", scene.publish_args())
        .await
        .pending();
    let card = scene.ada.look(&asked.approval_id).await.unwrap().card;
    assert_eq!(
        card.consequence,
        "Version 1 is live now; this would become version 3."
    );
    let changes = card.changes.unwrap();
    assert_eq!(
        (changes.edited, changes.total),
        (1, 1),
        "compared with what is live"
    );
    assert_eq!(changes.nodes[0].before.as_ref().unwrap().rev, 1);
    assert_eq!(changes.nodes[0].after.as_ref().unwrap().rev, 2);
    assert_eq!(card.facts[0].label, "Rolled back");
    scene.ada.approve(&asked.approval_id).await.unwrap();
    let ran = scene.redeem(&asked.approval_id).await.ok();
    assert_eq!(ran["version"], 3);
    assert_eq!(scene.live_version().await, Some(3));
    for (version, body) in [(1, "Rye, as it was."), (2, "Two."), (3, "Two.")] {
        assert_eq!(scene.published_rye(version).await, body);
    }
}

async fn a_rollback_to_what_is_live_or_unknown_is_refused(world: World) {
    let scene = world.scene().await;
    let ask = async |version: i64| {
        let arguments = json!({"site": scene.site, "version": version});
        scene.bot.call("rollback", arguments).await
    };
    ask(1).await.refused(Code::NotFound);
    scene.publish().await;
    ask(1).await.refused(Code::Conflict);
    ask(2).await.refused(Code::NotFound);
    let by_hand = json!({"site": scene.site, "version": 1});
    refused(scene.ada.act("rollback", by_hand).await, Code::Conflict);
    assert_eq!(world.number("select count(*) from approvals").await, 0);
}

async fn deleting_a_node_takes_its_subtree_out_of_the_draft_only(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    let bread = world.node(&scene.site, "bread").await;
    let arguments = json!({"site": scene.site, "node": bread});
    let asked = scene.bot.call("delete", arguments.clone()).await.pending();
    let record = scene.ada.approve(&asked.approval_id).await.unwrap();
    assert_eq!(
        record.card.sentence,
        "Delete collection “Our bread” and 1 node under it from The bakery"
    );
    assert_eq!(record.card.changes.unwrap().removed, 2);
    let ran = scene
        .bot
        .call_with(&asked.approval_id, "delete", arguments.clone())
        .await;
    assert_eq!(ran.ok(), json!({"deleted": "node", "nodes": 2}));
    assert_eq!(draft(&world, &scene.site).await.len(), 2);
    assert_eq!(
        version(&world, &scene.site, 1).await.len(),
        4,
        "visitors still see it"
    );
    for (tool, extra) in [
        ("node-get", json!({})),
        ("node-update", json!({"body": "x"})),
        ("delete", json!({})),
    ] {
        let mut gone = json!({"site": scene.site, "node": scene.rye});
        gone.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        scene.bot.call(tool, gone).await.refused(Code::NotFound);
    }
    let under = json!({"site": scene.site, "parent": bread, "title": "x", "slug": "x"});
    scene
        .bot
        .call("node-create", under)
        .await
        .refused(Code::NotFound);
    // Its address is free again, and the next publish takes it off the live site.
    let again = json!({"site": scene.site, "title": "Bread, anew", "slug": "bread"});
    let new = scene.bot.call("node-create", again).await.ok();
    assert_ne!(new["id"], json!(bread));
    let ran = scene
        .ada
        .act("publish", scene.publish_args())
        .await
        .unwrap();
    assert_eq!(
        ran,
        json!({"version": 2, "added": 1, "edited": 0, "removed": 2})
    );
    assert_eq!(
        version(&world, &scene.site, 2).await,
        draft(&world, &scene.site).await
    );
}

async fn an_empty_site_cannot_be_published(world: World) {
    let scene = world.scene().await;
    let empty = sites::create_site(world.engine(), "empty", "Empty", Some(scene.ada.person()))
        .await
        .unwrap();
    let bot = world.agent("empty bot", &scene.ada, &[&empty]).await;
    let answer = bot.call("publish", json!({"site": empty})).await;
    answer.refused(Code::Conflict);
    refused(
        scene.ada.act("publish", json!({"site": empty})).await,
        Code::Conflict,
    );
    assert_eq!(world.number("select count(*) from approvals").await, 0);
}

async fn publishing_again_with_nothing_changed_is_a_version(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    let asked = scene
        .bot
        .call("publish", scene.publish_args())
        .await
        .pending();
    let card = scene.ada.approve(&asked.approval_id).await.unwrap().card;
    assert_eq!(
        card.sentence,
        "Publish The bakery again, with nothing changed"
    );
    let ran = scene.redeem(&asked.approval_id).await.ok();
    assert_eq!(
        ran,
        json!({"version": 2, "added": 0, "edited": 0, "removed": 0})
    );
    let list = scene
        .bot
        .call("version-list", scene.publish_args())
        .await
        .ok();
    let live: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["version"].clone(), v["live"].clone()))
        .collect();
    assert_eq!(live, [(json!(2), json!(true)), (json!(1), json!(false))]);
    assert_eq!(list["items"][0]["approvalId"], json!(asked.approval_id));
}

async fn a_person_acts_at_once_with_the_role_and_not_without(world: World) {
    let scene = world.scene().await;
    let stranger = world.person("stranger").await;
    refused(
        stranger.act("publish", scene.publish_args()).await,
        Code::NotFound,
    );
    let viewer = world.member("viewer", &scene.site, Role::Viewer).await;
    refused(
        viewer.act("publish", scene.publish_args()).await,
        Code::Forbidden,
    );
    let approver = world.member("approver", &scene.site, Role::Approver).await;
    approver.act("publish", scene.publish_args()).await.unwrap();
    refused(
        approver.act("delete", scene.publish_args()).await,
        Code::Forbidden,
    );
    refused(
        approver
            .act(
                "node-update",
                json!({"site": scene.site, "node": scene.rye}),
            )
            .await,
        Code::UnknownTool,
    );
    assert_eq!(scene.live_version().await, Some(1));
    let told = world
        .text("select actor || ' ' || body from journal where kind = 'tool.ran'")
        .await;
    assert!(
        told.contains("person:") && told.contains("\"surface\":\"direct\""),
        "{told}"
    );
    scene.ada.act("delete", scene.publish_args()).await.unwrap();
}

async fn a_person_never_acts_on_a_state_they_did_not_see(world: World) {
    let scene = world.scene().await;
    let seen = world.text("select state_hash from sites").await;
    scene.edit("Meanwhile.").await;
    let act = cloudhal_engine::direct::act(
        world.engine(),
        scene.ada.person(),
        crate::support::own_page(),
        "publish",
        scene.publish_args(),
        &seen,
    );
    refused(act.await, Code::StaleView);
    assert_eq!(scene.versions().await, 0);
}

/// A page that only the version between had: nobody is told that it would be removed, and nobody that it was.
async fn what_ran_counts_as_the_card_did_after_a_rollback(world: World) {
    let scene = world.scene().await;
    let first = scene.publish().await;
    let new = json!({"site": scene.site, "title": "Market", "slug": "market"});
    let market = scene.bot.call("node-create", new).await.ok();
    scene.publish().await;
    let back = json!({"site": scene.site, "version": first});
    scene.ada.act("rollback", back).await.unwrap();
    let delete = json!({"site": scene.site, "node": market["id"]});
    scene.ada.act("delete", delete).await.unwrap();
    scene.edit("Two.").await;
    let id = scene.approved().await;
    let shown = scene.ada.look(&id).await.unwrap().card.changes.unwrap();
    let ran = scene.redeem(&id).await.ok();
    let counts = |of: &Value| json!([of["added"], of["edited"], of["removed"]]);
    assert_eq!(counts(&ran), json!([0, 1, 0]));
    assert_eq!(counts(&ran), counts(&json!(shown)));
}

async fn what_was_put_back_has_not_moved(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.edit("Rye, as it was.").await;
    let visit = world.node(&scene.site, "visit").await;
    let moves = json!({"site": scene.site, "node": visit, "position": 5});
    scene.bot.call("node-move", moves).await.ok();
    let compared = scene
        .bot
        .call("version-compare", json!({"site": scene.site}))
        .await
        .ok();
    let nodes = compared["nodes"].as_array().unwrap();
    let kinds: BTreeMap<_, _> = nodes
        .iter()
        .map(|node| (node["title"].as_str().unwrap(), node["change"].clone()))
        .collect();
    let expected = [("Rye", json!("edited")), ("Visit us", json!("moved"))];
    assert_eq!(kinds, BTreeMap::from(expected));
}

/// One argument less deletes the whole site: whoever asks reads at once what was asked.
async fn a_waiting_answer_says_what_would_happen(world: World) {
    let scene = world.scene().await;
    let of_page = json!({"site": scene.site, "node": scene.rye});
    for (arguments, sentence) in [
        (of_page, "Delete entry “Rye” from The bakery"),
        (
            json!({"site": scene.site}),
            "Delete the whole site The bakery",
        ),
    ] {
        let fresh = scene.bot.call("delete", arguments.clone()).await.pending();
        assert_eq!(fresh.sentence, sentence);
        let again = scene.bot.call("delete", arguments.clone()).await.pending();
        assert_eq!(again.sentence, sentence);
        let by_id = scene.bot.call_with(&fresh.approval_id, "delete", arguments);
        assert_eq!(by_id.await.pending().sentence, sentence);
    }
}
