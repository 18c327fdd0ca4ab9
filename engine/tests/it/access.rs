//! Who may do what, as people keep it: accounts, owners of the workspace, agents with their scopes and keys, and what a
//! person takes along who leaves [P5, P7, C25, C30, C32, C35, C36, C39].

use crate::support::*;
use cloudhal_domain::{
    id::{AgentId, KeyId, PersonId},
    time::Timestamp,
};
use cloudhal_engine::{
    agents::{self, NewAgent},
    authority::Steward,
    members,
    people::{self, NewPerson},
    studio,
};
use std::time::Duration;

on_both! {
    only_an_owner_of_the_workspace_keeps_people,
    the_last_owner_of_the_workspace_stays,
    two_owners_cannot_end_each_other_at_once,
    a_disabled_approver_does_not_count_at_redeem,
    a_disabled_person_is_nobody_and_their_agents_stop,
    a_new_link_ends_the_one_before,
    an_agent_is_kept_by_its_owner_and_the_workspaces_owners,
    an_agent_reaches_no_more_than_its_owner,
    a_viewers_agent_reads_and_changes_nothing,
    an_agent_without_the_tool_does_not_redeem,
    a_rotated_key_redeems_and_a_revoked_one_does_not,
    a_disabled_agent_stops_and_what_it_asked_is_voided,
    a_site_owner_takes_an_agent_off_the_site,
    whoever_leaves_takes_their_agents_along,
    a_site_keeps_somebody_who_can_manage_it,
    an_approver_who_leaves_leaves_a_policy_that_nobody_satisfies,
    adding_by_address_tells_strangers_nothing,
    the_owner_of_another_s_agent_is_not_its_approver,
    a_keys_last_use_is_known_and_costs_a_call_nothing,
}

fn change(disabled: Option<bool>, workspace_owner: Option<bool>) -> people::Change {
    people::Change {
        name: None,
        workspace_owner,
        disabled,
    }
}

fn reach(sites: &[&SiteId]) -> agents::Change {
    agents::Change {
        sites: Some(sites.iter().map(|site| (*site).clone()).collect()),
        ..Default::default()
    }
}

fn new_agent(name: &str, sites: &[&SiteId]) -> NewAgent {
    NewAgent {
        name: name.to_owned(),
        sites: sites.iter().map(|site| (*site).clone()).collect(),
        tools: Vec::new(),
        expires_at: None,
    }
}

async fn journaled(world: &World, kind: &str) -> Vec<String> {
    let sql = format!("select actor_name from journal where kind = '{kind}' order by seq");
    world.texts(&sql).await
}

async fn only_an_owner_of_the_workspace_keeps_people(world: World) {
    let scene = world.scene().await;
    let root = world.owner("root").await;
    let ben = world.person("ben").await;
    let engine = world.engine();
    let new = || NewPerson {
        email: "eve@example.com".into(),
        name: "Eve".into(),
        workspace_owner: true,
        password: None,
    };
    let before = world.number("select count(*) from people").await;
    for somebody in [&scene.ada, &ben] {
        let by = somebody.steward();
        refused(
            people::list(engine, somebody.person()).await,
            Code::Forbidden,
        );
        let invited = people::invite(engine, &by, new()).await;
        refused(invited.map(drop), Code::Forbidden);
        let link = people::new_link(engine, &by, root.person().id()).await;
        refused(link.map(drop), Code::Forbidden);
        // To raise oneself, to end somebody, and somebody who is not there: one answer.
        let raised = somebody.change_person(somebody, change(None, Some(true)));
        refused(raised.await, Code::Forbidden);
        refused(somebody.set_disabled(&root, true).await, Code::Forbidden);
        let nobody = PersonId::new("nobody");
        let absent = people::change(engine, &by, &nobody, change(Some(true), None)).await;
        refused(absent, Code::Forbidden);
    }
    assert_eq!(world.number("select count(*) from people").await, before);
    assert_eq!(journaled(&world, "person.changed").await.len(), 0);

    let invited = people::invite(engine, &root.steward(), new())
        .await
        .unwrap();
    let token = invited.link.url.rsplit('/').next().unwrap();
    let eve = people::spend_sign_in_link(engine, token).await.unwrap();
    assert!(eve.is_workspace_owner());
    assert_eq!(journaled(&world, "person.link_made").await, ["root"]);
    let again = people::invite(engine, &root.steward(), new()).await;
    refused(again.map(drop), Code::Conflict);
    let renamed = people::Change {
        name: Some(" Eve Park ".into()),
        ..Default::default()
    };
    let account = people::change(engine, &root.steward(), eve.id(), renamed).await;
    assert_eq!(account.unwrap().name, "Eve Park");
    for bad in ["", "a\nb", &"x".repeat(101)] {
        let change = people::Change {
            name: Some(bad.to_owned()),
            ..Default::default()
        };
        refused(
            people::change(engine, &root.steward(), eve.id(), change).await,
            Code::InvalidArguments,
        );
    }
    assert_eq!(journaled(&world, "person.changed").await, ["root"]);
}

async fn the_last_owner_of_the_workspace_stays(world: World) {
    let root = world.owner("root").await;
    let eve = world.owner("eve").await;
    root.change_person(&eve, change(Some(true), None))
        .await
        .unwrap();
    // Eve owns the workspace on paper and cannot sign in: she does not count.
    for last in [
        change(Some(true), None),
        change(None, Some(false)),
        change(Some(true), Some(false)),
    ] {
        refused(root.change_person(&root, last).await, Code::Conflict);
    }
    // The operator is told the same.
    let operator = Steward::operator();
    let last = change(Some(true), None);
    let ended = people::change(world.engine(), &operator, root.person().id(), last).await;
    refused(ended, Code::Conflict);
    root.set_disabled(&eve, false).await.unwrap();
    root.change_person(&root, change(None, Some(false)))
        .await
        .unwrap();
    refused(root.set_disabled(&eve, true).await, Code::Forbidden);
}

async fn two_owners_cannot_end_each_other_at_once(world: World) {
    let people: Vec<PersonClient> = {
        let mut people = Vec::new();
        for name in ["one", "two", "three"] {
            people.push(world.owner(name).await);
        }
        people
    };
    let second = world.second_engine().await;
    let able = "select count(*) from people where workspace_owner = 1 and disabled_at is null";
    for round in 0..rounds(10) {
        world
            .sql("update people set workspace_owner = 1, disabled_at = null")
            .await;
        let ends = (0..people.len()).map(|at| {
            let (by, who) = (people[at].clone(), people[(at + 1) % people.len()].clone());
            let last = match (round + at) % 2 {
                0 => change(Some(true), None),
                _ => change(None, Some(false)),
            };
            // Through two engines, as two nodes would.
            let engine = match at % 2 {
                0 => world.engine().clone(),
                _ => second.clone(),
            };
            tokio::spawn(async move {
                people::change(&engine, &by.steward(), who.person().id(), last).await
            })
        });
        let mut ended = 0;
        for end in ends.collect::<Vec<_>>() {
            match end.await.unwrap() {
                Ok(_) => ended += 1,
                Err(refusal) => assert!(
                    matches!(refusal.code, Code::Conflict | Code::Forbidden),
                    "{refusal}"
                ),
            }
        }
        assert!(ended >= 1, "somebody was first");
        assert!(world.number(able).await >= 1, "round {round}");
    }
}

/// C39, P5: the approver's account is disabled between the approval and the redeem.
async fn a_disabled_approver_does_not_count_at_redeem(world: World) {
    let scene = world.scene().await;
    let root = world.owner("root").await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let id = scene.asked().await;
    ben.approve(&id).await.unwrap();
    root.set_disabled(&ben, true).await.unwrap();
    let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "access_lost");
    assert_eq!(scene.versions().await, 0);
    // He decides nothing more, not with a session that is still in his hands.
    let id = scene.asked().await;
    refused(ben.approve(&id).await, Code::NotFound);
    root.set_disabled(&ben, false).await.unwrap();
    let back = people::by_id(world.engine(), ben.person().id().as_str()).await;
    let back = PersonClient::new(world.engine(), back.unwrap().unwrap());
    back.approve(&id).await.unwrap();
    scene.redeem(&id).await.ok();
}

async fn a_disabled_person_is_nobody_and_their_agents_stop(world: World) {
    let scene = world.scene().await;
    let root = world.owner("root").await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let helper = world.agent("helper", &ben, &[&scene.site]).await;
    let asked = helper.call("publish", scene.publish_args()).await.pending();
    let link = people::sign_in_link(world.engine(), ben.person())
        .await
        .unwrap();
    root.set_disabled(&ben, true).await.unwrap();

    let id = ben.person().id().as_str();
    assert!(people::by_id(world.engine(), id).await.unwrap().is_none());
    helper
        .call("site-list", json!({}))
        .await
        .refused(Code::Unauthorized);
    assert_eq!(scene.stored_status(&asked.approval_id).await, "voided");
    let token = link.rsplit('/').next().unwrap();
    refused(
        people::spend_sign_in_link(world.engine(), token).await,
        Code::SignInFailed,
    );
    let made = people::new_link(world.engine(), &root.steward(), ben.person().id()).await;
    refused(made.map(drop), Code::Conflict);
    let added = scene
        .ada
        .set_member(&scene.site, &ben, Some(Role::Owner), &[]);
    refused(added.await, Code::NotFound);

    root.set_disabled(&ben, false).await.unwrap();
    let back = people::by_id(world.engine(), id).await.unwrap().unwrap();
    assert_ne!(
        back.session_key(),
        ben.person().session_key(),
        "no session of before comes back"
    );
    refused(
        people::spend_sign_in_link(world.engine(), token).await,
        Code::SignInFailed,
    );
    helper.call("site-list", json!({})).await.ok();
}

async fn a_new_link_ends_the_one_before(world: World) {
    let root = world.owner("root").await;
    let ben = world.person("ben").await;
    let engine = world.engine();
    let link = async || {
        let made = people::new_link(engine, &root.steward(), ben.person().id()).await;
        made.unwrap().url.rsplit('/').next().unwrap().to_owned()
    };
    let (first, second) = (link().await, link().await);
    refused(
        people::spend_sign_in_link(engine, &first).await,
        Code::SignInFailed,
    );
    people::spend_sign_in_link(engine, &second).await.unwrap();
    for nobody in ["nobody", "", "a\0b"] {
        let made = people::new_link(engine, &root.steward(), &PersonId::new(nobody)).await;
        refused(made.map(drop), Code::NotFound);
    }
}

/// P7, C32: to anybody else an agent does not exist, whatever is tried on it.
async fn an_agent_is_kept_by_its_owner_and_the_workspaces_owners(world: World) {
    let scene = world.scene().await;
    let root = world.owner("root").await;
    let site_owner = world.member("ben", &scene.site, Role::Owner).await;
    let stranger = world.person("stranger").await;
    let (engine, bot) = (world.engine(), &scene.bot);
    for somebody in [&site_owner, &stranger] {
        let by = somebody.steward();
        let revoked = somebody.revoke_key(&bot.id, bot.key_id()).await;
        let nobodys = somebody
            .revoke_key(&AgentId::new("nobody"), "nothing")
            .await;
        assert_eq!(
            refused(revoked, Code::NotFound),
            refused(nobodys, Code::NotFound)
        );
        let made = agents::new_key(engine, &by, &bot.id, None).await;
        refused(made.map(drop), Code::NotFound);
        refused(
            somebody.change_agent(&bot.id, reach(&[])).await,
            Code::NotFound,
        );
        let seen = studio::agent(engine, somebody.person(), &bot.id).await;
        refused(seen, Code::NotFound);
        let foreign = scene.ada.person().id();
        let added = agents::add_by(engine, &by, foreign, new_agent("spy", &[])).await;
        refused(added.map(drop), Code::Forbidden);
    }
    bot.call("site-list", json!({})).await.ok();
    // A key goes with its own agent and with no other.
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    refused(
        scene.ada.revoke_key(&bot.id, other.key_id()).await,
        Code::NotFound,
    );
    for keeper in [&scene.ada, &root] {
        let key = agents::new_key(engine, &keeper.steward(), &bot.id, None).await;
        let key = key.unwrap();
        keeper.revoke_key(&bot.id, key.id.as_str()).await.unwrap();
        let again = keeper.revoke_key(&bot.id, key.id.as_str()).await;
        refused(again, Code::NotFound);
    }
    assert_eq!(journaled(&world, "key.revoked").await, ["Ada", "root"]);
    // Names are an owner's own; a workspace owner names the owner.
    let taken = agents::add_by(
        engine,
        &root.steward(),
        scene.ada.person().id(),
        new_agent("bot", &[]),
    )
    .await;
    refused(taken.map(drop), Code::Conflict);
    let for_ada = new_agent("second", &[&scene.site]);
    let key = agents::add_by(engine, &root.steward(), scene.ada.person().id(), for_ada).await;
    let seen = studio::agent(engine, scene.ada.person(), &key.unwrap().key.agent).await;
    assert_eq!(seen.unwrap().owner.name, "Ada");
    let past = agents::new_key(engine, &scene.ada.steward(), &bot.id, Some(Timestamp(1))).await;
    refused(past.map(drop), Code::InvalidArguments);
}

/// C32: a scope does not go beyond the sites of the agent's owner, whoever sets it.
async fn an_agent_reaches_no_more_than_its_owner(world: World) {
    let scene = world.scene().await;
    let root = world.owner("root").await;
    let zoe = world.person("zoe").await;
    let cinema = world.site("cinema", &zoe).await;
    let engine = world.engine();
    let nowhere = SiteId::new("a".repeat(26));
    for by in [&scene.ada, &root] {
        let foreign = by.change_agent(&scene.bot.id, reach(&[&scene.site, &cinema]));
        let foreign = refused(foreign.await, Code::NotFound);
        let absent = by.change_agent(&scene.bot.id, reach(&[&scene.site, &nowhere]));
        assert_eq!(foreign, refused(absent.await, Code::NotFound));
        let wide = new_agent("wide", &[&cinema]);
        let added = agents::add_by(engine, &by.steward(), scene.ada.person().id(), wide).await;
        refused(added.map(drop), Code::NotFound);
    }
    let bad = agents::Change {
        tools: Some(vec!["no-such-tool".into()]),
        ..Default::default()
    };
    refused(
        scene.ada.change_agent(&scene.bot.id, bad).await,
        Code::UnknownTool,
    );
    assert_eq!(journaled(&world, "agent.changed").await.len(), 0);

    zoe.set_member(&cinema, &scene.ada, Some(Role::Editor), &[])
        .await
        .unwrap();
    scene
        .ada
        .change_agent(&scene.bot.id, reach(&[&scene.site, &cinema]))
        .await
        .unwrap();
    let list = scene.bot.call("site-list", json!({})).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    // What Ada loses, her agent loses; nobody has to remember it.
    zoe.set_member(&cinema, &scene.ada, None, &[])
        .await
        .unwrap();
    let list = scene.bot.call("site-list", json!({})).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let args = json!({"site": cinema});
    for tool in ["site-get", "node-list", "version-list", "publish"] {
        let foreign = scene
            .bot
            .call(tool, args.clone())
            .await
            .refused(Code::NotFound);
        let absent = scene.bot.call(tool, json!({"site": nowhere})).await;
        assert_eq!(foreign, absent.refused(Code::NotFound), "{tool}");
    }
}

async fn a_viewers_agent_reads_and_changes_nothing(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Viewer).await;
    let helper = world.agent("helper", &ben, &[&scene.site]).await;
    helper.call("site-get", scene.publish_args()).await.ok();
    let args = json!({"site": scene.site, "node": scene.rye, "body": "Mine."});
    let edit = helper.call("node-update", args.clone()).await;
    edit.refused(Code::InsufficientScope);
    for tool in ["publish", "delete"] {
        let asked = helper.call(tool, scene.publish_args()).await;
        asked.refused(Code::InsufficientScope);
    }
    let becomes = async |role| {
        let set = scene.ada.set_member(&scene.site, &ben, Some(role), &[]);
        set.await.unwrap();
    };
    becomes(Role::Editor).await;
    helper.call("node-update", args.clone()).await.ok();
    // What was approved while they could is not run when they can no more, and keeps.
    let gates = json!({"extraGatedTools": ["node-update"]});
    scene.ada.set_policy(&scene.site, gates).await.unwrap();
    let args = json!({"site": scene.site, "node": scene.rye, "body": "Mine again."});
    let id = helper.call("node-update", args.clone()).await.pending();
    let id = id.approval_id;
    scene.ada.approve(&id).await.unwrap();
    becomes(Role::Viewer).await;
    let redeemed = helper.call_with(&id, "node-update", args.clone()).await;
    redeemed.refused(Code::InsufficientScope);
    assert_eq!(scene.stored_status(&id).await, "approved");
    becomes(Role::Editor).await;
    helper.call_with(&id, "node-update", args).await.ok();
}

/// C35: the approver's authority does not become the agent's.
async fn an_agent_without_the_tool_does_not_redeem(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let narrow = agents::Change {
        tools: Some(vec!["site-get".into(), "node-update".into()]),
        ..Default::default()
    };
    scene.ada.change_agent(&scene.bot.id, narrow).await.unwrap();
    scene.redeem(&id).await.refused(Code::InsufficientScope);
    assert_eq!(scene.stored_status(&id).await, "approved");
    let wide = agents::Change {
        tools: Some(Vec::new()),
        ..Default::default()
    };
    scene.ada.change_agent(&scene.bot.id, wide).await.unwrap();
    scene.redeem(&id).await.ok();
}

/// C39: the caller is the agent. Another key of its redeems what an older one asked; the older one opens nothing.
async fn a_rotated_key_redeems_and_a_revoked_one_does_not(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let key = agents::new_key(world.engine(), &scene.ada.steward(), &scene.bot.id, None).await;
    let rotated = AgentClient::new(world.engine(), scene.bot.id.clone(), key.unwrap().secret);
    scene
        .ada
        .revoke_key(&scene.bot.id, scene.bot.key_id())
        .await
        .unwrap();
    scene.redeem(&id).await.refused(Code::Unauthorized);
    rotated
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
    assert_eq!(scene.versions().await, 1);
}

async fn a_disabled_agent_stops_and_what_it_asked_is_voided(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let disable = |disabled| agents::Change {
        disabled: Some(disabled),
        ..Default::default()
    };
    scene
        .ada
        .change_agent(&scene.bot.id, disable(true))
        .await
        .unwrap();
    scene.redeem(&id).await.refused(Code::Unauthorized);
    assert_eq!(scene.stored_status(&id).await, "voided");
    let made = agents::new_key(world.engine(), &scene.ada.steward(), &scene.bot.id, None).await;
    refused(made.map(drop), Code::Conflict);
    scene
        .ada
        .change_agent(&scene.bot.id, disable(false))
        .await
        .unwrap();
    let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "access_lost");
    assert_eq!(
        scene.journal(&id).await,
        ["approval.requested", "approval.decided", "approval.voided"]
    );
    assert_eq!(journaled(&world, "agent.changed").await, ["Ada", "Ada"]);
}

async fn a_site_owner_takes_an_agent_off_the_site(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Owner).await;
    let joe = world.member("joe", &scene.site, Role::Approver).await;
    let stranger = world.person("stranger").await;
    let id = scene.asked().await;
    let off = async |by: &PersonClient, agent: &AgentId| {
        agents::take_off(world.engine(), &by.steward(), &scene.site, agent).await
    };
    refused(off(&joe, &scene.bot.id).await, Code::Forbidden);
    refused(off(&stranger, &scene.bot.id).await, Code::NotFound);
    refused(off(&ben, &AgentId::new("nobody")).await, Code::NotFound);
    off(&ben, &scene.bot.id).await.unwrap();
    refused(off(&ben, &scene.bot.id).await, Code::NotFound);
    assert_eq!(scene.stored_status(&id).await, "voided");
    scene
        .bot
        .call("site-get", scene.publish_args())
        .await
        .refused(Code::NotFound);
    let seen = studio::site_agents(world.engine(), ben.person(), &scene.site).await;
    assert_eq!(seen.unwrap(), []);
    assert_eq!(journaled(&world, "agent.taken_off").await, ["ben"]);
}

async fn whoever_leaves_takes_their_agents_along(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Editor).await;
    let helper = world.agent("helper", &ben, &[&scene.site]).await;
    let asked = helper.call("publish", scene.publish_args()).await.pending();
    let id = asked.approval_id;
    scene.ada.approve(&id).await.unwrap();
    scene
        .ada
        .set_member(&scene.site, &ben, None, &[])
        .await
        .unwrap();
    assert_eq!(scene.stored_status(&id).await, "voided");
    let again = helper.call_with(&id, "publish", scene.publish_args()).await;
    let refusal = again.refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "access_lost");
    assert_eq!(scene.versions().await, 0);
}

async fn a_site_keeps_somebody_who_can_manage_it(world: World) {
    let scene = world.scene().await;
    let (ada, site) = (&scene.ada, &scene.site);
    refused(ada.set_member(site, ada, None, &[]).await, Code::Conflict);
    // Nobody owns the workspace: not even the operator disables the last owner of a site.
    let (operator, ended) = (Steward::operator(), change(Some(true), None));
    let disabled = people::change(world.engine(), &operator, ada.person().id(), ended).await;
    refused(disabled, Code::Conflict);
    let root = world.owner("root").await;
    ada.set_member(site, ada, None, &[]).await.unwrap();
    root.set_member(site, ada, Some(Role::Viewer), &[])
        .await
        .unwrap();
    refused(
        root.change_person(&root, change(None, Some(false))).await,
        Code::Conflict,
    );
}

async fn an_approver_who_leaves_leaves_a_policy_that_nobody_satisfies(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let (ada, site) = (&scene.ada, &scene.site);
    let two = json!({"tools": {"publish": {"approvers": 2}}});
    ada.set_policy(site, two).await.unwrap();
    let named = async || {
        let list = members::list(world.engine(), ada.person(), site).await;
        let faults = list.unwrap().unsatisfiable.into_iter();
        faults.map(|fault| fault.pointer).collect::<Vec<_>>()
    };
    assert!(named().await.is_empty());
    // Whoever must go, goes; the rule is named.
    ada.set_member(site, &ben, None, &[]).await.unwrap();
    assert_eq!(named().await, ["/tools/publish"]);
    let id = scene.asked().await;
    assert_eq!(ada.approve(&id).await.unwrap().status.as_str(), "pending");
    ada.set_member(site, &ben, Some(Role::Approver), &[])
        .await
        .unwrap();
    assert!(named().await.is_empty());
    ben.approve(&id).await.unwrap();
    scene.redeem(&id).await.ok();
}

async fn adding_by_address_tells_strangers_nothing(world: World) {
    let scene = world.scene().await;
    world.person("ben").await;
    let joe = world.member("joe", &scene.site, Role::Approver).await;
    let stranger = world.person("stranger").await;
    let add = async |by: &PersonClient, email: &str| {
        members::add(
            world.engine(),
            by.person(),
            own_page(),
            &scene.site,
            email,
            members::Change {
                role: Some(Role::Approver),
                groups: vec!["legal".into()],
                only_after: None,
            },
        )
        .await
    };
    for (by, code) in [(&joe, Code::Forbidden), (&stranger, Code::NotFound)] {
        let known = refused(add(by, "ben@example.com").await, code);
        assert_eq!(known, refused(add(by, "nobody@example.com").await, code));
    }
    refused(add(&scene.ada, "nobody@example.com").await, Code::NotFound);
    refused(add(&scene.ada, "").await, Code::NotFound);
    add(&scene.ada, " BEN@example.com ").await.unwrap();
    let list = members::list(world.engine(), scene.ada.person(), &scene.site).await;
    let list = list.unwrap().items;
    let ben = list.iter().find(|member| member.name == "ben").unwrap();
    assert_eq!(
        (ben.role, &ben.groups[..]),
        (Role::Approver, &["legal".to_owned()][..])
    );
}

/// C30: an agent that a workspace owner adds for somebody else is that person's, but with a key that one made oneself one asks.
async fn the_owner_of_another_s_agent_is_not_its_approver(world: World) {
    let scene = world.scene().await;
    let root = world.owner("root").await;
    let policy = json!({"tools": {"publish": {"requireDistinctApprover": true}}});
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let (by, whose) = (root.steward(), scene.ada.person().id());
    let new = new_agent("second", &[&scene.site]);
    let key = agents::add_by(world.engine(), &by, whose, new)
        .await
        .unwrap()
        .key;
    let second = AgentClient::new(world.engine(), key.agent, key.secret);
    let asked = second.call("publish", scene.publish_args()).await.pending();
    for behind in [&scene.ada, &root] {
        refused(behind.approve(&asked.approval_id).await, Code::Forbidden);
    }
    let other = world.owner("other").await;
    other.approve(&asked.approval_id).await.unwrap();
    // Whoever made it is disabled: the key opens nothing any more, nor does a link that they made for somebody.
    second.verified().await.unwrap();
    let link = people::new_link(world.engine(), &root.steward(), whose)
        .await
        .unwrap();
    let token = link.url.rsplit('/').next().unwrap().to_owned();
    let (by, root_id, off) = (
        other.steward(),
        root.person().id(),
        change(Some(true), None),
    );
    people::change(world.engine(), &by, root_id, off)
        .await
        .unwrap();
    refused(second.verified().await, Code::Unauthorized);
    let spent = people::spend_sign_in_link(world.engine(), &token).await;
    refused(spent, Code::SignInFailed);
    assert_eq!(journaled(&world, "agent.added").await, ["Cloudhal", "root"]);
}

async fn a_keys_last_use_is_known_and_costs_a_call_nothing(world: World) {
    let scene = world.scene().await;
    let last = async || {
        let seen = studio::agent(world.engine(), scene.ada.person(), &scene.bot.id).await;
        seen.unwrap().keys[0].last_used_at
    };
    let started = world.engine().now();
    scene.bot.call("site-list", json!({})).await.ok();
    assert_eq!(last().await, None, "the call wrote nothing");
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(last().await, Some(started));
    // Not at every sweep either.
    world.advance(Duration::from_secs(60));
    scene.bot.call("site-list", json!({})).await.ok();
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(last().await, Some(started));
    world.advance(Duration::from_secs(600));
    scene.bot.call("site-list", json!({})).await.ok();
    background::sweep(world.engine()).await.unwrap();
    assert_eq!(last().await, Some(world.engine().now()));
    let unknown = KeyId::new("nothing");
    refused(
        scene.ada.revoke_key(&scene.bot.id, unknown.as_str()).await,
        Code::NotFound,
    );
}
