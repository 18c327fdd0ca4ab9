//! `node-create`: a new node in the draft.

use super::{Describe, DraftTool, Proposed, node_list::Node};
use crate::sites::Content;
use cloudhal_domain::{
    id::{NodeId, SiteId},
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub struct NodeCreate;

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    #[default]
    Page,
    Collection,
    Entry,
}

impl NodeKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Collection => "collection",
            Self::Entry => "entry",
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    #[serde(default)]
    kind: NodeKind,
    /// Id of the node above; leave it out for the top level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    parent: Option<NodeId>,
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// Last part of the address: lower-case letters, digits, '-', '_' and '.'. Empty for the home page, at the top only.
    #[schemars(length(max = 120))]
    slug: String,
    /// Markdown.
    #[serde(default)]
    body: String,
    /// Typed fields beside the body.
    #[serde(default)]
    fields: Map<String, Value>,
    /// Place among its siblings, ascending; leave it out for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<i64>,
}

impl Describe for NodeCreate {
    type Args = Args;
    type Output = Node;
    const ID: &'static str = "node-create";
    const TITLE: &'static str = "Create a node";
    const DESCRIPTION: &'static str = "Adds a page, collection or entry to the draft. Visitors see it only after a publish. Any change voids approvals that wait on this site.";
    const ANNOTATIONS: Annotations = Annotations::ADD;
}

impl DraftTool for NodeCreate {
    const VERB: &'static str = "Add";

    fn site(args: &Args) -> &SiteId {
        &args.site
    }

    fn node(_: &Args) -> Option<&NodeId> {
        None
    }

    fn expected_rev(_: &Args) -> Option<i64> {
        None
    }

    fn content(args: Args, _: Option<Content>) -> Proposed {
        let parent = args.parent.as_ref();
        Proposed {
            content: Content {
                parent: parent.map(|p| p.as_str().to_owned()).unwrap_or_default(),
                slug: args.slug,
                kind: args.kind.as_str().into(),
                position: args.position.unwrap_or_default(),
                title: args.title,
                body: args.body,
                fields: args.fields,
            },
            last: args.position.is_none(),
        }
    }
}
