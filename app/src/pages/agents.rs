//! Who may ask: agents, who answers for them, what their keys reach.

use crate::{
    api,
    live::Live,
    parts::{
        copy::Command,
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        page::{Empty, window_title},
        query,
        text::foreign,
        time::{Ago, At},
    },
    words,
};
use cloudhal_domain::view::{AgentRow, AgentsView, KeyRow};
use leptos::{either::Either, prelude::*};

#[component]
pub fn Agents() -> impl IntoView {
    let agents = ask(|| (), |()| api::agents());
    Live::get().refetch_on(agents, |hint| hint.kind.starts_with("approval."));
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
            view! { <Empty title="No agent yet"><p>"Make one and its key on the server, then connect it."</p></Empty> },
        )
    } else {
        Either::Right(
            view! { <ul class="agents">{view.agents.into_iter().map(agent).collect_view()}</ul> },
        )
    };
    view! {
        {list}
        <section class="box calm" aria-labelledby="connect-title">
            <h2 id="connect-title">"Connect one"</h2>
            <p>"1. On the server, make the agent and its key. The key is shown once."</p>
            <Command line="cloudhal agent add --name copy-editor --owner you@example.org --site my-site"/>
            <p>"2. Where the agent runs, say where Cloudhal is."</p>
            <Command line=words::connect_line(&view.mcp_url)/>
        </section>
    }
    .into_any()
}

fn agent(agent: AgentRow) -> AnyView {
    let tools = match agent.tools.is_empty() {
        true => "every tool; what is gated waits for you".to_string(),
        false => agent.tools.join(", "),
    };
    let sites = match agent.sites.is_empty() {
        true => "no site".to_string(),
        false => agent.sites.join(", "),
    };
    let waiting = (agent.waiting > 0).then(|| {
        view! { <a class="badge wait" href=query::with_query("/approvals", &[("agent", Some(&agent.name))])>{icon("wait")}{format!("{} waiting", agent.waiting)}</a> }
    });
    view! {
        <li class="agent">
            <span class="face" aria-hidden="true">{words::initials(&agent.name)}</span>
            <div class="about">
                <h2>{foreign(&agent.name)} {waiting}</h2>
                <p class="hush small">"Answers to " {foreign(&agent.owner)} " · since " <At at=agent.created_at/></p>
                <dl class="facts">
                    <dt>"Sites"</dt>
                    <dd>{sites}</dd>
                    <dt>"Tools"</dt>
                    <dd>{tools}</dd>
                    <dt>"Keys"</dt>
                    <dd>{keys(agent.keys)}</dd>
                    <dt>"Asked"</dt>
                    <dd><a href=query::inbox_of_agent(&agent.name)>"All its requests"</a></dd>
                </dl>
            </div>
        </li>
    }
    .into_any()
}

fn keys(keys: Vec<KeyRow>) -> impl IntoView {
    if keys.is_empty() {
        return Either::Left("none");
    }
    let items = keys.into_iter().map(|key| {
        let standing = match (key.revoked_at, key.expires_at) {
            (Some(at), _) => view! { <span class="badge void">{icon("void")}"Revoked"</span> " " <At at/> }.into_any(),
            (None, Some(at)) => view! { "until " <At at/> }.into_any(),
            (None, None) => view! { <span class="hush">"no end"</span> }.into_any(),
        };
        view! { <li><code>{format!("{}…", key.prefix.trim_end_matches('…'))}</code> " " <span class="hush">"made " <Ago at=key.created_at/> ", "</span> {standing}</li> }
    }).collect_view();
    Either::Right(view! { <ul class="keys-held">{items}</ul> })
}
