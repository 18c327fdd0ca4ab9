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

    /// From the least to the most.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Editor, Self::Approver, Self::Owner];

    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }

    /// Let an agent of one's own change the draft.
    pub fn may_edit(self) -> bool {
        self >= Self::Editor
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
