//! Effects outside the database. A row is written by the transaction that causes the effect ([`put`]), so that both are there
//! or neither; any node claims what is due for the time of a lease, carries it out, and says so ([`deliver_due`]).
//!
//! At least once: whoever dies after the claim has used up a try, and when the lease ends another node takes the row. The
//! row's id is the same in every try, so that a receiver can tell a repeat. What fails is tried again, later each time, and
//! given up after [`limits::WEBHOOK_TRIES_MAX`] tries where people see it: in the journal, and in the list of deliveries.

use crate::{
    Engine,
    authority::Author,
    background::Failures,
    clock::{fresh_id, random},
    failpoint::{self, Point},
    journal::{self, Entry},
    sites::LockedSite,
    store::{
        Fail, Tx, journal as journal_sql,
        outbox::{self as sql, NewRow, OutboxRow},
    },
    webhooks,
};
use cloudhal_domain::{
    code::Refusal,
    id::{ApprovalId, SiteId},
    limits,
    time::Timestamp,
};
use serde_json::json;
use std::time::Duration;

/// Longer than any try takes, its bookkeeping included.
const LEASE: Duration = Duration::from_secs(30);
/// Receivers that are served side by side, so that a slow one costs the others the time of one try and no more.
const TARGETS: i64 = 32;
/// Rows that one claim takes for a receiver; they are carried out side by side.
const BATCH: i64 = 8;
const FIRST_STEP: Duration = Duration::from_secs(5);
const STEP_MAX: Duration = Duration::from_secs(6 * 3600);
/// Due for so long and taken by nobody: no node delivers any more, and old news must not arrive when one does again.
const UNATTENDED: Duration = Duration::from_secs(24 * 3600);
/// For how long people can look up what became of a delivery, and ask for it again.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Why a try failed, in words for people that hold nothing of the other side's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub why: String,
    /// Trying again would not help.
    pub last: bool,
}

impl Failure {
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            last: false,
        }
    }

    pub fn last(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            last: true,
        }
    }
}

/// What is to be done outside.
pub(crate) struct Errand<'e> {
    pub kind: &'e str,
    pub site: &'e str,
    /// Whom it goes to.
    pub target: &'e str,
    pub topic: &'e str,
    pub approval: Option<&'e ApprovalId>,
    pub body: &'e str,
}

/// Writes an errand into the transaction that causes it; its id.
pub(crate) async fn put(tx: &mut Tx, errand: Errand<'_>, now: Timestamp) -> Result<String, Fail> {
    let id = fresh_id();
    let row = NewRow {
        id: &id,
        kind: errand.kind,
        site: errand.site,
        target: errand.target,
        topic: errand.topic,
        approval: errand.approval,
        body: errand.body,
    };
    sql::insert(tx, row, now).await?;
    Ok(id)
}

/// The wait after a try: four times as long each time, up to six hours, of which chance takes off up to a half, so that
/// many that failed together do not come back together.
pub fn backoff(tries: i64, chance: u32) -> Duration {
    let before = u32::try_from(tries.saturating_sub(1).max(0)).unwrap_or(u32::MAX);
    let step = FIRST_STEP
        .saturating_mul(4_u32.saturating_pow(before))
        .min(STEP_MAX);
    step - (step / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
}

/// Claims what is due, carries it out, and keeps how each ended; how many there were. A test calls it with its own clock.
pub async fn deliver_due(engine: &Engine) -> Result<usize, Refusal> {
    if engine.settings().courier.is_none() {
        return Ok(0);
    }
    let targets = sql::due_targets(engine.store().read(), engine.now(), TARGETS).await?;
    let served = targets.into_iter().map(|target| serve(engine, target));
    // One receiver's failure must not cut off another's try in the middle, nor the round that comes after it.
    Ok(futures::future::join_all(served).await.into_iter().sum())
}

/// One claim for one receiver. Where our own machinery fails nothing is claimed, and the next poll looks again.
async fn serve(engine: &Engine, target: String) -> usize {
    let of = target.clone();
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = tx.now().await?;
            let holder = fresh_id();
            Ok(sql::claim(tx, &target, &holder, now.plus(LEASE), now, BATCH).await?)
        })
    });
    let rows = match unit.await {
        Ok(rows) => rows,
        Err(error) => {
            tracing::warn!(target = %of, %error, "claiming deliveries");
            return 0;
        }
    };
    let count = rows.len();
    if count > 0 {
        failpoint::reach(Point::AfterClaim);
    }
    futures::future::join_all(rows.into_iter().map(|row| carry_out(engine, row))).await;
    count
}

/// A failure of our own machinery leaves the row claimed: it is taken again when the lease ends.
async fn carry_out(engine: &Engine, row: OutboxRow) {
    let id = row.id.clone();
    if let Err(refusal) = try_once(engine, row).await {
        tracing::warn!(delivery = %id, %refusal, "outbox");
    }
}

async fn try_once(engine: &Engine, row: OutboxRow) -> Result<(), Refusal> {
    let outcome = if row.tries > limits::WEBHOOK_TRIES_MAX {
        Err(Failure::last("the server stopped during the last try"))
    } else {
        let outcome = webhooks::deliver(engine, &row).await?;
        failpoint::reach(Point::AfterSend);
        outcome
    };
    match outcome {
        Ok(()) => {
            let unit = engine.store().write(move |tx| {
                Box::pin(async move {
                    let now = tx.now().await?;
                    Ok(sql::delivered(tx, &row.id, now).await?)
                })
            });
            Ok(unit.await.map(drop)?)
        }
        Err(failure) if failure.last || row.tries >= limits::WEBHOOK_TRIES_MAX => {
            give_up(engine, row, failure.why).await
        }
        Err(failure) => {
            let wait = backoff(row.tries, u32::from_le_bytes(random()));
            let unit = engine.store().write(move |tx| {
                Box::pin(async move {
                    let due = tx.now().await?.plus(wait);
                    Ok(sql::put_off(tx, &row, due, &failure.why).await?)
                })
            });
            Ok(unit.await.map(drop)?)
        }
    }
}

/// Ends the tries, and leaves word where people look.
async fn give_up(engine: &Engine, row: OutboxRow, why: String) -> Result<(), Refusal> {
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let locked = LockedSite::lock(tx, &SiteId::new(&row.site_id)).await?;
            let now = match &locked {
                Some(site) => site.now(),
                None => {
                    journal_sql::lock_workspace(tx).await?;
                    tx.now().await?
                }
            };
            if !sql::give_up(tx, &row, &why, now).await? {
                return Ok(());
            }
            let approval = row.approval_id.as_deref().map(ApprovalId::new);
            let entry = Entry {
                kind: "webhook.gave_up",
                actor: &Author::system(),
                approval: approval.as_ref(),
                body: json!({"webhook": row.target, "delivery": row.id, "event": row.topic, "site": row.site_id,
                    "tries": row.tries.min(limits::WEBHOOK_TRIES_MAX), "error": why}),
            };
            // A deleted site has no lock to take any more; its last words go where the workspace's are.
            match locked {
                Some(site) => journal::site(tx, site.id().as_str(), now, entry).await,
                None => journal::workspace(tx, now, entry).await,
            }
        })
    });
    Ok(unit.await?)
}

/// Gives up what nobody takes, and throws away what is over for long.
pub(crate) async fn sweep(engine: &Engine) -> Result<(), Refusal> {
    let (now, mut failures) = (engine.now(), Failures::default());
    for row in sql::unattended(engine.store().read(), now.minus(UNATTENDED), 1000).await? {
        let why = "nobody delivered it for a day; outgoing webhooks may be switched off";
        let of = row.id.clone();
        let given_up = give_up(engine, row, why.into()).await;
        failures.note("a delivery that nobody takes", &of, given_up);
    }
    let unit = engine
        .store()
        .write(move |tx| Box::pin(async move { Ok(sql::sweep(tx, now.minus(KEPT)).await?) }));
    failures.note("old deliveries", "", unit.await);
    failures.end()
}

/// After a restore: whatever waited in the copy is not delivered again by itself. A person may ask for one of them.
pub(crate) async fn restored(tx: &mut Tx, now: Timestamp) -> Result<u64, Fail> {
    let why = "not delivered: the database was restored from a backup, and this had waited in it";
    Ok(sql::give_up_restored(tx, why, now).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_chance_takes_off_at_most_half() {
        let longest: Vec<u64> = (1..=10).map(|n| backoff(n, 0).as_secs()).collect();
        assert_eq!(
            longest,
            [5, 20, 80, 320, 1280, 5120, 20480, 21600, 21600, 21600]
        );
        for tries in 1..=10 {
            let (most, least) = (backoff(tries, 0), backoff(tries, u32::MAX));
            assert_eq!(least, most / 2, "{tries}");
            let between = backoff(tries, u32::MAX / 3);
            assert!(least < between && between < most, "{tries}");
        }
        assert_eq!(backoff(i64::MAX, 0), STEP_MAX);
    }
}
