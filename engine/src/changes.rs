//! What would change, told for a card, and shown as words for the page. Everything is read from immutable revisions, so the
//! same picture can be drawn again at any time.

use crate::{
    Engine,
    sites::Content,
    store::{
        Connection, Fail, StoreError,
        nodes::{self as nodes_sql, RevisionRow},
        versions::{self as versions_sql, DifferenceRow},
    },
};
use cloudhal_domain::{
    approval::Approval,
    card::{CardSite, Change, Changes, NodeChange, RevisionRef, changes_digest},
    code::{Code, Refusal},
    digest::Digest,
    id::NodeId,
    limits,
    view::{ChangedNode, FieldDiff, NodeDiff, Span, SpanKind},
};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::{collections::HashMap, time::Duration};

/// A diff of two long and very different texts is cut short in quality, never in content.
const DIFF_TIME_MAX: Duration = Duration::from_millis(200);
/// Unchanged text kept in sight on both sides of a change.
const CONTEXT_CHARS: usize = 160;
/// What changed since a request, as far as it is named.
const CHANGED_MAX: i64 = 20;
/// From here on a value is called long: its size and digest stand beside it.
const LONG_BYTES: usize = 2_000;

/// What differs between two states of a site, and where each state's pages have their addresses.
pub struct Differences {
    pub rows: Vec<DifferenceRow>,
    pub before: Tree,
    pub after: Tree,
}

/// A tree of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    Draft,
    Version(i64),
}

impl Tree {
    /// The path of a node in this tree. A removed page of the draft still has its address.
    async fn path(
        self,
        db: &mut Connection,
        site: &str,
        node: &NodeId,
    ) -> Result<String, StoreError> {
        match self {
            Self::Draft => Ok(path_of(&nodes_sql::lineage(db, site, node.as_str()).await?)),
            Self::Version(version) => {
                let slugs = versions_sql::lineage(db, site, version, node.as_str()).await?;
                Ok(slugs.join("/"))
            }
        }
    }
}

/// Where the draft differs from a version, 0 being nothing at all: as it stood at the site's counter, also long after.
pub async fn draft_against(
    db: &mut Connection,
    site: &CardSite,
    version: i64,
) -> Result<Differences, StoreError> {
    let (id, as_of) = (site.id.as_str(), site.state_rev);
    let newest = versions_sql::newest_as_of(&mut *db, id, as_of).await?;
    let (newest, since) = newest.map_or((0, 0), |v| (v.version, v.state_rev));
    Ok(Differences {
        rows: versions_sql::draft_differences(db, id, version, newest, since, as_of).await?,
        before: Tree::Version(version),
        after: Tree::Draft,
    })
}

/// Where one version differs from another, in either direction of time.
pub async fn between(
    db: &mut Connection,
    site: &str,
    before: i64,
    after: i64,
) -> Result<Differences, StoreError> {
    Ok(Differences {
        rows: versions_sql::differences(db, site, before, after).await?,
        before: Tree::Version(before),
        after: Tree::Version(after),
    })
}

/// One node of a change and its two sides, by reference.
type Sides = (NodeId, Option<RevisionRef>, Option<RevisionRef>);

/// Describes a list of differences for a card.
pub async fn describe(
    db: &mut Connection,
    site: &str,
    differences: Differences,
    compared_with: &str,
) -> Result<Changes, Fail> {
    let trees = (differences.before, differences.after);
    let sides = in_order(differences.rows);
    let mut changes = Changes {
        compared_with: compared_with.to_owned(),
        added: sides
            .iter()
            .filter(|(_, before, _)| before.is_none())
            .count() as i64,
        removed: sides.iter().filter(|(_, _, after)| after.is_none()).count() as i64,
        edited: sides
            .iter()
            .filter(|(_, before, after)| before.is_some() && after.is_some())
            .count() as i64,
        words_added: 0,
        words_removed: 0,
        total: sides.len() as i64,
        digest: digest(&sides),
        nodes: Vec::new(),
    };
    for (node, before, after) in sides.into_iter().take(limits::CARD_NODES_MAX) {
        let change = node_change(db, site, trees, node, before, after).await?;
        changes.words_added += change.words_added;
        changes.words_removed += change.words_removed;
        changes.nodes.push(change);
    }
    changes.nodes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// A stretch of the whole list that a card's digest binds, drawn again; `None` where it is not that list.
pub async fn stretch(
    db: &mut Connection,
    site: &str,
    differences: Differences,
    bound: &Digest,
    from: usize,
) -> Result<Option<Vec<NodeDiff>>, Fail> {
    let trees = (differences.before, differences.after);
    let sides = in_order(differences.rows);
    if digest(&sides) != *bound {
        return Ok(None);
    }
    let mut diffs = Vec::new();
    for (node, before, after) in sides.into_iter().skip(from).take(limits::CARD_NODES_MAX) {
        let old = bound_revision(db, site, &node, before.as_ref()).await?;
        let new = bound_revision(db, site, &node, after.as_ref()).await?;
        let change = node_change(db, site, trees, node, before, after).await?;
        diffs.push(node_diff(change, old.as_ref(), new.as_ref()));
    }
    diffs.sort_by(|a, b| a.change.path.cmp(&b.change.path));
    Ok(Some(diffs))
}

/// By id, whatever order the engine gave them: the digest must not depend on it.
fn in_order(differences: Vec<DifferenceRow>) -> Vec<Sides> {
    let mut sides: Vec<Sides> = differences
        .into_iter()
        .map(|d| {
            (
                NodeId::new(d.node_id),
                side(d.before_rev, d.before_hash),
                side(d.after_rev, d.after_hash),
            )
        })
        .collect();
    sides.sort_by(|a, b| a.0.cmp(&b.0));
    sides
}

fn digest(sides: &[Sides]) -> Digest {
    changes_digest(
        sides
            .iter()
            .map(|(id, before, after)| (id, before.as_ref(), after.as_ref())),
    )
}

fn side(rev: Option<i64>, hash: Option<String>) -> Option<RevisionRef> {
    Some(RevisionRef {
        rev: rev?,
        hash: Digest::from_text(hash?),
    })
}

async fn node_change(
    db: &mut Connection,
    site: &str,
    (tree_before, tree_after): (Tree, Tree),
    node: NodeId,
    before: Option<RevisionRef>,
    after: Option<RevisionRef>,
) -> Result<NodeChange, Fail> {
    let old = revision(db, site, &node, before.as_ref()).await?;
    let new = revision(db, site, &node, after.as_ref()).await?;
    let (words_added, words_removed) = words(old.as_ref(), new.as_ref());
    let shown = new.as_ref().or(old.as_ref());
    let was = match &old {
        Some(_) => Some(tree_before.path(db, site, &node).await?),
        None => None,
    };
    let is = match &new {
        Some(_) => Some(tree_after.path(db, site, &node).await?),
        None => None,
    };
    let path_before = was
        .clone()
        .filter(|was| is.as_ref().is_some_and(|is| is != was));
    let path = is.or(was).unwrap_or_default();
    let change = match (&old, &new) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        (Some(a), Some(b))
            if (&a.body, &a.title, &a.fields) == (&b.body, &b.title, &b.fields)
                && (&a.parent, &a.slug, a.position) != (&b.parent, &b.slug, b.position) =>
        {
            Change::Moved
        }
        // Also what was edited and put back: its revision is another one.
        _ => Change::Edited,
    };
    Ok(NodeChange {
        change,
        kind: shown.map(|r| r.kind.clone()).unwrap_or_default(),
        title: shown.map(|r| r.title.clone()).unwrap_or_default(),
        path,
        path_before,
        position: new.as_ref().map(|r| r.position),
        node,
        before,
        after,
        words_added,
        words_removed,
    })
}

async fn revision(
    db: &mut Connection,
    site: &str,
    node: &NodeId,
    side: Option<&RevisionRef>,
) -> Result<Option<RevisionRow>, Fail> {
    let Some(side) = side else { return Ok(None) };
    let row = nodes_sql::revision(&mut *db, site, node.as_str(), side.rev).await?;
    Ok(Some(row.ok_or_else(|| StoreError::Inconsistent {
        table: "node_revisions",
        column: "rev",
        id: node.as_str().to_owned(),
    })?))
}

/// One side of a change that a card binds, drawn again; refused where it is not what was bound.
pub async fn bound_revision(
    db: &mut Connection,
    site: &str,
    node: &NodeId,
    side: Option<&RevisionRef>,
) -> Result<Option<RevisionRow>, Fail> {
    match (revision(db, site, node, side).await?, side) {
        (Some(row), Some(side)) => {
            expect_bound(&Content::from_revision(row.clone())?, side)?;
            Ok(Some(row))
        }
        (row, _) => Ok(row),
    }
}

/// Whether a node's content, drawn again, hashes to what a card binds.
pub fn expect_bound(content: &Content, side: &RevisionRef) -> Result<(), Refusal> {
    match content.hash() == side.hash.as_str() {
        true => Ok(()),
        false => Err(not_bound()),
    }
}

/// Refuses to show something else than what a request is bound to.
pub fn not_bound() -> Refusal {
    Refusal::new(
        Code::StaleView,
        "The stored records do not give what this request is bound to, so it is not shown. Nothing was decided. Ask the operator to run `cloudhal verify`.",
    )
}

/// The nodes that changed on a request's site since it was made.
pub async fn since(engine: &Engine, approval: &Approval) -> Result<Vec<ChangedNode>, StoreError> {
    let (db, site) = (engine.store().read(), approval.site.as_str());
    let mut changed = Vec::new();
    for node in nodes_sql::changed_since(db, site, approval.state_rev, CHANGED_MAX).await? {
        let path = path_of(&nodes_sql::lineage(db, site, &node.id).await?);
        let what = if node.deleted_at.is_some() {
            "removed"
        } else if node.rev == 1 {
            "added"
        } else {
            "edited"
        };
        changed.push(ChangedNode {
            node: NodeId::new(node.id),
            rev: node.rev,
            title: node.title,
            path,
            what: what.into(),
        });
    }
    Ok(changed)
}

/// Slugs from the top down, joined; empty for the home page.
pub fn path_of(lineage: &[nodes_sql::NodeRow]) -> String {
    lineage
        .iter()
        .map(|node| node.slug.as_str())
        .collect::<Vec<_>>()
        .join("/")
}

/// Words more and words fewer, counted as a bag: the same for the same two texts however long they are.
fn words(old: Option<&RevisionRow>, new: Option<&RevisionRow>) -> (i64, i64) {
    let mut bag: HashMap<&str, i64> = HashMap::new();
    for (row, step) in [(old, -1), (new, 1)] {
        let Some(row) = row else { continue };
        for word in row
            .title
            .split_whitespace()
            .chain(row.body.split_whitespace())
        {
            *bag.entry(word).or_default() += step;
        }
    }
    let added = bag.values().filter(|n| **n > 0).sum();
    let removed: i64 = bag.values().filter(|n| **n < 0).sum();
    (added, -removed)
}

/// One field of a revision, as text.
type Pick = fn(&RevisionRow) -> String;

/// One listed change, field by field.
pub fn node_diff(
    change: NodeChange,
    old: Option<&RevisionRow>,
    new: Option<&RevisionRow>,
) -> NodeDiff {
    let text = |row: Option<&RevisionRow>, pick: Pick| row.map(pick).unwrap_or_default();
    let mut fields = Vec::new();
    let named: [(&str, Pick); 3] = [
        ("Title", |r| r.title.clone()),
        ("Text", |r| r.body.clone()),
        ("Order", |r| r.position.to_string()),
    ];
    for (name, pick) in named {
        let (before, after) = (text(old, pick), text(new, pick));
        // What goes leaves no place among its siblings.
        if before != after && (new.is_some() || name != "Order") {
            fields.push(field_diff(name, &before, &after));
        }
    }
    if let Some(was) = &change.path_before {
        let address = |path: &str| format!("/{path}");
        fields.push(field_diff("Address", &address(was), &address(&change.path)));
    }
    fields.extend(typed_fields(old, new));
    NodeDiff { change, fields }
}

fn typed_fields(old: Option<&RevisionRow>, new: Option<&RevisionRow>) -> Vec<FieldDiff> {
    let object =
        |row: Option<&RevisionRow>| match row.map(|r| serde_json::from_str::<Value>(&r.fields)) {
            Some(Ok(Value::Object(map))) => map,
            _ => Default::default(),
        };
    let (before, after) = (object(old), object(new));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let shown = |value: Option<&Value>| match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => cloudhal_domain::canonical::text(other),
    };
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        // A field of the agent's own never looks like one of ours, whatever its name.
        .map(|name| {
            field_diff(
                &format!("Field {name}"),
                &shown(before.get(name)),
                &shown(after.get(name)),
            )
        })
        .collect()
}

fn field_diff(name: &str, before: &str, after: &str) -> FieldDiff {
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME_MAX)
        .diff_words(before, after);
    let mut spans: Vec<Span> = Vec::new();
    for change in diff.iter_all_changes() {
        let kind = match change.tag() {
            ChangeTag::Equal => SpanKind::Same,
            ChangeTag::Insert => SpanKind::Added,
            ChangeTag::Delete => SpanKind::Removed,
        };
        match spans.last_mut() {
            Some(last) if last.kind == kind => last.text.push_str(change.value()),
            _ => spans.push(Span {
                kind,
                text: change.value().to_owned(),
            }),
        }
    }
    let long = after.len() > LONG_BYTES;
    FieldDiff {
        name: name.to_owned(),
        spans: fold(join(spans)),
        bytes_after: after.len(),
        sha256_after: long.then(|| crate::secret::token_digest(after)),
    }
}

/// Replaced words with nothing but spaces between them read as one replacement, not as a word salad.
fn join(spans: Vec<Span>) -> Vec<Span> {
    let mut out = Vec::new();
    let mut run: Vec<Span> = Vec::new();
    let mut spans = spans.into_iter().peekable();
    while let Some(span) = spans.next() {
        let is_gap = span.kind == SpanKind::Same
            && span.text.chars().all(|c| c == ' ')
            && !run.is_empty()
            && spans.peek().is_some_and(|next| next.kind != SpanKind::Same);
        if span.kind != SpanKind::Same || is_gap {
            run.push(span);
        } else {
            end_run(&mut run, &mut out);
            out.push(span);
        }
    }
    end_run(&mut run, &mut out);
    out
}

fn end_run(run: &mut Vec<Span>, out: &mut Vec<Span>) {
    let has = |kind| run.iter().any(|span| span.kind == kind);
    if !(has(SpanKind::Same) && has(SpanKind::Removed) && has(SpanKind::Added)) {
        out.append(run);
        return;
    }
    let side = |skip: SpanKind| -> String {
        let kept = run.iter().filter(|span| span.kind != skip);
        kept.map(|span| span.text.as_str()).collect()
    };
    let (removed, added) = (side(SpanKind::Added), side(SpanKind::Removed));
    out.push(Span {
        kind: SpanKind::Removed,
        text: removed,
    });
    out.push(Span {
        kind: SpanKind::Added,
        text: added,
    });
    run.clear();
}

/// Folds the middle of long unchanged stretches; their text stays on the page and can be opened.
fn fold(spans: Vec<Span>) -> Vec<Span> {
    let last = spans.len().saturating_sub(1);
    let mut out = Vec::new();
    for (index, span) in spans.into_iter().enumerate() {
        let head = if index == 0 { 0 } else { CONTEXT_CHARS };
        let tail = if index == last { 0 } else { CONTEXT_CHARS };
        let chars = span.text.chars().count();
        if span.kind != SpanKind::Same
            || chars <= head + tail + CONTEXT_CHARS
            || (index == 0 && index == last)
        {
            out.push(span);
            continue;
        }
        let at = |n: usize| {
            span.text
                .char_indices()
                .nth(n)
                .map_or(span.text.len(), |(at, _)| at)
        };
        let (from, to) = (at(head), at(chars - tail));
        for (kind, text) in [
            (SpanKind::Same, &span.text[..from]),
            (SpanKind::Folded, &span.text[from..to]),
            (SpanKind::Same, &span.text[to..]),
        ] {
            if !text.is_empty() {
                out.push(Span {
                    kind,
                    text: text.to_owned(),
                });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_loses_nothing() {
        let same = "word ".repeat(200);
        let before = format!("{same}old {same}");
        let after = format!("{same}new {same}");
        let diff = field_diff("Text", &before, &after);
        let side = |skip: SpanKind| {
            diff.spans
                .iter()
                .filter(|s| s.kind != skip)
                .map(|s| s.text.as_str())
                .collect::<String>()
        };
        assert_eq!(side(SpanKind::Added), before);
        assert_eq!(side(SpanKind::Removed), after);
        assert_eq!(
            diff.spans
                .iter()
                .filter(|s| s.kind == SpanKind::Folded)
                .count(),
            2
        );
        assert!(diff.sha256_after.is_some());
    }

    fn marked(before: &str, after: &str) -> String {
        let mark = |span: &Span| match span.kind {
            SpanKind::Removed => format!("[-{}-]", span.text),
            SpanKind::Added => format!("[+{}+]", span.text),
            _ => span.text.clone(),
        };
        field_diff("Text", before, after)
            .spans
            .iter()
            .map(mark)
            .collect()
    }

    #[test]
    fn a_rewrite_reads_as_one_replacement() {
        assert_eq!(
            marked("We bake for you all day.", "We bake words then and now."),
            "We bake [-for you all day.-][+words then and now.+]"
        );
        assert_eq!(
            marked("open at 7:00 on weekdays", "open at 6:30 on weekdays"),
            "open at [-7:00-][+6:30+] on weekdays"
        );
        assert_eq!(marked("a d", "a b c d"), "a [+b c +]d");
    }

    #[test]
    fn short_texts_stay_whole() {
        let diff = field_diff("Title", "Opening hours", "Opening hours this winter");
        assert_eq!(diff.spans.len(), 2);
        assert_eq!(diff.spans[1].kind, SpanKind::Added);
    }
}
