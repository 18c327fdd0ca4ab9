//! What runs beside the requests goes on where a part of it fails, and does that part when it can.

use crate::support::*;
use async_trait::async_trait;
use cloudhal_engine::{
    agents,
    outbox::{Failure, deliver_due},
    studio,
    webhooks::{self, Courier, Signed},
};
use std::sync::Arc;

on_both! {
    a_site_that_cannot_be_swept_stops_no_other,
    a_site_that_cannot_be_written_keeps_no_other_from_voiding,
    a_last_use_that_could_not_be_written_is_written_later,
    a_destination_that_cannot_be_written_holds_up_no_other,
}

/// Whatever is wrong with one site: the others' expiries are stored, its own at the next sweep that can.
async fn a_site_that_cannot_be_swept_stops_no_other(world: World) {
    let scene = world.scene().await;
    let mut bots = vec![(scene.bot.clone(), scene.site.clone())];
    for slug in ["florist", "cinema"] {
        let site = world.site(slug, &scene.ada).await;
        bots.push((world.agent(slug, &scene.ada, &[&site]).await, site));
    }
    // Each is the bad one once, and so also the one that is swept first.
    for (_, bad) in bots.clone() {
        let mut waiting = Vec::new();
        for (bot, site) in &bots {
            let asked = bot.call("publish", json!({"site": site})).await.pending();
            waiting.push((site.clone(), asked.approval_id));
        }
        world.advance(25 * HOUR);
        world
            .refuse("approvals", &format!("site_id = '{bad}'"))
            .await;
        background::sweep(world.engine()).await.unwrap_err();
        for (site, id) in &waiting {
            let stored = scene.stored_status(id).await;
            assert_eq!(stored == "expired", *site != bad, "{site}: {stored}");
        }
        world.refuse_no_more().await;
        background::sweep(world.engine()).await.unwrap();
        for (_, id) in &waiting {
            assert_eq!(scene.stored_status(id).await, "expired");
        }
    }
}

async fn a_site_that_cannot_be_written_keeps_no_other_from_voiding(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    let both = [&scene.site, &florist];
    for bad in both {
        let helper = world.agent(bad.as_str(), &scene.ada, &both).await;
        let mut waiting = Vec::new();
        for site in both {
            let asked = helper.call("publish", json!({"site": site})).await;
            waiting.push((site, asked.pending().approval_id));
        }
        world
            .refuse("approvals", &format!("site_id = '{bad}'"))
            .await;
        let off = agents::Change {
            disabled: Some(true),
            ..Default::default()
        };
        scene.ada.change_agent(&helper.id, off).await.unwrap();
        for (site, id) in &waiting {
            let stored = scene.stored_status(id).await;
            assert_eq!(stored == "voided", *site != bad, "{site}: {stored}");
        }
        world.refuse_no_more().await;
        background::sweep(world.engine()).await.unwrap();
        for (_, id) in &waiting {
            assert_eq!(scene.stored_status(id).await, "voided");
        }
    }
}

/// A sweep that fails forgets no use.
async fn a_last_use_that_could_not_be_written_is_written_later(world: World) {
    let scene = world.scene().await;
    let started = world.engine().now();
    scene.bot.call("site-list", json!({})).await.ok();
    let rename =
        |from: &str, to: &str| format!("alter table agent_keys rename column {from} to {to}");
    world.sql(&rename("last_used_at", "elsewhere")).await;
    background::sweep(world.engine()).await.unwrap_err();
    world.sql(&rename("elsewhere", "last_used_at")).await;
    world.advance(Duration::from_secs(60));
    background::sweep(world.engine()).await.unwrap();
    let seen = studio::agent(world.engine(), scene.ada.person(), &scene.bot.id).await;
    assert_eq!(seen.unwrap().keys[0].last_used_at, Some(started));
}

/// Takes whatever it is given.
#[derive(Debug)]
struct Taker;

#[async_trait]
impl Courier for Taker {
    async fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn carry(&self, _: &str, _: &Signed) -> Result<(), Failure> {
        Ok(())
    }
}

async fn drain(node: &Engine) -> usize {
    let mut count = 0;
    while let some @ 1.. = deliver_due(node).await.unwrap() {
        count += some;
    }
    count
}

async fn a_destination_that_cannot_be_written_holds_up_no_other(world: World) {
    let scene = world.scene().await;
    let settings = Settings {
        courier: Some(Arc::new(Taker)),
        ..Settings::for_url(PUBLIC_URL)
    };
    let node = world.engine_with(settings, [7; 32]).await.unwrap();
    let mut hooks = Vec::new();
    for url in ["https://one.example/", "https://two.example/"] {
        let ada = scene.ada.person();
        let made = webhooks::create(&node, ada, own_page(), &scene.site, json!({"url": url}));
        hooks.push(made.await.unwrap().webhook.id);
    }
    let waiting = async |target: String| {
        let sql = format!("select count(*) from outbox where status = 'waiting' and {target}");
        world.number(&sql).await
    };
    for bad in &hooks {
        world.refuse("outbox", &format!("target = '{bad}'")).await;
        scene.asked().await;
        assert_eq!(drain(&node).await, 1, "the other one's");
        // Left alone for a day, what waits is given up, and again the one does not keep back the other.
        scene.edit(bad.as_str()).await;
        world.advance(25 * HOUR);
        background::sweep(world.engine()).await.unwrap_err();
        assert!(waiting(format!("target = '{bad}'")).await > 0);
        assert_eq!(waiting(format!("target <> '{bad}'")).await, 0);
        world.refuse_no_more().await;
        background::sweep(world.engine()).await.unwrap();
        assert_eq!(waiting(format!("target = '{bad}'")).await, 0);
    }
}
