//! SQL for agents, their keys and their scopes.

use super::{StoreError, Tx};
use cloudhal_domain::time::Timestamp;
use sqlx::{Any, AnyPool, Executor, Row as _};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AgentRow {
    pub id: String,
    pub name: String,
    pub owner_id: String,
    pub owner_name: String,
    pub all_tools: i64,
    pub created_at: i64,
    pub disabled_at: Option<i64>,
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct KeyRow {
    pub id: String,
    pub agent_id: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    pub last_used_at: Option<i64>,
}

/// What one look at a key tells: enough to know its holder, and no more than its holder may do.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct HolderRow {
    pub key_id: String,
    pub secret_hash: String,
    pub agent_id: String,
    pub agent_name: String,
    pub owner_id: String,
    pub owner_name: String,
    pub all_tools: i64,
}

/// The holder of a key that is good now: neither revoked nor expired; agent, owner and whoever made the key not disabled.
pub async fn holder(
    pool: &AnyPool,
    key: &str,
    now: Timestamp,
) -> Result<Option<HolderRow>, StoreError> {
    let sql = "select k.id as key_id, k.secret_hash, a.id as agent_id, a.name as agent_name, p.id as owner_id, p.name as owner_name, a.all_tools
        from agent_keys k join agents a on a.id = k.agent_id join people p on p.id = a.owner_id
        where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2) and a.disabled_at is null and p.disabled_at is null
          and not exists (select 1 from people maker where maker.id = k.made_by and maker.disabled_at is not null)";
    Ok(sqlx::query_as(sql)
        .bind(key)
        .bind(now.ms())
        .fetch_optional(pool)
        .await?)
}

/// An agent reaches a site while it is put on it, neither it nor its owner is disabled, and the owner belongs to the site
/// still: taking a person off a site takes their agents off it at once.
macro_rules! reach {
    ($what:literal) => {
        concat!(
            "select ", $what, " from agents a join people p on p.id = a.owner_id join agent_sites s on s.agent_id = a.id
             left join memberships m on m.person_id = p.id and m.site_id = s.site_id
             where a.disabled_at is null and p.disabled_at is null and (p.workspace_owner = 1 or m.role is not null) "
        )
    };
}

/// The role of the agent's owner on a site that the agent reaches; `None` where it does not reach it.
pub async fn owners_role(
    db: impl Executor<'_, Database = Any>,
    agent: &str,
    site: &str,
) -> Result<Option<String>, StoreError> {
    let sql = concat!(
        reach!("case when p.workspace_owner = 1 then 'owner' else m.role end"),
        "and a.id = $1 and s.site_id = $2"
    );
    let row = sqlx::query(sql)
        .bind(agent)
        .bind(site)
        .fetch_optional(db)
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// What is left of an agent's right to call a tool on a site.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ReachRow {
    /// The role of the person who answers for it.
    pub role: String,
    pub may_call: i64,
}

/// Asked again inside the unit of work, after [`key_is_good`] holds the agent: a change of its sites or tools takes the agent's
/// row first. `None` where the agent does not reach the site.
pub async fn reach_now(
    tx: &mut Tx,
    agent: &str,
    site: &str,
    tool: &str,
) -> Result<Option<ReachRow>, StoreError> {
    let sql = concat!(
        reach!(
            "case when p.workspace_owner = 1 then 'owner' else m.role end as role,
             case when a.all_tools = 1 or exists (select 1 from agent_tools t where t.agent_id = a.id and t.tool = $3) then 1 else 0 end as may_call"
        ),
        "and a.id = $1 and s.site_id = $2"
    );
    Ok(sqlx::query_as(sql)
        .bind(agent)
        .bind(site)
        .bind(tool)
        .fetch_optional(tx.sql())
        .await?)
}

/// A request that waits and whose caller does not reach its site any more: an agent, or a person with their own client.
macro_rules! unreachable {
    ($request:literal) => {
        concat!(
            $request, ".status in ('pending', 'approved') and (
                ", $request, ".caller_kind = 'agent' and not exists (", reach!("1"), "and a.id = ", $request, ".caller_id and s.site_id = ", $request, ".site_id)
                or ", $request, ".caller_kind = 'person' and not exists (select 1 from people p where p.id = ", $request, ".caller_id and p.disabled_at is null
                    and (p.workspace_owner = 1 or exists (select 1 from memberships m where m.person_id = p.id and m.site_id = ", $request, ".site_id))))"
        )
    };
}

/// How many requests of an agent wait on sites that it reaches.
pub async fn waiting(
    db: impl Executor<'_, Database = Any>,
    agent: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let sql = concat!(
        "select count(*) from approvals r where r.caller_kind = 'agent' and r.caller_id = $1 and r.status = 'pending' and r.expires_at > $2 and exists (",
        reach!("1"),
        "and a.id = r.caller_id and s.site_id = r.site_id)"
    );
    let query = sqlx::query(sql).bind(agent).bind(now.ms());
    Ok(query.fetch_one(db).await?.try_get(0)?)
}

/// The same, of the sites of one person alone.
pub async fn waiting_for(
    db: impl Executor<'_, Database = Any>,
    agent: &str,
    person: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let sql = concat!(
        "select count(*) from approvals r where r.caller_kind = 'agent' and r.caller_id = $1 and r.status = 'pending' and r.expires_at > $2
           and r.site_id in (select m.site_id from memberships m where m.person_id = $3) and exists (",
        reach!("1"),
        "and a.id = r.caller_id and s.site_id = r.site_id)"
    );
    let query = sqlx::query(sql).bind(agent).bind(now.ms()).bind(person);
    Ok(query.fetch_one(db).await?.try_get(0)?)
}

/// Sites with requests that wait of callers who do not reach them any more.
pub async fn sites_with_unreachable(pool: &AnyPool) -> Result<Vec<(String,)>, StoreError> {
    let sql = concat!(
        "select distinct r.site_id from approvals r where ",
        unreachable!("r"),
        " order by r.site_id"
    );
    Ok(sqlx::query_as(sql).fetch_all(pool).await?)
}

/// Voids those requests on one site; the caller holds its lock.
pub async fn void_unreachable(
    tx: &mut Tx,
    site: &str,
    now: Timestamp,
) -> Result<Vec<(String,)>, StoreError> {
    let sql = concat!(
        "update approvals set status = 'voided', changed_at = $1, void_cause = 'access_lost'
         where site_id = $2 and expires_at > $1 and ",
        unreachable!("approvals"),
        " returning id"
    );
    Ok(sqlx::query_as(sql)
        .bind(now.ms())
        .bind(site)
        .fetch_all(tx.sql())
        .await?)
}

/// Whether the key that a call came with is still as good as [`holder`] wants it, and holds it, its agent and its owner as they
/// are.
pub async fn key_is_good(tx: &mut Tx, key: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql = held!(tx, "select k.id from agent_keys k join agents a on a.id = k.agent_id join people p on p.id = a.owner_id
        where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $2) and a.disabled_at is null and p.disabled_at is null
          and not exists (select 1 from people maker where maker.id = k.made_by and maker.disabled_at is not null)", of "k, a, p");
    let row = sqlx::query(sql)
        .bind(key)
        .bind(now.ms())
        .fetch_optional(tx.sql())
        .await?;
    Ok(row.is_some())
}

pub async fn tools(
    db: impl Executor<'_, Database = Any>,
    agent: &str,
) -> Result<Vec<(String,)>, StoreError> {
    Ok(
        sqlx::query_as("select tool from agent_tools where agent_id = $1 order by tool")
            .bind(agent)
            .fetch_all(db)
            .await?,
    )
}

pub async fn keys(
    db: impl Executor<'_, Database = Any>,
    agent: &str,
) -> Result<Vec<KeyRow>, StoreError> {
    let sql = "select id, agent_id, created_at, expires_at, revoked_at, last_used_at from agent_keys where agent_id = $1 order by created_at, id";
    Ok(sqlx::query_as(sql).bind(agent).fetch_all(db).await?)
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select a.id, a.name, a.owner_id, p.name as owner_name, a.all_tools, a.created_at, a.disabled_at from agents a join people p on p.id = a.owner_id ", $rest)
    };
}

pub async fn all(pool: &AnyPool) -> Result<Vec<AgentRow>, StoreError> {
    Ok(sqlx::query_as(select!("order by a.name, a.id"))
        .fetch_all(pool)
        .await?)
}

pub async fn by_id(
    db: impl Executor<'_, Database = Any>,
    agent: &str,
) -> Result<Option<AgentRow>, StoreError> {
    Ok(sqlx::query_as(select!("where a.id = $1"))
        .bind(agent)
        .fetch_optional(db)
        .await?)
}

/// The agents a person owns.
pub async fn owned_by(pool: &AnyPool, person: &str) -> Result<Vec<AgentRow>, StoreError> {
    Ok(
        sqlx::query_as(select!("where a.owner_id = $1 order by a.name, a.id"))
            .bind(person)
            .fetch_all(pool)
            .await?,
    )
}

/// The agents a person owns, and those at work on a site the person belongs to.
pub async fn visible_to(pool: &AnyPool, person: &str) -> Result<Vec<AgentRow>, StoreError> {
    let sql = select!(
        "where a.owner_id = $1 or (a.disabled_at is null and a.id in (select s.agent_id from agent_sites s join memberships m on m.site_id = s.site_id where m.person_id = $1)) order by a.name, a.id"
    );
    Ok(sqlx::query_as(sql).bind(person).fetch_all(pool).await?)
}

/// The agents that were put on a site and are not disabled.
pub async fn on_site(
    db: impl Executor<'_, Database = Any>,
    site: &str,
) -> Result<Vec<AgentRow>, StoreError> {
    let sql = select!(
        "where a.disabled_at is null and a.id in (select s.agent_id from agent_sites s where s.site_id = $1) order by a.name, a.id"
    );
    Ok(sqlx::query_as(sql).bind(site).fetch_all(db).await?)
}

/// Returns false where the owner has an agent of that name.
pub async fn insert(
    tx: &mut Tx,
    id: &str,
    name: &str,
    owner: &str,
    all_tools: bool,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query("insert into agents (id, name, owner_id, all_tools, created_at, disabled_at) values ($1, $2, $3, $4, $5, null) on conflict do nothing")
        .bind(id)
        .bind(name)
        .bind(owner)
        .bind(i64::from(all_tools))
        .bind(now.ms())
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn add_site(tx: &mut Tx, agent: &str, site: &str) -> Result<(), StoreError> {
    sqlx::query(
        "insert into agent_sites (agent_id, site_id) values ($1, $2) on conflict do nothing",
    )
    .bind(agent)
    .bind(site)
    .execute(tx.sql())
    .await?;
    Ok(())
}

/// Returns false where it was not on the site.
pub async fn remove_site(tx: &mut Tx, agent: &str, site: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("delete from agent_sites where agent_id = $1 and site_id = $2")
        .bind(agent)
        .bind(site)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Keeps in mind that somebody else than its owner took an agent off a site.
pub async fn bar(tx: &mut Tx, agent: &str, site: &str, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("insert into agents_taken_off (agent_id, site_id, at) values ($1, $2, $3) on conflict do nothing")
        .bind(agent)
        .bind(site)
        .bind(now.ms())
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn is_barred(tx: &mut Tx, agent: &str, site: &str) -> Result<bool, StoreError> {
    let sql = "select count(*) from agents_taken_off where agent_id = $1 and site_id = $2";
    let n: i64 = sqlx::query(sql)
        .bind(agent)
        .bind(site)
        .fetch_one(tx.sql())
        .await?
        .try_get(0)?;
    Ok(n > 0)
}

/// Returns false where it was not.
pub async fn unbar(tx: &mut Tx, agent: &str, site: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("delete from agents_taken_off where agent_id = $1 and site_id = $2")
        .bind(agent)
        .bind(site)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// The agents of a site's members that only an owner of the site puts on it again.
pub async fn barred_from(pool: &AnyPool, site: &str) -> Result<Vec<AgentRow>, StoreError> {
    let sql = select!(
        "where a.disabled_at is null and p.disabled_at is null and a.id in (select t.agent_id from agents_taken_off t where t.site_id = $1)
           and (p.workspace_owner = 1 or p.id in (select m.person_id from memberships m where m.site_id = $1)) order by a.name, a.id"
    );
    Ok(sqlx::query_as(sql).bind(site).fetch_all(pool).await?)
}

/// Takes the agents of a person off a site; which they were.
pub async fn take_along(tx: &mut Tx, owner: &str, site: &str) -> Result<Vec<String>, StoreError> {
    let sql = "delete from agent_sites where site_id = $1 and agent_id in (select id from agents where owner_id = $2) returning agent_id";
    let rows: Vec<(String,)> = sqlx::query_as(sql)
        .bind(site)
        .bind(owner)
        .fetch_all(tx.sql())
        .await?;
    let mut gone: Vec<String> = rows.into_iter().map(|(agent,)| agent).collect();
    gone.sort();
    Ok(gone)
}

/// Takes the agents of a person off every site that the person is no member of.
pub async fn take_along_everywhere(tx: &mut Tx, owner: &str) -> Result<(), StoreError> {
    let sql = "delete from agent_sites where agent_id in (select id from agents where owner_id = $1)
        and not exists (select 1 from memberships m where m.person_id = $1 and m.site_id = agent_sites.site_id)";
    sqlx::query(sql).bind(owner).execute(tx.sql()).await?;
    Ok(())
}

/// Locks the agents of a person, in one order, as [`super::approvals::lock_agent`] does one; which they are.
pub async fn lock_owned(tx: &mut Tx, owner: &str) -> Result<Vec<String>, StoreError> {
    let sql = "select id from agents where owner_id = $1 order by id";
    let rows: Vec<(String,)> = sqlx::query_as(sql).bind(owner).fetch_all(tx.sql()).await?;
    let mut owned = Vec::with_capacity(rows.len());
    for (agent,) in rows {
        super::approvals::lock_agent(tx, &agent).await?;
        owned.push(agent);
    }
    Ok(owned)
}

/// The sites it was put on, whether or not it reaches them.
pub async fn sites_of(tx: &mut Tx, agent: &str) -> Result<Vec<(String,)>, StoreError> {
    let sql = "select site_id from agent_sites where agent_id = $1 order by site_id";
    Ok(sqlx::query_as(sql).bind(agent).fetch_all(tx.sql()).await?)
}

/// Sets the tools anew; none named means every one.
pub async fn set_tools(tx: &mut Tx, agent: &str, tools: &[String]) -> Result<(), StoreError> {
    sqlx::query("update agents set all_tools = $1 where id = $2")
        .bind(i64::from(tools.is_empty()))
        .bind(agent)
        .execute(tx.sql())
        .await?;
    sqlx::query("delete from agent_tools where agent_id = $1")
        .bind(agent)
        .execute(tx.sql())
        .await?;
    for tool in tools {
        add_tool(tx, agent, tool).await?;
    }
    Ok(())
}

pub async fn set_disabled(
    tx: &mut Tx,
    agent: &str,
    at: Option<Timestamp>,
) -> Result<(), StoreError> {
    sqlx::query("update agents set disabled_at = $1 where id = $2")
        .bind(at.map(Timestamp::ms))
        .bind(agent)
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn add_tool(tx: &mut Tx, agent: &str, tool: &str) -> Result<(), StoreError> {
    sqlx::query("insert into agent_tools (agent_id, tool) values ($1, $2) on conflict do nothing")
        .bind(agent)
        .bind(tool)
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn insert_key(
    tx: &mut Tx,
    id: &str,
    agent: &str,
    secret_hash: &str,
    made_by: Option<&str>,
    now: Timestamp,
    expires_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    sqlx::query("insert into agent_keys (id, agent_id, secret_hash, created_at, expires_at, revoked_at, made_by) values ($1, $2, $3, $4, $5, null, $6)")
        .bind(id)
        .bind(agent)
        .bind(secret_hash)
        .bind(now.ms())
        .bind(expires_at.map(Timestamp::ms))
        .bind(made_by)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Returns whether this revoked it.
pub async fn revoke_key(tx: &mut Tx, id: &str, now: Timestamp) -> Result<bool, StoreError> {
    let sql = "update agent_keys set revoked_at = $1 where id = $2 and revoked_at is null";
    let done = sqlx::query(sql)
        .bind(now.ms())
        .bind(id)
        .execute(tx.sql())
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Keeps that keys were used, in one unit for all of them.
pub async fn mark_used(tx: &mut Tx, used: &[(String, Timestamp)]) -> Result<(), StoreError> {
    for (key, at) in used {
        sqlx::query("update agent_keys set last_used_at = $1 where id = $2 and (last_used_at is null or last_used_at < $1)")
            .bind(at.ms())
            .bind(key)
            .execute(tx.sql())
            .await?;
    }
    Ok(())
}

pub async fn is_key_of(tx: &mut Tx, key: &str, agent: &str) -> Result<bool, StoreError> {
    let sql = "select count(*) from agent_keys where id = $1 and agent_id = $2";
    Ok(sqlx::query(sql)
        .bind(key)
        .bind(agent)
        .fetch_one(tx.sql())
        .await?
        .try_get::<i64, _>(0)?
        == 1)
}

/// Keys that are not revoked and whose id begins so: id, agent, agent's name. Two are enough to be ambiguous.
pub async fn good_keys(
    tx: &mut Tx,
    prefix: &str,
) -> Result<Vec<(String, String, String)>, StoreError> {
    let sql = "select k.id, a.id, a.name from agent_keys k join agents a on a.id = k.agent_id
        where k.revoked_at is null and length($1) > 5 and substr(k.id, 1, length($1)) = $1 limit 2";
    Ok(sqlx::query_as(sql)
        .bind(prefix.to_owned())
        .fetch_all(tx.sql())
        .await?)
}
