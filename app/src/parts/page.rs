//! The frame of a screen: its title, its heading, and what stands there while it loads or when it cannot.

use super::icon::icon;
use crate::{api::StudioError, words};
use cloudhal_domain::{code::Code, link};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

/// How many requests wait for the person; shown in the window's title wherever they are.
#[derive(Clone, Copy)]
pub struct WaitingCount(pub RwSignal<i64>);

/// Sets the window's title, words of ours and slugs, for as long as the screen that calls it is there.
///
/// In the browser an effect of our own sets it, which ends with its screen; the library's keeps reading what a screen
/// owned after the screen is gone. On the server its title is taken as it is made, and its view is nothing.
pub fn window_title(text: impl Into<Signal<String>>) {
    let text = text.into();
    let waiting = use_context::<WaitingCount>();
    let title = move || {
        let text = text.get();
        match waiting.map_or(0, |w| w.0.get()) {
            0 => format!("{text} · Cloudhal"),
            n => format!("({n}) {text} · Cloudhal"),
        }
    };
    #[cfg(feature = "ssr")]
    let _ = view! { <leptos_meta::Title text=escaped(&untrack(title))/> };
    #[cfg(not(feature = "ssr"))]
    Effect::new(move |_| document().set_title(&title()));
}

/// The library writes a title as it is given, and a slug from the address may hold anything: `</title><meta …>` must stay text.
#[cfg(feature = "ssr")]
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Grey shapes of the size that the content will have.
#[component]
pub fn Loading() -> impl IntoView {
    view! {
        <div class="skeleton" aria-busy="true">
            <span class="sr">"Loading"</span>
            <i class="bone wide"></i>
            <i class="bone"></i>
            <i class="bone"></i>
            <i class="bone short"></i>
        </div>
    }
}

/// A part or a whole page that cannot be shown.
#[component]
pub fn Trouble(error: StudioError) -> impl IntoView {
    let (title, sentence) = words::trouble(error.code);
    let location = use_location();
    let here = move || {
        format!(
            "{}{}",
            location.pathname.get(),
            query_of(&location.search.get())
        )
    };
    let signed_out = matches!(
        error.code,
        Code::Unauthorized | Code::NotFound | Code::ApprovalNotFound
    );
    let again = matches!(
        error.code,
        Code::Unavailable | Code::Internal | Code::RateLimited
    );
    view! {
        <section class="trouble">
            <p class="mark">{icon("warn")}</p>
            <h1 tabindex="-1">{title}</h1>
            <p>{sentence}</p>
            <p class="ways">
                {again.then(|| view! { <a class="btn" rel="external" href=here>"Try again"</a> })}
                {signed_out.then(|| view! { <a class="btn" rel="external" href=move || link::login(&here())>"Sign in"</a> })}
                <a class="btn" href=link::APPROVALS>"To the approvals"</a>
            </p>
        </section>
    }
}

fn query_of(search: &str) -> String {
    match search.trim_start_matches('?') {
        "" => String::new(),
        query => format!("?{query}"),
    }
}

/// A list that is empty, and what will stand there.
#[component]
pub fn Empty(
    #[prop(into)] title: String,
    #[prop(default = "")] class: &'static str,
    children: Children,
) -> impl IntoView {
    view! {
        <div class=format!("empty {class}")>
            <p class="title">{title}</p>
            {children()}
        </div>
    }
}
