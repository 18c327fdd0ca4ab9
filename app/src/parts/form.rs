//! Plain forms whose answer is the page itself: what was typed stands there again, each fault beside its field.

use super::icon::icon;
use cloudhal_domain::{canonical::Fault, view::Posted};
use leptos::prelude::*;

/// One form of a page, as it begins or as it came back.
#[derive(Clone)]
pub struct Form {
    name: String,
    values: Vec<(String, String)>,
    faults: Vec<Fault>,
    problem: Option<String>,
}

/// A line to type in.
#[derive(Clone, Copy, Default)]
pub struct Line {
    pub field: &'static str,
    pub label: &'static str,
    pub hint: &'static str,
    /// The browser's type; empty is `text`.
    pub kind: &'static str,
    pub required: bool,
    /// Id of a list of suggestions.
    pub list: &'static str,
}

impl Form {
    /// `start` is what its fields hold while nothing came back.
    pub fn new(posted: &Posted, name: impl Into<String>, start: Vec<(String, String)>) -> Self {
        let name = name.into();
        match posted.returned.as_ref().filter(|form| form.form == name) {
            Some(form) => Self {
                name,
                values: form.fields.clone(),
                faults: form.faults.clone(),
                problem: Some(form.problem.clone()),
            },
            None => Self {
                name,
                values: start,
                faults: Vec::new(),
                problem: None,
            },
        }
    }

    /// Whether it could not be taken; a fold around it stands open then.
    pub fn is_returned(&self) -> bool {
        self.problem.is_some()
    }

    pub fn value(&self, field: &str) -> String {
        let found = self.values.iter().rev().find(|(name, _)| name == field);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// Whether one of several values is ticked or chosen.
    pub fn has(&self, field: &str, value: &str) -> bool {
        self.values
            .iter()
            .any(|(name, held)| name == field && held == value)
    }

    fn fault(&self, field: &str) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.pointer == field)
    }

    pub fn id(&self, field: &str) -> String {
        format!("{}.{field}", self.name)
    }

    /// Which form of the page this is, for the server.
    pub fn which(&self) -> AnyView {
        view! { <input type="hidden" name="form" value=self.name.clone()/> }.into_any()
    }

    /// What is wrong with the whole of it; the first thing that is read after it came back.
    pub fn problem(&self) -> AnyView {
        let banner = self.problem.clone().map(|problem| {
            view! { <p class="banner bad" role="alert" tabindex="-1" autofocus>{icon("warn")}<span>{problem}</span></p> }
        });
        banner.into_any()
    }

    /// What is wrong with a field, to stand under it.
    pub fn wrong(&self, field: &str) -> AnyView {
        let id = format!("{}-wrong", self.id(field));
        let said = self.fault(field).map(|fault| {
            view! { <span class="wrong small" id=id>{icon("warn")}{sentence(&fault.problem)}</span> }
        });
        said.into_any()
    }

    /// `aria-describedby` of a field: its hint, and what is wrong with it.
    fn described(&self, field: &str, has_hint: bool) -> Option<String> {
        let hint = has_hint.then(|| format!("{}-hint", self.id(field)));
        let wrong = self
            .fault(field)
            .map(|_| format!("{}-wrong", self.id(field)));
        let all: Vec<String> = hint.into_iter().chain(wrong).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    fn invalid(&self, field: &str) -> Option<&'static str> {
        self.fault(field).map(|_| "true")
    }

    pub fn line(&self, line: Line) -> AnyView {
        self.line_of(line.field, line)
    }

    /// The same where the field's name is made as the page is.
    pub fn line_of(&self, field: &str, line: Line) -> AnyView {
        self.line_beside(field, line, None)
    }

    /// The same with something beside the field, as a unit.
    pub fn line_beside(&self, field: &str, line: Line, beside: Option<AnyView>) -> AnyView {
        let id = self.id(field);
        let has_hint = !line.hint.is_empty();
        let kind = if line.kind.is_empty() {
            "text"
        } else {
            line.kind
        };
        let plain = matches!(kind, "email" | "url") || !line.list.is_empty();
        let whole = kind == "number";
        let input = view! {
            <input
                class="field" id=id.clone() type=if whole { "text" } else { kind } inputmode=whole.then_some("numeric")
                name=field.to_owned() value=self.value(field) required=line.required
                list=(!line.list.is_empty()).then_some(line.list) autocomplete="off"
                autocapitalize=plain.then_some("none") spellcheck=plain.then_some("false")
                aria-describedby=self.described(field, has_hint) aria-invalid=self.invalid(field)
            />
        };
        let input = match beside {
            Some(beside) => view! { <div class="beside">{input} {beside}</div> }.into_any(),
            None => input.into_any(),
        };
        view! {
            <div class="line">
                <label for=id.clone()>{line.label}</label>
                {input}
                {has_hint.then(|| view! { <span class="hush small" id=format!("{id}-hint")>{line.hint}</span> })}
                {self.wrong(field)}
            </div>
        }
        .into_any()
    }

    /// A box to tick.
    pub fn tick(&self, field: &str, value: &str, label: AnyView) -> AnyView {
        view! {
            <label class="tick">
                <input type="checkbox" name=field.to_owned() value=value.to_owned() checked=self.has(field, value)/>
                <span>{label}</span>
            </label>
        }
        .into_any()
    }

    /// One of several, as round buttons.
    pub fn radio(&self, field: &str, value: &str, label: &'static str) -> AnyView {
        view! {
            <label class="tick">
                <input type="radio" name=field.to_owned() value=value.to_owned() checked=self.value(field) == value/>
                <span>{label}</span>
            </label>
        }
        .into_any()
    }

    /// One of several, as a list that opens. `label` may be for readers that speak alone.
    pub fn choice(&self, field: &str, label: AnyView, options: Vec<(String, String)>) -> AnyView {
        let id = self.id(field);
        let chosen = self.value(field);
        let options = options
            .into_iter()
            .map(|(value, word)| {
                let selected = value == chosen;
                view! { <option value=value selected=selected>{word}</option> }
            })
            .collect_view();
        view! {
            <div class="line">
                <label for=id.clone()>{label}</label>
                <select class="field" id=id name=field.to_owned() aria-describedby=self.described(field, false) aria-invalid=self.invalid(field)>{options}</select>
                {self.wrong(field)}
            </div>
        }
        .into_any()
    }
}

/// Words for a label that only readers which speak hear.
pub fn spoken(words: String) -> AnyView {
    view! { <span class="sr">{words}</span> }.into_any()
}

/// A fault as a sentence of its own: the rules write them as they stand after a field's name.
pub fn sentence(problem: &str) -> String {
    let mut chars = problem.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>());
    let text = first.unwrap_or_default() + chars.as_str();
    if text.ends_with('.') {
        text
    } else {
        text + "."
    }
}

/// A thing to be done in two steps: opened, then done.
pub fn confirm(
    open: &'static str,
    sentence: AnyView,
    fields: AnyView,
    action: String,
    button: &'static str,
) -> AnyView {
    view! {
        <details class="inline">
            <summary class="btn small">{open}</summary>
            <form method="post" action=action>
                {fields}
                <p class="small">{sentence}</p>
                <button class="btn no">{button}</button>
            </form>
        </details>
    }
    .into_any()
}

/// A hidden field.
pub fn hidden(name: &'static str, value: impl Into<String>) -> AnyView {
    let value: String = value.into();
    view! { <input type="hidden" name=name value=value/> }.into_any()
}
