//! What every server function and every page does first, on the server.

use super::{Packed, StudioError};
use axum::http::{HeaderValue, StatusCode, header, request::Parts};
use cloudhal_domain::{
    code::{Code, Refusal},
    link,
    view::Posted,
};
use cloudhal_engine::{Engine, people::Person};
use leptos::prelude::*;
use leptos_axum::ResponseOptions;
use serde::Serialize;

/// The signed-in person and the engine, or `unauthorized`. Called before the first `await`, where context is at hand.
pub(super) fn signed_in() -> Result<(Engine, Person), StudioError> {
    let person = use_context::<Option<Person>>().flatten();
    match (use_context::<Engine>(), person) {
        (Some(engine), Some(person)) => Ok((engine, person)),
        (None, _) => Err(refuse(Refusal::new(
            Code::Internal,
            "The page was served without its engine.",
        ))),
        (_, None) => Err(refuse(Refusal::new(
            Code::Unauthorized,
            "You are signed out.",
        ))),
    }
}

/// How the form went that this page answers; nothing on any other page. Called before the first `await`.
pub(super) fn posted() -> Posted {
    use_context::<Posted>().unwrap_or_default()
}

/// Passes an answer on, and lets the response carry the status of a refusal.
pub(super) fn tell<T: Serialize>(answer: Result<T, Refusal>) -> Result<Packed<T>, StudioError> {
    Packed::new(&answer.map_err(refuse)?)
}

fn refuse(refusal: Refusal) -> StudioError {
    set_status(refusal.code.status());
    let message = match refusal.code {
        Code::Internal => "Something went wrong on our side.".into(),
        _ => refusal.message,
    };
    StudioError {
        code: refusal.code,
        message,
    }
}

/// A part that fails does not make a page that is already refused look fine, nor a redirect disappear.
pub(super) fn set_status(status: u16) {
    let (Some(response), Ok(status)) = (
        use_context::<ResponseOptions>(),
        StatusCode::from_u16(status),
    ) else {
        return;
    };
    let stands = response.0.read().is_ok_and(|parts| parts.status.is_some());
    if !stands {
        response.set_status(status);
    }
}

/// 303 to the sign-in page with the way back, for a signed-out visit of anything but the sign-in pages.
pub(super) fn send_to_sign_in() -> bool {
    let (Some(parts), Some(person)) = (use_context::<Parts>(), use_context::<Option<Person>>())
    else {
        return false;
    };
    let here = parts.uri.path_and_query().map_or("/", |p| p.as_str());
    if person.is_some() || is_public(parts.uri.path()) {
        return false;
    }
    if let (Some(response), Ok(to)) = (
        use_context::<ResponseOptions>(),
        HeaderValue::from_str(&link::login(here)),
    ) {
        response.set_status(StatusCode::SEE_OTHER);
        response.insert_header(header::LOCATION, to);
        response.insert_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    true
}

fn is_public(path: &str) -> bool {
    path == link::LOGIN || path.starts_with("/login/link/") || path.starts_with("/setup/")
}
