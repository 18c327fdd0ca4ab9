//! Where a site's events are told: an owner's to set, to test and to look after. Journaled without the address's path, which
//! may itself be a secret of the receiver's.

use super::{Courier, KIND, fresh_secret};
use crate::{
    Engine,
    authority::Author,
    clock::fresh_id,
    journal::{self, Entry},
    outbox::{self, Errand},
    people::{self, Person},
    sites::{self, LockedSite, announce},
    store::{
        Fail, Tx,
        outbox::{self as outbox_sql, OutboxRow},
        sites as sites_sql,
        webhooks::{self as sql, WebhookRow},
    },
};
use cloudhal_domain::{
    canonical,
    code::{Code, Refusal},
    id::{ApprovalId, DeliveryId, SiteId, WebhookId},
    limits,
    origin::SameOrigin,
    time::Timestamp,
    webhook::{Delivery, DeliveryStatus, Message, MessageData, NewSecret, PING, Webhook},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use url::{Position, Url};

/// Deliveries that are listed, newest first.
const DELIVERIES_LISTED: i64 = 50;
/// Between two looks at what was just sent.
const FIRST_TRY_LOOK: Duration = Duration::from_millis(100);
/// A hint that there is something to carry out; it concerns no approval.
const QUEUED: &str = "webhook.queued";

/// Whether the operator lets webhooks go out at all.
pub fn are_on(engine: &Engine) -> bool {
    engine.settings().courier.is_some()
}

/// The destinations of a site, oldest first.
pub async fn list(
    engine: &Engine,
    person: &Person,
    site: &SiteId,
) -> Result<Vec<Webhook>, Refusal> {
    expect_owner(engine, person, site).await?;
    let rows = sql::of_site(&mut *engine.store().reader().await?, site.as_str()).await?;
    Ok(rows.into_iter().map(view).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Destination {
    url: String,
}

/// Sets a destination, `{"url": "https://…"}`. The answer holds its secret, this once.
pub async fn create(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    site: &SiteId,
    destination: Value,
) -> Result<NewSecret, Refusal> {
    expect_owner(engine, person, site).await?;
    // A list would be read for an object: its items as fields in their order.
    let read = Some(destination)
        .filter(Value::is_object)
        .and_then(|object| serde_json::from_value(object).ok());
    let Some(Destination { url }) = read else {
        let is = r#"a webhook is {"url": "https://…"} and nothing more"#;
        return Err(sites::invalid("", is));
    };
    let courier = expect_on(engine)?;
    if url.len() > limits::WEBHOOK_URL_BYTES_MAX {
        return Err(sites::invalid("/url", "the address is too long"));
    }
    if let Err(why) = courier.check(&url).await {
        return Err(sites::invalid(
            "/url",
            &format!("nothing can be told there: {why}"),
        ));
    }
    let (id, secret) = (WebhookId::new(fresh_id()), fresh_secret());
    let (by, site, kept) = (person.clone(), site.clone(), secret.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let owned = Owned::lock(tx, &by, &site).await?;
            let now = owned.site.now();
            let others = sql::of_site(tx.sql(), site.as_str()).await?;
            if others.len() >= limits::WEBHOOKS_PER_SITE_MAX {
                return Err(Refusal::conflict(format!(
                    "A site has at most {} destinations. Delete one first.",
                    limits::WEBHOOKS_PER_SITE_MAX
                ))
                .into());
            }
            sql::insert(tx, &id, &site, &url, &kept, now).await?;
            owned.journal(tx, "webhook.created", &id, &url).await?;
            existing(tx, &site, &id).await
        })
    });
    Ok(NewSecret {
        webhook: view(unit.await?),
        secret,
    })
}

/// Takes a destination away, with its secrets. What waited for it is given up.
pub async fn delete(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    site: &SiteId,
    id: &WebhookId,
) -> Result<(), Refusal> {
    let (by, site, id) = (person.clone(), site.clone(), id.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let owned = Owned::lock(tx, &by, &site).await?;
            let now = owned.site.now();
            let url = sql::delete(tx, &site, &id).await?.ok_or_else(absent)?;
            outbox_sql::give_up_target(tx, &id, "the destination was deleted", now).await?;
            owned.journal(tx, "webhook.deleted", &id, &url).await
        })
    });
    Ok(unit.await?)
}

/// Gives a destination a new secret. The one before signs as well for a day, so that the receiver can change over.
pub async fn rotate_secret(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    site: &SiteId,
    id: &WebhookId,
) -> Result<NewSecret, Refusal> {
    let secret = fresh_secret();
    let (by, site, id, kept) = (person.clone(), site.clone(), id.clone(), secret.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let owned = Owned::lock(tx, &by, &site).await?;
            let now = owned.site.now();
            sql::rotate(tx, &site, &id, &kept, now.plus(limits::WEBHOOK_OLD_SECRET)).await?;
            let row = existing(tx, &site, &id).await?;
            owned
                .journal(tx, "webhook.secret_rotated", &id, &row.url)
                .await?;
            Ok(row)
        })
    });
    Ok(NewSecret {
        webhook: view(unit.await?),
        secret,
    })
}

/// Sends a test on the same way that events take.
pub async fn ping(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    site: &SiteId,
    id: &WebhookId,
) -> Result<DeliveryId, Refusal> {
    let (by, site, id) = (person.clone(), site.clone(), id.clone());
    let off = expect_on(engine).err();
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let owned = Owned::lock(tx, &by, &site).await?;
            let now = owned.site.now();
            let row = existing(tx, &site, &id).await?;
            off.map_or(Ok(()), Err)?;
            let message = owned.test(&id);
            let body = canonical::text(&json!(message));
            let errand = Errand {
                kind: KIND,
                site: site.as_str(),
                target: id.as_str(),
                topic: PING,
                approval: None,
                body: &body,
            };
            let delivery = outbox::put(tx, errand, now).await?;
            owned.journal(tx, "webhook.tested", &id, &row.url).await?;
            announce(tx, QUEUED, site.as_str(), None, now).await?;
            Ok(DeliveryId::new(delivery))
        })
    });
    Ok(unit.await?)
}

/// The latest deliveries to a destination, newest first.
pub async fn deliveries(
    engine: &Engine,
    person: &Person,
    site: &SiteId,
    id: &WebhookId,
) -> Result<Vec<Delivery>, Refusal> {
    expect_owner(engine, person, site).await?;
    let mut db = engine.store().reader().await?;
    sql::get(&mut db, site, id).await?.ok_or_else(absent)?;
    let rows = outbox_sql::of_target(&mut db, site, id, DELIVERIES_LISTED).await?;
    Ok(rows.into_iter().filter_map(delivery).collect())
}

/// Has one event delivered again, from the first try on, under the id that it always had.
pub async fn redeliver(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    site: &SiteId,
    id: &WebhookId,
    delivery_id: &DeliveryId,
) -> Result<Delivery, Refusal> {
    let (by, site, id) = (person.clone(), site.clone(), id.clone());
    let (delivery_id, off) = (delivery_id.clone(), expect_on(engine).err());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let owned = Owned::lock(tx, &by, &site).await?;
            let row = existing(tx, &site, &id).await?;
            let known = outbox_sql::exists(tx, &site, &id, &delivery_id).await?;
            if !known {
                return Err(Refusal::not_found("delivery").into());
            }
            off.map_or(Ok(()), Err)?;
            let again = outbox_sql::again(tx, &site, &id, &delivery_id, owned.site.now())
                .await?
                .ok_or_else(|| {
                    Refusal::conflict("It is being delivered at this moment. Look again shortly.")
                })?;
            owned
                .journal(tx, "webhook.sent_again", &id, &row.url)
                .await?;
            announce(tx, QUEUED, site.as_str(), None, owned.site.now()).await?;
            Ok(again)
        })
    });
    delivery(unit.await?).ok_or_else(|| Refusal::not_found("delivery"))
}

/// How the first try of what was just sent went: looked at again and again for about as long as a try takes, then given as it is.
pub async fn first_try(
    engine: &Engine,
    person: &Person,
    site: &SiteId,
    id: &WebhookId,
    delivery_id: &DeliveryId,
) -> Result<Delivery, Refusal> {
    let end = Instant::now() + limits::WEBHOOK_TRY;
    loop {
        let known = deliveries(engine, person, site, id).await?;
        let found = known.into_iter().find(|one| one.id == *delivery_id);
        let found = found.ok_or_else(|| Refusal::not_found("delivery"))?;
        let tried = found.status != DeliveryStatus::Waiting || found.last_error.is_some();
        if tried || Instant::now() >= end {
            return Ok(found);
        }
        tokio::time::sleep(FIRST_TRY_LOOK).await;
    }
}

/// Host of an address, with its port where it has one; for headings.
pub fn place(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let place = parsed.map(|url| url[Position::BeforeHost..Position::AfterPort].to_owned());
    place.unwrap_or_default()
}

/// A site under its lock, and an owner of it.
struct Owned {
    site: LockedSite,
    by: Author,
}

impl Owned {
    async fn lock(tx: &mut Tx, by: &Person, site: &SiteId) -> Result<Self, Fail> {
        let locked = LockedSite::expect(tx, site).await?;
        let role = people::role_now(tx, by.id(), site.as_str()).await?;
        match role {
            None => Err(Refusal::not_found("site").into()),
            Some(role) if !role.may_manage() => Err(not_an_owner().into()),
            Some(_) => Ok(Self {
                site: locked,
                by: Author::person(by),
            }),
        }
    }

    async fn journal(
        &self,
        tx: &mut Tx,
        kind: &str,
        id: &WebhookId,
        url: &str,
    ) -> Result<(), Fail> {
        let entry = Entry {
            kind,
            actor: &self.by,
            approval: None,
            body: json!({"webhook": id, "host": host(url)}),
        };
        journal::site(tx, &self.site.row().id, self.site.now(), entry).await
    }

    fn test(&self, id: &WebhookId) -> Message {
        Message {
            event: PING.to_owned(),
            timestamp: self.site.now(),
            data: MessageData {
                id: id.as_str().to_owned(),
                site: self.site.id(),
                site_title: self.site.row().title.clone(),
                tool: None,
                status: None,
                outcome: None,
                summary: format!("A test from {}. Nothing waits.", self.by.name),
                url: None,
            },
        }
    }
}

async fn expect_owner(engine: &Engine, person: &Person, site: &SiteId) -> Result<(), Refusal> {
    let exists = sites_sql::by_id(engine.store().read(), site).await?;
    exists
        .filter(|row| row.deleted_at.is_none())
        .ok_or_else(|| Refusal::not_found("site"))?;
    let role = people::role_on(engine, person, site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    if role.may_manage() {
        Ok(())
    } else {
        Err(not_an_owner())
    }
}

fn expect_on(engine: &Engine) -> Result<Arc<dyn Courier>, Refusal> {
    engine.settings().courier.clone().ok_or_else(|| {
        Refusal::conflict("Outgoing webhooks are switched off here. The operator allows them with CLOUDHAL_WEBHOOKS. Nothing was changed.")
    })
}

async fn existing(tx: &mut Tx, site: &SiteId, id: &WebhookId) -> Result<WebhookRow, Fail> {
    Ok(sql::get(tx.sql(), site, id).await?.ok_or_else(absent)?)
}

fn not_an_owner() -> Refusal {
    Refusal::new(
        Code::Forbidden,
        "Only an owner of the site looks after its webhooks. Nothing was changed.",
    )
}

fn absent() -> Refusal {
    Refusal::not_found("webhook")
}

fn host(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str);
    host.unwrap_or_default().to_owned()
}

fn view(row: WebhookRow) -> Webhook {
    Webhook {
        id: WebhookId::new(row.id),
        url: row.url,
        created_at: Timestamp(row.created_at),
        old_secret_until: row.old_secret_until.map(Timestamp),
    }
}

fn delivery(row: OutboxRow) -> Option<Delivery> {
    let status = DeliveryStatus::from_text(&row.status)?;
    let waits = status == DeliveryStatus::Waiting;
    Some(Delivery {
        id: DeliveryId::new(row.id),
        event: row.topic,
        approval: row.approval_id.map(ApprovalId::new),
        status,
        tries: row.tries.min(limits::WEBHOOK_TRIES_MAX),
        created_at: Timestamp(row.created_at),
        next_try_at: waits.then_some(Timestamp(row.due_at)),
        finished_at: row.finished_at.map(Timestamp),
        last_error: row.last_error,
    })
}
