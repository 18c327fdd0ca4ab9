//! Paths of the Studio as functions: whoever hands out a link and whoever routes it use the same ones.

use crate::id::{ApprovalId, NodeId};

pub const APPROVALS: &str = "/approvals";
pub const SITES: &str = "/sites";
pub const AGENTS: &str = "/agents";
pub const PEOPLE: &str = "/people";
pub const JOURNAL: &str = "/journal";
pub const LOGIN: &str = "/login";
pub const LOGOUT: &str = "/logout";
pub const SETUP: &str = "/setup";

pub fn approval(id: &ApprovalId) -> String {
    format!("/approvals/{id}")
}

/// The changes of an approval from a place in their list on.
pub fn changes(id: &ApprovalId, from: i64) -> String {
    format!("/approvals/{id}/changes?from={from}")
}

pub fn site(slug: &str) -> String {
    format!("/sites/{slug}")
}

pub fn node(slug: &str, node: &NodeId) -> String {
    format!("/sites/{slug}/nodes/{node}")
}

pub fn versions(slug: &str) -> String {
    format!("/sites/{slug}/versions")
}

/// Who belongs to a site, and what an approval on it takes.
pub fn settings(slug: &str) -> String {
    format!("/sites/{slug}/settings")
}

/// The published site; `path` without slashes at its ends.
pub fn live(slug: &str, path: &str) -> String {
    if path.is_empty() {
        format!("/live/{slug}/")
    } else {
        format!("/live/{slug}/{path}/")
    }
}

/// One side of the rendered comparison on an approval page, for a sandboxed frame.
pub fn preview(id: &ApprovalId, node: &NodeId, side: Side) -> String {
    format!("/preview/approvals/{id}/{node}/{}", side.as_str())
}

/// The draft of one node, rendered, for a sandboxed frame.
pub fn draft_preview(slug: &str, node: &NodeId) -> String {
    format!("/preview/sites/{slug}/{node}")
}

/// Which side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Before,
    After,
}

impl Side {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Before, Self::After]
            .into_iter()
            .find(|s| s.as_str() == text)
    }
}

/// `/login` with the way back.
pub fn login(next: &str) -> String {
    let escaped: String = next
        .bytes()
        .map(|b| match b {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                char::from(b).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("{LOGIN}?next={escaped}")
}
