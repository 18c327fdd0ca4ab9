//! What the Studio's screens show, as one question each. Reading only; whoever may not see a thing gets "not found".

use crate::{
    Engine, changes,
    people::{self, Person},
    store::{
        agents as agents_sql, approvals as approvals_sql, journal as journal_sql,
        nodes::{self as nodes_sql, NodeRow as StoredNode, RevisionRow as StoredRevision},
        sites::{self as sites_sql, SiteRow as StoredSite},
        versions as versions_sql,
    },
    tools::Run,
};
use cloudhal_domain::{
    approval::Status,
    card::{Asker, Card, Change, NodeChange, RevisionRef, Risk},
    code::Refusal,
    digest::Digest,
    id::{ApprovalId, NodeId, SiteId},
    limits,
    role::Role,
    time::Timestamp,
    tool::{CallerKind, Surface},
    view::*,
};
use serde_json::{Value, json};

mod access;
mod journal;
mod request;

pub use crate::store::approvals::Filter;
pub use access::{agent, agents, agents_kept, people, settings, site_agents};
pub(crate) use access::{agents_on, whole_agent};
pub use journal::journal;
pub use request::{approval, changes, preview};

use journal::journal_row;

const HISTORY_MAX: i64 = 50;
const RECENT_MAX: i64 = 8;

pub async fn viewer(engine: &Engine, person: &Person) -> Result<Viewer, Refusal> {
    let waiting = approvals_sql::waiting_for(
        engine.store().read(),
        person.filter().as_deref(),
        None,
        engine.now(),
    )
    .await?;
    Ok(Viewer {
        name: person.name().into(),
        email: person.email().into(),
        owner: person.is_workspace_owner(),
        waiting,
    })
}

pub async fn inbox(
    engine: &Engine,
    person: &Person,
    query: InboxQuery,
) -> Result<InboxPage, Refusal> {
    let filter = approvals_sql::Filter {
        person: person.filter(),
        site: query.site.unwrap_or_default(),
        tool: query.tool.unwrap_or_default(),
        agent: query.agent.unwrap_or_default(),
        text: query.text.unwrap_or_default().trim().to_lowercase(),
    };
    let (rows, next_cursor) = list(
        engine,
        &filter,
        query.tab,
        query.cursor.as_deref(),
        limits::PAGE_ITEMS_DEFAULT,
    )
    .await?;
    let mut open = Vec::new();
    for filter in by_site(engine, &filter).await? {
        open.extend(
            approvals_sql::open_counts(engine.store().read(), &filter, engine.now()).await?,
        );
    }
    let count = |status: Status| {
        let of = |(word, _): &&(String, i64)| word == status.as_str();
        open.iter().filter(of).map(|(_, n)| n).sum()
    };
    Ok(InboxPage {
        rows,
        next_cursor,
        waiting: count(Status::Pending),
        approved: count(Status::Approved),
        has_agents: !agents_sql::all(engine.store().read()).await?.is_empty(),
        mcp_url: engine.mcp_url(),
    })
}

/// One page of records, for the Studio and for `/api`.
pub async fn list(
    engine: &Engine,
    filter: &approvals_sql::Filter,
    tab: Tab,
    cursor: Option<&str>,
    limit: i64,
) -> Result<(Vec<InboxRow>, Option<String>), Refusal> {
    let standings = match tab.statuses() {
        [one] => (one.as_str(), one.as_str()),
        [one, other] => (one.as_str(), other.as_str()),
        _ => ("", ""),
    };
    list_standings(engine, filter, standings, cursor, limit).await
}

/// The same by up to two standings; `("", "")` means all.
pub async fn list_standings(
    engine: &Engine,
    filter: &approvals_sql::Filter,
    standings: (&str, &str),
    cursor: Option<&str>,
    limit: i64,
) -> Result<(Vec<InboxRow>, Option<String>), Refusal> {
    let (db, now) = (engine.store().read(), engine.now());
    let bad_cursor =
        || crate::sites::invalid("/cursor", "this is not a nextCursor of an earlier page");
    let place = cursor
        .map(|text| {
            text.split_once('.')
                .and_then(|(at, id)| Some((at.parse::<i64>().ok()?, id)))
                .ok_or_else(bad_cursor)
        })
        .transpose()?;
    let waiting = standings.0 == Status::Pending.as_str();
    let mut rows = Vec::new();
    for filter in by_site(engine, filter).await? {
        rows.extend(if waiting {
            let after = place.unwrap_or((i64::MIN, ""));
            approvals_sql::list_waiting(db, &filter, after, now, limit + 1).await?
        } else {
            let before = place.unwrap_or((i64::MAX, ""));
            by_standing(engine, &filter, standings, before, limit + 1).await?
        });
    }
    if waiting {
        rows.sort_by(|a, b| (a.expires_at, &a.id).cmp(&(b.expires_at, &b.id)));
    } else {
        rows.sort_by(|a, b| (b.requested_at, &b.id).cmp(&(a.requested_at, &a.id)));
    }
    let more = rows.len() as i64 > limit;
    rows.truncate(limit as usize);
    let next = rows.last().filter(|_| more).map(|row| {
        format!(
            "{}.{}",
            if waiting {
                row.expires_at
            } else {
                row.requested_at
            },
            row.id
        )
    });
    Ok((rows.into_iter().filter_map(inbox_row).collect(), next))
}

/// Closed ones and approved ones: the newest of each standing, by its own index.
async fn by_standing(
    engine: &Engine,
    filter: &approvals_sql::Filter,
    standings: (&str, &str),
    before: approvals_sql::Before<'_>,
    limit: i64,
) -> Result<Vec<approvals_sql::ListRow>, Refusal> {
    let (db, now) = (engine.store().read(), engine.now());
    if standings.0.is_empty() {
        return Ok(approvals_sql::list_all(db, filter, before, now, limit).await?);
    }
    let mut wanted = vec![standings.0];
    if standings.1 != standings.0 {
        wanted.push(standings.1);
    }
    let mut rows = Vec::new();
    for status in wanted {
        rows.extend(approvals_sql::list_stored(db, filter, status, before, now, limit).await?);
        if status == Status::Expired.as_str() {
            rows.extend(approvals_sql::list_overdue(db, filter, before, now, limit).await?);
        }
    }
    Ok(rows)
}

/// The filter once for each site that it names: those of a slug that was freed and taken again are asked for each by itself.
async fn by_site(
    engine: &Engine,
    filter: &approvals_sql::Filter,
) -> Result<Vec<approvals_sql::Filter>, Refusal> {
    if filter.site.is_empty() {
        return Ok(vec![filter.clone()]);
    }
    if filter.site.contains('\0') {
        return Ok(Vec::new());
    }
    let sites = sites_sql::ids_called(engine.store().read(), &filter.site).await?;
    let of = |(site,): (String,)| approvals_sql::Filter {
        site,
        ..filter.clone()
    };
    Ok(sites.into_iter().map(of).collect())
}

fn inbox_row(row: approvals_sql::ListRow) -> Option<InboxRow> {
    Some(InboxRow {
        id: ApprovalId::new(row.id),
        sentence: row.sentence,
        site_slug: row.site_slug,
        site_title: row.site_title,
        asker: row.caller_name,
        surface: Surface::from_text(&row.surface)?,
        tool: row.tool,
        risk: if row.risk == "irreversible" {
            Risk::Irreversible
        } else {
            Risk::Reversible
        },
        status: Status::from_text(&row.status)?,
        requested_at: Timestamp(row.requested_at),
        expires_at: Timestamp(row.expires_at),
        changed_at: row.changed_at.map(Timestamp),
        outcome: row.outcome,
    })
}

/// A node of the draft, rendered for a sandboxed frame.
pub async fn draft_preview(
    engine: &Engine,
    person: &Person,
    slug: &str,
    node: &NodeId,
) -> Result<String, Refusal> {
    let (site, _) = site_of(engine, person, slug).await?;
    let db = engine.store().read();
    let row = nodes_sql::get(db, &site.id, node.as_str())
        .await?
        .ok_or_else(|| Refusal::not_found("node"))?;
    let revision = nodes_sql::revision(db, &site.id, &row.id, row.rev)
        .await?
        .ok_or_else(|| Refusal::not_found("node"))?;
    let path = changes::path_of(&nodes_sql::lineage(db, &site.id, &row.id).await?);
    Ok(crate::published::preview(&site, &path, &revision))
}

/// A site by its slug, with the person's role on it.
pub async fn site_of(
    engine: &Engine,
    person: &Person,
    slug: &str,
) -> Result<(StoredSite, Role), Refusal> {
    let site = sites_sql::by_slug(engine.store().read(), slug)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    let role = people::role_on(engine, person, &SiteId::new(&site.id))
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    Ok((site, role))
}

pub async fn sites(engine: &Engine, person: &Person) -> Result<Vec<SiteRow>, Refusal> {
    let db = engine.store().read();
    let rows = if person.is_workspace_owner() {
        sites_sql::all(db).await?
    } else {
        sites_sql::of_person(db, person.id()).await?
    };
    let mut sites = Vec::with_capacity(rows.len());
    for row in rows {
        let role = people::role_on(engine, person, &SiteId::new(&row.id))
            .await?
            .unwrap_or(Role::Viewer);
        sites.push(site_row(engine, row, role).await?);
    }
    Ok(sites)
}

async fn site_row(engine: &Engine, site: StoredSite, role: Role) -> Result<SiteRow, Refusal> {
    let db = engine.store().read();
    let live = match site.live_version {
        Some(version) => versions_sql::get(db, &site.id, version).await?,
        None => None,
    };
    let (newest, since) = newest(engine, &site).await?;
    let differences = versions_sql::draft_differences(
        db,
        &site.id,
        site.live_version.unwrap_or(0),
        newest,
        since,
        site.state_rev,
    )
    .await?;
    let waiting = approvals_sql::waiting_for(db, None, Some(&site.id), engine.now()).await?;
    Ok(SiteRow {
        id: SiteId::new(site.id),
        slug: site.slug,
        title: site.title,
        node_count: site.node_count,
        live_version: site.live_version,
        live_at: live.map(|v| Timestamp(v.created_at)),
        unpublished: differences.len() as i64,
        waiting,
        role,
    })
}

/// Number of the newest version and the draft's counter at its publish.
async fn newest(engine: &Engine, site: &StoredSite) -> Result<(i64, i64), Refusal> {
    if site.next_version == 1 {
        return Ok((0, 0));
    }
    let newest = versions_sql::get(engine.store().read(), &site.id, site.next_version - 1).await?;
    Ok(newest.map_or((0, 0), |v| (v.version, v.state_rev)))
}

pub async fn site(engine: &Engine, person: &Person, slug: &str) -> Result<SiteView, Refusal> {
    let (stored, role) = site_of(engine, person, slug).await?;
    let recent =
        journal_sql::recent(engine.store().read(), &stored.id, i64::MAX, RECENT_MAX).await?;
    let nodes = node_rows(
        engine,
        &stored,
        nodes_sql::children(engine.store().read(), &stored.id, "").await?,
        "",
    )
    .await?;
    Ok(SiteView {
        nodes,
        live_url: engine.live_url(&stored.slug, ""),
        publish_card: publish_card(engine, person, &stored).await?,
        state_hash: stored.state_hash.clone(),
        recent: recent.iter().map(journal_row).collect(),
        site: site_row(engine, stored, role).await?,
    })
}

/// What the person's own publish would do: the very card an agent's request would carry.
async fn publish_card(
    engine: &Engine,
    person: &Person,
    site: &StoredSite,
) -> Result<Card, Refusal> {
    let Run::Gated(gated) = engine.tools().get("publish")?.run.clone() else {
        return Err(Refusal::not_found("tool"));
    };
    let asker = Asker {
        kind: CallerKind::Person,
        id: person.id().as_str().into(),
        name: person.name().into(),
        owner: None,
        surface: Surface::Direct,
        client: None,
    };
    let (id, empty) = (SiteId::new(&site.id), site.node_count == 0);
    if empty {
        return Ok(Card {
            sentence: format!("{} has no pages yet", site.title),
            consequence: "There is nothing to publish.".into(),
            risk: Risk::Reversible,
            site: cloudhal_domain::card::CardSite {
                id,
                slug: site.slug.clone(),
                title: site.title.clone(),
                live_version: site.live_version,
                node_count: 0,
                state_rev: site.state_rev,
            },
            asker,
            facts: Vec::new(),
            changes: None,
        });
    }
    let mut db = engine.store().reader().await?;
    Ok(gated
        .card_now(&mut db, site, asker, &json!({"site": site.id}))
        .await?)
}

async fn node_rows(
    engine: &Engine,
    site: &StoredSite,
    rows: Vec<StoredNode>,
    base: &str,
) -> Result<Vec<NodeRow>, Refusal> {
    let mut out = Vec::with_capacity(rows.len());
    for row in rows {
        let path = if base.is_empty() {
            row.slug.clone()
        } else {
            format!("{base}/{}", row.slug)
        };
        out.push(node_row(engine, site, row, path).await?);
    }
    Ok(out)
}

async fn node_row(
    engine: &Engine,
    site: &StoredSite,
    row: StoredNode,
    path: String,
) -> Result<NodeRow, Refusal> {
    let db = engine.store().read();
    let live = match site.live_version {
        Some(version) => versions_sql::node(db, &site.id, version, &row.id).await?,
        None => None,
    };
    let status = match live {
        None => NodeStatus::New,
        Some(live) if live.rev == row.rev => NodeStatus::Live,
        Some(_) => NodeStatus::Edited,
    };
    Ok(NodeRow {
        children: nodes_sql::child_count(db, &site.id, &row.id).await?,
        id: NodeId::new(row.id),
        kind: row.kind,
        title: row.title,
        slug: row.slug,
        path,
        status,
        updated_at: Timestamp(row.updated_at),
    })
}

pub async fn node(
    engine: &Engine,
    person: &Person,
    slug: &str,
    node: &NodeId,
) -> Result<NodeView, Refusal> {
    let (site, role) = site_of(engine, person, slug).await?;
    let db = engine.store().read();
    let mut lineage = nodes_sql::lineage(db, &site.id, node.as_str()).await?;
    let path = changes::path_of(&lineage);
    let row = lineage
        .pop()
        .filter(|n| n.deleted_at.is_none())
        .ok_or_else(|| Refusal::not_found("node"))?;
    let current = nodes_sql::revision(db, &site.id, &row.id, row.rev)
        .await?
        .ok_or_else(|| Refusal::not_found("node"))?;
    let mut parents = Vec::new();
    for at in 0..lineage.len() {
        parents.push(
            node_row(
                engine,
                &site,
                lineage[at].clone(),
                changes::path_of(&lineage[..=at]),
            )
            .await?,
        );
    }
    let children = node_rows(
        engine,
        &site,
        nodes_sql::children(db, &site.id, &row.id).await?,
        &path,
    )
    .await?;
    let fields: Value = serde_json::from_str(&current.fields).unwrap_or(Value::Null);
    let live = match site.live_version {
        Some(version) => versions_sql::node(db, &site.id, version, &row.id).await?,
        None => None,
    };
    Ok(NodeView {
        state_hash: site.state_hash.clone(),
        diff: live_diff(engine, &site, &row, &current, live.as_ref(), &path).await?,
        live_url: live.map(|_| engine.live_url(&site.slug, &path)),
        history: history(engine, &site.id, &row.id).await?,
        description: fields
            .get("description")
            .and_then(Value::as_str)
            .map(str::to_owned),
        body: current.body,
        fields,
        rev: row.rev,
        hash: row.hash.clone(),
        node: node_row(engine, &site, row, path).await?,
        parents,
        children,
        site: site_row(engine, site, role).await?,
    })
}

async fn live_diff(
    engine: &Engine,
    site: &StoredSite,
    row: &StoredNode,
    current: &StoredRevision,
    live: Option<&versions_sql::PublishedRow>,
    path: &str,
) -> Result<Option<NodeDiff>, Refusal> {
    let Some(live) = live.filter(|live| live.rev != row.rev) else {
        return Ok(None);
    };
    let old = nodes_sql::revision(engine.store().read(), &site.id, &row.id, live.rev).await?;
    let change = NodeChange {
        node: NodeId::new(&row.id),
        change: Change::Edited,
        kind: row.kind.clone(),
        title: row.title.clone(),
        path: path.to_owned(),
        path_before: None,
        position: Some(row.position),
        before: old.as_ref().map(|r| RevisionRef {
            rev: r.rev,
            hash: Digest::from_text(&r.hash),
        }),
        after: Some(RevisionRef {
            rev: row.rev,
            hash: Digest::from_text(&row.hash),
        }),
        words_added: 0,
        words_removed: 0,
    };
    Ok(Some(changes::node_diff(
        change,
        old.as_ref(),
        Some(current),
    )))
}

async fn history(engine: &Engine, site: &str, node: &str) -> Result<Vec<RevisionRow>, Refusal> {
    let published = versions_sql::first_versions(engine.store().read(), site, node).await?;
    let row = |r: StoredRevision| RevisionRow {
        published_in: published
            .iter()
            .find(|(rev, _)| *rev == r.rev)
            .map(|(_, version)| *version),
        rev: r.rev,
        title: r.title,
        at: Timestamp(r.created_at),
        author: r.author_name,
    };
    Ok(
        nodes_sql::revisions(engine.store().read(), site, node, HISTORY_MAX)
            .await?
            .into_iter()
            .map(row)
            .collect(),
    )
}

pub async fn versions(
    engine: &Engine,
    person: &Person,
    slug: &str,
    cursor: Option<String>,
) -> Result<VersionsView, Refusal> {
    let (site, role) = site_of(engine, person, slug).await?;
    let before = match cursor {
        Some(text) => text.parse().map_err(|_| {
            crate::sites::invalid("/cursor", "this is not a cursor of an earlier page")
        })?,
        None => i64::MAX,
    };
    let limit = limits::PAGE_ITEMS_DEFAULT;
    let mut rows = versions_sql::list(engine.store().read(), &site.id, before, limit + 1).await?;
    let more = rows.len() as i64 > limit;
    rows.truncate(limit as usize);
    let next_cursor = rows
        .last()
        .filter(|_| more)
        .map(|row| row.version.to_string());
    let live = site.live_version;
    let version = |row: versions_sql::VersionRow| VersionRow {
        live: live == Some(row.version),
        version: row.version,
        at: Timestamp(row.created_at),
        author: row.author_name,
        node_count: row.node_count,
        added: row.added,
        edited: row.edited,
        removed: row.removed,
        approval: row.approval_id.map(ApprovalId::new),
    };
    Ok(VersionsView {
        state_hash: site.state_hash.clone(),
        versions: rows.into_iter().map(version).collect(),
        next_cursor,
        site: site_row(engine, site, role).await?,
    })
}
