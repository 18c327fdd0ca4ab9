//! `site-get`: one site.

use super::{Describe, ReadTool, site_list::Site};
use crate::{Engine, callers::Caller};
use async_trait::async_trait;
use cloudhal_domain::{code::Refusal, id::SiteId, tool::Annotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct SiteGet;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
}

impl Describe for SiteGet {
    type Args = Args;
    type Output = Site;
    const ID: &'static str = "site-get";
    const TITLE: &'static str = "Read a site";
    const DESCRIPTION: &'static str =
        "Reads one site: its title, size, live version, address and state.";
    const ANNOTATIONS: Annotations = Annotations::READ;
}

#[async_trait]
impl ReadTool for SiteGet {
    async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Value, Refusal> {
        let row = caller.site(engine, &args.site).await?;
        Ok(json!(Site::new(engine, row)))
    }
}
