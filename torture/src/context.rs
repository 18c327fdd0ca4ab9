//! What every scenario is given: its size, its seed, the programs, and databases to break.

use crate::database::{Database, Kind, Sql};
use anyhow::{Context as _, Result, bail};
use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use xtask::postgres::Postgres;

pub struct Context {
    pub kind: Kind,
    /// How often, in the scenario's own unit.
    pub figure: usize,
    /// The long form: rates and times that the short one is too short for are judged too.
    pub long: bool,
    pub seed: u64,
    /// The `cloudhal` under torture.
    pub binary: PathBuf,
    /// The scenario's own.
    pub folder: PathBuf,
    pub postgres: Option<Arc<Mutex<Postgres>>>,
    databases: AtomicUsize,
}

impl Context {
    pub fn new(
        kind: Kind,
        figure: usize,
        long: bool,
        seed: u64,
        binary: &Path,
        folder: PathBuf,
        postgres: Option<Arc<Mutex<Postgres>>>,
    ) -> Self {
        Self {
            kind,
            figure,
            long,
            seed,
            binary: binary.to_owned(),
            folder,
            postgres,
            databases: AtomicUsize::new(0),
        }
    }

    /// Chance of its own for each user of it: what one draws does not move the others'.
    pub fn rng(&self, stream: u64) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn with_postgres<T>(&self, work: impl FnOnce(&mut Postgres) -> Result<T>) -> Result<T> {
        let postgres = self
            .postgres
            .as_ref()
            .context("no PostgreSQL was started")?;
        tokio::task::block_in_place(|| match postgres.lock() {
            Ok(mut postgres) => work(&mut postgres),
            Err(_) => bail!("an earlier failure left PostgreSQL in an unknown state"),
        })
    }

    /// The address of the PostgreSQL server, up to the slash before a database's name.
    pub fn postgres_server(&self) -> Result<String> {
        let url = self.with_postgres(|postgres| Ok(postgres.url()))?;
        let (server, _) = url
            .rsplit_once('/')
            .context("an address without a database")?;
        Ok(server.to_owned())
    }

    /// A fresh database, not yet migrated.
    pub async fn database(&self) -> Result<Database> {
        let number = self.databases.fetch_add(1, Ordering::SeqCst);
        if self.kind == Kind::Sqlite {
            let folder = self.folder.join(format!("data-{number}"));
            std::fs::create_dir_all(&folder)?;
            return Ok(Database::Sqlite(folder.join("cloudhal.db")));
        }
        let server = self.postgres_server()?;
        let name = format!("torture_{}", cloudhal_engine::clock::fresh_id());
        let mut admin = Sql::open(&format!("{server}/postgres")).await?;
        admin.execute(&format!("create database {name}")).await?;
        admin.close().await?;
        Ok(Database::Postgres { server, name })
    }
}

/// Below the ports that Linux gives to outgoing connections: a node comes back to its own after a restart, and must find it free.
const PORTS_FROM: u32 = 12_000;
/// A run has a stretch of its own, so that two runs at a time do not meet.
const PORTS_PER_RUN: u32 = 100;
const RUNS: u32 = 200;

pub fn free_port() -> Result<u16> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let own = PORTS_FROM + std::process::id() % RUNS * PORTS_PER_RUN;
    for _ in 0..PORTS_PER_RUN {
        let next = NEXT.fetch_add(1, Ordering::SeqCst) as u32 % PORTS_PER_RUN;
        let port = u16::try_from(own + next)?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no port is free from {own} on")
}
