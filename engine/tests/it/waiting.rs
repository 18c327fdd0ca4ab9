//! A long poll ends when there is something to tell: a decision, a void, an expiry, on this node or another.

use crate::support::*;

on_both! {
    a_decision_wakes_whoever_waits,
    a_void_a_withdrawal_and_an_expiry_wake_too,
    what_was_decided_before_is_told_at_once,
    waiting_in_vain_ends_and_changes_nothing,
    a_decision_on_one_node_wakes_a_waiter_on_another,
    hints_tell_what_happened,
}

/// Begins a long poll. Whether it has registered when this returns must not matter, and does not.
async fn begin(bot: &AgentClient, id: &ApprovalId) -> tokio::task::JoinHandle<Value> {
    let (bot, arguments) = (bot.clone(), json!({"approvalId": id, "waitSeconds": 45}));
    let poll = tokio::spawn(async move { bot.call("approvals-get", arguments).await.ok() });
    tokio::task::yield_now().await;
    poll
}

async fn a_decision_wakes_whoever_waits(world: World) {
    let scene = world.scene().await;
    for approve in [true, false] {
        let id = scene.asked().await;
        let mut polls = Vec::new();
        for _ in 0..8 {
            polls.push(begin(&scene.bot, &id).await);
        }
        match approve {
            true => scene.ada.approve(&id).await.unwrap(),
            false => scene.ada.deny(&id, "no").await.unwrap(),
        };
        for poll in polls {
            let record = poll.await.unwrap();
            assert_eq!(
                record["status"],
                if approve { "approved" } else { "denied" }
            );
        }
        if approve {
            scene.redeem(&id).await.ok();
        }
    }
}

async fn a_void_a_withdrawal_and_an_expiry_wake_too(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let poll = begin(&scene.bot, &id).await;
    scene.edit("Else.").await;
    let record = poll.await.unwrap();
    assert_eq!(
        (&record["status"], &record["voidCause"]),
        (&json!("voided"), &json!("state_changed"))
    );

    let id = scene.asked().await;
    let poll = begin(&scene.bot, &id).await;
    let arguments = json!({"approvalId": id});
    scene.bot.call("approvals-cancel", arguments).await.ok();
    assert_eq!(poll.await.unwrap()["status"], "cancelled");

    let id = scene.asked().await;
    let poll = begin(&scene.bot, &id).await;
    world.advance(25 * HOUR);
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(poll.await.unwrap()["status"], "expired");

    // Nobody sweeps: the waiter's own timer tells it.
    let id = scene.asked().await;
    world.advance(24 * HOUR - Duration::from_millis(50));
    let poll = begin(&scene.bot, &id).await;
    world.advance(Duration::from_millis(50));
    assert_eq!(poll.await.unwrap()["status"], "expired");
}

async fn what_was_decided_before_is_told_at_once(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    assert_eq!(
        begin(&scene.bot, &id).await.await.unwrap()["status"],
        "approved"
    );
    scene.redeem(&id).await.ok();
    assert_eq!(
        begin(&scene.bot, &id).await.await.unwrap()["status"],
        "redeemed"
    );
}

/// C51.
async fn waiting_in_vain_ends_and_changes_nothing(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    for _ in 0..100 {
        let abandoned = begin(&scene.bot, &id).await;
        abandoned.abort();
    }
    let arguments = json!({"approvalId": id, "waitSeconds": 1});
    let record = scene.bot.call("approvals-get", arguments).await.ok();
    assert_eq!(record["status"], "pending");
    assert_eq!(scene.journal(&id).await, ["approval.requested"]);
    scene.ada.approve(&id).await.unwrap();
    scene.redeem(&id).await.ok();
}

async fn a_decision_on_one_node_wakes_a_waiter_on_another(world: World) {
    let scene = world.scene().await;
    let there = world.second_engine().await;
    let here = tokio::spawn(background::run(world.engine().clone()));
    let beside = tokio::spawn(background::run(there.clone()));
    let bot_there = scene.bot.at(&there);
    for _ in 0..3 {
        let id = scene.asked().await;
        let poll = begin(&bot_there, &id).await;
        scene.ada.approve(&id).await.unwrap();
        assert_eq!(poll.await.unwrap()["status"], "approved");
        bot_there
            .call_with(&id, "publish", scene.publish_args())
            .await
            .ok();
    }
    here.abort();
    beside.abort();
}

async fn hints_tell_what_happened(world: World) {
    let scene = world.scene().await;
    let mut hints = world.engine().live().subscribe();
    let id = scene.approved().await;
    scene.redeem(&id).await.ok();
    let second = scene.asked().await;
    scene.edit("Else.").await;
    let mut heard = Vec::new();
    while let Ok(hint) = hints.try_recv() {
        assert_eq!(hint.site, scene.site);
        let whose = match hint.approval {
            Some(of) if of == id => "first",
            Some(of) if of == second => "second",
            _ => "site",
        };
        heard.push(format!("{} {whose}", hint.kind));
    }
    assert_eq!(
        heard,
        [
            "approval.requested first",
            "approval.decided first",
            "approval.executed first",
            "site.changed site",
            "approval.requested second",
            "approval.voided second",
            "site.changed site"
        ]
    );
}
