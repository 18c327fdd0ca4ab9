//! `/api/sites/{site}/webhooks`: where a site's events are told, for its owners.

use super::people::{Unkept, unkept};
use crate::{
    App,
    people::{FromOurPage, SignedIn},
    reply::No,
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
};
use cloudhal_domain::{
    id::{DeliveryId, SiteId, WebhookId},
    webhook::Delivery,
};
use cloudhal_engine::webhooks;
use serde_json::{Value, json};

/// `GET /api/sites/{site}/webhooks`
pub async fn list(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path(site): Path<String>,
) -> Result<Json<Value>, No> {
    let items = webhooks::list(&app.engine, &person, &SiteId::new(site)).await?;
    let enabled = webhooks::are_on(&app.engine);
    Ok(Json(
        json!({"items": items, "nextCursor": null, "enabled": enabled}),
    ))
}

/// `POST /api/sites/{site}/webhooks`: the answer holds the secret, this once.
pub async fn create(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(site): Path<String>,
    body: Body,
) -> Result<Unkept, No> {
    let body = crate::agents::read_body(body).await?;
    let site = SiteId::new(site);
    let made = webhooks::create(&app.engine, &person, proof, &site, body).await?;
    Ok(unkept(json!(made)))
}

/// `DELETE /api/sites/{site}/webhooks/{webhook}`
pub async fn delete(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((site, webhook)): Path<(String, String)>,
) -> Result<Json<Value>, No> {
    let (site, webhook) = (SiteId::new(site), WebhookId::new(webhook));
    webhooks::delete(&app.engine, &person, proof, &site, &webhook).await?;
    Ok(Json(json!({"deleted": webhook})))
}

/// `POST /api/sites/{site}/webhooks/{webhook}/secret`: a new one, shown this once.
pub async fn rotate_secret(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((site, webhook)): Path<(String, String)>,
) -> Result<Unkept, No> {
    let (site, webhook) = (SiteId::new(site), WebhookId::new(webhook));
    let made = webhooks::rotate_secret(&app.engine, &person, proof, &site, &webhook).await?;
    Ok(unkept(json!(made)))
}

/// `POST /api/sites/{site}/webhooks/{webhook}/ping`
pub async fn ping(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((site, webhook)): Path<(String, String)>,
) -> Result<Json<Value>, No> {
    let (site, webhook) = (SiteId::new(site), WebhookId::new(webhook));
    let delivery = webhooks::ping(&app.engine, &person, proof, &site, &webhook).await?;
    Ok(Json(json!({"delivery": delivery})))
}

/// `GET /api/sites/{site}/webhooks/{webhook}/deliveries`
pub async fn deliveries(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path((site, webhook)): Path<(String, String)>,
) -> Result<Json<Value>, No> {
    let (site, webhook) = (SiteId::new(site), WebhookId::new(webhook));
    let items = webhooks::deliveries(&app.engine, &person, &site, &webhook).await?;
    Ok(Json(json!({"items": items, "nextCursor": null})))
}

/// `POST /api/sites/{site}/webhooks/{webhook}/deliveries/{delivery}/redeliver`
pub async fn redeliver(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((site, webhook, delivery)): Path<(String, String, String)>,
) -> Result<Json<Delivery>, No> {
    let (site, webhook) = (SiteId::new(site), WebhookId::new(webhook));
    let delivery = DeliveryId::new(delivery);
    Ok(Json(
        webhooks::redeliver(&app.engine, &person, proof, &site, &webhook, &delivery).await?,
    ))
}
