//! `node-update`: new content for a node of the draft.

use super::{Describe, DraftTool, node_list::Node};
use crate::{
    authority::Author,
    changes::path_of,
    sites::{self, LockedSite},
    store::{Fail, Tx, nodes as sql},
};
use async_trait::async_trait;
use cloudhal_domain::{
    id::{NodeId, SiteId},
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub struct NodeUpdate;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    /// Id of the node.
    #[schemars(with = "String")]
    node: NodeId,
    /// The revision you read; the change is refused if somebody was faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_rev: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    title: Option<String>,
    /// Last part of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 120))]
    slug: Option<String>,
    /// The whole new Markdown body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The whole new set of fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<Map<String, Value>>,
}

impl Describe for NodeUpdate {
    type Args = Args;
    type Output = Node;
    const ID: &'static str = "node-update";
    const TITLE: &'static str = "Change a node";
    const DESCRIPTION: &'static str = "Changes a node of the draft; what you leave out stays as it is. Pass expectedRev from your last read. Visitors see nothing until a publish. Any change voids approvals that wait on this site, so finish editing before you ask for a publish.";
    const ANNOTATIONS: Annotations = Annotations::CHANGE;
}

#[async_trait]
impl DraftTool for NodeUpdate {
    fn site(args: &Args) -> &SiteId {
        &args.site
    }

    async fn run(
        tx: &mut Tx,
        site: &mut LockedSite,
        by: &Author,
        args: Args,
    ) -> Result<Value, Fail> {
        let (row, old) = sites::read_node(tx, site, &args.node).await?;
        sites::check_rev(&row, args.expected_rev)?;
        let mut content = old.clone();
        if let Some(title) = args.title {
            content.title = title;
        }
        if let Some(slug) = args.slug {
            content.slug = slug;
        }
        if let Some(body) = args.body {
            content.body = body;
        }
        if let Some(fields) = args.fields {
            content.fields = fields;
        }
        let row = sites::change_node(tx, site, by, row, &old, content).await?;
        let path = path_of(&sql::lineage(tx.sql(), &row.site_id, &row.id).await?);
        Ok(json!(Node::new(row, path)))
    }
}
