//! R15: a node stands still in the middle of a redeem for longer than its peers wait, and then goes on.

use crate::{
    checker::Checker,
    clients::{Agent, Door, Person, word},
    context::{Context, free_port},
    node::{How, Node},
    report::{Report, spread},
    world::{Size, World},
};
use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tokio::time::sleep;

const STANDS_STILL: Duration = Duration::from_secs(10);
/// Pairs of nodes at a time, each pair on a database of its own; who stands still costs nothing.
const PAIRS: usize = 4;
const POINTS: [&str; 5] = [
    "before-redeem",
    "after-redeem",
    "after-effect",
    "at-commit",
    "after-commit",
];

struct Ended {
    point: &'static str,
    /// Until the second node had an answer that stands.
    took_over: Duration,
    /// What the stopped node said when it went on.
    late: String,
}

/// R15.
pub async fn stopped_node(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let pairs = PAIRS.min(context.figure);
    let mut worlds = Vec::new();
    for _ in 0..pairs {
        let size = Size {
            sites: 1,
            agents_per_site: 1,
            pages: 4,
        };
        worlds.push(World::new(context, size).await?);
    }
    let runs = worlds.iter().enumerate().map(|(pair, world)| {
        let rounds = (pair..context.figure).step_by(pairs);
        run_pair(context, world, rounds.collect())
    });
    let mut ended = Vec::new();
    for run in futures::future::join_all(runs).await {
        ended.extend(run?);
    }
    for point in POINTS {
        let late: Vec<&str> = ended
            .iter()
            .filter(|one| one.point == point)
            .map(|one| one.late.as_str())
            .collect();
        if let Some(first) = late.first() {
            let alike = late.iter().filter(|word| *word == first).count();
            report.fact(point, format!("{} times, {alike} then {first}", late.len()));
        }
    }
    let took_over = ended.iter().map(|one| one.took_over).collect();
    report.fact("the second node answered after", spread(took_over));
    for world in &worlds {
        let mut judged = Report::default();
        Checker::new(world)
            .conclude(context, world, &mut judged)
            .await?;
        report.expect(judged.passed(), || format!("{judged:?}"));
    }
    report.fact("lost, doubled or wrong", usize::from(!report.passed()));
    Ok(report)
}

async fn run_pair(context: &Context, world: &World, rounds: Vec<usize>) -> Result<Vec<Ended>> {
    let second = How {
        port: Some(free_port()?),
        ..How::default()
    };
    let second = Node::start(context, world, second).await?;
    let first = Node::start(context, world, How::default()).await?;
    let mut person = Person::sign_in(world, 0).await?.traced(world)?;
    person.to(&second.target);
    first.stop().await?;
    let mut there = Agent::new(world, &world.agents[0], Door::Tools);
    there.key.name = "at-the-second".into();
    let mut there = there.traced(world)?;
    there.to(&second.target);
    let mut ended = Vec::new();
    for round in rounds {
        let point = POINTS[round % POINTS.len()];
        ended.push(one_round(context, world, &mut person, &mut there, point, round).await?);
    }
    second.stop().await?;
    Ok(ended)
}

async fn one_round(
    context: &Context,
    world: &World,
    person: &mut Person,
    there: &mut Agent,
    point: &'static str,
    round: usize,
) -> Result<Ended> {
    let how = How {
        failpoint: Some(format!("{point}:stop")),
        ..How::default()
    };
    let first = Node::start(context, world, how).await?;
    let asked = there.ask().await?;
    let id = asked.body["approvalId"]
        .as_str()
        .context("a request")?
        .to_owned();
    let decided = person.decide(&there.key.site.clone(), &id, true).await?;
    ensure!(decided.status == 200, "not approved: {}", decided.body);
    let mut here = Agent::new(world, &world.agents[0], Door::Tools);
    here.key.name = format!("at-the-first-{round}");
    let mut here = here.traced(world)?;
    let redeeming = async { here.redeem(&id).await };
    let meanwhile = async {
        first.stopped().await?;
        let since = Instant::now();
        let took_over = until_answered(there, &id).await?;
        sleep(STANDS_STILL.saturating_sub(since.elapsed())).await;
        first.signal(Signal::CONT)?;
        anyhow::Ok(took_over)
    };
    let (late, took_over) = tokio::join!(redeeming, meanwhile);
    let (late, took_over) = (late?, took_over?);
    let word_of_late = word(&late).to_owned();
    if !matches!(word_of_late.as_str(), "ok" | "replayed" | "unavailable") {
        bail!(
            "stopped at {point}, the first node said {}: {}",
            late.status,
            late.body
        );
    }
    let again = here.redeem(&id).await?;
    ensure!(
        word(&again) == "replayed",
        "stopped at {point}, a repeat there was answered {}",
        again.body
    );
    first.kill()?;
    Ok(Ended {
        point,
        took_over,
        late: word_of_late,
    })
}

/// The second node's client does what `unavailable` tells it to.
async fn until_answered(there: &mut Agent, id: &str) -> Result<Duration> {
    let since = Instant::now();
    loop {
        let got = there.redeem(id).await?;
        match word(&got) {
            "ok" | "replayed" => return Ok(since.elapsed()),
            "unavailable" => sleep(Duration::from_millis(100)).await,
            other => bail!("the second node said {other}: {}", got.body),
        }
        if since.elapsed() > Duration::from_secs(60) {
            bail!("the second node could not take over within a minute");
        }
    }
}
