//! A site's policy: each rule as a sentence, and, for whoever may change it, as fields.

use super::{
    form::{Form, Line},
    icon::icon,
};
use crate::words;
use cloudhal_domain::{
    canonical::Fault,
    link,
    policy::Rule,
    policy_form::{self, DEFAULT, EXTRA, UNITS, field_of},
    view::SettingsView,
};
use leptos::prelude::*;

pub fn policy(view: &SettingsView) -> AnyView {
    let form = view.role.may_manage().then(|| edit(view));
    let default = words::rule(&view.policy.default);
    let own = view.policy.tools.iter().map(|(tool, rule)| {
        view! { <li><b>{words::act(tool)}</b>": " {words::rule(rule)} {hopeless(view, tool)}</li> }
    });
    let rest = match view.policy.tools.is_empty() {
        true => "Everything that waits",
        false => "Everything else that waits",
    };
    view! {
        <section aria-labelledby="policy-title">
            <h2 id="policy-title">"Policy"</h2>
            <ul class="rules">
                {own.collect_view()}
                <li><b>{rest}</b>": " {default} {hopeless(view, DEFAULT)}</li>
                {besides(view)}
            </ul>
            {form}
        </section>
    }
    .into_any()
}

/// What this site lets wait beyond what always does.
fn besides(view: &SettingsView) -> AnyView {
    let extra: Vec<String> = view
        .policy
        .extra_gated_tools
        .iter()
        .map(|tool| words::act(tool).to_lowercase())
        .collect();
    let said = (!extra.is_empty())
        .then(|| view! { <li><b>"Waits here besides"</b>": " {extra.join(", ")} "."</li> });
    said.into_any()
}

/// Said where people left and nobody could satisfy the rule any more.
fn hopeless(view: &SettingsView, rule: &str) -> AnyView {
    let fault: Option<&Fault> = view
        .unsatisfiable
        .iter()
        .find(|fault| field_of(&fault.pointer) == rule);
    let said = fault.map(|fault| {
        view! {
            <span class="wrong small" role="note">
                {icon("warn")}
                {format!("Nobody can satisfy this as things stand: {}. Requests under it wait until that changes.", fault.problem)}
            </span>
        }
    });
    said.into_any()
}

fn edit(view: &SettingsView) -> AnyView {
    let mut start = policy_form::fields(DEFAULT, &view.policy.default);
    for tool in &view.gated {
        let own = view.policy.tools.get(tool);
        if own.is_some() {
            start.push((format!("{tool}.own"), "on".to_owned()));
        }
        // What a rule of its own would begin with.
        start.extend(policy_form::fields(
            tool,
            own.unwrap_or(&view.policy.default),
        ));
    }
    let extra = view.policy.extra_gated_tools.iter();
    start.extend(extra.map(|tool| (EXTRA.to_owned(), tool.clone())));
    let form = Form::new(&view.posted, "policy", start);
    let drafts = view
        .drafts
        .iter()
        .map(|tool| form.tick(EXTRA, tool, words::act(tool).to_owned().into_any()));
    let default = rule(&form, DEFAULT, None, &view.policy.default);
    let tools = view.gated.iter().map(|tool| {
        let known = view.policy.tools.get(tool);
        rule(
            &form,
            tool,
            Some(form.has(&format!("{tool}.own"), "on")),
            known.unwrap_or(&view.policy.default),
        )
    });
    view! {
        <details class="box opens" open=form.is_returned()>
            <summary>"Change the policy"</summary>
            {form.problem()}
            <form method="post" action=link::settings(&view.slug) class="policy">
                {form.which()}
                <input type="hidden" name="seen" value=view.policy_text.clone()/>
                {tools.collect_view()}
                {default}
                <fieldset class="rule">
                    <legend>"What waits besides"</legend>
                    <p class="quiet small">"These change the draft only and run at once. Ticked, they wait for a person on this site too."</p>
                    {drafts.collect_view()}
                    {form.wrong(EXTRA)}
                </fieldset>
                <p class="ways"><button class="btn primary">"Save the policy"</button></p>
                <p class="hush small">"It holds at once, also for requests that wait already: they are measured against it when they are decided and again when they run."</p>
            </form>
        </details>
    }
    .into_any()
}

/// The fields of one rule. A tool without a rule of its own keeps them folded behind a tick.
fn rule(form: &Form, name: &str, own: Option<bool>, now: &Rule) -> AnyView {
    let legend = match name {
        DEFAULT => "Everything else that waits",
        tool => words::act(tool),
    };
    let tick = own.is_some().then(|| {
        form.tick(
            &format!("{name}.own"),
            "on",
            view! { {format!("A rule of its own for: {}", legend.to_lowercase())} }.into_any(),
        )
    });
    let sentence =
        (own != Some(false)).then(|| view! { <p class="quiet small">{words::rule(now)}</p> });
    view! {
        <fieldset class="rule">
            <legend>{legend}</legend>
            {tick}
            {sentence}
            {form.wrong(name)}
            <div class="rule-fields">{fields(form, name)}</div>
        </fieldset>
    }
    .into_any()
}

fn fields(form: &Form, rule: &str) -> AnyView {
    let field = |name: &str| format!("{rule}.{name}");
    view! {
        {number(form, field("approvers"), "People who must approve", "", None)}
        {form.line_of(&field("groups"), Line { label: "Of each of these groups somebody", hint: "Like legal, brand; empty for none.", list: "groups", ..Line::default() })}
        {number(form, field("lifetime"), "A request holds for", "Empty: as long as this server says.", Some(field("lifetimeUnit")))}
        {number(form, field("coolDown"), "After a denial, refuse the same call for", "Empty: ask again at once.", Some(field("coolDownUnit")))}
        {form.tick(&field("distinct"), "on", "The person whose agent asks does not count".into_any())}
        {form.tick(&field("studioOnly"), "on", "Decided in the Studio alone, never in a client".into_any())}
    }
    .into_any()
}

fn number(
    form: &Form,
    field: String,
    label: &'static str,
    hint: &'static str,
    unit: Option<String>,
) -> AnyView {
    let units = unit.map(|unit| {
        let chosen = form.value(&unit);
        let options = UNITS
            .iter()
            .rev()
            .map(|(name, _)| view! { <option value=*name selected=chosen == *name>{*name}</option> })
            .collect_view();
        view! { <select class="field" name=unit aria-label=format!("{label}: unit")>{options}</select> }.into_any()
    });
    let line = Line {
        label,
        hint,
        kind: "number",
        ..Line::default()
    };
    form.line_beside(&field, line, units)
}
