//! What a person may do on a site.

use serde::{Deserialize, Serialize};

/// Role of a person on one site. A workspace owner has `Owner` on every site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    Editor,
    Approver,
    Owner,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Approver => "approver",
            Self::Owner => "owner",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Viewer, Self::Editor, Self::Approver, Self::Owner]
            .into_iter()
            .find(|r| r.as_str() == text)
    }

    /// Approve or deny what agents ask.
    pub fn may_decide(self) -> bool {
        self >= Self::Approver
    }

    /// Run a gated tool by one's own click.
    pub fn may_act(self) -> bool {
        self >= Self::Approver
    }

    /// Change who may do what here, and what an approval takes.
    pub fn may_manage(self) -> bool {
        self == Self::Owner
    }

    /// Delete the site itself.
    pub fn may_delete_site(self) -> bool {
        self == Self::Owner
    }
}
