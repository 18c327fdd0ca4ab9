//! R7 and R8: PostgreSQL goes away and comes back, and the answer to a COMMIT gets lost.

use crate::{
    checker::Checker,
    clients::{Agent, Door, Person, word},
    context::Context,
    database::Sql,
    load::Load,
    node::{How, Node},
    proxy::{Cut, Proxy},
    report::{Report, spread},
    world::{Size, World},
};
use anyhow::{Context as _, Result, bail, ensure};
use std::time::{Duration, Instant};
use tokio::time::sleep;

const BACK_WITHIN: Duration = Duration::from_secs(5);
/// Longer than that is no outage but an end.
const BACK_AT_ALL: Duration = Duration::from_secs(40);
const STORM: usize = 20;

/// R7. A crash of the whole server and a storm that ends every connection, in turn, under load.
pub async fn restarts(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 7,
        agents_per_site: 1,
        pages: 6,
    };
    let mut world = World::new(context, size).await?;
    world.share_first_site().await?;
    let node = Node::start(context, &world, How::default()).await?;
    let mut probe = Agent::new(&world, &world.agents[1], Door::Tools);
    let load = Load::start(context, &world).await?;
    let mut checker = Checker::new(&world);
    let mut rng = context.rng(7);
    let mut back = Vec::new();
    for outage in 0..context.figure {
        sleep(Duration::from_millis(rng.u64(100..400))).await;
        if outage % 2 == 0 {
            context.with_postgres(|postgres| postgres.crash_and_restart())?;
        } else {
            storm(context, &mut rng).await?;
        }
        let since = Instant::now();
        while !writes(&mut probe, outage).await? {
            if since.elapsed() > BACK_AT_ALL {
                bail!("no write went through within {} s", BACK_AT_ALL.as_secs());
            }
            sleep(Duration::from_millis(10)).await;
        }
        back.push(since.elapsed());
        checker.check(&world, &mut report).await?;
    }
    load.stop(&mut report).await?;
    checker.conclude(context, &world, &mut report).await?;
    let slowest = back.iter().max().copied().unwrap_or_default();
    report.fact("writes again after", spread(back));
    report.expect(slowest <= BACK_WITHIN, || {
        format!(
            "it took {} ms until writes went through again",
            slowest.as_millis()
        )
    });
    report.expect(checker.unanswered() == 0, || {
        format!(
            "{} calls got no answer; each should have been told `unavailable`",
            checker.unanswered()
        )
    });
    report.expect(!node.log().contains("panicked"), || {
        "the server panicked".into()
    });
    node.stop().await?;
    Ok(report)
}

async fn writes(probe: &mut Agent, outage: usize) -> Result<bool> {
    let got = probe.edit(&format!("after outage {outage}")).await?;
    match word(&got) {
        "ok" => Ok(true),
        "unavailable" if got.body["error"]["retryable"] == true => Ok(false),
        other => bail!(
            "during an outage an edit was answered {other}: {}",
            got.body
        ),
    }
}

/// Ends every connection but our own, again and again.
async fn storm(context: &Context, rng: &mut fastrand::Rng) -> Result<()> {
    let mut sql = Sql::open(&format!("{}/postgres", context.postgres_server()?)).await?;
    for _ in 0..STORM {
        sql.number("select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'")
            .await?;
        sleep(Duration::from_millis(rng.u64(..20))).await;
    }
    sql.close().await
}

/// R8. The wire is cut before, at and after the COMMIT of a redeem, in turn.
pub async fn lost_commit(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 4,
    };
    let world = World::new(context, size).await?;
    let url = world.database.url();
    let (start, rest) = url.split_once('@').context("an address of ours")?;
    let (server, name) = rest.split_once('/').context("an address of ours")?;
    let proxy = Proxy::start(server.to_owned()).await?;
    let how = How {
        database_url: Some(format!("{start}@127.0.0.1:{}/{name}", proxy.port)),
        ..How::default()
    };
    let node = Node::start(context, &world, how).await?;
    let mut person = Person::sign_in(&world, 0).await?.traced(&world)?;
    let mut agent = Agent::new(&world, &world.agents[0], Door::Tools).traced(&world)?;
    let (mut stored, mut fresh) = (0, 0);
    for round in 0..context.figure {
        let cut = [Cut::AfterAnswer, Cut::AtOnce, Cut::Before][round % 3];
        let asked = agent.ask().await?;
        let id = asked.body["approvalId"]
            .as_str()
            .context("a request")?
            .to_owned();
        let decided = person.decide(&agent.key.site.clone(), &id, true).await?;
        ensure!(decided.status == 200, "not approved: {}", decided.body);
        proxy.cut_next(cut);
        let got = agent.redeem(&id).await?;
        ensure!(proxy.cuts() == round + 1, "the COMMIT of {id} was not seen");
        let retryable = got.body["error"]["retryable"] == true;
        report.expect(word(&got) == "unavailable" && retryable, || {
            format!(
                "{cut:?}: a lost COMMIT was answered {}: {}",
                got.status, got.body
            )
        });
        let claims = got.body["error"]["message"].as_str().unwrap_or_default();
        report.expect(!claims.contains("Nothing was changed"), || {
            format!("{cut:?}: the answer claims to know: {claims}")
        });
        let again = agent.redeem(&id).await?;
        let (word, must) = (
            word(&again),
            match cut {
                Cut::AfterAnswer => &["replayed"][..],
                Cut::Before => &["ok"],
                Cut::AtOnce => &["ok", "replayed"],
            },
        );
        report.expect(must.contains(&word), || {
            format!("{cut:?}: the repeat was answered {word}: {}", again.body)
        });
        *(if word == "replayed" {
            &mut stored
        } else {
            &mut fresh
        }) += 1;
    }
    report.fact("stored results", stored);
    report.fact("ran at the repeat", fresh);
    Checker::new(&world)
        .conclude(context, &world, &mut report)
        .await?;
    node.stop().await?;
    Ok(report)
}
