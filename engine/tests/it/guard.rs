//! The redeeming UPDATE and the deciding one, a condition at a time. Above them other reads refuse the same things earlier;
//! these tests go past all of that, to the statements that decide, and change one thing of a call that would be taken.

use crate::support::*;
use cloudhal_domain::{approval::Status, digest::Digest, time::Timestamp, tool::CallerKind};
use cloudhal_engine::store::{
    Fail,
    approvals::{self as sql, CallKey, CallerKey},
};

on_both! {
    the_redeeming_update_takes_the_right_call,
    the_redeeming_update_asks_for_every_binding,
    the_redeeming_update_takes_only_what_is_approved,
    the_deciding_update_asks_for_everything,
    withdrawing_asks_for_the_caller_and_the_time,
    the_index_lets_one_request_of_a_call_wait,
    what_the_index_did_not_take_is_not_said_to_wait,
}

/// What the statement is given; owned, so that a test can change one thing.
#[derive(Clone, Debug)]
struct Call {
    id: String,
    site: String,
    tool: String,
    tool_version: String,
    args_hash: String,
    caller_kind: CallerKind,
    caller_id: String,
    surface: Surface,
    state_hash: String,
    now: Timestamp,
}

/// An approved record and the call that spends it.
async fn approved(scene: &Scene) -> Call {
    let id = scene.approved().await;
    let text = async |column: &str| {
        scene
            .world
            .text(&format!("select {column} from approvals where id = '{id}'"))
            .await
    };
    Call {
        site: scene.site.as_str().into(),
        tool: text("tool").await,
        tool_version: text("tool_version").await,
        args_hash: text("args_hash").await,
        caller_kind: CallerKind::Agent,
        caller_id: text("caller_id").await,
        surface: Surface::Http,
        state_hash: text("state_hash").await,
        now: scene.world.engine().now(),
        id: id.as_str().into(),
    }
}

/// Runs the statement, tells whether it took the row, and undoes it.
async fn takes(world: &World, call: &Call) -> bool {
    let call = call.clone();
    let unit = world.engine().store().write(move |tx| {
        Box::pin(async move {
            let (site, args_hash) = (SiteId::new(&call.site), Digest::from_text(&call.args_hash));
            let key = CallKey {
                caller: CallerKey {
                    kind: call.caller_kind,
                    id: &call.caller_id,
                    surface: call.surface,
                },
                site: &site,
                tool: &call.tool,
                tool_version: &call.tool_version,
                args_hash: &args_hash,
                state_hash: &call.state_hash,
            };
            let id = ApprovalId::new(&call.id);
            let taken = sql::redeem(tx, &id, key, "receipt", call.now)
                .await?
                .then_some(());
            Err::<(), Fail>(Refusal::conflict(taken.is_some().to_string()).into())
        })
    });
    match unit.await {
        Err(Fail::Refused(refusal)) => refusal.message == "true",
        other => panic!("{other:?}"),
    }
}

async fn the_redeeming_update_takes_the_right_call(world: World) {
    let scene = world.scene().await;
    let call = approved(&scene).await;
    assert!(takes(&world, &call).await);
    assert!(takes(&world, &call).await, "and the first was undone");
}

async fn the_redeeming_update_asks_for_every_binding(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    let call = approved(&scene).await;
    type Change = fn(&mut Call, &SiteId);
    let changes: [(&str, Change); 10] = [
        ("id", |call, _| call.id.push('x')),
        ("tool", |call, _| call.tool = "delete".into()),
        ("tool version", |call, _| call.tool_version = "2.0".into()),
        ("arguments", |call, _| call.args_hash = "sha256:00".into()),
        ("caller kind", |call, _| {
            call.caller_kind = CallerKind::Person
        }),
        ("caller", |call, _| call.caller_id.push('x')),
        ("surface", |call, _| call.surface = Surface::Mcp),
        ("site", |call, florist| call.site = florist.as_str().into()),
        ("state", |call, _| call.state_hash = "sha256:00".into()),
        ("time", |call, _| call.now = call.now.plus(24 * HOUR)),
    ];
    for (what, change) in changes {
        let mut other = call.clone();
        change(&mut other, &florist);
        assert!(!takes(&world, &other).await, "another {what}");
    }
    let epoch = async |by: &str| {
        world
            .sql(&format!("update instance set epoch = epoch {by}"))
            .await
    };
    epoch("+ 1").await;
    assert!(!takes(&world, &call).await, "another epoch");
    epoch("- 1").await;
    let (home, other) = (format!("'{}'", scene.site), format!("'{florist}'"));
    for (column, value, back) in [
        ("scope_kind", "'invoice'", "'site'"),
        ("scope_id", other.as_str(), home.as_str()),
        ("site_id", &other, &home),
    ] {
        let set = async |to: &str| {
            world
                .sql(&format!("update approvals set {column} = {to}"))
                .await;
        };
        set(value).await;
        assert!(!takes(&world, &call).await, "another {column}");
        set(back).await;
    }
    assert!(takes(&world, &call).await);
}

async fn the_redeeming_update_takes_only_what_is_approved(world: World) {
    let scene = world.scene().await;
    let call = approved(&scene).await;
    for status in [
        "pending",
        "denied",
        "expired",
        "voided",
        "cancelled",
        "redeemed",
    ] {
        let changed_at = if status == "pending" { "null" } else { "1" };
        let cause = if status == "voided" {
            "'state_changed'"
        } else {
            "null"
        };
        let receipt = if status == "redeemed" { "'r'" } else { "null" };
        world
            .sql(&format!(
                "update approvals set status = '{status}', changed_at = {changed_at}, void_cause = {cause}, receipt_id = {receipt}"
            ))
            .await;
        assert!(!takes(&world, &call).await, "{status}");
    }
    world
        .sql("update approvals set status = 'approved', changed_at = 1, void_cause = null, receipt_id = null")
        .await;
    assert!(takes(&world, &call).await);
}

async fn the_deciding_update_asks_for_everything(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    let id = scene.asked().await;
    let seen = scene.ada.look(&id).await.unwrap();
    let now = world.engine().now();
    let decides = async |site: &SiteId, id: &ApprovalId, seen: &Digest, now: Timestamp| {
        let (site, id, seen) = (site.clone(), id.clone(), seen.clone());
        let unit = world.engine().store().write(move |tx| {
            Box::pin(async move {
                let taken = sql::decide(tx, &site, &id, &seen, Status::Approved, now).await?;
                Err::<(), Fail>(Refusal::conflict(taken.to_string()).into())
            })
        });
        match unit.await {
            Err(Fail::Refused(refusal)) => refusal.message == "true",
            other => panic!("{other:?}"),
        }
    };
    let (site, digest) = (&scene.site, &seen.seen_digest);
    assert!(decides(site, &id, digest, now).await);
    assert!(!decides(&florist, &id, digest, now).await, "site");
    assert!(
        !decides(site, &ApprovalId::new("x"), digest, now).await,
        "id"
    );
    assert!(
        !decides(site, &id, &seen.args_hash, now).await,
        "seen digest"
    );
    assert!(
        !decides(site, &id, digest, now.plus(24 * HOUR)).await,
        "time"
    );
    world.sql("update instance set epoch = epoch + 1").await;
    assert!(!decides(site, &id, digest, now).await, "epoch");
    world.sql("update instance set epoch = epoch - 1").await;
    scene.ada.approve(&id).await.unwrap();
    assert!(!decides(site, &id, digest, now).await, "status");
}

async fn withdrawing_asks_for_the_caller_and_the_time(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let now = world.engine().now();
    let cancels = async |kind: CallerKind, caller: &str, surface: Surface, now: Timestamp| {
        let (id, caller) = (id.clone(), caller.to_owned());
        let unit = world.engine().store().write(move |tx| {
            Box::pin(async move {
                let key = CallerKey {
                    kind,
                    id: &caller,
                    surface,
                };
                let taken = sql::cancel(tx, &id, key, now).await?;
                Err::<(), Fail>(Refusal::conflict(taken.to_string()).into())
            })
        });
        match unit.await {
            Err(Fail::Refused(refusal)) => refusal.message == "true",
            other => panic!("{other:?}"),
        }
    };
    let (agent, bot) = (CallerKind::Agent, scene.bot.id.as_str());
    assert!(cancels(agent, bot, Surface::Http, now).await);
    assert!(!cancels(CallerKind::Person, bot, Surface::Http, now).await);
    assert!(!cancels(agent, "other", Surface::Http, now).await);
    assert!(!cancels(agent, bot, Surface::Mcp, now).await);
    assert!(!cancels(agent, bot, Surface::Http, now.plus(24 * HOUR)).await);
}

/// A10: the index decides, whatever a caller of the statement believes.
async fn the_index_lets_one_request_of_a_call_wait(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let columns = "site_id, scope_kind, scope_id, tool, tool_version, arguments, args_hash, state_hash, state_rev, caller_kind, caller_id, caller_name,
        key_id, surface, conversation, reason, sentence, risk, card, seen_digest, epoch, status, requested_at, expires_at, changed_at, void_cause, receipt_id";
    let twin = format!(
        "insert into approvals (id, {columns}) select 'twin', {columns} from approvals where id = '{id}'"
    );
    world.database().try_sql(&twin).await.unwrap_err();
    scene.ada.approve(&id).await.unwrap();
    world.database().try_sql(&twin).await.unwrap_err();
    scene.redeem(&id).await.ok();
    // Closed, it stands in nobody's way.
    assert_ne!(scene.asked().await, id);
}

/// The request of an older epoch stands in the index's way: no answer may name one that was never stored.
async fn what_the_index_did_not_take_is_not_said_to_wait(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    world.sql("update instance set epoch = epoch + 1").await;
    let answer = scene.bot.call("publish", scene.publish_args()).await;
    let refusal = answer.refused(Code::Unavailable);
    assert!(refusal.retryable);
    assert_eq!(
        world.texts("select id from approvals").await,
        [id.to_string()]
    );
}
