//! Everybody who has an account, for owners of the workspace.

use crate::{
    api,
    parts::{
        form::{Form, Line, confirm, hidden},
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        page::window_title,
        shown::shown,
        text::foreign,
        time::At,
    },
    words,
};
use cloudhal_domain::{
    id::PersonId,
    link,
    view::{Account, PeopleView, Posted},
};
use leptos::prelude::*;

/// It never looks again by itself: what is typed, and a link that is shown once, stay.
#[component]
pub fn People() -> impl IntoView {
    let people = ask(|| (), |()| api::people());
    window_title("People");
    view! {
        <section class="screen">
            <Notice/>
            <header class="head">
                <h1 tabindex="-1">"People"</h1>
                <p class="by">"Whoever has an account signs in and decides where they have a role. An owner of the workspace owns every site and keeps this list."</p>
            </header>
            {loaded(people, Signal::stored(String::new()), show)}
        </section>
    }
    .into_any()
}

fn show(view: PeopleView) -> AnyView {
    let PeopleView {
        people,
        you,
        posted,
    } = view;
    let add = add(&posted);
    let rows = people
        .into_iter()
        .map(|account| person(account, &you, &posted))
        .collect_view();
    view! {
        {shown(posted.shown.clone(), "")}
        <section aria-labelledby="people-title">
            <h2 id="people-title" class="sr">"Accounts"</h2>
            <ul class="agents">{rows}</ul>
        </section>
        {add}
    }
    .into_any()
}

fn add(posted: &Posted) -> AnyView {
    let form = Form::new(posted, "add", Vec::new());
    view! {
        <section class="box" aria-labelledby="add-title">
            <h2 id="add-title">"Add somebody"</h2>
            {form.problem()}
            <form method="post" action=link::PEOPLE class="lines">
                {form.which()}
                {form.line(Line { field: "name", label: "Name", required: true, ..Line::default() })}
                {form.line(Line { field: "email", label: "E-mail", kind: "email", required: true, ..Line::default() })}
                {form.tick("owner", "on", "Owner of the workspace: owns every site, keeps people".into_any())}
                <button class="btn primary">"Add and make a sign-in link"</button>
            </form>
        </section>
    }
    .into_any()
}

fn person(account: Account, you: &PersonId, posted: &Posted) -> AnyView {
    let is_you = account.id == *you;
    let disabled = account.disabled_at.is_some();
    let link = (!disabled).then(|| {
        view! {
            <form method="post" action=link::PEOPLE>
                {hidden("form", "link")}
                {hidden("person", account.id.as_str())}
                <button class="btn small">"New sign-in link"</button>
            </form>
        }
    });
    view! {
        <li class="agent" class:off=disabled>
            <span class="face" aria-hidden="true">{words::initials(&account.name)}</span>
            <div class="about">
                <h3>{foreign(&account.name)} {marks(&account, is_you)}</h3>
                <p class="hush small">{foreign(&account.email)} " · since " <At at=account.created_at/></p>
                <div class="ways">
                    {link}
                    {edit(&account, posted)}
                    {end(&account, is_you)}
                </div>
            </div>
        </li>
    }
    .into_any()
}

fn marks(account: &Account, is_you: bool) -> AnyView {
    let you = is_you.then(|| view! { <span class="badge quiet">"You"</span> });
    let owner = account.workspace_owner.then(
        || view! { <span class="badge accent">{icon("lock")}"Owner of the workspace"</span> },
    );
    let off = account.disabled_at.map(
        |at| view! { <span class="badge void">{icon("void")}"Disabled"</span> <span class="hush small">"since " <At at/></span> },
    );
    view! { {you} {owner} {off} }.into_any()
}

fn edit(account: &Account, posted: &Posted) -> AnyView {
    let mut start = vec![
        ("name".to_owned(), account.name.clone()),
        ("wasName".to_owned(), account.name.clone()),
    ];
    if account.workspace_owner {
        start.push(("owner".to_owned(), "on".to_owned()));
        start.push(("wasOwner".to_owned(), "on".to_owned()));
    }
    let form = Form::new(posted, format!("change:{}", account.id), start);
    view! {
        <details class="inline" open=form.is_returned()>
            <summary class="btn small">"Change"<span class="sr">{format!(" {}", account.name)}</span></summary>
            <form method="post" action=link::PEOPLE class="lines">
                {form.problem()}
                {form.which()}
                {hidden("person", account.id.as_str())}
                {hidden("wasName", form.value("wasName"))}
                {hidden("wasOwner", form.value("wasOwner"))}
                {form.line(Line { field: "name", label: "Name", required: true, ..Line::default() })}
                {form.tick("owner", "on", "Owner of the workspace".into_any())}
                <button class="btn">"Save"</button>
            </form>
        </details>
    }
    .into_any()
}

fn end(account: &Account, is_you: bool) -> AnyView {
    let fields = |form: &'static str| {
        view! { {hidden("form", form)} {hidden("person", account.id.as_str())} }.into_any()
    };
    if account.disabled_at.is_some() {
        return view! {
            <form method="post" action=link::PEOPLE>
                {fields("enable")}
                <button class="btn small">"Enable"<span class="sr">{format!(" {}", account.name)}</span></button>
            </form>
        }
        .into_any();
    }
    let sentence = match is_you {
        true => {
            "This is you: you are signed out at once, and somebody else has to let you in again."
        }
        false => {
            "They are signed out at once, what they approved and did not run no longer counts, and their agents' keys stop working."
        }
    };
    confirm(
        "Disable",
        sentence.into_any(),
        fields("disable"),
        link::PEOPLE.to_owned(),
        "Disable the account",
    )
}
