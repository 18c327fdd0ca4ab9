//! The lists of requests that people read: each tab whole, a page at a time, in one order.

use crate::support::*;
use cloudhal_domain::view::{InboxRow, Tab};
use cloudhal_engine::{store::approvals::Filter, studio};

on_both! {
    every_tab_is_read_to_its_end_in_pages,
}

async fn every_tab_is_read_to_its_end_in_pages(world: World) {
    let scene = world.scene().await;
    for round in 0..3 {
        let id = scene.asked().await;
        scene.ada.deny(&id, "No.").await.unwrap();
        world.advance(Duration::from_secs(1));
        let id = scene.asked().await;
        let withdrawn = json!({"approvalId": id});
        scene.bot.call("approvals-cancel", withdrawn).await.ok();
        let id = scene.approved().await;
        scene.edit(&format!("Text {round}.")).await;
        scene.redeem(&id).await.refused(Code::ApprovalVoided);
        let id = scene.approved().await;
        scene.redeem(&id).await.ok();
    }
    // Two that have run out: one is stored so, the other not yet.
    for stored in [true, false] {
        let delete = json!({"site": scene.site});
        scene.bot.call("delete", delete).await.pending();
        world.advance(HOUR * 25);
        if stored {
            background::sweep(world.engine()).await.unwrap();
        }
    }
    scene.approved().await;
    scene
        .bot
        .call("delete", json!({"site": scene.site}))
        .await
        .pending();

    let all = pages(&world, Tab::All).await;
    assert_eq!(all.len(), 16);
    let newest_first = |a: &InboxRow, b: &InboxRow| a.requested_at >= b.requested_at;
    assert!(all.is_sorted_by(newest_first));
    for (tab, count) in [
        (Tab::Waiting, 1),
        (Tab::Approved, 1),
        (Tab::Done, 3),
        (Tab::Denied, 3),
        (Tab::Voided, 6),
        (Tab::Expired, 2),
    ] {
        let found = pages(&world, tab).await;
        assert_eq!(found.len(), count, "{tab:?}");
        let expected: Vec<&InboxRow> = all
            .iter()
            .filter(|row| tab.statuses().contains(&row.status))
            .collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{tab:?}");
    }
    let query = Default::default();
    let inbox = studio::inbox(world.engine(), scene.ada.person(), query).await;
    let inbox = inbox.unwrap();
    assert_eq!((inbox.waiting, inbox.approved), (1, 1));
}

/// A tab's rows, two at a time.
async fn pages(world: &World, tab: Tab) -> Vec<InboxRow> {
    let (filter, mut found) = (Filter::default(), Vec::new());
    let mut cursor = None::<String>;
    loop {
        let page = studio::list(world.engine(), &filter, tab, cursor.as_deref(), 2);
        let (rows, next) = page.await.unwrap();
        found.extend(rows);
        cursor = next;
        if cursor.is_none() {
            return found;
        }
    }
}
