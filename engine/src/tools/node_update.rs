//! `node-update`: new content for a node of the draft.

use super::{Describe, DraftTool, Proposed, node_list::Node};
use crate::sites::Content;
use cloudhal_domain::{
    id::{NodeId, SiteId},
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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

impl DraftTool for NodeUpdate {
    const VERB: &'static str = "Change";

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
        Proposed {
            content: Content {
                title: args.title.unwrap_or(now.title),
                slug: args.slug.unwrap_or(now.slug),
                body: args.body.unwrap_or(now.body),
                fields: args.fields.unwrap_or(now.fields),
                ..now
            },
            last: false,
        }
    }
}
