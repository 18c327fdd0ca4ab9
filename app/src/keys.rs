//! The keyboard. Every key does what a link or a button on the page does too; no single key decides anything.
//!
//! `a` and `d` only put the focus on their button; Enter there is the second key. Keys are off while typing, with
//! Control, Alt or Meta, on repeat, and for whoever switched them off.

use leptos::prelude::*;

const KEYS: [(&str, &str); 11] = [
    ("j k", "Next and previous request"),
    ("o or Enter", "Open it"),
    ("u", "Back to the list"),
    ("x", "Select for denying several"),
    ("a then Enter", "Approve"),
    ("d then Enter", "Deny"),
    ("/", "Search"),
    ("g p", "Go to what waits"),
    ("g s", "Go to the sites"),
    ("?", "This list"),
    ("Esc", "Close, or leave a field"),
];

/// The list of keys, and the switch for those whom single keys disturb (WCAG 2.1.4).
#[component]
pub fn KeysHelp() -> impl IntoView {
    let on = RwSignal::new(true);
    #[cfg(feature = "hydrate")]
    Effect::new(move |_| listen::start(on));
    let rows = KEYS
        .into_iter()
        .map(|(keys, what)| {
            let keys = keys
                .split(' ')
                .map(|key| match key {
                    "or" | "then" => leptos::either::Either::Left(format!(" {key} ")),
                    key => leptos::either::Either::Right(view! { <kbd>{key.to_string()}</kbd> }),
                })
                .collect_view();
            view! {
                <dt>{keys}</dt>
                <dd>{what}</dd>
            }
        })
        .collect_view();
    view! {
        <dialog id="keys" class="dialog" aria-labelledby="keys-title">
            <form method="dialog">
                <h2 id="keys-title">"Keyboard"</h2>
                <dl class="keylist">{rows}</dl>
                <label class="switch">
                    <input type="checkbox" prop:checked=move || on.get() on:change=move |event| switch(on, event_target_checked(&event))/>
                    "Single-letter keys are on"
                </label>
                <button class="btn">"Close"</button>
            </form>
        </dialog>
    }
}

fn switch(on: RwSignal<bool>, to: bool) {
    on.set(to);
    #[cfg(feature = "hydrate")]
    listen::remember(to);
}

/// Opens the list of keys.
pub fn show_help() {
    #[cfg(feature = "hydrate")]
    listen::show_help();
}

#[cfg(feature = "hydrate")]
mod listen {
    use cloudhal_domain::link;
    use leptos::{ev, prelude::*};
    use leptos_router::{NavigateOptions, hooks::use_navigate};
    use std::cell::Cell;
    use wasm_bindgen::JsCast;
    use web_sys::{
        Element, HtmlDetailsElement, HtmlDialogElement, HtmlElement, HtmlInputElement,
        KeyboardEvent,
    };

    const OFF_KEY: &str = "keys-off";

    thread_local! {
        /// Whether `g` was just pressed: the next letter names a place.
        static GOING: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn start(on: RwSignal<bool>) {
        on.set(!is_off());
        let navigate = use_navigate();
        let go = move |to: &str| navigate(to, NavigateOptions::default());
        let listener = window_event_listener(ev::keydown, move |event| {
            if on.get_untracked() && is_ours(&event) && act(&event.key(), &go) {
                event.prevent_default();
            }
        });
        on_cleanup(move || listener.remove());
    }

    fn is_ours(event: &KeyboardEvent) -> bool {
        let modified = is_dialog_open()
            || event.ctrl_key()
            || event.meta_key()
            || event.alt_key()
            || event.repeat();
        !modified && (event.key() == "Escape" || !is_typing())
    }

    /// A dialog has the keyboard to itself; the browser closes it on Escape.
    fn is_dialog_open() -> bool {
        find("dialog[open]").is_some()
    }

    fn is_typing() -> bool {
        document().active_element().is_some_and(|element| {
            let kind = element.get_attribute("type").unwrap_or_default();
            let field = matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT");
            (field && kind != "checkbox") || element.has_attribute("contenteditable")
        })
    }

    /// True where the key meant something.
    fn act(key: &str, go: &impl Fn(&str)) -> bool {
        if GOING.take() {
            let to = match key {
                "p" => link::APPROVALS,
                "s" => link::SITES,
                "a" => link::AGENTS,
                "j" => link::JOURNAL,
                _ => return false,
            };
            go(to);
            return true;
        }
        match key {
            "g" => GOING.set(true),
            "j" | "ArrowDown" => return step(1, key == "j"),
            "k" | "ArrowUp" => return step(-1, key == "k"),
            "o" => return row_in_focus().is_some_and(click),
            "u" => go(link::APPROVALS),
            "x" => return select_row(),
            "a" => return focus("#approve"),
            "d" => return focus("#deny"),
            "/" => return focus("#search"),
            "?" => show_help(),
            "Escape" => return leave(),
            _ => return false,
        }
        true
    }

    fn find(selector: &str) -> Option<HtmlElement> {
        document().query_selector(selector).ok()??.dyn_into().ok()
    }

    fn focus(selector: &str) -> bool {
        find(selector).is_some_and(|element| element.focus().is_ok())
    }

    fn rows() -> Vec<HtmlElement> {
        let Ok(list) = document().query_selector_all(".queue .row-link") else {
            return Vec::new();
        };
        (0..list.length())
            .filter_map(|i| list.get(i)?.dyn_into().ok())
            .collect()
    }

    fn row_in_focus() -> Option<HtmlElement> {
        let active = document().active_element()?;
        let active = active.closest(".row").ok().flatten()?;
        active.query_selector(".row-link").ok()??.dyn_into().ok()
    }

    /// Moves along the queue; the arrow keys only where the queue has the focus already, so that the page scrolls.
    fn step(by: isize, anywhere: bool) -> bool {
        let rows = rows();
        let at = row_in_focus().and_then(|row| rows.iter().position(|r| *r == row));
        if rows.is_empty() || (at.is_none() && !anywhere) {
            return false;
        }
        let current = || rows.iter().position(|r| r.has_attribute("aria-current"));
        let next = match at.or_else(current) {
            Some(at) => (at as isize + by).clamp(0, rows.len() as isize - 1) as usize,
            None => 0,
        };
        rows[next].focus().is_ok()
    }

    fn click(element: HtmlElement) -> bool {
        element.click();
        true
    }

    fn select_row() -> bool {
        let Some(row) = row_in_focus().and_then(|link| link.closest(".row").ok().flatten()) else {
            return false;
        };
        let Some(pick) = row.query_selector("input[name=ids]").ok().flatten() else {
            return false;
        };
        if let Some(bulk) =
            find("details.bulk").and_then(|b| b.dyn_into::<HtmlDetailsElement>().ok())
        {
            bulk.set_open(true);
        }
        pick.dyn_into::<HtmlInputElement>().is_ok_and(|pick| {
            pick.set_checked(!pick.checked());
            true
        })
    }

    pub(super) fn show_help() {
        let dialog = find("#keys").and_then(|d| d.dyn_into::<HtmlDialogElement>().ok());
        if let Some(dialog) = dialog.filter(|d| !d.open()) {
            let _ = dialog.show_modal();
        }
    }

    /// Closes an open menu, or takes the focus out of a field or off an armed button.
    fn leave() -> bool {
        if let Ok(Some(menu)) = document().query_selector("details.menu[open]")
            && let Ok(menu) = menu.dyn_into::<HtmlDetailsElement>()
        {
            menu.set_open(false);
            return true;
        }
        let active: Option<HtmlElement> = document()
            .active_element()
            .and_then(|e: Element| e.dyn_into().ok());
        active.is_some_and(|element| {
            let armed = matches!(element.id().as_str(), "approve" | "deny");
            let leaves = armed || matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA");
            leaves && element.blur().is_ok()
        })
    }

    fn storage() -> Option<web_sys::Storage> {
        window().local_storage().ok().flatten()
    }

    fn is_off() -> bool {
        storage().is_some_and(|s| s.get_item(OFF_KEY).ok().flatten().is_some())
    }

    pub(super) fn remember(on: bool) {
        if let Some(storage) = storage() {
            let _ = if on {
                storage.remove_item(OFF_KEY)
            } else {
                storage.set_item(OFF_KEY, "1")
            };
        }
    }
}
