//! The approvals: the queue on the left, one request on the right; on narrow screens one at a time.

use crate::{
    api,
    live::Live,
    parts::{
        badge,
        copy::Command,
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        page::{Empty, window_title},
        query,
        text::foreign,
        time::{Ago, Left},
    },
    words,
};
use cloudhal_domain::{
    approval::Status,
    card::Risk,
    id::ApprovalId,
    link,
    view::{InboxPage, InboxQuery, InboxRow, Tab},
};
use leptos::{either::Either, prelude::*};
use leptos_router::{
    components::Outlet,
    hooks::{use_location, use_query_map},
};

/// Both panes. What the queue shows is in the address and stays while requests are opened one after the other.
#[component]
pub fn Desk() -> impl IntoView {
    let location = use_location();
    let open = Memo::new(move |_| location.pathname.with(|path| open_id(path)));
    let map = use_query_map();
    let asked = Memo::new(move |_| map.with(query::read_inbox));
    let inbox = ask(move || asked.get(), api::inbox);
    Live::get().refetch_on(inbox, |hint| hint.kind != "site.changed");
    let class = move || {
        if open.with(Option::is_some) {
            "desk reading"
        } else {
            "desk"
        }
    };
    let key = Signal::derive(move || query::inbox("", &asked.get()));
    view! {
        <div class=class>
            <aside class="queue" aria-label="Queue">
                <Search asked/>
                {loaded(inbox, key, move |page| view! { <Queue page asked=asked.get_untracked() open/> })}
                <p class="keys" aria-hidden="true">
                    <span><kbd>"j"</kbd><kbd>"k"</kbd>"move"</span>
                    <span><kbd>"a"</kbd>"approve"</span>
                    <span><kbd>"d"</kbd>"deny"</span>
                    <span><kbd>"?"</kbd>"all keys"</span>
                </p>
            </aside>
            <Outlet/>
        </div>
    }
    .into_any()
}

fn open_id(path: &str) -> Option<ApprovalId> {
    path.strip_prefix("/approvals/")
        .map(|id| id.trim_end_matches('/'))
        .filter(|id| !id.is_empty())
        .map(ApprovalId::new)
}

/// Search and filters: a plain form whose answer is an address.
#[component]
fn Search(asked: Memo<InboxQuery>) -> impl IntoView {
    let value = move |read: fn(&InboxQuery) -> &Option<String>| {
        move || asked.with(|q| read(q).clone().unwrap_or_default())
    };
    let filtered =
        asked.with_untracked(|q| q.site.is_some() || q.tool.is_some() || q.agent.is_some());
    let tools = words::TOOLS
        .into_iter()
        .map(|(id, name)| {
            let chosen = move || asked.with(|q| q.tool.as_deref() == Some(id));
            view! { <option value=id selected=chosen>{name}</option> }
        })
        .collect_view();
    view! {
        <form class="search" method="get" action=link::APPROVALS role="search">
            <input type="hidden" name="tab" value=move || asked.with(|q| q.tab.as_str())/>
            <label class="find">
                {icon("find")}
                <input class="field" id="search" type="search" name="text" placeholder="Search approvals" aria-label="Search approvals" value=value(|q| &q.text)/>
            </label>
            <details class="filters" open=filtered>
                <summary>"Filter"</summary>
                <div class="filter-fields">
                    <label><span>"Site"</span><input class="field" name="site" placeholder="harbour-street-bakery" autocapitalize="none" value=value(|q| &q.site)/></label>
                    <label><span>"Agent"</span><input class="field" name="agent" placeholder="copy-editor" autocapitalize="none" value=value(|q| &q.agent)/></label>
                    <label><span>"What"</span><select class="field" name="tool"><option value="">"Anything"</option>{tools}</select></label>
                    <button class="btn">"Show"</button>
                </div>
            </details>
        </form>
    }
    .into_any()
}

#[component]
fn Queue(page: InboxPage, asked: InboxQuery, open: Memo<Option<ApprovalId>>) -> impl IntoView {
    let first = InboxQuery {
        cursor: None,
        ..asked.clone()
    };
    let next = page.next_cursor.clone().map(|cursor| {
        let to = InboxQuery {
            cursor: Some(cursor),
            ..asked.clone()
        };
        view! { <a class="btn" href=query::inbox(link::APPROVALS, &to)>"Next page"</a> }
    });
    let back = asked.cursor.is_some().then(|| {
        view! { <a class="btn" href=query::inbox(link::APPROVALS, &first)>"First page"</a> }
    });
    let list = if page.rows.is_empty() {
        Either::Left(nothing(&page, &asked))
    } else {
        Either::Right(view! { <Rows rows=page.rows.clone() asked=asked.clone() open/> })
    };
    view! {
        {tabs(&page, &asked)}
        {chips(&asked)}
        {list}
        <nav class="pager" aria-label="Pages">{back} {next}</nav>
    }
    .into_any()
}

fn tabs(page: &InboxPage, asked: &InboxQuery) -> AnyView {
    let tabs = Tab::ALL
        .into_iter()
        .map(|tab| {
            let n = match tab {
                Tab::Waiting => Some(page.waiting),
                Tab::Approved => Some(page.approved),
                _ => None,
            };
            let n = n.map(|n| view! { <span class="num hush">{words::digits(n)}</span> });
            let to = InboxQuery {
                tab,
                cursor: None,
                ..asked.clone()
            };
            let here = (tab == asked.tab).then_some("page");
            view! {
                <a href=query::inbox(link::APPROVALS, &to) aria-current=here>
                    {words::tab(tab)}
                    {n}
                </a>
            }
        })
        .collect_view();
    view! { <nav class="tabs" aria-label="By status">{tabs}</nav> }.into_any()
}

/// What narrows the list, each with its way out.
fn chips(asked: &InboxQuery) -> AnyView {
    let chip = |name: &str, value: &Option<String>, without: InboxQuery| {
        value.as_ref().map(|value| {
            let label = format!("{name}: {value}");
            view! {
                <a class="chip" href=query::inbox(link::APPROVALS, &without)>
                    <bdi>{label}</bdi>
                    {icon("no")}
                    <span class="sr">" remove"</span>
                </a>
            }
        })
    };
    let bare = InboxQuery {
        cursor: None,
        ..asked.clone()
    };
    view! {
        <div class="chips">
            {chip("Site", &asked.site, InboxQuery { site: None, ..bare.clone() })}
            {chip("Agent", &asked.agent, InboxQuery { agent: None, ..bare.clone() })}
            {chip("What", &asked.tool, InboxQuery { tool: None, ..bare.clone() })}
            {chip("Text", &asked.text, InboxQuery { text: None, ..bare.clone() })}
        </div>
    }
    .into_any()
}

/// The rows, in a form that denies several at once.
#[component]
fn Rows(rows: Vec<InboxRow>, asked: InboxQuery, open: Memo<Option<ApprovalId>>) -> impl IntoView {
    let waiting = rows.iter().any(|row| row.status == Status::Pending);
    let rows = rows
        .into_iter()
        .map(|r| row(r, &asked, open))
        .collect_view();
    let bulk = waiting.then(|| {
        view! {
            <details class="bulk">
                <summary>"Deny several"</summary>
                <div class="bulk-fields">
                    <p class="hush small">"Select requests in the list. Each gets its own answer; nothing is changed on any site."</p>
                    <input class="field" name="reason" placeholder="One reason for all (optional)" aria-label="Reason, optional" maxlength="500" autocomplete="off"/>
                    <button class="btn no">{icon("no")}"Deny the selected"</button>
                </div>
            </details>
        }
    });
    view! {
        <form class="rows" method="post" action="/approvals/deny">
            <button type="submit" disabled hidden tabindex="-1" aria-hidden="true"></button>
            <ul>{rows}</ul>
            {bulk}
        </form>
    }
    .into_any()
}

fn row(row: InboxRow, asked: &InboxQuery, open: Memo<Option<ApprovalId>>) -> AnyView {
    let href = query::inbox(&link::approval(&row.id), asked);
    let id = row.id.clone();
    let here = move || open.with(|open| (open.as_ref() == Some(&id)).then_some("true"));
    let pick = (row.status == Status::Pending).then(|| {
        view! {
            <label class="pick">
                <input type="checkbox" name="ids" value=row.id.to_string()/>
                <span class="sr">"Select"</span>
            </label>
        }
    });
    let standing = if row.status.is_open() {
        Either::Left(view! { <Left until=row.expires_at/> })
    } else {
        Either::Right(view! { <Ago at=row.changed_at.unwrap_or(row.requested_at)/> })
    };
    let look = words::status(row.status, row.outcome.as_deref());
    let irreversible =
        (row.risk == Risk::Irreversible && row.status.is_open()).then(|| badge::risk(row.risk));
    let told = asked.tab != Tab::Waiting || row.status != Status::Pending;
    let marks = (told || irreversible.is_some()).then(|| {
        view! {
            <span class="marks">
                {told.then(|| badge::badge(look))}
                {irreversible}
            </span>
        }
    });
    view! {
        <li class=format!("row {}", look.tone)>
            {pick}
            <a class="row-link" href=href aria-current=here>
                <span class="face" aria-hidden="true">{words::initials(&row.asker)}</span>
                <span class="title">{foreign(&row.sentence)}</span>
                <span class="sub">
                    <span class="who-asks">{foreign(&row.asker)} " · " {foreign(&row.site_title)}</span>
                    {standing}
                </span>
                {marks}
            </a>
        </li>
    }
    .into_any()
}

/// An empty list says what will stand in it; the very first one says how to begin.
fn nothing(page: &InboxPage, asked: &InboxQuery) -> impl IntoView + use<> {
    let narrowed = asked.site.is_some()
        || asked.tool.is_some()
        || asked.agent.is_some()
        || asked.text.is_some();
    if narrowed {
        return view! { <Empty title="Nothing matches"><p><a href=link::APPROVALS>"Show all that waits"</a></p></Empty> }.into_any();
    }
    if asked.tab != Tab::Waiting {
        let title = format!("Nothing under “{}”", words::tab(asked.tab));
        return view! { <Empty title><p>"Requests come here when they get there."</p></Empty> }
            .into_any();
    }
    if page.has_agents {
        return view! {
            <Empty title="Nothing waits for you">
                <p>"When an agent wants to publish, roll back or delete something, its request stands here until you decide."</p>
            </Empty>
        }
        .into_any();
    }
    let line = words::connect_line(&page.mcp_url);
    view! {
        <Empty title="No agent is connected yet" class="first">
            <p>"Agents edit your sites; what has consequences waits here for you. Connect one with its key:"</p>
            <Command line/>
            <p class="hush small">"A key comes with an agent: add one under " <a href=link::AGENTS>"Agents"</a> "."</p>
        </Empty>
    }
    .into_any()
}

/// The right pane while nothing is open.
#[component]
pub fn NothingOpen() -> impl IntoView {
    window_title("Approvals");
    view! {
        <section class="nothing-open">
            <Notice/>
            <h1 tabindex="-1">"Approvals"</h1>
            <p class="lede">"Pick a request to see exactly what would happen. Nothing runs before you say so."</p>
        </section>
    }
    .into_any()
}
