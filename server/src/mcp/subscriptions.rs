//! `subscriptions/listen` (2026-07-28): a stream that says which of the caller's sites and requests moved. It says no more than
//! that; what became of them is read, with the key as it is then. It writes nothing, and ends with the server, the client or
//! the key.

use super::{reading, resources::Place};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::{ApprovalId, SiteId},
    view::LiveHint,
};
use cloudhal_engine::{Engine, callers::Caller, watching};
use rmcp::{
    model::{ErrorCode, ErrorData, SubscriptionFilter},
    service::SubscriptionContext,
};
use serde_json::json;
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{
    broadcast::{
        self,
        error::{RecvError, TryRecvError},
    },
    watch,
};

/// Streams that one caller may have open; a client needs one.
pub const STREAMS_PER_CALLER_MAX: usize = 8;
/// Resources that one stream watches; what comes after them is left out of what is acknowledged.
pub const RESOURCES_MAX: usize = 64;

/// What can be listened to of what was asked for: sites and requests. Which of them are the caller's is nobody's business here:
/// of what is not, nothing is ever told.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let watched =
        uris.filter(|uri| matches!(Place::parse(uri), Some(Place::Site(_) | Place::Approval(_))));
    let mut seen = BTreeSet::new();
    let watched = watched.filter(|uri| seen.insert(uri.as_str()));
    let watched: Vec<String> = watched.take(RESOURCES_MAX).cloned().collect();
    let mut filter = SubscriptionFilter::new();
    if requested.resource_subscriptions.is_some() {
        filter.resource_subscriptions = Some(watched);
    }
    filter
}

/// The streams that are open, counted for each caller.
#[derive(Clone, Default)]
pub struct Streams(Arc<Mutex<HashMap<String, usize>>>);

impl Streams {
    fn enter(&self, caller: &Caller) -> Option<Open> {
        let who = format!("{}:{}", caller.kind().as_str(), caller.id());
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(who.clone()).or_default();
        if *count >= STREAMS_PER_CALLER_MAX {
            return None;
        }
        *count += 1;
        Some(Open {
            streams: self.clone(),
            who,
        })
    }
}

struct Open {
    streams: Streams,
    who: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut open = self
            .streams
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.who);
            }
        }
    }
}

/// The hints of streams whose acknowledgements are on their way: what moves from then on is told, though nobody listens yet.
/// The stream that begins first takes the oldest, which heard no less than its own.
#[derive(Clone, Default)]
pub struct Early(Arc<Mutex<VecDeque<broadcast::Receiver<LiveHint>>>>);

impl Early {
    pub fn begin(&self, engine: &Engine) {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        begun.push_back(engine.live().subscribe());
        if begun.len() > STREAMS_PER_CALLER_MAX {
            begun.pop_front();
        }
    }

    fn take(&self, engine: &Engine) -> broadcast::Receiver<LiveHint> {
        let mut begun = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = begun.pop_front();
        begun.unwrap_or_else(|| engine.live().subscribe())
    }
}

/// One stream, from its acknowledgement to its end.
pub struct Listener {
    pub engine: Engine,
    pub caller: Caller,
    pub streams: Streams,
    pub early: Early,
    /// How often the key is looked at again; also how long a client may take to take a notification.
    pub recheck: Duration,
    pub stopping: watch::Receiver<bool>,
}

impl Listener {
    pub async fn listen(mut self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(_open) = self.streams.enter(&self.caller) else {
            return Err(too_many());
        };
        let mut stopping = self.stopping.clone();
        tokio::select! {
            ended = self.tell(&context) => ended,
            // Whoever listens when the server stops is told that the stream is complete.
            _ = stopping.wait_for(|stopping| *stopping) => Ok(()),
            () = context.cancelled() => Ok(()),
        }
    }

    async fn tell(&mut self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let watched = Watched::of(context.accepted());
        let mut hints = self.early.take(&self.engine);
        let mut moved = Moved::default();
        let mut tick = tokio::time::interval(self.recheck);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            for uri in std::mem::take(&mut moved.0) {
                match self.may_hear_of(&uri).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    // Told at the next turn.
                    Err(_) => {
                        moved.0.insert(uri);
                        continue;
                    }
                }
                let sent = context.sink().notify_resource_updated(uri);
                match tokio::time::timeout(self.recheck.max(Duration::from_secs(1)), sent).await {
                    Ok(Ok(())) => {}
                    // Gone, or not reading: it asks anew when it is back.
                    Ok(Err(_)) | Err(_) => return Ok(()),
                }
            }
            tokio::select! {
                _ = tick.tick() => self.expect_key().await?,
                hint = hints.recv() => {
                    moved.take(&watched, hint, &mut hints)?;
                    // Most of what moves on an instance is nobody's here.
                    if !moved.0.is_empty() {
                        self.expect_key().await?;
                    }
                }
            }
        }
    }

    async fn expect_key(&self) -> Result<(), ErrorData> {
        match watching::may_still(&self.engine, &self.caller, None).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ErrorData::invalid_request(
                "unauthorized: the key that this stream was opened with is no longer good.",
                Some(json!({"code": Code::Unauthorized})),
            )),
            Err(refusal) => Err(reading::error(&refusal)),
        }
    }

    /// Whether the caller could read it now, with the tools that its key holds now.
    async fn may_hear_of(&self, uri: &str) -> Result<bool, Refusal> {
        let Some(place) = Place::parse(uri) else {
            return Ok(false);
        };
        let holds = match place {
            Place::Approval(_) => true,
            _ => watching::may_still(&self.engine, &self.caller, Some(place.tool())).await?,
        };
        if !holds {
            return Ok(false);
        }
        let (tool, arguments) = (place.tool(), place.arguments());
        match reading::read(&self.engine, &self.caller, tool, arguments).await {
            Ok(_) => Ok(true),
            Err(refusal) if refusal.code.retryable() => Err(refusal),
            Err(_) => Ok(false),
        }
    }
}

fn too_many() -> ErrorData {
    let refusal = Refusal::new(
        Code::RateLimited,
        format!(
            "This caller has {STREAMS_PER_CALLER_MAX} streams open already. Close one, or watch more resources with one of them."
        ),
    );
    ErrorData::new(
        ErrorCode::INVALID_REQUEST,
        refusal.to_string(),
        Some(json!(refusal.with("limit", STREAMS_PER_CALLER_MAX))),
    )
}

/// The accepted addresses by what they name.
struct Watched {
    sites: HashMap<SiteId, String>,
    approvals: HashMap<ApprovalId, String>,
}

impl Watched {
    fn of(accepted: &SubscriptionFilter) -> Self {
        let mut watched = Self {
            sites: HashMap::new(),
            approvals: HashMap::new(),
        };
        for uri in accepted.resource_subscriptions.iter().flatten() {
            match Place::parse(uri) {
                Some(Place::Site(site)) => {
                    watched.sites.insert(SiteId::new(site), uri.clone());
                }
                Some(Place::Approval(id)) => {
                    watched.approvals.insert(ApprovalId::new(id), uri.clone());
                }
                _ => {}
            }
        }
        watched
    }
}

/// What moved and is not told yet: a busy site is told of once, however often it moved meanwhile.
#[derive(Default)]
struct Moved(BTreeSet<String>);

impl Moved {
    fn note(&mut self, watched: &Watched, hint: &LiveHint) {
        let site = (hint.kind == "site.changed").then(|| watched.sites.get(&hint.site));
        let approval = hint.approval.as_ref().map(|id| watched.approvals.get(id));
        self.0.extend(site.flatten().cloned());
        self.0.extend(approval.flatten().cloned());
    }

    /// One hint and all that came after it.
    fn take(
        &mut self,
        watched: &Watched,
        first: Result<LiveHint, RecvError>,
        hints: &mut broadcast::Receiver<LiveHint>,
    ) -> Result<(), ErrorData> {
        match first {
            Ok(hint) => self.note(watched, &hint),
            // Some were missed, so each of them may have moved.
            Err(RecvError::Lagged(_)) => self.note_all(watched),
            Err(RecvError::Closed) => {
                return Err(ErrorData::internal_error("The server is stopping.", None));
            }
        }
        self.drain(watched, hints);
        Ok(())
    }

    fn drain(&mut self, watched: &Watched, hints: &mut broadcast::Receiver<LiveHint>) {
        loop {
            match hints.try_recv() {
                Ok(hint) => self.note(watched, &hint),
                Err(TryRecvError::Lagged(_)) => self.note_all(watched),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn note_all(&mut self, watched: &Watched) {
        self.0.extend(watched.sites.values().cloned());
        self.0.extend(watched.approvals.values().cloned());
    }
}
