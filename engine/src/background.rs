//! What runs beside the requests, on every node, without a leader: expiry, sweeping, delivering, and hearing of other nodes'
//! commits.

use crate::{
    Engine, agents,
    authority::Author,
    clock::fresh_id,
    failpoint::{self, Point},
    journal::{self, Entry},
    live::Event,
    outbox,
    sites::{self, LockedSite},
    store::{Backend, Fail, StoreError, Tx, approvals as sql, events, webhooks as webhooks_sql},
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

/// Runs until the future is dropped.
pub async fn run(engine: Engine) {
    let poll = poll_events(engine.clone());
    let sweep = sweep_for_ever(engine.clone());
    let deliver = deliver_for_ever(engine.clone());
    match engine.store().backend() {
        Backend::Sqlite => {
            futures::join!(poll, sweep, deliver);
        }
        Backend::Postgres => {
            futures::join!(
                poll,
                sweep,
                deliver,
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
        if let Err(refusal) = sweep(&engine).await {
            tracing::warn!(%refusal, "sweep");
        }
    }
}

/// Stores every expiry that is due and throws away what nobody needs any more. A test calls it with its own clock.
pub async fn sweep(engine: &Engine) -> Result<(), Refusal> {
    let now = engine.now();
    for site in sql::overdue_sites(engine.store().read(), now, 1000).await? {
        let unit = engine.store().write(move |tx| {
            Box::pin(async move {
                let now = lock(tx, &site).await?;
                sites::expire_overdue(tx, &site, now).await?;
                failpoint::reach(Point::InSweep);
                Ok(())
            })
        });
        unit.await?;
    }
    // What a change of access voids at once is found again here, should a process have ended between the two.
    agents::void_unreachable(engine).await?;
    engine.used().keep(engine).await?;
    engine.store().sweep_sessions(now.ms()).await?;
    let before = now.minus(EVENTS_KEPT).ms();
    engine
        .store()
        .write(move |tx| {
            Box::pin(async move {
                events::sweep(tx, before).await?;
                Ok(webhooks_sql::forget_secrets(tx, now).await?)
            })
        })
        .await?;
    outbox::sweep(engine).await
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

/// Starts a new restore epoch: nothing that was asked or approved before it redeems any more (guide to security: A19).
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
    journal::workspace(
        tx,
        now,
        Entry {
            kind: "instance.restored",
            actor: &by,
            approval: None,
            body: json!({"voided": voided.len(), "undelivered": undelivered}),
        },
    )
    .await?;
    Ok(voided.len())
}
