//! Lists and counts of records: for people, and what a caller has open itself.

use super::{CallKey, CallerKey, ids};
use crate::store::{StoreError, Tx};
use cloudhal_domain::{approval::Approval, time::Timestamp};
use sqlx::{Any, AnyPool, Row as _};

/// One row of a list.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ListRow {
    pub id: String,
    pub site_id: String,
    pub site_slug: String,
    pub site_title: String,
    pub sentence: String,
    pub caller_name: String,
    pub surface: String,
    pub tool: String,
    pub risk: String,
    pub status: String,
    pub requested_at: i64,
    pub expires_at: i64,
    pub changed_at: Option<i64>,
    pub outcome: Option<String>,
}

/// What a list shows. Texts are compared with `''` meaning "any", so that one statement serves every filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Sites the viewer may see, or all of them.
    pub person: Option<String>,
    /// In the Studio and `/api` a slug or an id; in a statement an id.
    pub site: String,
    pub tool: String,
    pub agent: String,
    /// Lower-case text within sentence or asker.
    pub text: String,
}

/// Standing as readers compute it, so that an overdue row leaves the queue before the sweeper comes.
macro_rules! list {
    ($site:literal, $($where:literal)+) => {
        concat!(
            "select a.id, a.site_id, s.slug as site_slug, s.title as site_title, a.sentence, a.caller_name, a.surface, a.tool, a.risk,
                case when a.status in ('pending', 'approved') and a.expires_at <= $1 then 'expired' else a.status end as status,
                a.requested_at, a.expires_at, a.changed_at, r.outcome
             from approvals a join sites s on s.id = a.site_id left join receipts r on r.approval_id = a.id
             where ", $site, " and ($3 = '' or a.tool = $3) and ($4 = '' or a.caller_name = $4)
               and ($5 = '' or lower(a.sentence) like '%' || $5 || '%' or lower(a.caller_name) like '%' || $5 || '%')
               and ($6 = '' or a.site_id in (select m.site_id from memberships m where m.person_id = $6)) and ",
            $($where),+
        )
    };
}

/// The list of one site is a statement of its own, since an index that begins with the site serves no "this one or any".
/// One status: `approvals_by_status`, of a site `approvals_history`. All of them: `approvals_by_time`, of a site
/// `approvals_by_site_time`. Only there does a page cost the same however long the history is; any other filter reads on from
/// where the page begins until enough rows fit.
macro_rules! of_sites {
    ($filter:expr, $($where:literal)+) => {
        match $filter.site.is_empty() {
            true => list!("$2 = ''", $($where)+),
            false => list!("a.site_id = $2", $($where)+),
        }
    };
}

/// Pending ones, oldest-expiring first; `after` is (expires_at, id).
pub async fn list_waiting(
    pool: &AnyPool,
    filter: &Filter,
    after: (i64, &str),
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ListRow>, StoreError> {
    let sql = of_sites!(
        filter,
        "a.status = 'pending' and a.expires_at > $1 and (a.expires_at > $7 or (a.expires_at = $7 and a.id > $8)) order by a.expires_at, a.id limit $9"
    );
    Ok(bind_filter(sqlx::query_as(sql), filter, now)
        .bind(after.0)
        .bind(after.1)
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

/// A list of history goes on before this one: (requested_at, id).
pub type Before<'b> = (i64, &'b str);

/// Newest first, from a place on. The first condition is the one that an index can begin at.
macro_rules! history {
    ($filter:expr, $where:literal) => {
        of_sites!($filter, $where
            "a.requested_at <= $7 and (a.requested_at < $7 or a.id < $8) order by a.requested_at desc, a.id desc limit $9")
    };
}

/// Those of one stored status. An open one that is overdue stands elsewhere.
pub async fn list_stored(
    pool: &AnyPool,
    filter: &Filter,
    status: &str,
    before: Before<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ListRow>, StoreError> {
    let sql = history!(
        filter,
        "a.status = $10 and (a.status not in ('pending', 'approved') or a.expires_at > $1) and "
    );
    let query = bind_place(sqlx::query_as(sql), filter, before, now, limit);
    Ok(query.bind(status.to_owned()).fetch_all(pool).await?)
}

/// Those that have run out and are not stored so yet. They are few, and sorted: the sum keeps SQLite from reading a whole
/// history in its order to find them.
pub async fn list_overdue(
    pool: &AnyPool,
    filter: &Filter,
    before: Before<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ListRow>, StoreError> {
    let sql = of_sites!(
        filter,
        "a.status in ('pending', 'approved') and a.expires_at <= $1 and a.requested_at <= $7 and (a.requested_at < $7 or a.id < $8)
         order by a.requested_at + 0 desc, a.id desc limit $9"
    );
    let query = bind_place(sqlx::query_as(sql), filter, before, now, limit);
    Ok(query.fetch_all(pool).await?)
}

/// Whatever their status.
pub async fn list_all(
    pool: &AnyPool,
    filter: &Filter,
    before: Before<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ListRow>, StoreError> {
    let sql = history!(filter, "");
    let query = bind_place(sqlx::query_as(sql), filter, before, now, limit);
    Ok(query.fetch_all(pool).await?)
}

fn bind_place<'q>(
    query: Query<'q, ListRow>,
    filter: &Filter,
    before: Before<'_>,
    now: Timestamp,
    limit: i64,
) -> Query<'q, ListRow> {
    bind_filter(query, filter, now)
        .bind(before.0)
        .bind(before.1.to_owned())
        .bind(limit)
}

type Query<'q, T> = sqlx::query::QueryAs<'q, Any, T, sqlx::any::AnyArguments>;

fn bind_filter<'q, T>(query: Query<'q, T>, filter: &Filter, now: Timestamp) -> Query<'q, T> {
    query
        .bind(now.ms())
        .bind(filter.site.clone())
        .bind(filter.tool.clone())
        .bind(filter.agent.clone())
        .bind(filter.text.clone())
        .bind(filter.person.clone().unwrap_or_default())
}

/// How many are open of each standing, for the tabs. What is closed is not counted: that would cost more every day.
pub async fn open_counts(
    pool: &AnyPool,
    filter: &Filter,
    now: Timestamp,
) -> Result<Vec<(String, i64)>, StoreError> {
    let sql = "select a.status, count(*)
        from approvals a
        where a.status in ('pending', 'approved') and a.expires_at > $1
          and ($2 = '' or a.site_id = $2) and ($3 = '' or a.tool = $3) and ($4 = '' or a.caller_name = $4)
          and ($5 = '' or lower(a.sentence) like '%' || $5 || '%' or lower(a.caller_name) like '%' || $5 || '%')
          and ($6 = '' or a.site_id in (select m.site_id from memberships m where m.person_id = $6))
        group by 1";
    Ok(bind_filter(sqlx::query_as(sql), filter, now)
        .fetch_all(pool)
        .await?)
}

/// Pending ones on the sites where a person may decide; for the badge.
pub async fn waiting_for(
    pool: &AnyPool,
    person: Option<&str>,
    site: Option<&str>,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let sql = "select count(*) from approvals a join sites s on s.id = a.site_id
        where a.status = 'pending' and a.expires_at > $1 and ($2 = '' or a.site_id = $2)
          and ($3 = '' or a.site_id in (select m.site_id from memberships m where m.person_id = $3 and m.role in ('approver', 'owner')))";
    let row = sqlx::query(sql)
        .bind(now.ms())
        .bind(site.unwrap_or_default())
        .bind(person.unwrap_or_default())
        .fetch_one(pool)
        .await?;
    Ok(row.try_get(0)?)
}

/// One of a caller's own requests that are open.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct MineRow {
    pub id: String,
    pub site_id: String,
    pub sentence: String,
    pub status: String,
    pub requested_at: i64,
}

/// What a caller has waiting or approved over one surface, newest first.
pub async fn open_of_caller(
    pool: &AnyPool,
    caller: CallerKey<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<MineRow>, StoreError> {
    let sql = "select id, site_id, sentence, status, requested_at from approvals
        where caller_kind = $1 and caller_id = $2 and status in ('pending', 'approved') and surface = $3 and expires_at > $4
        order by requested_at desc, id desc limit $5";
    Ok(sqlx::query_as(sql)
        .bind(caller.kind.as_str())
        .bind(caller.id)
        .bind(caller.surface.as_str())
        .bind(now.ms())
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

/// The latest denial of this call, by whichever door it came, after a moment.
pub async fn denied_since(
    tx: &mut Tx,
    call: CallKey<'_>,
    since: Timestamp,
) -> Result<Option<String>, StoreError> {
    let sql = "select id from approvals where site_id = $1 and tool = $2 and args_hash = $3 and caller_kind = $4 and caller_id = $5
        and state_hash = $6 and status = 'denied' and changed_at > $7 order by changed_at desc limit 1";
    let row = sqlx::query(sql)
        .bind(call.site.as_str())
        .bind(call.tool)
        .bind(call.args_hash.as_str())
        .bind(call.caller.kind.as_str())
        .bind(call.caller.id)
        .bind(call.state_hash)
        .bind(since.ms())
        .fetch_optional(tx.sql())
        .await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Other requests for the same call by anyone, newest first.
pub async fn same_call(
    pool: &AnyPool,
    approval: &Approval,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let sql = "select id from approvals where site_id = $1 and tool = $2 and args_hash = $3 and id <> $4 order by requested_at desc limit $5";
    ids(sqlx::query(sql)
        .bind(approval.site.as_str())
        .bind(&approval.tool)
        .bind(approval.args_hash.as_str())
        .bind(approval.id.as_str())
        .bind(limit)
        .fetch_all(pool)
        .await?)
}

/// A later open request by the same caller with the same tool, for "there is a newer one". The few open ones are sorted, as
/// in [`list_overdue`].
pub async fn newer_open(
    pool: &AnyPool,
    approval: &Approval,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let sql = "select id from approvals where site_id = $1 and tool = $2 and caller_kind = $3 and caller_id = $4 and id <> $5 and requested_at >= $6
        and status in ('pending', 'approved') and expires_at > $7 order by requested_at + 0 desc limit 1";
    let row = sqlx::query(sql)
        .bind(approval.site.as_str())
        .bind(&approval.tool)
        .bind(approval.caller_kind.as_str())
        .bind(&approval.caller_id)
        .bind(approval.id.as_str())
        .bind(approval.requested_at.ms())
        .bind(now.ms())
        .fetch_optional(pool)
        .await?;
    row.map(|row| row.try_get(0))
        .transpose()
        .map_err(Into::into)
}

/// One list row by id, where the filter lets the viewer see it.
pub async fn list_one(
    pool: &AnyPool,
    id: &str,
    now: Timestamp,
) -> Result<Option<ListRow>, StoreError> {
    let any = Filter::default();
    let sql = of_sites!(any, "a.id = $7");
    Ok(bind_filter(sqlx::query_as(sql), &any, now)
        .bind(id)
        .fetch_optional(pool)
        .await?)
}
