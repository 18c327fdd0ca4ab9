//! `delete`: a node with its subtree leaves the draft, or a whole site goes. Gated.

use super::{Describe, GatedTool, card_site, counted};
use crate::{
    authority::Authority,
    changes::{self, Differences, Tree},
    sites::{self, LockedSite},
    store::{Connection, Fail, Tx, nodes as nodes_sql, sites::SiteRow, versions::DifferenceRow},
};
use async_trait::async_trait;
use cloudhal_domain::{
    card::{Asker, Card, CardSite, Fact, Risk},
    code::Refusal,
    id::{NodeId, SiteId},
    tool::Annotations,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct Delete;

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Args {
    /// Id of the site.
    #[schemars(with = "String")]
    site: SiteId,
    /// Id of the node to delete with everything under it. Leave it out to delete the whole site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    node: Option<NodeId>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// `node` or `site`.
    deleted: String,
    /// Nodes that left the draft, or that the site had.
    nodes: i64,
}

impl Describe for Delete {
    type Args = Args;
    type Output = Output;
    const ID: &'static str = "delete";
    const TITLE: &'static str = "Delete a node or a site";
    const DESCRIPTION: &'static str = "Deletes a node with everything under it from the draft (what is live of it stays until the next publish), or, without node, the whole site at once and for good. A person must approve it: see publish for how to wait and repeat.";
    const ANNOTATIONS: Annotations = Annotations::CHANGE;
}

#[async_trait]
impl GatedTool for Delete {
    fn site(args: &Args) -> &SiteId {
        &args.site
    }

    async fn card(
        db: &mut Connection,
        row: &SiteRow,
        asker: Asker,
        args: &Args,
    ) -> Result<Card, Fail> {
        match &args.node {
            Some(node) => node_card(db, row, asker, node).await,
            None => Ok(site_card(row, asker)),
        }
    }

    async fn differences(
        db: &mut Connection,
        site: &CardSite,
        args: &Args,
    ) -> Result<Differences, Fail> {
        let of = |rows| Differences {
            rows,
            before: Tree::Draft,
            after: Tree::Draft,
        };
        let Some(node) = &args.node else {
            return Ok(of(Vec::new()));
        };
        let gone = |(node_id, rev, hash)| DifferenceRow {
            node_id,
            before_rev: Some(rev),
            before_hash: Some(hash),
            after_rev: None,
            after_hash: None,
        };
        let (id, as_of) = (site.id.as_str(), site.state_rev);
        let rows = nodes_sql::subtree_as_of(db, id, node.as_str(), as_of).await?;
        Ok(of(rows.into_iter().map(gone).collect()))
    }

    async fn run(
        tx: &mut Tx,
        site: &mut LockedSite,
        authority: &Authority,
        args: Args,
    ) -> Result<Value, Fail> {
        let output = match &args.node {
            Some(node) => Output {
                deleted: "node".into(),
                nodes: sites::remove_subtree(tx, site, authority, node)
                    .await?
                    .len() as i64,
            },
            None => {
                sites::delete_site(tx, site, authority).await?;
                Output {
                    deleted: "site".into(),
                    nodes: site.row().node_count,
                }
            }
        };
        Ok(json!(output))
    }
}

async fn node_card(
    db: &mut Connection,
    row: &SiteRow,
    asker: Asker,
    node: &NodeId,
) -> Result<Card, Fail> {
    let top = nodes_sql::get(&mut *db, &row.id, node.as_str()).await?;
    let Some(top) = top else {
        return Err(Refusal::not_found("node").into());
    };
    let (kind, title) = (top.kind, top.title);
    let args = Args {
        site: SiteId::new(&row.id),
        node: Some(node.clone()),
    };
    let differences = Delete::differences(&mut *db, &card_site(row), &args).await?;
    let below = differences.rows.len() as i64 - 1;
    let changes = changes::describe(db, &row.id, differences, "compared with the draft").await?;
    let and_below = if below > 0 {
        format!(" and {} under it", counted(below, "node", "nodes"))
    } else {
        String::new()
    };
    Ok(Card {
        sentence: format!("Delete {kind} “{title}”{and_below} from {}", row.title),
        consequence: "It leaves the draft now. What is live of it stays until the next publish."
            .into(),
        risk: Risk::Reversible,
        site: card_site(row),
        asker,
        facts: Vec::new(),
        changes: Some(changes),
    })
}

fn site_card(row: &SiteRow, asker: Asker) -> Card {
    Card {
        sentence: format!("Delete the whole site {}", row.title),
        consequence: match row.live_version {
            Some(_) => "Visitors get “this site is gone” at once. Nothing brings it back.".into(),
            None => "It was never published. Nothing brings it back.".into(),
        },
        risk: Risk::Irreversible,
        site: card_site(row),
        asker,
        facts: vec![
            Fact {
                label: "Pages".into(),
                value: counted(row.node_count, "node in the draft", "nodes in the draft"),
            },
            Fact {
                label: "Versions".into(),
                value: counted(
                    row.next_version - 1,
                    "published version",
                    "published versions",
                ),
            },
            Fact {
                label: "Address".into(),
                value: row.slug.clone(),
            },
        ],
        changes: None,
    }
}
