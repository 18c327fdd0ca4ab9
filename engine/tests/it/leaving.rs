//! Which agents are on a site, as people leave it and come back, and as its owners want it.

use crate::support::*;
use cloudhal_domain::seen;
use cloudhal_engine::{agents, members, people};

on_both! {
    whoever_comes_back_comes_without_agents,
    whoever_owns_the_workspace_no_more_takes_their_agents_along,
    what_a_site_owner_took_off_stays_off,
    of_two_who_saw_the_same_one_changes_it,
    whoever_is_taken_off_as_their_agent_is_put_on_takes_it_along,
}

fn reach(sites: &[&SiteId]) -> agents::Change {
    agents::Change {
        sites: Some(sites.iter().map(|site| (*site).clone()).collect()),
        ..Default::default()
    }
}

async fn journaled(world: &World, kind: &str) -> Vec<String> {
    let sql = format!("select actor_name from journal where kind = '{kind}' order by seq");
    world.texts(&sql).await
}

async fn whoever_comes_back_comes_without_agents(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Editor).await;
    let helper = world.agent("helper", &ben, &[&scene.site]).await;
    let set = async |role| {
        let set = scene.ada.set_member(&scene.site, &ben, role, &[]);
        set.await.unwrap();
    };
    set(Some(Role::Viewer)).await;
    helper.call("site-get", scene.publish_args()).await.ok();
    set(None).await;
    assert_eq!(journaled(&world, "agent.taken_off").await, ["Ada"]);
    set(Some(Role::Editor)).await;
    let seen = helper.call("site-get", scene.publish_args()).await;
    seen.refused(Code::NotFound);
    // They left by themselves: Ben puts them on again.
    ben.change_agent(&helper.id, reach(&[&scene.site]))
        .await
        .unwrap();
    helper.call("site-get", scene.publish_args()).await.ok();
    scene.bot.call("site-get", scene.publish_args()).await.ok();
    // Whoever owns the workspace owns the site without belonging to it, and their agents stay.
    let root = world.owner("root").await;
    let roots = world.agent("roots", &root, &[&scene.site]).await;
    for role in [Some(Role::Editor), None] {
        let set = scene.ada.set_member(&scene.site, &root, role, &[]);
        set.await.unwrap();
    }
    roots.call("site-get", scene.publish_args()).await.ok();
    assert_eq!(journaled(&world, "agent.taken_off").await, ["Ada"]);
}

async fn whoever_owns_the_workspace_no_more_takes_their_agents_along(world: World) {
    let scene = world.scene().await;
    let (root, eve) = (world.owner("root").await, world.owner("eve").await);
    let florist = world.site("florist", &eve).await;
    let helper = world.agent("helper", &eve, &[&scene.site, &florist]).await;
    let no_owner = people::Change {
        workspace_owner: Some(false),
        ..Default::default()
    };
    root.change_person(&eve, no_owner).await.unwrap();
    assert_eq!(journaled(&world, "agent.changed").await, ["root"]);
    let set = scene
        .ada
        .set_member(&scene.site, &eve, Some(Role::Editor), &[]);
    set.await.unwrap();
    let seen = helper.call("site-get", scene.publish_args()).await;
    seen.refused(Code::NotFound);
    // Of the other site she is a member by herself.
    helper.call("site-get", json!({"site": florist})).await.ok();
}

/// Only an owner of the site puts an agent on it again that somebody else than its owner took off.
async fn what_a_site_owner_took_off_stays_off(world: World) {
    let scene = world.scene().await;
    let (engine, site) = (world.engine(), &scene.site);
    let ben = world.member("ben", site, Role::Approver).await;
    let stranger = world.person("stranger").await;
    let root = world.owner("root").await;
    let helper = world.agent("helper", &ben, &[site]).await;
    let there = async || {
        let seen = helper.call("site-get", scene.publish_args()).await;
        matches!(seen, Answer::Ok { .. })
    };
    let off = async |by: &PersonClient| {
        agents::take_off(engine, &by.steward(), site, &helper.id)
            .await
            .unwrap();
        assert!(!there().await);
    };
    let back =
        async |by: &PersonClient| agents::put_back(engine, &by.steward(), site, &helper.id).await;
    // Its own owner takes it off and puts it on as they like.
    off(&ben).await;
    refused(back(&scene.ada).await, Code::NotFound);
    ben.change_agent(&helper.id, reach(&[site])).await.unwrap();
    assert!(there().await);

    off(&scene.ada).await;
    let again = ben.change_agent(&helper.id, reach(&[site])).await;
    let said = refused(again, Code::Forbidden).message;
    assert!(said.contains("took helper off"), "{said}");
    refused(back(&ben).await, Code::Forbidden);
    refused(back(&stranger).await, Code::NotFound);
    // Nor does it come back with its owner.
    for role in [None, Some(Role::Approver)] {
        let set = scene.ada.set_member(site, &ben, role, &[]);
        set.await.unwrap();
    }
    let again = ben.change_agent(&helper.id, reach(&[site])).await;
    refused(again, Code::Forbidden);
    assert!(!there().await);
    back(&scene.ada).await.unwrap();
    assert!(there().await);
    refused(back(&scene.ada).await, Code::NotFound);
    assert_eq!(journaled(&world, "agent.put_back").await, ["Ada"]);

    // An owner of the workspace keeps it too, and is one of the site's owners.
    root.change_agent(&helper.id, reach(&[])).await.unwrap();
    let again = ben.change_agent(&helper.id, reach(&[site])).await;
    refused(again, Code::Forbidden);
    root.change_agent(&helper.id, reach(&[site])).await.unwrap();
    assert!(there().await);
    ben.change_agent(&helper.id, reach(&[])).await.unwrap();
    ben.change_agent(&helper.id, reach(&[site])).await.unwrap();
    assert!(there().await);
    // Where its owner went, it does not work.
    off(&scene.ada).await;
    let gone = scene.ada.set_member(site, &ben, None, &[]);
    gone.await.unwrap();
    refused(back(&scene.ada).await, Code::Conflict);
}

/// What somebody is on a site, and what an agent reaches: written only by whoever saw what there is.
async fn of_two_who_saw_the_same_one_changes_it(world: World) {
    let scene = world.scene().await;
    let (engine, site) = (world.engine(), &scene.site);
    let ben = world.member("ben", site, Role::Viewer).await;
    let mut seen = seen::member(Some(Role::Viewer), &[]);
    for round in 0..4 {
        let groups = [vec![format!("one-{round}")], vec![format!("two-{round}")]];
        let set = |role, groups: &Vec<String>| {
            let change = members::Change {
                role: Some(role),
                groups: groups.clone(),
                only_after: Some(seen.clone()),
            };
            let (ada, ben) = (scene.ada.person(), ben.person().id());
            members::set(engine, ada, own_page(), site, ben, change)
        };
        let (one, other) = tokio::join!(
            set(Role::Editor, &groups[0]),
            set(Role::Approver, &groups[1])
        );
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        let is = match one {
            Ok(_) => seen::member(Some(Role::Editor), &groups[0]),
            Err(_) => seen::member(Some(Role::Approver), &groups[1]),
        };
        let lost = refused(one.and(other), Code::Conflict);
        assert_eq!(lost.details["was"], is.as_str(), "{}", lost.message);
        seen = is;
    }

    let narrow = |tool: &str, seen: String| {
        let change = agents::Change {
            tools: Some(vec![tool.to_owned()]),
            only_after: Some(seen),
            ..Default::default()
        };
        scene.ada.change_agent(&scene.bot.id, change)
    };
    let on = |tools: &[String]| seen::agent([site.as_str()].into_iter(), tools);
    let first = on(&[]);
    let (one, other) = tokio::join!(
        narrow("site-get", first.clone()),
        narrow("node-get", first.clone())
    );
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    let lost = refused(one.and(other), Code::Conflict);
    let now = lost.details["was"].as_str().unwrap().to_owned();
    narrow("site-list", now).await.unwrap();
    refused(narrow("publish", first).await, Code::Conflict);
}

/// Whichever comes first, the agent is not on the site when its owner comes back.
async fn whoever_is_taken_off_as_their_agent_is_put_on_takes_it_along(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Editor).await;
    let helper = world.agent("helper", &ben, &[&scene.site]).await;
    for _ in 0..rounds(10) {
        ben.change_agent(&helper.id, reach(&[])).await.unwrap();
        let off = scene.ada.set_member(&scene.site, &ben, None, &[]);
        let (off, _) = tokio::join!(off, ben.change_agent(&helper.id, reach(&[&scene.site])));
        off.unwrap();
        let left = "select count(*) from agent_sites s join agents a on a.id = s.agent_id where a.name = 'helper'";
        assert_eq!(world.number(left).await, 0);
        let set = scene
            .ada
            .set_member(&scene.site, &ben, Some(Role::Editor), &[]);
        set.await.unwrap();
    }
}
