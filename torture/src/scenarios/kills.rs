//! R5 and R5b: the process ends without a warning, at any time under load and at every named point.

use crate::{
    checker::{self, Checker},
    clients::{Agent, Door, Person, word},
    context::Context,
    load::Load,
    node::{How, Node},
    report::{Report, spread},
    world::{Size, World},
};
use anyhow::{Context as _, Result};
use cloudhal_engine::clock::SystemClock;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// Killed this long after it was ready, at most.
const ALIVE_MS_MAX: u64 = 400;
const READY_WITHIN: Duration = Duration::from_secs(2);

/// R5. Eight agents, two of them on one site, and two people.
pub async fn under_load(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 7,
        agents_per_site: 1,
        pages: 6,
    };
    let mut world = World::new(context, size).await?;
    world.share_first_site().await?;
    let mut checker = Checker::new(&world);
    let mut rng = context.rng(5);
    let mut took = Vec::new();
    let mut load = None;
    for _ in 0..context.figure {
        let mut node = Node::spawn(context, &world, How::default())?;
        took.push(node.ready().await?);
        if load.is_none() {
            load = Some(Load::start(context, &world).await?);
        }
        checker::integrity(&world, &mut report).await?;
        checker.check(&world, &mut report).await?;
        sleep(Duration::from_millis(rng.u64(..=ALIVE_MS_MAX))).await;
        node.kill()?;
    }
    let mut node = Node::spawn(context, &world, How::default())?;
    took.push(node.ready().await?);
    let load = load.context("nothing ran")?;
    load.stop(&mut report).await?;
    checker::integrity(&world, &mut report).await?;
    checker.conclude(context, &world, &mut report).await?;
    node.stop().await?;
    let slowest = took.iter().max().copied().unwrap_or_default();
    report.fact("ready after", spread(took));
    report.expect(!context.long || slowest <= READY_WITHIN, || {
        format!("a start took {} ms", slowest.as_millis())
    });
    // Killing an idle server proves nothing.
    report.expect(checker.executions() >= context.figure / 4, || {
        format!("only {} executions were acknowledged", checker.executions())
    });
    Ok(report)
}

/// Where a process that redeems is ended, and how.
const REDEEM_POINTS: [&str; 5] = [
    "before-redeem",
    "after-redeem",
    "after-effect",
    "at-commit",
    "after-commit",
];
/// COMMIT and a migration take time: they are ended somewhere within it.
const COMMIT_MICROS_MAX: u64 = 2_500;
const MIGRATION_MICROS_MAX: u64 = 60_000;

/// R5b. The points in turn.
pub async fn at_points(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 4,
    };
    let world = World::new(context, size).await?;
    let mut checker = Checker::new(&world);
    let mut rng = context.rng(55);
    let node = Node::start(context, &world, How::default()).await?;
    let mut person = Person::sign_in(&world, 0).await?.traced(&world)?;
    let mut agent = Agent::new(&world, &world.agents[0], Door::Tools).traced(&world)?;
    node.stop().await?;
    let (mut ran_before, mut ran_after) = (0, 0);
    for round in 0..context.figure {
        match round % (REDEEM_POINTS.len() + 2) {
            5 => in_migration(context, &mut rng, &mut report).await?,
            6 => in_sweep(context, &world, &mut report).await?,
            at => {
                let mut point = REDEEM_POINTS[at].to_owned();
                if point == "at-commit" {
                    point = format!("{point}:{}", rng.u64(..COMMIT_MICROS_MAX));
                }
                let replayed = at_redeem(context, &world, &mut person, &mut agent, &point).await?;
                let must = match at {
                    0..=2 => Some(false),
                    4 => Some(true),
                    _ => None,
                };
                report.expect(must.is_none_or(|must| must == replayed), || {
                    format!("ended at {point}, the repeat was answered as replayed: {replayed}")
                });
                *(if replayed {
                    &mut ran_before
                } else {
                    &mut ran_after
                }) += 1;
                checker.check(&world, &mut report).await?;
                checker::integrity(&world, &mut report).await?;
            }
        }
    }
    checker.conclude(context, &world, &mut report).await?;
    report.fact("had happened before the end", ran_before);
    report.fact("ran at the repeat", ran_after);
    Ok(report)
}

/// Ends a process at a point of a redeem; whether the repeat found it done.
async fn at_redeem(
    context: &Context,
    world: &World,
    person: &mut Person,
    agent: &mut Agent,
    point: &str,
) -> Result<bool> {
    let how = How {
        failpoint: Some(point.to_owned()),
        ..How::default()
    };
    let mut node = Node::start(context, world, how).await?;
    agent.to(&node.target);
    person.to(&node.target);
    let asked = agent.ask().await?;
    let id = asked.body["approvalId"]
        .as_str()
        .with_context(|| format!("no request: {}", asked.body))?
        .to_owned();
    let decided = person.decide(&agent.key.site.clone(), &id, true).await?;
    anyhow::ensure!(decided.status == 200, "not approved: {}", decided.body);
    // No answer comes, or one that came just before the end.
    let _ = agent.redeem(&id).await;
    let status = node.ended().await?;
    anyhow::ensure!(!status.success(), "it ended in order at {point}");
    let node = Node::start(context, world, How::default()).await?;
    agent.to(&node.target);
    let got = agent.redeem(&id).await?;
    let replayed = match word(&got) {
        "ok" => false,
        "replayed" => true,
        other => anyhow::bail!(
            "after {point} the repeat was answered {other}: {}",
            got.body
        ),
    };
    node.kill()?;
    Ok(replayed)
}

/// Ends the first start on an empty database somewhere within its migrations.
async fn in_migration(
    context: &Context,
    rng: &mut fastrand::Rng,
    report: &mut Report,
) -> Result<()> {
    let empty = World::empty(context).await?;
    let how = How {
        failpoint: Some(format!("in-migration:{}", rng.u64(..MIGRATION_MICROS_MAX))),
        ..How::default()
    };
    let mut node = Node::spawn(context, &empty, how)?;
    node.ended().await?;
    let node = Node::start(context, &empty, How::default()).await?;
    node.stop().await?;
    checker::integrity(&empty, report).await?;
    if let Err(error) = crate::node::run(context, &empty, &["verify"]) {
        report.fault(format!("after a migration that was ended: {error:#}"));
    }
    Ok(())
}

/// Ends a process while it stores an expiry; the next one stores it, once.
async fn in_sweep(context: &Context, world: &World, report: &mut Report) -> Result<()> {
    let engine = world.engine(Arc::new(SystemClock)).await?;
    let agent = super::in_process::Caller::of(&engine, &world.agents[0]).await?;
    let id = agent.ask(&engine).await?;
    engine.store().close().await;
    let overdue = format!("update approvals set expires_at = 1 where id = '{id}'");
    world.database.execute(&overdue).await?;
    let how = How {
        failpoint: Some("in-sweep".into()),
        ..How::default()
    };
    let mut node = Node::spawn(context, world, how)?;
    node.ended().await?;
    let stored = format!("select status from approvals where id = '{id}'");
    let before = world.database.texts(&stored).await?;
    report.expect(before == ["pending"], || {
        format!("ended in a sweep, it is {before:?}")
    });
    let node = Node::start(context, world, How::default()).await?;
    let mut looks = 0;
    while world.database.texts(&stored).await? != ["expired"] {
        looks += 1;
        anyhow::ensure!(
            looks < 1_000,
            "the next sweep did not store the expiry of {id}"
        );
        sleep(Duration::from_millis(5)).await;
    }
    let entries = format!(
        "select count(*) from journal where kind = 'approval.expired' and approval_id = '{id}'"
    );
    let entries = world.database.number(&entries).await?;
    report.expect(entries == 1, || {
        format!("an expiry has {entries} journal entries")
    });
    node.kill()?;
    Ok(())
}
