//! Who belongs to a site, in which role and groups. An owner's right, journaled.
//!
//! A site keeps somebody who can manage it: its last owner stays, unless an owner of the workspace is there, who owns every
//! site. Taking somebody off a site is never refused because its policy needs them: whoever must go, goes at once, and the
//! rules that nobody can satisfy any more are named (`policies::unsatisfiable`).

use crate::{
    Engine, agents,
    authority::Author,
    journal::{self, Entry},
    people::{self, Person},
    sites::{self, LockedSite},
    store::{Fail, people as people_sql, policies as policies_sql, sites as sites_sql},
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::{PersonId, SiteId},
    origin::SameOrigin,
    policy::{GROUPS_MAX, is_group_name},
    role::Role,
    view::Member,
};
use serde_json::json;

/// The members of a site, by name, for those who may see it.
pub async fn list(engine: &Engine, person: &Person, site: &SiteId) -> Result<Vec<Member>, Refusal> {
    people::role_on(engine, person, site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let mut db = engine.store().reader().await?;
    let mut members = Vec::new();
    for row in sites_sql::members(&mut db, site.as_str()).await? {
        let Some(role) = Role::from_text(&row.role) else {
            continue;
        };
        members.push(Member {
            groups: policies_sql::groups_of(&mut db, site.as_str(), &row.person_id).await?,
            person: PersonId::new(row.person_id),
            name: row.name,
            email: row.email,
            role,
            disabled: row.disabled == 1,
        });
    }
    Ok(members)
}

/// Gives somebody a role and groups on a site, or takes both away (`role` is `None`).
pub async fn set(
    engine: &Engine,
    by: &Person,
    _: SameOrigin,
    site: &SiteId,
    who: &PersonId,
    role: Option<Role>,
    groups: Vec<String>,
) -> Result<(), Refusal> {
    let setting = Setting {
        by: by.clone(),
        site: site.clone(),
        who: who.clone(),
        role,
        groups: checked(groups)?,
    };
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = LockedSite::expect(tx, &setting.site).await?.now();
            setting.set(tx, now).await
        })
    });
    Ok(unit.await?)
}

/// Group names, sorted and each once.
fn checked(mut groups: Vec<String>) -> Result<Vec<String>, Refusal> {
    let wrong = groups.iter().find(|group| !is_group_name(group));
    if let Some(group) = wrong {
        return Err(at_fault(format!(
            "“{}” is not a group's name: lower-case letters, digits and '-'.",
            group.escape_debug()
        )));
    }
    if groups.len() > GROUPS_MAX {
        return Err(at_fault(format!(
            "A person is in at most {GROUPS_MAX} groups of a site."
        )));
    }
    groups.sort();
    groups.dedup();
    Ok(groups)
}

/// Adds somebody with an account by their e-mail address, or sets anew what they are.
pub async fn add(
    engine: &Engine,
    by: &Person,
    proof: SameOrigin,
    site: &SiteId,
    email: &str,
    role: Role,
    groups: Vec<String>,
) -> Result<(), Refusal> {
    // Who may not manage the site learns nothing of who has an account.
    let own = people::role_on(engine, by, site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    if !own.may_manage() {
        return Err(owners_only());
    }
    let key = email.trim().to_lowercase();
    let row = match key.contains('\0') {
        true => None,
        false => people_sql::by_email(engine.store().read(), &key).await?,
    };
    let Some(row) = row.filter(|row| row.disabled_at.is_none()) else {
        let problem = "Nobody with an account here has that e-mail address. An owner of the workspace adds people.";
        return Err(
            Refusal::new(Code::NotFound, format!("{problem} Nothing was changed."))
                .with("faults", json!([{"pointer": "/email", "problem": problem}])),
        );
    };
    let who = PersonId::new(row.id);
    set(engine, by, proof, site, &who, Some(role), groups).await
}

fn owners_only() -> Refusal {
    Refusal::new(
        Code::Forbidden,
        "Only an owner of the site changes who belongs to it. Nothing was changed.",
    )
}

fn at_fault(problem: String) -> Refusal {
    Refusal::new(Code::InvalidArguments, problem.clone()).with(
        "faults",
        json!([{"pointer": "/groups", "problem": problem}]),
    )
}

struct Setting {
    by: Person,
    site: SiteId,
    who: PersonId,
    role: Option<Role>,
    groups: Vec<String>,
}

impl Setting {
    /// Under the site's lock.
    async fn set(
        self,
        tx: &mut crate::store::Tx,
        now: cloudhal_domain::time::Timestamp,
    ) -> Result<(), Fail> {
        let site = self.site.as_str();
        let role = people::role_now(tx, self.by.id(), site)
            .await?
            .ok_or_else(|| Fail::from(Refusal::not_found("site")))?;
        if !role.may_manage() {
            return Err(owners_only().into());
        }
        if self.who.as_str().contains('\0') {
            return Err(Refusal::not_found("person").into());
        }
        let person = people_sql::by_id(tx.sql(), self.who.as_str())
            .await?
            .filter(|row| row.disabled_at.is_none() || self.role.is_none())
            .ok_or_else(|| Fail::from(Refusal::not_found("person")))?;
        let before = sites_sql::role_now(tx, site, &self.who).await?;
        let was_owner = before.as_deref() == Some(Role::Owner.as_str());
        if was_owner
            && self.role != Some(Role::Owner)
            && sites_sql::managers_without(tx, site, &self.who).await? == 0
        {
            return Err(Refusal::conflict(
                "This is the last person who can manage the site. Make somebody else an owner first. Nothing was changed.",
            )
            .into());
        }
        sites_sql::set_member(tx, site, &self.who, self.role.map(Role::as_str)).await?;
        let groups = if self.role.is_some() {
            &self.groups[..]
        } else {
            &[]
        };
        policies_sql::set_groups(tx, site, self.who.as_str(), groups).await?;
        let by = Author::person(&self.by);
        let entry = Entry {
            kind: "member.set",
            actor: &by,
            approval: None,
            body: json!({
                "person": self.who, "name": person.name, "before": before,
                "role": self.role.map(Role::as_str), "groups": groups,
            }),
        };
        journal::site(tx, site, now, entry).await?;
        // Whoever leaves takes their agents along.
        agents::void_unreachable_now(tx, site, &by, now).await?;
        sites::announce(tx, "members.changed", site, None, now).await
    }
}
