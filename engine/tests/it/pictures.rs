//! The picture of a change that waits: what it says is what is stored when it runs, and nothing else is ever shown for it.

use crate::support::*;
use cloudhal_domain::{
    link::Side,
    view::{ApprovalView, SpanKind},
};
use cloudhal_engine::studio;

on_both! {
    the_order_on_a_card_is_the_order_that_is_stored,
    the_order_of_a_new_page_is_shown_at_its_publish,
    a_draft_picture_that_is_not_what_was_bound_is_not_shown,
    a_publish_picture_that_is_not_what_was_bound_is_not_shown,
}

const GATES_DRAFTS: &str = r#"{"extraGatedTools": ["node-create", "node-move", "node-update"]}"#;

async fn gate_drafts(scene: &Scene) {
    let policy = serde_json::from_str(GATES_DRAFTS).unwrap();
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
}

async fn shown(world: &World, scene: &Scene, id: &ApprovalId) -> Result<ApprovalView, Refusal> {
    studio::approval(world.engine(), scene.ada.person(), id).await
}

/// "10 -> 40": a field of the only change, as its page tells it.
fn field(view: &ApprovalView, name: &str) -> Option<String> {
    let fields = &view.diffs[0].fields;
    let field = fields.iter().find(|field| field.name == name)?;
    let side = |left_out| {
        let spans = field.spans.iter().filter(|span| span.kind != left_out);
        spans.map(|span| span.text.as_str()).collect::<String>()
    };
    Some(format!(
        "{} -> {}",
        side(SpanKind::Added),
        side(SpanKind::Removed)
    ))
}

async fn the_order_on_a_card_is_the_order_that_is_stored(world: World) {
    let scene = world.scene().await;
    gate_drafts(&scene).await;
    let (site, rye) = (&scene.site, &scene.rye);
    let bread = world.node(site, "bread").await;
    let visit = world.node(site, "visit").await;
    let cases = [
        (
            "node-create",
            json!({"site": site, "parent": bread, "title": "Spelt", "slug": "spelt"}),
            Some(" -> 20"),
            20,
        ),
        (
            "node-create",
            json!({"site": site, "title": "First", "slug": "first", "position": 0}),
            Some(" -> 0"),
            0,
        ),
        (
            "node-create",
            json!({"site": site, "parent": visit, "title": "By tram", "slug": "tram"}),
            Some(" -> 10"),
            10,
        ),
        (
            "node-move",
            json!({"site": site, "node": rye, "parent": ""}),
            Some("10 -> 40"),
            40,
        ),
        (
            "node-move",
            json!({"site": site, "node": rye, "position": 25}),
            Some("40 -> 25"),
            25,
        ),
        (
            "node-move",
            json!({"site": site, "node": rye, "parent": bread, "position": 25}),
            None,
            25,
        ),
        (
            "node-update",
            json!({"site": site, "node": rye, "title": "Dark rye"}),
            None,
            25,
        ),
    ];
    for (tool, args, told, position) in cases {
        let id = scene.bot.call(tool, args.clone()).await.pending();
        let id = id.approval_id;
        let waiting = shown(&world, &scene, &id).await.unwrap();
        assert_eq!(field(&waiting, "Order").as_deref(), told, "{tool} {args}");
        let bound = &waiting.record.card.changes.as_ref().unwrap().nodes[0];
        assert_eq!(bound.position, Some(position), "{tool} {args}");
        scene.ada.approve(&id).await.unwrap();
        let done = scene.bot.call_with(&id, tool, args.clone()).await.ok();
        let bound_hash = bound.after.as_ref().unwrap().hash.as_str();
        assert_eq!(done["hash"], bound_hash, "{tool} {args}");
        let node = done["id"].as_str().unwrap();
        let stored = format!("select position from nodes where id = '{node}'");
        assert_eq!(world.number(&stored).await, position, "{tool} {args}");
        let later = shown(&world, &scene, &id).await.unwrap();
        assert_eq!(later.diffs, waiting.diffs, "{tool} {args}");
    }
}

async fn the_order_of_a_new_page_is_shown_at_its_publish(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    scene.redeem(&id).await.ok();
    let new = json!({"site": scene.site, "title": "Spelt", "slug": "spelt", "position": 7});
    scene.bot.call("node-create", new).await.ok();
    let view = shown(&world, &scene, &scene.asked().await).await.unwrap();
    assert_eq!(field(&view, "Order").as_deref(), Some(" -> 7"));
}

fn not_shown<T>(answer: Result<T, Refusal>) {
    let refusal = answer
        .err()
        .expect("something else than was bound is not shown");
    assert_eq!(refusal.code, Code::StaleView);
    assert!(refusal.message.contains("cloudhal verify"), "{refusal:?}");
}

async fn a_draft_picture_that_is_not_what_was_bound_is_not_shown(world: World) {
    let scene = world.scene().await;
    world.tampers();
    gate_drafts(&scene).await;
    let (site, rye) = (&scene.site, &scene.rye);
    let edits = [
        "update node_revisions set body = 'Sneaked in.' where body = 'Rye, as it was.'",
        "update node_revisions set body = 'Rye, as it was.' where body = 'Sneaked in.'",
    ];
    for (tool, args) in [
        (
            "node-update",
            json!({"site": site, "node": rye, "title": "Ryer"}),
        ),
        (
            "node-move",
            json!({"site": site, "node": rye, "parent": ""}),
        ),
    ] {
        let id = scene.bot.call(tool, args).await.pending().approval_id;
        let honest = shown(&world, &scene, &id).await.unwrap();
        world.sql(edits[0]).await;
        not_shown(shown(&world, &scene, &id).await);
        for side in [Side::Before, Side::After] {
            let person = scene.ada.person();
            not_shown(studio::preview(world.engine(), person, &id, rye, side).await);
        }
        world.sql(edits[1]).await;
        assert_eq!(shown(&world, &scene, &id).await.unwrap(), honest, "{tool}");
    }
    // One that adds has nothing before it: what it stands for is in its arguments.
    let new = json!({"site": site, "title": "Spelt", "slug": "spelt", "body": "New."});
    let id = scene.bot.call("node-create", new).await.pending();
    let id = id.approval_id;
    shown(&world, &scene, &id).await.unwrap();
    let edit = format!(
        "update approvals set arguments = replace(arguments, 'New.', 'Newer.') where id = '{id}'"
    );
    world.sql(&edit).await;
    not_shown(shown(&world, &scene, &id).await);
    let order = format!(
        "update approvals set arguments = replace(arguments, 'Newer.', 'New.'), card = replace(card, '\"position\":40', '\"position\":5') where id = '{id}'"
    );
    world.sql(&order).await;
    not_shown(shown(&world, &scene, &id).await);
}

async fn a_publish_picture_that_is_not_what_was_bound_is_not_shown(world: World) {
    let scene = world.scene().await;
    world.tampers();
    let id = scene.asked().await;
    shown(&world, &scene, &id).await.unwrap();
    world
        .sql("update node_revisions set body = 'Sneaked in.' where body = 'Rye, as it was.'")
        .await;
    let (engine, person) = (world.engine(), scene.ada.person());
    not_shown(shown(&world, &scene, &id).await);
    not_shown(studio::preview(engine, person, &id, &scene.rye, Side::After).await);
    not_shown(studio::changes(engine, person, &id, 0).await);
}
