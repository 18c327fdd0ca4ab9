//! The server's suite: one binary, and no way into the product but its doors.
//!
//! A test comes as somebody ([`support`]): an agent with its key, a person's browser with its cookies, anybody without either.
//! What a door must refuse is refused with its code, leaves no effect, and the next good call works. Names in brackets are
//! cases and families of the security guide.

#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

mod support;

mod stale;
mod story;

mod cli;
mod events;
mod inputs;
mod secrets;
mod tidy;
mod webhooks;
mod webhooks_page;

mod access;
mod answers;
mod hosts;
mod identity;
mod mcp_waiting;
mod telling;
mod tenants;

mod forms;
mod outage;
mod pages;
mod sign_in;

mod reported_calls;
mod reported_people;

mod cases;
mod census;
mod reach;
