//! Identifiers: opaque strings with at least 128 bits of chance, each kind a type of its own. An id is never a permission.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(id: impl Into<String>) -> Self { Self(id.into()) }
            pub fn as_str(&self) -> &str { &self.0 }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
    )+};
}

ids! {
    /// One record of a call that waits.
    ApprovalId
    /// One holder of API keys.
    AgentId
    /// One API key; a caller is the agent, never the key.
    KeyId
    /// One human account.
    PersonId
    /// One site, draft and versions together.
    SiteId
    /// One page, collection or entry; never reused, so an edit and its revert cannot look like no change.
    NodeId
    /// One destination of a site's webhooks.
    WebhookId
    /// One event on its way to one destination; the same over all its tries, and what a receiver tells repeats by.
    DeliveryId
}
