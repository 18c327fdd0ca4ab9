//! `/api`: JSON for signed-in people. Every route below stands behind the session and the same-origin check.

pub mod webhooks;

use crate::{
    App,
    people::{FromOurPage, SignedIn},
    reply::No,
};
use axum::{
    Json,
    body::Body,
    extract::{Path, Query, State},
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use cloudhal_domain::{
    approval::{ApprovalRecord, Status, Verdict},
    code::{Code, Refusal},
    id::{ApprovalId, PersonId, SiteId},
    limits,
    role::Role,
    time::Timestamp,
    view::LiveHint,
};
use cloudhal_engine::{
    approvals,
    authority::Decider,
    background,
    members::{self, Members},
    people::{self as engine_people, Person},
    studio,
};
use futures::Stream;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    time::Duration,
};
use tokio::sync::broadcast::error::RecvError;

pub mod agents;
pub mod people;
pub mod personal_keys;
pub mod policy;

/// A stream ends after this and the browser opens it again: a session that ended meanwhile ends here too.
const STREAM_MAX: Duration = Duration::from_secs(300);

#[derive(Deserialize)]
pub struct ListQuery {
    status: Option<String>,
    cursor: Option<String>,
    limit: Option<String>,
}

/// A whole number of a query; anything else is the asker's fault, and said so.
fn number(name: &str, text: Option<&str>) -> Result<Option<i64>, Refusal> {
    let parsed = text.filter(|text| !text.is_empty()).map(str::parse);
    parsed.transpose().map_err(|_| {
        Refusal::new(
            Code::InvalidArguments,
            format!("{name} must be a whole number."),
        )
    })
}

/// A body of that shape and no other.
fn read<T: DeserializeOwned>(body: Value, shape: &str) -> Result<T, Refusal> {
    let wrong = |problem: String| {
        Refusal::new(
            Code::InvalidArguments,
            format!("The body is {shape}: {problem}. Nothing was changed."),
        )
    };
    // A list would be taken as fields in their order.
    if !body.is_object() {
        return Err(wrong("it must be an object".into()));
    }
    serde_json::from_value(body).map_err(|error| wrong(error.to_string()))
}

/// `GET /api/sites/{site}/approvals`
pub async fn list(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path(site): Path<String>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, No> {
    let site = SiteId::new(site);
    engine_people::role_on(&app.engine, &person, &site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let status = match query.status.as_deref() {
        None | Some("") => "",
        Some(text) => Status::from_text(text).ok_or_else(|| Refusal::new(Code::InvalidArguments, "status must be pending, approved, denied, expired, voided, cancelled or redeemed."))?.as_str(),
    };
    let filter = studio::Filter {
        site: site.as_str().to_owned(),
        ..Default::default()
    };
    let limit = number("limit", query.limit.as_deref())?
        .unwrap_or(limits::PAGE_ITEMS_DEFAULT)
        .clamp(1, limits::PAGE_ITEMS_MAX);
    let (rows, next) = studio::list_standings(
        &app.engine,
        &filter,
        (status, status),
        query.cursor.as_deref(),
        limit,
    )
    .await?;
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        items.push(record(&app, &person, &site, &row.id).await?);
    }
    Ok(Json(json!({"items": items, "nextCursor": next})))
}

/// `GET /api/sites/{site}/approvals/{id}`
pub async fn get(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path((site, id)): Path<(String, String)>,
) -> Result<Json<ApprovalRecord>, No> {
    Ok(Json(
        record(&app, &person, &SiteId::new(site), &ApprovalId::new(id)).await?,
    ))
}

async fn record(
    app: &App,
    person: &Person,
    site: &SiteId,
    id: &ApprovalId,
) -> Result<ApprovalRecord, Refusal> {
    let approval = approvals::for_person(&app.engine, person, id)
        .await?
        .approval;
    if approval.site != *site {
        return Err(Refusal::not_found("approval"));
    }
    Ok(approval.record(app.engine.now(), app.engine.approval_url(id)))
}

/// `POST /api/sites/{site}/approvals/{id}/approve`
pub async fn approve(
    app: State<App>,
    who: SignedIn,
    proof: FromOurPage,
    path: Path<(String, String)>,
    body: Body,
) -> Result<Json<ApprovalRecord>, No> {
    decide(app, who, proof, path, Verdict::Approve, body).await
}

/// `POST /api/sites/{site}/approvals/{id}/deny`
pub async fn deny(
    app: State<App>,
    who: SignedIn,
    proof: FromOurPage,
    path: Path<(String, String)>,
    body: Body,
) -> Result<Json<ApprovalRecord>, No> {
    decide(app, who, proof, path, Verdict::Deny, body).await
}

async fn decide(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((site, id)): Path<(String, String)>,
    verdict: Verdict,
    body: Body,
) -> Result<Json<ApprovalRecord>, No> {
    let body = crate::agents::read_body(body).await?;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    // A missing or malformed digest is what it is: not what the page showed.
    let seen = text("seenDigest").unwrap_or_default();
    let decider = Decider::new(&person, proof);
    let record = approvals::decide(
        &app.engine,
        &decider,
        &SiteId::new(site),
        &ApprovalId::new(id),
        verdict,
        seen,
        text("reason").map(str::to_owned),
    )
    .await?;
    Ok(Json(record))
}

/// `GET /api/sites`
pub async fn sites(State(app): State<App>, SignedIn(person): SignedIn) -> Result<Json<Value>, No> {
    Ok(Json(
        json!({"items": studio::sites(&app.engine, &person).await?, "nextCursor": null}),
    ))
}

/// `GET /api/sites/{site}/members`: who belongs to it, and the rules of its policy that nobody could satisfy any more.
pub async fn members(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Path(site): Path<String>,
) -> Result<Json<Value>, No> {
    let all = members::list(&app.engine, &person, &SiteId::new(site)).await?;
    Ok(listed(all))
}

fn listed(members: Members) -> Json<Value> {
    Json(
        json!({"items": members.items, "nextCursor": null, "unsatisfiable": members.unsatisfiable}),
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Membership {
    /// `null` ends it; a body without it is a slip, and ends nothing.
    #[serde(deserialize_with = "Option::deserialize")]
    role: Option<Role>,
    #[serde(default)]
    groups: Vec<String>,
}

/// `PUT /api/sites/{site}/members/{person}`: role and groups, by an owner of the site.
pub async fn set_member(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path((site, who)): Path<(String, String)>,
    body: Body,
) -> Result<Json<Value>, No> {
    let body = crate::agents::read_body(body).await?;
    let shape = r#"{"role": "viewer" | "editor" | "approver" | "owner" | null, "groups": […]}"#;
    let Membership { role, groups } = read(body, shape)?;
    let (site, who) = (SiteId::new(site), PersonId::new(who));
    let change = members::Change {
        role,
        groups,
        only_after: None,
    };
    let left = members::set(&app.engine, &person, proof, &site, &who, change).await?;
    // Whoever took themselves off the site sees it no more.
    Ok(listed(left.unwrap_or_default()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewMember {
    email: String,
    role: Role,
    #[serde(default)]
    groups: Vec<String>,
}

/// `POST /api/sites/{site}/members`: somebody with an account, by e-mail address.
pub async fn add_member(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    FromOurPage(proof): FromOurPage,
    Path(site): Path<String>,
    body: Body,
) -> Result<Json<Value>, No> {
    let site = SiteId::new(site);
    let body = crate::agents::read_body(body).await?;
    // Before the body is looked at, so that a site that is not there and a foreign one answer alike.
    engine_people::role_on(&app.engine, &person, &site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let shape =
        r#"{"email": "…", "role": "viewer" | "editor" | "approver" | "owner", "groups": […]}"#;
    let new: NewMember = read(body, shape)?;
    let NewMember {
        email,
        role,
        groups,
    } = new;
    let change = members::Change {
        role: Some(role),
        groups,
        only_after: None,
    };
    let left = members::add(&app.engine, &person, proof, &site, &email, change).await?;
    Ok(listed(left.unwrap_or_default()))
}

#[derive(Deserialize)]
pub struct EventsQuery {
    /// Unix milliseconds: when the page that listens was made.
    since: Option<String>,
}

/// `GET /api/events`: hints, as they come, about sites that this person may see. What happened between the page's making and
/// now is told first; a page that was made too long ago is told to look at everything again.
pub async fn events(
    State(app): State<App>,
    SignedIn(person): SignedIn,
    Query(query): Query<EventsQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, No> {
    let since = number("since", query.since.as_deref())?;
    let mut state = Streaming {
        hints: app.engine.live().subscribe(),
        app,
        person,
        may_see: HashMap::new(),
        first: VecDeque::new(),
        until: tokio::time::Instant::now() + STREAM_MAX,
    };
    state.catch_up(since).await;
    let stream = futures::stream::unfold(state, |mut state| async move {
        let event = state.next().await?;
        Some((Ok(event), state))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// Older pages look at everything again instead of being told each thing.
const CATCH_UP: Duration = Duration::from_secs(60);
/// A commit may come a little later than its stamp says.
const OVERLAP: Duration = Duration::from_millis(500);

struct Streaming {
    app: App,
    person: Person,
    hints: tokio::sync::broadcast::Receiver<LiveHint>,
    may_see: HashMap<SiteId, bool>,
    /// What is sent before anything new.
    first: VecDeque<Event>,
    until: tokio::time::Instant,
}

impl Streaming {
    async fn catch_up(&mut self, since: Option<i64>) {
        let resync = Event::default().event("resync").data("{}");
        let oldest = self.app.engine.now().minus(CATCH_UP);
        let since = since.map(Timestamp).filter(|since| *since >= oldest);
        let told = match since {
            Some(since) => background::hints_since(&self.app.engine, since.minus(OVERLAP)).await,
            None => Ok(Vec::new()),
        };
        match (since, told) {
            (Some(_), Ok(hints)) => {
                self.first.push_back(
                    Event::default()
                        .comment("hello")
                        .retry(Duration::from_secs(2)),
                );
                for hint in hints {
                    if self.sees(&hint.site).await
                        && let Ok(event) = Event::default().event("hint").json_data(&hint)
                    {
                        self.first.push_back(event);
                    }
                }
            }
            _ => self.first.push_back(resync.retry(Duration::from_secs(2))),
        }
    }

    async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.first.pop_front() {
            return Some(event);
        }
        loop {
            let mut stopping = self.app.stopping.clone();
            let hint = tokio::select! {
                hint = self.hints.recv() => hint,
                () = tokio::time::sleep_until(self.until) => return None,
                _ = stopping.wait_for(|stopping| *stopping) => return None,
            };
            if let Ok(hint) = &hint
                && moves_access(hint)
                && !self.is_still_signed_in().await
            {
                return None;
            }
            match hint {
                Ok(hint) if self.sees(&hint.site).await => {
                    return Event::default().event("hint").json_data(&hint).ok();
                }
                Ok(_) => {}
                // Some were missed: the page must look at everything again.
                Err(RecvError::Lagged(_)) => {
                    return Some(Event::default().event("resync").data("{}"));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Reads the person afresh: an account that was disabled hears nothing more, and another role sees other sites.
    async fn is_still_signed_in(&mut self) -> bool {
        self.may_see.clear();
        let now = engine_people::by_id(&self.app.engine, self.person.id().as_str()).await;
        match now {
            Ok(Some(person)) if person.session_key() == self.person.session_key() => {
                self.person = person;
                true
            }
            _ => false,
        }
    }

    /// Asked once a stream and site, until somebody's access moves.
    async fn sees(&mut self, site: &SiteId) -> bool {
        if let Some(known) = self.may_see.get(site) {
            return *known;
        }
        let sees = matches!(
            engine_people::role_on(&self.app.engine, &self.person, site).await,
            Ok(Some(_))
        );
        self.may_see.insert(site.clone(), sees);
        sees
    }
}

/// Whether a hint is about who may see what.
fn moves_access(hint: &LiveHint) -> bool {
    hint.kind == "people.changed" || hint.kind == "members.changed"
}
