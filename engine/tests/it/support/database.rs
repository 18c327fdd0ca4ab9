//! A database for one test, and a second way into it: SQL by hand, as an operator or an attacker would write it. Nothing
//! else in the suite names sqlx.

use cloudhal_engine::clock::fresh_id;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

pub enum Database {
    Sqlite { folder: tempfile::TempDir },
    Postgres { admin: String, name: String },
}

impl Database {
    /// `None` where the engine is not at hand.
    pub async fn fresh(kind: Kind) -> Option<Self> {
        sqlx::any::install_default_drivers();
        match kind {
            Kind::Sqlite => Some(Self::Sqlite {
                folder: tempfile::tempdir().unwrap(),
            }),
            Kind::Postgres => {
                let admin = std::env::var("TEST_POSTGRES_URL").ok()?;
                let name = format!("test_{}", fresh_id());
                let mut connection = connect(&admin).await;
                execute(&mut connection, &format!("create database {name}"))
                    .await
                    .unwrap();
                Some(Self::Postgres { admin, name })
            }
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::Sqlite { .. } => Kind::Sqlite,
            Self::Postgres { .. } => Kind::Postgres,
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite { folder } => {
                format!("sqlite://{}", folder.path().join("cloudhal.db").display())
            }
            Self::Postgres { admin, name } => {
                let (server, _) = admin.rsplit_once('/').unwrap();
                format!("{server}/{name}")
            }
        }
    }

    /// The file, where there is one.
    pub fn file(&self) -> Option<std::path::PathBuf> {
        match self {
            Self::Sqlite { folder } => Some(folder.path().join("cloudhal.db")),
            Self::Postgres { .. } => None,
        }
    }

    /// Statements by hand; the error is the database's own words.
    pub async fn try_sql(&self, sql: &str) -> Result<(), String> {
        let mut connection = connect(&self.url()).await;
        let done = execute(&mut connection, sql).await;
        connection.close().await.unwrap();
        done
    }

    pub async fn number(&self, sql: &str) -> i64 {
        let mut connection = connect(&self.url()).await;
        let row = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&mut connection)
            .await
            .unwrap();
        let number = row.try_get(0).unwrap();
        connection.close().await.unwrap();
        number
    }

    /// PostgreSQL: waits until somebody in this database waits for a lock.
    pub async fn somebody_waits(&self) {
        let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while self.number(sql).await == 0 {
            tokio::task::yield_now().await;
        }
    }

    /// A statement whose transaction stays open, as that of somebody who is not done yet.
    pub async fn unfinished(&self, sql: &str) -> Unfinished {
        let mut connection = connect(&self.url()).await;
        execute(&mut connection, "begin").await.unwrap();
        execute(&mut connection, sql).await.unwrap();
        Unfinished(connection)
    }

    /// The first column of every row.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let mut connection = connect(&self.url()).await;
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        rows.iter().map(|row| row.try_get(0).unwrap()).collect()
    }

    pub async fn remove(&self) {
        if let Self::Postgres { admin, name } = self {
            let mut connection = connect(admin).await;
            execute(
                &mut connection,
                &format!("drop database {name} with (force)"),
            )
            .await
            .unwrap();
        }
    }
}

pub struct Unfinished(AnyConnection);

impl Unfinished {
    pub async fn commit(mut self) {
        execute(&mut self.0, "commit").await.unwrap();
        self.0.close().await.unwrap();
    }
}

async fn connect(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(url).await.unwrap()
}

async fn execute(connection: &mut AnyConnection, sql: &str) -> Result<(), String> {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(|error| error.to_string())
}
