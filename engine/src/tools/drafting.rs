//! What the tools that change the draft have in common: running one, and the picture of one that waits.

use super::{DraftTool, card_site, node_list::Node};
use crate::{
    authority::Author,
    changes::{self, Differences, Tree, path_of},
    sites::{self, LockedSite},
    store::{Fail, Tx, nodes as sql, nodes::NodeRow, versions::DifferenceRow},
};
use cloudhal_domain::{
    card::{Asker, Card, Risk, changes_digest},
    code::Refusal,
    id::NodeId,
};
use serde_json::{Value, json};

/// Changes the node, or adds one, and tells what it is now.
pub(super) async fn run<T: DraftTool>(
    tx: &mut Tx,
    site: &mut LockedSite,
    by: &Author,
    args: T::Args,
) -> Result<Value, Fail> {
    let (_, row) = change::<T>(tx, site, by, args).await?;
    let path = path_of(&sql::lineage(tx.sql(), &row.site_id, &row.id).await?);
    Ok(json!(Node::new(row, path)))
}

/// The node before, if it was there, and after.
async fn change<T: DraftTool>(
    tx: &mut Tx,
    site: &mut LockedSite,
    by: &Author,
    args: T::Args,
) -> Result<(Option<NodeRow>, NodeRow), Fail> {
    let before = match T::node(&args) {
        Some(node) => {
            let (row, content) = sites::read_node(tx, site, node).await?;
            sites::check_rev(&row, T::expected_rev(&args))?;
            Some((row, content))
        }
        None => None,
    };
    let now = before.as_ref().map(|(_, content)| content.clone());
    let mut proposed = T::content(args, now);
    if proposed.last {
        let parent = &proposed.content.parent;
        proposed.content.position = sites::next_position(tx, site, parent).await?;
    }
    match before {
        Some((row, old)) => {
            let after =
                sites::change_node(tx, site, by, row.clone(), &old, proposed.content).await?;
            Ok((Some(row), after))
        }
        None => {
            let after = sites::create_node(tx, site, by, proposed.content).await?;
            Ok((None, after))
        }
    }
}

/// Rehearses the change in a part of the transaction that is undone again, so that the card tells of exactly what would run
/// and nothing is asked that would be refused.
pub(super) async fn card<T: DraftTool>(
    tx: &mut Tx,
    site: &LockedSite,
    asker: Asker,
    args: T::Args,
) -> Result<Card, Fail> {
    let by = Author {
        key: format!("{}:{}", asker.kind.as_str(), asker.id),
        name: asker.name.clone(),
    };
    let path_before = match T::node(&args) {
        Some(node) => {
            let lineage = sql::lineage(tx.sql(), &site.row().id, node.as_str()).await?;
            Some(path_of(&lineage))
        }
        None => None,
    };
    let part = tx.begin_part().await?;
    let mut rehearsed = site.clone();
    let drawn = match change::<T>(tx, &mut rehearsed, &by, args).await {
        Ok(sides) => draw::<T>(tx, site, asker, sides, path_before).await,
        Err(fail) => Err(fail),
    };
    match drawn {
        Err(Fail::Store(error)) => Err(Fail::Store(error)),
        Ok(_) | Err(Fail::Refused(_)) => {
            tx.undo_part(part).await?;
            drawn
        }
    }
}

async fn draw<T: DraftTool>(
    tx: &mut Tx,
    site: &LockedSite,
    asker: Asker,
    (before, after): (Option<NodeRow>, NodeRow),
    path_before: Option<String>,
) -> Result<Card, Fail> {
    if before.as_ref().is_some_and(|row| row.rev == after.rev) {
        return Err(Refusal::conflict(
            "The node holds exactly that already: there is nothing to approve. Nothing was done.",
        )
        .into());
    }
    let row = site.row();
    let kind = after.kind.clone();
    let title = before.as_ref().map_or(&after.title, |row| &row.title);
    let sentence = format!("{} {kind} “{title}” in the draft of {}", T::VERB, row.title);
    let difference = DifferenceRow {
        before_rev: before.as_ref().map(|row| row.rev),
        before_hash: before.map(|row| row.hash),
        after_rev: Some(after.rev),
        after_hash: Some(after.hash),
        node_id: after.id,
    };
    let differences = Differences {
        rows: vec![difference],
        before: Tree::Draft,
        after: Tree::Draft,
    };
    let mut changes =
        changes::describe(tx.sql(), &row.id, differences, "compared with the draft").await?;
    for node in &mut changes.nodes {
        node.path_before = path_before.clone().filter(|was| *was != node.path);
        if node.before.is_none() {
            // It gets its id when it is made.
            node.node = NodeId::new("new");
            let sides = std::iter::once((&node.node, None, node.after.as_ref()));
            changes.digest = changes_digest(sides);
        }
    }
    Ok(Card {
        sentence,
        consequence: "The draft changes. Visitors see nothing of it until a publish.".into(),
        risk: Risk::Reversible,
        site: card_site(row),
        asker,
        facts: Vec::new(),
        changes: Some(changes),
    })
}
