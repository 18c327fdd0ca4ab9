//! SQL by hand, past the product: what the checker reads, and what a scenario breaks on purpose. Nothing else here names sqlx.

use anyhow::{Context as _, Result};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Row as _, any::AnyRow};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Where a scenario's database is.
#[derive(Clone, Debug)]
pub enum Database {
    Sqlite(PathBuf),
    /// The server's address up to the slash, and the database's name.
    Postgres {
        server: String,
        name: String,
    },
}

impl Database {
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => cloudhal_engine::store::sqlite_url(file),
            Self::Postgres { server, name } => format!("{server}/{name}"),
        }
    }

    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(file) => Some(file),
            Self::Postgres { .. } => None,
        }
    }

    pub async fn open(&self) -> Result<Sql> {
        Sql::open(&self.url()).await
    }

    /// The first column of the first row.
    pub async fn number(&self, sql: &str) -> Result<i64> {
        let mut sql_by_hand = self.open().await?;
        let number = sql_by_hand.number(sql).await;
        sql_by_hand.close().await?;
        number
    }

    pub async fn texts(&self, sql: &str) -> Result<Vec<String>> {
        let mut sql_by_hand = self.open().await?;
        let rows = sql_by_hand.rows(sql, |row| text(row, 0)).await;
        sql_by_hand.close().await?;
        rows
    }

    pub async fn execute(&self, sql: &str) -> Result<()> {
        let mut sql_by_hand = self.open().await?;
        sql_by_hand.execute(sql).await?;
        sql_by_hand.close().await
    }
}

/// One connection.
pub struct Sql(AnyConnection);

impl Sql {
    pub async fn open(url: &str) -> Result<Self> {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(url)
            .await
            .with_context(|| format!("connecting to {url}"))?;
        if url.starts_with("sqlite") {
            sqlx::query("pragma busy_timeout = 10000")
                .execute(&mut connection)
                .await?;
        }
        Ok(Self(connection))
    }

    pub async fn execute(&mut self, sql: &str) -> Result<()> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
            .execute(&mut self.0)
            .await
            .with_context(|| sql.to_owned())?;
        Ok(())
    }

    pub async fn number(&mut self, sql: &str) -> Result<i64> {
        let row = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_one(&mut self.0)
            .await
            .with_context(|| sql.to_owned())?;
        Ok(row.try_get(0)?)
    }

    pub async fn rows<T>(
        &mut self,
        sql: &str,
        read: impl Fn(&AnyRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .fetch_all(&mut self.0)
            .await
            .with_context(|| sql.to_owned())?;
        rows.iter().map(read).collect()
    }

    pub async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}

pub fn text(row: &AnyRow, column: usize) -> Result<String> {
    Ok(row.try_get(column)?)
}

pub fn number(row: &AnyRow, column: usize) -> Result<i64> {
    Ok(row.try_get(column)?)
}
