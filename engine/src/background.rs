//! What runs beside the requests, on every node, without a leader: expiry, sweeping, delivering, and hearing of other nodes'
//! commits.

use crate::{
    Engine, agents,
    authority::Author,
    clock::fresh_id,
    failpoint::{self, Point},
    journal::{self, Entry},
    live::Event,
    outbox, search,
    sites::{self, LockedSite},
    store::{
        Backend, Fail, StoreError, Tx, approvals as sql, events, people as people_sql, sessions,
        webhooks as webhooks_sql,
    },
};
use cloudhal_domain::{
    code::Refusal,
    id::{ApprovalId, SiteId},
    time::Timestamp,
    view::LiveHint,
};
use serde_json::json;
use std::time::Duration;

const SWEEP_EVERY: Duration = Duration::from_secs(15);
/// Other processes on the same SQLite file are noticed within 2 s; on PostgreSQL this is the net under NOTIFY.
const POLL_EVERY: Duration = Duration::from_millis(1_000);
/// A reader's windows overlap by this much, since a commit may come later than its stamp says.
const OVERLAP: Duration = Duration::from_secs(10);
/// Retries and other nodes' leases fall due without anybody telling.
const DELIVER_EVERY: Duration = Duration::from_secs(5);
const EVENTS_KEPT: Duration = Duration::from_secs(3600);
/// A node of an older release may write beside us while a cluster is brought up to date.
const INDEX_EVERY: Duration = Duration::from_secs(600);

/// Runs until the future is dropped.
pub async fn run(engine: Engine) {
    let poll = poll_events(engine.clone());
    let sweep = sweep_for_ever(engine.clone());
    let deliver = deliver_for_ever(engine.clone());
    let index = index_for_ever(engine.clone());
    match engine.store().backend() {
        Backend::Sqlite => {
            futures::join!(poll, sweep, deliver, index);
        }
        Backend::Postgres => {
            futures::join!(
                poll,
                sweep,
                deliver,
                index,
                hear(engine.clone()),
                tell(engine.clone())
            );
        }
    }
}

async fn sweep_for_ever(engine: Engine) {
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    loop {
        tick.tick().await;
        // Whatever failed was logged where it did, and the next sweep tries it again.
        sweep(&engine).await.ok();
    }
}

async fn index_for_ever(engine: Engine) {
    let mut tick = tokio::time::interval(INDEX_EVERY);
    loop {
        tick.tick().await;
        if let Err(refusal) = search::catch_up(&engine).await {
            tracing::warn!(%refusal, "making the index of the search");
        }
    }
}

/// What failed of a work of many parts that goes on all the same: each failure is logged, the first is the answer.
#[derive(Default)]
pub(crate) struct Failures(Option<Refusal>);

impl Failures {
    /// `what` was to be done; `of` whom, where it is not about everything.
    pub fn note<T>(&mut self, what: &str, of: &str, done: Result<T, impl Into<Refusal>>) {
        if let Err(failure) = done {
            let refusal = failure.into();
            tracing::warn!(what, of, %refusal, "failed; the rest goes on, and this is tried again");
            self.0.get_or_insert(refusal);
        }
    }

    pub fn end(self) -> Result<(), Refusal> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Stores every expiry that is due and throws away what nobody needs any more. Whatever fails of it, the rest is done. A test
/// calls it with its own clock.
pub async fn sweep(engine: &Engine) -> Result<(), Refusal> {
    let (now, mut failures) = (engine.now(), Failures::default());
    failures.note("expiries", "", expire_overdue(engine, now).await);
    // What a change of access voids at once is found again here, should a process have ended between the two.
    failures.note("lost access", "", agents::void_unreachable(engine).await);
    failures.note("last uses", "", engine.used().keep(engine).await);
    let sessions = engine.store().sweep_sessions(now.ms()).await;
    failures.note("sessions", "", sessions);
    let before = now.minus(EVENTS_KEPT).ms();
    let old = engine.store().write(move |tx| {
        Box::pin(async move {
            events::sweep(tx, before).await?;
            Ok(webhooks_sql::forget_secrets(tx, now).await?)
        })
    });
    failures.note("events", "", old.await);
    failures.note("outbox", "", outbox::sweep(engine).await);
    failures.end()
}

async fn expire_overdue(engine: &Engine, now: Timestamp) -> Result<(), Refusal> {
    let mut failures = Failures::default();
    for site in sql::overdue_sites(engine.store().read(), now, 1000).await? {
        let of = site.clone();
        let unit = engine.store().write(move |tx| {
            Box::pin(async move {
                let now = lock(tx, &site).await?;
                sites::expire_overdue(tx, &site, now).await?;
                failpoint::reach(Point::InSweep);
                Ok(())
            })
        });
        failures.note("expiries of a site", &of, unit.await);
    }
    failures.end()
}

/// Carries out what the outbox holds: right after a commit that anybody told of, and by a slow poll.
async fn deliver_for_ever(engine: Engine) {
    let mut hints = engine.live().subscribe();
    let mut tick = tokio::time::interval(DELIVER_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            // A hint that was missed is no less a reason to look.
            _ = hints.recv() => {}
        }
        // Whatever came up to now is looked at in one go.
        while hints.try_recv().is_ok() {}
        loop {
            match outbox::deliver_due(&engine).await {
                Ok(0) => break,
                Ok(_) => {}
                Err(refusal) => {
                    tracing::warn!(%refusal, "delivering");
                    break;
                }
            }
        }
    }
}

async fn poll_events(engine: Engine) {
    let mut tick = tokio::time::interval(POLL_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = read_events(&engine).await {
            tracing::warn!(%error, "reading events");
        }
    }
}

/// Announces here what was committed elsewhere; what was announced before is not announced again.
pub async fn read_events(engine: &Engine) -> Result<(), StoreError> {
    engine.store().keep_time().await?;
    let since = engine.now().minus(OVERLAP);
    for event in events::since(engine.store().read(), since.ms()).await? {
        engine.live().announce(event);
    }
    Ok(())
}

/// What was announced since a moment, for a page that was made then and only now begins to listen.
pub async fn hints_since(engine: &Engine, since: Timestamp) -> Result<Vec<LiveHint>, Refusal> {
    let events = events::since(engine.store().read(), since.ms()).await?;
    Ok(events.into_iter().map(|event| event.hint).collect())
}

/// PostgreSQL: wakes on other nodes' notifications. Losing the connection costs nothing but the poll's delay.
async fn hear(engine: Engine) {
    loop {
        if let Err(error) = engine.store().listen(|| read_events(&engine)).await {
            tracing::warn!(%error, "listening");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// PostgreSQL: one notification after a commit, never inside it (it would serialise commits); commits meanwhile share the next.
async fn tell(engine: Engine) {
    let Some(mut committed) = engine.live().take_committed() else {
        return;
    };
    while committed.recv().await.is_some() {
        if let Err(error) = engine.store().notify().await {
            tracing::warn!(%error, "notifying");
        }
    }
}

/// Starts a new restore epoch: nothing that was asked or approved before it redeems any more (guide to security: A19), nobody
/// is signed in, and no sign-in link that was made before opens anything.
pub async fn start_epoch(engine: &Engine) -> Result<usize, Refusal> {
    let unit = engine
        .store()
        .write(move |tx| Box::pin(async move { restored(tx).await }));
    Ok(unit.await?)
}

/// Locks a site, whether or not there is one still, and tells the time then.
async fn lock(tx: &mut Tx, site: &str) -> Result<Timestamp, Fail> {
    match LockedSite::lock(tx, &SiteId::new(site)).await? {
        Some(locked) => Ok(locked.now()),
        None => Ok(tx.now().await?),
    }
}

async fn restored(tx: &mut Tx) -> Result<usize, Fail> {
    sql::next_epoch(tx).await?;
    let now = tx.now().await?;
    // Each site's lock before its requests and its journal, as everywhere; in one order, so that two of us cannot cross.
    let mut voided = Vec::new();
    for site in sql::sites_with_open(tx).await? {
        LockedSite::lock(tx, &SiteId::new(&site)).await?;
        for id in sql::void_restored(tx, &site, now).await? {
            voided.push((id, site.clone()));
        }
    }
    let by = Author::system();
    for (id, site) in &voided {
        let id = ApprovalId::new(id);
        let entry = Entry {
            kind: "approval.voided",
            actor: &by,
            approval: Some(&id),
            body: json!({"cause": "restored"}),
        };
        journal::site(tx, site, now, entry).await?;
        // No webhook tells it: this may be a copy beside the original, whose receivers it must not confuse.
        let event = Event {
            id: fresh_id(),
            hint: LiveHint {
                kind: "approval.voided".into(),
                site: SiteId::new(site),
                approval: Some(id),
            },
        };
        events::insert(tx, &event, now.ms()).await?;
        tx.hint(event);
    }
    let undelivered = outbox::restored(tx, now).await?;
    // Some of them were signed out, spent or ended since the copy was made, and nobody can tell which.
    let sessions = sessions::end_all(tx).await?;
    let links = people_sql::end_all_links(tx, now).await?;
    journal::workspace(
        tx,
        now,
        Entry {
            kind: "instance.restored",
            actor: &by,
            approval: None,
            body: json!({
                "voided": voided.len(), "undelivered": undelivered, "sessions": sessions, "signInLinks": links,
            }),
        },
    )
    .await?;
    Ok(voided.len())
}
