//! The doors: password, one-time link, first-run set-up. Plain forms; nothing here needs a script or any data.

use crate::parts::{
    icon::{icon, logo},
    notice::Notice,
    page::window_title,
};
use cloudhal_domain::{limits::PASSWORD_CHARS_MIN, link};
use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

/// The frame of a door.
#[component]
fn Door(title: &'static str, lede: &'static str, children: Children) -> impl IntoView {
    view! {
        <main class="door" id="main">
            <p class="brand">{logo()}"Cloudhal"</p>
            <h1 tabindex="-1">{title}</h1>
            <p class="lede">{lede}</p>
            <Notice/>
            {children()}
        </main>
    }
    .into_any()
}

/// The way back, carried as it came; the server checks it.
#[component]
fn Next() -> impl IntoView {
    let map = use_query_map();
    let next = move || map.with(|m| m.get("next").unwrap_or_default());
    view! { <input type="hidden" name="next" value=next/> }.into_any()
}

#[component]
pub fn Login() -> impl IntoView {
    let map = use_query_map();
    let returns = move || {
        let to_request = map.with(|m| {
            m.get_str("next")
                .is_some_and(|n| n.starts_with("/approvals/"))
        });
        to_request.then(|| view! { <p class="note">{icon("wait")}"A request waits for you. After signing in you are right there."</p> })
    };
    window_title("Sign in");
    view! {
        <Door title="Sign in" lede="Agents ask. You decide.">
            {returns}
            <form method="post" action=link::LOGIN class="stack">
                <Next/>
                <label><span>"E-mail"</span><input class="field" type="email" name="email" required autocomplete="username" autocapitalize="none" spellcheck="false"/></label>
                <label><span>"Password"</span><input class="field" type="password" name="password" required autocomplete="current-password"/></label>
                <button class="btn primary">"Sign in"</button>
            </form>
            <p class="hush small">"No password yet, or forgotten? Whoever runs this server can make a sign-in link for you."</p>
        </Door>
    }
    .into_any()
}

/// A link signs nobody in by being opened: programs open links too. The button does, once.
#[component]
pub fn SignInLink() -> impl IntoView {
    let params = use_params_map();
    let action =
        move || params.with(|p| format!("/login/link/{}", p.get("token").unwrap_or_default()));
    window_title("Sign in");
    view! {
        <Door title="One more click" lede="This link signs you in once. Mail programs open links by themselves, so it waits for your click.">
            <form method="post" action=action class="stack">
                <Next/>
                <button class="btn primary">"Sign in"</button>
            </form>
        </Door>
    }
    .into_any()
}

#[component]
pub fn SetUp() -> impl IntoView {
    let params = use_params_map();
    let action = move || params.with(|p| format!("/setup/{}", p.get("token").unwrap_or_default()));
    let rule = format!("At least {PASSWORD_CHARS_MIN} characters; a sentence is fine.");
    window_title("Set up");
    view! {
        <Door title="Welcome" lede="You are the first one here, so you will own this workspace: its sites, its agents, and the last word.">
            <form method="post" action=action class="stack">
                <label><span>"Your name"</span><input class="field" name="name" required autocomplete="name" maxlength="200"/></label>
                <label><span>"E-mail"</span><input class="field" type="email" name="email" required autocomplete="username" autocapitalize="none" spellcheck="false"/></label>
                <label>
                    <span>"Password"</span>
                    <input class="field" type="password" name="password" required autocomplete="new-password" minlength=PASSWORD_CHARS_MIN.to_string() aria-describedby="rule"/>
                    <span class="hush small" id="rule">{rule}</span>
                </label>
                <button class="btn primary">"Begin"</button>
            </form>
        </Door>
    }
    .into_any()
}
