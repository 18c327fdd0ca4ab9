//! What a site asks of an approval: how many, of which groups, who counts, how long, and what a denial is worth.

use crate::support::*;
use cloudhal_engine::policies;
use std::time::Duration;

on_both! {
    two_people_are_asked_for_and_two_it_takes,
    groups_must_each_be_represented,
    the_owner_of_the_agent_does_not_count_where_another_is_required,
    a_denial_ends_it_however_many_approved,
    a_policy_made_stricter_holds_at_redeem,
    a_policy_made_looser_lets_an_approver_finish,
    an_approver_who_left_does_not_count,
    what_nobody_could_satisfy_is_refused,
    a_policy_is_set_by_an_owner_alone_and_journaled,
    of_two_who_saw_the_same_policy_one_sets_theirs,
    a_lifetime_of_its_own,
    a_lifetime_cut_short_holds_at_redeem,
    a_denial_stands_for_a_while,
    a_denial_at_another_door_stands_at_redeem,
    two_approvals_at_once_make_one_decision_each,
    the_last_owner_stays,
    members_are_set_by_owners,
}

fn publish(rule: Value) -> Value {
    json!({"tools": {"publish": rule}})
}

async fn two_people_are_asked_for_and_two_it_takes(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let policy = publish(json!({"approvers": 2}));
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let id = scene.asked().await;
    let record = scene.ada.approve(&id).await.unwrap();
    assert_eq!(record.status.as_str(), "pending");
    assert_eq!(record.decisions.len(), 1);
    assert!(
        !scene.redeem(&id).await.pending().approved,
        "nothing runs on half of it"
    );
    assert_eq!(
        scene.asked().await,
        id,
        "the same call waits under the same id"
    );
    let again = refused(scene.ada.approve(&id).await, Code::AlreadyDecided);
    assert_eq!(again.details["missing"]["approvers"], 1);
    assert_eq!(world.number("select count(*) from decisions").await, 1);

    let record = ben.approve(&id).await.unwrap();
    assert_eq!(record.status.as_str(), "approved");
    assert_eq!(record.decisions.len(), 2);
    scene.redeem(&id).await.ok();
    assert_eq!(scene.versions().await, 1);
    assert_eq!(
        scene.journal(&id).await,
        [
            "approval.requested",
            "approval.decided",
            "approval.decided",
            "approval.redeemed"
        ]
    );
}

async fn groups_must_each_be_represented(world: World) {
    let scene = world.scene().await;
    let legal = world.member("legal", &scene.site, Role::Approver).await;
    let brand = world.member("brand", &scene.site, Role::Approver).await;
    let (site, role) = (&scene.site, Some(Role::Approver));
    scene
        .ada
        .set_member(site, &legal, role, &["legal"])
        .await
        .unwrap();
    scene
        .ada
        .set_member(site, &brand, role, &["brand"])
        .await
        .unwrap();
    let policy = publish(json!({"groups": ["legal", "brand"]}));
    scene.ada.set_policy(site, policy).await.unwrap();
    let id = scene.asked().await;
    for (person, becomes) in [
        (&scene.ada, "pending"),
        (&legal, "pending"),
        (&brand, "approved"),
    ] {
        assert_eq!(person.approve(&id).await.unwrap().status.as_str(), becomes);
    }
    // A person who left the group stands for it no more.
    scene.ada.set_member(site, &brand, role, &[]).await.unwrap();
    let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "access_lost");
    assert_eq!(scene.versions().await, 0);
}

/// C30.
async fn the_owner_of_the_agent_does_not_count_where_another_is_required(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let policy = publish(json!({"requireDistinctApprover": true}));
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let id = scene.asked().await;
    refused(scene.ada.approve(&id).await, Code::Forbidden);
    assert_eq!(scene.stored_status(&id).await, "pending");
    let record = ben.approve(&id).await.unwrap();
    assert_eq!(record.status.as_str(), "approved");
    scene.redeem(&id).await.ok();

    scene.edit("Another text.").await;
    let id = scene.asked().await;
    scene
        .ada
        .deny(&id, "My own agent was wrong.")
        .await
        .unwrap();
    scene.redeem(&id).await.refused(Code::ApprovalDenied);
}

async fn a_denial_ends_it_however_many_approved(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let policy = publish(json!({"approvers": 2}));
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let id = scene.asked().await;
    scene.ada.approve(&id).await.unwrap();
    ben.deny(&id, "No.").await.unwrap();
    scene.redeem(&id).await.refused(Code::ApprovalDenied);
    refused(scene.ada.approve(&id).await, Code::AlreadyDecided);

    // Whoever approved may think better of it.
    scene.edit("Another text.").await;
    let id = scene.asked().await;
    scene.ada.approve(&id).await.unwrap();
    let record = scene.ada.deny(&id, "I misread it.").await.unwrap();
    assert_eq!(
        (record.status.as_str(), record.decisions.len()),
        ("denied", 2)
    );
    refused(ben.approve(&id).await, Code::AlreadyDecided);
    let refusal = scene.redeem(&id).await.refused(Code::ApprovalDenied);
    assert_eq!(refusal.details["reason"], "I misread it.");
}

async fn a_policy_made_stricter_holds_at_redeem(world: World) {
    let scene = world.scene().await;
    world.member("ben", &scene.site, Role::Approver).await;
    for stricter in [
        json!({"approvers": 2}),
        json!({"requireDistinctApprover": true}),
    ] {
        scene.ada.set_policy(&scene.site, json!({})).await.unwrap();
        scene.edit(&stricter.to_string()).await;
        let id = scene.approved().await;
        scene
            .ada
            .set_policy(&scene.site, publish(stricter))
            .await
            .unwrap();
        let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
        assert_eq!(refusal.details["cause"], "access_lost");
        assert_eq!(scene.versions().await, 0);
        assert_ne!(
            scene.asked().await,
            id,
            "a new request, under the new policy"
        );
    }
}

async fn a_policy_made_looser_lets_an_approver_finish(world: World) {
    let scene = world.scene().await;
    world.member("ben", &scene.site, Role::Approver).await;
    let two = publish(json!({"approvers": 2}));
    scene.ada.set_policy(&scene.site, two).await.unwrap();
    let id = scene.asked().await;
    scene.ada.approve(&id).await.unwrap();
    scene.ada.set_policy(&scene.site, json!({})).await.unwrap();
    let record = scene.ada.approve(&id).await.unwrap();
    assert_eq!(record.status.as_str(), "approved");
    assert_eq!(
        record.decisions.len(),
        1,
        "still one decision of one person"
    );
    scene.redeem(&id).await.ok();
}

async fn an_approver_who_left_does_not_count(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let policy = publish(json!({"approvers": 2}));
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let id = scene.asked().await;
    ben.approve(&id).await.unwrap();
    scene
        .ada
        .set_member(&scene.site, &ben, None, &[])
        .await
        .unwrap();
    assert_eq!(
        scene.ada.approve(&id).await.unwrap().status.as_str(),
        "pending"
    );
    let eve = world.member("eve", &scene.site, Role::Approver).await;
    assert_eq!(eve.approve(&id).await.unwrap().status.as_str(), "approved");
    // Of three who approved one left; two are enough.
    scene.redeem(&id).await.ok();
}

async fn what_nobody_could_satisfy_is_refused(world: World) {
    let scene = world.scene().await;
    let before = world.text("select policy from sites").await;
    // Whoever owns the workspace could always step in; here nobody does.
    for (hopeless, at) in [
        (publish(json!({"approvers": 2})), "/tools/publish"),
        (publish(json!({"groups": ["legal"]})), "/tools/publish"),
        (
            publish(json!({"requireDistinctApprover": true})),
            "/tools/publish",
        ),
        (json!({"default": {"approvers": 3}}), "/default"),
        (json!({"default": {"approvers": 0}}), "/default/approvers"),
        (json!({"tools": {"node-get": {}}}), "/tools/node-get"),
        (json!({"tools": {"publish": {"aprovers": 1}}}), ""),
        (json!([]), ""),
        (json!({"default": [1]}), "/default"),
        (json!({"tools": {"publish": []}}), "/tools/publish"),
        (json!(null), ""),
    ] {
        let set = scene.ada.set_policy(&scene.site, hopeless.clone()).await;
        let refusal = refused(set, Code::InvalidArguments);
        assert_eq!(refusal.details["faults"][0]["pointer"], at, "{hopeless}");
    }
    assert_eq!(world.text("select policy from sites").await, before);
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    scene
        .ada
        .set_member(&scene.site, &ben, Some(Role::Approver), &["legal"])
        .await
        .unwrap();
    let possible = publish(json!({"approvers": 2, "groups": ["legal"]}));
    scene.ada.set_policy(&scene.site, possible).await.unwrap();
}

async fn a_policy_is_set_by_an_owner_alone_and_journaled(world: World) {
    let scene = world.scene().await;
    for role in [Role::Viewer, Role::Editor, Role::Approver] {
        let member = world.member(role.as_str(), &scene.site, role).await;
        refused(
            member.set_policy(&scene.site, json!({})).await,
            Code::Forbidden,
        );
    }
    let stranger = world.person("stranger").await;
    refused(
        stranger.set_policy(&scene.site, json!({})).await,
        Code::NotFound,
    );
    let count = "select count(*) from journal where kind = 'policy.set'";
    assert_eq!(world.number(count).await, 0);
    let state = world.text("select state_hash from sites").await;
    let id = scene.approved().await;
    scene
        .ada
        .set_policy(&scene.site, publish(json!({"lifetimeSeconds": 600})))
        .await
        .unwrap();
    assert_eq!(world.number(count).await, 1);
    assert_eq!(
        world.text("select state_hash from sites").await,
        state,
        "no content moved"
    );
    scene.redeem(&id).await.ok();
}

async fn of_two_who_saw_the_same_policy_one_sets_theirs(world: World) {
    let scene = world.scene().await;
    world.member("ben", &scene.site, Role::Approver).await;
    let (engine, ada) = (world.engine(), scene.ada.person());
    for round in 0..4 {
        let seen = policies::get(engine, ada, &scene.site).await.unwrap();
        let set = |seconds: u64| {
            let new = publish(json!({"lifetimeSeconds": seconds}));
            policies::set(
                engine,
                ada,
                own_page(),
                &scene.site,
                new,
                Some(vec![seen.digest()]),
            )
        };
        let (one, other) = tokio::join!(set(100 + round), set(200 + round));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        let lost = one.err().or(other.err()).unwrap();
        assert_eq!(lost.code, Code::Conflict);
    }
}

async fn a_lifetime_of_its_own(world: World) {
    let scene = world.scene().await;
    let policy = publish(json!({"lifetimeSeconds": 600}));
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let id = scene.approved().await;
    let other = scene
        .bot
        .call("delete", json!({"site": scene.site}))
        .await
        .pending();
    world.advance(Duration::from_secs(601));
    scene.redeem(&id).await.refused(Code::ApprovalExpired);
    scene.ada.look(&other.approval_id).await.unwrap();
    assert_eq!(
        scene
            .ada
            .approve(&other.approval_id)
            .await
            .unwrap()
            .status
            .as_str(),
        "approved"
    );
}

async fn a_lifetime_cut_short_holds_at_redeem(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    world.advance(Duration::from_secs(61));
    for (seconds, code) in [(62, None), (60, Some(Code::ApprovalExpired))] {
        let policy = publish(json!({"lifetimeSeconds": seconds}));
        scene.ada.set_policy(&scene.site, policy).await.unwrap();
        match code {
            None => assert!(scene.asked().await == id),
            Some(code) => drop(scene.redeem(&id).await.refused(code)),
        }
    }
    assert_eq!(scene.stored_status(&id).await, "expired");
    assert_eq!(scene.versions().await, 0);
    assert!(
        scene
            .journal(&id)
            .await
            .contains(&"approval.expired".to_owned())
    );
}

/// The same call, asked at two doors: approved at one, then denied at the other.
async fn a_denial_at_another_door_stands_at_redeem(world: World) {
    let scene = world.scene().await;
    let policy = publish(json!({"denialCoolDownSeconds": 600}));
    let over_mcp = scene.bot.over(Surface::Mcp);
    let here = scene.asked().await;
    let there = over_mcp.call("publish", scene.publish_args()).await;
    let there = there.pending().approval_id;
    scene.ada.approve(&here).await.unwrap();
    world.advance(Duration::from_secs(1));
    scene
        .ada
        .deny(&there, "On second thoughts, no.")
        .await
        .unwrap();
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let refusal = scene.redeem(&here).await.refused(Code::ApprovalDenied);
    assert!(refusal.details["refusedUntil"].is_string());
    assert_eq!(
        scene.ada.look(&here).await.unwrap().status,
        Status::Approved
    );
    world.advance(Duration::from_secs(601));
    scene.redeem(&here).await.ok();
}

async fn a_denial_stands_for_a_while(world: World) {
    let scene = world.scene().await;
    let policy = publish(json!({"denialCoolDownSeconds": 600}));
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let id = scene.asked().await;
    scene.ada.deny(&id, "Not before noon.").await.unwrap();
    for surface in [Surface::Http, Surface::Mcp] {
        let again = scene
            .bot
            .over(surface)
            .call("publish", scene.publish_args())
            .await;
        let refusal = again.refused(Code::ApprovalDenied);
        assert_eq!(refusal.details["reason"], "Not before noon.");
        assert!(refusal.details["refusedUntil"].is_string());
    }
    // Another call, another agent and another state are not meant.
    scene
        .bot
        .call("delete", json!({"site": scene.site}))
        .await
        .pending();
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    other.call("publish", scene.publish_args()).await.pending();
    world.advance(Duration::from_secs(601));
    assert_ne!(scene.asked().await, id);
    let id = scene.asked().await;
    scene.ada.deny(&id, "Still no.").await.unwrap();
    scene.edit("A better text.").await;
    scene.asked().await;
}

async fn two_approvals_at_once_make_one_decision_each(world: World) {
    let scene = world.scene().await;
    let mut people = vec![scene.ada.clone()];
    for name in ["ben", "eve", "joe"] {
        people.push(world.member(name, &scene.site, Role::Approver).await);
    }
    let policy = publish(json!({"approvers": 4}));
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    for round in 0..rounds(5) {
        scene.edit(&format!("Round {round}.")).await;
        let id = scene.asked().await;
        let clicks = people.iter().flat_map(|person| {
            let (one, two) = (person.clone(), person.clone());
            let (a, b) = (id.clone(), id.clone());
            [
                tokio::spawn(async move { one.approve(&a).await }),
                tokio::spawn(async move { two.approve(&b).await }),
            ]
        });
        let mut taken = 0;
        for click in clicks.collect::<Vec<_>>() {
            match click.await.unwrap() {
                Ok(_) => taken += 1,
                Err(refusal) => assert_eq!(refusal.code, Code::AlreadyDecided),
            }
        }
        assert_eq!(taken, 4);
        let count = format!("select count(*) from decisions where approval_id = '{id}'");
        assert_eq!(world.number(&count).await, 4);
        scene.redeem(&id).await.ok();
    }
}

async fn the_last_owner_stays(world: World) {
    let scene = world.scene().await;
    let (ada, site) = (&scene.ada, &scene.site);
    for role in [None, Some(Role::Approver)] {
        let left = ada.set_member(site, ada, role, &[]).await;
        refused(left, Code::Conflict);
    }
    let ben = world.member("ben", site, Role::Owner).await;
    ada.set_member(site, ada, None, &[]).await.unwrap();
    refused(ben.set_member(site, &ben, None, &[]).await, Code::Conflict);
    refused(ada.set_member(site, &ben, None, &[]).await, Code::NotFound);
}

async fn members_are_set_by_owners(world: World) {
    let scene = world.scene().await;
    let site = &scene.site;
    let ben = world.person("ben").await;
    for role in [Role::Viewer, Role::Editor, Role::Approver] {
        let member = world.member(role.as_str(), site, role).await;
        let raised = member
            .set_member(site, &member, Some(Role::Owner), &[])
            .await;
        refused(raised, Code::Forbidden);
        let let_in = member.set_member(site, &ben, Some(Role::Viewer), &[]).await;
        refused(let_in, Code::Forbidden);
    }
    for bad in ["Legal", "", "a b", "a/b", "a\0"] {
        let set = scene
            .ada
            .set_member(site, &ben, Some(Role::Viewer), &[bad])
            .await;
        refused(set, Code::InvalidArguments);
    }
    let id = scene.asked().await;
    refused(ben.look(&id).await, Code::NotFound);
    scene
        .ada
        .set_member(site, &ben, Some(Role::Approver), &["legal", "legal"])
        .await
        .unwrap();
    ben.look(&id).await.unwrap();
    scene
        .ada
        .set_member(site, &ben, None, &["legal"])
        .await
        .unwrap();
    refused(ben.look(&id).await, Code::NotFound);
    assert_eq!(world.number("select count(*) from group_members").await, 0);
    assert_eq!(
        world
            .number("select count(*) from journal where kind = 'member.set'")
            .await,
        2
    );
}
