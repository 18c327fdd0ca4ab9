//! On which sites an agent is. Whoever keeps it puts it on sites that its owner belongs to, and takes it off again; an owner of
//! a site takes any agent off, and then only an owner of the site puts it on again. Whoever leaves takes their agents along.

use super::void_unreachable_now;
use crate::{
    Engine,
    authority::{Author, Steward},
    journal::{self, Entry},
    people,
    sites::{self, LockedSite},
    store::{
        Fail, Tx,
        agents::{self as sql, AgentRow},
        approvals::lock_agent,
        people as people_sql, sites as sites_sql,
    },
    studio,
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::{AgentId, PersonId, SiteId},
    role::Role,
    time::Timestamp,
    view,
};
use serde_json::json;

/// Takes an agent off a site, as an owner of the site or whoever keeps the agent. What it waits for there is voided.
/// Answers with the agents that are left on the site, as the steward sees them.
pub async fn take_off(
    engine: &Engine,
    by: &Steward,
    site: &SiteId,
    agent: &AgentId,
) -> Result<Vec<view::AgentRow>, Refusal> {
    let (by, site, agent) = (by.clone(), site.clone(), agent.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = LockedSite::expect(tx, &site).await?.now();
            // Whoever redeems for it holds its row; agents are locked before any person's row.
            let row = match agent.as_str().contains('\0') {
                true => None,
                false => {
                    lock_agent(tx, agent.as_str()).await?;
                    sql::by_id(tx.sql(), agent.as_str()).await?
                }
            };
            may_take_off(tx, &by, &site, row.as_ref()).await?;
            let row = row.ok_or_else(|| Fail::from(Refusal::not_found("agent")))?;
            if !take_from(tx, &by, &row, site.as_str(), now).await? {
                return Err(Refusal::not_found("agent").into());
            }
            let author = by.author();
            let entry = Entry {
                kind: "agent.taken_off",
                actor: &author,
                approval: None,
                body: json!({"agent": row.id, "name": row.name}),
            };
            journal::site(tx, site.as_str(), now, entry).await?;
            void_unreachable_now(tx, site.as_str(), &author, now).await?;
            sites::announce(tx, "members.changed", site.as_str(), None, now).await?;
            Ok(studio::agents_on(tx.sql(), now, by.as_person(), &site).await?)
        })
    });
    Ok(unit.await?)
}

/// A member who may not is told so; to anybody else the site is not there.
async fn may_take_off(
    tx: &mut Tx,
    by: &Steward,
    site: &SiteId,
    row: Option<&AgentRow>,
) -> Result<(), Fail> {
    let Some(person) = by.as_person() else {
        return Ok(());
    };
    let role = people::role_now(tx, person.id(), site.as_str())
        .await?
        .ok_or_else(|| Fail::from(Refusal::not_found("site")))?;
    let own = row.is_some_and(|row| row.owner_id == person.id().as_str());
    if role.may_manage() || own {
        return Ok(());
    }
    Err(Refusal::new(
        Code::Forbidden,
        "Only an owner of the site, or whoever owns the agent, takes it off. Nothing was changed.",
    )
    .into())
}

/// Takes an agent, whose row is locked, off a site; where it is not its owner who does, that lasts. Returns false where it was
/// not there.
pub(super) async fn take_from(
    tx: &mut Tx,
    by: &Steward,
    agent: &AgentRow,
    site: &str,
    now: Timestamp,
) -> Result<bool, Fail> {
    let was_there = sql::remove_site(tx, &agent.id, site).await?;
    let own = by
        .as_person()
        .is_some_and(|person| person.id().as_str() == agent.owner_id);
    if was_there && !own {
        sql::bar(tx, &agent.id, site, now).await?;
    }
    Ok(was_there)
}

/// Puts an agent on a site again that somebody else than its owner took off it; a right of the site's owners.
pub async fn put_back(
    engine: &Engine,
    by: &Steward,
    site: &SiteId,
    agent: &AgentId,
) -> Result<(), Refusal> {
    let (by, site, agent) = (by.clone(), site.clone(), agent.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = LockedSite::expect(tx, &site).await?.now();
            let not_there = || Fail::from(Refusal::not_found("agent"));
            let is_odd = agent.as_str().contains('\0');
            if !is_odd {
                lock_agent(tx, agent.as_str()).await?;
            }
            let role = role_of(tx, &by, &site)
                .await?
                .ok_or_else(|| Fail::from(Refusal::not_found("site")))?;
            if !role.may_manage() {
                return Err(Refusal::new(
                    Code::Forbidden,
                    "Only an owner of the site puts an agent on it again that was taken off. Nothing was changed.",
                )
                .into());
            }
            if is_odd {
                return Err(not_there());
            }
            let row = sql::by_id(tx.sql(), agent.as_str())
                .await?
                .ok_or_else(not_there)?;
            if !sql::unbar(tx, &row.id, site.as_str()).await? {
                return Err(not_there());
            }
            let owner = PersonId::new(&row.owner_id);
            if people::role_now(tx, &owner, site.as_str()).await?.is_none() {
                return Err(Refusal::conflict(format!(
                    "{} works only where {} does, who does not belong to this site. Nothing was changed.",
                    row.name, row.owner_name
                ))
                .into());
            }
            sql::add_site(tx, &row.id, site.as_str()).await?;
            let entry = Entry {
                kind: "agent.put_back",
                actor: &by.author(),
                approval: None,
                body: json!({"agent": row.id, "name": row.name}),
            };
            journal::site(tx, site.as_str(), now, entry).await?;
            sites::announce(tx, "members.changed", site.as_str(), None, now).await
        })
    });
    Ok(unit.await?)
}

/// What a steward may do on a site at this moment; the operator everything.
async fn role_of(tx: &mut Tx, by: &Steward, site: &SiteId) -> Result<Option<Role>, Fail> {
    match by.as_person() {
        Some(person) => people::role_now(tx, person.id(), site.as_str()).await,
        None => Ok(Some(Role::Owner)),
    }
}

/// Puts an agent on sites that its owner belongs to; one answer for a site that is not there and one that is not the owner's.
pub(super) async fn put_on(
    tx: &mut Tx,
    by: &Steward,
    (agent, name): (&str, &str),
    owner: &people_sql::PersonRow,
    sites: &[SiteId],
) -> Result<(), Fail> {
    for site in sites {
        let there = sites_sql::is_there(tx, site.as_str()).await?;
        // Whoever takes the owner off the site at this moment waits, and then takes this along.
        sites_sql::hold_member(tx, site.as_str(), &owner.id).await?;
        let role = people::role_now(tx, &PersonId::new(&owner.id), site.as_str()).await?;
        if !there || role.is_none() {
            let said = format!(
                "There is no such site, or {} does not belong to it: an agent works only where its owner does. Nothing was changed.",
                owner.name
            );
            return Err(Refusal::new(Code::NotFound, said).into());
        }
        if sql::is_barred(tx, agent, site.as_str()).await? {
            let role = role_of(tx, by, site).await?;
            if !role.is_some_and(Role::may_manage) {
                return Err(taken_off(tx, name, site).await?.into());
            }
            sql::unbar(tx, agent, site.as_str()).await?;
        }
        sql::add_site(tx, agent, site.as_str()).await?;
    }
    Ok(())
}

async fn taken_off(tx: &mut Tx, agent: &str, site: &SiteId) -> Result<Refusal, Fail> {
    let title = sites_sql::title(tx, site.as_str()).await?;
    let problem = format!(
        "An owner of {title} took {agent} off. Only an owner of the site puts it on again, in the site's settings."
    );
    let said = format!("{problem} Nothing was changed.");
    Ok(Refusal::new(Code::Forbidden, said)
        .with("faults", json!([{"pointer": "/sites", "problem": problem}])))
}

/// Whoever does not belong to a site any more takes their agents off it; told in the site's journal. The caller holds the
/// site's lock and the agents'.
pub(crate) async fn leave(
    tx: &mut Tx,
    owner: &str,
    site: &str,
    by: &Author,
    now: Timestamp,
) -> Result<(), Fail> {
    for agent in sql::take_along(tx, owner, site).await? {
        let row = sql::by_id(tx.sql(), &agent).await?;
        let entry = Entry {
            kind: "agent.taken_off",
            actor: by,
            approval: None,
            body: json!({"agent": agent, "name": row.map(|row| row.name), "withOwner": owner}),
        };
        journal::site(tx, site, now, entry).await?;
    }
    Ok(())
}
