//! What only several nodes on one database can get wrong: their clocks differ, and a right is taken away while it is used.

use crate::support::*;
use cloudhal_engine::agents;
use cloudhal_engine::{
    authority::Author,
    sites::{Content, LockedSite},
};
use tokio::sync::oneshot;

on_postgres! {
    r10_the_clocks_of_nodes_decide_nothing,
    r10_a_slow_node_revives_nothing,
    c39_a_right_that_is_being_taken_away_is_waited_for,
    c39_a_narrowed_scope_waits_for_a_redeem,
    c39_a_session_that_is_being_ended_is_waited_for,
    whoever_locks_second_sees_what_the_first_left,
}

const DAY_AND_HOUR_MS: i64 = 25 * 3_600_000;
const DATABASE_MS: &str = "select cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";

async fn r10_the_clocks_of_nodes_decide_nothing(world: World) {
    let scene = world.scene().await;
    let slow = world.engine_off_by(-DAY_AND_HOUR_MS).await;
    let fast = world.engine_off_by(DAY_AND_HOUR_MS).await;
    let publish = || scene.publish_args();

    let before = world.number(DATABASE_MS).await;
    let id = scene
        .bot
        .at(&slow)
        .call("publish", publish())
        .await
        .pending()
        .approval_id;
    let asked = world.number("select requested_at from approvals").await;
    let after = world.number(DATABASE_MS).await;
    assert!(
        (before..=after).contains(&asked),
        "{before} {asked} {after}"
    );

    let record = scene.ada.at(&fast).approve(&id).await.unwrap();
    assert_eq!(record.status, Status::Approved);
    let answer = scene
        .bot
        .at(&slow)
        .call_with(&id, "publish", publish())
        .await;
    answer.ok();
    let after = world.number(DATABASE_MS).await;
    let told = "select count(*) from journal where approval_id is not null and (at < $before or at > $after)"
        .replace("$before", &before.to_string())
        .replace("$after", &after.to_string());
    assert_eq!(
        world.number(&told).await,
        0,
        "the journal tells the database's time"
    );
}

async fn r10_a_slow_node_revives_nothing(world: World) {
    let scene = world.scene().await;
    world.tampers();
    let right = world.engine_off_by(0).await;
    let slow = world.engine_off_by(-DAY_AND_HOUR_MS).await;
    let call = scene
        .bot
        .at(&right)
        .call("publish", scene.publish_args())
        .await;
    let id = call.pending().approval_id;
    scene.ada.at(&right).approve(&id).await.unwrap();
    // Its day and a second go by.
    world.sql("update approvals set requested_at = requested_at - 86401000, expires_at = expires_at - 86401000").await;
    let late = scene
        .bot
        .at(&slow)
        .call_with(&id, "publish", scene.publish_args())
        .await;
    late.refused(Code::ApprovalExpired);
    assert_eq!(scene.versions().await, 0);
}

/// C39. Whoever takes a right away gets an answer only once nothing runs on that right any more: the redeem that began meanwhile
/// waits for it, and then refuses.
async fn c39_a_right_that_is_being_taken_away_is_waited_for(world: World) {
    let scene = world.scene().await;
    let ben = world.member("ben", &scene.site, Role::Approver).await;
    let (agent, key) = (scene.bot.id.as_str(), scene.bot.key_id());
    let (of_key, of_agent) = (format!("id = '{key}'"), format!("id = '{agent}'"));
    let id = scene.asked().await;
    ben.approve(&id).await.unwrap();
    for (table, column, whose, code) in [
        ("agent_keys", "revoked_at", of_key, Code::Unauthorized),
        ("agents", "disabled_at", of_agent, Code::Unauthorized),
        (
            "people",
            "disabled_at",
            "name = 'ben'".into(),
            Code::ApprovalVoided,
        ),
    ] {
        let taken = format!("update {table} set {column} = 1 where {whose}");
        redeem_while(&scene, &id, &taken).await.refused(code);
        assert_eq!(scene.versions().await, 0, "{taken}");
        world
            .sql(&format!("update {table} set {column} = null"))
            .await;
    }
    let id = scene.asked().await;
    ben.approve(&id).await.unwrap();
    let taken = format!(
        "with agent as (select id from agents where id = '{agent}' for update) delete from agent_sites where agent_id in (select id from agent)"
    );
    let answer = redeem_while(&scene, &id, &taken).await;
    answer.refused(Code::NotFound);
    assert_eq!(scene.versions().await, 0, "{taken}");
}

/// The same for a scope that is being narrowed by whoever keeps the agent: it waits for the redeem that holds the agent.
async fn c39_a_narrowed_scope_waits_for_a_redeem(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let held = format!(
        "select id from agents where id = '{}' for share",
        scene.bot.id
    );
    let redeeming = world.database().unfinished(&held).await;
    let narrowing = tokio::spawn({
        let scene = scene.clone();
        async move {
            let nowhere = agents::Change {
                sites: Some(Vec::new()),
                ..Default::default()
            };
            let (by, agent) = (scene.ada.steward(), scene.bot.id.clone());
            agents::change(scene.world.engine(), &by, &agent, nowhere).await
        }
    });
    let ended = async {
        while !narrowing.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::select! {
        () = world.database().somebody_waits() => true,
        () = ended => false,
    };
    redeeming.commit().await;
    narrowing.await.unwrap().unwrap();
    assert!(
        waited,
        "the scope was narrowed beside a redeem that rests on it"
    );
    scene.redeem(&id).await.refused(Code::ApprovalVoided);
}

/// Redeems while a right is being taken away, which is done as soon as the redeem waits for it or has ended.
async fn redeem_while(scene: &Scene, id: &ApprovalId, taken: &str) -> Answer {
    let (bot, id) = (scene.clone(), id.clone());
    while_taken(scene, taken, async move { bot.redeem(&id).await }).await
}

/// A call that begins once `taken` was done and is not committed yet.
async fn while_taken(
    scene: &Scene,
    taken: &str,
    call: impl Future<Output = Answer> + Send + 'static,
) -> Answer {
    let database = scene.world.database();
    let taking = database.unfinished(taken).await;
    let redeeming = tokio::spawn(call);
    let ended = async {
        while !redeeming.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = database.somebody_waits() => {}
        () = ended => {}
    }
    taking.commit().await;
    redeeming.await.unwrap()
}

/// The same for a person's own client, whose key goes with the session.
async fn c39_a_session_that_is_being_ended_is_waited_for(world: World) {
    let scene = world.scene().await;
    let laptop = scene.ada.own_client("laptop").await;
    let asked = laptop.call("publish", scene.publish_args()).await;
    let id = asked.pending().approval_id;
    scene.ada.approve(&id).await.unwrap();
    let ended = format!("delete from sessions where id = '{}'", laptop.session);
    let arguments = scene.publish_args();
    let call = async move { laptop.call_with(&id, "publish", arguments).await };
    let answer = while_taken(&scene, &ended, call).await;
    answer.refused(Code::Unauthorized);
    assert_eq!(scene.versions().await, 0);
}

/// The first statement of a unit is the lock: a second unit on the same site, of whichever node, begins with the state that
/// the first one left, never with the one that both found.
async fn whoever_locks_second_sees_what_the_first_left(world: World) {
    let scene = world.scene().await;
    let there = world.second_engine().await;
    let (engine, site) = (world.engine().clone(), scene.site.clone());
    let (is_held, held) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let first = tokio::spawn(async move {
        let unit = engine.store().write(move |tx| {
            Box::pin(async move {
                let mut locked = LockedSite::expect(tx, &site).await?;
                let new = Content {
                    slug: "new".into(),
                    kind: "page".into(),
                    title: "New".into(),
                    ..Content::default()
                };
                sites::create_node(tx, &mut locked, &Author::system(), new).await?;
                is_held.send(()).unwrap();
                released.await.unwrap();
                Ok(locked.finish(tx, &Author::system()).await?.state_hash)
            })
        });
        unit.await.unwrap()
    });
    held.await.unwrap();
    let site = scene.site.clone();
    let second = tokio::spawn(async move {
        let unit = there.store().write(move |tx| {
            Box::pin(async move {
                let locked = LockedSite::expect(tx, &site).await?;
                Ok(locked.row().state_hash.clone())
            })
        });
        unit.await.unwrap()
    });
    let ended = async {
        while !second.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = world.database().somebody_waits() => {}
        () = ended => {}
    }
    release.send(()).unwrap();
    assert_eq!(second.await.unwrap(), first.await.unwrap());
}
