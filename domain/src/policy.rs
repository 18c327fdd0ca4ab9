//! What a site asks of an approval: how many people, of which groups, how long it holds. Pure rules; who is eligible and what
//! is stored come from the engine.

use crate::{
    approval::Via,
    canonical,
    digest::{Digest, Framed},
    id::PersonId,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub const APPROVERS_MAX: u32 = 10;
pub const GROUPS_MAX: usize = 10;
pub const GROUP_NAME_BYTES_MAX: usize = 64;
pub const LIFETIME_MIN: Duration = Duration::from_secs(60);
pub const LIFETIME_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
pub const COOL_DOWN_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// A site's policy: a rule for each tool that has one of its own, and one for all others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    pub default: Rule,
    pub tools: BTreeMap<String, Rule>,
    /// Tools that change the draft and wait on this site as well. A policy gates more tools, never fewer (CONTRACT §3).
    pub extra_gated_tools: BTreeSet<String>,
}

/// What an approval of one tool takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rule {
    /// How many different people have to approve.
    pub approvers: u32,
    /// Groups that must each be represented among them; one person may stand for several.
    pub groups: Vec<String>,
    /// The person whose agent asks does not count as an approver.
    pub require_distinct_approver: bool,
    /// How long a request holds, in seconds; the instance's own setting where there is none.
    pub lifetime_seconds: Option<u64>,
    /// Decided in the Studio alone: no client is asked, whatever it declares.
    pub studio_only: bool,
    /// For so long after a denial, in seconds, the same call on the same state is refused; 0 is off.
    pub denial_cool_down_seconds: u64,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            approvers: 1,
            groups: Vec::new(),
            require_distinct_approver: false,
            lifetime_seconds: None,
            studio_only: false,
            denial_cool_down_seconds: 0,
        }
    }
}

impl Rule {
    /// Whether a decision that was made this way counts.
    pub fn takes(&self, via: Via) -> bool {
        !self.studio_only || via == Via::Session
    }
}

/// Somebody who may decide on the site right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approver {
    pub person: PersonId,
    pub groups: BTreeSet<String>,
}

/// What an approval still waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// So many more people, at least.
    pub approvers: u32,
    /// Of each of these groups one.
    pub groups: Vec<String>,
}

impl Missing {
    pub fn is_nothing(&self) -> bool {
        self.approvers == 0 && self.groups.is_empty()
    }
}

impl Policy {
    /// Names this very policy, for whoever sets another one over it and no third.
    pub fn digest(&self) -> Digest {
        Framed::new("cloudhal/policy/v1")
            .part(canonical::text(&json!(self)))
            .finish()
    }

    pub fn rule(&self, tool: &str) -> &Rule {
        self.tools.get(tool).unwrap_or(&self.default)
    }

    /// Whether this site lets a tool wait that otherwise would not.
    pub fn gates(&self, tool: &str) -> bool {
        self.extra_gated_tools.contains(tool)
    }

    fn rules(&self) -> impl Iterator<Item = (String, &Rule)> {
        let own = self
            .tools
            .iter()
            .map(|(tool, rule)| (format!("/tools/{tool}"), rule));
        std::iter::once(("/default".to_owned(), &self.default)).chain(own)
    }

    /// What is wrong with it by itself: where, as a JSON Pointer, and what. `gated` names the tools that always wait, `drafts`
    /// those that a site may let wait.
    pub fn faults(&self, gated: &[&str], drafts: &[&str]) -> Vec<(String, String)> {
        let waits = |tool: &str| gated.contains(&tool) || self.gates(tool);
        let unknown = self
            .tools
            .keys()
            .filter(|tool| !waits(tool))
            .map(|tool| {
                let known = gated.join(", ");
                (
                    format!("/tools/{tool}"),
                    format!("no such tool waits for approval here; these do: {known}, and those among extraGatedTools"),
                )
            });
        let not_drafts = self
            .extra_gated_tools
            .iter()
            .enumerate()
            .filter(|(_, tool)| !drafts.contains(&tool.as_str()))
            .map(|(at, tool)| {
                let known = drafts.join(", ");
                (
                    format!("/extraGatedTools/{at}"),
                    format!(
                        "“{}” cannot be gated by a site; these can: {known}",
                        tool.escape_debug()
                    ),
                )
            });
        let inside = self.rules().flat_map(|(at, rule)| {
            rule.faults()
                .into_iter()
                .map(move |(field, fault)| (format!("{at}/{field}"), fault))
        });
        unknown.chain(not_drafts).chain(inside).collect()
    }

    /// The rules that nobody could satisfy, and why. `eligible` are those who may decide on the site; `askers` are the
    /// owners of the agents that may ask.
    pub fn unsatisfiable(
        &self,
        eligible: &[Approver],
        askers: &[PersonId],
    ) -> Vec<(String, String)> {
        self.rules()
            .filter_map(|(at, rule)| rule.unsatisfiable(eligible, askers).map(|why| (at, why)))
            .collect()
    }
}

impl Rule {
    /// What is still missing, given those who approved and may still decide. `askers` are the people behind
    /// the request: the owner of the agent, and whoever made its key.
    pub fn missing(&self, approved: &[Approver], askers: &[PersonId]) -> Missing {
        let counted: BTreeMap<&PersonId, &Approver> = approved
            .iter()
            .filter(|approver| self.counts(&approver.person, askers))
            .map(|approver| (&approver.person, approver))
            .collect();
        let groups = self
            .groups
            .iter()
            .filter(|group| !counted.values().any(|a| a.groups.contains(*group)))
            .cloned()
            .collect();
        Missing {
            approvers: self.approvers.saturating_sub(counted.len() as u32),
            groups,
        }
    }

    /// Whether this person's approval counts for a request with those people behind it.
    pub fn counts(&self, person: &PersonId, askers: &[PersonId]) -> bool {
        !(self.require_distinct_approver && askers.contains(person))
    }

    pub fn lifetime(&self) -> Option<Duration> {
        self.lifetime_seconds.map(Duration::from_secs)
    }

    pub fn denial_cool_down(&self) -> Option<Duration> {
        (self.denial_cool_down_seconds > 0)
            .then(|| Duration::from_secs(self.denial_cool_down_seconds))
    }

    fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if !(1..=APPROVERS_MAX).contains(&self.approvers) {
            faults.push((
                "approvers",
                format!("must be from 1 to {APPROVERS_MAX} people"),
            ));
        }
        if self.groups.len() > GROUPS_MAX {
            faults.push(("groups", format!("at most {GROUPS_MAX} groups")));
        }
        if let Some(group) = self.groups.iter().find(|group| !is_group_name(group)) {
            faults.push((
                "groups",
                format!("“{}” is not a group's name", group.escape_debug()),
            ));
        }
        let different: BTreeSet<&String> = self.groups.iter().collect();
        if different.len() < self.groups.len() {
            faults.push(("groups", "names a group twice".to_owned()));
        }
        if let Some(lifetime) = self.lifetime()
            && !(LIFETIME_MIN..=LIFETIME_MAX).contains(&lifetime)
        {
            faults.push((
                "lifetimeSeconds",
                format!(
                    "must be from {} to {} seconds",
                    LIFETIME_MIN.as_secs(),
                    LIFETIME_MAX.as_secs()
                ),
            ));
        }
        if Duration::from_secs(self.denial_cool_down_seconds) > COOL_DOWN_MAX {
            faults.push((
                "denialCoolDownSeconds",
                format!("must be at most {} seconds", COOL_DOWN_MAX.as_secs()),
            ));
        }
        faults
    }

    fn unsatisfiable(&self, eligible: &[Approver], askers: &[PersonId]) -> Option<String> {
        let everybody =
            std::iter::once(&[] as &[PersonId]).chain(askers.iter().map(std::slice::from_ref));
        let short = everybody
            .map(|asker| (asker, self.missing(eligible, asker)))
            .find(|(_, missing)| !missing.is_nothing())?;
        let (asker, missing) = short;
        let left = if !asker.is_empty() {
            "where the owner of an agent that asks does not count, "
        } else {
            ""
        };
        Some(match missing.groups.first() {
            Some(group) => {
                format!("{left}nobody who may decide on this site belongs to the group “{group}”")
            }
            None => format!(
                "{left}{} too few people may decide on this site",
                missing.approvers
            ),
        })
    }
}

/// Lower-case letters, digits and `-`, as in a slug.
pub fn is_group_name(name: &str) -> bool {
    (1..=GROUP_NAME_BYTES_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approver(name: &str, groups: &[&str]) -> Approver {
        Approver {
            person: PersonId::new(name),
            groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        }
    }

    fn rule(json: &str) -> Rule {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn one_person_is_enough_by_default() {
        let rule = Rule::default();
        assert_eq!(rule.missing(&[], &[]).approvers, 1);
        assert!(rule.missing(&[approver("ada", &[])], &[]).is_nothing());
    }

    #[test]
    fn a_person_counts_once_however_often_they_stand_there() {
        let rule = rule(r#"{"approvers": 2}"#);
        let twice = [approver("ada", &[]), approver("ada", &[])];
        assert_eq!(rule.missing(&twice, &[]).approvers, 1);
        let two = [approver("ada", &[]), approver("ben", &[])];
        assert!(rule.missing(&two, &[]).is_nothing());
    }

    #[test]
    fn each_group_must_be_there_and_one_person_may_stand_for_several() {
        let rule = rule(r#"{"groups": ["legal", "brand"]}"#);
        let missing = rule.missing(&[approver("ada", &["legal"])], &[]);
        assert_eq!(
            (missing.approvers, missing.groups),
            (0, vec!["brand".to_owned()])
        );
        assert!(
            rule.missing(&[approver("ada", &["legal", "brand"])], &[])
                .is_nothing()
        );
    }

    #[test]
    fn the_asker_does_not_count_where_another_is_required() {
        let rule = rule(r#"{"requireDistinctApprover": true, "groups": ["legal"]}"#);
        let (ada, ben) = (approver("ada", &["legal"]), approver("ben", &["legal"]));
        let missing = rule.missing(
            std::slice::from_ref(&ada),
            std::slice::from_ref(&ada.person),
        );
        assert_eq!((missing.approvers, missing.groups.len()), (1, 1));
        assert!(
            rule.missing(&[ada.clone(), ben], std::slice::from_ref(&ada.person))
                .is_nothing()
        );
        assert!(rule.missing(std::slice::from_ref(&ada), &[]).is_nothing());
    }

    #[test]
    fn what_nobody_could_satisfy_is_named() {
        let policy: Policy = serde_json::from_str(
            r#"{"tools": {"publish": {"approvers": 2}, "delete": {"groups": ["legal"]}, "rollback": {"requireDistinctApprover": true}}}"#,
        )
        .unwrap();
        let ada = approver("ada", &[]);
        let asks = [ada.person.clone()];
        let wrong = policy.unsatisfiable(std::slice::from_ref(&ada), &asks);
        let at: Vec<&str> = wrong.iter().map(|(at, _)| at.as_str()).collect();
        assert_eq!(at, ["/tools/delete", "/tools/publish", "/tools/rollback"]);
        let both = [ada, approver("ben", &["legal"])];
        assert_eq!(policy.unsatisfiable(&both, &asks), []);
        assert!(
            Policy::default().unsatisfiable(&[], &[]).len() == 1,
            "somebody has to be there at all"
        );
    }

    #[test]
    fn faults_say_where() {
        let policy: Policy = serde_json::from_str(
            r#"{"extraGatedTools": ["node-move", "publish"], "default": {"approvers": 0}, "tools": {"site-list": {}, "node-move": {}, "publish": {"groups": ["a", "a"], "lifetimeSeconds": 1, "denialCoolDownSeconds": 99999999}, "delete": {"groups": ["A b"]}}}"#,
        )
        .unwrap();
        let at: Vec<String> = policy
            .faults(&["publish", "delete"], &["node-move"])
            .into_iter()
            .map(|(at, _)| at)
            .collect();
        let wanted = [
            "/tools/site-list",
            "/extraGatedTools/1",
            "/default/approvers",
            "/tools/delete/groups",
            "/tools/publish/groups",
            "/tools/publish/lifetimeSeconds",
            "/tools/publish/denialCoolDownSeconds",
        ];
        assert_eq!(at, wanted);
        assert_eq!(Policy::default().faults(&[], &[]), []);
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        assert!(
            serde_json::from_str::<Policy>(r#"{"tools": {"publish": {"approver": 2}}}"#).is_err()
        );
        assert_eq!(
            serde_json::from_str::<Policy>("{}").unwrap(),
            Policy::default()
        );
    }
}
