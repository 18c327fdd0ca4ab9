//! SQL for sites, their states and memberships.

use super::{Backend, Connection, StoreError, Tx};
use cloudhal_domain::{
    id::{PersonId, SiteId},
    time::Timestamp,
};
use sqlx::{Any, AnyPool, Executor, FromRow as _, Row as _};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct SiteRow {
    pub id: String,
    pub slug: String,
    pub title: String,
    pub description: String,
    pub settings_rev: i64,
    pub live_version: Option<i64>,
    pub next_version: i64,
    pub state_rev: i64,
    pub node_count: i64,
    pub state_hash: String,
    pub created_at: i64,
    pub deleted_at: Option<i64>,
    /// Canonical JSON; empty where none was ever set.
    pub policy: String,
}

macro_rules! columns {
    ($before:expr, $after:expr) => {
        concat!($before, " id, slug, title, description, settings_rev, live_version, next_version, state_rev, node_count, state_hash, created_at, deleted_at, policy ", $after)
    };
}

/// The first statement of every unit that writes to a site: it takes the row's lock, reads it, and tells the time then.
pub async fn lock(tx: &mut Tx, id: &SiteId) -> Result<Option<(SiteRow, Timestamp)>, StoreError> {
    // Differs by necessity: only PostgreSQL has a clock that several nodes share.
    let sql = match tx.backend() {
        Backend::Sqlite => columns!(
            "update sites set state_rev = state_rev where id = $1 and deleted_at is null returning",
            ", cast(null as bigint) as clock"
        ),
        Backend::Postgres => columns!(
            "update sites set state_rev = state_rev where id = $1 and deleted_at is null returning",
            concat!(", ", shared_clock!(), " as clock")
        ),
    };
    let row = sqlx::query(sql)
        .bind(id.as_str())
        .fetch_optional(tx.sql())
        .await?;
    row.map(|row| {
        let now = tx.now_from(row.try_get("clock")?);
        Ok((SiteRow::from_row(&row)?, now))
    })
    .transpose()
}

/// A tombstone still has records; redeeming a repeat reads it.
pub async fn by_id(pool: &AnyPool, id: &SiteId) -> Result<Option<SiteRow>, StoreError> {
    Ok(
        sqlx::query_as(columns!("select", "from sites where id = $1"))
            .bind(id.as_str())
            .fetch_optional(pool)
            .await?,
    )
}

pub async fn by_slug(pool: &AnyPool, slug: &str) -> Result<Option<SiteRow>, StoreError> {
    Ok(sqlx::query_as(columns!(
        "select",
        "from sites where slug = $1 and deleted_at is null"
    ))
    .bind(slug)
    .fetch_optional(pool)
    .await?)
}

/// Whether a deleted site once had this slug.
pub async fn is_gone(pool: &AnyPool, slug: &str) -> Result<bool, StoreError> {
    let row = sqlx::query("select count(*) from sites where slug = $1 and deleted_at is not null")
        .bind(slug)
        .fetch_one(pool)
        .await?;
    Ok(row.try_get::<i64, _>(0)? > 0)
}

/// Ids of the sites that a slug or an id stands for. A slug that was freed may be another site's by now.
pub async fn ids_called(pool: &AnyPool, name: &str) -> Result<Vec<(String,)>, StoreError> {
    let sql = "select id from sites where slug = $1 or id = $1 order by id";
    Ok(sqlx::query_as(sql).bind(name).fetch_all(pool).await?)
}

pub async fn all(db: impl Executor<'_, Database = Any>) -> Result<Vec<SiteRow>, StoreError> {
    Ok(sqlx::query_as(columns!(
        "select",
        "from sites where deleted_at is null order by title, id"
    ))
    .fetch_all(db)
    .await?)
}

/// Deleted ones included, for the verifier.
pub async fn all_ever(pool: &AnyPool) -> Result<Vec<SiteRow>, StoreError> {
    Ok(
        sqlx::query_as(columns!("select", "from sites order by created_at, id"))
            .fetch_all(pool)
            .await?,
    )
}

pub async fn of_person(
    db: impl Executor<'_, Database = Any>,
    person: &PersonId,
) -> Result<Vec<SiteRow>, StoreError> {
    let sql = columns!(
        "select",
        "from sites where deleted_at is null and id in (select site_id from memberships where person_id = $1) order by title, id"
    );
    Ok(sqlx::query_as(sql)
        .bind(person.as_str())
        .fetch_all(db)
        .await?)
}

/// The same for a person's own client: a workspace owner reaches every site.
pub async fn of_persons_client(
    pool: &AnyPool,
    person: &PersonId,
) -> Result<Vec<SiteRow>, StoreError> {
    let sql = columns!(
        "select",
        "from sites where deleted_at is null and exists (select 1 from people p where p.id = $1 and p.disabled_at is null
            and (p.workspace_owner = 1 or exists (select 1 from memberships m where m.person_id = p.id and m.site_id = sites.id))) order by title, id"
    );
    Ok(sqlx::query_as(sql)
        .bind(person.as_str())
        .fetch_all(pool)
        .await?)
}

pub async fn of_agent(
    db: impl Executor<'_, Database = Any>,
    agent: &str,
) -> Result<Vec<SiteRow>, StoreError> {
    let sql = columns!(
        "select",
        "from sites where deleted_at is null and id in (
            select s.site_id from agent_sites s join agents a on a.id = s.agent_id join people p on p.id = a.owner_id
            where s.agent_id = $1 and (p.workspace_owner = 1
                or exists (select 1 from memberships m where m.person_id = p.id and m.site_id = s.site_id))) order by title, id"
    );
    Ok(sqlx::query_as(sql).bind(agent).fetch_all(db).await?)
}

/// Whether a site is there and no tombstone.
pub async fn is_there(tx: &mut Tx, site: &str) -> Result<bool, StoreError> {
    let sql = "select count(*) from sites where id = $1 and deleted_at is null";
    Ok(sqlx::query(sql)
        .bind(site)
        .fetch_one(tx.sql())
        .await?
        .try_get::<i64, _>(0)?
        == 1)
}

/// Returns false where the slug is taken.
pub async fn insert(
    tx: &mut Tx,
    site: &SiteRow,
    lanes: &str,
    digest_version: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "insert into sites (id, slug, title, description, settings_rev, live_version, next_version, state_rev, node_count, state_hash, policy, created_at, deleted_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '{}', $11, null) on conflict do nothing",
    )
    .bind(&site.id)
    .bind(&site.slug)
    .bind(&site.title)
    .bind(&site.description)
    .bind(site.settings_rev)
    .bind(site.live_version)
    .bind(site.next_version)
    .bind(site.state_rev)
    .bind(site.node_count)
    .bind(&site.state_hash)
    .bind(site.created_at)
    .execute(tx.sql())
    .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query("insert into site_states (site_id, digest_version, lanes) values ($1, $2, $3)")
        .bind(&site.id)
        .bind(digest_version)
        .bind(lanes)
        .execute(tx.sql())
        .await?;
    Ok(true)
}

/// Writes back a locked site after a change.
pub async fn settle(tx: &mut Tx, site: &SiteRow) -> Result<(), StoreError> {
    sqlx::query(
        "update sites set title = $1, description = $2, settings_rev = $3, live_version = $4, next_version = $5, state_rev = $6, node_count = $7, state_hash = $8, deleted_at = $9
         where id = $10",
    )
    .bind(&site.title)
    .bind(&site.description)
    .bind(site.settings_rev)
    .bind(site.live_version)
    .bind(site.next_version)
    .bind(site.state_rev)
    .bind(site.node_count)
    .bind(&site.state_hash)
    .bind(site.deleted_at)
    .bind(&site.id)
    .execute(tx.sql())
    .await?;
    Ok(())
}

pub async fn title(tx: &mut Tx, site: &str) -> Result<String, StoreError> {
    Ok(sqlx::query("select title from sites where id = $1")
        .bind(site)
        .fetch_one(tx.sql())
        .await?
        .try_get(0)?)
}

pub async fn lanes(tx: &mut Tx, site: &str) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select lanes from site_states where site_id = $1")
        .bind(site)
        .fetch_optional(tx.sql())
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

pub async fn stored_lanes(pool: &AnyPool, site: &str) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select lanes from site_states where site_id = $1")
        .bind(site)
        .fetch_optional(pool)
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

pub async fn set_lanes(tx: &mut Tx, site: &str, lanes: &str) -> Result<(), StoreError> {
    sqlx::query("update site_states set lanes = $1 where site_id = $2")
        .bind(lanes)
        .bind(site)
        .execute(tx.sql())
        .await?;
    Ok(())
}

pub async fn role(
    pool: &AnyPool,
    site: &str,
    person: &PersonId,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select role from memberships where site_id = $1 and person_id = $2")
        .bind(site)
        .bind(person.as_str())
        .fetch_optional(pool)
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

/// The role of somebody who is known by their id alone; `None` also where the account is disabled.
pub async fn persons_role(
    pool: &AnyPool,
    site: &SiteId,
    person: &PersonId,
) -> Result<Option<String>, StoreError> {
    let sql = "select case when p.workspace_owner = 1 then 'owner' else m.role end from people p
        left join memberships m on m.person_id = p.id and m.site_id = $2
        where p.id = $1 and p.disabled_at is null and (p.workspace_owner = 1 or m.role is not null)";
    let row = sqlx::query(sql)
        .bind(person.as_str())
        .bind(site.as_str())
        .fetch_optional(pool)
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

/// The same inside a unit of work: what the role is at the moment of deciding.
pub async fn role_now(
    tx: &mut Tx,
    site: &str,
    person: &PersonId,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select role from memberships where site_id = $1 and person_id = $2")
        .bind(site)
        .bind(person.as_str())
        .fetch_optional(tx.sql())
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

/// PostgreSQL: keeps a membership as it is until the unit ends, so that whoever ends it waits. SQLite has one writer.
pub async fn hold_member(tx: &mut Tx, site: &str, person: &str) -> Result<(), StoreError> {
    if tx.backend() == Backend::Postgres {
        let sql =
            "select role from memberships m where site_id = $1 and person_id = $2 for share of m";
        sqlx::query(sql)
            .bind(site)
            .bind(person)
            .fetch_all(tx.sql())
            .await?;
    }
    Ok(())
}

pub async fn add_member(
    tx: &mut Tx,
    site: &str,
    person: &PersonId,
    role: &str,
) -> Result<(), StoreError> {
    sqlx::query("insert into memberships (site_id, person_id, role) values ($1, $2, $3) on conflict do nothing")
        .bind(site)
        .bind(person.as_str())
        .bind(role)
        .execute(tx.sql())
        .await?;
    Ok(())
}

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct MemberRow {
    pub person_id: String,
    pub role: String,
    pub name: String,
    pub email: String,
    pub disabled: i64,
}

pub async fn members(db: &mut Connection, site: &str) -> Result<Vec<MemberRow>, StoreError> {
    let sql = "select m.person_id, m.role, p.name, p.email, case when p.disabled_at is null then 0 else 1 end as disabled from memberships m join people p on p.id = m.person_id
        where m.site_id = $1 order by p.name, p.id";
    Ok(sqlx::query_as(sql).bind(site).fetch_all(db).await?)
}

/// Sets the role, or ends the membership.
pub async fn set_member(
    tx: &mut Tx,
    site: &str,
    person: &PersonId,
    role: Option<&str>,
) -> Result<(), StoreError> {
    let query = match role {
        Some(role) => sqlx::query(
            "insert into memberships (site_id, person_id, role) values ($1, $2, $3)
             on conflict (site_id, person_id) do update set role = excluded.role",
        )
        .bind(site)
        .bind(person.as_str())
        .bind(role),
        None => sqlx::query("delete from memberships where site_id = $1 and person_id = $2")
            .bind(site)
            .bind(person.as_str()),
    };
    query.execute(tx.sql()).await?;
    Ok(())
}

/// How many people could still manage the site without this membership: its owners and the workspace's, accounts that are
/// disabled not counted.
pub async fn managers_without(
    tx: &mut Tx,
    site: &str,
    person: &PersonId,
) -> Result<i64, StoreError> {
    let sql = "select count(*) from people p where p.disabled_at is null and (p.workspace_owner = 1
        or (p.id <> $2 and exists (select 1 from memberships m where m.site_id = $1 and m.person_id = p.id and m.role = 'owner')))";
    Ok(sqlx::query(sql)
        .bind(site)
        .bind(person.as_str())
        .fetch_one(tx.sql())
        .await?
        .try_get(0)?)
}
