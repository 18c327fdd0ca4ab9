//! R14: an agent that asks for ever more spends nobody else's attention and nobody else's time.

use crate::{
    checker::Checker,
    clients::{Agent, Door, Person, word},
    context::Context,
    node::{How, Node},
    report::{Report, spread},
    world::{Size, World},
};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};
use tokio::time::{MissedTickBehavior, interval, sleep};

const CALLS_PER_SECOND: u64 = 100;
const PENDING_MAX: i64 = 10;
const FILED_WITHIN: Duration = Duration::from_millis(200);
const PAGE_WITHIN: Duration = Duration::from_millis(300);
const CLOSED_ROWS: usize = 10_000;
/// In the short form, whose times are not judged.
const CLOSED_ROWS_SHORT: usize = 500;
const PAGES: usize = 120;

/// R14.
pub async fn flood(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 2,
        agents_per_site: 1,
        pages: PAGES,
    };
    let world = World::new(context, size).await?;
    let node = Node::start(context, &world, How::default()).await?;
    let mut person = Person::sign_in(&world, 0).await?;
    let mut other = Agent::new(&world, &world.agents[1], Door::Tools);
    let closed = if context.long {
        CLOSED_ROWS
    } else {
        CLOSED_ROWS_SHORT
    };
    history(&world, &mut other, closed).await?;
    let nodes = world
        .database
        .texts(&format!(
            "select id from nodes where site_id = '{}'",
            world.sites[0]
        ))
        .await?;
    let until = Instant::now() + Duration::from_secs(context.figure as u64);
    let flooding = flooder(&world, nodes, until);
    let working = bystander(&mut other, &mut person, until);
    let (flooded, worked) = tokio::join!(flooding, working);
    let (answers, (filed, pages)) = (flooded?, worked?);
    let pending = world
        .database
        .number(&format!(
            "select count(*) from approvals where status = 'pending' and site_id = '{}'",
            world.sites[0]
        ))
        .await?;
    report.expect(pending == PENDING_MAX, || {
        format!("{pending} requests wait")
    });
    for (word, count) in answers {
        report.fact(&word, count);
    }
    let p95 = |mut took: Vec<Duration>| {
        took.sort();
        took.get(took.len() * 95 / 100).copied().unwrap_or_default()
    };
    let slowest = filed.iter().max().copied().unwrap_or_default();
    report.expect(!context.long || slowest < FILED_WITHIN, || {
        format!("another agent's request took {} ms", slowest.as_millis())
    });
    let page = p95(pages.clone());
    report.expect(!context.long || page < PAGE_WITHIN, || {
        format!("95 % of the pages took up to {} ms", page.as_millis())
    });
    report.fact("another agent's request filed after", spread(filed));
    report.fact("the approvals page after", spread(pages));
    Checker::new(&world)
        .conclude(context, &world, &mut report)
        .await?;
    node.stop().await?;
    Ok(report)
}

/// Closed requests as years of work would leave them: copies of a real one.
async fn history(world: &World, agent: &mut Agent, closed: usize) -> Result<()> {
    let asked = agent.ask().await?;
    let id = asked.body["approvalId"]
        .as_str()
        .context("a request")?
        .to_owned();
    let edit = agent.edit("so that the first request is voided").await?;
    ensure!(word(&edit) == "ok", "an edit was answered {}", edit.body);
    let columns = "site_id, scope_kind, scope_id, tool, tool_version, arguments, args_hash, state_hash, state_rev, caller_kind, caller_id, caller_name, key_id, surface, conversation, reason, sentence, risk, card, seen_digest, epoch, status, requested_at, expires_at, changed_at, void_cause, receipt_id";
    let copy = format!(
        "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {closed})
         insert into approvals (id, {columns}) select 'copy-' || n, {columns} from approvals, numbers where approvals.id = '{id}'"
    );
    world.database.execute(&copy).await
}

async fn flooder(
    world: &World,
    nodes: Vec<String>,
    until: Instant,
) -> Result<BTreeMap<String, usize>> {
    let mut agent = Agent::new(world, &world.agents[0], Door::Tools);
    let mut tick = interval(Duration::from_micros(1_000_000 / CALLS_PER_SECOND));
    tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    let mut at = 0;
    while Instant::now() < until {
        tick.tick().await;
        let arguments = json!({"site": world.sites[0], "node": nodes[at % nodes.len()]});
        at += 1;
        let got = agent.call("delete", arguments, None).await?;
        let said = word(&got);
        ensure!(
            matches!(said, "approval_pending" | "too_many_pending"),
            "a flooder was answered {said}: {}",
            got.body
        );
        *answers.entry(said.to_owned()).or_default() += 1;
    }
    Ok(answers)
}

/// Asks anew again and again, and opens the page of approvals.
async fn bystander(
    agent: &mut Agent,
    person: &mut Person,
    until: Instant,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut filed, mut pages) = (Vec::new(), Vec::new());
    let mut round = 0;
    while Instant::now() < until {
        round += 1;
        agent.edit(&format!("bystander {round}")).await?;
        let since = Instant::now();
        let asked = agent.ask().await?;
        filed.push(since.elapsed());
        ensure!(
            word(&asked) == "approval_pending",
            "another agent was answered {}",
            asked.body
        );
        let since = Instant::now();
        let page = person.get("/approvals").await?;
        pages.push(since.elapsed());
        ensure!(page.status == 200, "the page was answered {}", page.status);
        sleep(Duration::from_millis(50)).await;
    }
    Ok((filed, pages))
}
