//! R3 and R4: what runs is what was approved, whatever editors do meanwhile; and one decision stands.

use super::in_process::{Approver, Caller};
use crate::{
    checker::Checker,
    context::Context,
    database::text,
    report::Report,
    world::{Size, World},
};
use anyhow::Result;
use cloudhal_domain::{
    answer::Answer,
    approval::Verdict,
    code::{Code, Refusal},
    id::ApprovalId,
};
use cloudhal_engine::{
    Engine, background,
    clock::{Clock as _, SystemClock, TestClock},
};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::task::JoinSet;

const EDITORS: usize = 4;
/// Each outcome of a race has to be seen in this share of the rounds, or it was no race.
const SHARE_MIN: f64 = 0.10;
/// Fewer rounds than this say nothing about shares.
const ROUNDS_THAT_TELL: usize = 50;
/// One round in this many is an edit and its revert.
const REVERT_ONE_IN: usize = 10;
const SITE: Size = Size {
    sites: 1,
    agents_per_site: EDITORS + 1,
    pages: EDITORS + 1,
};

/// R3, and R3b in between.
pub async fn editor(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let world = World::new(context, SITE).await?;
    let engine = world.engine(Arc::new(SystemClock)).await?;
    let mut race = EditorRace::new(&engine, &world, context).await?;
    for round in 0..context.figure {
        if round % REVERT_ONE_IN == 0 {
            race.edit_and_revert(round, &mut report).await?;
        }
        race.round(round, &mut report).await?;
    }
    let (ran, refused, reverted) = (race.ran, race.refused, race.reverted);
    drop(race);
    engine.store().close().await;
    judge_published(&world, &mut report).await?;
    report.fact("ran", ran);
    report.fact("voided", refused);
    report.fact("edits with their revert, voided", reverted);
    let least = ran.min(refused) as f64 / context.figure as f64;
    report.expect(
        context.figure < ROUNDS_THAT_TELL || least >= SHARE_MIN,
        || {
            format!(
                "one outcome came in only {:.1} % of the rounds: no race",
                least * 100.0
            )
        },
    );
    Checker::new(&world)
        .conclude(context, &world, &mut report)
        .await?;
    Ok(report)
}

struct EditorRace {
    engine: Engine,
    redeemer: Caller,
    editors: Vec<Caller>,
    ada: Approver,
    rng: fastrand::Rng,
    /// How late the redeemer starts, at most; follows the outcomes, so that both go on coming.
    late_micros: u64,
    ran: usize,
    refused: usize,
    reverted: usize,
}

impl EditorRace {
    async fn new(engine: &Engine, world: &World, context: &Context) -> Result<Self> {
        let mut callers = Vec::new();
        for key in &world.agents {
            callers.push(Caller::of(engine, key).await?);
        }
        Ok(Self {
            engine: engine.clone(),
            redeemer: callers.remove(0),
            editors: callers,
            ada: Approver::of(engine, "ada").await?,
            rng: context.rng(3),
            late_micros: 2_000,
            ran: 0,
            refused: 0,
            reverted: 0,
        })
    }

    async fn approved(&self, text: &str) -> Result<ApprovalId> {
        self.redeemer.edit(&self.engine, text).await?;
        let id = self.redeemer.ask(&self.engine).await?;
        let site = &self.redeemer.key.site;
        self.ada.approve(&self.engine, site, &id).await?;
        Ok(id)
    }

    async fn round(&mut self, round: usize, report: &mut Report) -> Result<()> {
        let id = self.approved(&format!("approved {round}")).await?;
        let mut tasks = JoinSet::new();
        for (at, editor) in self.editors.iter().enumerate() {
            let late = Duration::from_micros(self.rng.u64(..8_000));
            let (editor, engine) = (editor.clone(), self.engine.clone());
            tasks.spawn(async move {
                tokio::time::sleep(late).await;
                editor
                    .edit(&engine, &format!("autosave {round} {at}"))
                    .await?;
                anyhow::Ok(None)
            });
        }
        let late = Duration::from_micros(self.rng.u64(..=self.late_micros));
        let (redeemer, engine) = (self.redeemer.clone(), self.engine.clone());
        tasks.spawn(async move {
            tokio::time::sleep(late).await;
            Ok(Some(redeemer.redeem(&engine, &id).await))
        });
        while let Some(ended) = tasks.join_next().await {
            match ended?? {
                None => {}
                Some(Answer::Ok {
                    replayed: false, ..
                }) => {
                    self.ran += 1;
                    self.late_micros = (self.late_micros + self.late_micros / 16 + 1).min(20_000);
                }
                Some(Answer::Error { error }) if error.code == Code::ApprovalVoided => {
                    self.refused += 1;
                    self.late_micros -= self.late_micros / 16;
                }
                Some(other) => report.fault(format!("round {round}: {other:?}")),
            }
        }
        Ok(())
    }

    /// R3b. The content is as it was approved, and yet it is another state.
    async fn edit_and_revert(&mut self, round: usize, report: &mut Report) -> Result<()> {
        let approved = format!("kept {round}");
        let id = self.approved(&approved).await?;
        self.redeemer.edit(&self.engine, "in between").await?;
        self.redeemer.edit(&self.engine, &approved).await?;
        match self.redeemer.redeem(&self.engine, &id).await {
            Answer::Error { error } if error.code == Code::ApprovalVoided => self.reverted += 1,
            other => report.fault(format!("an edit and its revert: {other:?}")),
        }
        Ok(())
    }
}

/// What every version published is the state that its approval was bound to, by counter, by digest and by the text itself.
async fn judge_published(world: &World, report: &mut Report) -> Result<()> {
    let mut sql = world.database.open().await?;
    let other_state = sql
        .number(
            "select count(*) from versions v join approvals a on a.id = v.approval_id where v.state_rev <> a.state_rev + 1",
        )
        .await?;
    report.expect(other_state == 0, || {
        format!("{other_state} versions are of another state than was approved")
    });
    let journaled = sql
        .rows(
            "select j.body, a.state_hash from journal j join approvals a on a.id = j.approval_id where j.kind = 'approval.redeemed'",
            |row| Ok((text(row, 0)?, text(row, 1)?)),
        )
        .await?;
    for (body, hash) in journaled {
        report.expect(body.contains(&format!("\"stateHash\":\"{hash}\"")), || {
            format!("redeemed at another state than {hash}: {body}")
        });
    }
    // Page by page: what visitors of a version get is the newest text that the approved state had, and none that came later.
    let shown = "from versions v join approvals a on a.id = v.approval_id
         join published p on p.site_id = v.site_id and p.from_version <= v.version and (p.to_version is null or p.to_version > v.version)
         join node_revisions r on r.node_id = p.node_id and";
    let newer = format!("select count(*) {shown} r.rev = p.rev where r.state_rev > a.state_rev");
    let newer = sql.number(&newer).await?;
    let older = format!("select count(*) {shown} r.rev > p.rev where r.state_rev <= a.state_rev");
    let older = sql.number(&older).await?;
    sql.close().await?;
    report.expect(newer == 0 && older == 0, || {
        format!(
            "{newer} texts were published that are newer than approved, and {older} that are older"
        )
    });
    Ok(())
}

/// R4. On a clock that stands still until the sweeper's turn makes some requests overdue.
pub async fn decision(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let clock = TestClock::at(SystemClock.now().ms());
    let world = World::with_clock(context, SITE, Arc::new(clock.clone())).await?;
    let engine = world.engine(Arc::new(clock.clone())).await?;
    let asker = Caller::of(&engine, &world.agents[0]).await?;
    let editor = Caller::of(&engine, &world.agents[1]).await?;
    let people = [
        Approver::of(&engine, "ada").await?,
        Approver::of(&engine, "grace").await?,
    ];
    let mut rng = context.rng(4);
    let mut stood: BTreeMap<String, usize> = BTreeMap::new();
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..context.figure {
        // A decision takes some milliseconds; the editor and the sweeper come in a part of the rounds only, or nothing else would win.
        let race = DecisionRace {
            engine: engine.clone(),
            id: asker.ask(&engine).await?,
            site: asker.key.site.clone(),
            edit: rng.u32(..3) == 0,
            overdue: rng.u32(..6) == 0,
            late: std::array::from_fn(|_| Duration::from_micros(rng.u64(..3_000))),
        };
        let (ok, refusals) = race.run(&people, &editor, &clock, round).await?;
        for refusal in refusals {
            *answers.entry(refusal.code.as_str().to_owned()).or_default() += 1;
            judge_loser(&refusal, &mut report);
        }
        let status = race.judge(&world, ok, &mut report).await?;
        if status == "approved" {
            let withdrawn = json!({"approvalId": race.id});
            asker
                .call(&engine, "approvals-cancel", withdrawn, None)
                .await;
        }
        *stood.entry(status).or_default() += 1;
    }
    engine.store().close().await;
    let list = |counts: &BTreeMap<String, usize>| {
        let parts: Vec<String> = counts.iter().map(|(w, n)| format!("{n} {w}")).collect();
        parts.join(", ")
    };
    report.fact("stood", list(&stood));
    report.fact("losers", list(&answers));
    Checker::new(&world)
        .conclude(context, &world, &mut report)
        .await?;
    Ok(report)
}

struct DecisionRace {
    engine: Engine,
    id: ApprovalId,
    site: String,
    edit: bool,
    overdue: bool,
    late: [Duration; 6],
}

enum Ended {
    Decided(Verdict, Result<(), Refusal>),
    Other,
}

impl DecisionRace {
    /// How many decisions were taken, and what the others were told.
    async fn run(
        &self,
        people: &[Approver; 2],
        editor: &Caller,
        clock: &TestClock,
        round: usize,
    ) -> Result<(Vec<Verdict>, Vec<Refusal>)> {
        let mut tasks: JoinSet<Result<Ended>> = JoinSet::new();
        for at in 0..4 {
            let verdict = if at % 2 == 0 {
                Verdict::Approve
            } else {
                Verdict::Deny
            };
            // Both people click both buttons.
            let (person, engine) = (people[at / 2].clone(), self.engine.clone());
            let (id, site, late) = (self.id.clone(), self.site.clone(), self.late[at]);
            tasks.spawn(async move {
                tokio::time::sleep(late).await;
                let decided = person.decide(&engine, &site, &id, verdict).await;
                Ok(Ended::Decided(verdict, decided.map(drop)))
            });
        }
        let (engine, clock, late, overdue) = (
            self.engine.clone(),
            clock.clone(),
            self.late[4],
            self.overdue,
        );
        tasks.spawn(async move {
            tokio::time::sleep(late).await;
            if overdue {
                clock.advance(Duration::from_secs(25 * 3600));
            }
            background::sweep(&engine).await?;
            Ok(Ended::Other)
        });
        if self.edit {
            let (engine, editor, late) = (self.engine.clone(), editor.clone(), self.late[5]);
            tasks.spawn(async move {
                tokio::time::sleep(late).await;
                editor.edit(&engine, &format!("meanwhile {round}")).await?;
                Ok(Ended::Other)
            });
        }
        let (mut taken, mut refused) = (Vec::new(), Vec::new());
        while let Some(ended) = tasks.join_next().await {
            match ended?? {
                Ended::Decided(verdict, Ok(())) => taken.push(verdict),
                Ended::Decided(_, Err(refusal)) => refused.push(refusal),
                Ended::Other => {}
            }
        }
        Ok((taken, refused))
    }

    /// One thing stands, the record and the journal say the same, and then the request is closed for the next round.
    async fn judge(
        &self,
        world: &World,
        taken: Vec<Verdict>,
        report: &mut Report,
    ) -> Result<String> {
        let id = &self.id;
        let mut sql = world.database.open().await?;
        let row = format!("select status from approvals where id = '{id}'");
        let status = sql.rows(&row, |row| text(row, 0)).await?.remove(0);
        let decided = format!(
            "select count(*) from journal where approval_id = '{id}' and kind = 'approval.decided'"
        );
        let decided = sql.number(&decided).await?;
        let rows = sql
            .rows(
                &format!("select verdict from decisions where approval_id = '{id}'"),
                |row| text(row, 0),
            )
            .await?;
        let ends = "('approval.voided', 'approval.expired', 'approval.cancelled')";
        let ended =
            format!("select count(*) from journal where approval_id = '{id}' and kind in {ends}");
        let ended = sql.number(&ended).await?;
        sql.close().await?;
        let counts = (taken.len() as i64, decided, rows.len() as i64);
        let fits = match status.as_str() {
            "approved" => counts == (1, 1, 1) && rows == ["approve"] && ended == 0,
            "denied" => counts == (1, 1, 1) && rows == ["deny"] && ended == 0,
            // Either before any decision, or after an approval.
            "voided" | "expired" => {
                ended == 1 && (counts == (0, 0, 0) || (counts == (1, 1, 1) && rows == ["approve"]))
            }
            _ => false,
        };
        report.expect(fits, || {
            format!("{id} is {status}; answered as taken, journaled, stored: {counts:?}, {rows:?}; {ended} other ends")
        });
        Ok(status)
    }
}

/// A loser is told who was first, or what ended the request.
fn judge_loser(refusal: &Refusal, report: &mut Report) {
    let told = match refusal.code {
        Code::AlreadyDecided => {
            refusal.details.get("by").is_some() && refusal.details.get("at").is_some()
        }
        Code::ApprovalVoided | Code::ApprovalExpired => true,
        _ => false,
    };
    report.expect(told, || format!("a loser was told {refusal:?}"));
}
