//! Symbols, drawn once per page and used by name. They never carry meaning alone: a word stands beside each.

use leptos::prelude::*;

/// Put once at the top of the document.
#[component]
pub fn Sprite() -> impl IntoView {
    view! {
        <svg class="sprite" width="0" height="0" aria-hidden="true">
            <defs>
                <symbol id="i-mark" viewBox="0 0 24 24">
                    <path d="M6.5 18.5a4.5 4.5 0 0 1-.6-8.96 6 6 0 0 1 11.6-.9A4 4 0 0 1 18 16.5"></path>
                    <path d="m9.5 15.5 2.5 2.7 5-5.4"></path>
                </symbol>
                <symbol id="i-wait" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6"></circle><path d="M8 4.6V8l2.2 1.6"></path></symbol>
                <symbol id="i-yes" viewBox="0 0 16 16"><path d="m3 8.5 3.2 3.2L13 4.8"></path></symbol>
                <symbol id="i-done" viewBox="0 0 16 16"><path d="m1.5 8.5 3 3 6-6.5"></path><path d="m8 11 .8.8L14.8 5"></path></symbol>
                <symbol id="i-no" viewBox="0 0 16 16"><path d="m4 4 8 8M12 4l-8 8"></path></symbol>
                <symbol id="i-void" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6"></circle><path d="m3.8 12.2 8.4-8.4"></path></symbol>
                <symbol id="i-late" viewBox="0 0 16 16"><path d="M4 2h8M4 14h8M5 2v2.5L8 8l3-3.5V2M5 14v-2.5L8 8l3 3.5V14"></path></symbol>
                <symbol id="i-back" viewBox="0 0 16 16"><path d="M6 3.5 2.5 7 6 10.5"></path><path d="M3 7h6.5a3.5 3.5 0 0 1 0 7H7"></path></symbol>
                <symbol id="i-warn" viewBox="0 0 16 16"><path d="M8 2.2 14.5 13.5h-13z"></path><path d="M8 6.5v3.2M8 11.6v.1"></path></symbol>
                <symbol id="i-lock" viewBox="0 0 16 16"><rect x="3" y="7" width="10" height="7" rx="1.5"></rect><path d="M5 7V5a3 3 0 0 1 6 0v2"></path></symbol>
                <symbol id="i-undo" viewBox="0 0 16 16"><path d="M3 4v3.5h3.5"></path><path d="M3.3 7.3A5 5 0 1 1 3.5 10"></path></symbol>
                <symbol id="i-dot" viewBox="0 0 16 16"><circle cx="8" cy="8" r="2.6"></circle></symbol>
                <symbol id="i-plus" viewBox="0 0 16 16"><path d="M8 3v10M3 8h10"></path></symbol>
                <symbol id="i-pen" viewBox="0 0 16 16"><path d="m3 13 .7-3L10.5 3.2l2.3 2.3L6 12.3z"></path></symbol>
                <symbol id="i-copy" viewBox="0 0 16 16"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5"></rect><path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5"></path></symbol>
                <symbol id="i-out" viewBox="0 0 16 16"><path d="M9 3h4v4M13 3 7.5 8.5M11.5 9.5V12a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V5.5a1 1 0 0 1 1-1h2.5"></path></symbol>
                <symbol id="i-find" viewBox="0 0 16 16"><circle cx="7" cy="7" r="4.5"></circle><path d="m10.5 10.5 3 3"></path></symbol>
                <symbol id="i-menu" viewBox="0 0 16 16"><path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"></path></symbol>
                <symbol id="i-page" viewBox="0 0 16 16"><path d="M4 2h5.5L12.5 5v9H4z"></path><path d="M9.5 2v3.2h3"></path></symbol>
                <symbol id="i-folder" viewBox="0 0 16 16"><path d="M2 4.5A1.5 1.5 0 0 1 3.5 3H6l1.5 2h5A1.5 1.5 0 0 1 14 6.5v5a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 11.5z"></path></symbol>
            </defs>
        </svg>
    }
}

/// A symbol by its name, hidden from readers that speak.
pub fn icon(name: &'static str) -> AnyView {
    view! {
        <svg class="icon" aria-hidden="true">
            <use_ href=format!("#i-{name}")></use_>
        </svg>
    }
    .into_any()
}

/// The mark of the product, beside its name.
pub fn logo() -> AnyView {
    view! {
        <svg class="logo" aria-hidden="true">
            <use_ href=String::from("#i-mark")></use_>
        </svg>
    }
    .into_any()
}
