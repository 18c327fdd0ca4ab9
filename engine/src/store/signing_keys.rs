//! SQL for the public halves of the keys that decisions are signed with.

use super::{StoreError, Tx};
use cloudhal_domain::time::Timestamp;
use sqlx::{Any, AnyPool, Executor, Row as _};

/// Returns false where it is known already.
pub async fn insert(
    tx: &mut Tx,
    id: &str,
    public_key: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "insert into signing_keys (id, public_key, created_at) values ($1, $2, $3) on conflict do nothing",
    )
    .bind(id)
    .bind(public_key)
    .bind(now.ms())
    .execute(tx.sql())
    .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn get(
    db: impl Executor<'_, Database = Any>,
    id: &str,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select public_key from signing_keys where id = $1")
        .bind(id)
        .fetch_optional(db)
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

pub async fn all(pool: &AnyPool) -> Result<Vec<(String, String)>, StoreError> {
    Ok(
        sqlx::query_as("select id, public_key from signing_keys order by id")
            .fetch_all(pool)
            .await?,
    )
}
