//! Copying a value: there only once scripts run, since without them it could do nothing.

use super::{icon::icon, time::Clock};
use leptos::prelude::*;

#[component]
pub fn Copy(#[prop(into)] text: String, #[prop(into)] label: String) -> impl IntoView {
    let clock = Clock::get();
    let copied = RwSignal::new(false);
    let words = move || if copied.get() { "Copied" } else { "Copy" };
    // What is read aloud holds what is seen.
    let name = move || {
        if copied.get() {
            "Copied".to_owned()
        } else {
            label.clone()
        }
    };
    view! {
        <button
            type="button"
            class="btn small copy"
            hidden=move || !clock.is_hydrated()
            aria-label=name
            on:click=move |_| copy(&text, copied)
        >
            {icon("copy")}
            <span aria-live="polite">{words}</span>
        </button>
    }
}

#[cfg(feature = "hydrate")]
fn copy(text: &str, copied: RwSignal<bool>) {
    let promise = window().navigator().clipboard().write_text(text);
    leptos::task::spawn_local(async move {
        if wasm_bindgen_futures::JsFuture::from(promise).await.is_ok() {
            copied.set(true);
            set_timeout(move || copied.set(false), std::time::Duration::from_secs(5));
        }
    });
}

#[cfg(not(feature = "hydrate"))]
fn copy(_text: &str, _copied: RwSignal<bool>) {}

/// A command in one line, or a secret, with its copy button.
#[component]
pub fn Command(
    #[prop(into)] line: String,
    #[prop(default = "Copy the command")] label: &'static str,
) -> impl IntoView {
    view! {
        <div class="command">
            <code>{line.clone()}</code>
            <Copy text=line label=label/>
        </div>
    }
}
