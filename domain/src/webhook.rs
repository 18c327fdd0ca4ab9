//! Webhooks as people and receivers see them: the events that are told, and what an owner of a site is shown.

use crate::{
    id::{ApprovalId, DeliveryId, SiteId, WebhookId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

/// The events that receivers are told of (CONTRACT §5).
pub const EVENTS: [&str; 5] = [
    "approval.requested",
    "approval.decided",
    "approval.voided",
    "approval.expired",
    "approval.executed",
];

/// What an owner sends to see whether anything arrives.
pub const PING: &str = "ping";

/// What is said of an event: a link and a summary, no arguments, no token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    #[serde(rename = "type")]
    pub event: String,
    pub timestamp: Timestamp,
    pub data: MessageData,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageData {
    /// The approval; of a ping, the destination.
    pub id: String,
    pub site: SiteId,
    pub site_title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Of the approval, right after the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What came of an executed call: `succeeded`, `failed` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    pub summary: String,
    /// Filled in when it is sent, so that a corrected public address holds for what waits already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A destination. Its secret is in no view: it is given out once, in [`NewSecret`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: WebhookId,
    pub url: String,
    pub created_at: Timestamp,
    /// Until when the secret before the last rotation signs as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<Timestamp>,
}

/// The answer to making a destination or rotating its secret: the only one that holds the secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSecret {
    #[serde(flatten)]
    pub webhook: Webhook,
    /// `whsec_…`, as the Standard Webhooks specification writes it.
    pub secret: String,
}

/// How far one event got on its way to one destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The `webhook-id` of every try.
    pub id: DeliveryId,
    pub event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    pub status: DeliveryStatus,
    /// Begun so far.
    pub tries: i64,
    pub created_at: Timestamp,
    /// Of one that waits: when it is tried next, or when another node may take over a try that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Why the last try failed, in our own words; nothing of the receiver's answer but its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    Waiting,
    Delivered,
    GaveUp,
}

impl DeliveryStatus {
    pub fn from_text(text: &str) -> Option<Self> {
        match text {
            "waiting" => Some(Self::Waiting),
            "delivered" => Some(Self::Delivered),
            "gave_up" => Some(Self::GaveUp),
            _ => None,
        }
    }
}
