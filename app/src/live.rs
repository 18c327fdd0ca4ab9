//! Keeping the page true while it is open.
//!
//! 1. The server sends hints: what kind of thing moved, on which site, at which approval. No content, so a hint leaks
//!    nothing and a lost one costs a refetch.
//! 2. Hints that come together are handed on together; each screen looks again at what concerns it.
//! 3. A hidden tab closes its stream (a browser has few connections to one host) and looks at everything on its return,
//!    unless the person asked to be notified here.
//! 4. After a gap everything is looked at again, for nobody knows what was missed.

use crate::parts::loaded::Asked;
use cloudhal_domain::view::LiveHint;
use leptos::prelude::*;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "hydrate"),
    expect(dead_code, reason = "only a browser finds out")
)]
pub enum LiveState {
    Live,
    Reconnecting,
    Offline,
}

/// One or more hints that came together; `None` means that anything may have moved.
type Batch = Option<Arc<Vec<LiveHint>>>;

#[derive(Clone, Copy)]
pub struct Live {
    pub state: RwSignal<LiveState>,
    /// Whether this browser shows notifications.
    pub notify: RwSignal<bool>,
    /// What a reader that speaks is told; politely.
    pub said: RwSignal<String>,
    batch: RwSignal<(u64, Batch)>,
}

impl Live {
    /// For the whole signed-in part; starts listening once the page is hydrated.
    pub fn provide() -> Self {
        let live = Self {
            state: RwSignal::new(LiveState::Reconnecting),
            notify: RwSignal::new(false),
            said: RwSignal::new(String::new()),
            batch: RwSignal::new((0, None)),
        };
        provide_context(live);
        #[cfg(feature = "hydrate")]
        Effect::new(move |_| stream::start(live));
        live
    }

    pub fn get() -> Self {
        expect_context()
    }

    /// Asks again whenever a hint concerns what was asked.
    pub fn refetch_on<T>(self, asked: Asked<T>, concerns: impl Fn(&LiveHint) -> bool + 'static) {
        let resource = asked.resource;
        Effect::new(move |seen: Option<u64>| {
            let (round, batch) = self.batch.get();
            let moved = match batch {
                Some(hints) => hints.iter().any(&concerns),
                None => true,
            };
            if seen.is_some_and(|seen| seen != round) && moved {
                resource.refetch();
            }
            round
        });
    }

    /// Makes every screen look again.
    pub fn look_again(self) {
        self.batch.update(|(round, batch)| {
            *round += 1;
            *batch = None;
        });
    }

    pub fn toggle_notify(self) {
        #[cfg(feature = "hydrate")]
        stream::toggle_notify(self);
    }
}

#[cfg(feature = "hydrate")]
mod stream {
    use super::{Live, LiveState};
    use cloudhal_domain::{link, view::LiveHint};
    use futures::StreamExt;
    use gloo_net::eventsource::{State, futures::EventSource};
    use leptos::prelude::*;
    use std::{cell::RefCell, sync::Arc, time::Duration};
    use wasm_bindgen::{JsCast, closure::Closure};

    /// Hints within this time are one.
    const GATHER: Duration = Duration::from_millis(120);
    const CHECK: Duration = Duration::from_secs(2);
    const NOTIFY_KEY: &str = "notify";

    thread_local! {
        /// The browser's handle; it belongs to the page and to nobody else.
        static SOURCE: RefCell<Option<EventSource>> = const { RefCell::new(None) };
        static GATHERED: RefCell<Vec<LiveHint>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn start(live: Live) {
        live.notify.set(wants_notifications());
        open(live);
        let seen = window_event_listener_untyped("visibilitychange", move |_| seen_or_not(live));
        let gone = window_event_listener_untyped("pagehide", move |_| close());
        let back = window_event_listener_untyped("pageshow", move |_| open(live));
        let offline =
            window_event_listener_untyped("offline", move |_| live.state.set(LiveState::Offline));
        let online = window_event_listener_untyped("online", move |_| open(live));
        let check = set_interval_with_handle(move || check(live), CHECK);
        // The first word is wrong for as short as possible.
        for ms in [150, 500, 1_000] {
            set_timeout(move || check_now(live), Duration::from_millis(ms));
        }
        on_cleanup(move || {
            for listener in [seen, gone, back, offline, online] {
                listener.remove();
            }
            if let Ok(check) = check {
                check.clear();
            }
            close();
        });
    }

    fn open(live: Live) {
        close();
        let Some(url) = document()
            .document_element()
            .and_then(|html| html.get_attribute("data-events"))
        else {
            return;
        };
        let Ok(mut source) = EventSource::new(&url) else {
            return live.state.set(LiveState::Offline);
        };
        let (Ok(mut hints), Ok(mut starts)) =
            (source.subscribe("hint"), source.subscribe("resync"))
        else {
            return;
        };
        SOURCE.with_borrow_mut(|held| *held = Some(source));
        leptos::task::spawn_local(async move {
            while let Some(next) = hints.next().await {
                let Ok((_, message)) = next else { continue };
                let text = message.data().as_string().unwrap_or_default();
                if let Ok(hint) = serde_json::from_str(&text) {
                    gather(live, hint);
                }
            }
        });
        // The server says so where the page is too old to be told each thing it missed.
        leptos::task::spawn_local(async move {
            while let Some(Ok(_)) = starts.next().await {
                live.look_again();
            }
        });
    }

    fn close() {
        SOURCE.with_borrow_mut(|held| {
            if let Some(source) = held.take() {
                source.close();
            }
        });
    }

    fn gather(live: Live, hint: LiveHint) {
        notify(live, &hint);
        let first = GATHERED.with_borrow_mut(|gathered| {
            gathered.push(hint);
            gathered.len() == 1
        });
        if first {
            set_timeout(move || hand_on(live), GATHER);
        }
    }

    fn hand_on(live: Live) {
        let hints = GATHERED.take();
        if let Some(said) = hints.iter().rev().find_map(announce) {
            live.said.set(said.into());
        }
        live.batch.update(|(round, batch)| {
            *round += 1;
            *batch = Some(Arc::new(hints));
        });
    }

    fn announce(hint: &LiveHint) -> Option<&'static str> {
        match hint.kind.as_str() {
            "approval.requested" => Some("A new request waits."),
            "approval.decided" => Some("A request was decided."),
            "approval.voided" => Some("A request no longer holds: its site changed."),
            "approval.expired" => Some("A request expired."),
            "approval.cancelled" => Some("A request was withdrawn."),
            "approval.executed" => Some("An approved call ran."),
            _ => None,
        }
    }

    fn seen_or_not(live: Live) {
        if document().hidden() {
            if !live.notify.get_untracked() {
                close();
            }
        } else {
            open(live);
        }
    }

    /// Opens the stream again where the browser gave up, and says how it stands.
    fn check(live: Live) {
        check_now(live);
        let wanted = !document().hidden() || live.notify.get_untracked();
        let gone =
            SOURCE.with_borrow(|held| held.as_ref().is_none_or(|s| s.state() == State::Closed));
        if wanted && gone && window().navigator().on_line() {
            open(live);
        }
    }

    fn check_now(live: Live) {
        let now = SOURCE.with_borrow(|held| match held.as_ref().map(EventSource::state) {
            Some(State::Open) => LiveState::Live,
            Some(State::Connecting) => LiveState::Reconnecting,
            Some(State::Closed) | None => LiveState::Offline,
        });
        let before = live.state.get_untracked();
        if now == before || document().hidden() {
            return;
        }
        live.state.set(now);
    }

    fn storage() -> Option<web_sys::Storage> {
        window().local_storage().ok().flatten()
    }

    fn wants_notifications() -> bool {
        let asked = storage().and_then(|s| s.get_item(NOTIFY_KEY).ok().flatten());
        asked.is_some()
            && web_sys::Notification::permission() == web_sys::NotificationPermission::Granted
    }

    pub(super) fn toggle_notify(live: Live) {
        if live.notify.get_untracked() {
            live.notify.set(false);
            if let Some(storage) = storage() {
                let _ = storage.remove_item(NOTIFY_KEY);
            }
            return;
        }
        let Ok(asked) = web_sys::Notification::request_permission() else {
            return;
        };
        leptos::task::spawn_local(async move {
            let answer = wasm_bindgen_futures::JsFuture::from(asked).await;
            let granted = answer.is_ok_and(|a| a.as_string().as_deref() == Some("granted"));
            live.notify.set(granted);
            if granted && let Some(storage) = storage() {
                let _ = storage.set_item(NOTIFY_KEY, "1");
            }
        });
    }

    /// Says that something waits, and leads there. What it is stays on the page.
    fn notify(live: Live, hint: &LiveHint) {
        let Some(id) = hint
            .approval
            .as_ref()
            .filter(|_| hint.kind == "approval.requested")
        else {
            return;
        };
        if !live.notify.get_untracked() || !document().hidden() {
            return;
        }
        let options = web_sys::NotificationOptions::new();
        options.set_tag(id.as_str());
        options.set_body("An agent asks for your decision.");
        let Ok(shown) = web_sys::Notification::new_with_options("A request waits", &options) else {
            return;
        };
        let to = link::approval(id);
        let go = Closure::once_into_js(move || {
            let _ = window().focus();
            let _ = window().location().set_href(&to);
        });
        shown.set_onclick(Some(go.unchecked_ref()));
    }
}
