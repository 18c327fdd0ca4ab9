//! The frame of everything behind the sign-in.

use crate::{
    keys::KeysHelp,
    live::Live,
    parts::{page::WaitingCount, topbar::TopBar},
};
use leptos::prelude::*;
use leptos_router::components::Outlet;

#[component]
pub fn Studio() -> impl IntoView {
    let live = Live::provide();
    provide_context(WaitingCount(RwSignal::new(0)));
    focus_after_navigation();
    view! {
        <a class="skip" href="#main" rel="external">"Skip to the content"</a>
        <div class="studio">
            <TopBar/>
            <main id="main" tabindex="-1">
                <Outlet/>
            </main>
        </div>
        <KeysHelp/>
        <p class="sr" aria-live="polite">{move || live.said.get()}</p>
    }
    .into_any()
}

/// After a move within the page the focus goes to the new heading, as a browser would start reading there.
fn focus_after_navigation() {
    #[cfg(feature = "hydrate")]
    {
        use std::time::Duration;
        use wasm_bindgen::JsCast;
        let location = leptos_router::hooks::use_location();
        Effect::new(move |before: Option<String>| {
            let path = location.pathname.get();
            if before.is_some_and(|before| before != path) {
                // The heading comes with its data.
                for ms in [30, 200, 600] {
                    set_timeout(focus_heading, Duration::from_millis(ms));
                }
            }
            path
        });

        fn focus_heading() {
            let kept = document().active_element().is_some_and(|e| {
                e.tag_name() != "BODY"
                    && !e.has_attribute("aria-current")
                    && !e.class_list().contains("row-link")
            });
            if kept {
                return;
            }
            let heading = document().query_selector("main h1").ok().flatten();
            if let Some(heading) = heading.and_then(|h| h.dyn_into::<web_sys::HtmlElement>().ok()) {
                let _ = heading.focus();
            }
        }
    }
}
