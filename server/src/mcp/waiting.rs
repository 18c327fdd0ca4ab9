//! A call that only waits is waited for before `rmcp` sees it: what `rmcp` holds for a request is several times what waiting
//! takes, and a thousand agents wait at once. The call itself is then answered as any other, with nothing left to wait for.

use crate::App;
use axum::{
    extract::OriginalUri,
    http::{HeaderMap, HeaderValue, Uri, request::Parts},
};
use cloudhal_domain::{id::ApprovalId, limits};
use cloudhal_engine::{approvals, callers::Caller};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns once the call has nothing to wait for, or the server is to stop. Whoever gave a token for progress waits inside, where
/// it is told.
pub async fn out(app: &App, caller: &Caller, parts: &mut Parts, message: &mut Value) {
    let Some((id, wait)) = asked(message) else {
        return;
    };
    let_go_of_the_buffer(parts);
    let mut stopping = app.stopping.clone();
    tokio::select! {
        // What is wrong with it, the call says.
        _ = approvals::wait(&app.engine, caller, &id, wait) => {
            message["params"]["arguments"]["waitSeconds"] = json!(0);
        }
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

/// Headers and address are slices of what the connection read them into, 8 KiB that would stay as long as they do.
fn let_go_of_the_buffer(parts: &mut Parts) {
    let copied = parts.headers.iter().filter_map(|(name, value)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        Some((name.clone(), value))
    });
    parts.headers = copied.collect::<HeaderMap>();
    parts.extensions.remove::<OriginalUri>();
    if let Ok(uri) = parts.uri.to_string().parse::<Uri>() {
        parts.uri = uri;
    }
}

fn asked(message: &Value) -> Option<(ApprovalId, Duration)> {
    let params = &message["params"];
    let is_it = message["method"] == "tools/call"
        && params["name"] == "approvals_get"
        && params["_meta"]["progressToken"].is_null();
    let arguments = &params["arguments"];
    let seconds = arguments["waitSeconds"].as_u64().filter(|_| is_it)?;
    let wait = (1..=limits::WAIT_SECONDS_MAX).contains(&seconds);
    let id = arguments["approvalId"].as_str().filter(|_| wait)?;
    Some((ApprovalId::new(id), Duration::from_secs(seconds)))
}
