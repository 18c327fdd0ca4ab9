//! `site-list`: the sites this caller works on.

use super::{Describe, ReadTool};
use crate::{Engine, callers::Caller, store::sites as sql};
use async_trait::async_trait;
use cloudhal_domain::{code::Refusal, tool::Annotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct SiteList;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    items: Vec<Site>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Site {
    id: String,
    slug: String,
    title: String,
    node_count: i64,
    /// The version that visitors see; null before the first publish.
    live_version: Option<i64>,
    live_url: String,
    /// Digest of the site's whole state; an approval is bound to it.
    state_hash: String,
}

impl Site {
    pub(super) fn new(engine: &Engine, row: sql::SiteRow) -> Self {
        Self {
            live_url: engine.live_url(&row.slug, ""),
            id: row.id,
            slug: row.slug,
            title: row.title,
            node_count: row.node_count,
            live_version: row.live_version,
            state_hash: row.state_hash,
        }
    }
}

impl Describe for SiteList {
    type Args = Args;
    type Output = Output;
    const ID: &'static str = "site-list";
    const TITLE: &'static str = "List sites";
    const DESCRIPTION: &'static str = "Lists the sites you may work on, with their ids. Start here: every other tool takes a site's id.";
    const ANNOTATIONS: Annotations = Annotations::READ;
}

#[async_trait]
impl ReadTool for SiteList {
    async fn run(engine: &Engine, caller: &Caller, _: Args) -> Result<Value, Refusal> {
        let rows = caller.sites(engine).await?;
        Ok(json!(Output {
            items: rows.into_iter().map(|row| Site::new(engine, row)).collect()
        }))
    }
}
