//! `/live/{slug}/…`: published sites, for everybody. No cookies are read, nothing on them can run or post.

use crate::{App, assets};
use axum::{
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use cloudhal_engine::published::{self, Answer};

const POLICY: &str = "default-src 'none'; script-src 'none'; style-src 'self'; img-src 'self' https: data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// `/live/{slug}` without its slash: relative links would miss.
pub async fn home(Path(slug): Path<String>) -> Redirect {
    Redirect::permanent(&format!("/live/{slug}/"))
}

pub async fn home_page(app: State<App>, Path(slug): Path<String>) -> Response {
    serve(app, &slug, "").await
}

pub async fn page(app: State<App>, Path((slug, path)): Path<(String, String)>) -> Response {
    // One address a page: with its slash, as in every link we write.
    if !path.ends_with('/') && !path.contains('.') {
        return Redirect::permanent(&format!("/live/{slug}/{path}/")).into_response();
    }
    serve(app, &slug, path.trim_matches('/')).await
}

async fn serve(State(app): State<App>, slug: &str, path: &str) -> Response {
    let (status, html) = match published::page(&app.engine, slug, path, &assets::hrefs().live_style).await {
        Ok(Answer::Page(html)) => (StatusCode::OK, html),
        Ok(Answer::Moved(to)) => return Redirect::permanent(&to).into_response(),
        Ok(Answer::NotFound(html)) => (StatusCode::NOT_FOUND, html),
        Ok(Answer::Gone(html)) => (StatusCode::GONE, html),
        Ok(Answer::Nothing) => (StatusCode::NOT_FOUND, "<!doctype html><meta charset=utf-8><title>Nothing here</title><p>There is no published site at this address.".into()),
        Err(refusal) => (StatusCode::from_u16(refusal.code.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE), "<!doctype html><meta charset=utf-8><title>One moment</title><p>This page cannot be shown right now. Please try again in a moment.".into()),
    };
    let mut response = (
        status,
        [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-cache"),
        ],
        html,
    )
        .into_response();
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    response
}
