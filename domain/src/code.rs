//! Every stable code, its HTTP status and whether trying again may help. The table is CONTRACT §4; agents match on it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $text:literal $status:literal $retryable:literal)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name),+ }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name),+];

            pub fn as_str(self) -> &'static str { match self { $(Self::$name => $text),+ } }

            /// HTTP status of an answer with this code.
            pub fn status(self) -> u16 { match self { $(Self::$name => $status),+ } }

            /// Whether the very same call may succeed later.
            pub fn retryable(self) -> bool { match self { $(Self::$name => $retryable),+ } }
        }
    };
}

codes! {
    ApprovalDenied "approval_denied" 403 false
    ApprovalExpired "approval_expired" 410 false
    ApprovalVoided "approval_voided" 409 false
    ApprovalMismatch "approval_mismatch" 409 false
    ApprovalCancelled "approval_cancelled" 409 false
    NotFound "not_found" 404 false
    ApprovalNotFound "approval_not_found" 404 false
    ApprovalUnknownOutcome "approval_unknown_outcome" 409 false
    TooManyPending "too_many_pending" 429 true
    InsufficientScope "insufficient_scope" 403 false
    InvalidArguments "invalid_arguments" 422 false
    UnknownTool "unknown_tool" 404 false
    Conflict "conflict" 409 false
    Unauthorized "unauthorized" 401 false
    AgentsNotAllowed "agents_not_allowed" 403 false
    Forbidden "forbidden" 403 false
    CrossOrigin "cross_origin" 403 false
    Malformed "malformed" 400 false
    RateLimited "rate_limited" 429 true
    PayloadTooLarge "payload_too_large" 413 false
    Unavailable "unavailable" 503 true
    /// People's routes: a lost race.
    AlreadyDecided "already_decided" 409 false
    /// People's routes: the digest does not name what is on the record.
    StaleView "stale_view" 409 false
    /// People's routes: wrong e-mail or password, spent link.
    SignInFailed "sign_in_failed" 403 false
    /// A method that the route does not have.
    MethodNotAllowed "method_not_allowed" 405 false
    /// A Host that the public URL does not name.
    HostNotAllowed "host_not_allowed" 403 false
    /// Our own fault; the log knows more.
    Internal "internal" 500 true
}

impl Code {
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::from_text(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown code {text}")))
    }
}

/// A typed no: what happened, to what, and what to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub retryable: bool,
    #[serde(default)]
    pub details: Value,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.retryable(),
            details: Value::Object(Default::default()),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Value::Object(details) = &mut self.details {
            details.insert(name.into(), value.into());
        }
        self
    }

    /// One answer for what is not there and for what this caller may not see (DESIGN §4, rule 10).
    pub fn not_found(what: &str) -> Self {
        Self::new(
            Code::NotFound,
            format!("There is no such {what}, or it is not yours to see."),
        )
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::Conflict, message)
    }
}
