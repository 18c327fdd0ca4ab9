//! R10: clocks that jump forth and back, and differ between nodes.

use super::in_process::{Approver, Caller};
use crate::{
    clients::{Agent, Door, Person, word},
    context::Context,
    database::Kind,
    node::{How, Node},
    report::Report,
    world::{Size, World},
};
use anyhow::{Context as _, Result, ensure};
use cloudhal_domain::{
    answer::Answer, approval::Verdict, code::Code, id::ApprovalId, time::Timestamp,
};
use cloudhal_engine::{
    Engine, background,
    clock::{Clock, SystemClock, TestClock},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

const HOUR_MS: i64 = 3_600_000;
const TTL_MS: i64 = 24 * HOUR_MS;
const SKEW_MS: i64 = 5 * 60_000;
/// Nights in which clocks move, a leap day, a new year, the end of 32-bit seconds.
const DAYS_MS: [i64; 6] = [
    1_774_744_200_000,
    1_792_886_400_000,
    1_835_395_200_000,
    1_798_761_599_000,
    2_147_483_647_000,
    4_107_542_399_000,
];

/// What happens to the clock between approval and redeem.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// Forward by so much, and nobody looks meanwhile.
    Forward(i64),
    /// Past the deadline, where a sweeper stores the expiry, and back.
    ForwardSweptAndBack,
    /// Past the deadline, where a redeem is refused, and back.
    ForwardRefusedAndBack,
    /// Back by so much.
    Back(i64),
    /// Asked, decided and redeemed on nodes whose clocks differ.
    Skewed(i64, i64),
}

/// R10.
pub async fn clocks(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let clocks = [TestClock::at(DAYS_MS[0]), TestClock::at(DAYS_MS[0])];
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 2,
    };
    let world = World::with_clock(context, size, Arc::new(clocks[0].clone())).await?;
    let engines = [
        world.engine(Arc::new(clocks[0].clone())).await?,
        world.engine(Arc::new(clocks[1].clone())).await?,
    ];
    let nodes = Nodes {
        caller: Caller::of(&engines[0], &world.agents[0]).await?,
        ada: Approver::of(&engines[0], "ada").await?,
        engines,
        clocks,
    };
    let mut rng = context.rng(10);
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..context.figure {
        let start = rng.choice(DAYS_MS).unwrap_or_default() + rng.i64(-HOUR_MS..HOUR_MS);
        let case = match rng.u32(..5) {
            0 => Case::Forward(rng.i64(0..2 * TTL_MS)),
            1 => Case::ForwardSweptAndBack,
            2 => Case::ForwardRefusedAndBack,
            3 => Case::Back(rng.i64(0..25 * HOUR_MS)),
            _ => Case::Skewed(rng.i64(-SKEW_MS..SKEW_MS), rng.i64(-SKEW_MS..SKEW_MS)),
        };
        let (expected, got) = nodes.play(case, start).await?;
        report.expect(expected == got, || {
            format!("{case:?} from {start}: {got} instead of {expected}")
        });
        *outcomes.entry(got).or_default() += 1;
    }
    for engine in &nodes.engines {
        engine.store().close().await;
    }
    for (outcome, count) in outcomes {
        report.fact(&outcome, count);
    }
    if context.kind == Kind::Postgres {
        wrong_machines(context, &mut report).await?;
    }
    moved_process(context, &mut report).await?;
    Ok(report)
}

struct Nodes {
    engines: [Engine; 2],
    clocks: [TestClock; 2],
    caller: Caller,
    ada: Approver,
}

impl Nodes {
    fn set(&self, ms: i64) {
        for clock in &self.clocks {
            clock.set(ms);
        }
    }

    async fn approved(&self) -> Result<ApprovalId> {
        let id = self.caller.ask(&self.engines[0]).await?;
        let site = &self.caller.key.site;
        self.ada.approve(&self.engines[1], site, &id).await?;
        Ok(id)
    }

    /// The answer that is due, and the one that came.
    async fn play(&self, case: Case, start: i64) -> Result<(String, String)> {
        self.set(start);
        let expired = "approval_expired".to_owned();
        let ran = "ok".to_owned();
        let id = match case {
            Case::Skewed(first, second) => {
                self.clocks[0].set(start + first);
                self.clocks[1].set(start + second);
                self.approved().await?
            }
            _ => self.approved().await?,
        };
        let due = match case {
            Case::Forward(by) => {
                self.set(start + by);
                if by < TTL_MS { ran } else { expired }
            }
            Case::ForwardSweptAndBack => {
                self.set(start + 25 * HOUR_MS);
                background::sweep(&self.engines[1]).await?;
                self.set(start);
                expired
            }
            Case::ForwardRefusedAndBack => {
                self.set(start + 25 * HOUR_MS);
                let answer = said(&self.caller.redeem(&self.engines[0], &id).await);
                ensure!(answer == "approval_expired", "past its deadline: {answer}");
                // A request of the same caller is a write that meets it.
                let next = self.caller.ask(&self.engines[0]).await?;
                let site = &self.caller.key.site;
                self.ada
                    .decide(&self.engines[0], site, &next, Verdict::Deny)
                    .await?;
                self.set(start);
                expired
            }
            Case::Back(by) => {
                self.set(start - by);
                ran
            }
            Case::Skewed(..) => ran,
        };
        let got = said(&self.caller.redeem(&self.engines[0], &id).await);
        if got == "approval_expired" {
            // Stored for good, so that the next case begins with nothing open.
            self.set(start + 60 * HOUR_MS);
            background::sweep(&self.engines[0]).await?;
        }
        Ok((due, got))
    }
}

fn said(answer: &Answer) -> String {
    match answer {
        Answer::Ok { replayed: true, .. } => "replayed".into(),
        Answer::Ok { .. } => "ok".into(),
        Answer::ApprovalPending(_) => "approval_pending".into(),
        Answer::Error { error } if error.code == Code::ApprovalExpired => "approval_expired".into(),
        Answer::Error { error } => error.code.as_str().into(),
    }
}

/// A machine whose clock is wrong by so many milliseconds.
struct Wrong(AtomicI64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().ms() + self.0.load(Ordering::SeqCst))
    }
}

/// Nodes on one PostgreSQL whose machines are up to two days apart: the database's clock decides, so nothing ends early and
/// nothing comes back.
async fn wrong_machines(context: &Context, report: &mut Report) -> Result<()> {
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 2,
    };
    let world = World::new(context, size).await?;
    let machines: [Arc<Wrong>; 2] = std::array::from_fn(|_| Arc::new(Wrong(AtomicI64::new(0))));
    let mut rng = context.rng(110);
    for _ in 0..context.figure / 5 {
        for machine in &machines {
            let by = rng.i64(-25 * HOUR_MS..25 * HOUR_MS);
            machine.0.store(by, Ordering::SeqCst);
        }
        // Started anew, as a node with a wrong clock is: one that is jumped while it runs learns of it within a second.
        let engines = [
            world.engine(machines[0].clone()).await?,
            world.engine(machines[1].clone()).await?,
        ];
        let caller = Caller::of(&engines[0], &world.agents[0]).await?;
        let ada = Approver::of(&engines[0], "ada").await?;
        let id = caller.ask(&engines[0]).await?;
        ada.approve(&engines[1], &caller.key.site, &id).await?;
        let overdue = rng.bool();
        if overdue {
            // Its day went by, for the database.
            let sql = format!("update approvals set expires_at = 1 where id = '{id}'");
            world.database.execute(&sql).await?;
        }
        let got = said(&caller.redeem(&engines[rng.usize(..2)], &id).await);
        let due = if overdue { "approval_expired" } else { "ok" };
        report.expect(got == due, || {
            format!("between machines of other times: {got} instead of {due}")
        });
        background::sweep(&engines[1]).await?;
        for engine in &engines {
            engine.store().close().await;
        }
    }
    report.fact("cases between wrong machines", context.figure / 5);
    Ok(())
}

/// The same once through real processes: the host's clock jumps while they serve.
async fn moved_process(context: &Context, report: &mut Report) -> Result<()> {
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 2,
    };
    let world = World::new(context, size).await?;
    let clock = world.folder.join("clock");
    std::fs::write(&clock, "0")?;
    let how = How {
        clock: Some(clock.clone()),
        ..How::default()
    };
    let node = Node::start(context, &world, how).await?;
    let mut person = Person::sign_in(&world, 0).await?;
    let mut agent = Agent::new(&world, &world.agents[0], Door::Tools);
    let asked = agent.ask().await?;
    let id = asked.body["approvalId"]
        .as_str()
        .context("a request")?
        .to_owned();
    let decided = person.decide(&world.sites[0], &id, true).await?;
    ensure!(decided.status == 200, "not approved: {}", decided.body);
    std::fs::write(&clock, (25 * HOUR_MS).to_string())?;
    let past = agent.redeem(&id).await?;
    report.expect(word(&past) == "approval_expired", || {
        format!("25 h later a process answered {}", past.body)
    });
    report.fact("a process 25 h later", word(&past));
    node.stop().await
}
