//! The card: the server-made picture of what would happen, shown to the person and kept as evidence.
//!
//! It refers to immutable revisions and never copies a body; the digest of the whole list of changes binds also what it
//! does not list. [`seen_digest`] is what the decision carries.

use crate::{
    digest::{Digest, Framed},
    id::{NodeId, PersonId, SiteId},
    time::Timestamp,
    tool::{CallerKind, Surface},
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// One sentence without a full stop: "Publish 3 changed pages of Harbour Street Bakery".
    pub sentence: String,
    /// What it would mean for what is live: "Version 41 is live now; this would become version 42."
    pub consequence: String,
    pub risk: Risk,
    pub site: CardSite,
    pub asker: Asker,
    /// Further facts that bind, in the order to be read.
    pub facts: Vec<Fact>,
    /// What changes; absent where the effect is not a set of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// How hard it is to take back; decides the extra step that the page asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// A later call undoes it.
    Reversible,
    /// Nothing undoes it.
    Irreversible,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CardSite {
    pub id: SiteId,
    pub slug: String,
    pub title: String,
    pub live_version: Option<i64>,
    pub node_count: i64,
    /// The site's monotonic counter at the moment of asking.
    pub state_rev: i64,
}

/// Who asks, and for whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asker {
    pub kind: CallerKind,
    pub id: String,
    pub name: String,
    /// The person who answers for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    pub surface: Surface,
    /// What the client says of itself, unchecked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    pub id: PersonId,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    pub label: String,
    pub value: String,
}

/// What would change, compared with what is live now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// "compared with what is live", "compared with the draft".
    pub compared_with: String,
    pub added: i64,
    pub edited: i64,
    pub removed: i64,
    /// Of the listed nodes.
    pub words_added: i64,
    pub words_removed: i64,
    /// The first nodes, up to the limit of the design; `total` and `digest` bind them all.
    pub nodes: Vec<NodeChange>,
    pub total: i64,
    pub digest: Digest,
}

/// One node of the change, by reference to its immutable revisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeChange {
    pub node: NodeId,
    pub change: Change,
    pub kind: String,
    pub title: String,
    /// Path on the site, without slashes at its ends; empty for the home page.
    pub path: String,
    /// The path it had, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_before: Option<String>,
    /// Its place among its siblings after the change, ascending; absent where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RevisionRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RevisionRef>,
    pub words_added: i64,
    pub words_removed: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Added,
    Edited,
    Moved,
    Removed,
}

impl Change {
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Added => "new",
            Self::Edited => "edited",
            Self::Moved => "moved",
            Self::Removed => "removed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevisionRef {
    pub rev: i64,
    pub hash: Digest,
}

/// Digest of a whole list of changes, also of those that a card does not list.
pub fn changes_digest<'c>(
    changes: impl Iterator<Item = (&'c NodeId, Option<&'c RevisionRef>, Option<&'c RevisionRef>)>,
) -> Digest {
    let side = |framed: Framed, side: Option<&RevisionRef>| match side {
        Some(r) => framed.number(r.rev).part(r.hash.as_str()),
        None => framed.part("none"),
    };
    changes
        .fold(
            Framed::new("cloudhal/changes/v1"),
            |framed, (node, before, after)| side(side(framed.part(node.as_str()), before), after),
        )
        .finish()
}

/// What the decision carries: the stored card, arguments, state and tool version, so that none of them can differ from
/// what was on screen (CONTRACT §5).
pub fn seen_digest(
    card_text: &str,
    args_hash: &Digest,
    state_hash: &Digest,
    tool_version: &str,
) -> Digest {
    Framed::new("cloudhal/seen/v1")
        .part(card_text)
        .part(args_hash.as_str())
        .part(state_hash.as_str())
        .part(tool_version)
        .finish()
}

/// A short relative look at a moment for server-made text that must not change: the date in UTC.
pub fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}
