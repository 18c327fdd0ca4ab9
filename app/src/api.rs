//! Server functions: a person, the engine, an error. Each is a public endpoint under `/_fn` and starts with who calls.
//!
//! They only read. Everything that changes something is a plain form to a route of the server.

use cloudhal_domain::{
    code::Code,
    id::{ApprovalId, NodeId},
    view::{
        AgentsView, ApprovalView, ChangesView, InboxPage, InboxQuery, JournalPage, NodeView,
        PeopleView, SettingsView, SiteRow, SiteView, VersionsView, Viewer,
    },
};
use leptos::{
    prelude::*,
    server_fn::codec::{Json, JsonEncoding},
};
use serde::{Deserialize, Serialize};

mod packed;
pub use packed::{Packed, open};

#[cfg(feature = "ssr")]
mod door;
#[cfg(feature = "ssr")]
use door::{posted, signed_in, tell};

/// A no as the page shows it: the code, and words that are safe to print.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudioError {
    pub code: Code,
    pub message: String,
}

impl FromServerFnError for StudioError {
    type Encoder = JsonEncoding;

    /// What the machinery says of itself stays in the log; the person reads one plain sentence.
    fn from_server_fn_error(value: ServerFnErrorErr) -> Self {
        let (code, message) = match value {
            ServerFnErrorErr::Request(_) | ServerFnErrorErr::Response(_) => {
                (Code::Unavailable, "Cloudhal cannot be reached right now.")
            }
            ServerFnErrorErr::Args(_)
            | ServerFnErrorErr::MissingArg(_)
            | ServerFnErrorErr::Serialization(_) => (
                Code::Malformed,
                "The page asked for something that cannot be.",
            ),
            _ => (Code::Internal, "Something went wrong on our side."),
        };
        Self {
            code,
            message: message.into(),
        }
    }
}

/// On the server, answers a signed-out visit of a person's page with a way to sign in and back; true if it did.
pub fn send_to_sign_in() -> bool {
    #[cfg(feature = "ssr")]
    return door::send_to_sign_in();
    #[cfg(not(feature = "ssr"))]
    false
}

/// On the server, the status of the page that is being made.
pub fn set_status(status: u16) {
    #[cfg(feature = "ssr")]
    door::set_status(status);
    #[cfg(not(feature = "ssr"))]
    let _ = status;
}

#[server(name = FetchViewer, prefix = "/_fn", endpoint = "viewer", input = Json)]
pub async fn viewer() -> Result<Packed<Viewer>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::viewer(&engine, &person).await)
}

#[server(prefix = "/_fn", endpoint = "inbox", input = Json)]
pub async fn inbox(query: InboxQuery) -> Result<Packed<InboxPage>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::inbox(&engine, &person, query).await)
}

#[server(prefix = "/_fn", endpoint = "approval", input = Json)]
pub async fn approval(id: ApprovalId) -> Result<Packed<ApprovalView>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::approval(&engine, &person, &id).await)
}

#[server(prefix = "/_fn", endpoint = "changes", input = Json)]
pub async fn changes(id: ApprovalId, from: i64) -> Result<Packed<ChangesView>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::changes(&engine, &person, &id, from).await)
}

#[server(prefix = "/_fn", endpoint = "sites", input = Json)]
pub async fn sites() -> Result<Packed<Vec<SiteRow>>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::sites(&engine, &person).await)
}

#[server(prefix = "/_fn", endpoint = "site", input = Json)]
pub async fn site(slug: String) -> Result<Packed<SiteView>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::site(&engine, &person, &slug).await)
}

#[server(prefix = "/_fn", endpoint = "node", input = Json)]
pub async fn node(slug: String, node: NodeId) -> Result<Packed<NodeView>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::node(&engine, &person, &slug, &node).await)
}

#[server(prefix = "/_fn", endpoint = "versions", input = Json)]
pub async fn versions(
    slug: String,
    cursor: Option<String>,
) -> Result<Packed<VersionsView>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::versions(&engine, &person, &slug, cursor).await)
}

#[server(prefix = "/_fn", endpoint = "agents", input = Json)]
pub async fn agents() -> Result<Packed<AgentsView>, StudioError> {
    let (engine, person) = signed_in()?;
    let posted = posted();
    let view = cloudhal_engine::studio::agents(&engine, &person).await;
    tell(view.map(|view| AgentsView { posted, ..view }))
}

#[server(prefix = "/_fn", endpoint = "people", input = Json)]
pub async fn people() -> Result<Packed<PeopleView>, StudioError> {
    let (engine, person) = signed_in()?;
    let posted = posted();
    let view = cloudhal_engine::studio::people(&engine, &person).await;
    tell(view.map(|view| PeopleView { posted, ..view }))
}

#[server(prefix = "/_fn", endpoint = "settings", input = Json)]
pub async fn settings(slug: String) -> Result<Packed<SettingsView>, StudioError> {
    let (engine, person) = signed_in()?;
    let posted = posted();
    let view = cloudhal_engine::studio::settings(&engine, &person, &slug).await;
    tell(view.map(|view| SettingsView { posted, ..view }))
}

#[server(prefix = "/_fn", endpoint = "journal", input = Json)]
pub async fn journal(
    site: Option<String>,
    cursor: Option<String>,
) -> Result<Packed<JournalPage>, StudioError> {
    let (engine, person) = signed_in()?;
    tell(cloudhal_engine::studio::journal(&engine, &person, site, cursor).await)
}
