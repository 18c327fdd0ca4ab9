//! Says what was lost, doubled or wrong, from what the clients wrote down and what the database holds. It trusts neither the
//! product's answers about itself nor its constraints: an effect is a row of `versions` that names its approval, which nothing
//! keeps from being there twice, and the journal and the receipts have to tell the same story.

use crate::{
    clients::word,
    database::{Database, Kind, Sql, number, text},
    report::Report,
    trace::{Attempt, Exchange, Reader},
    world::World,
};
use anyhow::{Context as _, Result};
use std::collections::{HashMap, HashSet};

/// What clients were told, and so may rely on.
#[derive(Default)]
struct Promises {
    asked: HashSet<String>,
    /// Approval and the version that its execution made.
    executed: HashMap<String, i64>,
    /// Approvals whose execution somebody was told to be the first answer to.
    fresh: HashSet<String>,
    decided: Vec<(String, bool)>,
    /// Node, revision, text.
    edited: Vec<(String, i64, String)>,
    /// Of `edited`, those looked for already.
    found: usize,
}

pub struct Checker {
    reader: Reader,
    promises: Promises,
    lost: usize,
    doubled: usize,
    wrong: usize,
    answers: HashMap<String, usize>,
    unanswered: usize,
}

/// The rows that a judgement needs, of one moment.
struct Rows {
    status: HashMap<String, String>,
    versions: HashMap<String, Vec<i64>>,
    receipts: HashMap<String, Vec<String>>,
    journaled: HashMap<String, i64>,
    verdicts: HashMap<String, Vec<String>>,
}

impl Checker {
    pub fn new(world: &World) -> Self {
        Self {
            reader: Reader::new(&world.traces()),
            promises: Promises::default(),
            lost: 0,
            doubled: 0,
            wrong: 0,
            answers: HashMap::new(),
            unanswered: 0,
        }
    }

    /// Compares everything that was answered so far with the rows as they are now.
    pub async fn check(&mut self, world: &World, report: &mut Report) -> Result<()> {
        for exchange in self.reader.ended()? {
            self.hear(exchange, report);
        }
        let mut sql = world.database.open().await?;
        // What was answered before this moment must be in it.
        sql.execute(match world.database {
            Database::Sqlite(_) => "begin",
            Database::Postgres { .. } => "begin isolation level repeatable read",
        })
        .await?;
        let rows = Rows::read(&mut sql).await?;
        self.judge_approvals(&rows, report);
        self.judge_promises(&rows, report);
        self.look_for_edits(&mut sql, report).await?;
        sql.execute("rollback").await?;
        sql.close().await
    }

    /// The last check: every edit is looked for again, and the product's own verifier is asked.
    pub async fn conclude(
        &mut self,
        context: &crate::context::Context,
        world: &World,
        report: &mut Report,
    ) -> Result<()> {
        self.promises.found = 0;
        self.check(world, report).await?;
        if let Err(error) = crate::node::run(context, world, &["verify"]) {
            report.fault(format!("verify: {error:#}"));
        }
        report.fact("executions acknowledged", self.promises.executed.len());
        report.fact("lost", self.lost);
        report.fact("doubled", self.doubled);
        report.fact("wrong", self.wrong);
        let mut answers: Vec<_> = self.answers.iter().collect();
        answers.sort();
        let answers: Vec<String> = answers.iter().map(|(w, n)| format!("{n} {w}")).collect();
        report.fact("redeem answers", answers.join(", "));
        report.fact("without an answer", self.unanswered);
        Ok(())
    }

    pub fn executions(&self) -> usize {
        self.promises.executed.len()
    }

    pub fn unanswered(&self) -> usize {
        self.unanswered
    }

    fn hear(&mut self, exchange: Exchange, report: &mut Report) {
        let Some(got) = exchange.got else {
            self.unanswered += 1;
            return;
        };
        let said = word(&got).to_owned();
        if got.status >= 500 && said != "unavailable" {
            self.wrong += 1;
            report.fault(format!(
                "{} got {}: {}",
                exchange.client, got.status, got.body
            ));
        }
        match exchange.attempt {
            Attempt::Ask { .. } => {
                if let Some(id) = got.body["approvalId"].as_str() {
                    self.promises.asked.insert(id.to_owned());
                }
            }
            Attempt::Redeem { approval } => {
                *self.answers.entry(said.clone()).or_default() += 1;
                self.hear_redeem(
                    approval,
                    &said,
                    got.body["data"]["version"].as_i64(),
                    report,
                );
            }
            Attempt::Decide { approval, approve } => {
                if got.status == 200 {
                    self.promises.decided.push((approval, approve));
                }
            }
            Attempt::Edit { node, text } => {
                if let (200, Some(rev)) = (got.status, got.body["data"]["rev"].as_i64()) {
                    self.promises.edited.push((node, rev, text));
                }
            }
        }
    }

    fn hear_redeem(&mut self, id: String, said: &str, version: Option<i64>, report: &mut Report) {
        let before = self.promises.executed.get(&id).copied();
        match (said, version, before) {
            ("ok" | "replayed", None, _) => {
                self.wrong += 1;
                report.fault(format!("{id} ran and no version was named"));
            }
            ("ok" | "replayed", Some(version), Some(before)) if version != before => {
                self.doubled += 1;
                report.fault(format!(
                    "{id} was answered with version {before} and with {version}"
                ));
            }
            ("ok" | "replayed" | "unavailable", _, _) | (_, _, None) => {}
            (other, _, Some(_)) => {
                self.wrong += 1;
                report.fault(format!("{id} ran, and a repeat was answered {other}"));
            }
        }
        if let ("ok" | "replayed", Some(version)) = (said, version) {
            if said == "ok" && !self.promises.fresh.insert(id.clone()) {
                self.doubled += 1;
                report.fault(format!("{id} was freshly run twice"));
            }
            self.promises.executed.insert(id, version);
        }
    }

    /// Every record by itself: spent with one effect, or unspent with none.
    fn judge_approvals(&mut self, rows: &Rows, report: &mut Report) {
        for (id, status) in &rows.status {
            let effects = rows.versions.get(id).map_or(0, Vec::len);
            let receipts = rows.receipts.get(id).map_or(&[][..], Vec::as_slice);
            let journaled = rows.journaled.get(id).copied().unwrap_or(0);
            let due = match (status.as_str(), receipts) {
                ("redeemed", [one]) if one == "failed" => (0, 1, 1),
                ("redeemed", _) => (1, 1, 1),
                _ => (0, 0, 0),
            };
            let are = (effects, receipts.len(), journaled);
            if are != due {
                let count = if effects > due.0 || receipts.len() > due.1 || journaled > due.2 {
                    &mut self.doubled
                } else {
                    &mut self.lost
                };
                *count += 1;
                report.fault(format!(
                    "{id} is {status} with (effects, receipts, journal entries) {are:?} instead of {due:?}"
                ));
            }
        }
        for id in rows
            .versions
            .keys()
            .filter(|id| !rows.status.contains_key(*id))
        {
            self.wrong += 1;
            report.fault(format!("a version names approval {id}, which is not there"));
        }
    }

    fn judge_promises(&mut self, rows: &Rows, report: &mut Report) {
        for id in &self.promises.asked {
            if !rows.status.contains_key(id) {
                self.lost += 1;
                report.fault(format!("request {id} was acknowledged and is not there"));
            }
        }
        for (id, version) in &self.promises.executed {
            let made = rows.versions.get(id).map_or(&[][..], Vec::as_slice);
            if made != [*version] {
                self.lost += 1;
                report.fault(format!(
                    "execution of {id} was acknowledged as version {version}; there are {made:?}"
                ));
            }
        }
        for (id, approve) in &self.promises.decided {
            let status = rows.status.get(id).map_or("", String::as_str);
            let verdicts = rows.verdicts.get(id).map_or(&[][..], Vec::as_slice);
            let (verdict, stays) = if *approve {
                ("approve", !matches!(status, "" | "pending" | "denied"))
            } else {
                ("deny", status == "denied")
            };
            if verdicts != [verdict] || !stays {
                self.lost += 1;
                report.fault(format!(
                    "{id} was answered as decided ({verdict}); it is {status} with {verdicts:?}"
                ));
            }
        }
    }

    async fn look_for_edits(&mut self, sql: &mut Sql, report: &mut Report) -> Result<()> {
        let unseen = &self.promises.edited[self.promises.found..];
        for (node, rev, text) in unseen {
            let query = format!(
                "select count(*) from node_revisions where node_id = '{node}' and rev = {rev} and body = '{text}'"
            );
            if sql.number(&query).await? != 1 {
                self.lost += 1;
                report.fault(format!(
                    "an acknowledged edit is not there: {node}, rev {rev}, “{text}”"
                ));
            }
        }
        self.promises.found = self.promises.edited.len();
        Ok(())
    }
}

impl Rows {
    async fn read(sql: &mut Sql) -> Result<Self> {
        let status = pairs(sql, "select id, status from approvals").await?;
        let verdicts = pairs(
            sql,
            "select approval_id, verdict from decisions order by at",
        )
        .await?;
        let receipts = pairs(sql, "select approval_id, outcome from receipts").await?;
        let versions = sql
            .rows(
                "select approval_id, version from versions where approval_id is not null",
                |row| Ok((text(row, 0)?, number(row, 1)?)),
            )
            .await?;
        let journaled = sql
            .rows(
                "select approval_id, count(*) from journal where kind = 'approval.redeemed' group by approval_id",
                |row| Ok((text(row, 0)?, number(row, 1)?)),
            )
            .await?;
        Ok(Self {
            status: status.into_iter().collect(),
            versions: grouped(versions),
            receipts: grouped(receipts),
            journaled: journaled.into_iter().collect(),
            verdicts: grouped(verdicts),
        })
    }
}

async fn pairs(sql: &mut Sql, query: &str) -> Result<Vec<(String, String)>> {
    sql.rows(query, |row| Ok((text(row, 0)?, text(row, 1)?)))
        .await
}

fn grouped<V>(pairs: Vec<(String, V)>) -> HashMap<String, Vec<V>> {
    let mut groups: HashMap<String, Vec<V>> = HashMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}

/// SQLite's own judgement of its file.
pub async fn integrity(world: &World, report: &mut Report) -> Result<()> {
    if world.kind() != Kind::Sqlite {
        return Ok(());
    }
    let said = world.database.texts("pragma integrity_check").await?;
    let first = said.first().context("integrity_check says nothing")?;
    report.expect(first == "ok", || format!("integrity_check: {first}"));
    Ok(())
}
