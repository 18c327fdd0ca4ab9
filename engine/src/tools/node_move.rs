//! `node-move`: another parent or another place among siblings, in the draft.

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
use serde_json::{Value, json};

pub struct NodeMove;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    /// Id of the node to move.
    #[schemars(with = "String")]
    node: NodeId,
    /// The revision you read; the move is refused if somebody was faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_rev: Option<i64>,
    /// Id of the new node above; an empty string for the top level. Leave it out to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    parent: Option<NodeId>,
    /// Place among its siblings, ascending. Leave it out for the end of a new parent, or to stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<i64>,
}

impl Describe for NodeMove {
    type Args = Args;
    type Output = Node;
    const ID: &'static str = "node-move";
    const TITLE: &'static str = "Move a node";
    const DESCRIPTION: &'static str = "Moves a node of the draft, with everything under it, to another parent or another place. Addresses under it change with the next publish.";
    const ANNOTATIONS: Annotations = Annotations::CHANGE;
}

#[async_trait]
impl DraftTool for NodeMove {
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
        if let Some(parent) = &args.parent {
            content.parent = parent.as_str().to_owned();
        }
        content.position = match args.position {
            Some(position) => position,
            None if content.parent != old.parent => {
                sites::next_position(tx, site, &content.parent).await?
            }
            None => old.position,
        };
        let row = sites::change_node(tx, site, by, row, &old, content).await?;
        let path = path_of(&sql::lineage(tx.sql(), &row.site_id, &row.id).await?);
        Ok(json!(Node::new(row, path)))
    }
}
