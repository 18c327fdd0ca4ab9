//! `version-compare`: what differs between two versions of a site, or between one and the draft.

use super::{Describe, ReadTool, card_site};
use crate::{Engine, callers::Caller, changes, store::versions as sql};
use async_trait::async_trait;
use cloudhal_domain::{card::NodeChange, code::Refusal, id::SiteId, tool::Annotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct VersionCompare;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    /// The version before; leave it out for the one that is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    from: Option<i64>,
    /// The version after; leave it out for the draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    to: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Absent where nothing is live: then everything is new.
    from: Option<i64>,
    /// Absent for the draft.
    to: Option<i64>,
    added: i64,
    edited: i64,
    removed: i64,
    /// The first 200 nodes that differ, by path.
    nodes: Vec<Node>,
    /// Nodes that differ and are not listed.
    more: i64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Node {
    node: String,
    /// `added`, `edited`, `moved` or `removed`.
    change: String,
    kind: String,
    title: String,
    path: String,
    /// The path before, where it was another.
    path_before: Option<String>,
    /// The revision of its content, before and after.
    rev_before: Option<i64>,
    rev_after: Option<i64>,
    words_added: i64,
    words_removed: i64,
}

impl From<NodeChange> for Node {
    fn from(change: NodeChange) -> Self {
        Self {
            node: change.node.as_str().to_owned(),
            change: json!(change.change).as_str().unwrap_or_default().to_owned(),
            kind: change.kind,
            title: change.title,
            path: change.path,
            path_before: change.path_before,
            rev_before: change.before.map(|side| side.rev),
            rev_after: change.after.map(|side| side.rev),
            words_added: change.words_added,
            words_removed: change.words_removed,
        }
    }
}

impl Describe for VersionCompare {
    type Args = Args;
    type Output = Output;
    const ID: &'static str = "version-compare";
    const TITLE: &'static str = "Compare versions";
    const DESCRIPTION: &'static str = "Tells which nodes differ between two versions of a site, or between a version and the draft. With the site alone: what a publish would change now.";
    const ANNOTATIONS: Annotations = Annotations::READ;
}

#[async_trait]
impl ReadTool for VersionCompare {
    async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Value, Refusal> {
        let site = caller.site(engine, &args.site).await?;
        let mut db = engine.store().reader().await?;
        for version in [args.from, args.to].into_iter().flatten() {
            if sql::get(&mut *db, &site.id, version).await?.is_none() {
                return Err(Refusal::not_found("version"));
            }
        }
        let from = args.from.or(site.live_version);
        let before = from.unwrap_or(0);
        let differences = match args.to {
            Some(after) => changes::between(&mut db, &site.id, before, after).await?,
            None => changes::draft_against(&mut db, &card_site(&site), before).await?,
        };
        let found = changes::describe(&mut db, &site.id, differences, "").await?;
        Ok(json!(Output {
            from,
            to: args.to,
            added: found.added,
            edited: found.edited,
            removed: found.removed,
            more: found.total - found.nodes.len() as i64,
            nodes: found.nodes.into_iter().map(Node::from).collect(),
        }))
    }
}
