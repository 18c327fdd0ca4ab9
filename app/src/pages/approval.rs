//! One request: what will happen, to what, who asks, how long it holds; then the change itself; then the fine print; and
//! the agent's own words last.

use crate::{
    api,
    live::Live,
    parts::{
        badge, card,
        decide::Decide,
        diff,
        fold::{Fold, Folds},
        icon::icon,
        journal::journal,
        loaded::{ask, loaded},
        notice::Notice,
        page::window_title,
        query,
        text::{self, digest, foreign},
        time::{Ago, At, Clock, Left},
    },
    words,
};
use cloudhal_domain::{
    approval::{ApprovalRecord, Outcome, Status, Verdict, Via},
    id::ApprovalId,
    link, odd,
    tool::CallerKind,
    view::{ApprovalView, ChangedNode, InboxRow, Needs},
};
use leptos::{either::Either, prelude::*};
use leptos_router::hooks::use_params_map;
use serde_json::Value;

/// A value longer than this folds.
const LONG_VALUE: usize = 600;

#[component]
pub fn Approval() -> impl IntoView {
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|p| p.get("id").unwrap_or_default()));
    let approval = ask(move || id.get(), |id| api::approval(ApprovalId::new(id)));
    let folds = Folds::provide();
    let reason = RwSignal::new(String::new());
    keep_reason(id, reason);
    Effect::new(move |before: Option<String>| {
        let now = id.get();
        if before.is_some_and(|before| before != now) {
            folds.forget();
        }
        now
    });
    Live::get().refetch_on(approval, move |hint| {
        let mine = hint
            .approval
            .as_ref()
            .is_some_and(|a| id.with_untracked(|id| a.as_str() == id));
        mine || matches!(hint.kind.as_str(), "site.changed" | "approval.requested")
    });
    window_title("Approval");
    view! {
        <article class="approval">
            {loaded(approval, id.into(), move |view| view! { <Record view reason/> })}
        </article>
    }
    .into_any()
}

#[component]
fn Record(view: ApprovalView, reason: RwSignal<String>) -> impl IntoView {
    look_again_at_expiry(&view.record);
    let title = format!("{} · Approval", words::tool(&view.record.tool));
    let words_of_agent = view.record.reason.as_deref().map(agents_words);
    window_title(title);
    view! {
        {question(&view, reason)}
        <div class="body">
            <nav class="tabs onpage" aria-label="On this page">
                <a href="#changes" rel="external">"What changes"</a>
                <a href="#call" rel="external">"Exact call"</a>
                <a href="#history" rel="external">"History"</a>
            </nav>
            {changes(&view)}
            {call(&view)}
            {history(&view)}
            {words_of_agent}
        </div>
    }
    .into_any()
}

/// The question, who asks it, and the answer or its form.
fn question(view: &ApprovalView, reason: RwSignal<String>) -> AnyView {
    let record = &view.record;
    let outcome = record.receipt.as_ref().map(|r| r.outcome.as_str());
    let open = record.status.is_open();
    let waits = record.status == Status::Pending;
    let decides = waits && view.may_decide;
    // There is nothing yet to go back to.
    let first = record.tool == "publish" && record.card.site.live_version.is_none();
    let mut look = words::status(record.status, outcome);
    let may_approve = view.needs.as_ref().is_none_or(Needs::may_approve);
    if decides {
        look.word = if may_approve {
            "Waiting for you"
        } else {
            "Waiting for others"
        };
    }
    let answer = if decides {
        Either::Left(view! {
            {view.needs.as_ref().map(|needs| needed(needs, record))}
            <Decide record=record.clone() reason needs=view.needs.clone()/>
        })
    } else {
        Either::Right(ended(view, reason))
    };
    view! {
        <header class="ask" class:decides=decides>
            <p class="up"><a href=link::APPROVALS>{icon("back")}"All approvals"</a></p>
            <Notice/>
            <div class="eyebrow">
                {badge::badge(look)}
                {(!first).then(|| badge::risk(record.card.risk))}
                {open.then(|| view! { <Left until=record.expires_at/> })}
            </div>
            <h1 tabindex="-1">
                {foreign(&record.card.sentence)}
                {waits.then_some("?")}
            </h1>
            {by(view)}
            {answer}
        </header>
    }
    .into_any()
}

/// Who approved so far, and who is still needed.
fn needed(needs: &Needs, record: &ApprovalRecord) -> AnyView {
    let mine =
        words::own_part(needs).map(|said| view! { <p class="note">{icon("wait")}{said}</p> });
    view! {
        {decided(record)}
        <p class="needed">{foreign(&words::needed(&needs.missing))}</p>
        {mine}
    }
    .into_any()
}

/// "copy-editor, an agent of Lena Brandt, asked over MCP 4 minutes ago."
fn by(view: &ApprovalView) -> AnyView {
    let record = &view.record;
    let asker = &record.card.asker;
    let is_agent = asker.kind == CallerKind::Agent;
    let owner = asker.owner.as_ref().map(|owner| {
        view! { ", an agent of " <b>{foreign(&owner.name)}</b> "," }
    });
    let client = asker.client.as_deref().map(|client| {
        view! { " Its program calls itself " {foreign(client)} "." }
    });
    let strange = (is_agent && !view.own_agent && record.status.is_open()).then(|| {
        view! { <p class="note">{icon("warn")}"This is not one of your own agents. Make sure that you know why it asks."</p> }
    });
    view! {
        <p class="by">
            <b>{foreign(&asker.name)}</b>
            {owner}
            " asked "
            {asker.surface.in_words()}
            " "
            <Ago at=record.requested_at/>
            ". "
            {record.status.is_open().then(|| foreign(&record.card.consequence))}
            {client}
        </p>
        {strange}
    }
    .into_any()
}

/// A record that this person cannot decide any more, or never could: how it stands and what to do from here.
fn ended(view: &ApprovalView, reason: RwSignal<String>) -> AnyView {
    let record = &view.record;
    let outcome = record.receipt.as_ref().map(|r| r.outcome);
    let sentence = match record.status {
        Status::Pending => {
            "Somebody with the right role on this site has to decide. You can read everything here."
        }
        status => words::status_sentence(status, outcome.map(Outcome::as_str)),
    };
    let look = words::status(record.status, outcome.map(Outcome::as_str));
    let cause = record
        .void_cause
        .map(|cause| view! { <p>{words::void_cause(cause)}</p> });
    let newer = view.newer.as_ref().map(|newer| {
        view! { <a class="btn yes-line" href=link::approval(newer)>"Open the newer request"</a> }
    });
    let seen = view.live_url.as_ref().filter(|_| outcome == Some(Outcome::Succeeded)).map(|url| {
        view! { <a class="btn" href=url.clone() target="_blank" rel="noopener external">{icon("out")}"See it live"</a> }
    });
    let undo = (outcome == Some(Outcome::Succeeded) && matches!(record.tool.as_str(), "publish" | "rollback")).then(|| {
        view! { <a class="btn" href=link::versions(&record.card.site.slug)>{icon("undo")}"Take it back with a rollback"</a> }
    });
    view! {
        <section class=format!("ended {}", look.tone) aria-label="How it stands">
            <p class="verdict">{icon(look.icon)}<b>{sentence}</b></p>
            {decided(record)}
            {failure(record)}
            {cause}
            {moved(&view.changed)}
            {typed(reason, record)}
            <p class="ways">
                {newer}
                {seen}
                {undo}
                <a class="btn" href=link::APPROVALS>"Back to what waits"</a>
            </p>
        </section>
    }
    .into_any()
}

/// "Approved by Ada Osei, 30 Nov 2026, 10:42 UTC: …"
fn decided(record: &ApprovalRecord) -> impl IntoView + use<> {
    record
        .decisions
        .iter()
        .map(|decision| {
            let verb = match decision.decision {
                Verdict::Approve => "Approved by ",
                Verdict::Deny => "Denied by ",
            };
            let via = match decision.via {
                Via::Session => None,
                Via::ClientElicitation => Some(", in their own MCP client"),
            };
            let reason = decision
                .reason
                .as_deref()
                .map(|reason| view! { <q>{foreign(reason)}</q> });
            view! {
                <p class="decided">
                    {verb}
                    <b>{foreign(&decision.by.name)}</b>
                    {via}
                    ", "
                    <At at=decision.at/>
                    " "
                    {reason}
                </p>
            }
        })
        .collect_view()
}

fn failure(record: &ApprovalRecord) -> impl IntoView + use<> {
    let error = record.receipt.as_ref()?.error.as_ref()?;
    Some(view! { <p class="failure">"It said: " {foreign(&error.message)}</p> })
}

/// What moved on the site since the request.
fn moved(changed: &[ChangedNode]) -> impl IntoView + use<> {
    let items = changed
        .iter()
        .map(|node| {
            view! {
                <li>
                    <b>{foreign(&node.title)}</b>
                    " "
                    <code class="hush"><bdi>{format!("/{}", node.path)}</bdi></code>
                    " "
                    <span class="hush">{node.what.clone()}</span>
                </li>
            }
        })
        .collect_view();
    (!changed.is_empty()).then(|| view! { <ul class="moved">{items}</ul> })
}

/// What the person had begun to write is never lost, unless it was sent.
fn typed(reason: RwSignal<String>, record: &ApprovalRecord) -> impl IntoView + use<> {
    let sent: Vec<_> = record
        .decisions
        .iter()
        .filter_map(|d| d.reason.clone())
        .collect();
    move || {
        reason.with(|text| {
            let unsent = !text.is_empty() && sent.iter().all(|sent| sent.trim() != text.trim());
            unsent.then(|| view! { <p class="kept">"You had written: " <q>{foreign(text)}</q></p> })
        })
    }
}

fn changes(view: &ApprovalView) -> AnyView {
    let card = &view.record.card;
    let summary = card.changes.as_ref().map(card::summary);
    let list = if view.diffs.is_empty() {
        Either::Left(
            view! { <p class="quiet">"No page of the draft is edited by this. What it does stands in the sentence above and in the facts below."</p> },
        )
    } else {
        let id = Some(view.record.id.clone());
        let with_live = card
            .changes
            .as_ref()
            .is_some_and(|c| c.compared_with.ends_with("live"));
        let live = card.site.live_version.filter(|_| with_live);
        Either::Right(diff::nodes(view.diffs.clone(), id, live))
    };
    view! {
        <section id="changes" aria-labelledby="changes-title">
            <h2 id="changes-title" class="sr">"What changes"</h2>
            {summary}
            {rest(view, true)}
            {list}
            {rest(view, false)}
        </section>
    }
    .into_any()
}

/// A long change is listed in stretches; the digest below binds them all. Approve waits until the reader has been told.
fn rest(view: &ApprovalView, folds: bool) -> AnyView {
    let Some(changes) = &view.record.card.changes else {
        return ().into_any();
    };
    let listed = changes.nodes.len() as i64;
    if changes.total <= listed {
        return ().into_any();
    }
    let said = format!(
        "The first {} changes are listed here, {} more on pages of their own.",
        words::digits(listed),
        words::digits(changes.total - listed)
    );
    let href = link::changes(&view.record.id, listed);
    if !folds {
        return view! { <p class="banner calm"><span>{said} " " <a href=href>"Read on"</a></span></p> }
            .into_any();
    }
    let key = format!("rest/{}", changes.digest.as_str());
    view! {
        <Fold key class="rest" summary=said>
            <p>"Approving approves all of them. " <a href=href>"Read on"</a></p>
        </Fold>
    }
    .into_any()
}

/// Everything that binds: what is stored is what would run.
fn call(view: &ApprovalView) -> AnyView {
    let record = &view.record;
    let site = &record.card.site;
    let live = match site.live_version {
        Some(version) => format!(
            "{}, version {version} is live",
            words::count(site.node_count, "page", "pages")
        ),
        None => format!(
            "{}, nothing is live",
            words::count(site.node_count, "page", "pages")
        ),
    };
    let bound = record.card.changes.as_ref().map(|changes| {
        view! {
            <dt>"Changes"</dt>
            <dd>{digest(changes.digest.as_str())}</dd>
        }
    });
    view! {
        <section id="call" aria-labelledby="call-title">
            <h2 id="call-title">"Exact call"</h2>
            <dl class="facts">
                <dt>"Tool"</dt>
                <dd><code>{record.tool.clone()}</code> <span class="hush">{format!(" version {}", record.tool_version)}</span></dd>
                <dt>"Site"</dt>
                <dd><a href=link::site(&site.slug)>{foreign(&site.title)}</a> <span class="hush">{format!(" {live}")}</span></dd>
                {arguments(&record.arguments)}
                {card::facts(&record.card)}
                <dt>"As sent"</dt>
                <dd>{raw(&view.arguments_text)}</dd>
                <dt>"Arguments"</dt>
                <dd>{digest(record.args_hash.as_str())}</dd>
                <dt>"State of the site"</dt>
                <dd>{digest(record.state_hash.as_str())}</dd>
                {bound}
                <dt>"What you see"</dt>
                <dd>{digest(record.seen_digest.as_str())}</dd>
                <dt>"Request"</dt>
                <dd><code class="digest">{record.id.to_string()}</code></dd>
            </dl>
        </section>
    }
    .into_any()
}

/// Each argument on a line of its own, in full.
fn arguments(arguments: &Value) -> impl IntoView + use<> {
    let pairs: Vec<_> = arguments
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let shown = long(format!("argument/{name}/{text}"), &text);
            view! {
                <dt><code>{name.clone()}</code></dt>
                <dd>{shown}</dd>
            }
        })
        .collect();
    pairs.collect_view()
}

fn long(key: String, value: &str) -> impl IntoView + use<> {
    let shown = view! { <span class="value">{foreign(value)}</span> };
    if value.len() <= LONG_VALUE {
        return Either::Left(shown);
    }
    let summary = format!(
        "A long value, {}. Open it to read it all",
        text::size(value.len())
    );
    Either::Right(view! { <Fold key class="long" summary>{shown}</Fold> })
}

/// The very text that was hashed; and, where something in it does not look like what it is, its characters one by one.
fn raw(text: &str) -> AnyView {
    let strange = odd::count(text);
    let exact = (strange > 0).then(|| {
        let summary = words::count(strange as i64, "unusual character", "unusual characters");
        view! {
            <details class="exact">
                <summary>{summary} ": see every character"</summary>
                <pre>{text::exact(text)}</pre>
            </details>
        }
    });
    view! {
        <code class="value">{foreign(text)}</code>
        {exact}
    }
    .into_any()
}

fn history(view: &ApprovalView) -> AnyView {
    let earlier = (!view.earlier.is_empty()).then(|| {
        let rows = view.earlier.iter().map(earlier).collect_view();
        view! {
            <h3>"This was asked before"</h3>
            <ul class="earlier">{rows}</ul>
        }
    });
    let more = view! {
        <p class="small">
            <a href=query::inbox_of_agent(&view.record.requested_by.name)>"All requests of " {foreign(&view.record.requested_by.name)}</a>
        </p>
    };
    view! {
        <section id="history" aria-labelledby="history-title">
            <h2 id="history-title">"History"</h2>
            {journal(view.journal.clone())}
            {earlier}
            {more}
        </section>
    }
    .into_any()
}

fn earlier(row: &InboxRow) -> AnyView {
    view! {
        <li>
            {badge::badge(words::status(row.status, row.outcome.as_deref()))}
            <a href=link::approval(&row.id)>{foreign(&row.sentence)}</a>
            <span class="hush small"><Ago at=row.requested_at/></span>
        </li>
    }
    .into_any()
}

/// Last, and labelled: it is what the agent wants the person to believe.
fn agents_words(reason: &str) -> AnyView {
    view! {
        <section class="said" aria-labelledby="said-title">
            <h2 id="said-title">"In the agent’s own words"</h2>
            <details>
                <summary>"Written by the agent, not checked by Cloudhal"</summary>
                <blockquote class="words">{foreign(reason)}</blockquote>
            </details>
        </section>
    }
    .into_any()
}

/// Nobody has to wait for a sweep: when the time is over while the page is open, it looks again, once.
fn look_again_at_expiry(record: &ApprovalRecord) {
    let (clock, live) = (Clock::get(), Live::get());
    let (until, open) = (record.expires_at.ms(), record.status.is_open());
    Effect::new(move |before: Option<bool>| {
        let over = clock.now().is_some_and(|now| now >= until);
        if open && over && before == Some(false) {
            live.look_again();
        }
        over
    });
}

/// The typed reason outlives a reload and a sign-in, in this tab alone.
fn keep_reason(id: Memo<String>, reason: RwSignal<String>) {
    #[cfg(feature = "hydrate")]
    {
        let storage = || window().session_storage().ok().flatten();
        let name = |id: &str| format!("reason:{id}");
        Effect::new(move |_| {
            let kept = storage().and_then(|s| s.get_item(&name(&id.get())).ok().flatten());
            reason.set(kept.unwrap_or_default());
        });
        Effect::new(move |first: Option<()>| {
            let text = reason.get();
            let Some(storage) = storage().filter(|_| first.is_some()) else {
                return;
            };
            let name = name(&id.get_untracked());
            let _ = match text.is_empty() {
                true => storage.remove_item(&name),
                false => storage.set_item(&name, &text),
            };
        });
    }
    #[cfg(not(feature = "hydrate"))]
    let _ = (id, reason);
}
