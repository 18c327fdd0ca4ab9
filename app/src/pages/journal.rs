//! Who asked, decided, redeemed and ran: append-only, each entry chained to the one before.

use crate::{
    api,
    live::Live,
    parts::{
        icon::icon,
        journal::journal,
        loaded::{ask, loaded},
        notice::Notice,
        page::{Empty, window_title},
        query::with_query,
    },
};
use cloudhal_domain::{link, view::JournalPage};
use leptos::{either::Either, prelude::*};
use leptos_router::hooks::use_query_map;

#[component]
pub fn Journal() -> impl IntoView {
    let map = use_query_map();
    let which = Memo::new(move |_| {
        let text = |name| map.with(|m| m.get(name).filter(|v: &String| !v.is_empty()));
        (text("site"), text("cursor"))
    });
    let page = ask(
        move || which.get(),
        |(site, cursor)| api::journal(site, cursor),
    );
    Live::get().refetch_on(page, |_| true);
    let key = Signal::derive(move || which.with(|which| format!("{which:?}")));
    let only = move || {
        which.with(|(site, _)| site.clone()).map(|site| {
            view! {
                <a class="chip" href=link::JOURNAL>
                    {format!("Site: {site}")}
                    {icon("no")}
                    <span class="sr">" remove"</span>
                </a>
            }
        })
    };
    window_title("Journal");
    view! {
        <section class="screen">
            <Notice/>
            <header class="head">
                <h1 tabindex="-1">"Journal"</h1>
                <p class="by">"Every request, decision and effect. Entries are only ever added, and each carries the digest of the one before: " <code>"cloudhal verify"</code> " checks them all."</p>
                <p class="chips">{only}</p>
            </header>
            {loaded(page, key, move |page| show(page, which.get_untracked().0))}
        </section>
    }
    .into_any()
}

fn show(page: JournalPage, site: Option<String>) -> AnyView {
    let next = page.next_cursor.map(|cursor| {
        let to = with_query(
            link::JOURNAL,
            &[("site", site.as_deref()), ("cursor", Some(&cursor))],
        );
        view! { <a class="btn" href=to>"Older entries"</a> }
    });
    let list = if page.rows.is_empty() {
        Either::Left(
            view! { <Empty title="Nothing happened yet"><p>"What agents ask and people decide is written here."</p></Empty> },
        )
    } else {
        Either::Right(journal(page.rows))
    };
    view! {
        {list}
        <nav class="pager" aria-label="Pages">{next}</nav>
    }
    .into_any()
}
