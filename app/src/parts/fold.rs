//! Long values. The server prints them open; with scripts they fold, and Approve waits until each was opened once, since
//! the harm sits in the tail.

use leptos::{html, prelude::*};
use std::collections::BTreeSet;

/// What is folded on the page and what was opened. It lives as long as the record on screen, so that an update in place
/// does not ask again.
#[derive(Clone, Copy)]
pub struct Folds {
    required: RwSignal<BTreeSet<String>>,
    opened: RwSignal<BTreeSet<String>>,
}

impl Folds {
    pub fn provide() -> Self {
        let folds = Self {
            required: RwSignal::default(),
            opened: RwSignal::default(),
        };
        provide_context(folds);
        folds
    }

    /// Another record is on screen.
    pub fn forget(self) {
        self.required.update(BTreeSet::clear);
        self.opened.update(BTreeSet::clear);
    }

    /// How many still have to be opened; none without scripts, where all is open.
    pub fn unopened(self) -> usize {
        self.required.with(|required| {
            self.opened
                .with(|opened| required.difference(opened).count())
        })
    }

    /// Opens everything that is folded on the page.
    pub fn open_all(self) {
        #[cfg(feature = "hydrate")]
        for details in folded() {
            details.set_open(true);
        }
        self.opened.set(self.required.get_untracked());
    }
}

/// A part that folds. `key` names the value, so that a changed value has to be opened again.
#[component]
pub fn Fold(
    key: String,
    #[prop(into)] class: String,
    summary: impl IntoView + 'static,
    children: Children,
) -> impl IntoView {
    let folds = use_context::<Folds>();
    let node = NodeRef::<html::Details>::new();
    let name = key.clone();
    Effect::new(move |_| {
        let (Some(folds), Some(details)) = (folds, node.get()) else {
            return;
        };
        folds.required.update(|set| {
            set.insert(name.clone());
        });
        if !folds.opened.with_untracked(|set| set.contains(&name)) {
            details.set_open(false);
        }
    });
    let mark = move |_| {
        if let (Some(folds), Some(details)) = (folds, node.get_untracked())
            && details.open()
        {
            folds.opened.update(|set| {
                set.insert(key.clone());
            });
        }
    };
    view! {
        <details class=format!("fold {class}") open node_ref=node on:toggle=mark>
            <summary>{summary}</summary>
            {children()}
        </details>
    }
}

#[cfg(feature = "hydrate")]
fn folded() -> Vec<web_sys::HtmlDetailsElement> {
    use wasm_bindgen::JsCast;
    let Ok(list) = document().query_selector_all("details.fold") else {
        return Vec::new();
    };
    (0..list.length())
        .filter_map(|i| list.get(i)?.dyn_into().ok())
        .collect()
}
