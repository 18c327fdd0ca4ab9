//! A change, word by word, and rendered beside what is there now.

use super::{
    fold::Fold,
    frame::frame,
    text::{exact, segments, size},
};
use crate::words::{self, digits};
use cloudhal_domain::{
    card::{Change, NodeChange},
    id::ApprovalId,
    link::{self, Side},
    odd,
    view::{FieldDiff, NodeDiff, Span, SpanKind},
};
use leptos::{either::Either, prelude::*};

/// A changed text longer than this folds, and has to be opened before it can be approved.
const LONG_CHARS: usize = 4_000;
/// As many nodes stand open; a person who approves more opens the rest.
const OPEN_NODES: usize = 8;

/// All the nodes of a change. With an approval, each is also rendered before and after.
pub fn nodes(
    diffs: Vec<NodeDiff>,
    approval: Option<ApprovalId>,
    live: Option<i64>,
) -> impl IntoView {
    diffs
        .into_iter()
        .enumerate()
        .map(|(i, diff)| node(i, diff, approval.clone(), live))
        .collect_view()
}

fn node(
    i: usize,
    diff: NodeDiff,
    approval: Option<ApprovalId>,
    live: Option<i64>,
) -> impl IntoView {
    let change = diff.change;
    let key = format!(
        "{}@{}",
        change.node,
        change
            .after
            .as_ref()
            .map_or("none", |after| after.hash.as_str())
    );
    let summary = summary(&change);
    let body = view! {
        {fields(diff.fields, key.clone())}
        {approval.map(|id| sides(&id, &change, live))}
    };
    if i < OPEN_NODES {
        Either::Left(view! {
            <details class="node" open>
                <summary>{summary}</summary>
                {body}
            </details>
        })
    } else {
        Either::Right(view! {
            <Fold key class="node" summary>{body}</Fold>
        })
    }
}

fn summary(change: &NodeChange) -> AnyView {
    let count = words_changed(change.words_added, change.words_removed);
    view! {
        <b>{super::text::foreign(&change.title)}</b>
        <code class="hush path"><bdi>{format!("/{}", change.path)}</bdi></code>
        <span class="end">
            <span class=format!("kind {}", kind_class(change.change))>{change.change.in_words()}</span>
            <span class="num hush">{count}</span>
        </span>
    }
    .into_any()
}

fn kind_class(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Removed => "removed",
        Change::Edited | Change::Moved => "edited",
    }
}

/// "+148 −62 words".
pub fn words_changed(added: i64, removed: i64) -> String {
    match (added, removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("+{} words", digits(added)),
        (0, removed) => format!("−{} words", digits(removed)),
        (added, removed) => format!("+{} −{} words", digits(added), digits(removed)),
    }
}

/// The fields that changed.
pub fn fields(fields: Vec<FieldDiff>, key: String) -> AnyView {
    let rows = fields
        .into_iter()
        .map(|field| {
            let changed: usize = field
                .spans
                .iter()
                .filter(|span| matches!(span.kind, SpanKind::Added | SpanKind::Removed))
                .map(|span| span.text.len())
                .sum();
            let about = about(&field);
            let strange = strange(&field);
            let value = spans(field.spans);
            let value = if changed > LONG_CHARS {
                let key = format!("{key}/{}", field.name);
                let summary = format!("A long change, {}. Open it to read it all", size(changed));
                Either::Left(
                    view! { <Fold key class="long" summary><div class="text">{value}</div></Fold> },
                )
            } else {
                Either::Right(view! { <div class="text">{value}</div> })
            };
            view! {
                <dt>{super::text::foreign(&field.name)}</dt>
                <dd>
                    {value}
                    {strange}
                    {about}
                </dd>
            }
        })
        .collect_view();
    view! { <dl class="diff">{rows}</dl> }.into_any()
}

/// What in the new text does not look like what it is, character by character.
fn strange(field: &FieldDiff) -> impl IntoView + use<> {
    let after: String = field
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::Added)
        .map(|span| span.text.as_str())
        .collect();
    let count = odd::count(&after);
    (count > 0).then(|| {
        let summary = words::count(
            count as i64,
            "unusual character or word",
            "unusual characters or words",
        );
        view! {
            <details class="exact">
                <summary>{summary} ": see every character of what is new"</summary>
                <pre>{exact(&after)}</pre>
            </details>
        }
    })
}

fn about(field: &FieldDiff) -> impl IntoView + use<> {
    field.sha256_after.as_ref().map(|sha256| {
        view! {
            <p class="about">
                {format!("{} after · ", size(field.bytes_after))}
                <code>{sha256.clone()}</code>
            </p>
        }
    })
}

fn spans(spans: Vec<Span>) -> AnyView {
    let spans = joined(spans).into_iter().map(span).collect_view();
    view! { <bdi>{spans}</bdi> }.into_any()
}

/// Neighbours of one kind as one, so that a run of new words reads as a run.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if last.kind == span.kind && span.kind != SpanKind::Folded => {
                last.text.push_str(&span.text);
            }
            _ => out.push(span),
        }
    }
    out
}

fn span(span: Span) -> AnyView {
    let text = segments(&span.text);
    match span.kind {
        SpanKind::Same => text.into_any(),
        SpanKind::Added => view! { <ins>{text}</ins> }.into_any(),
        SpanKind::Removed => view! { <del>{text}</del> }.into_any(),
        SpanKind::Folded => {
            let words = span.text.split_whitespace().count();
            view! {
                <details class="same">
                    <summary>{format!("{words} unchanged words")}</summary>
                    <div>{text}</div>
                </details>
            }
            .into_any()
        }
    }
}

/// The page as it is and as it would be, in frames that can run nothing and reach nothing.
fn sides(id: &ApprovalId, change: &NodeChange, live: Option<i64>) -> AnyView {
    let before = match live {
        Some(version) => format!("Live, version {version}"),
        None => "Before".to_string(),
    };
    let before = change
        .before
        .is_some()
        .then(|| side(id, change, Side::Before, before));
    let after = change
        .after
        .is_some()
        .then(|| side(id, change, Side::After, "Afterwards".into()));
    view! { <div class="sides">{before} {after}</div> }.into_any()
}

fn side(id: &ApprovalId, change: &NodeChange, side: Side, caption: String) -> AnyView {
    let src = link::preview(id, &change.node, side);
    view! {
        <figure>
            <figcaption>
                <span>{caption.clone()}</span>
                <a href=src.clone() target="_blank" rel="noopener external">"Open full page"</a>
            </figcaption>
            {frame(src, format!("{caption}, rendered"))}
        </figure>
    }
    .into_any()
}
