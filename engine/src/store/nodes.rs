//! SQL for the draft: nodes and their immutable revisions.

use super::{StoreError, Tx};
use sqlx::{Any, AnyPool, Executor, Row as _};

/// A node as it stands in the draft, without its body.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct NodeRow {
    pub id: String,
    pub site_id: String,
    pub parent: String,
    pub slug: String,
    pub kind: String,
    pub position: i64,
    pub title: String,
    pub rev: i64,
    pub hash: String,
    pub state_rev: i64,
    pub updated_at: i64,
    pub deleted_at: Option<i64>,
}

/// A node as it once was, whole.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct RevisionRow {
    pub node_id: String,
    pub rev: i64,
    pub site_id: String,
    pub parent: String,
    pub slug: String,
    pub kind: String,
    pub position: i64,
    pub title: String,
    pub body: String,
    pub fields: String,
    pub hash: String,
    pub removed: i64,
    pub state_rev: i64,
    pub created_at: i64,
    pub author: String,
    pub author_name: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select id, site_id, parent, slug, kind, position, title, rev, hash, state_rev, updated_at, deleted_at from nodes ", $rest)
    };
}

macro_rules! select_revision {
    ($rest:literal) => {
        concat!(
            "select node_id, rev, site_id, parent, slug, kind, position, title, body, fields, hash, removed, state_rev, created_at, author, author_name from node_revisions ",
            $rest
        )
    };
}

pub async fn get(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
) -> Result<Option<NodeRow>, StoreError> {
    Ok(sqlx::query_as(select!(
        "where id = $1 and site_id = $2 and deleted_at is null"
    ))
    .bind(node)
    .bind(site)
    .fetch_optional(db)
    .await?)
}

/// Also a removed one, so that history can name it.
pub async fn get_ever(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
) -> Result<Option<NodeRow>, StoreError> {
    Ok(sqlx::query_as(select!("where id = $1 and site_id = $2"))
        .bind(node)
        .bind(site)
        .fetch_optional(db)
        .await?)
}

pub async fn revision(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
    rev: i64,
) -> Result<Option<RevisionRow>, StoreError> {
    Ok(sqlx::query_as(select_revision!(
        "where node_id = $1 and rev = $2 and site_id = $3"
    ))
    .bind(node)
    .bind(rev)
    .bind(site)
    .fetch_optional(db)
    .await?)
}

/// What a node of the draft holds now; `None` where it is not in the draft.
pub async fn current(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
) -> Result<Option<RevisionRow>, StoreError> {
    Ok(sqlx::query_as(select_revision!(
        "where node_id = $1 and site_id = $2 and rev = (select rev from nodes where id = $1 and site_id = $2 and deleted_at is null)"
    ))
    .bind(node)
    .bind(site)
    .fetch_optional(db)
    .await?)
}

pub async fn revisions(
    pool: &AnyPool,
    site: &str,
    node: &str,
    limit: i64,
) -> Result<Vec<RevisionRow>, StoreError> {
    let sql = select_revision!("where node_id = $1 and site_id = $2 order by rev desc limit $3");
    Ok(sqlx::query_as(sql)
        .bind(node)
        .bind(site)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

pub async fn children(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    parent: &str,
) -> Result<Vec<NodeRow>, StoreError> {
    let sql = select!(
        "where site_id = $1 and parent = $2 and deleted_at is null order by position, slug"
    );
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(parent)
        .fetch_all(db)
        .await?)
}

pub async fn child_by_slug(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    parent: &str,
    slug: &str,
) -> Result<Option<NodeRow>, StoreError> {
    let sql = select!("where site_id = $1 and parent = $2 and slug = $3 and deleted_at is null");
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(parent)
        .bind(slug)
        .fetch_optional(db)
        .await?)
}

pub async fn child_count(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    parent: &str,
) -> Result<i64, StoreError> {
    let row = sqlx::query(
        "select count(*) from nodes where site_id = $1 and parent = $2 and deleted_at is null",
    )
    .bind(site)
    .bind(parent)
    .fetch_one(db)
    .await?;
    Ok(row.try_get(0)?)
}

pub async fn position_max(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    parent: &str,
) -> Result<i64, StoreError> {
    let row = sqlx::query(
        "select max(position) from nodes where site_id = $1 and parent = $2 and deleted_at is null",
    )
    .bind(site)
    .bind(parent)
    .fetch_one(db)
    .await?;
    Ok(row.try_get::<Option<i64>, _>(0)?.unwrap_or(0))
}

/// A page of the whole draft, siblings together in their order; `after` is (parent, position, slug).
pub async fn page(
    pool: &AnyPool,
    site: &str,
    parent: Option<&str>,
    after: Option<(String, i64, String)>,
    limit: i64,
) -> Result<Vec<NodeRow>, StoreError> {
    let (after_parent, after_position, after_slug) =
        after.unwrap_or((String::new(), i64::MIN, String::new()));
    let rows = match parent {
        Some(parent) => {
            let sql = select!(
                "where site_id = $1 and parent = $2 and deleted_at is null and (position > $3 or (position = $3 and slug > $4)) order by parent, position, slug limit $5"
            );
            sqlx::query_as(sql)
                .bind(site)
                .bind(parent)
                .bind(after_position)
                .bind(after_slug)
                .bind(limit)
                .fetch_all(pool)
                .await?
        }
        None => {
            let sql = select!(
                "where site_id = $1 and deleted_at is null and (parent > $2 or (parent = $2 and (position > $3 or (position = $3 and slug > $4)))) order by parent, position, slug limit $5"
            );
            sqlx::query_as(sql)
                .bind(site)
                .bind(after_parent)
                .bind(after_position)
                .bind(after_slug)
                .bind(limit)
                .fetch_all(pool)
                .await?
        }
    };
    Ok(rows)
}

/// What changed in the draft since the site's counter stood at `state_rev`, removals included.
pub async fn changed_since(
    pool: &AnyPool,
    site: &str,
    state_rev: i64,
    limit: i64,
) -> Result<Vec<NodeRow>, StoreError> {
    let sql = select!("where site_id = $1 and state_rev > $2 order by state_rev desc, id limit $3");
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(state_rev)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

/// A node with everything under it, parents first.
pub async fn subtree(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
) -> Result<Vec<NodeRow>, StoreError> {
    let sql = "with recursive tree (id, depth) as (
            select id, 0 from nodes where id = $1 and site_id = $2 and deleted_at is null
            union all
            select n.id, tree.depth + 1 from tree join nodes n on n.site_id = $2 and n.parent = tree.id and n.deleted_at is null
        )
        select n.id, n.site_id, n.parent, n.slug, n.kind, n.position, n.title, n.rev, n.hash, n.state_rev, n.updated_at, n.deleted_at
        from tree join nodes n on n.id = tree.id order by tree.depth, n.position, n.slug";
    Ok(sqlx::query_as(sql)
        .bind(node)
        .bind(site)
        .fetch_all(db)
        .await?)
}

/// How many levels a node and what stands under it take.
pub async fn levels(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
) -> Result<usize, StoreError> {
    let sql = "with recursive tree (id, depth) as (
            select id, 1 from nodes where id = $1 and site_id = $2 and deleted_at is null
            union all
            select n.id, tree.depth + 1 from tree join nodes n on n.site_id = $2 and n.parent = tree.id and n.deleted_at is null
        )
        select cast(max(depth) as bigint) from tree";
    let row = sqlx::query(sql).bind(node).bind(site).fetch_one(db).await?;
    let deepest = row.try_get::<Option<i64>, _>(0)?.unwrap_or(1);
    Ok(usize::try_from(deepest).unwrap_or(1))
}

/// A node with everything under it, id, revision and hash, as the draft stood at the counter `as_of`. Costs what the site
/// holds; asked for long lists alone.
pub async fn subtree_as_of(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
    as_of: i64,
) -> Result<Vec<(String, i64, String)>, StoreError> {
    let sql = "with recursive heads (id, rev) as (
            select r.node_id, max(r.rev) from node_revisions r where r.site_id = $2 and r.state_rev <= $3 group by r.node_id
        ),
        stood (id, parent, rev, hash) as (
            select r.node_id, r.parent, r.rev, r.hash from heads h join node_revisions r on r.node_id = h.id and r.rev = h.rev where r.removed = 0
        ),
        tree (id, rev, hash) as (
            select s.id, s.rev, s.hash from stood s where s.id = $1
            union all
            select s.id, s.rev, s.hash from tree join stood s on s.parent = tree.id
        )
        select id, rev, hash from tree";
    Ok(sqlx::query_as(sql)
        .bind(node)
        .bind(site)
        .bind(as_of)
        .fetch_all(db)
        .await?)
}

pub async fn has_children(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
) -> Result<bool, StoreError> {
    let sql =
        "select id from nodes where site_id = $1 and parent = $2 and deleted_at is null limit 1";
    Ok(sqlx::query(sql)
        .bind(site)
        .bind(node)
        .fetch_optional(db)
        .await?
        .is_some())
}

/// The node's ancestors from the top down, itself last; removed ones too, so that a removed page still has its address.
pub async fn lineage(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    node: &str,
) -> Result<Vec<NodeRow>, StoreError> {
    let sql = "with recursive up (id, parent, height) as (
            select id, parent, 0 from nodes where id = $1 and site_id = $2
            union all
            select n.id, n.parent, up.height + 1 from up join nodes n on n.id = up.parent and n.site_id = $2
        )
        select n.id, n.site_id, n.parent, n.slug, n.kind, n.position, n.title, n.rev, n.hash, n.state_rev, n.updated_at, n.deleted_at
        from up join nodes n on n.id = up.id order by up.height desc";
    Ok(sqlx::query_as(sql)
        .bind(node)
        .bind(site)
        .fetch_all(db)
        .await?)
}

/// Every element of the draft's state, for the verifier.
pub async fn elements(
    pool: &AnyPool,
    site: &str,
) -> Result<Vec<(String, i64, String)>, StoreError> {
    Ok(
        sqlx::query_as("select id, rev, hash from nodes where site_id = $1 and deleted_at is null")
            .bind(site)
            .fetch_all(pool)
            .await?,
    )
}

/// Every revision that a site ever had, a stretch at a time, for the verifier; `after` is (node, rev).
pub async fn revisions_after(
    pool: &AnyPool,
    site: &str,
    after: (&str, i64),
    limit: i64,
) -> Result<Vec<RevisionRow>, StoreError> {
    let sql = select_revision!(
        "where site_id = $1 and (node_id > $2 or (node_id = $2 and rev > $3)) order by node_id, rev limit $4"
    );
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(after.0)
        .bind(after.1)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

/// Nodes whose row says something else than the revision it names, for the verifier.
pub async fn unlike_their_revision(
    pool: &AnyPool,
    site: &str,
) -> Result<Vec<(String,)>, StoreError> {
    let sql = "select n.id from nodes n left join node_revisions r on r.node_id = n.id and r.rev = n.rev
        where n.site_id = $1 and (r.rev is null or r.site_id <> n.site_id or r.hash <> n.hash or r.parent <> n.parent or r.slug <> n.slug or r.kind <> n.kind
            or r.position <> n.position or r.title <> n.title or r.removed <> (case when n.deleted_at is null then 0 else 1 end))
        order by n.id limit 1";
    Ok(sqlx::query_as(sql).bind(site).fetch_all(pool).await?)
}

/// Returns false where a sibling has the slug.
pub async fn insert(tx: &mut Tx, node: &NodeRow) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "insert into nodes (id, site_id, parent, slug, kind, position, title, rev, hash, state_rev, updated_at, deleted_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, null) on conflict do nothing",
    )
    .bind(&node.id)
    .bind(&node.site_id)
    .bind(&node.parent)
    .bind(&node.slug)
    .bind(&node.kind)
    .bind(node.position)
    .bind(&node.title)
    .bind(node.rev)
    .bind(&node.hash)
    .bind(node.state_rev)
    .bind(node.updated_at)
    .execute(tx.sql())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Moves a node to its next revision; the guard on `old_rev` makes a lost update impossible.
pub async fn update(tx: &mut Tx, node: &NodeRow, old_rev: i64) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "update nodes set parent = $1, slug = $2, kind = $3, position = $4, title = $5, rev = $6, hash = $7, state_rev = $8, updated_at = $9, deleted_at = $10
         where id = $11 and site_id = $12 and rev = $13",
    )
    .bind(&node.parent)
    .bind(&node.slug)
    .bind(&node.kind)
    .bind(node.position)
    .bind(&node.title)
    .bind(node.rev)
    .bind(&node.hash)
    .bind(node.state_rev)
    .bind(node.updated_at)
    .bind(node.deleted_at)
    .bind(&node.id)
    .bind(&node.site_id)
    .bind(old_rev)
    .execute(tx.sql())
    .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn insert_revision(tx: &mut Tx, revision: &RevisionRow) -> Result<(), StoreError> {
    sqlx::query(
        "insert into node_revisions (node_id, rev, site_id, parent, slug, kind, position, title, body, fields, hash, removed, state_rev, created_at, author, author_name)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
    )
    .bind(&revision.node_id)
    .bind(revision.rev)
    .bind(&revision.site_id)
    .bind(&revision.parent)
    .bind(&revision.slug)
    .bind(&revision.kind)
    .bind(revision.position)
    .bind(&revision.title)
    .bind(&revision.body)
    .bind(&revision.fields)
    .bind(&revision.hash)
    .bind(revision.removed)
    .bind(revision.state_rev)
    .bind(revision.created_at)
    .bind(&revision.author)
    .bind(&revision.author_name)
    .execute(tx.sql())
    .await?;
    Ok(())
}
