//! The append-only, hash-chained account of who asked, decided, redeemed and ran. One chain a site, one for the workspace.
//! An entry is written in the transaction of what it tells, under the lock of its chain.

use crate::{
    Engine,
    authority::Author,
    store::{Fail, StoreError, Tx, journal as sql},
};
use cloudhal_domain::{digest::Framed, id::ApprovalId, time::Timestamp};
use serde_json::{Value, json};

pub const WORKSPACE: &str = "workspace";
const GENESIS: &str = "genesis";

/// What an entry tells; `kind` is a stable word, `approval.decided`.
pub struct Entry<'e> {
    pub kind: &'e str,
    pub actor: &'e Author,
    pub approval: Option<&'e ApprovalId>,
    pub body: Value,
}

/// Appends to a site's chain; the caller holds the site's lock.
pub async fn site(tx: &mut Tx, site: &str, now: Timestamp, entry: Entry<'_>) -> Result<(), Fail> {
    append(tx, site, now, entry).await
}

/// Appends to the workspace's chain, taking its lock.
pub async fn workspace(tx: &mut Tx, now: Timestamp, entry: Entry<'_>) -> Result<(), Fail> {
    sql::lock_workspace(tx).await?;
    append(tx, WORKSPACE, now, entry).await
}

async fn append(tx: &mut Tx, chain: &str, now: Timestamp, entry: Entry<'_>) -> Result<(), Fail> {
    let (seq, prev_hash) = sql::head(tx, chain)
        .await?
        .map_or((1, GENESIS.to_owned()), |(seq, hash)| (seq + 1, hash));
    let mut row = sql::EntryRow {
        chain: chain.to_owned(),
        seq,
        at: now.ms(),
        kind: entry.kind.to_owned(),
        actor: entry.actor.key.clone(),
        actor_name: entry.actor.name.clone(),
        approval_id: entry.approval.map(|id| id.as_str().to_owned()),
        body: cloudhal_domain::canonical::text(&entry.body),
        prev_hash,
        hash: String::new(),
    };
    row.hash = hash(&row);
    sql::append(tx, &row).await?;
    Ok(())
}

fn hash(row: &sql::EntryRow) -> String {
    Framed::new("cloudhal/journal/v1")
        .part(&row.chain)
        .number(row.seq)
        .number(row.at)
        .part(&row.kind)
        .part(&row.actor)
        .part(&row.actor_name)
        .part(row.approval_id.as_deref().unwrap_or(""))
        .part(&row.body)
        .part(&row.prev_hash)
        .finish()
        .as_str()
        .to_owned()
}

/// The first entry of a chain that does not follow from the one before it.
pub async fn first_fault(engine: &Engine, chain: &str) -> Result<Option<String>, StoreError> {
    let (mut seq, mut prev) = (0, GENESIS.to_owned());
    loop {
        let rows = sql::chain(engine.store().read(), chain, seq, 1000).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        for row in rows {
            if row.seq != seq + 1 {
                return Ok(Some(format!(
                    "journal {chain}: entry {} follows entry {seq}",
                    row.seq
                )));
            }
            if row.prev_hash != prev {
                return Ok(Some(format!(
                    "journal {chain}: entry {} does not name the hash of entry {seq}",
                    row.seq
                )));
            }
            if row.hash != hash(&row) {
                return Ok(Some(format!(
                    "journal {chain}: entry {} was changed",
                    row.seq
                )));
            }
            seq = row.seq;
            prev = row.hash;
        }
    }
}

/// One entry as a line of the export.
pub fn line(row: &sql::EntryRow) -> Value {
    json!({
        "chain": row.chain,
        "seq": row.seq,
        "at": Timestamp(row.at),
        "kind": row.kind,
        "actor": row.actor,
        "actorName": row.actor_name,
        "approvalId": row.approval_id,
        "body": serde_json::from_str::<Value>(&row.body).unwrap_or(Value::Null),
        "prevHash": row.prev_hash,
        "hash": row.hash,
    })
}

/// Every entry since a moment, chain by chain, oldest first.
pub async fn export(
    engine: &Engine,
    site: Option<&str>,
    since: Timestamp,
    mut each: impl FnMut(Value) -> std::io::Result<()>,
) -> Result<(), ExportError> {
    let chains = match site {
        Some(site) => vec![(site.to_owned(),)],
        None => sql::chains(engine.store().read()).await?,
    };
    for (chain,) in chains {
        let mut seq = 0;
        loop {
            let rows = sql::chain(engine.store().read(), &chain, seq, 1000).await?;
            let Some(last) = rows.last() else { break };
            seq = last.seq;
            for row in rows.iter().filter(|row| row.at >= since.ms()) {
                each(line(row))?;
            }
        }
    }
    Ok(())
}

/// How an export can fail: reading, or writing where it goes.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("could not write the export: {0}")]
    Write(#[from] std::io::Error),
}
