//! `node-move`: another parent or another place among siblings, in the draft.

use super::{Describe, DraftTool, Proposed, node_list::Node};
use crate::sites::Content;
use cloudhal_domain::{
    id::{NodeId, SiteId},
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl DraftTool for NodeMove {
    const VERB: &'static str = "Move";

    fn site(args: &Args) -> &SiteId {
        &args.site
    }

    fn node(args: &Args) -> Option<&NodeId> {
        Some(&args.node)
    }

    fn expected_rev(args: &Args) -> Option<i64> {
        args.expected_rev
    }

    fn content(args: Args, now: Option<Content>) -> Proposed {
        let now = now.unwrap_or_default();
        let parent = args.parent.as_ref();
        let parent = parent.map_or_else(|| now.parent.clone(), |p| p.as_str().to_owned());
        Proposed {
            last: args.position.is_none() && parent != now.parent,
            content: Content {
                parent,
                position: args.position.unwrap_or(now.position),
                ..now
            },
        }
    }
}
