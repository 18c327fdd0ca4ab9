//! Who there is and what they may: people, agents with their keys, a site's members and policy.

use super::site_of;
use crate::{
    Engine, keys,
    members::{self, Members},
    people::{self, Person},
    personal_keys, policies,
    store::{
        Connection, StoreError,
        agents::{self as agents_sql, AgentRow as StoredAgent},
        sites::{self as sites_sql, SiteRow as StoredSite},
    },
    webhooks,
};
use cloudhal_domain::{
    canonical,
    card::Owner,
    code::Refusal,
    id::{AgentId, KeyId, PersonId, SiteId},
    policy_form::CanWait,
    time::Timestamp,
    tool::Effect,
    view::*,
};
use serde_json::json;
use std::collections::BTreeSet;

/// Deliveries on a page, for each destination.
const DELIVERIES_SHOWN: usize = 20;

/// Everybody with an account; for a workspace owner.
pub async fn people(engine: &Engine, person: &Person) -> Result<PeopleView, Refusal> {
    Ok(PeopleView {
        people: people::list(engine, person).await?,
        you: person.id().clone(),
        posted: Posted::default(),
    })
}

/// The agents that a person owns or meets on their sites. Of somebody else's agent they see what it does on sites of theirs,
/// and none of its keys.
pub async fn agents(engine: &Engine, person: &Person) -> Result<AgentsView, Refusal> {
    let db = engine.store().read();
    let rows = if person.is_workspace_owner() {
        agents_sql::all(db).await?
    } else {
        agents_sql::visible_to(db, person.id().as_str()).await?
    };
    let owners = if person.is_workspace_owner() {
        let all = people::list(engine, person).await?;
        let able = all.into_iter().filter(|one| one.disabled_at.is_none());
        able.map(|one| Owner {
            id: one.id,
            name: one.name,
        })
        .collect()
    } else {
        Vec::new()
    };
    let sites = {
        let mut db = engine.store().reader().await?;
        own_sites(&mut db, person).await?
    };
    Ok(AgentsView {
        agents: rows_for(engine, person, rows).await?,
        mcp_url: engine.mcp_url(),
        sites: sites.into_iter().map(site_name).collect(),
        tools: tools_of_agents(engine),
        owners,
        own_keys: personal_keys::list(engine, person).await?,
        posted: Posted::default(),
    })
}

/// The agents that a person keeps: their own, or all of them for a workspace owner.
pub async fn agents_kept(engine: &Engine, person: &Person) -> Result<Vec<AgentRow>, Refusal> {
    let db = engine.store().read();
    let rows = if person.is_workspace_owner() {
        agents_sql::all(db).await?
    } else {
        agents_sql::owned_by(db, person.id().as_str()).await?
    };
    rows_for(engine, person, rows).await
}

/// One of them.
pub async fn agent(engine: &Engine, person: &Person, agent: &AgentId) -> Result<AgentRow, Refusal> {
    let row = match agent.as_str().contains('\0') {
        true => None,
        false => agents_sql::by_id(engine.store().read(), agent.as_str()).await?,
    };
    let kept = row.filter(|row| keeps(person, row));
    let rows = rows_for(engine, person, kept.into_iter().collect()).await?;
    rows.into_iter()
        .next()
        .ok_or_else(|| Refusal::not_found("agent"))
}

/// The agents at work on a site, for those who may see the site.
pub async fn site_agents(
    engine: &Engine,
    person: &Person,
    site: &SiteId,
) -> Result<Vec<AgentRow>, Refusal> {
    people::role_on(engine, person, site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let mut db = engine.store().reader().await?;
    Ok(agents_on(&mut db, engine.now(), Some(person), site).await?)
}

/// The same from a connection; for nobody in particular, the whole of each.
pub(crate) async fn agents_on(
    db: &mut Connection,
    now: Timestamp,
    looks: Option<&Person>,
    site: &SiteId,
) -> Result<Vec<AgentRow>, StoreError> {
    let rows = agents_sql::on_site(&mut *db, site.as_str()).await?;
    rows_seen(db, now, looks, rows).await
}

/// The agents that were taken off a site and may be put back, for its owners.
async fn agents_taken_off(
    engine: &Engine,
    person: &Person,
    site: &SiteId,
) -> Result<Vec<AgentRow>, Refusal> {
    let rows = agents_sql::barred_from(engine.store().read(), site.as_str()).await?;
    rows_for(engine, person, rows).await
}

fn keeps(person: &Person, agent: &StoredAgent) -> bool {
    person.is_workspace_owner() || agent.owner_id == person.id().as_str()
}

async fn rows_for(
    engine: &Engine,
    person: &Person,
    rows: Vec<StoredAgent>,
) -> Result<Vec<AgentRow>, Refusal> {
    let mut db = engine.store().reader().await?;
    Ok(rows_seen(&mut db, engine.now(), Some(person), rows).await?)
}

async fn rows_seen(
    db: &mut Connection,
    now: Timestamp,
    looks: Option<&Person>,
    rows: Vec<StoredAgent>,
) -> Result<Vec<AgentRow>, StoreError> {
    let own: BTreeSet<String> = match looks {
        Some(person) => own_sites(&mut *db, person).await?,
        None => Vec::new(),
    }
    .into_iter()
    .map(|site| site.id)
    .collect();
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        out.push(row_for(db, now, looks.map(|person| (person, &own)), row).await?);
    }
    Ok(out)
}

/// An agent as whoever keeps it sees it.
pub(crate) async fn whole_agent(
    db: &mut Connection,
    now: Timestamp,
    row: StoredAgent,
) -> Result<AgentRow, StoreError> {
    row_for(db, now, None, row).await
}

/// As a person with these sites sees it, or whole.
async fn row_for(
    db: &mut Connection,
    now: Timestamp,
    looks: Option<(&Person, &BTreeSet<String>)>,
    row: StoredAgent,
) -> Result<AgentRow, StoreError> {
    let partly = looks.filter(|(person, _)| !keeps(person, &row));
    let (keys, waiting) = match partly {
        None => (
            agents_sql::keys(&mut *db, &row.id).await?,
            agents_sql::waiting(&mut *db, &row.id, now).await?,
        ),
        Some((person, _)) => (
            Vec::new(),
            agents_sql::waiting_for(&mut *db, &row.id, person.id().as_str(), now).await?,
        ),
    };
    let sites = sites_sql::of_agent(&mut *db, &row.id).await?;
    let seen = |site: &StoredSite| partly.is_none_or(|(_, own)| own.contains(&site.id));
    let tools = agents_sql::tools(&mut *db, &row.id).await?;
    Ok(AgentRow {
        sites: sites.into_iter().filter(seen).map(site_name).collect(),
        tools: tools.into_iter().map(|(tool,)| tool).collect(),
        keys: keys.into_iter().map(key).collect(),
        waiting,
        manageable: partly.is_none(),
        id: AgentId::new(row.id),
        name: row.name,
        owner: Owner {
            id: PersonId::new(row.owner_id),
            name: row.owner_name,
        },
        created_at: Timestamp(row.created_at),
        disabled_at: row.disabled_at.map(Timestamp),
    })
}

fn key(row: agents_sql::KeyRow) -> KeyRow {
    KeyRow {
        prefix: keys::Kind::Agent.shown(&row.id),
        id: KeyId::new(row.id),
        created_at: Timestamp(row.created_at),
        expires_at: row.expires_at.map(Timestamp),
        revoked_at: row.revoked_at.map(Timestamp),
        last_used_at: row.last_used_at.map(Timestamp),
    }
}

fn site_name(site: StoredSite) -> SiteName {
    SiteName {
        id: SiteId::new(site.id),
        slug: site.slug,
        title: site.title,
    }
}

async fn own_sites(db: &mut Connection, person: &Person) -> Result<Vec<StoredSite>, StoreError> {
    match person.is_workspace_owner() {
        true => sites_sql::all(db).await,
        false => sites_sql::of_person(db, person.id()).await,
    }
}

/// What an agent can be given; approvals of its own are in every scope and are not listed.
fn tools_of_agents(engine: &Engine) -> Vec<String> {
    engine
        .tools()
        .all()
        .iter()
        .filter(|tool| tool.spec.effect != Effect::Approvals)
        .map(|tool| tool.spec.id.to_owned())
        .collect()
}

async fn webhooks_view(
    engine: &Engine,
    person: &Person,
    site: &SiteId,
) -> Result<WebhooksView, Refusal> {
    let mut destinations = Vec::new();
    for mut webhook in webhooks::list(engine, person, site).await? {
        let still_signs = |until: &Timestamp| *until > engine.now();
        webhook.old_secret_until = webhook.old_secret_until.filter(still_signs);
        let mut deliveries = webhooks::deliveries(engine, person, site, &webhook.id).await?;
        deliveries.truncate(DELIVERIES_SHOWN);
        destinations.push(Destination {
            host: webhooks::place(&webhook.url),
            webhook,
            deliveries,
        });
    }
    Ok(WebhooksView {
        enabled: webhooks::are_on(engine),
        destinations,
    })
}

/// Members, agents, policy and (for an owner) webhooks of a site, for those who may see it.
pub async fn settings(
    engine: &Engine,
    person: &Person,
    slug: &str,
) -> Result<SettingsView, Refusal> {
    let (site, role) = site_of(engine, person, slug).await?;
    let id = SiteId::new(&site.id);
    let Members {
        items: members,
        unsatisfiable,
    } = members::list(engine, person, &id).await?;
    let policy = policies::get(engine, person, &id).await?;
    let asked = policy.tools.values().chain([&policy.default]);
    let groups: BTreeSet<String> = asked
        .flat_map(|rule| &rule.groups)
        .chain(members.iter().flat_map(|member| &member.groups))
        .cloned()
        .collect();
    let (always, drafts) = (policies::gated_tools(engine), policies::draft_tools(engine));
    let can_wait = CanWait {
        always: &always,
        may: &drafts,
    };
    let (webhooks, taken_off) = match role.may_manage() {
        true => (
            Some(webhooks_view(engine, person, &id).await?),
            agents_taken_off(engine, person, &id).await?,
        ),
        false => (None, Vec::new()),
    };
    Ok(SettingsView {
        webhooks,
        taken_off,
        agents: site_agents(engine, person, &id).await?,
        unsatisfiable,
        gated: can_wait
            .asked(&policy)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        drafts: drafts.iter().map(|tool| (*tool).to_owned()).collect(),
        groups: groups.into_iter().collect(),
        slug: site.slug,
        title: site.title,
        role,
        you: person.id().clone(),
        workspace_owner: person.is_workspace_owner(),
        members,
        policy_text: canonical::text(&json!(policy)),
        policy,
        posted: Posted::default(),
    })
}
