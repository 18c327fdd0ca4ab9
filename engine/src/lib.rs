//! The product without its doors. It knows who calls only as a value it made itself, and nothing of HTTP, MCP or pages.
//!
//! Read it in the order of the story: a call arrives at the [`gate`]; a gated one becomes a record in [`approvals`], with a
//! picture of what would happen made by its [`tools`] and [`changes`]; a person decides; the repeated call redeems, and the
//! effect on the [`sites`] commits with the spent approval, its receipt and the [`journal`]; [`live`] tells whoever waits,
//! and the [`outbox`] whoever is outside.

pub mod gate;

pub mod approvals;
pub mod direct;
mod signing;

pub mod tools;

pub mod changes;
pub mod content;
pub mod search;
pub mod sites;
pub mod state;

pub mod agents;
pub mod authority;
pub mod callers;
mod keys;
pub mod members;
pub mod people;
pub mod personal_keys;
pub mod policies;
pub mod webhooks;

pub mod journal;
pub mod live;
pub mod outbox;
pub mod store;
pub mod watching;

pub mod background;
pub mod demo;
pub mod published;
pub mod studio;
pub mod verify;

pub mod clock;
mod failpoint;
pub mod secret;

use clock::{Clock, NodeClock, SystemClock};
use cloudhal_domain::{id::ApprovalId, limits, time::Timestamp};
use live::Live;
use secret::Secret;
use std::{sync::Arc, time::Duration};
use store::{Store, StoreError};
use tools::Registry;

/// What an operator may set about the product itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `https://hal.example`, without a slash at the end.
    pub public_url: String,
    /// Where published sites live, when not under `/live` of the public URL.
    pub live_url: Option<String>,
    pub approval_ttl: Duration,
    pub pending_per_agent_max: i64,
    pub pending_per_site_max: i64,
    /// For the command line, whose work takes as long as it takes: PostgreSQL ends no statement for its length.
    pub patient: bool,
    /// How webhooks leave the house; without one they are off.
    pub courier: Option<Arc<dyn webhooks::Courier>>,
}

impl Settings {
    pub fn for_url(public_url: impl Into<String>) -> Self {
        Self {
            public_url: public_url.into(),
            live_url: None,
            approval_ttl: limits::APPROVAL_TTL,
            pending_per_agent_max: limits::PENDING_PER_AGENT_MAX,
            pending_per_site_max: limits::PENDING_PER_SITE_MAX,
            patient: false,
            courier: None,
        }
    }
}

/// The product, cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: Store,
    live: Live,
    clock: NodeClock,
    settings: Settings,
    secret: Secret,
    tools: Registry,
    used: agents::Used,
}

impl Engine {
    /// Opens the database at `url` with the machine's clock.
    pub async fn open(url: &str, settings: Settings, secret: Secret) -> Result<Self, StoreError> {
        Self::open_with(url, settings, secret, Arc::new(SystemClock)).await
    }

    pub async fn open_with(
        url: &str,
        settings: Settings,
        secret: Secret,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let live = Live::default();
        let clock = NodeClock::new(clock);
        let store = Store::open(url, live.clone(), clock.clone(), settings.patient).await?;
        let engine = Self(Arc::new(Inner {
            store,
            live,
            clock,
            settings,
            secret,
            tools: Registry::new(),
            used: agents::Used::default(),
        }));
        people::ensure_instance(&engine).await?;
        Ok(engine)
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn live(&self) -> &Live {
        &self.0.live
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub fn tools(&self) -> &Registry {
        &self.0.tools
    }

    /// For what is only looked at. A unit of work asks its transaction, [`store::Tx::now`].
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Which keys were used lately.
    pub(crate) fn used(&self) -> &agents::Used {
        &self.0.used
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.0.secret
    }

    /// The deep link of an approval.
    pub fn approval_url(&self, id: &ApprovalId) -> String {
        format!(
            "{}{}",
            self.0.settings.public_url,
            cloudhal_domain::link::approval(id)
        )
    }

    /// Where a published site is served.
    pub fn live_url(&self, slug: &str, path: &str) -> String {
        let base = self
            .0
            .settings
            .live_url
            .as_deref()
            .unwrap_or(&self.0.settings.public_url);
        format!("{base}{}", cloudhal_domain::link::live(slug, path))
    }

    /// Where MCP clients connect.
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.0.settings.public_url)
    }
}
