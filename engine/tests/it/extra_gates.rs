//! Calls that change the draft only, on a site whose policy lets them wait.

use crate::support::*;
use cloudhal_domain::{link::Side, view::SpanKind};
use cloudhal_engine::studio;

on_both! {
    a_site_lets_a_draft_tool_wait,
    a_change_that_waits_is_shown_as_it_will_be,
    what_could_not_run_is_not_asked,
    a_gate_that_was_opened_again_still_redeems,
}

const GATES_DRAFTS: &str = r#"{"extraGatedTools": ["node-create", "node-move", "node-update"]}"#;

async fn gate_drafts(scene: &Scene) {
    let policy = serde_json::from_str(GATES_DRAFTS).unwrap();
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
}

async fn a_site_lets_a_draft_tool_wait(world: World) {
    let scene = world.scene().await;
    let other = world.site("brewery", &scene.ada).await;
    let both = world
        .agent("both", &scene.ada, &[&scene.site, &other])
        .await;
    let malt = world.node(&other, "rye").await;
    let before = world
        .texts("select body from node_revisions order by node_id, rev")
        .await;
    gate_drafts(&scene).await;

    let rye = json!({"site": scene.site, "node": scene.rye, "body": "Ryer.", "reason": "It is ryer now."});
    let pending = both.call("node-update", rye.clone()).await.pending();
    assert_eq!(
        both.call("node-update", rye.clone())
            .await
            .pending()
            .approval_id,
        pending.approval_id
    );
    assert_eq!(
        world
            .texts("select body from node_revisions order by node_id, rev")
            .await,
        before
    );
    let elsewhere = json!({"site": other, "node": malt, "body": "Malt."});
    both.call("node-update", elsewhere).await.ok();

    let id = pending.approval_id;
    let seen = scene.ada.look(&id).await.unwrap();
    assert_eq!(seen.reason.as_deref(), Some("It is ryer now."));
    assert!(
        !both
            .call_with(&id, "node-update", rye.clone())
            .await
            .pending()
            .approved
    );
    scene.ada.approve(&id).await.unwrap();
    let other_words = json!({"site": scene.site, "node": scene.rye, "body": "Barley."});
    both.call_with(&id, "node-update", other_words)
        .await
        .refused(Code::ApprovalMismatch);
    let done = both.call_with(&id, "node-update", rye.clone()).await.ok();
    assert_eq!(done["rev"], 2);
    assert_eq!(
        both.call_with(&id, "node-update", rye.clone())
            .await
            .replayed(),
        done
    );
    let body = world
        .text(&format!(
            "select body from node_revisions where node_id = '{}' and rev = 2",
            scene.rye
        ))
        .await;
    assert_eq!(body, "Ryer.");
    let kinds = [
        "approval.requested",
        "approval.decided",
        "approval.misused",
        "approval.redeemed",
    ];
    assert_eq!(scene.journal(&id).await, kinds);
}

async fn a_change_that_waits_is_shown_as_it_will_be(world: World) {
    let scene = world.scene().await;
    gate_drafts(&scene).await;
    let bread = world.node(&scene.site, "bread").await;
    let call = |tool: &'static str, args: Value| {
        let bot = scene.bot.clone();
        async move { bot.call(tool, args).await.pending().approval_id }
    };
    let update = json!({"site": scene.site, "node": scene.rye, "slug": "dark-rye", "body": "Rye, as it is now."});
    let create = json!({"site": scene.site, "parent": bread, "kind": "entry", "title": "Spelt", "slug": "spelt", "body": "New."});
    let moved = json!({"site": scene.site, "node": scene.rye, "parent": ""});
    let mut cards = Vec::new();
    for (tool, args) in [
        ("node-update", &update),
        ("node-create", &create),
        ("node-move", &moved),
    ] {
        let id = call(tool, args.clone()).await;
        let view = studio::approval(world.engine(), scene.ada.person(), &id)
            .await
            .unwrap();
        let diff = view.diffs.into_iter().next().unwrap();
        let fields: Vec<String> = diff
            .fields
            .iter()
            .map(|field| {
                let shown = |kind| {
                    field
                        .spans
                        .iter()
                        .filter(|s| s.kind != kind)
                        .map(|s| s.text.as_str())
                        .collect::<String>()
                };
                format!(
                    "{}: {} -> {}",
                    field.name,
                    shown(SpanKind::Added),
                    shown(SpanKind::Removed)
                )
            })
            .collect();
        let after = studio::preview(
            world.engine(),
            scene.ada.person(),
            &id,
            &diff.change.node,
            Side::After,
        )
        .await
        .unwrap();
        cards.push((
            view.record.card.sentence.clone(),
            diff.change.path.clone(),
            fields,
            after,
            id,
            tool,
            args,
        ));
    }
    let told: Vec<(&str, &str, Vec<&str>)> = cards
        .iter()
        .map(|(sentence, path, fields, ..)| {
            (
                sentence.as_str(),
                path.as_str(),
                fields.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                "Change entry “Rye” in the draft of The bakery",
                "bread/dark-rye",
                vec![
                    "Text: Rye, as it was. -> Rye, as it is now.",
                    "Address: /bread/rye -> /bread/dark-rye"
                ]
            ),
            (
                "Add entry “Spelt” in the draft of The bakery",
                "bread/spelt",
                vec!["Title:  -> Spelt", "Text:  -> New.", "Order:  -> 20"]
            ),
            (
                "Move entry “Rye” in the draft of The bakery",
                "rye",
                vec!["Order: 10 -> 40", "Address: /bread/rye -> /rye"]
            ),
        ]
    );
    assert!(cards[0].3.contains("Rye, as it is now."));
    assert!(cards[1].3.contains("Spelt"));
    // What runs is what was shown, to the digest.
    let (.., id, tool, args) = &cards[0];
    let bound = scene
        .ada
        .look(id)
        .await
        .unwrap()
        .card
        .changes
        .unwrap()
        .nodes[0]
        .after
        .clone()
        .unwrap();
    scene.ada.approve(id).await.unwrap();
    let done = scene.bot.call_with(id, tool, (*args).clone()).await.ok();
    assert_eq!(done["hash"], bound.hash.as_str());
    assert_eq!(done["rev"], bound.rev);
    let shown_later = studio::approval(world.engine(), scene.ada.person(), id)
        .await
        .unwrap();
    assert_eq!(shown_later.diffs[0].fields.len(), 2);
}

async fn what_could_not_run_is_not_asked(world: World) {
    let scene = world.scene().await;
    gate_drafts(&scene).await;
    let (site, rye) = (&scene.site, &scene.rye);
    let refused = [
        (
            "node-update",
            json!({"site": site, "node": rye, "expectedRev": 7, "body": "x"}),
            Code::Conflict,
        ),
        (
            "node-update",
            json!({"site": site, "node": rye, "body": "Rye, as it was."}),
            Code::Conflict,
        ),
        (
            "node-update",
            json!({"site": site, "node": "nothing", "body": "x"}),
            Code::NotFound,
        ),
        (
            "node-create",
            json!({"site": site, "title": "Visit", "slug": "visit"}),
            Code::Conflict,
        ),
        (
            "node-move",
            json!({"site": site, "node": rye, "parent": rye}),
            Code::InvalidArguments,
        ),
    ];
    let nodes = "select count(*) from node_revisions";
    let before = world.number(nodes).await;
    for (tool, args, code) in refused {
        scene.bot.call(tool, args).await.refused(code);
    }
    assert_eq!(world.number("select count(*) from approvals").await, 0);
    assert_eq!(world.number(nodes).await, before);
}

/// What was approved is approved, whatever the policy says of the next call.
async fn a_gate_that_was_opened_again_still_redeems(world: World) {
    let scene = world.scene().await;
    gate_drafts(&scene).await;
    let args = json!({"site": scene.site, "node": scene.rye, "body": "Ryer."});
    let id = scene
        .bot
        .call("node-update", args.clone())
        .await
        .pending()
        .approval_id;
    scene.ada.approve(&id).await.unwrap();
    scene.ada.set_policy(&scene.site, json!({})).await.unwrap();
    scene.bot.call_with(&id, "node-update", args).await.ok();
    scene.edit("Ryest.").await;
}
