//! SQL for webhooks: destinations of a site, and what an event says about its approval.

use super::{Connection, StoreError, Tx};
use cloudhal_domain::{
    id::{ApprovalId, SiteId, WebhookId},
    time::Timestamp,
};
use secrecy::SecretString;
use sqlx::{Row as _, any::AnyRow};

/// A destination without what signs.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct WebhookRow {
    pub id: String,
    pub site_id: String,
    pub url: String,
    pub old_secret_until: Option<i64>,
    pub created_at: i64,
}

/// What delivering takes. Its `Debug` shows no secret.
#[derive(Debug)]
pub struct Target {
    pub url: String,
    pub secret: SecretString,
    pub old_secret: Option<SecretString>,
}

/// An approval as its site's receivers are told of it.
#[derive(Debug, sqlx::FromRow)]
pub struct Facts {
    pub tool: String,
    pub status: String,
    pub sentence: String,
    pub site_title: String,
    pub outcome: Option<String>,
}

pub async fn insert(
    tx: &mut Tx,
    id: &WebhookId,
    site: &SiteId,
    url: &str,
    secret: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into webhooks (id, site_id, url, secret, created_at) values ($1, $2, $3, $4, $5)",
    )
    .bind(id.as_str())
    .bind(site.as_str())
    .bind(url)
    .bind(secret)
    .bind(now.ms())
    .execute(tx.sql())
    .await?;
    Ok(())
}

pub async fn of_site(db: &mut Connection, site: &str) -> Result<Vec<WebhookRow>, StoreError> {
    let sql = "select id, site_id, url, old_secret_until, created_at from webhooks where site_id = $1 order by created_at, id";
    Ok(sqlx::query_as(sql).bind(site).fetch_all(db).await?)
}

pub async fn get(
    db: &mut Connection,
    site: &SiteId,
    id: &WebhookId,
) -> Result<Option<WebhookRow>, StoreError> {
    let sql = "select id, site_id, url, old_secret_until, created_at from webhooks where id = $1 and site_id = $2";
    Ok(sqlx::query_as(sql)
        .bind(id.as_str())
        .bind(site.as_str())
        .fetch_optional(db)
        .await?)
}

/// Where a delivery goes and what signs it at `now`.
pub async fn target(
    db: &mut Connection,
    id: &str,
    now: Timestamp,
) -> Result<Option<Target>, StoreError> {
    let sql = "select url, secret, case when old_secret_until > $1 then old_secret end as old_secret from webhooks where id = $2";
    let row = sqlx::query(sql)
        .bind(now.ms())
        .bind(id)
        .fetch_optional(db)
        .await?;
    let read = |row: AnyRow| -> Result<Target, StoreError> {
        let secret: String = row.try_get("secret")?;
        let old: Option<String> = row.try_get("old_secret")?;
        Ok(Target {
            url: row.try_get("url")?,
            secret: secret.into(),
            old_secret: old.map(Into::into),
        })
    };
    row.map(read).transpose()
}

/// A new secret; the one until now signs as well until `until`.
pub async fn rotate(
    tx: &mut Tx,
    site: &SiteId,
    id: &WebhookId,
    secret: &str,
    until: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update webhooks set old_secret = secret, old_secret_until = $1, secret = $2 where id = $3 and site_id = $4";
    let done = sqlx::query(sql)
        .bind(until.ms())
        .bind(secret)
        .bind(id.as_str())
        .bind(site.as_str())
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Takes the destination away, with its secrets; its address, where there was one.
pub async fn delete(
    tx: &mut Tx,
    site: &SiteId,
    id: &WebhookId,
) -> Result<Option<String>, StoreError> {
    let sql = "delete from webhooks where id = $1 and site_id = $2 returning url";
    let row = sqlx::query(sql)
        .bind(id.as_str())
        .bind(site.as_str())
        .fetch_optional(tx.sql())
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Secrets that nobody needs any more: those before the last rotation whose time is up, and those of sites that are deleted,
/// once their last events are told.
pub async fn forget_secrets(tx: &mut Tx, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("update webhooks set old_secret = null, old_secret_until = null where old_secret_until <= $1")
        .bind(now.ms())
        .execute(tx.sql())
        .await?;
    let sql =
        "delete from webhooks where site_id in (select id from sites where deleted_at is not null)
        and not exists (select id from outbox where target = webhooks.id and status = 'waiting')";
    sqlx::query(sql).execute(tx.sql()).await?;
    Ok(())
}

/// The record as it stands in this transaction.
pub async fn facts(
    db: &mut Connection,
    approval: &ApprovalId,
) -> Result<Option<Facts>, StoreError> {
    let sql = "select a.tool, a.status, a.sentence, s.title as site_title, r.outcome
        from approvals a join sites s on s.id = a.site_id left join receipts r on r.approval_id = a.id where a.id = $1";
    Ok(sqlx::query_as(sql)
        .bind(approval.as_str())
        .fetch_optional(db)
        .await?)
}
