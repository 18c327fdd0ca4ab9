//! The state that approvals are bound to: kept incrementally, equal to what a recomputation finds, and never seen twice.

use crate::support::*;
use std::collections::HashSet;

on_both! {
    the_running_state_equals_a_recomputed_one_under_random_edits,
}

/// `verify` recomputes from the nodes alone; it is asked after every step.
async fn the_running_state_equals_a_recomputed_one_under_random_edits(world: World) {
    let scene = world.scene().await;
    let mut seed = 20_260_329_u64;
    let mut chance = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut states = HashSet::new();
    for step in 0..80 {
        let nodes = world
            .texts("select id from nodes where deleted_at is null order by id")
            .await;
        let node = || {
            nodes
                .get(step % nodes.len().max(1))
                .cloned()
                .unwrap_or_default()
        };
        let site = &scene.site;
        let kind = chance(7);
        let other = nodes
            .get(chance(nodes.len().max(1)))
            .cloned()
            .unwrap_or_default();
        match kind {
            0 | 1 => {
                let new = json!({"site": site, "parent": other, "title": format!("N {step}"), "slug": format!("n-{step}")});
                scene.bot.call("node-create", new).await;
            }
            2 => {
                let change = json!({"site": site, "node": node(), "body": format!("{step}"), "fields": {"n": step}});
                scene.bot.call("node-update", change).await;
            }
            3 => {
                let change = json!({"site": site, "node": node(), "slug": format!("s-{step}")});
                scene.bot.call("node-update", change).await;
            }
            4 => {
                let change = json!({"site": site, "node": node(), "parent": other});
                scene.bot.call("node-move", change).await;
            }
            5 => drop(scene.ada.act("publish", json!({"site": site})).await),
            _ => drop(
                scene
                    .ada
                    .act("delete", json!({"site": site, "node": other}))
                    .await,
            ),
        }
        assert_eq!(world.fault().await, None, "step {step}, kind {kind}");
        states.insert(
            world
                .text("select state_hash || cast(state_rev as text) from sites")
                .await,
        );
    }
    let moved = world.number("select state_rev from sites").await;
    // The first two states belong to the making of the site.
    assert!(states.len() as i64 >= moved - 2, "a state was seen twice");
}
