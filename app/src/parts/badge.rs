//! Status: always a word, a shape and a colour.

use super::icon::icon;
use crate::words::Look;
use cloudhal_domain::card::Risk;
use leptos::prelude::*;

pub fn badge(look: Look) -> AnyView {
    view! {
        <span class=format!("badge {}", look.tone)>
            {icon(look.icon)}
            {look.word}
        </span>
    }
    .into_any()
}

/// How hard it is to take back.
pub fn risk(risk: Risk) -> AnyView {
    let (tone, symbol, words) = match risk {
        Risk::Reversible => ("quiet", "undo", "Can be undone"),
        Risk::Irreversible => ("no", "lock", "Cannot be undone"),
    };
    view! {
        <span class=format!("badge {tone}")>
            {icon(symbol)}
            {words}
        </span>
    }
    .into_any()
}
