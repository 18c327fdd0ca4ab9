//! Approve and Deny: a plain form that works as the server printed it. Scripts only make it slower to err.
//!
//! 1. Approve takes a click only after the page was in sight for [`ARMING`], and after every folded value was opened.
//! 2. Enter in a text field decides nothing: the form's default button is a disabled one.
//! 3. One submit is in flight at a time; a second does nothing.
//! 4. What was typed outlives updates of the page, reloads and a sign-in.

use super::{fold::Folds, icon::icon, time::Clock};
use crate::words;
use cloudhal_domain::{
    approval::ApprovalRecord,
    card::Risk,
    limits::{ARMING, REASON_CHARS_MAX},
    link,
    view::Needs,
};
use leptos::{ev::SubmitEvent, html, prelude::*};

#[component]
pub fn Decide(
    record: ApprovalRecord,
    reason: RwSignal<String>,
    /// What the site's policy waits for, where one person's approval is not enough.
    needs: Option<Needs>,
) -> impl IntoView {
    let may_approve = needs.as_ref().is_none_or(Needs::may_approve);
    let folds = expect_context::<Folds>();
    let armed = RwSignal::new(true);
    let busy = RwSignal::new(None::<&'static str>);
    arm_when_seen(armed, busy);
    let ready = move || armed.get() && folds.unopened() == 0 && busy.get().is_none();
    let submit = move |event: SubmitEvent| guard(&event, folds, armed, busy);
    let typed = (may_approve && record.card.risk == Risk::Irreversible).then(|| confirm(&record));
    let word = words::approve(&record.tool);
    let approve = may_approve.then(|| {
        view! {
            <button id="approve" class="btn yes" name="decision" value="approve" aria-disabled=move || (!ready()).then_some("true")>
                {icon("yes")}
                <span>{move || if busy.get() == Some("approve") { "Approving…" } else { word }}</span>
                <kbd aria-hidden="true">"a"</kbd>
            </button>
        }
    });
    let folded = may_approve.then(|| view! { <StillFolded folds/> });
    let then = then(&record, may_approve, needs.is_some());
    view! {
        <form class="decide" method="post" action=link::approval(&record.id) on:submit=submit aria-describedby="then">
            <button type="submit" disabled hidden tabindex="-1" aria-hidden="true"></button>
            <input type="hidden" name="seenDigest" value=record.seen_digest.to_string()/>
            {typed}
            <Reason reason/>
            {approve}
            <button id="deny" class="btn no" name="decision" value="deny" formnovalidate aria-disabled=move || busy.get().map(|_| "true")>
                {icon("no")}
                <span>{move || if busy.get() == Some("deny") { "Denying…" } else { "Deny" }}</span>
                <kbd aria-hidden="true">"d"</kbd>
            </button>
            {folded}
            <p class="then" id="then">{then}</p>
        </form>
    }
    .into_any()
}

/// What happens next, for either.
fn then(record: &ApprovalRecord, may_approve: bool, others: bool) -> AnyView {
    let first = match (may_approve, others) {
        (false, _) => "Once everybody who is needed has approved, ",
        (true, true) => "Your approval is one of those needed. Once all are there, ",
        (true, false) => "Once you approve, ",
    };
    let name = super::text::foreign(&record.requested_by.name);
    view! {
        {first}
        {name}
        " may run exactly this, once; not if the site changes first. Denying ends the request and changes nothing, and the agent reads your reason."
    }
    .into_any()
}

/// Nothing undoes it, so the person types the site's name.
fn confirm(record: &ApprovalRecord) -> AnyView {
    let slug = record.card.site.slug.clone();
    view! {
        <label class="confirm">
            <span>"This cannot be undone. To approve, type " <code>{slug.clone()}</code></span>
            <input
                class="field" name="confirm" autocomplete="off" autocapitalize="none" spellcheck="false" required
                pattern=slug title="The site's name, exactly as shown"
            />
        </label>
    }
    .into_any()
}

/// The reason, with presets. It is kept outside of the part that updates and in the tab's own storage.
#[component]
fn Reason(reason: RwSignal<String>) -> impl IntoView {
    let field = NodeRef::<html::Input>::new();
    Effect::new(move |_| {
        let Some(input) = field.get() else { return };
        let typed = input.value();
        let kept = reason.get_untracked();
        if !typed.is_empty() && typed != kept {
            reason.set(typed);
        } else if typed.is_empty() && !kept.is_empty() {
            input.set_value(&kept);
        }
    });
    view! {
        <input
            class="field" id="reason" name="reason" list="presets" autocomplete="off" maxlength=REASON_CHARS_MAX.to_string() node_ref=field
            placeholder="Reason for the agent (optional)" aria-label="Reason for the agent, optional"
            on:input=move |event| reason.set(event_target_value(&event))
        />
        <datalist id="presets">
            {words::DENY_PRESETS.into_iter().map(|preset| view! { <option value=preset></option> }).collect_view()}
        </datalist>
    }
    .into_any()
}

/// Why Approve does not take a click yet, and the way to change that.
#[component]
fn StillFolded(folds: Folds) -> impl IntoView {
    let clock = Clock::get();
    view! {
        <p class="folded" hidden=move || !clock.is_hydrated() || folds.unopened() == 0 role="status">
            {move || words::count(folds.unopened() as i64, "long value is folded", "long values are folded")}
            ". Approve waits until you opened them. "
            <button type="button" class="link" on:click=move |_| folds.open_all()>"Open all"</button>
        </p>
    }
    .into_any()
}

/// Stops what must not go out: a click too early, one that no person made, a second one.
fn guard(
    event: &SubmitEvent,
    folds: Folds,
    armed: RwSignal<bool>,
    busy: RwSignal<Option<&'static str>>,
) {
    let approves = submitter(event).as_deref() == Some("approve");
    let early = approves && !(armed.get_untracked() && untrack(|| folds.unopened()) == 0);
    if early || busy.get_untracked().is_some() || !event.is_trusted() {
        event.prevent_default();
        return;
    }
    busy.set(Some(if approves { "approve" } else { "deny" }));
}

#[cfg(feature = "hydrate")]
fn submitter(event: &SubmitEvent) -> Option<String> {
    event.submitter()?.get_attribute("value")
}

#[cfg(not(feature = "hydrate"))]
fn submitter(_event: &SubmitEvent) -> Option<String> {
    None
}

/// Armed as printed, so that the form works without us; once hydrated, only after the page was in sight for a while, and
/// again after each time it was not (a window swapped under the second click).
fn arm_when_seen(armed: RwSignal<bool>, busy: RwSignal<Option<&'static str>>) {
    #[cfg(feature = "hydrate")]
    Effect::new(move |_| {
        let round = StoredValue::new(0u32);
        let watch = move || {
            armed.set(false);
            round.update_value(|n| *n += 1);
            let mine = round.get_value();
            let arm = move || {
                let same = round.try_get_value() == Some(mine);
                if same && !document().hidden() {
                    armed.set(true);
                }
            };
            set_timeout(arm, ARMING);
        };
        watch();
        let seen = window_event_listener_untyped("visibilitychange", move |_| watch());
        let focus = window_event_listener(leptos::ev::focus, move |_| watch());
        // A page that comes back from the browser's memory has nothing in flight.
        let back = window_event_listener_untyped("pageshow", move |_| busy.set(None));
        on_cleanup(move || {
            seen.remove();
            focus.remove();
            back.remove();
        });
    });
    #[cfg(not(feature = "hydrate"))]
    let _ = (armed, busy, ARMING);
}
