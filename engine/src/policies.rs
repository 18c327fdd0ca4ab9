//! What a site asks of an approval, and who is there to give it. The rules themselves are pure: `cloudhal_domain::policy`.

use crate::{
    Engine,
    authority::Author,
    journal::{self, Entry},
    people::{self, Person},
    sites::{self, LockedSite},
    store::{Connection, Fail, StoreError, policies as sql, sites::SiteRow},
    tools::Run,
};
use cloudhal_domain::{
    approval::{Approval, Status, Verdict},
    canonical::{self, Fault},
    code::{Code, Refusal},
    digest::Digest,
    id::{PersonId, SiteId},
    origin::SameOrigin,
    policy::{Approver, Missing, Policy, Rule},
    tool::CallerKind,
    view::Needs,
};
use serde_json::{Value, json};

/// The policy of a site, for those who may see it.
pub async fn get(engine: &Engine, person: &Person, site: &SiteId) -> Result<Policy, Refusal> {
    people::role_on(engine, person, site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let mut db = engine.store().reader().await?;
    Ok(of_site(&mut db, site.as_str()).await?)
}

/// Sets the policy of a site; its owner's right. One that nobody could satisfy is refused, and nothing changes. Requests that
/// wait are measured against it when they are decided and when they are redeemed. With `only_after`, only where the policy
/// that there is has one of these digests.
pub async fn set(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    site: &SiteId,
    policy: Value,
    only_after: Option<Vec<Digest>>,
) -> Result<Policy, Refusal> {
    if let Some(at) = not_an_object(&policy) {
        return Err(refuse(&[(at, "must be an object".to_owned())]));
    }
    let policy: Policy =
        serde_json::from_value(policy).map_err(|e| refuse(&[(String::new(), e.to_string())]))?;
    let (gated, drafts) = (gated_tools(engine), draft_tools(engine));
    let faults = policy.faults(&gated, &drafts);
    if !faults.is_empty() {
        return Err(refuse(&faults));
    }
    let (person, site, new) = (person.clone(), site.clone(), policy.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = LockedSite::expect(tx, &site).await?.now();
            let role = people::role_now(tx, person.id(), site.as_str())
                .await?
                .ok_or_else(|| Fail::from(Refusal::not_found("site")))?;
            if !role.may_manage() {
                return Err(Refusal::new(
                    Code::Forbidden,
                    "Only an owner of the site sets its policy. Nothing was changed.",
                )
                .into());
            }
            let hopeless = hopeless(tx.sql(), site.as_str(), &new).await?;
            if !hopeless.is_empty() {
                return Err(refuse(&hopeless).into());
            }
            let before = of_site(tx.sql(), site.as_str()).await?;
            if only_after.is_some_and(|seen| !seen.contains(&before.digest())) {
                return Err(Refusal::conflict(
                    "Somebody set the policy since you read it. Nothing was changed. Read it again, and repeat your change if it still holds.",
                )
                .into());
            }
            let text = canonical::text(&json!(new));
            sql::set_policy(tx, site.as_str(), &text).await?;
            let entry = Entry {
                kind: "policy.set",
                actor: &Author::person(&person),
                approval: None,
                body: json!({"before": before, "after": new}),
            };
            journal::site(tx, site.as_str(), now, entry).await?;
            sites::announce(tx, "members.changed", site.as_str(), None, now).await
        })
    });
    unit.await?;
    Ok(policy)
}

/// The rules that nobody could satisfy any more, as when people left.
pub(crate) async fn unsatisfiable(
    db: &mut Connection,
    site: &str,
) -> Result<Vec<Fault>, StoreError> {
    let policy = of_site(&mut *db, site).await?;
    let faults = hopeless(db, site, &policy).await?;
    let fault = |(pointer, problem)| Fault { pointer, problem };
    Ok(faults.into_iter().map(fault).collect())
}

async fn hopeless(
    db: &mut Connection,
    site: &str,
    policy: &Policy,
) -> Result<Vec<(String, String)>, StoreError> {
    let eligible = eligible(db, site).await?;
    let askers: Vec<PersonId> = sql::askers(db, site)
        .await?
        .into_iter()
        .map(PersonId::new)
        .collect();
    Ok(policy.unsatisfiable(&eligible, &askers))
}

/// Where a list stands for an object: the derived reader would take its items as fields in their order.
fn not_an_object(policy: &Value) -> Option<String> {
    let tools = policy.get("tools").and_then(Value::as_object);
    let inner = tools
        .into_iter()
        .flatten()
        .map(|(tool, rule)| (format!("/tools/{tool}"), rule));
    let default = policy
        .get("default")
        .map(|rule| ("/default".to_owned(), rule));
    std::iter::once((String::new(), policy))
        .chain(default)
        .chain(inner)
        .find(|(_, value)| !value.is_object())
        .map(|(at, _)| at)
}

fn refuse(faults: &[(String, String)]) -> Refusal {
    let said = faults.first().map_or_else(String::new, |(at, why)| {
        format!("{why} (at {})", if at.is_empty() { "the top" } else { at })
    });
    let listed: Vec<Value> = faults
        .iter()
        .map(|(pointer, problem)| json!({"pointer": pointer, "problem": problem}))
        .collect();
    Refusal::new(
        Code::InvalidArguments,
        format!("The policy was not set: {said}. Nothing was changed."),
    )
    .with("faults", listed)
}

/// Tools that always wait for an approval.
pub fn gated_tools(engine: &Engine) -> Vec<&'static str> {
    tools(engine, |run| matches!(run, Run::Gated(_)))
}

/// Tools that a site's policy may let wait as well.
pub fn draft_tools(engine: &Engine) -> Vec<&'static str> {
    tools(engine, |run| matches!(run, Run::Draft(_)))
}

fn tools(engine: &Engine, which: fn(&Run) -> bool) -> Vec<&'static str> {
    let all = engine.tools().all().iter();
    all.filter(|tool| which(&tool.run))
        .map(|tool| tool.spec.id)
        .collect()
}

pub(crate) async fn of_site(db: &mut Connection, site: &str) -> Result<Policy, StoreError> {
    read(site, &sql::policy(db, site).await?.unwrap_or_default())
}

/// The policy of a site that was read, or locked, just now.
pub(crate) fn of_row(row: &SiteRow) -> Result<Policy, StoreError> {
    read(&row.id, &row.policy)
}

fn read(site: &str, text: &str) -> Result<Policy, StoreError> {
    if text.is_empty() {
        return Ok(Policy::default());
    }
    serde_json::from_str(text).map_err(|e| {
        StoreError::Unsuitable(format!("the policy of site {site} does not read: {e}"))
    })
}

/// Everybody who may decide on the site at this moment, with their groups.
async fn eligible(db: &mut Connection, site: &str) -> Result<Vec<Approver>, StoreError> {
    let mut out = Vec::new();
    for person in sql::deciders(db, site).await? {
        out.push(approver(db, site, person).await?);
    }
    Ok(out)
}

async fn approver(db: &mut Connection, site: &str, person: String) -> Result<Approver, StoreError> {
    let groups = sql::groups_of(db, site, &person).await?;
    Ok(Approver {
        person: PersonId::new(person),
        groups: groups.into_iter().collect(),
    })
}

/// An approver as far as a rule looks: groups are read only where it asks for some.
async fn counted(
    db: &mut Connection,
    rule: &Rule,
    site: &str,
    person: String,
) -> Result<Approver, StoreError> {
    if rule.groups.is_empty() {
        return Ok(Approver {
            person: PersonId::new(person),
            groups: Default::default(),
        });
    }
    approver(db, site, person).await
}

/// A request measured against the policy as it is now.
pub(crate) struct Measured {
    pub rule: Rule,
    /// The people behind the request, where it matters: the agent's owner and whoever made its key, or whoever's client asked.
    askers: Vec<PersonId>,
    /// Those who approved and may still decide.
    approved: Vec<Approver>,
}

impl Measured {
    pub async fn of(
        db: &mut Connection,
        policy: &Policy,
        approval: &Approval,
    ) -> Result<Self, StoreError> {
        let site = approval.site.as_str();
        let rule = policy.rule(&approval.tool).clone();
        let askers = match approval.caller_kind {
            CallerKind::Agent if !rule.require_distinct_approver => Vec::new(),
            CallerKind::Agent => sql::behind(db, approval.id.as_str()).await?,
            CallerKind::Person => vec![approval.caller_id.clone()],
        };
        let approvals = approval.decisions.iter();
        let approvals = approvals.filter(|decision| decision.decision == Verdict::Approve);
        let approvals = approvals.filter(|decision| rule.takes(decision.via));
        let mut people: Vec<String> = approvals.map(|d| d.by.id.as_str().to_owned()).collect();
        if !people.is_empty() {
            let deciders = sql::deciders(db, site).await?;
            people.retain(|person| deciders.contains(person));
        }
        let mut approved = Vec::new();
        for person in people {
            approved.push(counted(db, &rule, site, person).await?);
        }
        Ok(Self {
            rule,
            askers: askers.into_iter().map(PersonId::new).collect(),
            approved,
        })
    }

    pub fn counts(&self, person: &PersonId) -> bool {
        self.rule.counts(person, &self.askers)
    }

    pub fn missing(&self) -> Missing {
        self.rule.missing(&self.approved, &self.askers)
    }

    /// What would be missing if this person approved as well.
    pub async fn missing_with(
        &self,
        db: &mut Connection,
        site: &str,
        person: &PersonId,
    ) -> Result<Missing, StoreError> {
        let mut approved = self.approved.clone();
        approved.push(counted(db, &self.rule, site, person.as_str().to_owned()).await?);
        Ok(self.rule.missing(&approved, &self.askers))
    }
}

/// Who is still needed for a request that waits; `None` for any other, and where one person's approval is all that it takes.
pub(crate) async fn needs(
    db: &mut Connection,
    approval: &Approval,
    looks: &PersonId,
) -> Result<Option<Needs>, StoreError> {
    if approval.state.status() != Status::Pending {
        return Ok(None);
    }
    let policy = of_site(db, approval.site.as_str()).await?;
    let measured = Measured::of(db, &policy, approval).await?;
    let own = !measured.counts(looks);
    let rule = &measured.rule;
    if rule.approvers == 1 && rule.groups.is_empty() && !own {
        return Ok(None);
    }
    let approved = approval.decisions.iter().any(|decision| {
        decision.decision == Verdict::Approve && decision.by.id.as_str() == looks.as_str()
    });
    Ok(Some(Needs {
        missing: measured.missing(),
        approved,
        own,
    }))
}
