//! SQL for policies, groups, and who may decide.

use super::{Connection, StoreError, Tx};
use sqlx::Row as _;

/// A site's policy as stored: canonical JSON.
pub async fn policy(db: &mut Connection, site: &str) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("select policy from sites where id = $1")
        .bind(site)
        .fetch_optional(db)
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

pub async fn set_policy(tx: &mut Tx, site: &str, policy: &str) -> Result<(), StoreError> {
    sqlx::query("update sites set policy = $1 where id = $2")
        .bind(policy)
        .bind(site)
        .execute(tx.sql())
        .await?;
    Ok(())
}

/// Whoever may decide on a site at this moment: its approvers and owners, and the owners of the workspace.
pub async fn deciders(db: &mut Connection, site: &str) -> Result<Vec<String>, StoreError> {
    let sql = "select p.id from people p left join memberships m on m.person_id = p.id and m.site_id = $1
        where p.disabled_at is null and (p.workspace_owner = 1 or m.role in ('approver', 'owner')) order by p.id";
    texts(db, sql, &[site]).await
}

/// The groups of one person on one site.
pub async fn groups_of(
    db: &mut Connection,
    site: &str,
    person: &str,
) -> Result<Vec<String>, StoreError> {
    let sql = "select name from group_members where site_id = $1 and person_id = $2 order by name";
    texts(db, sql, &[site, person]).await
}

/// Every group of a site with each of its people: (person, group).
pub async fn groups_on(
    db: &mut Connection,
    site: &str,
) -> Result<Vec<(String, String)>, StoreError> {
    let sql =
        "select person_id, name from group_members where site_id = $1 order by person_id, name";
    Ok(sqlx::query_as(sql).bind(site).fetch_all(db).await?)
}

pub async fn set_groups(
    tx: &mut Tx,
    site: &str,
    person: &str,
    groups: &[String],
) -> Result<(), StoreError> {
    sqlx::query("delete from group_members where site_id = $1 and person_id = $2")
        .bind(site)
        .bind(person)
        .execute(tx.sql())
        .await?;
    for group in groups {
        sqlx::query("insert into group_members (site_id, name, person_id) values ($1, $2, $3)")
            .bind(site)
            .bind(group)
            .bind(person)
            .execute(tx.sql())
            .await?;
    }
    Ok(())
}

/// The owners of the agents that may ask on a site.
pub async fn askers(db: &mut Connection, site: &str) -> Result<Vec<String>, StoreError> {
    let sql = "select distinct a.owner_id from agents a join agent_sites s on s.agent_id = a.id join people p on p.id = a.owner_id
        where s.site_id = $1 and a.disabled_at is null and p.disabled_at is null order by a.owner_id";
    texts(db, sql, &[site]).await
}

/// The people behind an agent's request: its owner, and whoever made the key that it asked with.
pub async fn behind(db: &mut Connection, approval: &str) -> Result<Vec<String>, StoreError> {
    let sql = "select a.owner_id from approvals p join agents a on a.id = p.caller_id where p.id = $1
        union
        select k.made_by from approvals p join agent_keys k on k.id = p.key_id where p.id = $1 and k.made_by is not null";
    texts(db, sql, &[approval]).await
}

async fn texts(
    db: &mut Connection,
    sql: &'static str,
    bound: &[&str],
) -> Result<Vec<String>, StoreError> {
    let mut query = sqlx::query(sql);
    for text in bound {
        query = query.bind(*text);
    }
    let rows = query.fetch_all(db).await?;
    let read = |row: &sqlx::any::AnyRow| row.try_get(0);
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}
