//! Time runs out for whoever waits; readers see it at once, the next writer stores it, and no clock brings it back.

use crate::support::*;

on_both! {
    an_expired_approval_does_not_run,
    the_last_millisecond_still_counts,
    a_clock_that_goes_back_revives_nothing_that_was_stored,
    the_sweep_tells_an_expiry_once,
    an_expired_request_makes_room_for_the_same_call,
    expired_requests_do_not_count_against_the_caps,
}

/// C79: one hour late on the same day.
async fn an_expired_approval_does_not_run(world: World) {
    let scene = world.scene().await;
    for approved in [false, true] {
        let id = if approved {
            scene.approved().await
        } else {
            scene.asked().await
        };
        world.advance(25 * HOUR);
        assert_eq!(
            scene.ada.look(&id).await.unwrap().status,
            Status::Expired,
            "seen before anybody stored it"
        );
        assert_ne!(scene.stored_status(&id).await, "expired");
        scene.redeem(&id).await.refused(Code::ApprovalExpired);
        background::sweep(world.engine()).await.unwrap();
        assert_eq!(scene.stored_status(&id).await, "expired");
        scene.redeem(&id).await.refused(Code::ApprovalExpired);
    }
    assert_eq!(scene.versions().await, 0);
}

async fn the_last_millisecond_still_counts(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let expires = scene.ada.look(&id).await.unwrap().expires_at.ms();
    let left = expires - world.engine().now().ms();
    world.advance(Duration::from_millis(left as u64 - 1));
    assert_eq!(scene.ada.look(&id).await.unwrap().status, Status::Approved);
    world.advance(Duration::from_millis(1));
    assert_eq!(scene.ada.look(&id).await.unwrap().status, Status::Expired);
    scene.redeem(&id).await.refused(Code::ApprovalExpired);
    world.turn_back(Duration::from_millis(1));
    scene.redeem(&id).await.ok();
}

/// R10.
async fn a_clock_that_goes_back_revives_nothing_that_was_stored(world: World) {
    let scene = world.scene().await;
    let (approved, florist) = (
        scene.approved().await,
        world.site("florist", &scene.ada).await,
    );
    let bot = world.agent("florist bot", &scene.ada, &[&florist]).await;
    let waiting = bot
        .call("publish", json!({"site": florist}))
        .await
        .pending()
        .approval_id;
    world.advance(25 * HOUR);
    background::sweep(world.engine()).await.unwrap();
    world.turn_back(25 * HOUR);
    scene.redeem(&approved).await.refused(Code::ApprovalExpired);
    refused(scene.ada.approve(&waiting).await, Code::ApprovalExpired);
    assert_ne!(scene.asked().await, approved);
}

async fn the_sweep_tells_an_expiry_once(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    world.advance(25 * HOUR);
    let sweeps = (0..4).map(|_| {
        let engine = world.engine().clone();
        tokio::spawn(async move { background::sweep(&engine).await.unwrap() })
    });
    futures::future::join_all(sweeps).await;
    assert_eq!(
        scene.journal(&id).await,
        ["approval.requested", "approval.decided", "approval.expired"]
    );
}

async fn an_expired_request_makes_room_for_the_same_call(world: World) {
    let scene = world.scene().await;
    let old = scene.asked().await;
    world.advance(25 * HOUR);
    let new = scene.asked().await;
    assert_ne!(old, new);
    assert_eq!(
        scene.stored_status(&old).await,
        "expired",
        "stored by the next writer"
    );
    scene.ada.approve(&new).await.unwrap();
    scene.redeem(&new).await.ok();
}

async fn expired_requests_do_not_count_against_the_caps(world: World) {
    let scene = world.scene().await;
    let mut nodes = Vec::new();
    for n in 0..11 {
        let new = json!({"site": scene.site, "title": "x", "slug": format!("page-{n}")});
        nodes.push(scene.bot.call("node-create", new).await.ok()["id"].clone());
    }
    for node in &nodes[..10] {
        let arguments = json!({"site": scene.site, "node": node});
        scene.bot.call("delete", arguments).await.pending();
    }
    let last = json!({"site": scene.site, "node": nodes[10]});
    scene
        .bot
        .call("delete", last.clone())
        .await
        .refused(Code::TooManyPending);
    world.advance(25 * HOUR);
    scene.bot.call("delete", last).await.pending();
}
