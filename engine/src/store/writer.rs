//! Units of work, and who runs them. See the module above for what is promised.

use super::{Backend, Connection, Fail, StoreError};
use crate::{
    clock::NodeClock,
    failpoint::{self, Point},
    live::{Event, Live},
};
use cloudhal_domain::time::Timestamp;
use futures::{FutureExt as _, future::BoxFuture};
use sqlx::{Any, AnyPool, Row as _, pool::PoolConnection};
use std::panic::AssertUnwindSafe;
use tokio::sync::{mpsc, oneshot};

/// Units that may share one COMMIT on SQLite.
const BATCH_MAX: usize = 64;
const QUEUE_MAX: usize = 1024;

/// One open transaction, lent to a unit of work.
pub struct Tx {
    connection: PoolConnection<Any>,
    backend: Backend,
    clock: NodeClock,
    hints: Vec<Event>,
    spends: bool,
}

pub(super) const SHARED_CLOCK: &str = concat!("select ", shared_clock!());

impl Tx {
    pub(crate) fn sql(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// The time of this unit of work. Nodes that share a PostgreSQL go by its clock; a SQLite file has only the machine's. A
    /// unit that holds a site takes the moment of its lock instead, [`crate::sites::LockedSite::now`].
    pub async fn now(&mut self) -> Result<Timestamp, StoreError> {
        match self.backend {
            Backend::Sqlite => Ok(self.clock.now()),
            Backend::Postgres => {
                let row = sqlx::query(SHARED_CLOCK)
                    .fetch_one(&mut *self.connection)
                    .await?;
                Ok(self.clock.keep_to(Timestamp(row.try_get(0)?)))
            }
        }
    }

    /// The same from what a statement brought along anyway.
    pub(super) fn now_from(&self, shared: Option<i64>) -> Timestamp {
        match shared {
            Some(ms) => self.clock.keep_to(Timestamp(ms)),
            None => self.clock.now(),
        }
    }

    /// Says after COMMIT, to whoever waits in this process, what to look at again.
    pub(crate) fn hint(&mut self, event: Event) {
        self.hints.push(event);
    }

    /// Says that this transaction spends an approval: the failpoints around COMMIT mean such ones only.
    pub(crate) fn spends(&mut self) {
        self.spends = true;
    }

    /// Begins a part that may be undone on its own; what came before stays.
    pub(crate) async fn begin_part(&mut self) -> Result<Part, StoreError> {
        self.execute("savepoint part").await?;
        Ok(Part {
            hints: self.hints.len(),
        })
    }

    pub(crate) async fn keep_part(&mut self, _: Part) -> Result<(), StoreError> {
        self.execute("release savepoint part").await
    }

    pub(crate) async fn undo_part(&mut self, part: Part) -> Result<(), StoreError> {
        self.hints.truncate(part.hints);
        self.execute("rollback to savepoint part").await?;
        self.execute("release savepoint part").await
    }

    async fn execute(&mut self, sql: &'static str) -> Result<(), StoreError> {
        sqlx::query(sql).execute(&mut *self.connection).await?;
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        // Differs by necessity: SQLite must take its write lock at once, or a reader's snapshot could not be upgraded.
        self.execute(if self.backend == Backend::Sqlite {
            "begin immediate"
        } else {
            "begin"
        })
        .await
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        if self.spends {
            failpoint::reach(Point::AtCommit);
        }
        if let Err(error) = self.execute("commit").await {
            tracing::error!(%error, "commit");
            return Err(StoreError::Uncertain);
        }
        if self.spends {
            failpoint::reach(Point::AfterCommit);
        }
        Ok(())
    }
}

/// An open part of a unit. Dropped without being kept or undone it fails with its unit.
#[must_use]
pub(crate) struct Part {
    hints: usize,
}

pub(super) type Finish = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What a unit that has run asks of its transaction.
pub(super) struct Ran {
    keep: bool,
    machinery_failed: bool,
    finish: Finish,
}

pub(super) type Job = Box<dyn for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Ran> + Send>;

#[derive(Clone)]
pub(super) enum Writer {
    Sqlite(mpsc::Sender<Job>, AnyPool),
    Postgres(Surroundings),
}

/// What every unit of work is run with.
#[derive(Clone)]
pub(super) struct Surroundings {
    pool: AnyPool,
    live: Live,
    clock: NodeClock,
}

impl Surroundings {
    fn lend(&self, connection: PoolConnection<Any>, backend: Backend) -> Tx {
        Tx {
            connection,
            backend,
            clock: self.clock.clone(),
            hints: Vec::new(),
            spends: false,
        }
    }
}

impl Writer {
    pub(super) fn start(backend: Backend, pool: AnyPool, live: Live, clock: NodeClock) -> Self {
        let with = Surroundings { pool, live, clock };
        match backend {
            Backend::Postgres => Self::Postgres(with),
            Backend::Sqlite => {
                let (jobs, queue) = mpsc::channel(QUEUE_MAX);
                let pool = with.pool.clone();
                tokio::spawn(write_queue(with, queue));
                Self::Sqlite(jobs, pool)
            }
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite(_, pool) | Self::Postgres(Surroundings { pool, .. }) => {
                pool.close().await;
            }
        }
    }

    pub(super) async fn run<T, U>(&self, unit: U) -> Result<T, Fail>
    where
        T: Send + 'static,
        U: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Fail>> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |tx| {
            Box::pin(async move {
                let out = AssertUnwindSafe(unit(tx))
                    .catch_unwind()
                    .await
                    .unwrap_or(Err(Fail::Store(StoreError::Stopped)));
                Ran {
                    keep: out.is_ok(),
                    machinery_failed: matches!(out, Err(Fail::Store(_))),
                    finish: Box::new(move |committed| {
                        // Nobody may be waiting any more; the unit counts all the same.
                        let _ = answer.send(
                            out.and_then(|value| committed.map(|()| value).map_err(Fail::Store)),
                        );
                    }),
                }
            })
        });
        match self {
            Self::Sqlite(jobs, _) => jobs.send(job).await.map_err(|_| StoreError::Stopped)?,
            Self::Postgres(with) => {
                tokio::spawn(run_alone(with.clone(), job));
            }
        }
        answered.await.map_err(|_| StoreError::Stopped)?
    }
}

/// PostgreSQL: one unit, one transaction. Without a connection the job is dropped and its asker told so.
async fn run_alone(with: Surroundings, job: Job) {
    let Ok(connection) = with
        .pool
        .acquire()
        .await
        .inspect_err(|error| tracing::error!(%error, "no connection"))
    else {
        return;
    };
    let mut tx = with.lend(connection, Backend::Postgres);
    if let Err(error) = tx.begin().await {
        tracing::error!(%error, "begin");
        // Close rather than return a connection in an unknown state to the pool.
        let _ = tx.connection.close().await;
        return;
    }
    let ran = job(&mut tx).await;
    let ended = if ran.keep {
        tx.commit().await
    } else {
        tx.execute("rollback").await
    };
    let Tx {
        connection, hints, ..
    } = tx;
    if ended.is_err() || ran.machinery_failed {
        let _ = connection.close().await;
    }
    if ran.keep && ended.is_ok() {
        with.live.committed(hints);
    }
    (ran.finish)(ended);
}

/// SQLite: takes what has queued up, runs it in one transaction, commits, answers.
async fn write_queue(with: Surroundings, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.recv().await {
        let connection = match with.pool.acquire().await {
            Ok(connection) => connection,
            Err(error) => {
                // Dropping the job tells its asker; the next one tries again.
                tracing::error!(%error, "no write connection");
                continue;
            }
        };
        let mut tx = with.lend(connection, Backend::Sqlite);
        if let Err(error) = run_batch(&mut tx, first, &mut queue, &with.live).await {
            tracing::error!(%error, "batch");
            let _ = tx.execute("rollback").await;
        }
    }
}

/// The first unit needs no savepoint: if it fails, the transaction holds nothing else. An error before COMMIT drops the
/// finishers of this batch, which tells their askers that nothing was kept.
async fn run_batch(
    tx: &mut Tx,
    first: Job,
    queue: &mut mpsc::Receiver<Job>,
    live: &Live,
) -> Result<(), StoreError> {
    tx.begin().await?;
    let mut done: Vec<Finish> = Vec::new();
    let mut next = Some(first);
    let mut taken = 0;
    while let Some(job) = next.take() {
        taken += 1;
        if done.is_empty() {
            let ran = job(tx).await;
            if ran.keep {
                done.push(ran.finish);
            } else {
                tx.hints.clear();
                tx.execute("rollback").await?;
                (ran.finish)(Ok(()));
                tx.begin().await?;
            }
        } else {
            run_beside(tx, job, &mut done).await?;
        }
        // Refused units count too: a stream of them must not keep the others from their COMMIT.
        if taken < BATCH_MAX {
            next = queue.try_recv().ok();
        }
    }
    if done.is_empty() {
        return tx.execute("rollback").await;
    }
    if let Err(error) = tx.commit().await {
        for finish in done {
            finish(Err(StoreError::Uncertain));
        }
        return Err(error);
    }
    live.committed(std::mem::take(&mut tx.hints));
    for finish in done {
        finish(Ok(()));
    }
    Ok(())
}

async fn run_beside(tx: &mut Tx, job: Job, done: &mut Vec<Finish>) -> Result<(), StoreError> {
    tx.execute("savepoint unit").await?;
    let hints = tx.hints.len();
    let ran = job(tx).await;
    if ran.keep {
        tx.execute("release savepoint unit").await?;
        done.push(ran.finish);
    } else {
        tx.hints.truncate(hints);
        tx.execute("rollback to savepoint unit").await?;
        tx.execute("release savepoint unit").await?;
        (ran.finish)(Ok(()));
    }
    Ok(())
}
