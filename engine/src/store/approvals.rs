//! SQL for approvals, in the order of their life: request, decide, redeem, void, expire, cancel, read.
//!
//! Every step is one statement with the whole guard in its WHERE; the row count is the verdict and a later read only explains.

mod lists;
pub use lists::*;

use super::{StoreError, Tx, error::known};
use cloudhal_domain::{
    approval::{
        Approval, DecidedBy, Decision, Outcome, Receipt, State, Status, Verdict, Via, VoidCause,
    },
    card::seen_digest,
    digest::{self, Digest},
    id::{ApprovalId, PersonId, SiteId},
    time::Timestamp,
    tool::{CallerKind, Surface},
};
use sqlx::{Any, AnyPool, Executor, Row as _};

/// Who called and how: what an approval is bound to beside the call itself.
#[derive(Clone, Copy, Debug)]
pub struct CallerKey<'c> {
    pub kind: CallerKind,
    pub id: &'c str,
    pub surface: Surface,
}

/// Everything that makes two calls the same one.
#[derive(Clone, Copy, Debug)]
pub struct CallKey<'c> {
    pub caller: CallerKey<'c>,
    pub site: &'c SiteId,
    pub tool: &'c str,
    pub tool_version: &'c str,
    pub args_hash: &'c Digest,
    pub state_hash: &'c str,
}

/// What an answer to a waiting call needs of its record.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct OpenRow {
    pub id: String,
    pub status: String,
    pub expires_at: i64,
    pub sentence: String,
}

pub struct NewApproval<'a> {
    pub id: &'a ApprovalId,
    pub call: CallKey<'a>,
    pub arguments: &'a str,
    pub state_rev: i64,
    pub caller_name: &'a str,
    pub key_id: Option<&'a str>,
    pub conversation: Option<&'a str>,
    pub reason: Option<&'a str>,
    pub sentence: &'a str,
    pub risk: &'a str,
    pub card: &'a str,
    pub seen_digest: &'a Digest,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The request that already waits for this very call, if any.
pub async fn open_for(
    db: impl Executor<'_, Database = Any>,
    call: CallKey<'_>,
    now: Timestamp,
) -> Result<Option<OpenRow>, StoreError> {
    let sql = "select id, status, expires_at, sentence from approvals
        where scope_kind = 'site' and scope_id = $1 and site_id = $1 and caller_kind = $2 and caller_id = $3 and surface = $4 and tool = $5
          and tool_version = $6 and args_hash = $7 and state_hash = $8 and status in ('pending', 'approved') and expires_at > $9
          and epoch = (select epoch from instance)";
    let row = sqlx::query_as(sql)
        .bind(call.site.as_str())
        .bind(call.caller.kind.as_str())
        .bind(call.caller.id)
        .bind(call.caller.surface.as_str())
        .bind(call.tool)
        .bind(call.tool_version)
        .bind(call.args_hash.as_str())
        .bind(call.state_hash)
        .bind(now.ms())
        .fetch_optional(db)
        .await?;
    Ok(row)
}

/// Takes the agent's row; sites are locked before agents, always.
pub async fn lock_agent(tx: &mut Tx, agent: &str) -> Result<(), StoreError> {
    sqlx::query("update agents set name = name where id = $1")
        .bind(agent)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Takes the caller's row for the count of what it has pending, before anything only holds it: two requests of one caller on
/// two sites would wait for each other.
pub async fn lock_caller(tx: &mut Tx, caller: CallerKey<'_>) -> Result<(), StoreError> {
    match caller.kind {
        CallerKind::Agent => lock_agent(tx, caller.id).await,
        CallerKind::Person => {
            sqlx::query("update people set name = name where id = $1")
                .bind(caller.id)
                .execute(tx.sql())
                .await?;
            Ok(())
        }
    }
}

pub async fn pending_of_caller(
    tx: &mut Tx,
    caller: CallerKey<'_>,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let sql = "select count(*) from approvals where caller_kind = $1 and caller_id = $2 and status = 'pending' and expires_at > $3";
    let row = sqlx::query(sql)
        .bind(caller.kind.as_str())
        .bind(caller.id)
        .bind(now.ms())
        .fetch_one(tx.sql())
        .await?;
    Ok(row.try_get(0)?)
}

pub async fn pending_of_site(
    tx: &mut Tx,
    site: &SiteId,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let sql = "select count(*) from approvals where site_id = $1 and status = 'pending' and expires_at > $2";
    let row = sqlx::query(sql)
        .bind(site.as_str())
        .bind(now.ms())
        .fetch_one(tx.sql())
        .await?;
    Ok(row.try_get(0)?)
}

/// Files a request; returns false where the index says that one waits already.
pub async fn insert(tx: &mut Tx, new: NewApproval<'_>) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "insert into approvals (id, site_id, scope_kind, scope_id, tool, tool_version, arguments, args_hash, state_hash, state_rev, caller_kind, caller_id, caller_name,
            key_id, surface, conversation, reason, sentence, risk, card, seen_digest, epoch, status, requested_at, expires_at, changed_at, void_cause, receipt_id)
         values ($1, $2, 'site', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, (select epoch from instance), 'pending', $20, $21,
            null, null, null)
         on conflict do nothing",
    )
    .bind(new.id.as_str())
    .bind(new.call.site.as_str())
    .bind(new.call.tool)
    .bind(new.call.tool_version)
    .bind(new.arguments)
    .bind(new.call.args_hash.as_str())
    .bind(new.call.state_hash)
    .bind(new.state_rev)
    .bind(new.call.caller.kind.as_str())
    .bind(new.call.caller.id)
    .bind(new.caller_name)
    .bind(new.key_id)
    .bind(new.call.caller.surface.as_str())
    .bind(new.conversation)
    .bind(new.reason)
    .bind(new.sentence)
    .bind(new.risk)
    .bind(new.card)
    .bind(new.seen_digest.as_str())
    .bind(new.requested_at.ms())
    .bind(new.expires_at.ms())
    .execute(tx.sql())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// One terminal decision: only while it waits, only for what was seen, only on its own site, only in time.
pub async fn decide(
    tx: &mut Tx,
    site: &SiteId,
    id: &ApprovalId,
    seen: &Digest,
    becomes: Status,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let changed_at = (becomes != Status::Pending).then(|| now.ms());
    let done = sqlx::query(
        "update approvals set status = $1, changed_at = $6
         where id = $3 and site_id = $4 and status = 'pending' and seen_digest = $5 and expires_at > $2 and epoch = (select epoch from instance)",
    )
    .bind(becomes.as_str())
    .bind(now.ms())
    .bind(id.as_str())
    .bind(site.as_str())
    .bind(seen.as_str())
    .bind(changed_at)
    .execute(tx.sql())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A decision and its signature, as stored.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct DecisionRow {
    pub id: String,
    pub approval_id: String,
    pub person_id: String,
    pub person_name: String,
    pub verdict: String,
    pub via: String,
    pub seen_digest: String,
    pub reason: Option<String>,
    pub at: i64,
    pub signature: String,
}

pub async fn insert_decision(tx: &mut Tx, decision: &DecisionRow) -> Result<(), StoreError> {
    sqlx::query("insert into decisions (id, approval_id, person_id, person_name, verdict, via, seen_digest, reason, at, signature) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
        .bind(&decision.id)
        .bind(&decision.approval_id)
        .bind(&decision.person_id)
        .bind(&decision.person_name)
        .bind(&decision.verdict)
        .bind(&decision.via)
        .bind(&decision.seen_digest)
        .bind(decision.reason.as_deref())
        .bind(decision.at)
        .bind(&decision.signature)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// The only place where an approval is spent; the row count is the verdict.
pub async fn redeem(
    tx: &mut Tx,
    id: &ApprovalId,
    call: CallKey<'_>,
    receipt: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update approvals set status = 'redeemed', changed_at = $1, receipt_id = $2
        where id = $3 and status = 'approved' and tool = $4 and tool_version = $5 and args_hash = $6 and caller_kind = $7 and caller_id = $8 and surface = $9
          and site_id = $10 and scope_kind = 'site' and scope_id = $10 and state_hash = $11 and epoch = (select epoch from instance) and expires_at > $1";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(receipt)
        .bind(id.as_str())
        .bind(call.tool)
        .bind(call.tool_version)
        .bind(call.args_hash.as_str())
        .bind(call.caller.kind.as_str())
        .bind(call.caller.id)
        .bind(call.caller.surface.as_str())
        .bind(call.site.as_str())
        .bind(call.state_hash)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn insert_receipt(
    tx: &mut Tx,
    id: &str,
    approval: &ApprovalId,
    outcome: Outcome,
    result: Option<&str>,
    error: Option<&str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("insert into receipts (id, approval_id, outcome, result, error, at) values ($1, $2, $3, $4, $5, $6)")
        .bind(id)
        .bind(approval.as_str())
        .bind(outcome.as_str())
        .bind(result)
        .bind(error)
        .bind(at.ms())
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Every open request bound to the state that has just moved.
pub async fn void_open(
    tx: &mut Tx,
    site: &str,
    cause: VoidCause,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let sql = "update approvals set status = 'voided', changed_at = $1, void_cause = $2
        where site_id = $3 and scope_kind = 'site' and scope_id = $3 and status in ('pending', 'approved') and expires_at > $1 returning id";
    ids(sqlx::query(sql)
        .bind(now.ms())
        .bind(cause.as_str())
        .bind(site)
        .fetch_all(tx.sql())
        .await?)
}

/// One open request that no longer holds for a reason of its own.
pub async fn void_one(
    tx: &mut Tx,
    id: &ApprovalId,
    cause: VoidCause,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update approvals set status = 'voided', changed_at = $1, void_cause = $2 where id = $3 and status in ('pending', 'approved')";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(cause.as_str())
        .bind(id.as_str())
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Stores what readers compute already, so that a clock that goes back revives nothing.
pub async fn expire_site(
    tx: &mut Tx,
    site: &str,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let sql = "update approvals set status = 'expired', changed_at = $1 where site_id = $2 and status in ('pending', 'approved') and expires_at <= $1 returning id";
    ids(sqlx::query(sql)
        .bind(now.ms())
        .bind(site)
        .fetch_all(tx.sql())
        .await?)
}

/// One that a shorter lifetime has overtaken.
pub async fn expire_one(tx: &mut Tx, id: &ApprovalId, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "update approvals set status = 'expired', changed_at = $1 where id = $2 and status in ('pending', 'approved')";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(id.as_str())
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Sites that have overdue requests; the sweeper locks each in turn.
pub async fn overdue_sites(
    pool: &AnyPool,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let sql = "select distinct site_id from approvals where status in ('pending', 'approved') and expires_at <= $1 limit $2";
    ids(sqlx::query(sql)
        .bind(now.ms())
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

pub async fn cancel(
    tx: &mut Tx,
    id: &ApprovalId,
    caller: CallerKey<'_>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "update approvals set status = 'cancelled', changed_at = $1
         where id = $2 and caller_kind = $3 and caller_id = $4 and surface = $5 and status in ('pending', 'approved') and expires_at > $1",
    )
    .bind(now.ms())
    .bind(id.as_str())
    .bind(caller.kind.as_str())
    .bind(caller.id)
    .bind(caller.surface.as_str())
    .execute(tx.sql())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// After a restore: what was asked or approved in the older epoch redeems no more (guide to security: A19).
pub async fn next_epoch(tx: &mut Tx) -> Result<(), StoreError> {
    sqlx::query("update instance set epoch = epoch + 1")
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn sites_with_open(tx: &mut Tx) -> Result<Vec<String>, StoreError> {
    let sql = "select distinct site_id from approvals where status in ('pending', 'approved') order by site_id";
    ids(sqlx::query(sql).fetch_all(tx.sql()).await?)
}

/// Every open request of a site that was asked in an older epoch.
pub async fn void_restored(
    tx: &mut Tx,
    site: &str,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let sql = "update approvals set status = 'voided', changed_at = $1, void_cause = 'restored'
        where site_id = $2 and status in ('pending', 'approved') returning id";
    ids(sqlx::query(sql)
        .bind(now.ms())
        .bind(site)
        .fetch_all(tx.sql())
        .await?)
}

#[derive(Clone, Debug, sqlx::FromRow)]
struct ApprovalRow {
    id: String,
    site_id: String,
    tool: String,
    tool_version: String,
    arguments: String,
    args_hash: String,
    state_hash: String,
    state_rev: i64,
    caller_kind: String,
    caller_id: String,
    surface: String,
    conversation: Option<String>,
    reason: Option<String>,
    card: String,
    seen_digest: String,
    epoch: i64,
    epoch_now: i64,
    status: String,
    requested_at: i64,
    expires_at: i64,
    changed_at: Option<i64>,
    void_cause: Option<String>,
}

/// A record together with what the guard looks at besides.
#[derive(Clone, Debug)]
pub struct Stored {
    pub approval: Approval,
    pub epoch: i64,
    /// That of the database when the record was read.
    pub epoch_now: i64,
    /// The card exactly as stored; the digest of what was seen is made from these bytes.
    pub card_text: String,
    pub decisions: Vec<DecisionRow>,
}

impl Stored {
    /// Whether the row's own digests are those of what stands in it: the arguments that would run, and the card that is shown.
    pub fn is_intact(&self) -> bool {
        let approval = &self.approval;
        let seen = seen_digest(
            &self.card_text,
            &approval.args_hash,
            &approval.state_hash,
            &approval.tool_version,
        );
        digest::of_arguments(&approval.arguments) == approval.args_hash
            && seen == approval.seen_digest
    }
}

const SELECT: &str = "select id, site_id, tool, tool_version, arguments, args_hash, state_hash, state_rev, caller_kind, caller_id, surface, conversation, reason, card,
    seen_digest, epoch, (select i.epoch from instance i) as epoch_now, status, requested_at, expires_at, changed_at, void_cause from approvals where id = $1";

pub async fn get(pool: &AnyPool, id: &ApprovalId) -> Result<Option<Stored>, StoreError> {
    let mut connection = pool.acquire().await?;
    read(&mut connection, id).await
}

/// The same inside a unit of work.
pub async fn get_now(tx: &mut Tx, id: &ApprovalId) -> Result<Option<Stored>, StoreError> {
    read(tx.sql(), id).await
}

async fn read(db: &mut sqlx::AnyConnection, id: &ApprovalId) -> Result<Option<Stored>, StoreError> {
    if id.as_str().contains('\0') {
        // No id has one, and PostgreSQL would rather fail than say so.
        return Ok(None);
    }
    let Some(row) = sqlx::query_as::<_, ApprovalRow>(SELECT)
        .bind(id.as_str())
        .fetch_optional(&mut *db)
        .await?
    else {
        return Ok(None);
    };
    let decisions: Vec<DecisionRow> =
        sqlx::query_as("select id, approval_id, person_id, person_name, verdict, via, seen_digest, reason, at, signature from decisions where approval_id = $1 order by at, id")
            .bind(id.as_str())
            .fetch_all(&mut *db)
            .await?;
    let receipt: Option<(String, Option<String>, Option<String>, i64)> =
        if row.status == Status::Redeemed.as_str() {
            sqlx::query_as("select outcome, result, error, at from receipts where approval_id = $1")
                .bind(id.as_str())
                .fetch_optional(&mut *db)
                .await?
        } else {
            None
        };
    Ok(Some(stored(row, decisions, receipt)?))
}

fn stored(
    row: ApprovalRow,
    decisions: Vec<DecisionRow>,
    receipt: Option<(String, Option<String>, Option<String>, i64)>,
) -> Result<Stored, StoreError> {
    let bad = |column| StoreError::Inconsistent {
        table: "approvals",
        column,
        id: row.id.clone(),
    };
    let at = Timestamp(row.changed_at.unwrap_or(row.requested_at));
    let told = decisions
        .iter()
        .map(|d| decision(d, &row.id))
        .collect::<Result<Vec<_>, _>>()?;
    let state = match Status::from_text(&row.status).ok_or_else(|| bad("status"))? {
        Status::Pending => State::Pending,
        Status::Approved => State::Approved { at },
        Status::Denied => State::Denied {
            at,
            reason: told
                .iter()
                .rev()
                .find(|d| d.decision == Verdict::Deny)
                .and_then(|d| d.reason.clone()),
        },
        Status::Expired => State::Expired { at },
        Status::Voided => State::Voided {
            at,
            cause: row
                .void_cause
                .as_deref()
                .and_then(VoidCause::from_text)
                .ok_or_else(|| bad("void_cause"))?,
        },
        Status::Cancelled => State::Cancelled { at },
        Status::Redeemed => State::Redeemed {
            at,
            receipt: receipt_of(receipt.ok_or_else(|| bad("receipt_id"))?, &row.id)?,
        },
    };
    let approval = Approval {
        state,
        decisions: told,
        site: SiteId::new(&row.site_id),
        tool: row.tool.clone(),
        tool_version: row.tool_version.clone(),
        arguments: serde_json::from_str(&row.arguments).map_err(|_| bad("arguments"))?,
        args_hash: Digest::from_text(&row.args_hash),
        state_hash: Digest::from_text(&row.state_hash),
        state_rev: row.state_rev,
        seen_digest: Digest::from_text(&row.seen_digest),
        caller_kind: CallerKind::from_text(&row.caller_kind).ok_or_else(|| bad("caller_kind"))?,
        caller_id: row.caller_id.clone(),
        surface: Surface::from_text(&row.surface).ok_or_else(|| bad("surface"))?,
        conversation: row.conversation.clone(),
        reason: row.reason.clone(),
        card: serde_json::from_str(&row.card).map_err(|_| bad("card"))?,
        requested_at: Timestamp(row.requested_at),
        expires_at: Timestamp(row.expires_at),
        id: ApprovalId::new(&row.id),
    };
    Ok(Stored {
        approval,
        epoch: row.epoch,
        epoch_now: row.epoch_now,
        card_text: row.card,
        decisions,
    })
}

fn decision(row: &DecisionRow, approval: &str) -> Result<Decision, StoreError> {
    Ok(Decision {
        by: DecidedBy {
            id: PersonId::new(&row.person_id),
            name: row.person_name.clone(),
        },
        decision: known(
            Verdict::from_text(&row.verdict),
            "decisions",
            "verdict",
            approval,
        )?,
        via: known(Via::from_text(&row.via), "decisions", "via", approval)?,
        at: Timestamp(row.at),
        reason: row.reason.clone(),
    })
}

fn receipt_of(
    row: (String, Option<String>, Option<String>, i64),
    approval: &str,
) -> Result<Receipt, StoreError> {
    let (outcome, result, error, at) = row;
    let json = |column, text: Option<String>| {
        text.map(|t| serde_json::from_str(&t))
            .transpose()
            .map_err(|_| StoreError::Inconsistent {
                table: "receipts",
                column,
                id: approval.to_owned(),
            })
    };
    let error: Option<serde_json::Value> = json("error", error)?;
    Ok(Receipt {
        outcome: known(
            Outcome::from_text(&outcome),
            "receipts",
            "outcome",
            approval,
        )?,
        at: Timestamp(at),
        result: json("result", result)?,
        error: error.map(serde_json::from_value).transpose().map_err(|_| {
            StoreError::Inconsistent {
                table: "receipts",
                column: "error",
                id: approval.to_owned(),
            }
        })?,
    })
}

/// The ids of all records in their order, a page at a time, for the verifier.
pub async fn ids_after(pool: &AnyPool, id: &str, limit: i64) -> Result<Vec<String>, StoreError> {
    let sql = "select id from approvals where id > $1 order by id limit $2";
    ids(sqlx::query(sql)
        .bind(id)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

/// Redeemed approvals with what ran for them, for the verifier.
pub async fn redeemed_without_receipt(pool: &AnyPool) -> Result<Vec<String>, StoreError> {
    ids(sqlx::query("select a.id from approvals a left join receipts r on r.approval_id = a.id and r.id = a.receipt_id where a.status = 'redeemed' and r.id is null").fetch_all(pool).await?)
}

/// Redeemed approvals that the journal does not tell of, for the verifier: a chain that was cut short is whole in itself.
pub async fn redeemed_without_entry(pool: &AnyPool) -> Result<Vec<String>, StoreError> {
    let sql = "select a.id from approvals a where a.status = 'redeemed'
          and not exists (select 1 from journal j where j.chain = a.site_id and j.approval_id = a.id and j.kind = 'approval.redeemed')
        limit 1";
    ids(sqlx::query(sql).fetch_all(pool).await?)
}

fn ids(rows: Vec<sqlx::any::AnyRow>) -> Result<Vec<String>, StoreError> {
    rows.iter()
        .map(|row| row.try_get(0).map_err(Into::into))
        .collect()
}
