//! `node-list`: the draft's nodes, a page at a time.

use super::{Describe, ReadTool, clamp_limit};
use crate::{Engine, callers::Caller, changes::path_of, store::nodes as sql};
use async_trait::async_trait;
use cloudhal_domain::{
    code::Refusal,
    id::{NodeId, SiteId},
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct NodeList;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    /// Only the direct children of this node; an empty string for the top level. Without it: every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    parent: Option<NodeId>,
    /// `nextCursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    /// Items on the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    items: Vec<Node>,
    next_cursor: Option<String>,
}

/// A node of the draft.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub id: String,
    /// `page`, `collection` or `entry`.
    pub kind: String,
    /// Id of the node above; empty at the top.
    pub parent: String,
    pub slug: String,
    /// Address on the site without slashes at its ends; empty for the home page.
    pub path: String,
    pub title: String,
    pub position: i64,
    /// Pass it as `expectedRev` when you change the node.
    pub rev: i64,
    pub hash: String,
}

impl Node {
    pub(super) fn new(row: sql::NodeRow, path: String) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            parent: row.parent,
            slug: row.slug,
            path,
            title: row.title,
            position: row.position,
            rev: row.rev,
            hash: row.hash,
        }
    }
}

impl Describe for NodeList {
    type Args = Args;
    type Output = Output;
    const ID: &'static str = "node-list";
    const TITLE: &'static str = "List nodes";
    const DESCRIPTION: &'static str = "Lists the nodes (pages, collections, entries) of a site's draft with their addresses, siblings together in their order. Pages of up to 200; pass nextCursor as cursor for the next.";
    const ANNOTATIONS: Annotations = Annotations::READ;
}

#[async_trait]
impl ReadTool for NodeList {
    async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Value, Refusal> {
        caller.site(engine, &args.site).await?;
        let site = args.site.as_str();
        let limit = clamp_limit(args.limit);
        let after = args.cursor.as_deref().map(read_cursor).transpose()?;
        let mut rows = sql::page(
            engine.store().read(),
            site,
            args.parent.as_ref().map(NodeId::as_str),
            after,
            limit + 1,
        )
        .await?;
        let more = rows.len() as i64 > limit;
        rows.truncate(limit as usize);
        let next_cursor = rows
            .last()
            .filter(|_| more)
            .map(|row| write_cursor(&row.parent, row.position, &row.slug));
        let mut items = Vec::with_capacity(rows.len());
        let mut above: Option<(String, String)> = None;
        for row in rows {
            // Siblings stand together, so the parent's path is looked up once for all of them.
            let base = match &above {
                Some((parent, base)) if *parent == row.parent => base.clone(),
                _ => path_of(&sql::lineage(engine.store().read(), site, &row.parent).await?),
            };
            let path = if base.is_empty() {
                row.slug.clone()
            } else {
                format!("{base}/{}", row.slug)
            };
            above = Some((row.parent.clone(), base));
            items.push(Node::new(row, path));
        }
        Ok(json!(Output { items, next_cursor }))
    }
}

fn write_cursor(parent: &str, position: i64, slug: &str) -> String {
    data_encoding::BASE64URL_NOPAD.encode(json!([parent, position, slug]).to_string().as_bytes())
}

fn read_cursor(text: &str) -> Result<(String, i64, String), Refusal> {
    let bytes = data_encoding::BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    bytes
        .and_then(|b| serde_json::from_slice(&b).ok())
        .filter(|(parent, _, slug): &(String, i64, String)| {
            !parent.contains('\0') && !slug.contains('\0')
        })
        .ok_or_else(|| {
            crate::sites::invalid("/cursor", "this is not a nextCursor of an earlier page")
        })
}
