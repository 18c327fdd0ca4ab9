//! SQL for the outbox. A claim and its end both hold their whole guard in the WHERE; the row count is the verdict.

use super::{Backend, Connection, StoreError, Tx};
use cloudhal_domain::{
    id::{ApprovalId, DeliveryId, SiteId, WebhookId},
    time::Timestamp,
};
use sqlx::{AnyPool, Row as _};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct OutboxRow {
    pub id: String,
    pub kind: String,
    pub site_id: String,
    pub target: String,
    pub topic: String,
    pub approval_id: Option<String>,
    pub body: String,
    pub status: String,
    pub tries: i64,
    pub due_at: i64,
    pub holder: Option<String>,
    pub last_error: Option<String>,
    pub created_at: i64,
    pub finished_at: Option<i64>,
}

macro_rules! columns {
    ($before:literal, $after:literal) => {
        concat!($before, " id, kind, site_id, target, topic, approval_id, body, status, tries, due_at, holder, last_error, created_at, finished_at ", $after)
    };
}

/// What a new row says, apart from its place in time.
pub struct NewRow<'r> {
    pub id: &'r str,
    pub kind: &'r str,
    pub site: &'r str,
    pub target: &'r str,
    pub topic: &'r str,
    pub approval: Option<&'r ApprovalId>,
    pub body: &'r str,
}

pub async fn insert(tx: &mut Tx, row: NewRow<'_>, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "insert into outbox (id, kind, site_id, target, topic, approval_id, body, epoch, status, tries, due_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, (select epoch from instance), 'waiting', 0, $8, $8)",
    )
    .bind(row.id)
    .bind(row.kind)
    .bind(row.site)
    .bind(row.target)
    .bind(row.topic)
    .bind(row.approval.map(ApprovalId::as_str))
    .bind(row.body)
    .bind(now.ms())
    .execute(tx.sql())
    .await?;
    Ok(())
}

/// Whom something is due for, the longest wait first, by reading alone: waiting must not write.
pub async fn due_targets(
    pool: &AnyPool,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let sql = "select target from outbox where status = 'waiting' and due_at <= $1 and epoch = (select epoch from instance)
        group by target order by min(due_at), target limit $2";
    let rows = sqlx::query(sql)
        .bind(now.ms())
        .bind(limit)
        .fetch_all(pool)
        .await?;
    let read = |row: &sqlx::any::AnyRow| row.try_get(0);
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

macro_rules! claim {
    ($skip:literal) => {
        concat!(
            "with due as materialized (
                 select id from outbox where target = $5 and status = 'waiting' and due_at <= $3 and epoch = (select epoch from instance)
                 order by due_at, id limit $4",
            $skip,
            columns!(
                ")
             update outbox set holder = $1, due_at = $2, tries = tries + 1
             where id in (select id from due) and status = 'waiting' and due_at <= $3 returning",
                ""
            )
        )
    };
}

/// Takes up to `limit` due rows of a target until `until`. Whoever comes second finds `due_at` moved, also where both looked at once.
/// `materialized`, since PostgreSQL may else run the inner query again for each row and take more than `limit`.
pub async fn claim(
    tx: &mut Tx,
    target: &str,
    holder: &str,
    until: Timestamp,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<OutboxRow>, StoreError> {
    // Differs by necessity: on SQLite there is one writer and no such words; on PostgreSQL a second node would otherwise
    // queue behind the first one's rows and then find none of them due.
    let sql = match tx.backend() {
        Backend::Sqlite => claim!(""),
        Backend::Postgres => claim!(" for update skip locked"),
    };
    Ok(sqlx::query_as(sql)
        .bind(holder)
        .bind(until.ms())
        .bind(now.ms())
        .bind(limit)
        .bind(target)
        .fetch_all(tx.sql())
        .await?)
}

/// It arrived. Holds whoever has the row now: a claim that was overtaken still tells the truth.
pub async fn delivered(tx: &mut Tx, id: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql =
        "update outbox set status = 'delivered', finished_at = $1, holder = null, last_error = null
        where id = $2 and status = 'waiting'";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(id)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// It did not arrive; another try at `due`. Nothing where the claim was overtaken.
pub async fn put_off(
    tx: &mut Tx,
    row: &OutboxRow,
    due: Timestamp,
    error: &str,
) -> Result<bool, StoreError> {
    let sql = "update outbox set due_at = $1, holder = null, last_error = $2
        where id = $3 and holder = $4 and status = 'waiting'";
    let done = sqlx::query(sql)
        .bind(due.ms())
        .bind(error)
        .bind(&row.id)
        .bind(row.holder.as_deref())
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// No further try. The row must still be as it was read: same tries, and held by the same claim or by none.
pub async fn give_up(
    tx: &mut Tx,
    row: &OutboxRow,
    error: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql =
        "update outbox set status = 'gave_up', finished_at = $1, holder = null, last_error = $2
        where id = $3 and status = 'waiting' and tries = $4 and coalesce(holder, '') = $5";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(error)
        .bind(&row.id)
        .bind(row.tries)
        .bind(row.holder.as_deref().unwrap_or(""))
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Everything that waits for a target that is going.
pub async fn give_up_target(
    tx: &mut Tx,
    target: &WebhookId,
    error: &str,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let sql =
        "update outbox set status = 'gave_up', finished_at = $1, holder = null, last_error = $2
        where target = $3 and status = 'waiting'";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(error)
        .bind(target.as_str())
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected())
}

/// Everything that waited when the copy was made: the original has delivered it, or will.
pub async fn give_up_restored(tx: &mut Tx, error: &str, now: Timestamp) -> Result<u64, StoreError> {
    let sql =
        "update outbox set status = 'gave_up', finished_at = $1, holder = null, last_error = $2
        where status = 'waiting' and epoch <> (select epoch from instance)";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(error)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected())
}

/// What has been due since before `before` and nobody took.
pub async fn unattended(
    pool: &AnyPool,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<OutboxRow>, StoreError> {
    let sql = columns!(
        "select",
        "from outbox where status = 'waiting' and due_at < $1 order by due_at, id limit $2"
    );
    Ok(sqlx::query_as(sql)
        .bind(before.ms())
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

/// The newest rows of a target, newest first.
pub async fn of_target(
    db: &mut Connection,
    site: &SiteId,
    target: &WebhookId,
    limit: i64,
) -> Result<Vec<OutboxRow>, StoreError> {
    let sql = columns!(
        "select",
        "from outbox where target = $1 and site_id = $2 order by created_at desc, id desc limit $3"
    );
    Ok(sqlx::query_as(sql)
        .bind(target.as_str())
        .bind(site.as_str())
        .bind(limit)
        .fetch_all(db)
        .await?)
}

pub async fn exists(
    tx: &mut Tx,
    site: &SiteId,
    target: &WebhookId,
    id: &DeliveryId,
) -> Result<bool, StoreError> {
    let sql = "select count(*) from outbox where id = $1 and target = $2 and site_id = $3";
    let row = sqlx::query(sql)
        .bind(id.as_str())
        .bind(target.as_str())
        .bind(site.as_str())
        .fetch_one(tx.sql())
        .await?;
    Ok(row.try_get::<i64, _>(0)? > 0)
}

/// Waits again, from the first try on and in this epoch. `None` where there is no such row, or a claim holds it.
pub async fn again(
    tx: &mut Tx,
    site: &SiteId,
    target: &WebhookId,
    id: &DeliveryId,
    now: Timestamp,
) -> Result<Option<OutboxRow>, StoreError> {
    let sql = columns!(
        "update outbox set status = 'waiting', tries = 0, due_at = $1, holder = null, finished_at = null, last_error = null, epoch = (select epoch from instance)
         where id = $2 and target = $3 and site_id = $4 and (holder is null or due_at <= $1) returning",
        ""
    );
    Ok(sqlx::query_as(sql)
        .bind(now.ms())
        .bind(id.as_str())
        .bind(target.as_str())
        .bind(site.as_str())
        .fetch_optional(tx.sql())
        .await?)
}

/// Throws away what was finished before `before`.
pub async fn sweep(tx: &mut Tx, before: Timestamp) -> Result<(), StoreError> {
    sqlx::query("delete from outbox where status <> 'waiting' and finished_at < $1")
        .bind(before.ms())
        .execute(tx.sql())
        .await?;
    Ok(())
}
