//! For machines: is the process alive, can it serve.

use crate::App;
use axum::{Json, extract::State, http::StatusCode};
use serde_json::{Value, json};

pub async fn healthz() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// The database answers; its schema is up to date, or the process would not have started.
pub async fn readyz(State(app): State<App>) -> (StatusCode, Json<Value>) {
    match app.engine.store().ping().await {
        Ok(()) => (StatusCode::OK, Json(json!({"status": "ready"}))),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                Json(json!({"status": "unavailable", "what": "database"})),
            )
        }
    }
}
