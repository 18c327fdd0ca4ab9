//! The MCP door: `POST /mcp`, for both eras of the protocol, and the same over standard input and output ([`stdio`]). No other
//! module names `rmcp`.
//!
//! What happens to a request, in this order:
//!
//! 1. [`admission`]: the key decides who comes in, before a byte of the body is read.
//! 2. [`message`]: the body is read strictly and once. What `rmcp` gets is our reading written out again, so that no second
//!    parser can understand it differently. A call that only waits does so now ([`waiting`]), where that costs little.
//! 3. `rmcp` speaks the protocol: versions, headers against the body, `initialize`, `server/discover`. Every request stands
//!    alone; there are no sessions, so a session id can never stand for a key.
//! 4. [`handler`]: a call goes to the engine's gate, the one that `/tools` uses.
//! 5. [`words`]: the answer, as the object of CONTRACT §4 and as text that a model can act on; [`progress`] while it takes its
//!    time, and [`tasks`] for a client that holds a handle where others hold a waiting answer.
//!
//! Beside the calls, all through the same gate: [`resources`] with [`subscriptions`] to them, [`prompts`] and [`completion`].
//!
//! Whoever still waits when the server stops is told to ask again.

mod admission;
mod catalog;
mod elicitation;
mod handler;
mod message;
mod stdio;
mod waiting;
mod words;

mod progress;
mod tasks;

mod completion;
mod prompts;
mod reading;
mod resources;
mod subscriptions;

#[cfg(feature = "test-hooks")]
mod conformance;

#[cfg(test)]
mod tests;

use crate::{App, reply::No};
use admission::TurnedAway;
use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};
use cloudhal_domain::{
    code::{Code, Refusal},
    limits,
};
use cloudhal_engine::{Engine, callers::Caller, people::Person};
use handler::{Handler, Pace};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// How long calls under way have to finish when the server stops, before those that only wait are sent home.
const FINISH: Duration = Duration::from_secs(1);

/// `/mcp` and the document that says how to get in. Must be called inside a runtime: it watches for the server's stop.
pub fn router(app: App) -> Router {
    router_at(app, Pace::default())
}

fn router_at(app: App, pace: Pace) -> Router {
    let handler = Handler::over_http(app.engine.clone(), pace, app.stopping.clone());
    #[cfg(feature = "test-hooks")]
    let for_the_suite = conformance::with_fixtures(&app, &handler);
    #[cfg(not(feature = "test-hooks"))]
    let for_the_suite: Option<Router> = None;
    let door = for_the_suite.unwrap_or_else(|| door(&app, move || handler.fresh()));
    Router::new()
        .route(admission::METADATA_PATH, get(metadata))
        .route(admission::METADATA_PATH_OF_MCP, get(metadata))
        .with_state(app)
        .merge(door)
}

fn door<H: ServerHandler>(
    app: &App,
    fresh: impl Fn() -> H + Send + Sync + Clone + 'static,
) -> Router {
    let service = StreamableHttpService::new(
        move || Ok(fresh()),
        Arc::new(NeverSessionManager::default()),
        config(app),
    );
    Router::new()
        .route_service("/mcp", service)
        .layer(from_fn_with_state(app.clone(), guard))
}

/// MCP over standard input and output, for the person at whose machine this runs. Returns when the input has ended.
pub async fn here(engine: Engine, person: &Person, confirm_tokens: bool) -> std::io::Result<()> {
    let handler = Handler::here(engine, Caller::here(person), confirm_tokens);
    stdio::serve(handler, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Host and Origin are checked before, in `routes` and [`admission`]; `rmcp` checks again, so that neither alone has to be right.
fn config(app: &App) -> StreamableHttpServerConfig {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(limits::BODY_BYTES_MAX)
        .with_allowed_hosts([app.origins.public_host.clone()])
        .with_allowed_origins([admission::origin_with_port(&app.origins)])
        .enforce_origin_validation();
    let (cancel, mut stopping) = (config.cancellation_token.clone(), app.stopping.clone());
    tokio::spawn(async move {
        // An error means that the server is gone already, which is as good a reason.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        tokio::time::sleep(FINISH).await;
        cancel.cancel();
    });
    config
}

async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    match admission::admit(&app, request).await {
        Ok(request) => in_our_shape(next.run(request).await).await,
        Err(turned_away) => turned_away.into_response(),
    }
}

/// RFC 9728. It names no authorization server because there is none: keys are given out by people, in the Studio.
async fn metadata(State(app): State<App>) -> Json<Value> {
    Json(json!({
        "resource": app.engine.mcp_url(),
        "bearer_methods_supported": ["header"],
        "resource_name": "Cloudhal",
    }))
}

/// `rmcp` refuses some requests in plain text; every answer of ours has a code.
async fn in_our_shape(response: Response) -> Response {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    let json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !failed || json {
        return response;
    }
    let (parts, body) = response.into_parts();
    let said = to_bytes(body, 1024).await.unwrap_or_default();
    let refusal = of_plain(status, &String::from_utf8_lossy(&said));
    let mut response = No(refusal).into_response();
    if status.is_client_error() {
        *response.status_mut() = status;
    }
    if let Some(allow) = parts.headers.get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allow.clone());
    }
    response
}

fn of_plain(status: StatusCode, said: &str) -> Refusal {
    match status {
        StatusCode::METHOD_NOT_ALLOWED => Refusal::new(
            Code::MethodNotAllowed,
            "/mcp takes POST alone: every request stands by itself, so there is no stream to open and no session to end.",
        ),
        StatusCode::FORBIDDEN => Refusal::new(Code::HostNotAllowed, format!("{said}.")),
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::new(Code::PayloadTooLarge, format!("{said}.")),
        status if status.is_client_error() => {
            Refusal::new(Code::Malformed, format!("{said}. Nothing was done."))
        }
        _ => Refusal::new(
            Code::Unavailable,
            "The server is stopping, or the answer was lost. Repeat the same call in a moment: with an approvalId it runs once at most.",
        ),
    }
}

impl IntoResponse for TurnedAway {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refusal) => No(refusal).into_response(),
            Self::Unknown { refusal, challenge } => {
                let mut response = No(refusal).into_response();
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, challenge);
                response
            }
            Self::Unreadable(unreadable) => Response::builder()
                .status(StatusCode::BAD_REQUEST)
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(unreadable.to_json().to_string()))
                .unwrap_or_else(|_| StatusCode::BAD_REQUEST.into_response()),
        }
    }
}
