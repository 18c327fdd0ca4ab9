//! Agents as people keep them: who answers for one, which sites and tools it has, and its keys.
//!
//! An agent is kept by the person who owns it and by the owners of the workspace; to anybody else it does not exist. It is
//! put only on sites that its owner belongs to, and reaches them only while its owner does. An owner of a site may take it off.

use super::{
    placing::{put_on, take_from},
    void_soon,
};
use crate::{
    Engine,
    authority::{Author, Steward},
    clock::fresh_id,
    journal::{self, Entry},
    keys,
    people::{self, Person},
    sites,
    store::{
        Fail, Tx,
        agents::{self as sql, AgentRow},
        approvals::lock_agent,
        journal as journal_sql, people as people_sql, sites as sites_sql,
    },
    studio,
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::{AgentId, KeyId, PersonId, SiteId},
    seen,
    time::Timestamp,
    view,
};
use serde_json::{Value, json};

/// Sites and tools that one agent may be given.
const SCOPE_MAX: usize = 200;

/// A new agent, as its owner wants it.
pub struct NewAgent {
    pub name: String,
    pub sites: Vec<SiteId>,
    /// Empty means every tool that agents can have.
    pub tools: Vec<String>,
    pub expires_at: Option<Timestamp>,
}

/// A key that was just made: `secret` is the whole of it, shown once, never stored.
pub struct NewKey {
    pub id: KeyId,
    pub secret: String,
    pub agent: AgentId,
    pub agent_name: String,
    pub expires_at: Option<Timestamp>,
}

/// An agent that was just added, and its first key.
pub struct Added {
    pub agent: view::AgentRow,
    pub key: NewKey,
}

/// What is to be different about an agent; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub sites: Option<Vec<SiteId>>,
    /// Empty means every tool that agents can have.
    pub tools: Option<Vec<String>>,
    pub disabled: Option<bool>,
    /// Only where that is what the agent reaches still: [`seen::agent`] of what the person who changes it saw.
    pub only_after: Option<String>,
}

/// Adds an agent and its first key, as the operator.
pub async fn add(
    engine: &Engine,
    owner: &Person,
    new: NewAgent,
) -> Result<(AgentId, String), Refusal> {
    let added = add_by(engine, &Steward::operator(), owner.id(), new).await?;
    Ok((added.agent.id, added.key.secret))
}

/// Adds an agent of `owner` and its first key. A person adds agents of their own; a workspace owner names anybody.
pub async fn add_by(
    engine: &Engine,
    by: &Steward,
    owner: &PersonId,
    new: NewAgent,
) -> Result<Added, Refusal> {
    let name = check_name(&new.name)?;
    check_scope(engine, Some(&new.sites), Some(&new.tools))?;
    check_end(engine, new.expires_at)?;
    let made = keys::make(keys::Kind::Agent);
    let (key_id, secret_hash, key) = (made.id, made.secret_hash, made.key);
    let id = fresh_id();
    let made = NewKey {
        id: KeyId::new(&key_id),
        secret: key,
        agent: AgentId::new(&id),
        agent_name: name.clone(),
        expires_at: new.expires_at,
    };
    let (by, owner) = (by.clone(), owner.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            journal_sql::lock_workspace(tx).await?;
            let now = tx.now().await?;
            let owner = expect_owner(tx, &by, &owner).await?;
            if !sql::insert(tx, &id, &name, &owner.id, new.tools.is_empty(), now).await? {
                let said = format!("{} has an agent named {name} already, perhaps a disabled one. Choose another name, or give that one a further key (New key in the Studio, or `cloudhal agent key`).", owner.name);
                return Err(Refusal::conflict(said)
                    .with("faults", json!([{"pointer": "/name", "problem": "it is taken"}]))
                    .into());
            }
            put_on(tx, &by, (&id, &name), &owner, &new.sites).await?;
            for tool in &new.tools {
                sql::add_tool(tx, &id, tool).await?;
            }
            sql::insert_key(tx, &key_id, &id, &secret_hash, by.made_by(), now, new.expires_at).await?;
            let body = json!({"agent": id, "name": name, "owner": owner.id, "sites": new.sites, "tools": new.tools, "key": key_id});
            note(tx, &by, "agent.added", body, now).await?;
            let row = expect_there(tx, &AgentId::new(id)).await?;
            Ok(studio::whole_agent(tx.sql(), now, row).await?)
        })
    });
    let agent = unit.await?;
    Ok(Added { agent, key: made })
}

/// Changes what an agent reaches, or stops and starts it again; all of it or nothing. What it still waits for where it lost
/// its access is voided. Answers with the agent as this change left it.
pub async fn change(
    engine: &Engine,
    by: &Steward,
    agent: &AgentId,
    change: Change,
) -> Result<view::AgentRow, Refusal> {
    check_scope(engine, change.sites.as_deref(), change.tools.as_deref())?;
    let (by, agent) = (by.clone(), agent.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let row = expect_kept(tx, &by, &agent).await?;
            let now = tx.now().await?;
            // The agent's row stands for its sites and tools: a redeem that began before is waited for.
            lock_agent(tx, &row.id).await?;
            let before = scope(tx, &row).await?;
            if let Some(seen) = &change.only_after {
                expect_seen(tx, &row, seen).await?;
            }
            apply(tx, &by, &row, &change, now).await?;
            let row = expect_kept(tx, &by, &agent).await?;
            let after = scope(tx, &row).await?;
            if before != after {
                let body =
                    json!({"agent": row.id, "name": row.name, "before": before, "after": after});
                note(tx, &by, "agent.changed", body, now).await?;
            }
            Ok(studio::whole_agent(tx.sql(), now, row).await?)
        })
    });
    let agent = unit.await?;
    void_soon(engine).await;
    Ok(agent)
}

async fn apply(
    tx: &mut Tx,
    by: &Steward,
    row: &AgentRow,
    change: &Change,
    now: Timestamp,
) -> Result<(), Fail> {
    if let Some(wanted) = &change.sites {
        let has = sql::sites_of(tx, &row.id).await?;
        let is_new = |site: &&SiteId| !has.iter().any(|(id,)| id == site.as_str());
        let added: Vec<SiteId> = wanted.iter().filter(is_new).cloned().collect();
        let owner = people_sql::by_id(tx.sql(), &row.owner_id)
            .await?
            .ok_or_else(|| Fail::from(Refusal::not_found("person")))?;
        put_on(tx, by, (&row.id, &row.name), &owner, &added).await?;
        for (site,) in has {
            if !wanted.iter().any(|one| one.as_str() == site) {
                take_from(tx, by, row, &site, now).await?;
            }
        }
    }
    if let Some(tools) = &change.tools {
        sql::set_tools(tx, &row.id, tools).await?;
    }
    match (change.disabled, row.disabled_at.is_some()) {
        (Some(true), false) => sql::set_disabled(tx, &row.id, Some(now)).await?,
        (Some(false), true) => sql::set_disabled(tx, &row.id, None).await?,
        _ => {}
    }
    Ok(())
}

/// Whoever owns the workspace no more takes their agents off the sites that they are no member of, told in the workspace's
/// journal. `owned` are their agents; the caller holds their
/// locks and the workspace's.
pub(crate) async fn take_along_everywhere(
    tx: &mut Tx,
    by: &Steward,
    owned: &[String],
    owner: &str,
    now: Timestamp,
) -> Result<(), Fail> {
    let mut before = Vec::with_capacity(owned.len());
    for agent in owned {
        if let Some(row) = sql::by_id(tx.sql(), agent).await? {
            before.push((scope(tx, &row).await?, row));
        }
    }
    sql::take_along_everywhere(tx, owner).await?;
    for (before, row) in before {
        let after = scope(tx, &row).await?;
        if before != after {
            let body = json!({"agent": row.id, "name": row.name, "before": before, "after": after});
            note(tx, by, "agent.changed", body, now).await?;
        }
    }
    Ok(())
}

/// Refuses a change that was made from another scope than there is, as pages show it.
async fn expect_seen(tx: &mut Tx, row: &AgentRow, seen: &str) -> Result<(), Fail> {
    let sites = sites_sql::of_agent(tx.sql(), &row.id).await?;
    let tools = sql::tools(tx.sql(), &row.id).await?;
    let tools: Vec<String> = tools.into_iter().map(|(tool,)| tool).collect();
    let now = seen::agent(sites.iter().map(|site| site.id.as_str()), &tools);
    if seen == now {
        return Ok(());
    }
    let titles: Vec<&str> = sites.iter().map(|site| site.title.as_str()).collect();
    let on = match titles.is_empty() {
        true => "no site".to_owned(),
        false => titles.join(", "),
    };
    let with = match tools.is_empty() {
        true => "every tool".to_owned(),
        false => tools.join(", "),
    };
    Err(Refusal::conflict(format!(
        "{} works on {on} by now, with {with}: not what this page showed. Nothing was changed. What you chose is below; save again if it still holds.",
        row.name
    ))
    .with("was", now)
    .into())
}

/// What an agent was given, for the journal.
async fn scope(tx: &mut Tx, row: &AgentRow) -> Result<Value, Fail> {
    let sites: Vec<String> = sql::sites_of(tx, &row.id)
        .await?
        .into_iter()
        .map(|(site,)| site)
        .collect();
    let tools: Vec<String> = sql::tools(tx.sql(), &row.id)
        .await?
        .into_iter()
        .map(|(tool,)| tool)
        .collect();
    Ok(json!({"sites": sites, "tools": tools, "disabled": row.disabled_at.is_some()}))
}

/// A further key. Approvals are the agent's, so it redeems what an older key asked.
pub async fn new_key(
    engine: &Engine,
    by: &Steward,
    agent: &AgentId,
    expires_at: Option<Timestamp>,
) -> Result<NewKey, Refusal> {
    check_end(engine, expires_at)?;
    let made = keys::make(keys::Kind::Agent);
    let (key_id, secret_hash, key) = (made.id, made.secret_hash, made.key);
    let (by, agent) = (by.clone(), agent.clone());
    let id = KeyId::new(&key_id);
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let row = expect_kept(tx, &by, &agent).await?;
            let now = tx.now().await?;
            if row.disabled_at.is_some() {
                let said = format!(
                    "{} is disabled: no key of its opens anything. Enable it first.",
                    row.name
                );
                return Err(Refusal::conflict(said).into());
            }
            sql::insert_key(
                tx,
                &key_id,
                &row.id,
                &secret_hash,
                by.made_by(),
                now,
                expires_at,
            )
            .await?;
            let body =
                json!({"agent": row.id, "name": row.name, "key": key_id, "expiresAt": expires_at});
            note(tx, &by, "key.added", body, now).await?;
            Ok(row)
        })
    });
    let row = unit.await?;
    Ok(NewKey {
        id,
        secret: key,
        agent: AgentId::new(row.id),
        agent_name: row.name,
        expires_at,
    })
}

/// Every agent on a line of its own, from the command line: name, owner, sites, good keys, parted by tabs.
pub async fn everyone(engine: &Engine) -> Result<Vec<String>, Refusal> {
    let (db, now) = (engine.store().read(), engine.now().ms());
    let mut lines = Vec::new();
    for row in sql::all(db).await? {
        let sites = sites_sql::of_agent(db, &row.id).await?;
        let slugs: Vec<String> = sites.into_iter().map(|site| site.slug).collect();
        let keys = sql::keys(db, &row.id).await?.into_iter();
        let good =
            keys.filter(|key| key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > now));
        let shown: Vec<String> = good.map(|key| keys::Kind::Agent.shown(&key.id)).collect();
        let keys = match row.disabled_at {
            Some(_) => "disabled".to_owned(),
            None => shown.join(" "),
        };
        lines.push(format!(
            "{}\t{}\t{}\t{keys}",
            row.name,
            row.owner_name,
            slugs.join(" ")
        ));
    }
    Ok(lines)
}

/// A further key for the agent of that name of a person, from the command line.
pub async fn add_key(
    engine: &Engine,
    owner: &Person,
    name: &str,
    expires_at: Option<Timestamp>,
) -> Result<String, Refusal> {
    let rows = sql::owned_by(engine.store().read(), owner.id().as_str()).await?;
    let Some(agent) = rows.into_iter().find(|row| row.name == name.trim()) else {
        let said = format!(
            "{} has no agent named {}; add it with `cloudhal agent add`.",
            owner.name(),
            name.trim()
        );
        return Err(Refusal::new(Code::NotFound, said));
    };
    let agent = AgentId::new(agent.id);
    let key = new_key(engine, &Steward::operator(), &agent, expires_at).await?;
    Ok(key.secret)
}

/// Ends a key: the next call with it is refused. Nothing is said of one that is not this agent's, or ended already. Answers
/// with the agent as this change left it.
pub async fn revoke_key(
    engine: &Engine,
    by: &Steward,
    agent: &AgentId,
    key: &KeyId,
) -> Result<view::AgentRow, Refusal> {
    let (by, agent, key) = (by.clone(), agent.clone(), key.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let row = expect_kept(tx, &by, &agent).await?;
            let now = tx.now().await?;
            let its_own =
                !key.as_str().contains('\0') && sql::is_key_of(tx, key.as_str(), &row.id).await?;
            if !its_own || !sql::revoke_key(tx, key.as_str(), now).await? {
                return Err(Refusal::not_found("key").into());
            }
            let body = json!({"agent": row.id, "name": row.name, "key": key});
            note(tx, &by, "key.revoked", body, now).await?;
            Ok(studio::whole_agent(tx.sql(), now, row).await?)
        })
    });
    Ok(unit.await?)
}

/// Ends the one good key that begins like this, from the command line; returns its agent's name.
pub async fn revoke_by_prefix(engine: &Engine, shown: &str) -> Result<String, Refusal> {
    let shown = shown.trim().trim_end_matches('…');
    let id = shown
        .strip_prefix(keys::Kind::Agent.prefix())
        .unwrap_or(shown)
        .split('_')
        .next()
        .unwrap_or_default()
        .to_owned();
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            journal_sql::lock_workspace(tx).await?;
            let now = tx.now().await?;
            let found = sql::good_keys(tx, &id).await?;
            let [(key, agent, name)] = found.as_slice() else {
                let problem = if found.is_empty() {
                    "No good key begins like that."
                } else {
                    "More than one key begins like that. Give more of it."
                };
                return Err(Refusal::new(Code::InvalidArguments, problem).into());
            };
            sql::revoke_key(tx, key, now).await?;
            let body = json!({"agent": agent, "name": name, "key": key});
            note(tx, &Steward::operator(), "key.revoked", body, now).await?;
            Ok(name.clone())
        })
    });
    Ok(unit.await?)
}

/// The lock that every change begins with, and the agent, if this steward keeps it.
async fn expect_kept(tx: &mut Tx, by: &Steward, agent: &AgentId) -> Result<AgentRow, Fail> {
    journal_sql::lock_workspace(tx).await?;
    let row = expect_there(tx, agent).await?;
    let own = by
        .as_person()
        .is_some_and(|person| person.id().as_str() == row.owner_id);
    match own || people::is_owner_now(tx, by).await? {
        true => Ok(row),
        false => Err(Refusal::not_found("agent").into()),
    }
}

async fn expect_there(tx: &mut Tx, agent: &AgentId) -> Result<AgentRow, Fail> {
    let row = match agent.as_str().contains('\0') {
        true => None,
        false => sql::by_id(tx.sql(), agent.as_str()).await?,
    };
    row.ok_or_else(|| Refusal::not_found("agent").into())
}

/// Who is to own a new agent: whoever adds it, or, for a workspace owner, anybody who is not disabled.
async fn expect_owner(
    tx: &mut Tx,
    by: &Steward,
    owner: &PersonId,
) -> Result<people_sql::PersonRow, Fail> {
    let own = by.as_person().is_some_and(|person| person.id() == owner);
    if !own && !people::is_owner_now(tx, by).await? {
        return Err(Refusal::new(
            Code::Forbidden,
            "You can add agents of your own. Only an owner of the workspace adds one for somebody else. Nothing was changed.",
        )
        .into());
    }
    let found = match owner.as_str().contains('\0') {
        true => None,
        false => people_sql::by_id(tx.sql(), owner.as_str()).await?,
    };
    found
        .filter(|row| row.disabled_at.is_none())
        .ok_or_else(|| Refusal::not_found("person").into())
}

async fn note(
    tx: &mut Tx,
    by: &Steward,
    kind: &str,
    body: Value,
    now: Timestamp,
) -> Result<(), Fail> {
    let actor: Author = by.author();
    let entry = Entry {
        kind,
        actor: &actor,
        approval: None,
        body,
    };
    journal::workspace(tx, now, entry).await?;
    sites::announce(tx, "people.changed", "", None, now).await
}

fn check_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    if name.is_empty()
        || name.chars().count() > 60
        || name.contains(char::is_control)
        || cloudhal_domain::odd::count(name) > 0
    {
        return Err(at_fault(
            "/name",
            "An agent's name needs 1 to 60 visible characters.",
        ));
    }
    Ok(name.to_owned())
}

fn check_scope(
    engine: &Engine,
    sites: Option<&[SiteId]>,
    tools: Option<&[String]>,
) -> Result<(), Refusal> {
    let sites = sites.unwrap_or_default();
    if sites.len() > SCOPE_MAX || sites.iter().any(|site| site.as_str().contains('\0')) {
        return Err(at_fault("/sites", "That is no list of an agent's sites."));
    }
    let tools = tools.unwrap_or_default();
    if tools.len() > SCOPE_MAX {
        return Err(at_fault("/tools", "That is no list of an agent's tools."));
    }
    for tool in tools {
        engine.tools().get(tool)?;
    }
    Ok(())
}

fn check_end(engine: &Engine, expires_at: Option<Timestamp>) -> Result<(), Refusal> {
    match expires_at {
        Some(at) if at <= engine.now() => Err(at_fault(
            "/expiresAt",
            "A key has to end in the future, or not at all.",
        )),
        _ => Ok(()),
    }
}

fn at_fault(pointer: &str, problem: &str) -> Refusal {
    Refusal::new(
        Code::InvalidArguments,
        format!("{problem} Nothing was changed."),
    )
    .with("faults", json!([{"pointer": pointer, "problem": problem}]))
}
