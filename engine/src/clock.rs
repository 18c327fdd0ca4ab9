//! Time and chance come from outside, so that a test can move the one and replay the other.

use cloudhal_domain::time::Timestamp;
use data_encoding::{Encoding, Specification};
use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicI64, Ordering},
};

pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
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
