//! SQL for the events table: hints that something changed, kept for an hour.

use super::{Store, StoreError, Tx};
use crate::live::Event;
use cloudhal_domain::{
    id::{ApprovalId, SiteId},
    view::LiveHint,
};
use sqlx::AnyPool;

pub async fn insert(tx: &mut Tx, event: &Event, at: i64) -> Result<(), StoreError> {
    sqlx::query(
        "insert into events (id, at, kind, site_id, approval_id) values ($1, $2, $3, $4, $5)",
    )
    .bind(&event.id)
    .bind(at)
    .bind(&event.hint.kind)
    .bind(event.hint.site.as_str())
    .bind(event.hint.approval.as_ref().map(ApprovalId::as_str))
    .execute(tx.sql())
    .await?;
    Ok(())
}

/// Events stamped at or after `since`; a reader overlaps its windows, since a commit may come later than its stamp.
pub async fn since(pool: &AnyPool, since: i64) -> Result<Vec<Event>, StoreError> {
    let rows: Vec<(String, String, String, Option<String>)> = sqlx::query_as(
        "select id, kind, site_id, approval_id from events where at >= $1 order by at",
    )
    .bind(since)
    .fetch_all(pool)
    .await?;
    let event = |(id, kind, site, approval): (String, String, String, Option<String>)| Event {
        id,
        hint: LiveHint {
            kind,
            site: SiteId::new(site),
            approval: approval.map(ApprovalId::new),
        },
    };
    Ok(rows.into_iter().map(event).collect())
}

pub async fn sweep(tx: &mut Tx, before: i64) -> Result<(), StoreError> {
    sqlx::query("delete from events where at < $1")
        .bind(before)
        .execute(tx.sql())
        .await?;
    Ok(())
}

const CHANNEL: &str = "cloudhal";

impl Store {
    /// PostgreSQL: calls `heard` after every notification, and once at the start, since some may have been missed.
    pub async fn listen<F, R>(&self, heard: F) -> Result<(), StoreError>
    where
        F: Fn() -> R,
        R: Future<Output = Result<(), StoreError>>,
    {
        let mut listener = sqlx::postgres::PgListener::connect(self.url()).await?;
        listener.listen(CHANNEL).await?;
        loop {
            heard().await?;
            // None means that the connection was lost and made anew: look again.
            let _ = listener.try_recv().await?;
            while listener.next_buffered().is_some() {}
        }
    }

    /// PostgreSQL: tells the other nodes to read the events table.
    pub async fn notify(&self) -> Result<(), StoreError> {
        sqlx::query("select pg_notify('cloudhal', '')")
            .execute(self.read())
            .await?;
        Ok(())
    }
}
