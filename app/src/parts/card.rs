//! What a card says beside its sentence, wherever a card is shown.

use super::{diff::words_changed, text::foreign};
use crate::words;
use cloudhal_domain::card::{Card, Changes};
use leptos::prelude::*;

/// "2 edited · 1 new · +148 −62 words · compared with what is live".
pub fn summary(changes: &Changes) -> AnyView {
    let chip = |n: i64, word: &str| {
        (n > 0).then(
            || view! { <span class="chip num">{format!("{} {word}", words::digits(n))}</span> },
        )
    };
    let words = words_changed(changes.words_added, changes.words_removed);
    let with = changes.compared_with.trim_start_matches("compared with ");
    let compared = format!("compared with {with}");
    view! {
        <div class="summary">
            {chip(changes.edited, "edited")}
            {chip(changes.added, "new")}
            {chip(changes.removed, "removed")}
            {(!words.is_empty()).then(|| view! { <span class="chip num">{words}</span> })}
            <span class="hush small">{compared}</span>
        </div>
    }
    .into_any()
}

/// Further facts that bind, in the card's order.
pub fn facts(card: &Card) -> impl IntoView + use<> {
    card.facts
        .iter()
        .map(|fact| {
            view! {
                <dt>{fact.label.clone()}</dt>
                <dd>{foreign(&fact.value)}</dd>
            }
        })
        .collect_view()
}
