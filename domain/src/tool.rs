//! What a tool says of itself, and the door a call came through.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// What running a tool does; it decides whether a model-initiated call stops (DESIGN §4, rules 1 and 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Changes the draft; the live site never notices.
    Draft,
    /// Changes what others rely on: waits for a person when a model asks.
    Gated,
    /// Reads or withdraws one's own approvals; in every key's scope.
    Approvals,
}

/// A tool as agents see it.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// Stable id, `node-create`.
    pub id: &'static str,
    /// Bumped whenever the arguments or the meaning change; an approval is bound to it.
    pub version: u32,
    pub title: &'static str,
    /// Written for models.
    pub description: &'static str,
    pub effect: Effect,
    pub annotations: Annotations,
    pub input_schema: Value,
    pub output_schema: Value,
}

impl ToolSpec {
    /// MCP names take `_` for `-`.
    pub fn mcp_name(&self) -> String {
        self.id.replace('-', "_")
    }

    /// What an approval is bound to: schema and handler version in one word.
    pub fn binding_version(&self) -> String {
        let schema = crate::digest::Framed::new("cloudhal/tool/v1")
            .part(self.id)
            .number(self.version.into())
            .part(crate::canonical::text(&self.input_schema))
            .finish();
        format!("{}.{}", self.version, &schema.as_str()[7..23])
    }
}

/// Hints to clients, always all four, always true; nothing here is ever decided by what a client makes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    pub read_only_hint: bool,
    pub destructive_hint: bool,
    pub idempotent_hint: bool,
    pub open_world_hint: bool,
}

impl Annotations {
    pub const READ: Self = Self {
        read_only_hint: true,
        destructive_hint: false,
        idempotent_hint: true,
        open_world_hint: false,
    };
    pub const ADD: Self = Self {
        read_only_hint: false,
        destructive_hint: false,
        idempotent_hint: false,
        open_world_hint: false,
    };
    pub const CHANGE: Self = Self {
        read_only_hint: false,
        destructive_hint: true,
        idempotent_hint: false,
        open_world_hint: false,
    };
}

/// The door a call came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// A person's own click.
    Direct,
    /// The model in the Studio.
    Assistant,
    Mcp,
    Http,
    Stdio,
}

impl Surface {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Assistant => "assistant",
            Self::Mcp => "mcp",
            Self::Http => "http",
            Self::Stdio => "stdio",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        [
            Self::Direct,
            Self::Assistant,
            Self::Mcp,
            Self::Http,
            Self::Stdio,
        ]
        .into_iter()
        .find(|s| s.as_str() == text)
    }

    /// As a person reads it: "asked over MCP".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Direct => "by hand",
            Self::Assistant => "in the assistant",
            Self::Mcp => "over MCP",
            Self::Http => "over HTTP",
            Self::Stdio => "from the command line",
        }
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerKind {
    Agent,
    Person,
}

impl CallerKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Person => "person",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Agent, Self::Person]
            .into_iter()
            .find(|k| k.as_str() == text)
    }
}
