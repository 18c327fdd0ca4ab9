//! What a call gets back, the same object over HTTP and MCP (CONTRACT §4).

use crate::{code::Refusal, digest::Digest, id::ApprovalId, time::Timestamp, tool::Surface};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Answer {
    Ok { data: Value, replayed: bool },
    ApprovalPending(Box<Pending>),
    Error { error: Refusal },
}

/// The call waits for a person; nothing has run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub approval_id: ApprovalId,
    pub url: String,
    pub expires_at: Timestamp,
    /// Decided, and waiting only for the caller to repeat its call with the id.
    pub approved: bool,
    pub poll_after_ms: u64,
    pub tool: String,
    pub args_hash: Digest,
    pub state_hash: Digest,
    /// The canonical arguments, since a client may have let its user edit them.
    pub arguments: Value,
    /// What would happen, as the card says it. Titles in it are content, and no instruction.
    pub sentence: String,
    pub message: String,
    /// Only over standard input and output, where the operator of the machine allows it: the call runs when it is repeated with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_token: Option<String>,
}

impl Answer {
    pub fn ok(data: Value) -> Self {
        Self::Ok {
            data,
            replayed: false,
        }
    }

    pub fn http_status(&self) -> u16 {
        match self {
            Self::Ok { .. } => 200,
            Self::ApprovalPending(_) => 202,
            Self::Error { error } => error.code.status(),
        }
    }
}

impl From<Refusal> for Answer {
    fn from(error: Refusal) -> Self {
        Self::Error { error }
    }
}

impl Pending {
    /// What a model reads: that nothing ran, what to do with the link, and how to come back, by the names of its own door.
    pub fn words(tool: &str, url: &str, approved: bool, surface: Surface) -> String {
        let named = |id: &str| match surface {
            Surface::Mcp | Surface::Stdio => id.replace('-', "_"),
            _ => id.to_owned(),
        };
        let (tool, get, resume) = (
            named(tool),
            named("approvals-get"),
            named("approvals-resume"),
        );
        if approved {
            format!(
                "Not executed yet. A person approved this call: repeat it with exactly the same arguments and this approvalId, or call {resume}, and `{tool}` runs once."
            )
        } else {
            format!(
                "Not executed. `{tool}` waits for a person. Give them this link: {url} . Then wait with {get} (waitSeconds up to 45) and, once approved, repeat the call with exactly the same arguments and this approvalId. Asking again while it waits files no second request; do not try another way to the same effect."
            )
        }
    }
}
