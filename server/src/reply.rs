//! One way to say yes and one way to say no, for every JSON door.

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use cloudhal_domain::{
    answer::Answer,
    code::{Code, Refusal},
};

/// An [`Answer`] as an HTTP response.
pub struct Reply(pub Answer);

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry = matches!(&self.0, Answer::Error { error } if matches!(error.code, Code::RateLimited | Code::Unavailable));
        let mut response =
            (status, [(header::CACHE_CONTROL, "no-store")], Json(self.0)).into_response();
        if retry {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
        }
        response
    }
}

/// A [`Refusal`] as an HTTP response.
pub struct No(pub Refusal);

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for No {
    fn into_response(self) -> Response {
        Reply(self.0.into()).into_response()
    }
}

/// A route that is not there, under a JSON prefix.
pub async fn not_found() -> No {
    No(Refusal::new(
        Code::NotFound,
        "There is no such route. GET /openapi.json describes those there are.",
    ))
}

pub async fn method_not_allowed() -> No {
    No(Refusal::new(
        Code::MethodNotAllowed,
        "This route does not take that method.",
    ))
}
