//! Our own store behind tower-sessions: four methods over the engine's table. The cookie's value is never kept, only its digest.

use async_trait::async_trait;
use cloudhal_engine::{Engine, secret::token_digest};
use std::fmt;
use time::OffsetDateTime;
use tower_sessions::{
    SessionStore,
    session::{Id, Record},
    session_store::{Error, Result},
};

#[derive(Clone)]
pub struct Sessions(Engine);

impl Sessions {
    pub fn new(engine: Engine) -> Self {
        Self(engine)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// What the session is kept under.
pub fn key(id: &Id) -> String {
    token_digest(&id.to_string())
}

fn data(record: &Record) -> Result<String> {
    serde_json::to_string(&record.data).map_err(|error| Error::Encode(error.to_string()))
}

fn expires(record: &Record) -> i64 {
    record.expiry_date.unix_timestamp() * 1000
}

#[async_trait]
impl SessionStore for Sessions {
    async fn create(&self, record: &mut Record) -> Result<()> {
        // 128 bits of chance do not collide.
        self.0
            .store()
            .save_session(key(&record.id), data(record)?, expires(record))
            .await
            .map_err(|error| Error::Backend(error.to_string()))
    }

    /// Never brings back a session that ended while a request was under way (guide to cases: C74). It is called after the
    /// answer was made and moves the idle time alone: where that cannot be written, the answer stands all the same.
    async fn save(&self, record: &Record) -> Result<()> {
        let saved = self
            .0
            .store()
            .update_session(key(&record.id), data(record)?, expires(record))
            .await;
        if let Err(error) = saved {
            tracing::warn!(%error, "a session's idle time could not be moved");
        }
        Ok(())
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let now = OffsetDateTime::now_utc().unix_timestamp() * 1000;
        let Some((text, expires)) = self
            .0
            .store()
            .session(&key(id), now)
            .await
            .map_err(|error| Error::Backend(error.to_string()))?
        else {
            return Ok(None);
        };
        let expiry_date = OffsetDateTime::from_unix_timestamp(expires / 1000)
            .map_err(|error| Error::Decode(error.to_string()))?;
        let data = serde_json::from_str(&text).map_err(|error| Error::Decode(error.to_string()))?;
        Ok(Some(Record {
            id: *id,
            data,
            expiry_date,
        }))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        self.0
            .store()
            .end_session(key(id))
            .await
            .map_err(|error| Error::Backend(error.to_string()))
    }
}
