//! SQL for people and their links.

use super::{Backend, StoreError, Tx};
use cloudhal_domain::{id::ApprovalId, time::Timestamp};
use sqlx::{Any, AnyPool, Executor, Row as _};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct PersonRow {
    pub id: String,
    pub email: String,
    pub name: String,
    pub password_hash: Option<String>,
    pub session_key: String,
    pub workspace_owner: i64,
    pub created_at: i64,
    pub disabled_at: Option<i64>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select id, email, name, password_hash, session_key, workspace_owner, created_at, disabled_at from people ", $rest)
    };
}

/// The instance row exists from the first start on.
pub async fn ensure_instance(tx: &mut Tx, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "insert into instance (id, epoch, created_at) values (1, 1, $1) on conflict do nothing",
    )
    .bind(now.ms())
    .execute(tx.sql())
    .await?;
    Ok(())
}

pub async fn count(pool: &AnyPool) -> Result<i64, StoreError> {
    Ok(sqlx::query("select count(*) from people")
        .fetch_one(pool)
        .await?
        .try_get(0)?)
}

pub async fn count_now(tx: &mut Tx) -> Result<i64, StoreError> {
    Ok(sqlx::query("select count(*) from people")
        .fetch_one(tx.sql())
        .await?
        .try_get(0)?)
}

pub async fn by_id(
    db: impl Executor<'_, Database = Any>,
    id: &str,
) -> Result<Option<PersonRow>, StoreError> {
    Ok(sqlx::query_as(select!("where id = $1"))
        .bind(id)
        .fetch_optional(db)
        .await?)
}

/// The same for a unit whose right to go on rests on it.
pub async fn held(tx: &mut Tx, id: &str) -> Result<Option<PersonRow>, StoreError> {
    let sql = held!(tx, "select id, email, name, password_hash, session_key, workspace_owner, created_at, disabled_at from people p where id = $1", of "p");
    Ok(sqlx::query_as(sql)
        .bind(id)
        .fetch_optional(tx.sql())
        .await?)
}

/// PostgreSQL: keeps the accounts of whoever decided as they are until the unit ends. SQLite has one writer.
pub async fn hold_deciders(tx: &mut Tx, approval: &ApprovalId) -> Result<(), StoreError> {
    if tx.backend() == Backend::Postgres {
        let sql = "select p.id from people p where p.id in (select person_id from decisions where approval_id = $1) order by p.id for share of p";
        sqlx::query(sql)
            .bind(approval.as_str())
            .fetch_all(tx.sql())
            .await?;
    }
    Ok(())
}

pub async fn by_email(
    db: impl Executor<'_, Database = Any>,
    email_key: &str,
) -> Result<Option<PersonRow>, StoreError> {
    Ok(sqlx::query_as(select!("where email_key = $1"))
        .bind(email_key)
        .fetch_optional(db)
        .await?)
}

pub async fn owners(pool: &AnyPool) -> Result<Vec<PersonRow>, StoreError> {
    Ok(sqlx::query_as(select!(
        "where workspace_owner = 1 and disabled_at is null order by created_at"
    ))
    .fetch_all(pool)
    .await?)
}

pub async fn all(pool: &AnyPool) -> Result<Vec<PersonRow>, StoreError> {
    Ok(sqlx::query_as(select!("order by name, id"))
        .fetch_all(pool)
        .await?)
}

/// Returns false where the e-mail address is taken.
pub async fn insert(tx: &mut Tx, person: &PersonRow, email_key: &str) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "insert into people (id, email, email_key, name, password_hash, session_key, workspace_owner, created_at, disabled_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, null) on conflict do nothing",
    )
    .bind(&person.id)
    .bind(&person.email)
    .bind(email_key)
    .bind(&person.name)
    .bind(person.password_hash.as_deref())
    .bind(&person.session_key)
    .bind(person.workspace_owner)
    .bind(person.created_at)
    .execute(tx.sql())
    .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn set_password(
    tx: &mut Tx,
    person: &str,
    password_hash: &str,
    session_key: &str,
) -> Result<(), StoreError> {
    sqlx::query("update people set password_hash = $1, session_key = $2 where id = $3")
        .bind(password_hash)
        .bind(session_key)
        .bind(person)
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn rename(tx: &mut Tx, person: &str, name: &str) -> Result<(), StoreError> {
    sqlx::query("update people set name = $1 where id = $2")
        .bind(name)
        .bind(person)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Whether somebody else is there who owns the workspace and can sign in.
macro_rules! another_owner {
    ($rest:literal) => {
        concat!("exists (select 1 from people o where o.id <> $1 and o.workspace_owner = 1 and o.disabled_at is null)", $rest)
    };
}

pub async fn promote(tx: &mut Tx, person: &str) -> Result<(), StoreError> {
    sqlx::query("update people set workspace_owner = 1 where id = $1")
        .bind(person)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Ends the ownership of the workspace; the guard is the whole condition. Returns false for the last one. The caller holds
/// the workspace's lock, so that two owners cannot end each other's at once.
pub async fn demote(tx: &mut Tx, person: &str) -> Result<bool, StoreError> {
    let sql = concat!(
        "update people set workspace_owner = 0 where id = $1 and ",
        another_owner!("")
    );
    let done = sqlx::query(sql).bind(person).execute(tx.sql()).await?;
    Ok(done.rows_affected() == 1)
}

/// Disables an account and ends its sessions, under the same guard: never the last owner of the workspace, nor, where nobody
/// owns the workspace, somebody who owns a site.
pub async fn disable(
    tx: &mut Tx,
    person: &str,
    session_key: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = concat!(
        "update people set disabled_at = $2, session_key = $3 where id = $1 and disabled_at is null and (",
        another_owner!(
            " or (workspace_owner = 0 and not exists (select 1 from memberships m where m.person_id = $1 and m.role = 'owner')))"
        )
    );
    let done = sqlx::query(sql)
        .bind(person)
        .bind(now.ms())
        .bind(session_key)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn enable(tx: &mut Tx, person: &str) -> Result<(), StoreError> {
    sqlx::query("update people set disabled_at = null where id = $1")
        .bind(person)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// The sign-in links of a person that were not used end.
pub async fn end_links(tx: &mut Tx, person: &str, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("update sign_in_links set used_at = $1 where person_id = $2 and used_at is null")
        .bind(now.ms())
        .bind(person)
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn insert_link(
    tx: &mut Tx,
    token_hash: &str,
    purpose: &str,
    person: Option<&str>,
    made_by: &str,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query("insert into sign_in_links (token_hash, purpose, person_id, created_at, expires_at, used_at, made_by) values ($1, $2, $3, $4, $5, null, $6)")
        .bind(token_hash)
        .bind(purpose)
        .bind(person)
        .bind(now.ms())
        .bind(expires_at.ms())
        .bind(made_by)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// The unspent links that somebody made, for whomever, end with their right to make any.
pub async fn end_links_by(tx: &mut Tx, made_by: &str, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("update sign_in_links set used_at = $1 where made_by = $2 and purpose = 'sign_in' and used_at is null")
        .bind(now.ms())
        .bind(made_by)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Whether a link would be spent now; [`spend_link`] decides.
pub async fn link_is_good(
    pool: &AnyPool,
    token_hash: &str,
    purpose: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "select count(*) from sign_in_links where token_hash = $1 and purpose = $2 and used_at is null and expires_at > $3";
    let n: i64 = sqlx::query(sql)
        .bind(token_hash)
        .bind(purpose)
        .bind(now.ms())
        .fetch_one(pool)
        .await?
        .try_get(0)?;
    Ok(n > 0)
}

/// Spends a link; the guard is the whole condition. Returns whom it signs in (`Some(None)` for set-up).
pub async fn spend_link(
    tx: &mut Tx,
    token_hash: &str,
    purpose: &str,
    now: Timestamp,
) -> Result<Option<Option<String>>, StoreError> {
    let sql = "update sign_in_links set used_at = $1 where token_hash = $2 and purpose = $3 and used_at is null and expires_at > $1 returning person_id";
    let row = sqlx::query(sql)
        .bind(now.ms())
        .bind(token_hash)
        .bind(purpose)
        .fetch_optional(tx.sql())
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

/// Every link that was not used ends, of whatever purpose; how many there were.
pub async fn end_all_links(tx: &mut Tx, now: Timestamp) -> Result<u64, StoreError> {
    let done = sqlx::query("update sign_in_links set used_at = $1 where used_at is null")
        .bind(now.ms())
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected())
}

/// Earlier set-up links end when a new one is made or the first person exists.
pub async fn end_set_up_links(tx: &mut Tx, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "update sign_in_links set used_at = $1 where purpose = 'set_up' and used_at is null",
    )
    .bind(now.ms())
    .execute(tx.sql())
    .await?;
    Ok(())
}
