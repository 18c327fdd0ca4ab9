//! A policy as the fields of a plain form, and back. A field is named after the rule it belongs to: `default.approvers`,
//! `publish.lifetime`; a tool has a rule of its own where `publish.own` is there.

use crate::{
    canonical::Fault,
    policy::{Policy, Rule},
};
use serde_json::{Map, Value, json};

/// The rule for every tool that has none of its own.
pub const DEFAULT: &str = "default";
/// The field whose values are the tools that a site lets wait as well.
pub const EXTRA: &str = "extra";
/// Seconds to each unit, the longest first.
pub const UNITS: [(&str, u64); 4] = [
    ("days", 86_400),
    ("hours", 3_600),
    ("minutes", 60),
    ("seconds", 1),
];
const FIELDS: [(&str, &str); 4] = [
    ("approvers", "approvers"),
    ("groups", "groups"),
    ("lifetimeSeconds", "lifetime"),
    ("denialCoolDownSeconds", "coolDown"),
];

/// Tools that can wait for an approval.
#[derive(Clone, Copy)]
pub struct CanWait<'t> {
    pub always: &'t [&'t str],
    /// Those that a site may let wait.
    pub may: &'t [&'t str],
}

impl<'t> CanWait<'t> {
    /// Those whose rules the form of this policy shows.
    pub fn asked(self, policy: &Policy) -> Vec<&'t str> {
        let extra = self.may.iter().filter(|tool| policy.gates(tool));
        self.always.iter().chain(extra).copied().collect()
    }
}

/// The fields of one rule, filled in; `rule` is how its fields are named.
pub fn fields(rule_name: &str, rule: &Rule) -> Vec<(String, String)> {
    let (lifetime, lifetime_unit) = spell(rule.lifetime_seconds.unwrap_or(0));
    let (cool_down, cool_down_unit) = spell(rule.denial_cool_down_seconds);
    let mut out = vec![
        ("approvers", rule.approvers.to_string()),
        ("groups", rule.groups.join(", ")),
        ("lifetime", lifetime),
        ("lifetimeUnit", lifetime_unit.to_owned()),
        ("coolDown", cool_down),
        ("coolDownUnit", cool_down_unit.to_owned()),
    ];
    for (name, on) in [
        ("distinct", rule.require_distinct_approver),
        ("studioOnly", rule.studio_only),
    ] {
        if on {
            out.push((name, "on".to_owned()));
        }
    }
    out.into_iter()
        .map(|(name, value)| (format!("{rule_name}.{name}"), value))
        .collect()
}

/// A length of time in the longest unit that it is a whole number of; empty for none.
fn spell(seconds: u64) -> (String, &'static str) {
    if seconds == 0 {
        return (String::new(), "hours");
    }
    let unit = UNITS.iter().find(|(_, size)| seconds.is_multiple_of(*size));
    let (name, size) = unit.copied().unwrap_or(("seconds", 1));
    ((seconds / size).to_string(), name)
}

/// The policy that a form describes. What the form does not know stays as `before` has it. Faults name fields of the form:
/// what is no number, and, so that all of it is said at once, what the policy finds wrong with the rest.
pub fn read(
    before: &Policy,
    can_wait: CanWait<'_>,
    extra: &[String],
    get: impl Fn(&str) -> String,
) -> Result<Value, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut rules = Map::new();
    let tools = can_wait.asked(before);
    // A tool that is gone keeps its rule: nobody was asked about it.
    for (tool, rule) in &before.tools {
        if !tools.contains(&tool.as_str()) {
            rules.insert(tool.clone(), json!(rule));
        }
    }
    let default = read_rule(DEFAULT, &before.default, &get, &mut faults);
    for tool in tools {
        // The rule of a tool that waits no more goes with it.
        let waits = can_wait.always.contains(&tool) || extra.iter().any(|one| one == tool);
        if !waits || get(&format!("{tool}.own")).is_empty() {
            continue;
        }
        let known = before.tools.get(tool).cloned().unwrap_or_default();
        rules.insert(tool.to_owned(), read_rule(tool, &known, &get, &mut faults));
    }
    let mut policy = json!(before);
    policy["default"] = default;
    policy["tools"] = Value::Object(rules);
    policy["extraGatedTools"] = json!(extra);
    if faults.is_empty() {
        return Ok(policy);
    }
    let others = serde_json::from_value::<Policy>(policy)
        .map(|policy| policy.faults(can_wait.always, can_wait.may))
        .unwrap_or_default();
    for (pointer, problem) in others {
        let pointer = field_of(&pointer);
        if !faults.iter().any(|fault| fault.pointer == pointer) {
            faults.push(Fault { pointer, problem });
        }
    }
    Err(faults)
}

fn read_rule(
    name: &str,
    before: &Rule,
    get: &impl Fn(&str) -> String,
    faults: &mut Vec<Fault>,
) -> Value {
    let text = |field: &str| get(&format!("{name}.{field}")).trim().to_owned();
    let mut number = |field: &str, times: u64, or: Option<u64>| {
        let typed = text(field);
        if typed.is_empty() && or.is_some() {
            return or;
        }
        let read: Option<u64> = typed.parse().ok();
        let whole = read.and_then(|n| n.checked_mul(times));
        if whole.is_none() {
            faults.push(Fault {
                pointer: format!("{name}.{field}"),
                problem: "a whole number goes here".to_owned(),
            });
        }
        whole
    };
    let size = |field: &str| {
        let unit = text(field);
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        known.map_or(3_600, |(_, size)| *size)
    };
    let approvers = number("approvers", 1, None);
    let lifetime = number("lifetime", size("lifetimeUnit"), Some(0));
    let cool_down = number("coolDown", size("coolDownUnit"), Some(0));
    let groups: Vec<String> = words(&text("groups"));
    let mut rule = json!(before);
    if let Some(approvers) = approvers {
        rule["approvers"] = json!(approvers);
    }
    rule["groups"] = json!(groups);
    // An empty field means the instance's own setting; a typed 0 is a mistake, and the policy says so.
    rule["lifetimeSeconds"] = match text("lifetime").is_empty() {
        true => Value::Null,
        false => json!(lifetime),
    };
    rule["denialCoolDownSeconds"] = json!(cool_down.unwrap_or(0));
    rule["requireDistinctApprover"] = json!(!text("distinct").is_empty());
    rule["studioOnly"] = json!(!text("studioOnly").is_empty());
    rule
}

/// Names parted by commas or spaces.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The form's field that a fault of the policy is about: `/tools/publish/lifetimeSeconds` is `publish.lifetime`. A fault of
/// a whole rule has the rule's name alone.
pub fn field_of(pointer: &str) -> String {
    let mut parts = pointer.split('/').skip(1);
    let rule = match parts.next() {
        Some("tools") => parts.next().unwrap_or_default(),
        Some(DEFAULT) => DEFAULT,
        Some("extraGatedTools") => return EXTRA.to_owned(),
        _ => return String::new(),
    };
    let field = parts.next().map(|field| {
        FIELDS
            .iter()
            .find(|(wire, _)| *wire == field)
            .map_or(field, |(_, name)| name)
    });
    match field {
        Some(field) => format!("{rule}.{field}"),
        None => rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn form(policy: &Policy) -> BTreeMap<String, String> {
        let mut out: BTreeMap<String, String> =
            fields(DEFAULT, &policy.default).into_iter().collect();
        for (tool, rule) in &policy.tools {
            out.insert(format!("{tool}.own"), "on".into());
            out.extend(fields(tool, rule));
        }
        out
    }

    fn read_form(before: &Policy, form: &BTreeMap<String, String>) -> Result<Policy, Vec<Fault>> {
        let can_wait = CanWait {
            always: &["publish", "delete"],
            may: &["node-update"],
        };
        let get = |name: &str| form.get(name).cloned().unwrap_or_default();
        let extra = super::words(&get(EXTRA));
        read(before, can_wait, &extra, get).map(|value| serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_policy_comes_back_as_it_was() {
        let policy: Policy = serde_json::from_str(
            r#"{"default": {"approvers": 2, "lifetimeSeconds": 90},
                "tools": {"publish": {"groups": ["legal", "brand"], "requireDistinctApprover": true, "studioOnly": true,
                          "lifetimeSeconds": 7200, "denialCoolDownSeconds": 600}}}"#,
        )
        .unwrap();
        assert_eq!(read_form(&policy, &form(&policy)).unwrap(), policy);
        let plain = Policy::default();
        assert_eq!(read_form(&plain, &form(&plain)).unwrap(), plain);
    }

    #[test]
    fn a_rule_that_is_unticked_is_gone_and_one_of_an_unknown_tool_stays() {
        let policy: Policy =
            serde_json::from_str(r#"{"tools": {"publish": {"approvers": 2}, "older": {}}}"#)
                .unwrap();
        let mut typed = form(&policy);
        typed.remove("publish.own");
        let read = read_form(&policy, &typed).unwrap();
        assert_eq!(read.tools.keys().collect::<Vec<_>>(), ["older"]);
    }

    #[test]
    fn a_tool_that_a_site_lets_wait_has_a_rule_as_long_as_it_waits() {
        let policy: Policy = serde_json::from_str(
            r#"{"extraGatedTools": ["node-update"], "tools": {"node-update": {"approvers": 2}}}"#,
        )
        .unwrap();
        let mut typed = form(&policy);
        typed.insert(EXTRA.into(), "node-update".into());
        assert_eq!(read_form(&policy, &typed).unwrap(), policy);
        typed.remove(EXTRA);
        assert_eq!(read_form(&policy, &typed).unwrap(), Policy::default());
    }

    #[test]
    fn what_is_no_number_is_named_by_its_field() {
        let policy = Policy::default();
        let mut typed = form(&policy);
        for (name, value) in [
            ("default.approvers", "two"),
            ("publish.own", "on"),
            ("publish.approvers", ""),
            ("publish.coolDown", "-1"),
            ("publish.lifetime", "99999999999999999999"),
            ("delete.own", "on"),
            ("delete.approvers", "22"),
        ] {
            typed.insert(name.into(), value.into());
        }
        let faults = read_form(&policy, &typed).unwrap_err();
        let at: Vec<&str> = faults.iter().map(|f| f.pointer.as_str()).collect();
        let wanted = [
            "default.approvers",
            "publish.approvers",
            "publish.lifetime",
            "publish.coolDown",
            "delete.approvers",
        ];
        assert_eq!(at, wanted);
    }

    #[test]
    fn faults_of_the_policy_find_their_fields() {
        for (pointer, field) in [
            ("/default/approvers", "default.approvers"),
            ("/tools/publish/lifetimeSeconds", "publish.lifetime"),
            ("/tools/publish/denialCoolDownSeconds", "publish.coolDown"),
            ("/tools/publish", "publish"),
            ("/default", "default"),
            ("/extraGatedTools/1", "extra"),
            ("", ""),
        ] {
            assert_eq!(field_of(pointer), field);
        }
    }
}
