//! The whole router on one screen. From outside in: the Host must be ours, headers that every answer carries, then the doors.

use crate::{
    App, agents,
    api::{self, webhooks},
    assets, health, live_site, mcp, openapi, people,
    people::sign_in,
    reply, studio,
};
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority},
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::{any, delete, get, patch, post, put},
};
use cloudhal_domain::code::{Code, Refusal};
use tower_http::catch_panic::CatchPanicLayer;

pub fn router(app: App) -> Router {
    // Pages spawn their resources on this runtime. A second router in one process, as in tests, finds it set.
    let _ = any_spawner::Executor::init_tokio();
    let machines = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .with_state(app.clone());
    let doors = Router::new()
        .merge(for_agents(&app))
        .merge(for_everybody(&app))
        .merge(for_people(&app))
        .layer(middleware::from_fn_with_state(app.clone(), check_host));
    machines
        .merge(doors)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(app, common_headers))
}

/// A bug of ours ends one request, not the connection, and its words stay in the log.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    reply::No(Refusal::new(
        Code::Internal,
        "Something went wrong on our side. Look at what there is before you repeat it.",
    ))
    .into_response()
}

/// A key on every request, never a cookie.
fn for_agents(app: &App) -> Router {
    let tools = Router::new()
        .route(
            "/tools",
            get(agents::list).fallback(reply::method_not_allowed),
        )
        .route(
            "/tools/{tool}",
            post(agents::call).fallback(reply::method_not_allowed),
        )
        .with_state(app.clone());
    tools
        .merge(mcp::router(app.clone()))
        .layer(middleware::from_fn_with_state(
            app.clone(),
            no_foreign_pages,
        ))
}

/// Neither key nor cookie is read.
fn for_everybody(app: &App) -> Router {
    let router = Router::new()
        .route("/openapi.json", get(openapi::document))
        .route("/live/{slug}", get(live_site::home))
        .route("/live/{slug}/", get(live_site::home_page))
        .route("/live/{slug}/{*path}", get(live_site::page))
        .route("/pkg/{version}/{*file}", get(assets::front))
        .route("/assets/{version}/{file}", get(assets::style))
        .route("/fonts/{file}", get(assets::font));
    let router = if assets::is_dev() {
        router.route("/_dev/events", get(assets::dev_events))
    } else {
        router
    };
    router.with_state(app.clone())
}

/// A session, and for whatever changes something a page of ours; a bearer key is refused before anything else.
fn for_people(app: &App) -> Router {
    let json = Router::new()
        .route(
            "/api/events",
            get(api::events).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites",
            get(api::sites).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/policy",
            get(api::policy::get)
                .put(api::policy::set)
                .fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/approvals",
            get(api::list).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/approvals/{id}",
            get(api::get).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/approvals/{id}/approve",
            post(api::approve).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/approvals/{id}/deny",
            post(api::deny).fallback(reply::method_not_allowed),
        )
        .merge(for_people_webhooks())
        .route("/api", any(reply::not_found))
        .route("/api/{*rest}", any(reply::not_found))
        .route(
            "/_fn/{*name}",
            post(studio::server_function).fallback(reply::method_not_allowed),
        );
    let forms = Router::new()
        .route("/approvals/deny", post(studio::deny_many).get(studio::page))
        .route("/approvals/{id}", post(studio::decide).get(studio::page))
        .route("/sites/{slug}/publish", post(studio::publish))
        .route("/sites/{slug}/rollback", post(studio::rollback))
        .route("/sites/{slug}/delete", post(studio::delete_site))
        .route(
            "/sites/{slug}/nodes/{node}/delete",
            post(studio::delete_node),
        )
        .route("/login", post(sign_in::password).get(studio::page))
        .route(
            "/login/link/{token}",
            post(sign_in::one_time_link).get(studio::page),
        )
        .route("/setup/{token}", post(sign_in::set_up).get(studio::page))
        .route("/logout", post(sign_in::out))
        .route("/theme", post(sign_in::theme))
        .route(
            "/preview/approvals/{id}/{node}/{side}",
            get(studio::preview),
        )
        .route("/preview/sites/{slug}/{node}", get(studio::draft_preview));
    Router::new()
        .merge(json)
        .merge(for_people_about_access())
        .merge(forms)
        .fallback(get(studio::page).fallback(reply::method_not_allowed))
        .layer(middleware::from_fn(people::keep_time))
        .layer(people::layer(app))
        .layer(middleware::from_fn(people::say_unavailable))
        .layer(middleware::from_fn_with_state(
            app.clone(),
            people::same_origin,
        ))
        .layer(middleware::from_fn(people::no_agents))
        .with_state(app.clone())
}

/// A site's webhooks, for its owners.
fn for_people_webhooks() -> Router<App> {
    Router::new()
        .route(
            "/api/sites/{site}/webhooks",
            get(webhooks::list)
                .post(webhooks::create)
                .fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/webhooks/{webhook}",
            delete(webhooks::delete).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/webhooks/{webhook}/secret",
            post(webhooks::rotate_secret).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/webhooks/{webhook}/ping",
            post(webhooks::ping).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/webhooks/{webhook}/deliveries",
            get(webhooks::deliveries).fallback(reply::method_not_allowed),
        )
        .route(
            "/api/sites/{site}/webhooks/{webhook}/deliveries/{delivery}/redeliver",
            post(webhooks::redeliver).fallback(reply::method_not_allowed),
        )
}

/// Who there is and who may what.
fn for_people_about_access() -> Router<App> {
    let no = reply::method_not_allowed;
    Router::new()
        .route(
            "/api/sites/{site}/members",
            get(api::members).post(api::add_member).fallback(no),
        )
        .route(
            "/api/sites/{site}/members/{person}",
            put(api::set_member).fallback(no),
        )
        .route(
            "/api/sites/{site}/agents",
            get(api::agents::of_site).fallback(no),
        )
        .route(
            "/api/sites/{site}/agents/{agent}",
            delete(api::agents::take_off).fallback(no),
        )
        .route(
            "/api/people",
            get(api::people::list).post(api::people::add).fallback(no),
        )
        .route(
            "/api/people/{person}",
            patch(api::people::change).fallback(no),
        )
        .route(
            "/api/people/{person}/sign-in-link",
            post(api::people::new_link).fallback(no),
        )
        .route(
            "/api/agents",
            get(api::agents::list).post(api::agents::add).fallback(no),
        )
        .route(
            "/api/agents/{agent}",
            get(api::agents::get)
                .patch(api::agents::change)
                .fallback(no),
        )
        .route(
            "/api/agents/{agent}/keys",
            get(api::agents::keys)
                .post(api::agents::new_key)
                .fallback(no),
        )
        .route(
            "/api/agents/{agent}/keys/{key}",
            delete(api::agents::revoke_key).fallback(no),
        )
        .route(
            "/api/personal-keys",
            get(api::personal_keys::list)
                .post(api::personal_keys::make)
                .fallback(no),
        )
        .route(
            "/api/personal-keys/{key}",
            delete(api::personal_keys::end).fallback(no),
        )
        .route("/people", post(studio::access::people).get(studio::page))
        .route("/agents", post(studio::access::agents).get(studio::page))
        .route(
            "/sites/{slug}/settings",
            post(studio::access::settings).get(studio::page),
        )
}

/// Only names that the public URL gives us: a page of another name that resolves to us must not reach us (guide: A39).
async fn check_host(State(app): State<App>, request: Request, next: Next) -> Response {
    let host = match host(&request) {
        Some(host) => host,
        None => return refuse_host(),
    };
    if host == app.origins.public_host {
        // With an origin of their own, published sites are not served on the Studio's.
        return match (
            &app.engine.settings().live_url,
            request.uri().path().starts_with("/live/"),
        ) {
            (Some(live), true) => {
                Redirect::permanent(&format!("{live}{}", request.uri())).into_response()
            }
            _ => next.run(request).await,
        };
    }
    let published = ["/live/", "/assets/"]
        .iter()
        .any(|start| request.uri().path().starts_with(start));
    if published && app.origins.live_host.as_ref() == Some(&host) {
        return next.run(request).await;
    }
    refuse_host()
}

/// The one Host of the request: HTTP/2 has it in the URI, HTTP/1 in exactly one header.
fn host(request: &Request) -> Option<String> {
    let mut headers = request.headers().get_all(header::HOST).iter();
    let header = match (headers.next(), headers.next()) {
        (Some(one), None) => Some(one.to_str().ok()?),
        (None, _) => None,
        _ => return None,
    };
    let uri = request.uri().authority().map(Authority::as_str);
    match (uri, header) {
        (Some(uri), Some(header)) if !uri.eq_ignore_ascii_case(header) => None,
        (uri, header) => uri.or(header).map(str::to_ascii_lowercase),
    }
}

fn refuse_host() -> Response {
    reply::No(Refusal::new(
        Code::HostNotAllowed,
        "This Cloudhal does not answer to that Host. CLOUDHAL_PUBLIC_URL says which name it has.",
    ))
    .into_response()
}

/// Agents are no browsers and send no Origin; a page elsewhere that borrows a key does.
async fn no_foreign_pages(State(app): State<App>, request: Request, next: Next) -> Response {
    let ours = app.origins.public.as_bytes();
    let mut given = request.headers().get_all(header::ORIGIN).iter();
    match (given.next(), given.next()) {
        (None, _) => next.run(request).await,
        (Some(origin), None) if origin.as_bytes() == ours => next.run(request).await,
        _ => reply::No(Refusal::new(
            Code::CrossOrigin,
            "Pages of other origins may not use this door. Nothing was done.",
        ))
        .into_response(),
    }
}

async fn common_headers(State(app): State<App>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let mut response = next.run(request).await;
    let https = app.origins.https;
    let headers = response.headers_mut();
    set(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // Not `no-referrer`: with it browsers send `Origin: null` on a form's POST, and an honest decision would be refused.
    set(headers, header::REFERRER_POLICY, "same-origin");
    set(
        headers,
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    set(
        headers,
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=()",
    );
    if https {
        set(
            headers,
            header::STRICT_TRANSPORT_SECURITY,
            "max-age=31536000",
        );
    }
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        set(
            headers,
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        );
    }
    if method == Method::TRACE {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers
        .entry(name)
        .or_insert(HeaderValue::from_static(value));
}
