//! What a form's way back says, at the top of the page it came back to.

use super::icon::icon;
use crate::words::{self, Tone};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

/// The notice that the address carries, if any.
#[component]
pub fn Notice() -> impl IntoView {
    let query = use_query_map();
    move || {
        let (tone, sentence) = query.with(|q| q.get_str("notice").map(words::notice))?;
        let symbol = match tone {
            Tone::Good => "yes",
            Tone::Calm => "wait",
            Tone::Bad => "warn",
        };
        Some(view! {
            <p class=format!("banner {}", tone.as_str()) role="status">
                {icon(symbol)}
                <span>{sentence}</span>
            </p>
        })
    }
}
