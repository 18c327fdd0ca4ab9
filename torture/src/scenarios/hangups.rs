//! R6: the client resets its connection while its redeem runs.

use crate::{
    checker::Checker,
    clients::{Agent, Door, Person, word},
    context::Context,
    node::{How, Node},
    report::Report,
    world::{Size, World},
};
use anyhow::{Context as _, Result, bail, ensure};
use std::time::Duration;
use tokio::task::JoinSet;

const AGENTS: usize = 6;
/// A redeem takes some milliseconds; half of the resets fall within them, the others anywhere up to 50 ms.
const SOON_MICROS: u64 = 8_000;
const LATE_MICROS: u64 = 50_000;

/// R6. At all three doors at once.
pub async fn hangups(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: AGENTS,
        agents_per_site: 1,
        pages: 4,
    };
    let world = World::new(context, size).await?;
    let node = Node::start(context, &world, How::default()).await?;
    let person = Person::sign_in(&world, 0).await?;
    let mut clients: JoinSet<Result<[usize; 2]>> = JoinSet::new();
    for (at, key) in world.agents.iter().enumerate() {
        let agent = Agent::new(&world, key, Door::ALL[at % Door::ALL.len()]).traced(&world)?;
        let person = person.window(world.target());
        let rounds = (context.figure + at) / AGENTS;
        clients.spawn(hang_up(agent, person, rounds, context.rng(60 + at as u64)));
    }
    let mut totals = [0, 0];
    while let Some(ended) = clients.join_next().await {
        let [done, undone] = ended??;
        totals[0] += done;
        totals[1] += undone;
    }
    report.fact("had run when asked again", totals[0]);
    report.fact("ran only then", totals[1]);
    Checker::new(&world)
        .conclude(context, &world, &mut report)
        .await?;
    report.expect(!node.log().contains("panicked"), || {
        "the server panicked".into()
    });
    node.stop().await?;
    Ok(report)
}

async fn hang_up(
    mut agent: Agent,
    mut person: Person,
    rounds: usize,
    mut rng: fastrand::Rng,
) -> Result<[usize; 2]> {
    let mut outcomes = [0, 0];
    for _ in 0..rounds {
        let asked = agent.ask().await?;
        let id = asked.body["approvalId"]
            .as_str()
            .context("a request")?
            .to_owned();
        let decided = person.decide(&agent.key.site.clone(), &id, true).await?;
        ensure!(decided.status == 200, "not approved: {}", decided.body);
        let within = if rng.bool() { SOON_MICROS } else { LATE_MICROS };
        let after = Duration::from_micros(rng.u64(..within));
        agent.redeem_and_hang_up(&id, after).await?;
        let got = agent.redeem(&id).await?;
        match word(&got) {
            "replayed" => outcomes[0] += 1,
            "ok" => outcomes[1] += 1,
            other => bail!(
                "after a hang-up the repeat was answered {other}: {}",
                got.body
            ),
        }
        let again = agent.redeem(&id).await?;
        ensure!(
            word(&again) == "replayed" && again.body["data"] == got.body["data"],
            "a further repeat was answered {}",
            again.body
        );
    }
    Ok(outcomes)
}
