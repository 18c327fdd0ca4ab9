//! The rest of a change too long for one page: whatever a card binds can be read, a stretch at a time.

use crate::{
    api,
    parts::{
        diff,
        loaded::{ask, loaded},
        page::window_title,
        text::foreign,
    },
    words,
};
use cloudhal_domain::{id::ApprovalId, link, view::ChangesView};
use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

#[component]
pub fn Changes() -> impl IntoView {
    let (params, map) = (use_params_map(), use_query_map());
    let which = Memo::new(move |_| {
        let id = params.with(|p| p.get("id").unwrap_or_default());
        let from = map.with(|m| m.get("from"));
        (id, from.and_then(|text| text.parse().ok()).unwrap_or(0))
    });
    let changes = ask(
        move || which.get(),
        |(id, from): (String, i64)| api::changes(ApprovalId::new(id), from),
    );
    let key = Signal::derive(move || which.with(|(id, from)| format!("{id}/{from}")));
    window_title("Changes");
    view! {
        <section class="screen">{loaded(changes, key, show)}</section>
    }
    .into_any()
}

fn show(view: ChangesView) -> AnyView {
    let last = view.from + view.diffs.len() as i64;
    let place = format!(
        "Changes {} to {} of {}",
        words::digits((view.from + 1).min(view.total)),
        words::digits(last),
        words::digits(view.total)
    );
    let step = |from: Option<i64>, word: &'static str| {
        from.map(
            |from| view! { <a class="btn" href=link::changes(&view.approval, from)>{word}</a> },
        )
    };
    let before = step(view.before, "Earlier ones");
    let after = step(view.after, "Further ones");
    view! {
        <header class="head">
            <nav class="crumbs" aria-label="Where you are">
                <a href=link::APPROVALS>"Approvals"</a>
                <a href=link::approval(&view.approval)>"The request"</a>
            </nav>
            <h1 tabindex="-1">{foreign(&view.sentence)}</h1>
            <p class="by">{place}</p>
        </header>
        {diff::nodes(view.diffs, None, None)}
        <nav class="pager" aria-label="Pages">{before} {after}</nav>
    }
    .into_any()
}
