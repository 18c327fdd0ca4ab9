//! Who comes in: a key, then a body that is small enough and means one thing. Host and Origin were checked for all of the
//! agents' doors, in `routes`.

use super::{
    message::{self, Answers, Unreadable},
    waiting,
};
use crate::{App, agents, body, config::Origins};
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, Method, header},
};
use cloudhal_domain::{
    code::{Code, Refusal},
    tool::Surface,
};

pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// Where RFC 9728 puts it for a resource with a path.
pub const METADATA_PATH_OF_MCP: &str = "/.well-known/oauth-protected-resource/mcp";

pub enum TurnedAway {
    Refused(Refusal),
    /// No good key: the answer says how to get in.
    Unknown {
        refusal: Refusal,
        challenge: HeaderValue,
    },
    /// Not a message of JSON-RPC, or not one with a single meaning.
    Unreadable(Unreadable),
}

impl From<Refusal> for TurnedAway {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// The request as `rmcp` may see it: the caller among its extensions, no credential in its headers, its body read and rewritten.
pub async fn admit(app: &App, request: Request) -> Result<Request, TurnedAway> {
    let (mut parts, body) = request.into_parts();
    let caller = agents::caller(app, &parts.headers, Surface::Mcp)
        .await
        .map_err(|refusal| unknown(app, refusal))?;
    let body = if parts.method == Method::POST {
        let message = message::read(&body::whole(body).await?, Answers::Refused);
        let mut message = message.map_err(TurnedAway::Unreadable)?;
        waiting::out(app, &caller, &mut parts, &mut message).await;
        Body::from(message.to_string())
    } else {
        Body::empty()
    };
    parts.extensions.insert(caller);
    // `rmcp` keeps the headers beside the call and logs them at its debug level.
    for name in [
        header::AUTHORIZATION,
        header::COOKIE,
        header::CONTENT_LENGTH,
    ] {
        parts.headers.remove(name);
    }
    Ok(Request::from_parts(parts, body))
}

/// The origin as `rmcp` wants it: with its port said, since an entry without one matches every port there.
pub fn origin_with_port(origins: &Origins) -> String {
    let host = &origins.public_host;
    let named = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    match (named, origins.https) {
        (true, _) => origins.public.clone(),
        (false, true) => format!("{}:443", origins.public),
        (false, false) => format!("{}:80", origins.public),
    }
}

/// Clients that are no browser send no Origin; whoever sends one must be a page of ours.
fn unknown(app: &App, refusal: Refusal) -> TurnedAway {
    let challenge = format!(
        "Bearer resource_metadata=\"{}{METADATA_PATH}\"",
        app.engine.settings().public_url
    );
    match HeaderValue::from_str(&challenge) {
        Ok(challenge) if refusal.code == Code::Unauthorized => {
            TurnedAway::Unknown { refusal, challenge }
        }
        _ => TurnedAway::Refused(refusal),
    }
}
