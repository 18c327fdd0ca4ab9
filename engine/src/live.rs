//! Who is told that something changed: open Studios (every hint), and callers that wait for one approval.
//!
//! A waiter registers first, then reads the record, then waits: in any other order a decision between the read and the
//! registration would be slept through.

use cloudhal_domain::{id::ApprovalId, view::LiveHint};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{Notify, broadcast, mpsc};

/// Hints that a slow stream may fall behind before it is told to look at everything again.
const BACKLOG_MAX: usize = 1024;
/// Own events remembered, so that reading the events table does not announce them twice.
const REMEMBERED_MAX: usize = 4096;

/// A row of the events table: a hint and its id.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: String,
    pub hint: LiveHint,
}

#[derive(Clone)]
pub struct Live(Arc<Inner>);

struct Inner {
    hints: broadcast::Sender<LiveHint>,
    waiting: Mutex<HashMap<ApprovalId, (Arc<Notify>, usize)>>,
    remembered: Mutex<(HashSet<String>, VecDeque<String>)>,
    /// Woken after a commit of ours, so that other nodes can be told; nobody listens on SQLite.
    committed: mpsc::Sender<()>,
    committed_out: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Default for Live {
    fn default() -> Self {
        let (committed, out) = mpsc::channel(1);
        Self(Arc::new(Inner {
            hints: broadcast::channel(BACKLOG_MAX).0,
            waiting: Mutex::default(),
            remembered: Mutex::default(),
            committed,
            committed_out: Mutex::new(Some(out)),
        }))
    }
}

impl Live {
    /// Every hint from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<LiveHint> {
        self.0.hints.subscribe()
    }

    /// Registers interest in one approval; see the module for the order.
    pub fn wait_for(&self, id: &ApprovalId) -> Waiting {
        let mut waiting = self
            .0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let entry = waiting.entry(id.clone()).or_default();
        entry.1 += 1;
        Waiting {
            live: self.clone(),
            id: id.clone(),
            notify: entry.0.clone(),
        }
    }

    /// After a COMMIT of this process.
    pub(crate) fn committed(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        for event in events {
            self.announce(event);
        }
        // A full channel means that the word is already on its way.
        let _ = self.0.committed.try_send(());
    }

    /// Tells everybody here, once an event, whichever way it became known.
    pub(crate) fn announce(&self, event: Event) {
        if !self.remember(event.id) {
            return;
        }
        if let Some(id) = &event.hint.approval {
            let waiting = self
                .0
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some((notify, _)) = waiting.get(id) {
                notify.notify_waiters();
            }
        }
        // Nobody listening is fine.
        let _ = self.0.hints.send(event.hint);
    }

    /// The receiver of "something was committed here"; taken once, by the task that tells other nodes.
    pub(crate) fn take_committed(&self) -> Option<mpsc::Receiver<()>> {
        self.0
            .committed_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn remember(&self, id: String) -> bool {
        let mut remembered = self
            .0
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *remembered;
        if !known.insert(id.clone()) {
            return false;
        }
        order.push_back(id);
        if order.len() > REMEMBERED_MAX
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        true
    }
}

/// Interest in one approval, until dropped.
pub struct Waiting {
    live: Live,
    id: ApprovalId,
    notify: Arc<Notify>,
}

impl Waiting {
    /// A future that counts from its making: make it, read the record, then await it.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = self
            .live
            .0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = waiting.get_mut(&self.id) {
            entry.1 -= 1;
            if entry.1 == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}
