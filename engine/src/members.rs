//! Who belongs to a site, in which role and groups. An owner's right, journaled.
//!
//! A site keeps somebody who can manage it: its last owner stays, unless an owner of the workspace is there, who owns every
//! site. Taking somebody off a site is never refused because its policy needs them: whoever must go, goes at once, and the
//! rules that nobody can satisfy any more are named ([`Members::unsatisfiable`]).

use crate::{
    Engine, agents,
    authority::Author,
    journal::{self, Entry},
    people::{self, Person},
    policies,
    sites::{self, LockedSite},
    store::{
        Connection, Fail, StoreError, Tx, agents as agents_sql, people as people_sql,
        policies as policies_sql, sites as sites_sql,
    },
};
use cloudhal_domain::{
    canonical::Fault,
    code::{Code, Refusal},
    id::{PersonId, SiteId},
    origin::SameOrigin,
    policy::{GROUPS_MAX, is_group_name},
    role::Role,
    seen,
    time::Timestamp,
    view::Member,
};
use serde_json::json;
use std::collections::HashMap;

/// Who belongs to a site, by name, and the rules of its policy that nobody could satisfy any more.
#[derive(Clone, Debug, Default)]
pub struct Members {
    pub items: Vec<Member>,
    pub unsatisfiable: Vec<Fault>,
}

impl Members {
    /// E-mail addresses are for those who manage the site alone.
    async fn of(db: &mut Connection, site: &str, for_role: Role) -> Result<Self, StoreError> {
        let mut groups: HashMap<String, Vec<String>> = HashMap::new();
        for (person, group) in policies_sql::groups_on(db, site).await? {
            groups.entry(person).or_default().push(group);
        }
        let mut items = Vec::new();
        for row in sites_sql::members(db, site).await? {
            let Some(role) = Role::from_text(&row.role) else {
                continue;
            };
            items.push(Member {
                groups: groups.remove(&row.person_id).unwrap_or_default(),
                person: PersonId::new(row.person_id),
                name: row.name,
                email: Some(row.email).filter(|_| for_role.may_manage()),
                role,
                disabled: row.disabled == 1,
            });
        }
        Ok(Self {
            items,
            unsatisfiable: policies::unsatisfiable(db, site).await?,
        })
    }
}

/// The members of a site, for those who may see it.
pub async fn list(engine: &Engine, person: &Person, site: &SiteId) -> Result<Members, Refusal> {
    let own = people::role_on(engine, person, site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let mut db = engine.store().reader().await?;
    Ok(Members::of(&mut db, site.as_str(), own).await?)
}

/// What somebody is to be on a site.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// `None` takes them off, out of every group.
    pub role: Option<Role>,
    pub groups: Vec<String>,
    /// Only where that is what they are still: [`seen::member`] of what the person who changes it saw.
    pub only_after: Option<String>,
}

/// Gives somebody a role and groups on a site, or takes both away. Answers with the members as this change left them; `None` for
/// whoever sees the site no more, having taken themselves off it.
pub async fn set(
    engine: &Engine,
    by: &Person,
    _: SameOrigin,
    site: &SiteId,
    who: &PersonId,
    change: Change,
) -> Result<Option<Members>, Refusal> {
    let groups = match change.role {
        Some(_) => checked(change.groups)?,
        None => Vec::new(),
    };
    let setting = Setting {
        by: by.clone(),
        site: site.clone(),
        who: who.clone(),
        change: Change { groups, ..change },
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
    change: Change,
) -> Result<Option<Members>, Refusal> {
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
    set(engine, by, proof, site, &who, change).await
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
    change: Change,
}

impl Setting {
    /// Under the site's lock.
    async fn set(self, tx: &mut Tx, now: Timestamp) -> Result<Option<Members>, Fail> {
        let (site, who, role) = (self.site.as_str(), self.who.as_str(), self.change.role);
        let is_odd = who.contains('\0');
        if role.is_none() && !is_odd {
            // Whoever leaves takes their agents along: locked before any person's row, as whoever redeems takes them.
            agents_sql::lock_owned(tx, who).await?;
        }
        let own = people::role_now(tx, self.by.id(), site)
            .await?
            .ok_or_else(|| Fail::from(Refusal::not_found("site")))?;
        if !own.may_manage() {
            return Err(owners_only().into());
        }
        if is_odd {
            return Err(Refusal::not_found("person").into());
        }
        let person = people_sql::held(tx, who)
            .await?
            .filter(|row| row.disabled_at.is_none() || role.is_none())
            .ok_or_else(|| Fail::from(Refusal::not_found("person")))?;
        let before = sites_sql::role_now(tx, site, &self.who).await?;
        let was = before.as_deref().and_then(Role::from_text);
        self.expect_seen(tx, &person.name, was).await?;
        if was == Some(Role::Owner)
            && role != Some(Role::Owner)
            && sites_sql::managers_without(tx, site, &self.who).await? == 0
        {
            return Err(Refusal::conflict(
                "This is the last person who can manage the site. Make somebody else an owner first. Nothing was changed.",
            )
            .into());
        }
        sites_sql::set_member(tx, site, &self.who, role.map(Role::as_str)).await?;
        policies_sql::set_groups(tx, site, who, &self.change.groups).await?;
        let by = Author::person(&self.by);
        let entry = Entry {
            kind: "member.set",
            actor: &by,
            approval: None,
            body: json!({
                "person": self.who, "name": person.name, "before": before,
                "role": role.map(Role::as_str), "groups": self.change.groups,
            }),
        };
        journal::site(tx, site, now, entry).await?;
        // Whoever owns the workspace owns the site all the same.
        if role.is_none() && person.workspace_owner == 0 {
            agents::leave(tx, who, site, &by, now).await?;
        }
        agents::void_unreachable_now(tx, site, &by, now).await?;
        sites::announce(tx, "members.changed", site, None, now).await?;
        match people::role_now(tx, self.by.id(), site).await? {
            Some(own) => Ok(Some(Members::of(tx.sql(), site, own).await?)),
            None => Ok(None),
        }
    }

    /// Refuses a change that was made from something else than what there is.
    async fn expect_seen(&self, tx: &mut Tx, name: &str, is: Option<Role>) -> Result<(), Fail> {
        let Some(seen) = &self.change.only_after else {
            return Ok(());
        };
        let groups =
            policies_sql::groups_of(tx.sql(), self.site.as_str(), self.who.as_str()).await?;
        let now = seen::member(is, &groups);
        match *seen == now {
            true => Ok(()),
            false => Err(moved(name, is, &groups, *seen == seen::member(None, &[]))
                .with("was", now)
                .into()),
        }
    }
}

fn moved(name: &str, is: Option<Role>, groups: &[String], was_added: bool) -> Refusal {
    let a = match is {
        None => {
            return Refusal::conflict(format!(
                "Somebody took {name} off this site since this page was opened. Nothing was changed. Add them anew if they are to belong to it."
            ));
        }
        Some(Role::Viewer) => "a viewer",
        Some(Role::Editor) => "an editor",
        Some(Role::Approver) => "an approver",
        Some(Role::Owner) => "an owner",
    };
    let groups = match groups {
        [] => "in no group".to_owned(),
        groups => format!("in {}", groups.join(", ")),
    };
    Refusal::conflict(match was_added {
        true => format!(
            "{name} belongs to this site already, as {a}, {groups}. Nothing was changed. Change that in the list of members."
        ),
        false => format!(
            "{name} is {a} of this site by now, {groups}: not what this page showed. Nothing was changed. What you chose is below; save again if it still holds."
        ),
    })
}
