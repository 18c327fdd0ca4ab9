//! What a caller may look at beside its calls: its own open requests, and whether its key still stands.

use crate::support::*;
use cloudhal_domain::tool::Surface;
use cloudhal_engine::{agents::Change, watching};

on_both! {
    one_sees_its_own_open_requests_and_no_others,
    a_key_that_is_taken_away_or_narrowed_is_told_of_nothing,
}

async fn one_sees_its_own_open_requests_and_no_others(world: World) {
    let scene = world.scene().await;
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    let open = async |caller: &AgentClient| {
        let caller = caller.verified().await.unwrap();
        let found = watching::open_requests(world.engine(), &caller).await;
        let found = found.unwrap().into_iter();
        found.map(|one| (one.id, one.status)).collect::<Vec<_>>()
    };
    let denied = scene.asked().await;
    scene.ada.deny(&denied, "No.").await.unwrap();
    let first = scene.approved().await;
    world.advance(Duration::from_secs(1));
    let delete = json!({"site": scene.site, "node": scene.rye});
    let second = scene.bot.call("delete", delete).await.pending().approval_id;
    let seen = open(&scene.bot).await;
    let expected = [(second, Status::Pending), (first.clone(), Status::Approved)];
    assert_eq!(seen, expected, "the newest first");
    assert_eq!(open(&other).await, []);
    assert_eq!(open(&scene.bot.over(Surface::Mcp)).await, []);
    scene.redeem(&first).await.ok();
    assert_eq!(open(&scene.bot).await, [], "one ran, and voided the other");
    scene.asked().await;
    world.advance(HOUR * 25);
    assert_eq!(open(&scene.bot).await, [], "what ran out is not open");
}

async fn a_key_that_is_taken_away_or_narrowed_is_told_of_nothing(world: World) {
    let scene = world.scene().await;
    let caller = scene.bot.verified().await.unwrap();
    let may = async |tool: Option<&str>| {
        let may = watching::may_still(world.engine(), &caller, tool).await;
        may.unwrap()
    };
    assert!(may(None).await && may(Some("site-get")).await);
    let change = |tools: &[&str], disabled| Change {
        sites: None,
        tools: Some(tools.iter().map(|tool| (*tool).to_owned()).collect()),
        disabled,
        only_after: None,
    };
    let narrower = change(&["site-list"], None);
    scene
        .ada
        .change_agent(&scene.bot.id, narrower)
        .await
        .unwrap();
    assert!(may(None).await && may(Some("site-list")).await);
    assert!(!may(Some("site-get")).await);
    scene
        .ada
        .change_agent(&scene.bot.id, change(&[], Some(true)))
        .await
        .unwrap();
    assert!(!may(None).await);
    scene
        .ada
        .change_agent(&scene.bot.id, change(&[], Some(false)))
        .await
        .unwrap();
    assert!(may(Some("site-get")).await);
    scene
        .ada
        .revoke_key(&scene.bot.id, scene.bot.key_id())
        .await
        .unwrap();
    assert!(!may(None).await && !may(Some("site-list")).await);
}
