//! Signing in and out. Each is a plain form's POST; the way back is a path of our own origin or none.

use super::{Sessions, begin};
use crate::{
    App,
    studio::{Fields, back_to},
};
use axum::{
    extract::{ConnectInfo, Path, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Redirect, Response},
};
use cloudhal_domain::{code::Code, limits, link};
use cloudhal_engine::people::{self, NewPerson, Person};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use secrecy::SecretString;
use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    sync::LazyLock,
};
use url::Url;

/// Tries by one address: ten at once, then one every six seconds. Passwords cost 19 MiB and a core each.
static TRIES: LazyLock<DefaultKeyedRateLimiter<IpAddr>> = LazyLock::new(|| {
    let ten = NonZeroU32::MIN.saturating_add(9);
    RateLimiter::keyed(Quota::per_minute(ten).allow_burst(ten))
});

/// `POST /login`
pub async fn password(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    sessions: Sessions,
    fields: Fields,
) -> Response {
    let next = fields.get("next").to_owned();
    let login = |notice: &str| back_to(&format!("{}?next={}", link::LOGIN, encode(&next)), notice);
    if TRIES.check_key(&peer.ip()).is_err() {
        return login(Code::RateLimited.as_str());
    }
    let password = SecretString::from(fields.get("password"));
    match people::verify_password(&app.engine, fields.get("email"), password).await {
        Ok(person) => welcome(&app, sessions, person, &next).await,
        Err(refusal) => login(refusal.code.as_str()),
    }
}

/// `POST /login/link/{token}`
pub async fn one_time_link(
    State(app): State<App>,
    Path(token): Path<String>,
    sessions: Sessions,
    fields: Fields,
) -> Response {
    match people::spend_sign_in_link(&app.engine, &token).await {
        Ok(person) => welcome(&app, sessions, person, fields.get("next")).await,
        Err(_) => back_to(link::LOGIN, "link_spent"),
    }
}

/// `POST /setup/{token}`
pub async fn set_up(
    State(app): State<App>,
    Path(token): Path<String>,
    sessions: Sessions,
    fields: Fields,
) -> Response {
    let new = NewPerson {
        email: fields.get("email").to_owned(),
        name: fields.get("name").to_owned(),
        workspace_owner: true,
        password: Some(SecretString::from(fields.get("password"))),
    };
    match people::set_up(&app.engine, &token, new).await {
        Ok(person) => welcome(&app, sessions, person, "").await,
        Err(refusal) if refusal.code == Code::SignInFailed => back_to(link::LOGIN, "link_spent"),
        Err(refusal) => {
            let chars = fields.get("password").chars().count();
            let notice = match refusal.code {
                Code::InvalidArguments if chars < limits::PASSWORD_CHARS_MIN => {
                    "password_too_short"
                }
                Code::Conflict => "email_taken",
                code => code.as_str(),
            };
            back_to(&format!("{}/{}", link::SETUP, encode(&token)), notice)
        }
    }
}

/// `POST /logout`
pub async fn out(mut sessions: Sessions) -> Response {
    match sessions.logout().await {
        Ok(_) => back_to(link::LOGIN, "signed_out"),
        Err(error) => {
            tracing::error!(%error, "signing out");
            back_to(link::LOGIN, Code::Unavailable.as_str())
        }
    }
}

async fn welcome(app: &App, mut sessions: Sessions, person: Person, next: &str) -> Response {
    if let Err(refusal) = begin(&mut sessions, person).await {
        return back_to(link::LOGIN, refusal.code.as_str());
    }
    let to = safe_next(&app.origins.public, next).unwrap_or_else(|| link::APPROVALS.to_owned());
    Redirect::to(&to).into_response()
}

/// `POST /theme`: a cookie that the next page is rendered with; it is no secret and no session.
pub async fn theme(State(app): State<App>, fields: Fields) -> Response {
    let theme = cloudhal_app::Theme::from_text(fields.get("theme")).unwrap_or_default();
    let to = safe_next(&app.origins.public, fields.get("next"))
        .unwrap_or_else(|| link::APPROVALS.to_owned());
    let secure = if app.origins.https { "; Secure" } else { "" };
    let cookie = format!(
        "theme={}; Path=/; Max-Age=31536000; SameSite=Lax{secure}",
        theme.as_str()
    );
    let mut response = Redirect::to(&to).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Where a person is sent after signing in: a page of ours, judged by the URL parser that browsers agree with and written
/// anew from its parts, or nothing (guide to cases: C73).
pub fn safe_next(public: &str, next: &str) -> Option<String> {
    if !next.starts_with('/')
        || next.len() > 2_000
        || next.chars().any(|c| c.is_control() || c == '\\')
    {
        return None;
    }
    let ours = Url::parse(public).ok()?;
    let url = ours.join(next).ok()?;
    let path = url.path();
    let pages = [
        link::APPROVALS,
        link::SITES,
        link::AGENTS,
        link::PEOPLE,
        link::JOURNAL,
    ];
    let known = pages.iter().any(|page| {
        path == *page
            || path
                .strip_prefix(page)
                .is_some_and(|rest| rest.starts_with('/'))
    });
    if url.origin() != ours.origin() || !url.username().is_empty() || !known || path.contains("//")
    {
        return None;
    }
    Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

fn encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_ours_are_gone_back_to() {
        let ours = "https://hal.example";
        let id = "/approvals/abcdefghijklmnopqrstuvwxyz";
        assert_eq!(safe_next(ours, id).as_deref(), Some(id));
        assert_eq!(
            safe_next(ours, "/approvals?tab=denied&text=a%20b").as_deref(),
            Some("/approvals?tab=denied&text=a%20b")
        );
        assert_eq!(
            safe_next(ours, "/sites/x/nodes/y#z").as_deref(),
            Some("/sites/x/nodes/y")
        );
        for hostile in [
            "",
            "https://evil.example/approvals",
            "//evil.example/approvals",
            "///evil.example/approvals",
            "/\\evil.example/approvals",
            "\\\\evil.example",
            "/\\/evil.example",
            "/%09/evil.example",
            "/\t/evil.example/approvals",
            "/.//evil.example/approvals",
            "/..//evil.example",
            "/a/..//evil.example/approvals",
            "/approvals/..//evil.example",
            "/approvals//evil.example",
            "javascript:alert(1)",
            "/javascript:alert(1)",
            "data:text/html,x",
            "@evil.example",
            "/@evil.example",
            "http:evil.example",
            "/approvals\r\nSet-Cookie: a=b",
            "/approvals\u{0}",
            "/login?next=/approvals",
            "/api/events",
            "/_fn/viewer",
            "/logout",
            "/live/x/",
            "/approvalsx",
            "approvals",
            "/../approvals\\",
        ] {
            let got = safe_next(ours, hostile);
            assert!(
                got.as_deref().is_none_or(|to| to.starts_with("/approvals")
                    && !to.contains("//")
                    && !to.contains('\\')),
                "{hostile:?} -> {got:?}"
            );
        }
        assert_eq!(safe_next(ours, "//evil.example/approvals"), None);
        assert_eq!(safe_next(ours, "/\\evil.example/approvals"), None);
    }
}
