//! Where a site's events are told, for its owners: the destinations, and what became of each message.

use super::{
    badge::badge,
    form::{Form, Line, confirm, hidden, sentence},
    icon::icon,
    text::foreign,
    time::{Ago, At},
};
use crate::words;
use cloudhal_domain::{
    link,
    view::{Destination, SettingsView, WebhooksView},
    webhook::{Delivery, DeliveryStatus},
};
use leptos::prelude::*;

/// Nothing for whoever does not own the site.
pub fn webhooks(view: &SettingsView) -> AnyView {
    let Some(held) = &view.webhooks else {
        return ().into_any();
    };
    let rows = held.destinations.iter().map(|one| row(one, held, view));
    let list = match (held.destinations.is_empty(), held.enabled) {
        (false, _) => view! { <ul class="hooks">{rows.collect_view()}</ul> }.into_any(),
        (true, true) => view! { <p class="quiet">"Nobody outside is told yet."</p> }.into_any(),
        (true, false) => ().into_any(),
    };
    let add = match held.enabled {
        true => add(view),
        false => off(view),
    };
    view! {
        <section aria-labelledby="webhooks-title">
            <h2 id="webhooks-title">"Webhooks"</h2>
            <p class="quiet small">"A receiver of yours, like a chat bridge or a pager, is told when a request waits, was decided, no longer holds, ran out of time, or ran: a summary and a link. Nothing that it is told decides anything. Only owners see this part."</p>
            {list}
            {add}
        </section>
    }
    .into_any()
}

fn off(view: &SettingsView) -> AnyView {
    let form = Form::new(&view.posted, "webhook", Vec::new());
    view! {
        {form.problem()}
        <p class="banner calm">
            {icon("lock")}
            <span>"Webhooks are switched off on this server, so nothing is told to anybody outside. Ask whoever runs it to set " <code>"CLOUDHAL_WEBHOOKS"</code> "."</span>
        </p>
    }
    .into_any()
}

fn add(view: &SettingsView) -> AnyView {
    let form = Form::new(&view.posted, "webhook", Vec::new());
    view! {
        <section class="box" aria-labelledby="webhook-title">
            <h3 id="webhook-title">"Add a destination"</h3>
            {form.problem()}
            <form method="post" action=link::settings(&view.slug) class="lines">
                {form.which()}
                {form.line(Line { field: "url", label: "Address", kind: "url", required: true, hint: "As the receiver gives it, like https://hooks.example/cloudhal. What comes from us is signed with a secret, which is shown next.", ..Line::default() })}
                <button class="btn primary">"Add and make its secret"</button>
            </form>
        </section>
    }
    .into_any()
}

fn row(one: &Destination, held: &WebhooksView, view: &SettingsView) -> AnyView {
    let hook = Hook::of(one, view);
    let form = Form::new(&view.posted, hook.name.clone(), Vec::new());
    let old = one.webhook.old_secret_until.map(|until| {
        view! { <br/>"The secret before the present one signs as well until " <At at=until/> "." }
    });
    view! {
        <li class="hook">
            {form.problem()}
            <div class="hook-to">
                <h3>{foreign(&one.host)}</h3>
                <p class="hush small">{foreign(&one.webhook.url)}</p>
                <p class="hush small">"Added " <Ago at=one.webhook.created_at/> {old}</p>
            </div>
            {ways(&hook, held.enabled)}
            {deliveries(one, &hook, held.enabled)}
        </li>
    }
    .into_any()
}

/// What every form about one destination carries.
struct Hook {
    name: String,
    id: String,
    host: String,
    action: String,
}

impl Hook {
    fn of(one: &Destination, view: &SettingsView) -> Self {
        let id = one.webhook.id.as_str().to_owned();
        Self {
            name: format!("hook:{id}"),
            id,
            host: one.host.clone(),
            action: link::settings(&view.slug),
        }
    }

    fn fields(&self, act: &'static str) -> AnyView {
        view! { {hidden("form", self.name.as_str())} {hidden("webhook", self.id.as_str())} {hidden("do", act)} }
            .into_any()
    }
}

/// Where webhooks are off, what is there can still be taken away.
fn ways(hook: &Hook, enabled: bool) -> AnyView {
    let live = enabled.then(|| {
        let secret = confirm(
            "New secret",
            "The receiver needs the new one within a day: until then the old one signs as well. The new one is shown once.".into_any(),
            hook.fields("secret"),
            hook.action.clone(),
            "Make a new secret",
        );
        view! {
            <form method="post" action=hook.action.clone()>
                {hook.fields("test")}
                <button class="btn small">"Send a test"<span class="sr">{format!(" to {}", hook.host)}</span></button>
            </form>
            {secret}
        }
    });
    let delete = confirm(
        "Delete",
        "Nothing is told there any more. Its secret is forgotten, and what waits for it is not sent.".into_any(),
        hook.fields("delete"),
        hook.action.clone(),
        "Delete this destination",
    );
    view! { <div class="ways">{live} {delete}</div> }.into_any()
}

fn deliveries(one: &Destination, hook: &Hook, enabled: bool) -> AnyView {
    let Some(newest) = one.deliveries.first() else {
        return view! { <p class="hush small">"Nothing has been sent there yet."</p> }.into_any();
    };
    let items = one
        .deliveries
        .iter()
        .map(|one| delivery(one, hook, enabled));
    view! {
        <details class="told">
            <summary>"Latest deliveries "<span class="hush">{words::event(&newest.event).to_owned()} ", " <Ago at=newest.created_at/></span> " " {badge(words::delivery(newest))}</summary>
            <ol class="deliveries">{items.collect_view()}</ol>
        </details>
    }
    .into_any()
}

fn delivery(one: &Delivery, hook: &Hook, enabled: bool) -> AnyView {
    let error = one.last_error.as_ref().map(|why| {
        let next = one
            .next_try_at
            .map(|at| view! { " Next try: " <At at/> "." });
        view! { <p class="small">{sentence(why)} {next}</p> }
    });
    let about = one
        .approval
        .as_ref()
        .map(|id| view! { " · " <a href=link::approval(id)>"The request"</a> });
    let tries = (one.tries > 0).then(|| format!(" · {}", words::count(one.tries, "try", "tries")));
    let again = (enabled && one.status != DeliveryStatus::Waiting).then(|| {
        view! {
            <form method="post" action=hook.action.clone()>
                {hook.fields("again")}
                {hidden("delivery", one.id.as_str())}
                <button class="btn small">"Send again"</button>
            </form>
        }
    });
    view! {
        <li>
            <div>
                <p><b>{words::event(&one.event).to_owned()}</b> " " {badge(words::delivery(one))}</p>
                <p class="hush small"><Ago at=one.created_at/> {tries} {about}</p>
                {error}
            </div>
            {again}
        </li>
    }
    .into_any()
}
