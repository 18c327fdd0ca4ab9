//! The embedded migrations. See `migrations/README.md` for the rules they follow.

use super::{Backend, StoreError};
use crate::failpoint::{self, Point};
use sqlx::{
    AnyPool, Row as _,
    migrate::{Migration, MigrationType, Migrator},
};

struct Step {
    number: i64,
    name: &'static str,
    both: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! step {
    ($number:literal $name:literal) => {
        Step {
            number: $number,
            name: $name,
            both: text!($name, ".sql"),
            sqlite: "",
            postgres: "",
        }
    };
    ($number:literal $name:literal differs) => {
        Step {
            number: $number,
            name: $name,
            both: text!($name, ".sql"),
            sqlite: text!($name, ".sqlite.sql"),
            postgres: text!($name, ".postgres.sql"),
        }
    };
}

macro_rules! text {
    ($name:literal, $end:literal) => {
        include_str!(concat!("../../../migrations/", $name, $end))
    };
}

const STEPS: &[Step] = &[
    step!(1 "0001_people"),
    step!(2 "0002_sites"),
    step!(3 "0003_versions"),
    step!(4 "0004_agents"),
    step!(5 "0005_journal" differs),
    step!(6 "0006_approvals"),
    step!(7 "0007_policy"),
    step!(8 "0008_outbox"),
    step!(9 "0009_access"),
    step!(10 "0010_history"),
    step!(11 "0011_made_by"),
    step!(12 "0012_personal_keys"),
    step!(13 "0013_taken_off"),
    step!(14 "0014_site_history"),
    step!(15 "0015_search" differs),
];

/// Brings the schema up to date; refuses a database that a newer binary wrote, before touching it.
pub(super) async fn run(pool: &AnyPool, backend: Backend) -> Result<(), StoreError> {
    refuse_newer(pool, backend).await?;
    failpoint::reach(Point::InMigration);
    let migrations = STEPS
        .iter()
        .map(|step| {
            let own = match backend {
                Backend::Sqlite => step.sqlite,
                Backend::Postgres => step.postgres,
            };
            let sql = sqlx::AssertSqlSafe(format!("{}\n{own}", step.both));
            Migration::new(
                step.number,
                step.name.into(),
                MigrationType::Simple,
                sqlx::SqlSafeStr::into_sql_str(sql),
                false,
            )
        })
        .collect();
    Migrator::with_migrations(migrations).run(pool).await?;
    Ok(())
}

async fn refuse_newer(pool: &AnyPool, backend: Backend) -> Result<(), StoreError> {
    // Differs by necessity: each engine keeps its catalogue elsewhere.
    let table = match backend {
        Backend::Sqlite => "select count(*) from sqlite_master where name = '_sqlx_migrations'",
        Backend::Postgres => {
            "select count(*) from pg_tables where tablename = '_sqlx_migrations' and schemaname = current_schema()"
        }
    };
    let exists: i64 = sqlx::query(table).fetch_one(pool).await?.try_get(0)?;
    if exists == 0 {
        return Ok(());
    }
    let newest: Option<i64> = sqlx::query("select max(version) from _sqlx_migrations")
        .fetch_one(pool)
        .await?
        .try_get(0)?;
    let known = STEPS.last().map_or(0, |step| step.number);
    match newest {
        Some(newest) if newest > known => Err(StoreError::Unsuitable(format!(
            "the database is at migration {newest}, this binary knows {known}: it was written by a newer Cloudhal. Nothing was touched. Start that version instead."
        ))),
        _ => Ok(()),
    }
}
