//! Units of work: all or nothing, beside each other, whatever happens to whoever asked.

use crate::support::*;
use cloudhal_engine::store::{Fail, Store, StoreError, approvals, events};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

on_both! {
    a_unit_that_refuses_leaves_nothing,
    a_unit_that_panics_is_answered_and_the_next_one_works,
    a_failing_unit_does_not_hurt_its_neighbours,
    a_statement_that_fails_fails_its_unit_alone,
    a_stream_of_refusals_does_not_hold_up_a_commit,
    dropped_futures_leave_no_lock_and_no_half,
    readers_and_writers_do_not_meet_a_busy_database,
    a_unit_that_begins_by_reading_has_the_write_lock_all_the_same,
    two_engines_on_one_database_write_side_by_side,
    a_database_of_a_newer_binary_is_refused_and_not_touched,
    a_second_start_keeps_everything,
    a_hint_is_told_only_for_what_was_committed,
}

/// A row that a unit writes and a test can count.
async fn write_row(engine: &Engine, kind: &'static str, then: Then) -> Result<(), Fail> {
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let event = cloudhal_engine::live::Event {
                id: cloudhal_engine::clock::fresh_id(),
                hint: cloudhal_domain::view::LiveHint {
                    kind: kind.into(),
                    site: SiteId::new("none"),
                    approval: None,
                },
            };
            events::insert(tx, &event, 0).await?;
            match then {
                Then::Keep => Ok(()),
                Then::Refuse => Err(Refusal::conflict("no").into()),
                Then::Panic => panic!("a bug in a unit"),
                Then::Break => {
                    // The same id again breaks the primary key.
                    events::insert(tx, &event, 0).await?;
                    Ok(())
                }
            }
        })
    });
    unit.await
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Keep,
    Refuse,
    Panic,
    Break,
}

fn kept(done: &Result<(), Fail>, then: Then) -> bool {
    match (done, then) {
        (Ok(()), Then::Keep) => true,
        (Err(Fail::Refused(_)), Then::Refuse) => false,
        (Err(Fail::Store(_)), Then::Panic | Then::Break) => false,
        other => panic!("{other:?}"),
    }
}

async fn rows(world: &World) -> i64 {
    world.number("select count(*) from events").await
}

async fn a_unit_that_refuses_leaves_nothing(world: World) {
    let done = write_row(world.engine(), "x", Then::Refuse).await;
    assert!(!kept(&done, Then::Refuse));
    assert_eq!(rows(&world).await, 0);
    write_row(world.engine(), "x", Then::Keep).await.unwrap();
    assert_eq!(rows(&world).await, 1);
}

async fn a_unit_that_panics_is_answered_and_the_next_one_works(world: World) {
    for n in 0..5 {
        let done = write_row(world.engine(), "x", Then::Panic).await;
        assert!(
            matches!(done, Err(Fail::Store(StoreError::Stopped))),
            "{done:?}"
        );
        assert_eq!(rows(&world).await, n);
        write_row(world.engine(), "x", Then::Keep).await.unwrap();
    }
}

/// On SQLite they queue up and share commits; which of them do is up to the scheduler, so there are many.
async fn a_failing_unit_does_not_hurt_its_neighbours(world: World) {
    let mut expect = 0;
    for round in 0..5 {
        let units = (0..60).map(|n| {
            let then = [
                Then::Keep,
                Then::Refuse,
                Then::Keep,
                Then::Panic,
                Then::Break,
            ][(n + round) % 5];
            let engine = world.engine().clone();
            tokio::spawn(async move { kept(&write_row(&engine, "x", then).await, then) })
        });
        for unit in futures::future::join_all(units).await {
            expect += i64::from(unit.unwrap());
        }
        assert_eq!(rows(&world).await, expect);
    }
    assert_eq!(expect, 24 * 5);
}

async fn a_statement_that_fails_fails_its_unit_alone(world: World) {
    for _ in 0..30 {
        let done = write_row(world.engine(), "x", Then::Break).await;
        assert!(!kept(&done, Then::Break));
    }
    // On PostgreSQL each left its connection behind; the pool has others.
    write_row(world.engine(), "x", Then::Keep).await.unwrap();
    assert_eq!(rows(&world).await, 1);
}

/// Every refusing unit puts its successor into the queue before it ends, so that the queue is never empty. A unit that is
/// good must be committed and answered all the same.
async fn a_stream_of_refusals_does_not_hold_up_a_commit(world: World) {
    const REFUSALS_MAX: usize = 2_000;
    let refusals = Arc::new(AtomicUsize::new(0));
    let (queued, is_queued) = tokio::sync::oneshot::channel();
    refuse_on_and_on(
        world.engine().clone(),
        refusals.clone(),
        REFUSALS_MAX,
        queued,
    );
    is_queued.await.unwrap();
    write_row(world.engine(), "good", Then::Keep).await.unwrap();
    let meanwhile = refusals.swap(REFUSALS_MAX, Ordering::SeqCst);
    assert!(meanwhile < REFUSALS_MAX, "it waited for all of them");
}

/// Polls the unit's future once, which queues it, and says so.
fn refuse_on_and_on(
    engine: Engine,
    refusals: Arc<AtomicUsize>,
    max: usize,
    queued: tokio::sync::oneshot::Sender<()>,
) {
    tokio::spawn(async move {
        let inner = engine.clone();
        let unit = engine.store().write(move |_| {
            Box::pin(async move {
                if refusals.fetch_add(1, Ordering::SeqCst) < max {
                    let (queued, is_queued) = tokio::sync::oneshot::channel();
                    refuse_on_and_on(inner, refusals, max, queued);
                    let _ = is_queued.await;
                }
                Err::<(), Fail>(Refusal::conflict("no").into())
            })
        });
        let mut unit = Box::pin(unit);
        let _ = futures::poll!(&mut unit);
        let _ = queued.send(());
        let _ = unit.await;
    });
}

/// C78.
async fn dropped_futures_leave_no_lock_and_no_half(world: World) {
    let scene = world.scene().await;
    for n in 0..5_000_usize {
        let body = format!("{n}");
        let mut call: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> =
            {
                let scene = scene.clone();
                match n % 3 {
                    0 => Box::pin(async move { drop(scene.edit(&body).await) }),
                    1 => Box::pin(async move {
                        drop(scene.bot.call("publish", scene.publish_args()).await)
                    }),
                    _ => Box::pin(async move {
                        drop(scene.ada.act("publish", scene.publish_args()).await);
                    }),
                }
            };
        // Dropped after as many steps as the number says, some before their unit was queued, some after.
        for _ in 0..n % 23 {
            if futures::poll!(&mut call).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(call);
    }
    assert_eq!(world.fault().await, None);
    scene.edit("The last word.").await;
    let id = scene.approved().await;
    let version = scene.redeem(&id).await.ok()["version"].as_i64().unwrap();
    assert_eq!(scene.published_rye(version).await, "The last word.");
}

/// C76.
async fn readers_and_writers_do_not_meet_a_busy_database(world: World) {
    let scene = world.scene().await;
    let mut tasks = Vec::new();
    for n in 0..16 {
        let writer = scene.clone();
        tasks.push(tokio::spawn(async move {
            for m in 0..40 {
                writer.edit(&format!("{n} {m}")).await;
            }
        }));
        let reader = scene.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..40 {
                let list = json!({"site": reader.site});
                reader.bot.call("node-list", list).await.ok();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// C76: what was read first could not be written to any more once somebody else had written; so nobody else may.
async fn a_unit_that_begins_by_reading_has_the_write_lock_all_the_same(world: World) {
    if world.database().kind() == Kind::Postgres {
        // Rows are locked there, one by one, by the statement that needs them.
        return;
    }
    let scene = world.scene().await;
    let (site, now, beside) = (scene.site.clone(), world.engine().now(), world.clone());
    let unit = world.engine().store().write(move |tx| {
        Box::pin(async move {
            let waiting = approvals::pending_of_site(tx, &site, now).await?;
            let write = "pragma busy_timeout = 0; update instance set epoch = epoch";
            let refused = beside.database().try_sql(write).await.unwrap_err();
            assert!(refused.contains("locked"), "{refused}");
            Ok(waiting)
        })
    });
    assert_eq!(unit.await.unwrap(), 0);
}

async fn two_engines_on_one_database_write_side_by_side(world: World) {
    let scene = world.scene().await;
    let there = scene.bot.at(&world.second_engine().await);
    let writers = [scene.bot.clone(), there]
        .into_iter()
        .enumerate()
        .map(|(n, bot)| {
            let scene = scene.clone();
            tokio::spawn(async move {
                for m in 0..20 {
                    let new =
                        json!({"site": scene.site, "title": "A", "slug": format!("n-{n}-{m}")});
                    bot.call("node-create", new).await.ok();
                }
            })
        });
    for writer in futures::future::join_all(writers).await {
        writer.unwrap();
    }
    assert_eq!(world.number("select node_count from sites").await, 44);
}

async fn a_database_of_a_newer_binary_is_refused_and_not_touched(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    world
        .sql("insert into _sqlx_migrations (version, description, success, checksum, execution_time) select 9999, 'later', success, checksum, 0 from _sqlx_migrations where version = 1")
        .await;
    let opened = world.engine_with(Settings::for_url(PUBLIC_URL), [7; 32]);
    let error = opened.await.err().unwrap().to_string();
    assert!(
        error.contains("newer Cloudhal") && error.contains("9999"),
        "{error}"
    );
    assert_eq!(scene.stored_status(&id).await, "pending");
    world
        .sql("delete from _sqlx_migrations where version = 9999")
        .await;
    world.second_engine().await;
}

async fn a_second_start_keeps_everything(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let engine = world.second_engine().await;
    assert_eq!(verify(&engine).await.unwrap().fault, None);
    assert_eq!(world.number("select epoch from instance").await, 1);
    assert_eq!(world.number("select count(*) from instance").await, 1);
    scene
        .bot
        .at(&engine)
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
}

async fn a_hint_is_told_only_for_what_was_committed(world: World) {
    let scene = world.scene().await;
    let mut hints = world.engine().live().subscribe();
    let before = rows(&world).await;
    let taken = json!({"site": scene.site, "title": "A", "slug": "visit"});
    scene
        .bot
        .call("node-create", taken)
        .await
        .refused(Code::Conflict);
    let gone = json!({"site": scene.site, "version": 7});
    refused(scene.ada.act("rollback", gone).await, Code::NotFound);
    assert!(hints.try_recv().is_err());
    assert_eq!(rows(&world).await, before);
}

/// C77.
#[tokio::test]
async fn the_sqlite_in_use_is_free_of_the_wal_reset_race() {
    let text = Store::sqlite_version().await.unwrap();
    let mut parts = text.split('.').map(|part| part.parse::<u32>().unwrap());
    let mut next = || parts.next().unwrap();
    assert!((next(), next(), next()) >= (3, 51, 3), "{text}");
}

/// The file of a newer binary is the same, to the byte, after a start was refused.
#[tokio::test]
async fn a_newer_file_is_the_same_to_the_byte() {
    let database = Database::fresh(Kind::Sqlite).await.unwrap();
    let open = || {
        Engine::open(
            Box::leak(database.url().into_boxed_str()),
            Settings::for_url(PUBLIC_URL),
            cloudhal_engine::secret::Secret::random(),
        )
    };
    drop(open().await.unwrap());
    database
        .try_sql("insert into _sqlx_migrations (version, description, success, checksum, execution_time) select 9999, 'later', success, checksum, 0 from _sqlx_migrations where version = 1; pragma wal_checkpoint(truncate)")
        .await
        .unwrap();
    let file = database.file().unwrap();
    let before = std::fs::read(&file).unwrap();
    assert!(open().await.is_err());
    assert!(before == std::fs::read(&file).unwrap());
}
