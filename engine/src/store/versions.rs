//! SQL for versions and for which revision of a node is in which of them.

use super::{StoreError, Tx};
use sqlx::{Any, AnyPool, Executor};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct VersionRow {
    pub site_id: String,
    pub version: i64,
    pub title: String,
    pub description: String,
    pub node_count: i64,
    pub added: i64,
    pub edited: i64,
    pub removed: i64,
    pub state_rev: i64,
    pub created_at: i64,
    pub author: String,
    pub author_name: String,
    pub approval_id: Option<String>,
}

/// A node as one version has it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct PublishedRow {
    pub node_id: String,
    pub rev: i64,
    pub parent: String,
    pub slug: String,
    pub kind: String,
    pub position: i64,
    pub title: String,
}

/// One node in which two states of a site differ; a side is absent where the node is.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct DifferenceRow {
    pub node_id: String,
    pub before_rev: Option<i64>,
    pub before_hash: Option<String>,
    pub after_rev: Option<i64>,
    pub after_hash: Option<String>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!("select site_id, version, title, description, node_count, added, edited, removed, state_rev, created_at, author, author_name, approval_id from versions ", $rest)
    };
}

pub async fn get(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    version: i64,
) -> Result<Option<VersionRow>, StoreError> {
    Ok(
        sqlx::query_as(select!("where site_id = $1 and version = $2"))
            .bind(site)
            .bind(version)
            .fetch_optional(db)
            .await?,
    )
}

/// Newest first, below `before`.
pub async fn list(
    pool: &AnyPool,
    site: &str,
    before: i64,
    limit: i64,
) -> Result<Vec<VersionRow>, StoreError> {
    let sql = select!("where site_id = $1 and version < $2 order by version desc limit $3");
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(before)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

pub async fn insert(tx: &mut Tx, version: &VersionRow) -> Result<(), StoreError> {
    sqlx::query(
        "insert into versions (site_id, version, title, description, node_count, added, edited, removed, state_rev, created_at, author, author_name, approval_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(&version.site_id)
    .bind(version.version)
    .bind(&version.title)
    .bind(&version.description)
    .bind(version.node_count)
    .bind(version.added)
    .bind(version.edited)
    .bind(version.removed)
    .bind(version.state_rev)
    .bind(version.created_at)
    .bind(&version.author)
    .bind(&version.author_name)
    .bind(version.approval_id.as_deref())
    .execute(tx.sql())
    .await?;
    Ok(())
}

/// Carries the draft into `version`: closes what was replaced or removed since the counter stood at `since`, and opens
/// what stands instead. Costs what changed, not what the site holds.
pub async fn publish(tx: &mut Tx, site: &str, version: i64, since: i64) -> Result<(), StoreError> {
    sqlx::query(
        "update published set to_version = $1
         where site_id = $2 and to_version is null and node_id in (select n.id from nodes n where n.site_id = $2 and n.state_rev > $3)
           and not exists (select 1 from nodes n where n.id = published.node_id and n.deleted_at is null and n.rev = published.rev)",
    )
    .bind(version)
    .bind(site)
    .bind(since)
    .execute(tx.sql())
    .await?;
    sqlx::query(
        "insert into published (site_id, node_id, rev, parent, slug, kind, position, title, from_version, to_version)
         select n.site_id, n.id, n.rev, n.parent, n.slug, n.kind, n.position, n.title, $1, null
         from nodes n
         where n.site_id = $2 and n.state_rev > $3 and n.deleted_at is null
           and not exists (select 1 from published p where p.site_id = n.site_id and p.node_id = n.id and p.to_version is null)",
    )
    .bind(version)
    .bind(site)
    .bind(since)
    .execute(tx.sql())
    .await?;
    Ok(())
}

/// The newest version that existed when the site's counter stood at `state_rev`.
pub async fn newest_as_of(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    state_rev: i64,
) -> Result<Option<VersionRow>, StoreError> {
    let sql = select!("where site_id = $1 and state_rev <= $2 order by version desc limit 1");
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(state_rev)
        .fetch_optional(db)
        .await?)
}

/// Where the draft, as it stood at the counter `as_of`, differs from `version` (0 for "nothing is live"). `newest` is the
/// newest version there was and `since` the counter when it was published; both bound what has to be looked at. Read from
/// what never changes, so the answer is the same at any later time.
pub async fn draft_differences(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    version: i64,
    newest: i64,
    since: i64,
    as_of: i64,
) -> Result<Vec<DifferenceRow>, StoreError> {
    let sql = "with heads (id, rev) as (
            select r.node_id, max(r.rev) from node_revisions r where r.site_id = $1 and r.state_rev > $4 and r.state_rev <= $5 group by r.node_id
        ),
        touched (id) as (
            select h.id from heads h
            union
            select p.node_id from published p where p.site_id = $1 and p.from_version > $2 and p.from_version <= $3
            union
            select p.node_id from published p where p.site_id = $1 and p.to_version is not null and p.to_version > $2 and p.to_version <= $3
        )
        select t.id as node_id, b.rev as before_rev, br.hash as before_hash, a.rev as after_rev, a.hash as after_hash
        from touched t
        left join published b on b.node_id = t.id and b.from_version <= $2 and (b.to_version is null or b.to_version > $2)
        left join node_revisions br on br.node_id = b.node_id and br.rev = b.rev
        left join heads h on h.id = t.id
        left join published n on n.node_id = t.id and n.from_version <= $3 and (n.to_version is null or n.to_version > $3)
        left join node_revisions a on a.node_id = t.id and a.rev = coalesce(h.rev, n.rev) and a.removed = 0
        where (b.rev is not null or a.rev is not null) and (b.rev is null or a.rev is null or b.rev <> a.rev)
        order by t.id";
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(version)
        .bind(newest)
        .bind(since)
        .bind(as_of)
        .fetch_all(db)
        .await?)
}

/// Where version `after` differs from version `before`, in either direction of time.
pub async fn differences(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    before: i64,
    after: i64,
) -> Result<Vec<DifferenceRow>, StoreError> {
    let sql = "with touched (id) as (
            select p.node_id from published p where p.site_id = $1 and p.from_version > $4 and p.from_version <= $5
            union
            select p.node_id from published p where p.site_id = $1 and p.to_version is not null and p.to_version > $4 and p.to_version <= $5
        )
        select t.id as node_id, b.rev as before_rev, br.hash as before_hash, a.rev as after_rev, ar.hash as after_hash
        from touched t
        left join published b on b.node_id = t.id and b.from_version <= $2 and (b.to_version is null or b.to_version > $2)
        left join node_revisions br on br.node_id = b.node_id and br.rev = b.rev
        left join published a on a.node_id = t.id and a.from_version <= $3 and (a.to_version is null or a.to_version > $3)
        left join node_revisions ar on ar.node_id = a.node_id and ar.rev = a.rev
        where (b.rev is not null or a.rev is not null) and (b.rev is null or a.rev is null or b.rev <> a.rev)
        order by t.id";
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(before)
        .bind(after)
        .bind(before.min(after))
        .bind(before.max(after))
        .fetch_all(db)
        .await?)
}

macro_rules! in_version {
    ($rest:literal) => {
        concat!(
            "select node_id, rev, parent, slug, kind, position, title from published
             where site_id = $1 and from_version <= $2 and (to_version is null or to_version > $2) ",
            $rest
        )
    };
}

pub async fn children(
    pool: &AnyPool,
    site: &str,
    version: i64,
    parent: &str,
) -> Result<Vec<PublishedRow>, StoreError> {
    let sql = in_version!("and parent = $3 order by position, slug");
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(version)
        .bind(parent)
        .fetch_all(pool)
        .await?)
}

pub async fn node(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    version: i64,
    node: &str,
) -> Result<Option<PublishedRow>, StoreError> {
    Ok(sqlx::query_as(in_version!("and node_id = $3"))
        .bind(site)
        .bind(version)
        .bind(node)
        .fetch_optional(db)
        .await?)
}

/// The slugs on the way to a node in a version, from the top down, its own last.
pub async fn lineage(
    db: impl Executor<'_, Database = Any>,
    site: &str,
    version: i64,
    node: &str,
) -> Result<Vec<String>, StoreError> {
    let sql = "with recursive up (node_id, parent, slug, height) as (
            select node_id, parent, slug, 0 from published
            where node_id = $1 and site_id = $2 and from_version <= $3 and (to_version is null or to_version > $3)
            union all
            select p.node_id, p.parent, p.slug, up.height + 1 from up join published p on p.node_id = up.parent
            where p.site_id = $2 and p.from_version <= $3 and (p.to_version is null or p.to_version > $3)
        )
        select slug from up order by height desc";
    let rows: Vec<(String,)> = sqlx::query_as(sql)
        .bind(node)
        .bind(site)
        .bind(version)
        .fetch_all(db)
        .await?;
    Ok(rows.into_iter().map(|(slug,)| slug).collect())
}

/// The whole of one version, for export and for its map of addresses.
pub async fn all(
    pool: &AnyPool,
    site: &str,
    version: i64,
) -> Result<Vec<PublishedRow>, StoreError> {
    Ok(
        sqlx::query_as(in_version!("order by parent, position, slug"))
            .bind(site)
            .bind(version)
            .fetch_all(pool)
            .await?,
    )
}

/// The first version that holds a node in another form than the revision it names, for the verifier.
pub async fn unlike_their_revisions(
    pool: &AnyPool,
    site: &str,
) -> Result<Vec<(i64, String)>, StoreError> {
    let sql = "select p.from_version, p.node_id from published p left join node_revisions r on r.node_id = p.node_id and r.rev = p.rev
        where p.site_id = $1 and (r.rev is null or r.removed = 1 or r.site_id <> p.site_id or r.parent <> p.parent or r.slug <> p.slug or r.kind <> p.kind
            or r.position <> p.position or r.title <> p.title)
        order by p.from_version, p.node_id limit 1";
    Ok(sqlx::query_as(sql).bind(site).fetch_all(pool).await?)
}

/// How many nodes a version says that it holds, and how many of them begin and end with it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct CountRow {
    pub version: i64,
    pub node_count: i64,
    pub begun: i64,
    pub ended: i64,
}

/// The counts of each version, oldest first, for the verifier to add up: one pass, however many there are.
pub async fn counts(pool: &AnyPool, site: &str) -> Result<Vec<CountRow>, StoreError> {
    let sql = "select v.version, v.node_count, coalesce(b.n, 0) as begun, coalesce(e.n, 0) as ended from versions v
        left join (select from_version as at, count(*) as n from published where site_id = $1 group by from_version) b on b.at = v.version
        left join (select to_version as at, count(*) as n from published where site_id = $1 and to_version is not null group by to_version) e on e.at = v.version
        where v.site_id = $1 order by v.version";
    Ok(sqlx::query_as(sql).bind(site).fetch_all(pool).await?)
}

/// The newest revision a node had when each version was made is the one that the version holds; for the verifier.
pub async fn not_the_newest(pool: &AnyPool, site: &str) -> Result<Vec<(i64, String)>, StoreError> {
    let sql = "select v.version, p.node_id from published p join versions v on v.site_id = p.site_id and v.version = p.from_version
        where p.site_id = $1 and (
          not exists (select 1 from node_revisions r where r.node_id = p.node_id and r.rev = p.rev and r.state_rev < v.state_rev)
          or (select n.state_rev from node_revisions n where n.node_id = p.node_id and n.rev > p.rev order by n.rev limit 1) < v.state_rev)
        order by v.version, p.node_id limit 1";
    Ok(sqlx::query_as(sql).bind(site).fetch_all(pool).await?)
}

/// The first version that carries each revision of a node.
pub async fn first_versions(
    pool: &AnyPool,
    site: &str,
    node: &str,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let sql = "select rev, min(from_version) from published where site_id = $1 and node_id = $2 group by rev";
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(node)
        .fetch_all(pool)
        .await?)
}

/// Nodes of a version whose fields name old addresses.
pub async fn fields_with_aliases(
    pool: &AnyPool,
    site: &str,
    version: i64,
) -> Result<Vec<(String, String)>, StoreError> {
    let sql = "select r.node_id, r.fields from published p join node_revisions r on r.node_id = p.node_id and r.rev = p.rev
        where p.site_id = $1 and p.from_version <= $2 and (p.to_version is null or p.to_version > $2) and r.fields like '%\"aliases\"%'";
    Ok(sqlx::query_as(sql)
        .bind(site)
        .bind(version)
        .fetch_all(pool)
        .await?)
}
