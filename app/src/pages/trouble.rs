//! Addresses that lead nowhere.

use crate::{
    api,
    parts::{icon::logo, page::window_title},
    words,
};
use cloudhal_domain::{code::Code, link};
use leptos::prelude::*;

#[component]
pub fn NotFound() -> impl IntoView {
    api::set_status(404);
    let (title, sentence) = words::trouble(Code::NotFound);
    window_title("Not found");
    view! {
        <main class="door" id="main">
            <p class="brand">{logo()}"Cloudhal"</p>
            <h1 tabindex="-1">{title}</h1>
            <p class="lede">{sentence}</p>
            <p class="ways"><a class="btn" href=link::APPROVALS rel="external">"To the approvals"</a></p>
        </main>
    }
    .into_any()
}
