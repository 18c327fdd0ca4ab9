//! The engine's suite: one binary, every test on SQLite, and on PostgreSQL where `TEST_POSTGRES_URL` names one.
//!
//! A test acts as somebody ([`support`]): an agent calls, a person decides, the clock is moved by hand. Whatever a test did,
//! `verify` has to agree with what it left behind; that is checked at the end of every one. A race is run
//! `CLOUDHAL_TEST_ROUNDS` times where that is set.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

#[macro_use]
mod support;

mod story;

mod access;
mod extra_gates;
mod order;
mod own_client;
mod pictures;
mod policy;
mod telling;

mod deciding;
mod expiry;
mod many_nodes;
mod redeeming;
mod voiding;
mod waiting;

mod guard;
mod sweeping;
mod tampering;

mod outbox;

mod leaving;
mod lists;
mod nodes;
mod search;
mod sight;
mod state;
mod versions;
mod watching;

mod inputs;
mod store;

/// Without it half of the suite would be skipped unseen.
#[test]
fn ci_sets_postgres() {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(
        !ci || std::env::var("TEST_POSTGRES_URL").is_ok(),
        "CI runs the suite on both engines: set TEST_POSTGRES_URL, as `cargo xtask test` does"
    );
}
