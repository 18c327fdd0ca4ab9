//! SQL for the keys of people's own clients.

use super::{StoreError, Tx};
use cloudhal_domain::time::Timestamp;
use sqlx::AnyPool;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct HolderRow {
    pub secret_hash: String,
    pub person_id: String,
    pub person_name: String,
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct KeyRow {
    pub id: String,
    pub name: String,
    pub created_at: i64,
    pub expires_at: i64,
}

/// A key is good while its session is: not signed out of, not timed out, the password not changed, the account not disabled.
macro_rules! good {
    () => {
        " k.expires_at > $2 and s.expires_at > $2 and p.session_key = k.session_key and p.disabled_at is null"
    };
}

pub async fn holder(
    pool: &AnyPool,
    key: &str,
    now: Timestamp,
) -> Result<Option<HolderRow>, StoreError> {
    let sql = concat!(
        "select k.secret_hash, p.id as person_id, p.name as person_name
         from personal_keys k join sessions s on s.id = k.session_id join people p on p.id = k.person_id where k.id = $1 and",
        good!()
    );
    Ok(sqlx::query_as(sql)
        .bind(key)
        .bind(now.ms())
        .fetch_optional(pool)
        .await?)
}

/// The same inside a unit of work, which holds the key and its person as they are: signing out waits for it.
pub async fn key_is_good(tx: &mut Tx, key: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql = held!(tx, concat!(
        "select k.id from personal_keys k join sessions s on s.id = k.session_id join people p on p.id = k.person_id where k.id = $1 and",
        good!()
    ), of "k, p");
    let row = sqlx::query(sql)
        .bind(key)
        .bind(now.ms())
        .fetch_optional(tx.sql())
        .await?;
    Ok(row.is_some())
}

/// A key to be made.
pub struct NewKey<'k> {
    pub id: &'k str,
    pub person: &'k str,
    pub session: &'k str,
    pub session_key: &'k str,
    pub name: &'k str,
    pub secret_hash: &'k str,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Returns false where the session is gone already.
pub async fn insert(tx: &mut Tx, new: NewKey<'_>) -> Result<bool, StoreError> {
    let sql = "insert into personal_keys (id, person_id, session_id, session_key, name, secret_hash, created_at, expires_at)
        select $1, p.id, s.id, p.session_key, $2, $3, $4, $5 from sessions s join people p on p.id = $6
        where s.id = $7 and s.expires_at > $4 and p.session_key = $8 and p.disabled_at is null";
    let done = sqlx::query(sql)
        .bind(new.id)
        .bind(new.name)
        .bind(new.secret_hash)
        .bind(new.created_at.ms())
        .bind(new.expires_at.ms())
        .bind(new.person)
        .bind(new.session)
        .bind(new.session_key)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// A person's keys that are good now, the newest first.
pub async fn of_person(
    pool: &AnyPool,
    person: &str,
    now: Timestamp,
) -> Result<Vec<KeyRow>, StoreError> {
    let sql = concat!(
        "select k.id, k.name, k.created_at, k.expires_at
         from personal_keys k join sessions s on s.id = k.session_id join people p on p.id = k.person_id where k.person_id = $1 and",
        good!(),
        " order by k.created_at desc, k.id"
    );
    Ok(sqlx::query_as(sql)
        .bind(person)
        .bind(now.ms())
        .fetch_all(pool)
        .await?)
}

/// Returns false where the person has no such key.
pub async fn delete(tx: &mut Tx, person: &str, key: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("delete from personal_keys where id = $1 and person_id = $2")
        .bind(key)
        .bind(person)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}
