//! `/api/personal-keys`: keys of one's own MCP clients. Each ends with the session that it was made in.

use super::{
    people::{Unkept, unkept},
    read,
};
use crate::{
    App,
    people::{FromOurPage, InSession, SignedIn},
    reply::No,
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
};
use cloudhal_domain::id::KeyId;
use cloudhal_engine::personal_keys;
use serde::Deserialize;
use serde_json::{Value, json};

/// `GET /api/personal-keys`: one's own that are good now.
pub async fn list(State(app): State<App>, SignedIn(person): SignedIn) -> Result<Json<Value>, No> {
    let items = personal_keys::list(&app.engine, &person).await?;
    Ok(Json(json!({"items": items, "nextCursor": null})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: String,
}

/// `POST /api/personal-keys`: a key, told this once.
pub async fn make(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    InSession(session): InSession,
    FromOurPage(proof): FromOurPage,
    body: Body,
) -> Result<Unkept, No> {
    let body = crate::agents::read_body(body).await?;
    let new: New = read(body, r#"{"name": "…"}"#)?;
    let made = personal_keys::make(&app.engine, &person, proof, session, &new.name).await?;
    let mut answer = json!(made.key);
    answer["key"] = json!(made.secret);
    Ok(unkept(answer))
}

/// `DELETE /api/personal-keys/{key}`: ends one at once.
pub async fn end(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(key): Path<String>,
) -> Result<Json<Value>, No> {
    personal_keys::end(&app.engine, &person, proof, &KeyId::new(key)).await?;
    Ok(Json(json!({})))
}
