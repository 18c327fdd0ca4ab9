//! The bar at the top: where one is, what waits, whether the page is live, and who one is.

use super::{
    icon::{icon, logo},
    loaded::ask,
    page::WaitingCount,
    time::Clock,
};
use crate::{
    api,
    live::{Live, LiveState},
    words,
};
use cloudhal_domain::{link, view::Viewer};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

const PLACES: [(&str, &str); 5] = [
    (link::APPROVALS, "Approvals"),
    (link::SITES, "Sites"),
    (link::AGENTS, "Agents"),
    (link::PEOPLE, "People"),
    (link::JOURNAL, "Journal"),
];

#[component]
pub fn TopBar() -> impl IntoView {
    let viewer = ask(|| (), |()| api::viewer());
    let live = Live::get();
    live.refetch_on(viewer, |_| true);
    view! {
        <header class="topbar">
            <Transition>
                {move || Suspend::new(async move {
                    let viewer = viewer.resource.await.and_then(|text| api::open::<Viewer>(&text)).ok();
                    view! { <Bar viewer/> }
                })}
            </Transition>
        </header>
    }
}

/// The whole bar hangs on one answer, so that nothing in it moves; without an answer it still leads everywhere.
#[component]
fn Bar(viewer: Option<Viewer>) -> impl IntoView {
    let waiting = viewer.as_ref().map_or(0, |v| v.waiting);
    let owner = viewer.as_ref().is_some_and(|v| v.owner);
    let count = expect_context::<WaitingCount>();
    Effect::new(move |_| {
        count.0.set(waiting);
        mark_favicon(waiting);
    });
    view! {
        <a class="brand" href=link::APPROVALS>
            {logo()}
            <span class="brand-name">"Cloudhal"</span>
        </a>
        <nav class="nav" aria-label="Main">{places(waiting, owner)}</nav>
        <div class="end">
            <LiveMark/>
            <details class="menu places">
                <summary class="btn icon-only" aria-label="Menu">{icon("menu")}</summary>
                <nav class="sheet" aria-label="All places">{places(waiting, owner)}</nav>
            </details>
            {viewer.map(|viewer| view! { <PersonMenu viewer/> })}
        </div>
    }
}

/// People are kept by owners of the workspace alone.
fn places(waiting: i64, owner: bool) -> impl IntoView {
    let location = use_location();
    let place = move |(href, name): (&'static str, &'static str)| {
        let here = move || {
            location
                .pathname
                .with(|path| path.starts_with(href).then_some("page"))
        };
        let count = (href == link::APPROVALS && waiting > 0).then(|| {
            view! {
                <span class="count num">{words::digits(waiting)}<span class="sr">" waiting"</span></span>
            }
        });
        view! {
            <a href=href aria-current=here>
                {name}
                {count}
            </a>
        }
    };
    PLACES
        .into_iter()
        .filter(|(href, _)| owner || *href != link::PEOPLE)
        .map(place)
        .collect_view()
}

/// Whether what is on screen is kept up to date. It takes its place before scripts run and shows itself after.
#[component]
fn LiveMark() -> impl IntoView {
    let live = Live::get();
    let clock = Clock::get();
    let class = move || match (clock.is_hydrated(), live.state.get()) {
        (false, _) => "live unseen",
        (true, LiveState::Live) => "live",
        (true, LiveState::Reconnecting) => "live weak",
        (true, LiveState::Offline) => "live off",
    };
    view! {
        <span class=class role="status">
            <i aria-hidden="true"></i>
            {move || match live.state.get() {
                LiveState::Live => "Live",
                LiveState::Reconnecting => "Reconnecting",
                LiveState::Offline => "Offline",
            }}
        </span>
    }
}

#[component]
fn PersonMenu(viewer: Viewer) -> impl IntoView {
    let location = use_location();
    let here = move || {
        let query = location.search.get();
        let query = query.trim_start_matches('?');
        let path = location.pathname.get();
        if query.is_empty() {
            path
        } else {
            format!("{path}?{query}")
        }
    };
    let theme = |value: &'static str, name: &'static str| {
        view! { <button class="choice" name="theme" value=value>{name}</button> }
    };
    view! {
        <details class="menu person">
            <summary class="who">
                <span aria-hidden="true">{words::initials(&viewer.name)}</span>
                <span class="sr">{format!("{}, your menu", viewer.name)}</span>
            </summary>
            <div class="sheet">
                <p class="me"><b>{viewer.name.clone()}</b><span class="hush">{viewer.email}</span></p>
                <form method="post" action="/theme" class="themes" aria-label="Theme">
                    <input type="hidden" name="next" prop:value=here value=here/>
                    {theme("system", "System")}
                    {theme("light", "Light")}
                    {theme("dark", "Dark")}
                </form>
                <Notify/>
                <button type="button" class="item wide-only" on:click=move |_| crate::keys::show_help()>"Keyboard"<kbd>"?"</kbd></button>
                <form method="post" action=link::LOGOUT>
                    <button class="item">"Sign out"</button>
                </form>
            </div>
        </details>
    }
}

/// Asking the browser to tell about new requests; only where it can, and only after a click.
#[component]
fn Notify() -> impl IntoView {
    let live = Live::get();
    let clock = Clock::get();
    let words = move || {
        if live.notify.get() {
            "Stop notifying me here"
        } else {
            "Notify me in this browser"
        }
    };
    view! {
        <button type="button" class="item" hidden=move || !clock.is_hydrated() on:click=move |_| live.toggle_notify()>
            {words}
        </button>
    }
}

/// A dot on the window's icon while something waits.
#[cfg(feature = "hydrate")]
fn mark_favicon(waiting: i64) {
    let Some(icon) = document().get_element_by_id("favicon") else {
        return;
    };
    let Some(href) = icon.get_attribute("href") else {
        return;
    };
    let dot = "%3Ccircle cx='19' cy='5' r='4.5' fill='%23b45309' stroke='none'/%3E";
    let plain = href.replace(dot, "");
    let marked = plain.replace("%3C/svg%3E", &format!("{dot}%3C/svg%3E"));
    let _ = icon.set_attribute("href", if waiting > 0 { &marked } else { &plain });
}

#[cfg(not(feature = "hydrate"))]
fn mark_favicon(_waiting: i64) {}
