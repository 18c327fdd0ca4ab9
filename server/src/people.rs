//! People's sessions: a cookie that names a row, a row that names a person, a person read afresh on every request.
//!
//! tower-sessions keeps the cookie and the row, axum-login ties them to a person and changes the id at sign-in. A session ends
//! after 30 minutes without a request and after 12 hours in any case, when the person signs out, is disabled, or changes the
//! password. API keys are never read here, and any request that carries one is refused before anything else.

pub mod sign_in;
mod store;

use crate::{App, reply::No};
use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use axum_login::{AuthManagerLayer, AuthManagerLayerBuilder, AuthSession, AuthUser, AuthnBackend};
use cloudhal_domain::{
    code::{Code, Refusal},
    limits,
    origin::{self, SameOrigin},
    time::Timestamp,
};
use cloudhal_engine::{
    Engine,
    people::{self, Person},
    personal_keys::Session,
};
use std::{convert::Infallible, fmt};
use time::{Duration, OffsetDateTime};
use tower_sessions::{Expiry, SessionManagerLayer, cookie::SameSite};

/// Session keys: when the person signed in, and when they last did something, both unix seconds.
const SINCE: &str = "since";
const SEEN: &str = "seen";
/// The idle time is moved at most this often, so that reading pages is not a write each time.
const TOUCH_EVERY_S: i64 = 60;

/// A person as axum-login wants one.
#[derive(Clone)]
pub struct Account(pub Person);

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Account").field(self.0.id()).finish()
    }
}

impl AuthUser for Account {
    type Id = String;

    fn id(&self) -> String {
        self.0.id().as_str().to_owned()
    }

    fn session_auth_hash(&self) -> &[u8] {
        self.0.session_key().as_bytes()
    }
}

#[derive(Clone)]
pub struct Accounts(Engine);

impl AuthnBackend for Accounts {
    type User = Account;
    /// Credentials are checked by the engine; only somebody it returned can be signed in.
    type Credentials = Infallible;
    type Error = Refusal;

    async fn authenticate(&self, never: Infallible) -> Result<Option<Account>, Refusal> {
        match never {}
    }

    async fn get_user(&self, id: &String) -> Result<Option<Account>, Refusal> {
        Ok(people::by_id(&self.0, id).await?.map(Account))
    }
}

pub type Sessions = AuthSession<Accounts>;

/// Sessions and people on every route below.
pub fn layer(app: &App) -> AuthManagerLayer<Accounts, store::Sessions> {
    let https = app.origins.https;
    // SameSite=Lax: a link from mail or chat must arrive signed in (guide to cases: C75). Writes are checked by their origin.
    let sessions = SessionManagerLayer::new(store::Sessions::new(app.engine.clone()))
        .with_name(if https { "__Host-cloudhal" } else { "cloudhal" })
        .with_secure(https)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_path("/")
        .with_expiry(Expiry::OnInactivity(Duration::seconds(
            limits::SESSION_IDLE.as_secs() as i64,
        )));
    AuthManagerLayerBuilder::new(Accounts(app.engine.clone()), sessions).build()
}

/// Signs a person in: a new session id, and the clocks of its end.
pub async fn begin(sessions: &mut Sessions, person: Person) -> Result<(), Refusal> {
    let now = OffsetDateTime::now_utc().unix_timestamp();
    // axum-login does this only where nobody was signed in; a planted session may be somebody's (guide to cases: C74).
    sessions.session.cycle_id().await.map_err(unavailable)?;
    sessions
        .login(&Account(person))
        .await
        .map_err(unavailable)?;
    sessions
        .session
        .insert(SINCE, now)
        .await
        .map_err(unavailable)?;
    sessions
        .session
        .insert(SEEN, now)
        .await
        .map_err(unavailable)
}

fn unavailable(error: impl fmt::Display) -> Refusal {
    tracing::error!(%error, "session");
    Refusal::new(
        Code::Unavailable,
        "The session could not be kept. Try again in a moment.",
    )
}

/// The layers that read sessions answer 500 without a word when the database does not; this says what happened, in our shape.
pub async fn say_unavailable(request: Request, next: Next) -> Response {
    let json = ["/api", "/_fn"]
        .iter()
        .any(|start| request.uri().path().starts_with(start));
    let response = next.run(request).await;
    let wordless = response.status() == StatusCode::INTERNAL_SERVER_ERROR
        && !response.headers().contains_key(header::CONTENT_TYPE);
    if !wordless {
        return response;
    }
    let refusal = Refusal::new(
        Code::Unavailable,
        "The session could not be read or kept: the database is busy or cannot be reached. Try again in a moment.",
    );
    let message = refusal.message.clone();
    let mut typed = No(refusal).into_response();
    if !json {
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        typed.headers_mut().insert(header::CONTENT_TYPE, plain);
        typed.headers_mut().remove(header::CONTENT_LENGTH);
        *typed.body_mut() = message.into();
    }
    typed
}

/// Ends sessions that are too old and moves the idle time of the others. A live-update stream is no activity.
pub async fn keep_time(mut sessions: Sessions, request: Request, next: Next) -> Response {
    if sessions.user.is_some() {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let since: i64 = sessions
            .session
            .get(SINCE)
            .await
            .ok()
            .flatten()
            .unwrap_or(0);
        let seen: i64 = sessions.session.get(SEEN).await.ok().flatten().unwrap_or(0);
        if now - since >= limits::SESSION_ABSOLUTE.as_secs() as i64 {
            if let Err(error) = sessions.logout().await {
                return No(unavailable(error)).into_response();
            }
            return next.run(without_person(request, sessions)).await;
        }
        if request.uri().path() != "/api/events" && now - seen >= TOUCH_EVERY_S {
            let _ = sessions.session.insert(SEEN, now).await;
        }
    }
    next.run(request).await
}

/// The request below must see that nobody is signed in any more.
fn without_person(mut request: Request, mut sessions: Sessions) -> Request {
    sessions.user = None;
    request.extensions_mut().insert(sessions);
    request
}

/// First of all on people's routes: whoever carries a bearer credential is not a person (DESIGN §4, rule 3).
pub async fn no_agents(request: Request, next: Next) -> Response {
    let bearer = |value: &HeaderValue| {
        value
            .as_bytes()
            .get(..6)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
    };
    if request
        .headers()
        .get_all(header::AUTHORIZATION)
        .iter()
        .any(bearer)
    {
        return No(Refusal::new(Code::AgentsNotAllowed, "API keys are for /mcp and /tools. This route is for signed-in people, and no key opens it.")).into_response();
    }
    next.run(request).await
}

/// Every unsafe request to a people's route must prove that it comes from a page of ours; the proof rides along.
pub async fn same_origin(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let safe = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    if !safe {
        match prove(&app, request.headers()) {
            Some(proof) => request.extensions_mut().insert(proof),
            None => return No(Refusal::new(Code::CrossOrigin, "This request does not provably come from a page of this Cloudhal. Nothing was done.")).into_response(),
        };
    }
    next.run(request).await
}

fn prove(app: &App, headers: &HeaderMap) -> Option<SameOrigin> {
    let one = |name: &str| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Some(None),
            (Some(value), None) => Some(Some(value.to_str().ok()?)),
            _ => None,
        }
    };
    origin::prove(&app.origins.public, one("sec-fetch-site")?, one("origin")?)
}

/// The signed-in person, for JSON routes; 401 without one.
pub struct SignedIn(pub Person);

impl<S: Send + Sync> FromRequestParts<S> for SignedIn {
    type Rejection = No;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, No> {
        let person = MaybePerson::from_request_parts(parts, state)
            .await
            .unwrap_or(MaybePerson(None));
        person
            .0
            .map(Self)
            .ok_or_else(|| No(Refusal::new(Code::Unauthorized, "Sign in first.")))
    }
}

/// The signed-in person, if any, for pages and forms.
pub struct MaybePerson(pub Option<Person>);

impl<S: Send + Sync> FromRequestParts<S> for MaybePerson {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let person = parts
            .extensions
            .get::<Sessions>()
            .and_then(|sessions| sessions.user.clone());
        Ok(Self(person.map(|account| account.0)))
    }
}

/// The session of a signed-in person, for what is made in it and ends with it.
pub struct InSession(pub Session);

impl<S: Send + Sync> FromRequestParts<S> for InSession {
    type Rejection = No;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, No> {
        let found = match parts.extensions.get::<Sessions>() {
            Some(sessions) if sessions.user.is_some() => session(sessions).await,
            _ => None,
        };
        found
            .map(Self)
            .ok_or_else(|| No(Refusal::new(Code::Unauthorized, "Sign in first.")))
    }
}

/// For forms, which send whoever is not signed in to the sign-in page.
impl<S: Send + Sync> OptionalFromRequestParts<S> for InSession {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Option<Self>, Infallible> {
        let found = <Self as FromRequestParts<S>>::from_request_parts(parts, state);
        Ok(found.await.ok())
    }
}

async fn session(sessions: &Sessions) -> Option<Session> {
    let id = sessions.session.id()?;
    let since: i64 = sessions.session.get(SINCE).await.ok().flatten()?;
    Some(Session {
        id: store::key(&id),
        ends_at: Timestamp(since * 1000).plus(limits::SESSION_ABSOLUTE),
    })
}

/// The proof that [`same_origin`] left; only handlers of unsafe methods can have it.
pub struct FromOurPage(pub SameOrigin);

impl<S: Send + Sync> FromRequestParts<S> for FromOurPage {
    type Rejection = No;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, No> {
        parts
            .extensions
            .get::<SameOrigin>()
            .copied()
            .map(Self)
            .ok_or_else(|| {
                No(Refusal::new(
                    Code::CrossOrigin,
                    "This request does not provably come from a page of this Cloudhal.",
                ))
            })
    }
}
