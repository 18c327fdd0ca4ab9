//! The only place that names sqlx. Opens either engine, brings the schema up to date, and runs units of work.
//!
//! Every write goes through [`Store::write`]: a unit of work gets a [`Tx`], returns a value or a [`Fail`], and is answered
//! only after COMMIT. The first statement of a unit is a write (for a site the one that locks the site's row), so that
//! neither engine ever upgrades a read lock. On SQLite one writer owns the one write connection and lets units that queue
//! up share a COMMIT; on PostgreSQL each unit has a transaction of its own, since one failing unit would abort its
//! neighbours there. A unit runs detached from the request that asked: a hang-up never leaves half of it.

/// A read on which the unit's right to go on rests. On PostgreSQL its rows stay as they are until the unit ends, or a
/// revocation could be answered before an effect that it should have stopped; SQLite has one writer and needs no such thing.
macro_rules! held {
    ($tx:expr, $sql:expr, of $tables:literal) => {
        match $tx.backend() {
            $crate::store::Backend::Sqlite => $sql,
            $crate::store::Backend::Postgres => concat!($sql, " for share of ", $tables),
        }
    };
}

/// PostgreSQL's own clock at this moment, in milliseconds; not the transaction's, which may have waited for a lock.
macro_rules! shared_clock {
    // Differs by necessity: SQLite has no clock that several nodes share.
    () => {
        "cast(extract(epoch from clock_timestamp()) * 1000 as bigint)"
    };
}

mod error;
mod migrate;
mod writer;

pub mod agents;
pub mod approvals;
pub mod events;
pub mod journal;
pub mod nodes;
pub mod outbox;
pub mod people;
pub mod personal_keys;
pub mod policies;
pub mod search;
pub mod sessions;
pub mod signing_keys;
pub mod sites;
pub mod versions;
pub mod webhooks;

pub use error::{Fail, StoreError};
pub use writer::Tx;

/// One connection, of a unit of work or of the readers: enough to look at things.
pub type Connection = sqlx::AnyConnection;

use crate::{clock::NodeClock, live::Live};
use cloudhal_domain::time::Timestamp;
use futures::future::BoxFuture;
use sqlx::{
    AnyConnection, AnyPool, Connection as _, Row as _,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use std::{
    path::{Path, PathBuf},
    str::FromStr as _,
    time::Duration,
};

/// Below it SQLite can corrupt a WAL file (guide to cases: C77).
const SQLITE_VERSION_MIN: (u32, u32, u32) = (3, 51, 3);
const READERS_SQLITE: u32 = 4;
const CONNECTIONS_POSTGRES: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

#[derive(Clone)]
pub struct Store {
    backend: Backend,
    read: AnyPool,
    writer: writer::Writer,
    clock: NodeClock,
    url: String,
}

impl Store {
    /// Opens and migrates. `sqlite://PATH` creates its file; `sqlite::memory:` forgets everything at the end;
    /// `postgres://…` is the swap to many nodes, and `patient` says that a statement may take its time there.
    pub(crate) async fn open(
        url: &str,
        live: Live,
        clock: NodeClock,
        patient: bool,
    ) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        let backend = if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            Backend::Postgres
        } else {
            Backend::Sqlite
        };
        let (read, write) = match backend {
            Backend::Sqlite => {
                let (read, write) = open_sqlite(url).await?;
                migrate::run(&write, backend).await?;
                (read, write)
            }
            Backend::Postgres => {
                // First on a connection of its own: a pool tries until its time is up and then says only that, and a migration,
                // or the wait for another node's, may take longer than any call.
                AnyConnection::connect(url)
                    .await
                    .map_err(|error| {
                        StoreError::Unsuitable(format!("no database can be used there: {error}"))
                    })?
                    .close()
                    .await?;
                let migrating = pool(url, 1, Setup::PostgresMigrating).await?;
                migrate::run(&migrating, backend).await?;
                migrating.close().await;
                let setup = match patient {
                    true => Setup::PostgresPatient,
                    false => Setup::Postgres,
                };
                let pool = pool(url, CONNECTIONS_POSTGRES, setup).await?;
                (pool.clone(), pool)
            }
        };
        let writer = writer::Writer::start(backend, write, live, clock.clone());
        let store = Self {
            backend,
            read,
            writer,
            clock,
            url: url.to_owned(),
        };
        store.keep_time().await?;
        Ok(store)
    }

    /// Brings this node's clock in step with the database's, where nodes share one.
    pub(crate) async fn keep_time(&self) -> Result<(), StoreError> {
        if self.backend == Backend::Postgres {
            let row = sqlx::query(writer::SHARED_CLOCK)
                .fetch_one(&self.read)
                .await?;
            self.clock.keep_to(Timestamp(row.try_get(0)?));
        }
        Ok(())
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The address, for the listener of another connection; may hold a password, so never log it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A reader of one's own, for several reads in a row.
    pub(crate) async fn reader(
        &self,
    ) -> Result<impl std::ops::DerefMut<Target = Connection> + use<>, StoreError> {
        Ok(self.read.acquire().await?)
    }

    /// For reads outside any unit of work.
    pub(crate) fn read(&self) -> &AnyPool {
        &self.read
    }

    /// Runs one unit of work: all of it is committed and then answered, or none of it happened.
    pub async fn write<T, U>(&self, unit: U) -> Result<T, Fail>
    where
        T: Send + 'static,
        U: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Fail>> + Send + 'static,
    {
        self.writer.run(unit).await
    }

    /// Whether the database answers; for readiness.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("select id from instance")
            .fetch_optional(&self.read)
            .await?;
        Ok(())
    }

    /// Closes every connection, so that a SQLite file is whole without its log.
    pub async fn close(&self) {
        self.read.close().await;
        self.writer.close().await;
    }

    pub async fn sqlite_version() -> Result<String, StoreError> {
        sqlx::any::install_default_drivers();
        let mut connection = sqlx::AnyConnection::connect("sqlite::memory:").await?;
        Ok(sqlx::query("select sqlite_version()")
            .fetch_one(&mut connection)
            .await?
            .try_get(0)?)
    }

    /// A consistent copy of a SQLite database while it serves.
    pub async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        if self.backend == Backend::Postgres {
            return Err(StoreError::Unsuitable("backup copies a SQLite database; for PostgreSQL use pg_dump, and `cloudhal restored` after a restore".into()));
        }
        let path = to
            .to_str()
            .ok_or_else(|| StoreError::Unsuitable("the backup's path is not valid UTF-8".into()))?;
        let mut connection = sqlx::AnyConnection::connect(&self.url).await?;
        sqlx::query("vacuum into $1")
            .bind(path)
            .execute(&mut connection)
            .await?;
        Ok(())
    }
}

/// The address of a SQLite file, whatever its name.
pub fn sqlite_url(file: &Path) -> String {
    let path = file.display().to_string();
    let escaped = path
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    format!("sqlite://{escaped}")
}

/// The file of a SQLite address; `None` for one that has none.
pub fn sqlite_file(url: &str) -> Option<PathBuf> {
    if !url.starts_with("sqlite:") || url.contains(":memory:") {
        return None;
    }
    let options = sqlx::sqlite::SqliteConnectOptions::from_str(url).ok()?;
    Some(options.get_filename().to_owned())
}

#[derive(Clone, Copy)]
enum Setup {
    SqliteWriter,
    SqliteReader,
    Postgres,
    /// For work that takes as long as it takes: nobody's call waits for it.
    PostgresPatient,
    PostgresMigrating,
}

async fn open_sqlite(url: &str) -> Result<(AnyPool, AnyPool), StoreError> {
    check_sqlite_version().await?;
    if url.contains(":memory:") {
        // Each connection to `:memory:` is a database of its own: reader and writer must be the same one.
        let pool = pool("sqlite::memory:", 1, Setup::SqliteWriter).await?;
        return Ok((pool.clone(), pool));
    }
    let url = if url.contains("mode=") {
        url.to_owned()
    } else {
        format!("{url}{}mode=rwc", if url.contains('?') { '&' } else { '?' })
    };
    let write = pool(&url, 1, Setup::SqliteWriter)
        .await
        .map_err(|error| StoreError::Unsuitable(format!("{url} cannot be used: {error}")))?;
    let read = pool(&url, READERS_SQLITE, Setup::SqliteReader).await?;
    Ok((read, write))
}

async fn pool(url: &str, connections: u32, setup: Setup) -> Result<AnyPool, StoreError> {
    let options = AnyConnectOptions::from_str(url)?;
    let pool = AnyPoolOptions::new()
        .max_connections(connections)
        .min_connections(1)
        .acquire_timeout(Duration::from_secs(5))
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(matches!(setup, Setup::Postgres | Setup::PostgresPatient))
        .after_connect(move |connection, _| {
            Box::pin(async move {
                let pragmas: &[&'static str] = match setup {
                    Setup::SqliteWriter => &[
                        "pragma journal_mode = wal",
                        "pragma synchronous = full",
                        "pragma foreign_keys = on",
                        "pragma busy_timeout = 5000",
                    ],
                    Setup::SqliteReader => &[
                        "pragma foreign_keys = on",
                        "pragma busy_timeout = 5000",
                        "pragma query_only = on",
                    ],
                    Setup::PostgresMigrating => &[],
                    Setup::PostgresPatient => &["set lock_timeout = '5s'"],
                    // Nobody waits for ever: not for a lock that a stopped node holds, nor that node's transaction for its node.
                    Setup::Postgres => &[
                        "set lock_timeout = '5s'",
                        "set statement_timeout = '30s'",
                        "set idle_in_transaction_session_timeout = '10s'",
                    ],
                };
                for pragma in pragmas {
                    sqlx::query(*pragma).execute(&mut *connection).await?;
                }
                Ok(())
            })
        })
        .connect_with(options)
        .await?;
    Ok(pool)
}

async fn check_sqlite_version() -> Result<(), StoreError> {
    let text = Store::sqlite_version().await?;
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    let version = (
        parts.next().unwrap_or(0),
        parts.next().unwrap_or(0),
        parts.next().unwrap_or(0),
    );
    if version < SQLITE_VERSION_MIN {
        return Err(StoreError::Unsuitable(format!(
            "SQLite {text} can corrupt its file; {SQLITE_VERSION_MIN:?} or later is needed"
        )));
    }
    Ok(())
}
