//! Who may ask: agents, who answers for them, what their keys reach. Whoever keeps an agent changes all of it here.

use crate::{
    api,
    parts::{
        copy::Command,
        form::{Form, Line, confirm, hidden},
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        own_client::own_client,
        page::{Empty, window_title},
        query,
        shown::shown,
        text::foreign,
        time::{Ago, At},
    },
    words,
};
use cloudhal_domain::{
    link, seen,
    view::{AgentRow, AgentsView, KeyRow, Posted, SiteName},
};
use leptos::{either::Either, prelude::*};

/// It never looks again by itself: what is typed, and a key that is shown once, stay.
#[component]
pub fn Agents() -> impl IntoView {
    let agents = ask(|| (), |()| api::agents());
    window_title("Agents");
    view! {
        <section class="screen">
            <Notice/>
            <header class="head">
                <h1 tabindex="-1">"Agents"</h1>
                <p class="by">"An agent edits drafts freely. What has consequences it can only ask for. It never decides, and it cannot sign in here."</p>
            </header>
            {loaded(agents, Signal::stored(String::new()), show)}
        </section>
    }
    .into_any()
}

fn show(view: AgentsView) -> AnyView {
    let list = if view.agents.is_empty() {
        Either::Left(
            view! { <Empty title="No agent yet"><p>"Add one below; its key is shown once. Then connect it."</p></Empty> },
        )
    } else {
        let rows = view.agents.iter().map(|row| agent(row, &view));
        Either::Right(view! { <ul class="agents">{rows.collect_view()}</ul> })
    };
    view! {
        {refused(&view)}
        {shown(view.posted.shown.clone(), &view.mcp_url)}
        {list}
        {add(&view)}
        <section class="box calm" aria-labelledby="connect-title">
            <h2 id="connect-title">"Connect one"</h2>
            <p>"Where the agent runs, say where Cloudhal is, with its key in place of YOUR_KEY."</p>
            <Command line=words::connect_line(&view.mcp_url)/>
        </section>
        {own_client(&view)}
    }
    .into_any()
}

/// What was sent about an agent that was disabled meanwhile, or is not this person's to keep any more: its form is not here to
/// say it.
fn refused(view: &AgentsView) -> AnyView {
    let sent = view.posted.returned.as_ref();
    let has_form = |id: &str| {
        let mut kept = view.agents.iter().filter(|one| one.manageable);
        kept.any(|one| one.id.as_str() == id && one.disabled_at.is_none())
    };
    let gone = sent.filter(|sent| {
        let about = sent.form.split_once(':');
        about.is_some_and(|(_, id)| !has_form(id))
    });
    gone.map(|sent| Form::new(&view.posted, sent.form.clone(), Vec::new()).problem())
        .into_any()
}

fn agent(agent: &AgentRow, view: &AgentsView) -> AnyView {
    let waiting = (agent.waiting > 0).then(|| {
        view! { <a class="badge wait" href=query::with_query("/approvals", &[("agent", Some(&agent.name))])>{icon("wait")}{format!("{} waiting", agent.waiting)}</a> }
    });
    let off = agent.disabled_at.map(
        |at| view! { <span class="badge void">{icon("void")}"Disabled"</span> <span class="hush small">"since " <At at/></span> },
    );
    let held = agent
        .manageable
        .then(|| view! { <dt>"Keys"</dt><dd>{keys(agent)}</dd> });
    let ways = agent.manageable.then(|| ways(agent, view));
    view! {
        <li class="agent" class:off=agent.disabled_at.is_some()>
            <span class="face" aria-hidden="true">{words::initials(&agent.name)}</span>
            <div class="about">
                <h2>{foreign(&agent.name)} {waiting} {off}</h2>
                <p class="hush small">"Answers to " {foreign(&agent.owner.name)} " · since " <At at=agent.created_at/></p>
                <dl class="facts">
                    <dt>"Sites"</dt>
                    <dd>{sites(&agent.sites)}</dd>
                    <dt>"Tools"</dt>
                    <dd>{tools(&agent.tools)}</dd>
                    {held}
                    <dt>"Asked"</dt>
                    <dd><a href=query::inbox_of_agent(&agent.name)>"All its requests"</a></dd>
                </dl>
                {ways}
            </div>
        </li>
    }
    .into_any()
}

fn sites(sites: &[SiteName]) -> AnyView {
    if sites.is_empty() {
        return "no site".into_any();
    }
    let links = sites
        .iter()
        .map(|site| view! { <a href=link::site(&site.slug)>{foreign(&site.title)}</a> });
    view! { <span class="listed">{links.collect_view()}</span> }.into_any()
}

fn tools(tools: &[String]) -> String {
    match tools.is_empty() {
        true => "every tool; what is gated waits for a person".to_string(),
        false => tools.join(", "),
    }
}

fn keys(agent: &AgentRow) -> AnyView {
    if agent.keys.is_empty() {
        return "none".into_any();
    }
    let items = agent.keys.iter().map(|held| key(agent, held));
    view! { <ul class="keys-held">{items.collect_view()}</ul> }.into_any()
}

fn key(agent: &AgentRow, key: &KeyRow) -> AnyView {
    let prefix = format!("{}…", key.prefix.trim_end_matches('…'));
    let standing = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => {
            view! { <span class="badge void">{icon("void")}"Revoked"</span> " " <At at/> }
                .into_any()
        }
        (None, Some(at)) => view! { "until " <At at/> }.into_any(),
        (None, None) => view! { <span class="hush">"no end"</span> }.into_any(),
    };
    let used = match key.last_used_at {
        Some(at) => view! { ", used " <Ago at/> }.into_any(),
        None => ", no use known yet".into_any(),
    };
    let revoke = key.revoked_at.is_none().then(|| {
        let fields = view! { {hidden("form", "revoke")} {hidden("agent", agent.id.as_str())} {hidden("key", key.id.as_str())} };
        let sentence = view! {
            "Whatever calls with " <code>{prefix.clone()}</code> " is refused from the next call on. Requests stay the agent's: another key of its may still run them."
        };
        confirm("Revoke", sentence.into_any(), fields.into_any(), link::AGENTS.to_owned(), "Revoke this key")
    });
    view! {
        <li>
            <span><code>{prefix}</code> " " <span class="hush">"made " <Ago at=key.created_at/> {used} ", "</span> {standing}</span>
            {revoke}
        </li>
    }
    .into_any()
}

/// What whoever keeps the agent can do with it.
fn ways(agent: &AgentRow, view: &AgentsView) -> AnyView {
    let id = agent.id.as_str().to_owned();
    if agent.disabled_at.is_some() {
        return view! {
            <div class="ways">
                <form method="post" action=link::AGENTS>
                    {hidden("form", "enable")}
                    {hidden("agent", id)}
                    <button class="btn small">"Enable"</button>
                </form>
            </div>
        }
        .into_any();
    }
    let fields = view! { {hidden("form", "disable")} {hidden("agent", id)} };
    let disable = confirm(
        "Disable",
        "None of its keys opens anything any more, and what it asked for and did not run is voided. You can enable it again."
            .into_any(),
        fields.into_any(),
        link::AGENTS.to_owned(),
        "Disable the agent",
    );
    view! {
        <div class="ways">
            {new_key(agent, &view.posted)}
            {scope(agent, view)}
            {disable}
        </div>
    }
    .into_any()
}

fn new_key(agent: &AgentRow, posted: &Posted) -> AnyView {
    let form = Form::new(posted, format!("key:{}", agent.id), Vec::new());
    view! {
        <details class="inline" open=form.is_returned()>
            <summary class="btn small">"New key"</summary>
            <form method="post" action=link::AGENTS class="lines">
                {form.problem()}
                {form.which()}
                {hidden("agent", agent.id.as_str())}
                {form.choice("ends", "Ends".into_any(), words::key_ends())}
                <button class="btn primary">"Make a key"</button>
            </form>
        </details>
    }
    .into_any()
}

fn scope(agent: &AgentRow, view: &AgentsView) -> AnyView {
    let every = if agent.tools.is_empty() {
        "all"
    } else {
        "some"
    };
    let mut start = vec![("reach".to_owned(), every.to_owned())];
    let put = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    start.extend(
        agent
            .sites
            .iter()
            .map(|site| put("sites", site.id.as_str())),
    );
    start.extend(agent.tools.iter().map(|tool| put("tools", tool)));
    let has = agent.sites.iter().map(|site| site.id.as_str());
    start.push(put("was", &seen::agent(has, &agent.tools)));
    let form = Form::new(&view.posted, format!("scope:{}", agent.id), start);
    // Those that it has, whether or not the person who looks may see them all by themselves.
    let mut known = view.sites.clone();
    known.extend(
        agent
            .sites
            .iter()
            .filter(|site| !view.sites.contains(site))
            .cloned(),
    );
    view! {
        <details class="inline" open=form.is_returned()>
            <summary class="btn small">"Change scope"</summary>
            <form method="post" action=link::AGENTS class="lines">
                {form.problem()}
                {form.which()}
                {hidden("agent", agent.id.as_str())}
                {hidden("was", form.value("was"))}
                {site_ticks(&form, &known)}
                {tool_ticks(&form, &view.tools)}
                <button class="btn">"Save the scope"</button>
            </form>
        </details>
    }
    .into_any()
}

fn site_ticks(form: &Form, sites: &[SiteName]) -> AnyView {
    let ticks = sites
        .iter()
        .map(|site| form.tick("sites", site.id.as_str(), foreign(&site.title)));
    view! {
        <fieldset>
            <legend>"Sites"</legend>
            {ticks.collect_view()}
            {form.wrong("sites")}
        </fieldset>
    }
    .into_any()
}

fn tool_ticks(form: &Form, tools: &[String]) -> AnyView {
    let ticks = tools.iter().map(|tool| {
        form.tick(
            "tools",
            tool,
            view! { <code>{tool.clone()}</code> }.into_any(),
        )
    });
    view! {
        <fieldset>
            <legend>"Tools"</legend>
            {form.radio("reach", "all", "Every tool, also those that come later")}
            {form.radio("reach", "some", "Only these:")}
            <div class="ticks">{ticks.collect_view()}</div>
            {form.wrong("tools")}
        </fieldset>
    }
    .into_any()
}

fn add(view: &AgentsView) -> AnyView {
    let mut start = vec![("reach".to_owned(), "all".to_owned())];
    if let [only] = &view.sites[..] {
        start.push(("sites".to_owned(), only.id.as_str().to_owned()));
    }
    let form = Form::new(&view.posted, "add", start);
    let owner = (!view.owners.is_empty()).then(|| {
        let yours = ("".to_owned(), "You".to_owned());
        let others = view
            .owners
            .iter()
            .map(|one| (one.id.as_str().to_owned(), one.name.clone()));
        form.choice(
            "owner",
            "Answers to".into_any(),
            std::iter::once(yours).chain(others).collect(),
        )
    });
    let fields = view! {
        {form.which()}
        {form.line(Line { field: "name", label: "Name", hint: "As it signs what it asks, like copy-editor.", required: true, ..Line::default() })}
        {owner}
        {site_ticks(&form, &view.sites)}
        {tool_ticks(&form, &view.tools)}
        {form.choice("ends", "Its first key ends".into_any(), words::key_ends())}
        <button class="btn primary">"Add and make its key"</button>
    };
    view! {
        <details class="box opens" id="add" open=form.is_returned() || view.agents.is_empty()>
            <summary>"Add an agent"</summary>
            {form.problem()}
            <form method="post" action=link::AGENTS class="lines">{fields}</form>
        </details>
    }
    .into_any()
}
