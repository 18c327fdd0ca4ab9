//! A site's settings: who belongs to it, which agents work on it, what an approval takes, and where its events are told.
//! Whoever may not change them reads them; webhooks are for owners alone.

use crate::{
    api,
    parts::{
        form::{Form, Line, confirm, hidden, spoken},
        icon::icon,
        loaded::{ask, loaded},
        notice::Notice,
        page::window_title,
        policy::policy,
        shown::shown,
        text::foreign,
        webhooks::webhooks,
    },
    words,
};
use cloudhal_domain::{
    link,
    role::Role,
    seen,
    view::{AgentRow, Member, SettingsView},
};
use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

/// It never looks again by itself: what is typed, and a secret that is shown once, stay.
#[component]
pub fn Settings() -> impl IntoView {
    let params = use_params_map();
    let slug = Memo::new(move |_| params.with(|p| p.get("slug").unwrap_or_default()));
    let settings = ask(move || slug.get(), api::settings);
    window_title(Signal::derive(move || {
        format!("Settings · {} · Sites", slug.get())
    }));
    view! {
        <section class="screen">
            <Notice/>
            {loaded(settings, slug.into(), show)}
        </section>
    }
    .into_any()
}

fn show(view: SettingsView) -> AnyView {
    let lede = match view.role.may_manage() {
        true => {
            "Who belongs to this site, what an approval on it takes, and who outside is told. Every change is journaled."
        }
        false => {
            "Who belongs to this site, and what an approval on it takes. An owner of the site changes it."
        }
    };
    view! {
        <header class="head">
            <nav class="crumbs" aria-label="Where you are">
                <a href=link::SITES>"Sites"</a>
                <a href=link::site(&view.slug)>{foreign(&view.title)}</a>
            </nav>
            <h1 tabindex="-1">"Settings"</h1>
            <p class="by">{lede}</p>
        </header>
        {refused(&view)}
        {shown(view.posted.shown.clone(), "")}
        {members(&view)}
        {agents(&view)}
        {policy(&view)}
        {webhooks(&view)}
    }
    .into_any()
}

/// What was sent from a page that was opened while they might still change things, or while somebody was still a member: its
/// form is not here to say it, as are those of one button.
fn refused(view: &SettingsView) -> AnyView {
    let sent = view.posted.returned.as_ref();
    let left = |form: &str| {
        let who = form.strip_prefix("member:");
        who.is_some_and(|who| !view.members.iter().any(|one| one.person.as_str() == who))
    };
    let is_button = |form: &str| ["remove", "take_off", "put_back"].contains(&form);
    let gone =
        sent.filter(|sent| !view.role.may_manage() || left(&sent.form) || is_button(&sent.form));
    gone.map(|sent| Form::new(&view.posted, sent.form.clone(), Vec::new()).problem())
        .into_any()
}

fn members(view: &SettingsView) -> AnyView {
    let rows = view.members.iter().map(|one| member(one, view));
    let list = match view.members.is_empty() {
        true => view! { <p class="quiet">"Nobody belongs to this site yet; the owners of the workspace own it."</p> }.into_any(),
        false => view! { <ul class="members">{rows.collect_view()}</ul> }.into_any(),
    };
    let add = view.role.may_manage().then(|| add(view));
    view! {
        <section aria-labelledby="members-title">
            <h2 id="members-title">"Members"</h2>
            <p class="quiet small">"A viewer looks, an editor lets agents edit, an approver decides, an owner also changes these settings. Owners of the workspace own every site and are not listed."</p>
            {list}
            {add}
        </section>
    }
    .into_any()
}

fn roles() -> Vec<(String, String)> {
    let named = |role: Role| (role.as_str().to_owned(), words::role_name(role).to_owned());
    Role::ALL.into_iter().map(named).collect()
}

fn member(member: &Member, view: &SettingsView) -> AnyView {
    let you = (member.person == view.you).then(|| view! { <span class="badge quiet">"You"</span> });
    let off = member
        .disabled
        .then(|| view! { <span class="badge void">{icon("void")}"Disabled"</span> });
    let email = member
        .email
        .as_deref()
        .map(|email| view! { <br/><span class="hush small">{foreign(email)}</span> });
    let about = view! {
        <div class="who-is">
            <span class="face" aria-hidden="true">{words::initials(&member.name)}</span>
            <p><b>{foreign(&member.name)}</b> " " {you} {off} {email}</p>
        </div>
    };
    if !view.role.may_manage() {
        let groups = match member.groups.is_empty() {
            true => String::new(),
            false => format!(" · {}", member.groups.join(", ")),
        };
        return view! { <li class="member">{about}<p class="small">{words::role_name(member.role)}{groups}</p></li> }.into_any();
    }
    let start = vec![
        ("role".to_owned(), member.role.as_str().to_owned()),
        ("groups".to_owned(), member.groups.join(", ")),
        (
            "was".to_owned(),
            seen::member(Some(member.role), &member.groups),
        ),
    ];
    let form = Form::new(&view.posted, format!("member:{}", member.person), start);
    let action = link::settings(&view.slug);
    let label = |what: &str| spoken(format!("{what} of {}", member.name));
    let fields = view! { {hidden("form", "remove")} {hidden("person", member.person.as_str())} };
    let remove = confirm(
        "Remove",
        "They see this site no more, their approvals on it no longer count, and their agents leave it.".into_any(),
        fields.into_any(),
        action.clone(),
        "Take off this site",
    );
    let groups_id = form.id("groups");
    view! {
        <li class="member">
            {about}
            <form method="post" action=action class="member-form">
                {form.problem()}
                {form.which()}
                {hidden("person", member.person.as_str())}
                {hidden("was", form.value("was"))}
                {form.choice("role", label("Role"), roles())}
                <div class="line">
                    <label for=groups_id.clone()>{label("Groups")}</label>
                    <input class="field" id=groups_id name="groups" value=form.value("groups") list="groups" placeholder="No group" autocomplete="off" autocapitalize="none" spellcheck="false"/>
                    {form.wrong("groups")}
                </div>
                <button class="btn">"Save"<span class="sr">{format!(" {}", member.name)}</span></button>
            </form>
            {remove}
        </li>
    }
    .into_any()
}

fn add(view: &SettingsView) -> AnyView {
    let start = vec![("role".to_owned(), Role::Approver.as_str().to_owned())];
    let form = Form::new(&view.posted, "add", start);
    let hint = match view.workspace_owner {
        true => view! { "Somebody without an account is added under " <a href=link::PEOPLE>"People"</a> " first." }.into_any(),
        false => "It takes an account here; an owner of the workspace adds people.".into_any(),
    };
    let known = view
        .groups
        .iter()
        .map(|group| view! { <option value=group.clone()></option> })
        .collect_view();
    view! {
        <datalist id="groups">{known}</datalist>
        <section class="box" aria-labelledby="add-title">
            <h3 id="add-title">"Add a member"</h3>
            {form.problem()}
            <form method="post" action=link::settings(&view.slug) class="lines">
                {form.which()}
                {form.line(Line { field: "email", label: "E-mail", kind: "email", required: true, ..Line::default() })}
                {form.choice("role", "Role".into_any(), roles())}
                {form.line(Line { field: "groups", label: "Groups", hint: "Names like legal, parted by commas. The policy can ask for somebody of a group.", list: "groups", ..Line::default() })}
                <button class="btn primary">"Add"</button>
                <p class="hush small">{hint}</p>
            </form>
        </section>
    }
    .into_any()
}

fn agents(view: &SettingsView) -> AnyView {
    let rows = view.agents.iter().map(|one| agent(one, view));
    let list = match view.agents.is_empty() {
        true => view! { <p class="quiet">"No agent works on this site."</p> }.into_any(),
        false => view! { <ul class="members">{rows.collect_view()}</ul> }.into_any(),
    };
    let off = (!view.taken_off.is_empty()).then(|| {
        let rows = view.taken_off.iter().map(|one| taken_off(one, view));
        view! {
            <h3 class="small">"Taken off"</h3>
            <p class="quiet small">"Only an owner of this site puts them on it again."</p>
            <ul class="members">{rows.collect_view()}</ul>
        }
    });
    view! {
        <section aria-labelledby="agents-title">
            <h2 id="agents-title">"Agents"</h2>
            {list}
            {off}
            <p class="small"><a href=link::AGENTS>"Agents, their scopes and keys"</a></p>
        </section>
    }
    .into_any()
}

fn agent(agent: &AgentRow, view: &SettingsView) -> AnyView {
    let off = (view.role.may_manage() || agent.manageable).then(|| {
        let fields = view! { {hidden("form", "take_off")} {hidden("agent", agent.id.as_str())} };
        confirm(
            "Take off",
            "It finds this site no more, and what it waits for here is voided. Only an owner of this site puts somebody else's agent on it again."
                .into_any(),
            fields.into_any(),
            link::settings(&view.slug),
            "Take off this site",
        )
    });
    view! { <li class="member">{about_agent(agent)}{off}</li> }.into_any()
}

fn about_agent(agent: &AgentRow) -> AnyView {
    view! {
        <div class="who-is">
            <span class="face" aria-hidden="true">{words::initials(&agent.name)}</span>
            <p><b>{foreign(&agent.name)}</b><br/><span class="hush small">"Answers to " {foreign(&agent.owner.name)}</span></p>
        </div>
    }
    .into_any()
}

fn taken_off(agent: &AgentRow, view: &SettingsView) -> AnyView {
    view! {
        <li class="member">
            {about_agent(agent)}
            <form method="post" action=link::settings(&view.slug)>
                {hidden("form", "put_back")}
                {hidden("agent", agent.id.as_str())}
                <button class="btn small">"Put back"<span class="sr">{format!(" {}", agent.name)}</span></button>
            </form>
        </li>
    }
    .into_any()
}
