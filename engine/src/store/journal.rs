//! SQL for the journal. There is no statement that changes or removes an entry, and triggers refuse one.

use super::{StoreError, Tx};
use sqlx::AnyPool;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct EntryRow {
    pub chain: String,
    pub seq: i64,
    pub at: i64,
    pub kind: String,
    pub actor: String,
    pub actor_name: String,
    pub approval_id: Option<String>,
    pub body: String,
    pub prev_hash: String,
    pub hash: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select chain, seq, at, kind, actor, actor_name, approval_id, body, prev_hash, hash from journal ", $rest)
    };
}

/// The newest entry of a chain; race-free because whoever appends holds the chain's lock (a site's row, or the instance's).
pub async fn head(tx: &mut Tx, chain: &str) -> Result<Option<(i64, String)>, StoreError> {
    Ok(
        sqlx::query_as("select seq, hash from journal where chain = $1 order by seq desc limit 1")
            .bind(chain)
            .fetch_optional(tx.sql())
            .await?,
    )
}

/// Takes the workspace chain's lock: the first statement of a unit that writes to it and to no site.
pub async fn lock_workspace(tx: &mut Tx) -> Result<(), StoreError> {
    sqlx::query("update instance set epoch = epoch")
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn append(tx: &mut Tx, entry: &EntryRow) -> Result<(), StoreError> {
    sqlx::query("insert into journal (chain, seq, at, kind, actor, actor_name, approval_id, body, prev_hash, hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
        .bind(&entry.chain)
        .bind(entry.seq)
        .bind(entry.at)
        .bind(&entry.kind)
        .bind(&entry.actor)
        .bind(&entry.actor_name)
        .bind(entry.approval_id.as_deref())
        .bind(&entry.body)
        .bind(&entry.prev_hash)
        .bind(&entry.hash)
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn chains(pool: &AnyPool) -> Result<Vec<(String,)>, StoreError> {
    Ok(
        sqlx::query_as("select distinct chain from journal order by chain")
            .fetch_all(pool)
            .await?,
    )
}

/// A stretch of one chain, oldest first.
pub async fn chain(
    pool: &AnyPool,
    chain: &str,
    after_seq: i64,
    limit: i64,
) -> Result<Vec<EntryRow>, StoreError> {
    Ok(sqlx::query_as(select!(
        "where chain = $1 and seq > $2 order by seq limit $3"
    ))
    .bind(chain)
    .bind(after_seq)
    .bind(limit)
    .fetch_all(pool)
    .await?)
}

/// A stretch of one chain, newest first.
pub async fn recent(
    pool: &AnyPool,
    chain: &str,
    before_seq: i64,
    limit: i64,
) -> Result<Vec<EntryRow>, StoreError> {
    Ok(sqlx::query_as(select!(
        "where chain = $1 and seq < $2 order by seq desc limit $3"
    ))
    .bind(chain)
    .bind(before_seq)
    .bind(limit)
    .fetch_all(pool)
    .await?)
}

/// All chains together, newest first; `before` is (at, chain, seq).
pub async fn recent_everywhere(
    pool: &AnyPool,
    before: (i64, &str, i64),
    limit: i64,
) -> Result<Vec<EntryRow>, StoreError> {
    let sql = select!(
        "where at < $1 or (at = $1 and (chain < $2 or (chain = $2 and seq < $3))) order by at desc, chain desc, seq desc limit $4"
    );
    Ok(sqlx::query_as(sql)
        .bind(before.0)
        .bind(before.1)
        .bind(before.2)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

pub async fn of_approval(pool: &AnyPool, approval: &str) -> Result<Vec<EntryRow>, StoreError> {
    Ok(
        sqlx::query_as(select!("where approval_id = $1 order by at, seq"))
            .bind(approval)
            .fetch_all(pool)
            .await?,
    )
}

pub async fn of_kind(pool: &AnyPool, chain: &str, kind: &str) -> Result<Vec<EntryRow>, StoreError> {
    Ok(
        sqlx::query_as(select!("where chain = $1 and kind = $2 order by seq"))
            .bind(chain)
            .bind(kind)
            .fetch_all(pool)
            .await?,
    )
}
