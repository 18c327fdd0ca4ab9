//! R1 and R2: many redeem one approval at once, and it runs once.

use super::in_process::{Approver, Caller};
use crate::{
    checker::Checker,
    clients::{Agent, Door, Person, word},
    context::{Context, free_port},
    node::{How, Node},
    report::Report,
    world::{Size, World},
};
use anyhow::{Context as _, Result};
use cloudhal_domain::answer::Answer;
use cloudhal_engine::clock::SystemClock;
use std::sync::Arc;
use tokio::{sync::Barrier, task::JoinSet};

const IN_STORE: usize = 32;
const OVER_HTTP: usize = 16;
const ONE_SITE: Size = Size {
    sites: 1,
    agents_per_site: 1,
    pages: 4,
};

/// R1. One winner a round, and every loser gets the winner's result.
pub async fn in_the_store(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let world = World::new(context, ONE_SITE).await?;
    let engine = world.engine(Arc::new(SystemClock)).await?;
    let caller = Caller::of(&engine, &world.agents[0]).await?;
    let ada = Approver::of(&engine, "ada").await?;
    let (mut winners, mut losers, mut others) = (0, 0, 0);
    for round in 1..=context.figure {
        let id = caller.ask(&engine).await?;
        ada.approve(&engine, &caller.key.site, &id).await?;
        let barrier = Arc::new(Barrier::new(IN_STORE));
        let mut redeemers = JoinSet::new();
        for _ in 0..IN_STORE {
            let (engine, caller, id) = (engine.clone(), caller.clone(), id.clone());
            let barrier = barrier.clone();
            redeemers.spawn(async move {
                barrier.wait().await;
                caller.redeem(&engine, &id).await
            });
        }
        let mut fresh = 0;
        while let Some(answer) = redeemers.join_next().await {
            match answer? {
                Answer::Ok { replayed, data } if data["version"] == round => match replayed {
                    true => losers += 1,
                    false => fresh += 1,
                },
                other => {
                    others += 1;
                    report.fault(format!("round {round}: {other:?}"));
                }
            }
        }
        report.expect(fresh == 1, || format!("round {round}: {fresh} winners"));
        winners += fresh;
    }
    engine.store().close().await;
    report.fact("winners", winners);
    report.fact("typed losers", losers);
    report.fact("others", others);
    let mut checker = Checker::new(&world);
    checker.conclude(context, &world, &mut report).await?;
    Ok(report)
}

/// R2. Half of the clients at each of two processes on one database.
pub async fn over_http(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let world = World::new(context, ONE_SITE).await?;
    let first = Node::start(context, &world, How::default()).await?;
    let second = How {
        port: Some(free_port()?),
        ..How::default()
    };
    let second = Node::start(context, &world, second).await?;
    let mut person = Person::sign_in(&world, 0).await?;
    let mut agents = Vec::new();
    for at in 0..OVER_HTTP {
        let mut agent = Agent::new(&world, &world.agents[0], Door::Tools);
        agent.key.name = format!("bot-{at}");
        let mut agent = agent.traced(&world)?;
        agent.to(&[&first, &second][at % 2].target);
        agents.push(agent);
    }
    let mut winners = [0, 0];
    for round in 1..=context.figure as i64 {
        let asked = agents[0].ask().await?;
        let id = asked.body["approvalId"]
            .as_str()
            .context("a request")?
            .to_owned();
        person.to(&[&first, &second][round as usize % 2].target);
        let decided = person.decide(&world.sites[0], &id, true).await?;
        anyhow::ensure!(decided.status == 200, "not approved: {}", decided.body);
        let redeemers = agents.iter_mut().map(|agent| agent.redeem(&id));
        let answers = futures::future::join_all(redeemers).await;
        let mut fresh = 0;
        for (at, answer) in answers.into_iter().enumerate() {
            let got = answer?;
            match word(&got) {
                "ok" => {
                    fresh += 1;
                    winners[at % 2] += 1;
                }
                "replayed" => {}
                other => report.fault(format!("round {round}: {other}: {}", got.body)),
            }
            let version = got.body["data"]["version"].as_i64();
            report.expect(version == Some(round), || {
                format!("round {round}: version {version:?}")
            });
        }
        report.expect(fresh == 1, || format!("round {round}: {fresh} winners"));
    }
    report.fact("won at the first process", winners[0]);
    report.fact("at the second", winners[1]);
    let mut checker = Checker::new(&world);
    checker.conclude(context, &world, &mut report).await?;
    first.stop().await?;
    second.stop().await?;
    Ok(report)
}
