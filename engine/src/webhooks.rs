//! Webhooks: what a site's receivers are told of an event, and how it is signed (Standard Webhooks; CONTRACT §5).
//!
//! [`tell`] writes one row of the outbox for each destination, in the transaction of the event; [`deliver`] is one try. Who
//! sets destinations is in a file of its own. How a try travels, and where it may go at all, is the [`Courier`]'s.

mod destinations;

pub use destinations::{
    are_on, create, delete, deliveries, first_try, list, ping, place, redeliver, rotate_secret,
};

use crate::{
    Engine,
    outbox::{self, Errand, Failure},
    store::{
        Fail, Tx,
        outbox::OutboxRow,
        webhooks::{self as sql, Facts},
    },
};
use async_trait::async_trait;
use cloudhal_domain::{
    canonical,
    code::Refusal,
    id::{ApprovalId, SiteId},
    link,
    time::Timestamp,
    webhook::{EVENTS, Message, MessageData},
};
use data_encoding::BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use sha2::Sha256;

const KIND: &str = "webhook";
const SECRET_PREFIX: &str = "whsec_";

/// Takes a signed message to an address outside, once.
#[async_trait]
pub trait Courier: std::fmt::Debug + Send + Sync {
    /// Whether it would go there at all; if not, why, for whoever set the address.
    async fn check(&self, url: &str) -> Result<(), String>;

    /// One try, after the same check: the address may lead elsewhere by now. Done when the receiver says so.
    async fn carry(&self, url: &str, message: &Signed) -> Result<(), Failure>;
}

/// A message as it goes over the wire.
#[derive(Clone, Debug)]
pub struct Signed {
    /// `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    pub headers: [(&'static str, String); 3],
    /// JSON, signed to the byte.
    pub body: String,
}

/// Leaves word of an event for every destination of its site, in the transaction that it happened in.
pub(crate) async fn tell(
    tx: &mut Tx,
    event: &str,
    site: &str,
    approval: &ApprovalId,
    now: Timestamp,
) -> Result<(), Fail> {
    if !EVENTS.contains(&event) {
        return Ok(());
    }
    let targets = sql::of_site(tx.sql(), site).await?;
    if targets.is_empty() {
        return Ok(());
    }
    let Some(facts) = sql::facts(tx.sql(), approval).await? else {
        return Ok(());
    };
    let body = canonical::text(&json!(message(event, site, approval, facts, now)));
    for target in targets {
        let errand = Errand {
            kind: KIND,
            site,
            target: &target.id,
            topic: event,
            approval: Some(approval),
            body: &body,
        };
        outbox::put(tx, errand, now).await?;
    }
    Ok(())
}

fn message(
    event: &str,
    site: &str,
    approval: &ApprovalId,
    facts: Facts,
    now: Timestamp,
) -> Message {
    Message {
        event: event.to_owned(),
        timestamp: now,
        data: MessageData {
            id: approval.as_str().to_owned(),
            site: SiteId::new(site),
            site_title: facts.site_title,
            tool: Some(facts.tool),
            status: Some(facts.status),
            outcome: facts.outcome,
            summary: facts.sentence,
            url: None,
        },
    }
}

/// One try. The outer error is ours, and the row stays claimed.
pub(crate) async fn deliver(
    engine: &Engine,
    row: &OutboxRow,
) -> Result<Result<(), Failure>, Refusal> {
    let Some(courier) = &engine.settings().courier else {
        return Ok(Err(Failure::new("outgoing webhooks are switched off")));
    };
    let now = engine.now();
    let target = sql::target(&mut *engine.store().reader().await?, &row.target, now).await?;
    let Some(target) = target else {
        return Ok(Err(Failure::last("the destination was deleted")));
    };
    let Ok(mut message) = serde_json::from_str::<Message>(&row.body) else {
        return Ok(Err(Failure::last("the stored message does not read")));
    };
    let approval = row.approval_id.as_deref().map(ApprovalId::new);
    message.data.url = Some(match &approval {
        Some(id) => engine.approval_url(id),
        None => format!("{}{}", engine.settings().public_url, link::APPROVALS),
    });
    let body = canonical::text(&json!(message));
    let signatures: Option<Vec<String>> = std::iter::once(&target.secret)
        .chain(&target.old_secret)
        .map(|secret| signature(secret, &row.id, now, &body))
        .collect();
    let Some(signatures) = signatures else {
        return Ok(Err(Failure::last("the stored secret does not read")));
    };
    let signed = Signed {
        headers: [
            ("webhook-id", row.id.clone()),
            ("webhook-timestamp", (now.ms() / 1000).to_string()),
            ("webhook-signature", signatures.join(" ")),
        ],
        body,
    };
    Ok(courier.carry(&target.url, &signed).await)
}

/// `v1,…` over `id.timestamp.body`.
fn signature(secret: &SecretString, id: &str, at: Timestamp, body: &str) -> Option<String> {
    let key = secret.expose_secret().strip_prefix(SECRET_PREFIX)?;
    let key = BASE64.decode(key.as_bytes()).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{}.{body}", at.ms() / 1000).as_bytes());
    Some(format!(
        "v1,{}",
        BASE64.encode(&mac.finalize().into_bytes())
    ))
}

/// A fresh secret, as the specification writes one.
fn fresh_secret() -> String {
    let bytes: [u8; 32] = crate::clock::random();
    format!("{SECRET_PREFIX}{}", BASE64.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn signs_as_the_specification_does() {
        let secret = SecretString::from("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let body = r#"{"test": 2432232314}"#;
        let at = Timestamp(1_614_265_330_000);
        assert_eq!(
            signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body).unwrap(),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }
}
