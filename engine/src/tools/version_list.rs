//! `version-list`: published states of a site, newest first.

use super::{Describe, ReadTool, clamp_limit};
use crate::{Engine, callers::Caller, store::versions as sql};
use async_trait::async_trait;
use cloudhal_domain::{code::Refusal, id::SiteId, time::Timestamp, tool::Annotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct VersionList;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    /// `nextCursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    items: Vec<Version>,
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: i64,
    /// RFC 3339.
    at: String,
    author: String,
    node_count: i64,
    added: i64,
    edited: i64,
    removed: i64,
    /// Whether visitors see it now.
    live: bool,
    approval_id: Option<String>,
}

impl Describe for VersionList {
    type Args = Args;
    type Output = Output;
    const ID: &'static str = "version-list";
    const TITLE: &'static str = "List versions";
    const DESCRIPTION: &'static str = "Lists the published versions of a site, newest first, and says which one is live. A version is immutable; rollback can make any of them live again.";
    const ANNOTATIONS: Annotations = Annotations::READ;
}

#[async_trait]
impl ReadTool for VersionList {
    async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Value, Refusal> {
        let site = caller.site(engine, &args.site).await?;
        let limit = clamp_limit(args.limit);
        let before = match &args.cursor {
            Some(text) => text.parse().map_err(|_| {
                crate::sites::invalid("/cursor", "this is not a nextCursor of an earlier page")
            })?,
            None => i64::MAX,
        };
        let mut rows = sql::list(engine.store().read(), &site.id, before, limit + 1).await?;
        let more = rows.len() as i64 > limit;
        rows.truncate(limit as usize);
        let next_cursor = rows
            .last()
            .filter(|_| more)
            .map(|row| row.version.to_string());
        let version = |row: sql::VersionRow| Version {
            live: site.live_version == Some(row.version),
            version: row.version,
            at: Timestamp(row.created_at).to_string(),
            author: row.author_name,
            node_count: row.node_count,
            added: row.added,
            edited: row.edited,
            removed: row.removed,
            approval_id: row.approval_id,
        };
        Ok(json!(Output {
            items: rows.into_iter().map(version).collect(),
            next_cursor
        }))
    }
}
