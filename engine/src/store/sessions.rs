//! SQL for browser sessions; the shape of a session is the server's business.

use super::{Fail, Store, StoreError, Tx};
use sqlx::Row as _;

/// Signs everybody out, everywhere; how many sessions there were.
pub async fn end_all(tx: &mut Tx) -> Result<u64, StoreError> {
    let done = sqlx::query("delete from sessions")
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected())
}

impl Store {
    /// Keeps a session under the digest of its cookie.
    pub async fn save_session(
        &self,
        id: String,
        data: String,
        expires_at: i64,
    ) -> Result<(), Fail> {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query("insert into sessions (id, data, expires_at) values ($1, $2, $3) on conflict (id) do update set data = excluded.data, expires_at = excluded.expires_at")
                    .bind(id)
                    .bind(data)
                    .bind(expires_at)
                    .execute(tx.sql())
                    .await?;
                Ok(())
            })
        })
        .await
    }

    /// Only changes a session that is still there: a request that was under way during sign-out must not bring it back.
    pub async fn update_session(
        &self,
        id: String,
        data: String,
        expires_at: i64,
    ) -> Result<bool, Fail> {
        self.write(move |tx| {
            Box::pin(async move {
                let done =
                    sqlx::query("update sessions set data = $1, expires_at = $2 where id = $3")
                        .bind(data)
                        .bind(expires_at)
                        .bind(id)
                        .execute(tx.sql())
                        .await?;
                Ok(done.rows_affected() == 1)
            })
        })
        .await
    }

    pub async fn session(&self, id: &str, now: i64) -> Result<Option<(String, i64)>, StoreError> {
        let row =
            sqlx::query("select data, expires_at from sessions where id = $1 and expires_at > $2")
                .bind(id)
                .bind(now)
                .fetch_optional(self.read())
                .await?;
        row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .transpose()
    }

    pub async fn end_session(&self, id: String) -> Result<(), Fail> {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query("delete from sessions where id = $1")
                    .bind(id)
                    .execute(tx.sql())
                    .await?;
                Ok(())
            })
        })
        .await
    }

    pub async fn sweep_sessions(&self, now: i64) -> Result<(), Fail> {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::query("delete from sessions where expires_at <= $1")
                    .bind(now)
                    .execute(tx.sql())
                    .await?;
                Ok(())
            })
        })
        .await
    }
}
