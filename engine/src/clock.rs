//! Time and chance come from outside, so that a test can move the one and replay the other.

use cloudhal_domain::time::Timestamp;
use data_encoding::{Encoding, Specification};
use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicI64, Ordering},
};

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// What this clock makes of the time that every node of one database shares: that time, unless a test moves it.
    fn with_shared(&self, shared: Timestamp) -> Timestamp {
        shared
    }
}

/// The time of one node, kept in step with the clock of the database that it shares with others: however wrong the machine
/// is, it neither revives nor ends anything early (guide to reliability: R10). Alone on a SQLite file there is nothing to keep to.
#[derive(Clone)]
pub(crate) struct NodeClock {
    machine: Arc<dyn Clock>,
    /// Milliseconds that the shared clock is ahead of the machine, as last seen.
    ahead: Arc<AtomicI64>,
}

impl NodeClock {
    pub(crate) fn new(machine: Arc<dyn Clock>) -> Self {
        Self {
            machine,
            ahead: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.machine.now().ms() + self.ahead.load(Ordering::Relaxed))
    }

    /// Takes note of the shared clock and gives the time it stands for.
    pub(crate) fn keep_to(&self, shared: Timestamp) -> Timestamp {
        let now = self.machine.with_shared(shared);
        self.ahead
            .store(now.ms() - self.machine.now().ms(), Ordering::Relaxed);
        now
    }
}

pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks the machine"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is moved.
#[derive(Clone)]
pub struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub fn at(ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(ms)))
    }

    pub fn advance(&self, by: std::time::Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::SeqCst);
    }

    pub fn set(&self, ms: i64) {
        self.0.store(ms, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn with_shared(&self, _: Timestamp) -> Timestamp {
        self.now()
    }
}

/// Lower-case base 32: one word to a double click, safe in a path.
pub static TEXT: LazyLock<Encoding> = LazyLock::new(|| {
    let mut alphabet = Specification::new();
    alphabet
        .symbols
        .push_str("abcdefghijklmnopqrstuvwxyz234567");
    // Fails only for a malformed alphabet, and this one is a constant.
    alphabet.encoding().unwrap_or(data_encoding::BASE32_NOPAD)
});

/// Fresh bytes from the operating system. Without them nothing may go on, so it ends the process rather than guess.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        tracing::error!(%error, "the operating system gives no randomness");
        std::process::abort();
    }
    bytes
}

/// A fresh id: 128 bits of chance, 26 characters.
pub fn fresh_id() -> String {
    TEXT.encode(&random::<16>())
}
