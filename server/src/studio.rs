//! The Studio's pages, rendered and hydrated, and the plain forms on them: they work with WASM blocked, and each ends with a
//! redirect back to a page that shows how it went.

use crate::{
    App, assets, body,
    people::{FromOurPage, MaybePerson},
    render,
    reply::No,
};
use axum::{
    body::Body,
    extract::{FromRequest, Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use cloudhal_app::{PageEnv, Theme};
use cloudhal_domain::{
    approval::Verdict,
    card::Risk,
    code::{Code, Refusal},
    id::{ApprovalId, NodeId, SiteId},
    limits, link,
    view::Posted,
};
use cloudhal_engine::{approvals, authority::Decider, direct, people::Person, studio};
use leptos::prelude::*;
use leptos_axum::ResponseOptions;
use serde_json::{Value, json};

pub mod access;

/// Every page: whatever is not a door of another kind is asked of the Studio, which has its own "not found".
pub async fn page(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    request: Request,
) -> Response {
    draw(&app, person, request, None).await
}

/// A page; `posted` is how a form of its went, where the page answers that.
async fn draw(
    app: &App,
    person: Option<Person>,
    request: Request,
    posted: Option<(StatusCode, Posted)>,
) -> Response {
    let env = page_env(app, request.headers());
    let (engine, context_env) = (app.engine.clone(), env.clone());
    let status = posted.as_ref().map(|(status, _)| *status);
    let context = move || {
        provide_context(engine.clone());
        provide_context(person.clone());
        provide_context(context_env.clone());
        if let Some((_, posted)) = &posted {
            provide_context(posted.clone());
        }
    };
    let document = move || {
        protect();
        if let (Some(status), Some(response)) = (status, use_context::<ResponseOptions>()) {
            response.set_status(status);
        }
        cloudhal_app::shell(env.clone())
    };
    let page = leptos_axum::render_app_async_with_context(context, document);
    render::whole(move || page(request)).await
}

/// A server function: a POST from a page of ours, under the session.
pub async fn server_function(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    request: Request,
) -> Response {
    let env = page_env(&app, request.headers());
    let engine = app.engine.clone();
    let context = move || {
        provide_context(engine.clone());
        provide_context(person.clone());
        provide_context(env.clone());
    };
    // Server functions read whatever comes; here it is counted first.
    let (parts, sent) = request.into_parts();
    let request = match body::whole(sent).await {
        Ok(bytes) => Request::from_parts(parts, Body::from(bytes)),
        Err(refusal) => return No(refusal).into_response(),
    };
    render::whole(move || async move {
        leptos_axum::handle_server_fns_with_context(context, request)
            .await
            .into_response()
    })
    .await
}

fn page_env(app: &App, headers: &HeaderMap) -> PageEnv {
    let hrefs = assets::hrefs();
    PageEnv {
        public_url: app.origins.public.clone(),
        script_href: hrefs.script,
        wasm_href: hrefs.wasm,
        style_href: hrefs.style,
        theme: theme(headers),
        dev: assets::is_dev(),
        sse_url: format!("/api/events?since={}", app.engine.now().ms()),
    }
}

fn theme(headers: &HeaderMap) -> Theme {
    let cookies = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(';'));
    cookies
        .filter_map(|pair| pair.trim().strip_prefix("theme="))
        .find_map(Theme::from_text)
        .unwrap_or_default()
}

/// The page's policy: our own scripts by nonce, our own styles, nothing framed but our previews, nobody frames us.
fn protect() {
    let (Some(response), Some(nonce)) =
        (use_context::<ResponseOptions>(), leptos::nonce::use_nonce())
    else {
        return;
    };
    let policy = format!(
        "default-src 'none'; script-src 'strict-dynamic' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
         connect-src 'self'; font-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
    response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// A form's fields; a name may stand more than once.
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// The last value of a name, or nothing.
    pub fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .rev()
            .find(|(n, _)| n == name)
            .map_or("", |(_, value)| value)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = No;

    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, No> {
        let (parts, body) = request.into_parts();
        Ok(Self::read(&parts.headers, body).await?)
    }
}

impl Fields {
    async fn read(headers: &HeaderMap, body: Body) -> Result<Self, Refusal> {
        let is_form = headers
            .get(header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .is_some_and(|t| t.starts_with("application/x-www-form-urlencoded"));
        let bytes = body::whole(body).await?;
        if !is_form && !bytes.is_empty() {
            return Err(Refusal::new(Code::Malformed, "This route takes a form."));
        }
        Ok(Self(
            url::form_urlencoded::parse(&bytes)
                .map(|(n, v)| (n.into_owned(), v.into_owned()))
                .collect(),
        ))
    }
}

/// 303 to a page of ours, with what it should say.
pub fn back_to(path: &str, notice: &str) -> Response {
    let separator = if path.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{path}{separator}notice={notice}")).into_response()
}

fn sign_in_first(path: &str) -> Response {
    Redirect::to(&link::login(path)).into_response()
}

/// `POST /approvals/{id}`: the decision, as a form.
pub async fn decide(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    FromOurPage(proof): FromOurPage,
    Path(id): Path<String>,
    fields: Fields,
) -> Response {
    let id = ApprovalId::new(id);
    let page = link::approval(&id);
    let Some(person) = person else {
        return sign_in_first(&page);
    };
    let Some(verdict) = Verdict::from_text(fields.get("decision")) else {
        return back_to(&page, Code::InvalidArguments.as_str());
    };
    match take(&app, &person, proof, &id, verdict, &fields).await {
        Ok(()) => Redirect::to(&page).into_response(),
        Err(notice) => back_to(&page, notice),
    }
}

async fn take(
    app: &App,
    person: &Person,
    proof: cloudhal_domain::origin::SameOrigin,
    id: &ApprovalId,
    verdict: Verdict,
    fields: &Fields,
) -> Result<(), &'static str> {
    let approval = approvals::for_person(&app.engine, person, id)
        .await
        .map_err(|r| r.code.as_str())?
        .approval;
    // Typed by hand, so that one stray click, or an agent that drives this browser, does not end a site (guide to security: A4).
    if verdict == Verdict::Approve
        && approval.card.risk == Risk::Irreversible
        && fields.get("confirm").trim() != approval.card.site.slug
    {
        return Err("confirm_needed");
    }
    let decider = Decider::new(person, proof);
    let reason = Some(fields.get("reason").to_owned());
    approvals::decide(
        &app.engine,
        &decider,
        &approval.site,
        id,
        verdict,
        fields.get("seenDigest"),
        reason,
    )
    .await
    .map(|_| ())
    .map_err(|r| r.code.as_str())
}

/// `POST /approvals/deny`: many at once, each on its own; nothing is ever approved this way.
pub async fn deny_many(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    FromOurPage(proof): FromOurPage,
    fields: Fields,
) -> Response {
    let Some(person) = person else {
        return sign_in_first(link::APPROVALS);
    };
    let ids: Vec<&str> = fields
        .all("ids")
        .take(limits::PAGE_ITEMS_MAX as usize)
        .collect();
    if ids.is_empty() {
        return back_to(link::APPROVALS, "nothing_selected");
    }
    let mut refused = false;
    for id in ids {
        refused |= deny_one(
            &app,
            &person,
            proof,
            &ApprovalId::new(id),
            fields.get("reason"),
        )
        .await
        .is_err();
    }
    back_to(
        link::APPROVALS,
        if refused { "denied_some" } else { "denied_all" },
    )
}

async fn deny_one(
    app: &App,
    person: &Person,
    proof: cloudhal_domain::origin::SameOrigin,
    id: &ApprovalId,
    reason: &str,
) -> Result<(), Refusal> {
    let approval = approvals::for_person(&app.engine, person, id)
        .await?
        .approval;
    let decider = Decider::new(person, proof);
    approvals::decide(
        &app.engine,
        &decider,
        &approval.site,
        id,
        Verdict::Deny,
        approval.seen_digest.as_str(),
        Some(reason.to_owned()),
    )
    .await?;
    Ok(())
}

/// `POST /sites/{slug}/publish`
pub async fn publish(
    app: State<App>,
    person: MaybePerson,
    proof: FromOurPage,
    Path(slug): Path<String>,
    fields: Fields,
) -> Response {
    let page = link::site(&slug);
    act(
        app,
        person,
        proof,
        &slug,
        &page,
        "publish",
        |site| json!({"site": site}),
        &fields,
        "published",
    )
    .await
}

/// `POST /sites/{slug}/rollback`
pub async fn rollback(
    app: State<App>,
    person: MaybePerson,
    proof: FromOurPage,
    Path(slug): Path<String>,
    fields: Fields,
) -> Response {
    let page = link::versions(&slug);
    let version: i64 = fields.get("version").parse().unwrap_or(0);
    act(
        app,
        person,
        proof,
        &slug,
        &page,
        "rollback",
        |site| json!({"site": site, "version": version}),
        &fields,
        "rolled_back",
    )
    .await
}

/// `POST /sites/{slug}/delete`
pub async fn delete_site(
    app: State<App>,
    person: MaybePerson,
    proof: FromOurPage,
    Path(slug): Path<String>,
    fields: Fields,
) -> Response {
    let page = link::site(&slug);
    if fields.get("confirm").trim() != slug {
        return back_to(&page, "confirm_needed");
    }
    let response = act(
        app,
        person,
        proof,
        &slug,
        &page,
        "delete",
        |site| json!({"site": site}),
        &fields,
        "deleted",
    )
    .await;
    let done = response
        .headers()
        .get(header::LOCATION)
        .is_some_and(|to| to.as_bytes().ends_with(b"notice=deleted"));
    if done {
        back_to(link::SITES, "deleted")
    } else {
        response
    }
}

/// `POST /sites/{slug}/nodes/{node}/delete`
pub async fn delete_node(
    app: State<App>,
    person: MaybePerson,
    proof: FromOurPage,
    Path((slug, node)): Path<(String, String)>,
    fields: Fields,
) -> Response {
    let page = link::site(&slug);
    let node = NodeId::new(node);
    act(
        app,
        person,
        proof,
        &slug,
        &page,
        "delete",
        |site| json!({"site": site, "node": node}),
        &fields,
        "deleted",
    )
    .await
}

/// A person's own click on a gated tool; the form carries the state that its page showed.
#[expect(clippy::too_many_arguments, reason = "four forms, one path")]
async fn act(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    FromOurPage(proof): FromOurPage,
    slug: &str,
    page: &str,
    tool: &str,
    arguments: impl FnOnce(&SiteId) -> Value,
    fields: &Fields,
    done: &str,
) -> Response {
    let Some(person) = person else {
        return sign_in_first(page);
    };
    let site = match studio::site_of(&app.engine, &person, slug).await {
        Ok((site, _)) => SiteId::new(site.id),
        Err(refusal) => return back_to(link::SITES, refusal.code.as_str()),
    };
    match direct::act(
        &app.engine,
        &person,
        proof,
        tool,
        arguments(&site),
        fields.get("stateHash"),
    )
    .await
    {
        Ok(_) => back_to(page, done),
        // On these pages the site changed, not a request.
        Err(refusal) if refusal.code == Code::StaleView => back_to(page, Code::Conflict.as_str()),
        Err(refusal) => back_to(page, refusal.code.as_str()),
    }
}

/// `GET /preview/approvals/{id}/{node}/{side}`: other people's text, for a frame without scripts, cookies or origin.
pub async fn preview(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    Path((id, node, side)): Path<(String, String, String)>,
) -> Response {
    let (Some(person), Some(side)) = (person, link::Side::from_text(&side)) else {
        return framed(Err(Refusal::not_found("page")));
    };
    framed(
        studio::preview(
            &app.engine,
            &person,
            &ApprovalId::new(id),
            &NodeId::new(node),
            side,
        )
        .await,
    )
}

/// `GET /preview/sites/{slug}/{node}`
pub async fn draft_preview(
    State(app): State<App>,
    MaybePerson(person): MaybePerson,
    Path((slug, node)): Path<(String, String)>,
) -> Response {
    let Some(person) = person else {
        return framed(Err(Refusal::not_found("page")));
    };
    framed(studio::draft_preview(&app.engine, &person, &slug, &NodeId::new(node)).await)
}

const FRAMED: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src https: data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; sandbox";

fn framed(html: Result<String, Refusal>) -> Response {
    let (status, html) = match html {
        Ok(html) => (StatusCode::OK, html),
        Err(refusal) => (
            StatusCode::from_u16(refusal.code.status()).unwrap_or(StatusCode::NOT_FOUND),
            "<!doctype html><title>Not found</title><p>There is nothing to show here.".into(),
        ),
    };
    let headers = [
        (header::CONTENT_SECURITY_POLICY, FRAMED),
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "private, no-store"),
    ];
    (status, headers, html).into_response()
}
