//! R18, as far as agents go: a thousand of them wait for one decision. What each costs while it waits, whether somebody else is
//! slowed, and when the last one knows.

use crate::{
    checker::Checker,
    clients::{Agent, Door, Person, word},
    context::Context,
    node::{How, Node},
    report::Report,
    world::{Size, World},
};
use anyhow::{Context as _, Result, ensure};
use std::time::{Duration, Instant};
use tokio::{task::JoinSet, time::sleep};

/// What one waiting agent may cost the server, its connection with it. The budget is 32 KiB for each of a thousand; fewer share
/// less of what is there anyway.
const BYTES_EACH_MAX: u64 = 48 * 1024;
const WAIT_SECONDS: u64 = 45;

/// R18, at `/mcp`, in both eras by turns.
pub async fn thousand(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 2,
        agents_per_site: 1,
        pages: 4,
    };
    let world = World::new(context, size).await?;
    let node = Node::start(context, &world, How::default()).await?;
    let mut person = Person::sign_in(&world, 0).await?;
    let mut asking = Agent::new(&world, &world.agents[0], Door::Mcp2025);
    let asked = asking.ask().await?;
    let approval = asked.body["approvalId"].as_str().context("approvalId")?;
    // What the first requests fill is not counted.
    for door in [Door::Mcp2025, Door::Mcp2026] {
        Agent::new(&world, &world.agents[0], door)
            .wait(approval, 0)
            .await?;
    }
    let memory = node.memory()?;
    let mut waiting: JoinSet<Result<Instant>> = JoinSet::new();
    for at in 0..context.figure {
        let door = [Door::Mcp2025, Door::Mcp2026][at % 2];
        let mut agent = Agent::new(&world, &world.agents[0], door);
        let approval = approval.to_owned();
        waiting.spawn(async move {
            let got = agent.wait(&approval, WAIT_SECONDS).await?;
            ensure!(got.body["data"]["status"] == "approved", "{}", got.body);
            Ok(Instant::now())
        });
    }
    while node.open_files()? < context.figure {
        ensure!(!waiting.is_empty(), "they are gone");
        sleep(Duration::from_millis(5)).await;
    }
    let each = settled(&node).await?.saturating_sub(memory) / context.figure as u64;
    report.expect(each < BYTES_EACH_MAX, || format!("each costs {each} bytes"));

    let mut other = Agent::new(&world, &world.agents[1], Door::Tools);
    let begun = Instant::now();
    let edited = other.edit("While a thousand wait.").await?;
    report.fact("somebody else's edit", format!("{:?}", begun.elapsed()));
    report.expect(word(&edited) == "ok", || edited.body.to_string());

    let decided = Instant::now();
    person.decide(&world.agents[0].site, approval, true).await?;
    let (mut told, mut last) = (0, Duration::ZERO);
    while let Some(ended) = waiting.join_next().await {
        match ended? {
            Ok(at) => {
                told += 1;
                last = last.max(at.duration_since(decided));
            }
            Err(error) => report.fault(format!("a waiting agent was told: {error:#}")),
        }
    }
    report.fact("told of the decision", told);
    report.fact("the last of them after", format!("{last:?}"));
    report.fact("each cost", format!("{each} bytes"));
    report.expect(word(&asking.redeem(approval).await?) == "ok", || {
        "the approved call did not run".into()
    });
    Checker::new(&world)
        .conclude(context, &world, &mut report)
        .await?;
    report.expect(!node.log().contains("panicked"), || {
        "the server panicked".into()
    });
    node.stop().await?;
    Ok(report)
}

/// Resident memory once it has stopped growing.
async fn settled(node: &Node) -> Result<u64> {
    let mut before = node.memory()?;
    loop {
        sleep(Duration::from_millis(300)).await;
        let now = node.memory()?;
        if now <= before {
            return Ok(now);
        }
        before = now;
    }
}
