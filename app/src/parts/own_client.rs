//! A person's own MCP client: its keys, which end with the session that they were made in.

use super::{
    copy::Command,
    form::{Form, Line, confirm, hidden},
    text::foreign,
    time::{Ago, At},
};
use crate::words;
use cloudhal_domain::{
    link,
    view::{AgentsView, PersonalKey},
};
use leptos::prelude::*;

pub fn own_client(view: &AgentsView) -> AnyView {
    let form = Form::new(&view.posted, "own_key", Vec::new());
    let fields = view! {
        {form.which()}
        {form.line(Line { field: "name", label: "Which client", hint: "So that you know it again, like laptop.", required: true, ..Line::default() })}
        <button class="btn primary">"Make a key for it"</button>
    };
    view! {
        <section class="box calm" aria-labelledby="own-client">
            <h2 id="own-client">"Your own client"</h2>
            <p>
                "A client that works for you reaches what you reach, and what has consequences waits as it does for an agent. "
                "Its key ends when you sign out, or have done nothing here for half an hour. "
                "Where a site lets it, the client may ask you right there; such a decision is written down as made in your client."
            </p>
            {keys(&view.own_keys)}
            <details class="inline" open=form.is_returned()>
                <summary class="btn small">"New key"</summary>
                {form.problem()}
                <form method="post" action=link::AGENTS class="lines">{fields}</form>
            </details>
            <p>"On the machine where Cloudhal's database is, no key is needed:"</p>
            <Command line=words::here_line()/>
        </section>
    }
    .into_any()
}

fn keys(keys: &[PersonalKey]) -> AnyView {
    if keys.is_empty() {
        return ().into_any();
    }
    let items = keys.iter().map(key);
    view! { <ul class="keys-held small">{items.collect_view()}</ul> }.into_any()
}

fn key(key: &PersonalKey) -> AnyView {
    let fields = view! { {hidden("form", "own_end")} {hidden("key", key.id.as_str())} };
    let sentence = view! { "Whatever calls with " <code>{key.prefix.clone()}</code> " is refused from the next call on." };
    let end = confirm(
        "End",
        sentence.into_any(),
        fields.into_any(),
        link::AGENTS.to_owned(),
        "End this key",
    );
    view! {
        <li>
            <span>
                {foreign(&key.name)} " " <code>{key.prefix.clone()}</code> " "
                <span class="hush">"made " <Ago at=key.created_at/> ", until "</span> <At at=key.expires_at/>
            </span>
            {end}
        </li>
    }
    .into_any()
}
