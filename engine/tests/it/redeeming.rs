//! Once (DESIGN §4, rule 6): through races, through failures of the effect and of the machinery.

use crate::support::*;
use cloudhal_domain::card::{Asker, Card};
use cloudhal_engine::{
    approvals,
    authority::Authority,
    gate::CallRequest,
    sites::LockedSite,
    store::{Fail, Tx},
    tools::Gatable,
};
use std::sync::Arc;

on_both! {
    thirty_two_redeemers_run_it_once,
    an_editor_and_a_redeemer_never_publish_what_nobody_approved,
    a_decision_and_a_redeemer_never_disagree,
    when_the_machinery_fails_it_stays_approved_and_the_repeat_runs_once,
    a_commit_that_fails_claims_nothing_and_the_repeat_runs_once,
    when_the_effect_fails_the_approval_is_spent_and_says_so,
    an_effect_that_refuses_late_leaves_nothing_but_its_receipt,
    a_failed_effect_leaves_nothing_of_itself,
    what_the_update_does_not_take_runs_nothing,
    a_caller_who_hangs_up_does_not_stop_it,
    a_revoked_key_does_not_redeem,
    a_key_that_ended_since_the_door_looked_changes_nothing,
    an_expired_key_does_not_redeem,
    a_disabled_agent_or_owner_does_not_redeem,
    an_approver_who_may_no_longer_decide_does_not_count,
    a_second_node_redeems_the_same_record_once,
}

/// R1, P2.
async fn thirty_two_redeemers_run_it_once(world: World) {
    let scene = world.scene().await;
    for round in 1..=rounds(40) as i64 {
        let id = scene.approved().await;
        let caller = scene.bot.verified().await.unwrap();
        let redeemers = (0..32).map(|n| {
            let (engine, caller, scene, id) = (
                world.engine().clone(),
                caller.clone(),
                scene.clone(),
                id.clone(),
            );
            let request = match n % 4 {
                0 => CallRequest {
                    tool: "approvals-resume".into(),
                    arguments: json!({"approvalId": id}),
                    approval: None,
                    reason: None,
                },
                _ => CallRequest {
                    tool: "publish".into(),
                    arguments: scene.publish_args(),
                    approval: Some(id.as_str().into()),
                    reason: None,
                },
            };
            tokio::spawn(async move { engine.call(&caller, request).await })
        });
        let answers: Vec<Answer> = futures::future::join_all(redeemers)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let fresh: Vec<_> = answers
            .iter()
            .filter(|answer| {
                matches!(
                    answer,
                    Answer::Ok {
                        replayed: false,
                        ..
                    }
                )
            })
            .collect();
        assert_eq!(fresh.len(), 1, "{answers:?}");
        for answer in &answers {
            let Answer::Ok { data, .. } = answer else {
                panic!("a loser gets the stored result: {answer:?}")
            };
            assert_eq!(data["version"], round);
        }
        assert_eq!(scene.versions().await, round);
    }
    let redeemed = world
        .number("select count(*) from journal where kind = 'approval.redeemed'")
        .await;
    assert_eq!(redeemed, scene.versions().await);
}

/// C59, R3, P3, P4.
async fn an_editor_and_a_redeemer_never_publish_what_nobody_approved(world: World) {
    let scene = world.scene().await;
    let (mut ran, mut refused) = (0, 0);
    let total = rounds(60);
    for round in 0..total {
        let approved = format!("Approved {round}.");
        scene.edit(&approved).await;
        let id = scene.approved().await;
        let (editor, redeemer) = (scene.clone(), scene.clone());
        // Who starts first alternates, so that both outcomes occur on any scheduler.
        let edit = async move { editor.edit(&format!("Sneaked in {round}.")).await };
        let redeem = {
            let id = id.clone();
            async move { redeemer.redeem(&id).await }
        };
        let answer = if round % 2 == 0 {
            let edit = tokio::spawn(edit);
            let redeem = tokio::spawn(redeem);
            edit.await.unwrap();
            redeem.await.unwrap()
        } else {
            let redeem = tokio::spawn(redeem);
            let edit = tokio::spawn(edit);
            edit.await.unwrap();
            redeem.await.unwrap()
        };
        match answer {
            Answer::Ok { data, .. } => {
                ran += 1;
                let version = data["version"].as_i64().unwrap();
                assert_eq!(scene.published_rye(version).await, approved);
            }
            other => {
                refused += 1;
                let refusal = other.refused(Code::ApprovalVoided);
                assert_eq!(refusal.details["cause"], "state_changed");
            }
        }
    }
    assert_eq!(scene.versions().await, ran);
    println!("{ran} ran, {refused} were refused");
    if total >= 20 {
        assert!(
            ran > 0 && refused > 0,
            "{ran} ran, {refused} refused: no race"
        );
    }
}

async fn a_decision_and_a_redeemer_never_disagree(world: World) {
    let scene = world.scene().await;
    for round in 0..rounds(20) {
        let id = scene.asked().await;
        let (ada, redeemer, decided) = (scene.ada.clone(), scene.clone(), id.clone());
        let decide = tokio::spawn(async move {
            match round % 2 {
                0 => ada.approve(&decided).await.unwrap(),
                _ => ada.deny(&decided, "no").await.unwrap(),
            }
        });
        let early = redeemer.redeem(&id).await;
        decide.await.unwrap();
        let late = scene.redeem(&id).await;
        match (round % 2, early) {
            (0, Answer::Ok { .. }) => drop(late.replayed()),
            (0, early) => {
                early.pending();
                late.ok();
            }
            (_, early) => {
                assert!(!matches!(early, Answer::Ok { .. }), "{early:?}");
                late.refused(Code::ApprovalDenied);
            }
        }
    }
}

/// C04: a trigger stands for the disk that fails after the claim and the effect.
async fn when_the_machinery_fails_it_stays_approved_and_the_repeat_runs_once(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let state = "select state_hash from sites";
    let before = world.text(state).await;
    for table in ["receipts", "versions", "journal", "events"] {
        break_inserts(&world, table).await;
        let refusal = scene.redeem(&id).await.refused(Code::Unavailable);
        assert!(refusal.retryable);
        mend_inserts(&world, table).await;
        assert_eq!(scene.stored_status(&id).await, "approved", "{table}");
        assert_eq!(
            (scene.versions().await, scene.live_version().await),
            (0, None)
        );
        assert_eq!(world.text(state).await, before);
        assert_eq!(world.fault().await, None);
    }
    let ran = scene.redeem(&id).await.ok();
    assert_eq!(scene.redeem(&id).await.replayed(), ran);
    assert_eq!(scene.versions().await, 1);
}

async fn break_inserts(world: &World, table: &str) {
    match world.database().kind() {
        Kind::Sqlite => {
            let sql = format!(
                "create trigger broken_{table} before insert on {table} begin select raise(abort, 'the disk is full'); end"
            );
            world.sql(&sql).await;
        }
        Kind::Postgres => {
            let sql = format!(
                "create function broken() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$;
                 create trigger broken_{table} before insert on {table} for each statement execute function broken();"
            );
            world.sql(&sql).await;
        }
    }
}

async fn mend_inserts(world: &World, table: &str) {
    match world.database().kind() {
        Kind::Sqlite => world.sql(&format!("drop trigger broken_{table}")).await,
        Kind::Postgres => world.sql("drop function broken() cascade").await,
    }
}

/// Everything of the unit went well, and only COMMIT did not: whether it happened is nothing to make a claim about.
async fn a_commit_that_fails_claims_nothing_and_the_repeat_runs_once(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    world
        .sql("create table owed (id text references people (id) deferrable initially deferred)")
        .await;
    let insert = "insert into owed values ('nobody')";
    let (broken, mended) = match world.database().kind() {
        Kind::Sqlite => (
            format!("create trigger owes after insert on receipts begin {insert}; end"),
            "drop trigger owes",
        ),
        Kind::Postgres => (
            format!(
                "create function owes() returns trigger language plpgsql as $$ begin {insert}; return null; end $$;
                 create trigger owes after insert on receipts for each row execute function owes()"
            ),
            "drop function owes() cascade",
        ),
    };
    world.sql(&broken).await;
    let refusal = scene.redeem(&id).await.refused(Code::Unavailable);
    assert!(refusal.retryable);
    assert!(
        !refusal.message.contains("Nothing was changed"),
        "{refusal:?}"
    );
    assert_eq!(scene.stored_status(&id).await, "approved");
    world.sql(mended).await;
    let ran = scene.redeem(&id).await.ok();
    assert_eq!(scene.redeem(&id).await.replayed(), ran);
    assert_eq!(scene.versions().await, 1);
}

/// The version to roll back to was lost between the approval and the redeem, in a way that moved no state.
async fn when_the_effect_fails_the_approval_is_spent_and_says_so(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.publish().await;
    let arguments = json!({"site": scene.site, "version": 1});
    let id = scene
        .bot
        .call("rollback", arguments.clone())
        .await
        .pending()
        .approval_id;
    scene.ada.approve(&id).await.unwrap();
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    let bystander = other
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    world.tampers();
    world.sql("delete from versions where version = 1").await;
    let redeem = async || {
        scene
            .bot
            .call_with(&id, "rollback", arguments.clone())
            .await
    };
    let first = redeem().await;
    assert_eq!(first.http_status(), 404);
    let first = first.refused(Code::NotFound);
    assert_eq!(
        redeem().await.refused(Code::NotFound),
        first,
        "the same again"
    );
    let resumed = scene
        .bot
        .call("approvals-resume", json!({"approvalId": id}))
        .await;
    assert_eq!(resumed.refused(Code::NotFound), first);
    let record = scene.ada.look(&id).await.unwrap();
    assert_eq!(record.status, Status::Redeemed);
    let receipt = record.receipt.unwrap();
    assert_eq!(
        (receipt.outcome, receipt.error),
        (Outcome::Failed, Some(first))
    );
    assert_eq!(scene.live_version().await, Some(2));
    assert_eq!(
        scene.stored_status(&bystander).await,
        "pending",
        "nothing changed, so nothing is voided"
    );
    assert_ne!(
        world
            .number("select count(*) from journal where kind = 'approval.redeemed'")
            .await,
        0
    );
}

/// Publishes, and then thinks better of it.
struct PublishesAndRefuses;

#[async_trait::async_trait]
impl Gatable for PublishesAndRefuses {
    fn site(&self, _: &Value) -> Result<SiteId, Refusal> {
        Err(Refusal::not_found("site"))
    }

    async fn card(&self, _: &mut Tx, _: &LockedSite, _: Asker, _: &Value) -> Result<Card, Fail> {
        Err(Refusal::not_found("card").into())
    }

    async fn run(
        &self,
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        _: Value,
    ) -> Result<Value, Fail> {
        sites::publish(tx, site, authority).await?;
        Err(Refusal::conflict("it thought better of it").into())
    }
}

async fn an_effect_that_refuses_late_leaves_nothing_but_its_receipt(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    let bystander = other
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    let state = "select state_hash from sites";
    let before = world.text(state).await;
    let caller = scene.bot.verified().await.unwrap();
    let stored = approvals::of_caller(world.engine(), &caller, &id)
        .await
        .unwrap();
    let tool = world.engine().tools().get("publish").unwrap();
    let mut hints = world.engine().live().subscribe();
    let gated = Arc::new(PublishesAndRefuses);
    let ran = approvals::redeem(world.engine(), &caller, tool, gated, &stored)
        .await
        .unwrap();
    let approvals::Redeem::Ran(receipt) = ran else {
        panic!("it was there to be spent")
    };
    assert_eq!(receipt.outcome, Outcome::Failed);
    assert_eq!(
        (scene.versions().await, scene.live_version().await),
        (0, None)
    );
    assert_eq!(world.text(state).await, before);
    assert_eq!(scene.stored_status(&bystander).await, "pending");
    assert_eq!(hints.try_recv().unwrap().kind, "approval.executed");
    assert!(hints.try_recv().is_err());
    let refusal = scene.redeem(&id).await.refused(Code::Conflict);
    assert_eq!(refusal.message, "it thought better of it");
}

/// The subtree goes node by node; a hole in the middle must bring back those before it.
async fn a_failed_effect_leaves_nothing_of_itself(world: World) {
    let scene = world.scene().await;
    let bread = world.node(&scene.site, "bread").await;
    let arguments = json!({"site": scene.site, "node": bread});
    let id = scene
        .bot
        .call("delete", arguments.clone())
        .await
        .pending()
        .approval_id;
    scene.ada.approve(&id).await.unwrap();
    world.tampers();
    world
        .sql(&format!(
            "delete from node_revisions where node_id = '{}'",
            scene.rye
        ))
        .await;
    // A row that is missing is the machinery's failure, not the domain's: the approval is not spent.
    let answer = scene.bot.call_with(&id, "delete", arguments).await;
    answer.refused(Code::Internal);
    assert_eq!(scene.stored_status(&id).await, "approved");
    let gone = world
        .number("select count(*) from nodes where deleted_at is not null")
        .await;
    assert_eq!(gone, 0);
}

/// The record was read and found good; then its time ran out, or the site moved in a way that voided nothing. Only the UPDATE
/// is left to say no, and its word counts.
async fn what_the_update_does_not_take_runs_nothing(world: World) {
    let scene = world.scene().await;
    world.tampers();
    for late in [false, true] {
        let id = scene.approved().await;
        let caller = scene.bot.verified().await.unwrap();
        let stored = approvals::of_caller(world.engine(), &caller, &id)
            .await
            .unwrap();
        match late {
            true => world.advance(25 * HOUR),
            false => world.sql("update sites set state_hash = 'sha256:00'").await,
        }
        let tool = world.engine().tools().get("publish").unwrap();
        let gated = tool.run.gatable().unwrap();
        let ran = approvals::redeem(world.engine(), &caller, tool, gated, &stored)
            .await
            .unwrap();
        assert!(
            matches!(ran, approvals::Redeem::Lost),
            "it ran, late: {late}"
        );
        assert_eq!(scene.versions().await, 0);
        assert_eq!(scene.stored_status(&id).await, "approved");
    }
}

/// C65, C78: the asker is gone, the transaction is not.
async fn a_caller_who_hangs_up_does_not_stop_it(world: World) {
    let scene = world.scene().await;
    for _ in 0..rounds(10) {
        let id = scene.approved().await;
        let before = scene.versions().await;
        let mut redeem = Box::pin(scene.redeem(&id));
        for _ in 0..3 {
            let _ = futures::poll!(&mut redeem);
            tokio::task::yield_now().await;
        }
        drop(redeem);
        let answer = scene.redeem(&id).await;
        assert!(matches!(answer, Answer::Ok { .. }), "{answer:?}");
        assert_eq!(scene.versions().await, before + 1);
    }
}

/// C39, P5: the key went between the door and the transaction; before the door it is plainly unauthorized.
async fn a_revoked_key_does_not_redeem(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let caller = scene.bot.verified().await.unwrap();
    let key = scene.bot.key_id();
    scene.ada.revoke_key(&scene.bot.id, key).await.unwrap();
    let request = CallRequest {
        tool: "publish".into(),
        arguments: scene.publish_args(),
        approval: Some(id.as_str().into()),
        reason: None,
    };
    let answer = world.engine().call(&caller, request).await;
    answer.refused(Code::Unauthorized);
    scene.redeem(&id).await.refused(Code::Unauthorized);
    assert_eq!(scene.stored_status(&id).await, "approved");
    assert_eq!(scene.versions().await, 0);
}

/// The door looked before; a change, or a request, that then waited for the site's lock is asked again.
async fn a_key_that_ended_since_the_door_looked_changes_nothing(world: World) {
    let scene = world.scene().await;
    let caller = scene.bot.verified().await.unwrap();
    let call = async |tool: &str, arguments: serde_json::Value| {
        let request = CallRequest {
            tool: tool.into(),
            arguments,
            approval: None,
            reason: None,
        };
        world.engine().call(&caller, request).await
    };
    let edit = json!({"site": scene.site, "node": scene.rye, "title": "Too late"});
    let before = world
        .number("select cast(sum(rev) as bigint) from nodes")
        .await;
    let narrowed = "update agents set all_tools = 0";
    let wide = "update agents set all_tools = 1";
    world.sql(narrowed).await;
    call("node-update", edit.clone())
        .await
        .refused(Code::InsufficientScope);
    call("publish", scene.publish_args())
        .await
        .refused(Code::InsufficientScope);
    world.sql(wide).await;
    scene
        .ada
        .revoke_key(&scene.bot.id, scene.bot.key_id())
        .await
        .unwrap();
    call("node-update", edit).await.refused(Code::Unauthorized);
    call("publish", scene.publish_args())
        .await
        .refused(Code::Unauthorized);
    assert_eq!(
        world
            .number("select cast(sum(rev) as bigint) from nodes")
            .await,
        before
    );
    assert_eq!(world.number("select count(*) from approvals").await, 0);
}

async fn an_expired_key_does_not_redeem(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let caller = scene.bot.verified().await.unwrap();
    let soon = world.engine().now().ms() + 1000;
    world
        .sql(&format!("update agent_keys set expires_at = {soon}"))
        .await;
    world.advance(Duration::from_secs(1));
    scene.redeem(&id).await.refused(Code::Unauthorized);
    let request = CallRequest {
        tool: "publish".into(),
        arguments: scene.publish_args(),
        approval: Some(id.as_str().into()),
        reason: None,
    };
    let answer = world.engine().call(&caller, request).await;
    answer.refused(Code::Unauthorized);
    assert_eq!(scene.versions().await, 0);
}

async fn a_disabled_agent_or_owner_does_not_redeem(world: World) {
    let scene = world.scene().await;
    let bea = world.member("bea", &scene.site, Role::Approver).await;
    let id = scene.asked().await;
    bea.approve(&id).await.unwrap();
    let caller = scene.bot.verified().await.unwrap();
    for table in ["agents", "people"] {
        let whose = match table {
            "agents" => scene.bot.id.as_str(),
            _ => scene.ada.person().id().as_str(),
        };
        let set = async |value: &str| {
            let sql = format!("update {table} set disabled_at = {value} where id = '{whose}'");
            world.sql(&sql).await;
        };
        set("1").await;
        scene.redeem(&id).await.refused(Code::Unauthorized);
        let request = CallRequest {
            tool: "publish".into(),
            arguments: scene.publish_args(),
            approval: Some(id.as_str().into()),
            reason: None,
        };
        let answer = world.engine().call(&caller, request).await;
        answer.refused(Code::Unauthorized);
        set("null").await;
    }
    assert_eq!(scene.versions().await, 0);
    scene.redeem(&id).await.ok();
}

/// C39.
async fn an_approver_who_may_no_longer_decide_does_not_count(world: World) {
    let scene = world.scene().await;
    let bea = world.member("bea", &scene.site, Role::Approver).await;
    let who = bea.person().id().as_str();
    for (lose, regain) in [
        (
            format!("update memberships set role = 'viewer' where person_id = '{who}'"),
            format!("update memberships set role = 'approver' where person_id = '{who}'"),
        ),
        (
            format!("update people set disabled_at = 1 where id = '{who}'"),
            format!("update people set disabled_at = null where id = '{who}'"),
        ),
        (
            format!("delete from memberships where person_id = '{who}'"),
            "select 1".to_owned(),
        ),
    ] {
        let id = scene.asked().await;
        bea.approve(&id).await.unwrap();
        world.sql(&lose).await;
        let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
        assert_eq!(refusal.details["cause"], "access_lost");
        assert_eq!(scene.stored_status(&id).await, "voided");
        assert_eq!(scene.journal(&id).await.last().unwrap(), "approval.voided");
        world.sql(&regain).await;
        scene.redeem(&id).await.refused(Code::ApprovalVoided);
    }
    assert_eq!(scene.versions().await, 0);
}

/// R2 in small: two processes on one database, also on one SQLite file.
async fn a_second_node_redeems_the_same_record_once(world: World) {
    let scene = world.scene().await;
    let bot_there = scene.bot.at(&world.second_engine().await);
    for round in 1..=rounds(10) as i64 {
        let id = scene.approved().await;
        let redeemers = (0..16).map(|n| {
            let bot = if n % 2 == 0 {
                scene.bot.clone()
            } else {
                bot_there.clone()
            };
            let (id, arguments) = (id.clone(), scene.publish_args());
            tokio::spawn(async move { bot.call_with(&id, "publish", arguments).await })
        });
        let mut fresh = 0;
        for answer in futures::future::join_all(redeemers).await {
            match answer.unwrap() {
                Answer::Ok { data, replayed } => {
                    assert_eq!(data["version"], round);
                    fresh += usize::from(!replayed);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((fresh, scene.versions().await), (1, round));
    }
}
