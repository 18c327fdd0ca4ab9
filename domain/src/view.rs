//! What the Studio's screens are made of: made by the engine, sent by server functions, drawn in the browser.

use crate::{
    approval::{ApprovalRecord, Status},
    canonical::Fault,
    card::{Card, NodeChange, Owner, Risk},
    id::{AgentId, ApprovalId, KeyId, NodeId, PersonId, SiteId},
    policy::{Missing, Policy},
    role::Role,
    time::Timestamp,
    tool::Surface,
    webhook::{Delivery, Webhook},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The signed-in person, as the top bar needs them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Viewer {
    pub name: String,
    pub email: String,
    pub owner: bool,
    /// Approvals that wait on sites where this person may decide.
    pub waiting: i64,
}

/// Views of the queue; `Waiting` is what the page opens on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tab {
    #[default]
    Waiting,
    Approved,
    Done,
    Denied,
    Voided,
    Expired,
    All,
}

impl Tab {
    pub const ALL: [Tab; 7] = [
        Self::Waiting,
        Self::Approved,
        Self::Done,
        Self::Denied,
        Self::Voided,
        Self::Expired,
        Self::All,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Approved => "approved",
            Self::Done => "done",
            Self::Denied => "denied",
            Self::Voided => "voided",
            Self::Expired => "expired",
            Self::All => "all",
        }
    }

    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.as_str() == text)
    }

    /// The statuses it shows. Withdrawn requests stand with the voided ones: both ended without a person's no.
    pub fn statuses(self) -> &'static [Status] {
        match self {
            Self::Waiting => &[Status::Pending],
            Self::Approved => &[Status::Approved],
            Self::Done => &[Status::Redeemed],
            Self::Denied => &[Status::Denied],
            Self::Voided => &[Status::Voided, Status::Cancelled],
            Self::Expired => &[Status::Expired],
            Self::All => &Status::ALL,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InboxQuery {
    #[serde(default)]
    pub tab: Tab,
    /// Site slug.
    #[serde(default)]
    pub site: Option<String>,
    #[serde(default)]
    pub tool: Option<String>,
    /// Name of the asking agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Text searched in the sentence and the asker's name.
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboxPage {
    pub rows: Vec<InboxRow>,
    pub next_cursor: Option<String>,
    /// Open ones that the same filter lets through.
    pub waiting: i64,
    pub approved: i64,
    /// Whether the workspace has any agent yet; the empty state differs.
    pub has_agents: bool,
    /// Public URL of the MCP endpoint, for the empty state.
    pub mcp_url: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InboxRow {
    pub id: ApprovalId,
    pub sentence: String,
    pub site_slug: String,
    pub site_title: String,
    pub asker: String,
    pub surface: Surface,
    pub tool: String,
    pub risk: Risk,
    pub status: Status,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
    pub changed_at: Option<Timestamp>,
    /// How the executed call ended: `succeeded`, `failed`, `unknown`.
    pub outcome: Option<String>,
}

/// Everything the approval page shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalView {
    pub record: ApprovalRecord,
    /// The arguments as canonical text, exactly the bytes that were hashed.
    pub arguments_text: String,
    pub may_decide: bool,
    /// What the site's policy still waits for, where it asks for more than one person's approval.
    pub needs: Option<Needs>,
    /// Whether the asking agent belongs to the person who looks.
    pub own_agent: bool,
    /// Diffs of the card's nodes, in the card's order.
    pub diffs: Vec<NodeDiff>,
    /// What changed on the site since the request, when it no longer holds.
    pub changed: Vec<ChangedNode>,
    /// A later open request for the same tool on the same site by the same caller.
    pub newer: Option<ApprovalId>,
    /// Earlier requests for the same call, newest first.
    pub earlier: Vec<InboxRow>,
    /// Where the result can be seen, once live.
    pub live_url: Option<String>,
    pub journal: Vec<JournalRow>,
}

/// Who else has to approve, and what this person can do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    pub missing: Missing,
    /// The person who looks has approved already.
    pub approved: bool,
    /// Their approval does not count: it is their own agent that asks.
    pub own: bool,
}

impl Needs {
    /// Whether a click on Approve of this person would do anything; a denial always does.
    pub fn may_approve(&self) -> bool {
        !self.own && (!self.approved || self.missing.is_nothing())
    }
}

/// Somebody who belongs to a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub person: PersonId,
    pub name: String,
    /// For owners of the site alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    pub role: Role,
    /// Groups that the site's policy may ask for.
    pub groups: Vec<String>,
    /// Whether the account is disabled: it neither signs in nor counts.
    pub disabled: bool,
}

/// A stretch of a long list of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangesView {
    pub approval: ApprovalId,
    pub sentence: String,
    pub from: i64,
    pub total: i64,
    pub diffs: Vec<NodeDiff>,
    /// Where the stretches before and after begin.
    pub before: Option<i64>,
    pub after: Option<i64>,
}

/// What changed on a site since a request: for the page, and in an agent's answer (`details.changed`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangedNode {
    pub node: NodeId,
    pub rev: i64,
    pub title: String,
    pub path: String,
    /// `added`, `edited` or `removed`.
    pub what: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeDiff {
    pub change: NodeChange,
    pub fields: Vec<FieldDiff>,
}

/// One field, before and after, as words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldDiff {
    /// "Title", "Text", "Address", "Order", or a field's own name.
    pub name: String,
    pub spans: Vec<Span>,
    /// Size and SHA-256 of the value after, where it is long.
    pub bytes_after: usize,
    pub sha256_after: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub kind: SpanKind,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    Same,
    Added,
    Removed,
    /// Unchanged text left out of sight; `text` is the whole of it, folded on the page.
    Folded,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalRow {
    pub seq: i64,
    pub at: Timestamp,
    pub kind: String,
    /// "Ada Osei", "copy-editor", "Cloudhal".
    pub actor: String,
    pub sentence: String,
    pub site: Option<SiteId>,
    pub approval: Option<ApprovalId>,
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalPage {
    pub rows: Vec<JournalRow>,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteRow {
    pub id: SiteId,
    pub slug: String,
    pub title: String,
    pub node_count: i64,
    pub live_version: Option<i64>,
    pub live_at: Option<Timestamp>,
    /// Nodes whose draft differs from what is live.
    pub unpublished: i64,
    pub waiting: i64,
    pub role: Role,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteView {
    pub site: SiteRow,
    /// The top level of the draft; deeper levels are on the node's page.
    pub nodes: Vec<NodeRow>,
    pub live_url: String,
    /// What a publish would do now.
    pub publish_card: Card,
    pub state_hash: String,
    pub recent: Vec<JournalRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    pub id: NodeId,
    pub kind: String,
    pub title: String,
    pub slug: String,
    pub path: String,
    pub children: i64,
    pub status: NodeStatus,
    pub updated_at: Timestamp,
}

/// A draft node beside what is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    Live,
    New,
    Edited,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeView {
    pub site: SiteRow,
    pub node: NodeRow,
    /// From the top down, without the node itself.
    pub parents: Vec<NodeRow>,
    pub children: Vec<NodeRow>,
    pub body: String,
    pub description: Option<String>,
    pub fields: Value,
    pub rev: i64,
    pub hash: String,
    pub history: Vec<RevisionRow>,
    /// The draft against what is live.
    pub diff: Option<NodeDiff>,
    pub live_url: Option<String>,
    /// The site's state as the page shows it; the delete form carries it.
    pub state_hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevisionRow {
    pub rev: i64,
    pub title: String,
    pub at: Timestamp,
    pub author: String,
    /// The first version that carries it, if it was ever published.
    pub published_in: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VersionsView {
    pub site: SiteRow,
    pub versions: Vec<VersionRow>,
    pub next_cursor: Option<String>,
    /// The site's state as the page shows it; the rollback forms carry it.
    pub state_hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionRow {
    pub version: i64,
    pub at: Timestamp,
    pub author: String,
    pub node_count: i64,
    pub added: i64,
    pub edited: i64,
    pub removed: i64,
    pub live: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
}

/// An agent, as far as the person who looks may know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRow {
    pub id: AgentId,
    pub name: String,
    /// The person who answers for it.
    pub owner: Owner,
    pub sites: Vec<SiteName>,
    /// Empty means every tool.
    pub tools: Vec<String>,
    pub created_at: Timestamp,
    /// From then on no key of its opens anything.
    pub disabled_at: Option<Timestamp>,
    pub keys: Vec<KeyRow>,
    pub waiting: i64,
    /// Whether the person who looks may change its scope and its keys.
    pub manageable: bool,
}

/// A site as a link names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteName {
    pub id: SiteId,
    pub slug: String,
    pub title: String,
}

/// A key, without what is secret of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyRow {
    pub id: KeyId,
    /// The part that may be shown.
    pub prefix: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to within some minutes; `None` where it never was.
    pub last_used_at: Option<Timestamp>,
}

/// A key of a person's own client, without what is secret of it. It ends with the session it was made in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonalKey {
    pub id: KeyId,
    /// The part that may be shown.
    pub prefix: String,
    /// Which client it is for.
    pub name: String,
    pub created_at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentsView {
    pub agents: Vec<AgentRow>,
    pub mcp_url: String,
    /// Sites that the person who looks may put an agent on.
    pub sites: Vec<SiteName>,
    /// Every tool that an agent can have.
    pub tools: Vec<String>,
    /// Whom a workspace owner may make the owner of an agent; empty for anybody else.
    pub owners: Vec<Owner>,
    /// Keys of the MCP clients of the person who looks.
    pub own_keys: Vec<PersonalKey>,
    pub posted: Posted,
}

/// Somebody with an account here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    pub id: PersonId,
    pub name: String,
    pub email: String,
    pub workspace_owner: bool,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeopleView {
    pub people: Vec<Account>,
    /// The person who looks.
    pub you: PersonId,
    pub posted: Posted,
}

/// Who belongs to a site, and what an approval on it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingsView {
    pub slug: String,
    pub title: String,
    /// Of the person who looks.
    pub role: Role,
    pub you: PersonId,
    pub workspace_owner: bool,
    pub members: Vec<Member>,
    /// Agents that work on the site.
    pub agents: Vec<AgentRow>,
    /// Agents that were taken off it, which only its owners put back; for them alone.
    pub taken_off: Vec<AgentRow>,
    pub policy: Policy,
    /// The policy as canonical text: its form carries it, so that two owners do not undo each other unseen.
    pub policy_text: String,
    /// Tools that wait for an approval here, the site's own choice of them last.
    pub gated: Vec<String>,
    /// Tools that the policy may let wait as well.
    pub drafts: Vec<String>,
    /// Groups that there are, or that the policy asks for.
    pub groups: Vec<String>,
    /// Rules that nobody could satisfy as things stand.
    pub unsatisfiable: Vec<Fault>,
    /// Where the site's events are told; for its owners alone.
    pub webhooks: Option<WebhooksView>,
    pub posted: Posted,
}

/// A site's webhooks, as an owner looks after them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhooksView {
    /// Whether the operator lets anything go out at all.
    pub enabled: bool,
    /// Oldest first.
    pub destinations: Vec<Destination>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Destination {
    /// Its old secret is named only while that still signs.
    pub webhook: Webhook,
    /// Its host, with the port where the address has one.
    pub host: String,
    /// The latest, newest first.
    pub deliveries: Vec<Delivery>,
}

/// How a form's POST went, for the page that answers it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Posted {
    pub returned: Option<Returned>,
    pub shown: Option<Shown>,
}

/// A form that could not be taken: what was typed, and what is wrong with it, so that nothing has to be typed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    /// Which of a page's forms.
    pub form: String,
    pub fields: Vec<(String, String)>,
    /// By the names of the form's fields.
    pub faults: Vec<Fault>,
    /// The whole of it in one sentence.
    pub problem: String,
}

/// A secret that one answer shows, and no other.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    pub kind: ShownKind,
    /// Whose it is: an agent's or a person's name, a destination's host.
    pub name: String,
    pub secret: String,
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownKind {
    Key,
    /// Of the person's own client: good while they stay signed in.
    PersonalKey,
    SignInLink,
    /// Named by the destination's host; until when the one before signs as well, where there was one.
    WebhookSecret,
}

/// Without the secret: what is debugged ends in logs.
impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// One hint over the live stream: what to look at again. It carries no content (CONTRACT §2, `/api/events`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveHint {
    /// `approval.requested`, `approval.decided`, `approval.voided`, `approval.expired`, `approval.cancelled`,
    /// `approval.executed`, `site.changed`, `members.changed`, `people.changed`.
    pub kind: String,
    /// Empty where it is about the workspace.
    pub site: SiteId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
}
