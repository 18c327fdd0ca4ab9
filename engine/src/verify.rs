//! Recomputes what is kept incrementally or chained, and names the first place that does not agree.

use crate::{
    Engine, journal, signing,
    sites::{Content, settings_hash},
    state::{self, Element, Kind, Lanes},
    store::{
        StoreError, approvals as approvals_sql, journal as journal_sql, nodes as nodes_sql,
        sites as sql, versions as versions_sql,
    },
};
use cloudhal_domain::id::{ApprovalId, SiteId};

/// What was looked at.
#[derive(Debug, Default)]
pub struct Report {
    pub sites: usize,
    pub chains: usize,
    /// The first disagreement, in words.
    pub fault: Option<String>,
}

pub async fn verify(engine: &Engine) -> Result<Report, StoreError> {
    let mut report = Report::default();
    for site in sql::all_ever(engine.store().read()).await? {
        report.sites += 1;
        if let Some(fault) = steady_fault(engine, site).await? {
            report.fault = Some(fault);
            return Ok(report);
        }
    }
    for (chain,) in journal_sql::chains(engine.store().read()).await? {
        report.chains += 1;
        if let Some(fault) = journal::first_fault(engine, &chain).await? {
            report.fault = Some(fault);
            return Ok(report);
        }
    }
    if let Some(fault) = signing::first_fault(engine).await? {
        report.fault = Some(fault);
        return Ok(report);
    }
    if let Some(id) = approvals_sql::redeemed_without_entry(engine.store().read())
        .await?
        .first()
    {
        report.fault = Some(format!(
            "approval {id}: redeemed, but the journal does not tell of it"
        ));
        return Ok(report);
    }
    if let Some(id) = approvals_sql::redeemed_without_receipt(engine.store().read())
        .await?
        .first()
    {
        report.fault = Some(format!("approval {id}: redeemed, but without its receipt"));
        return Ok(report);
    }
    report.fault = record_fault(engine).await?;
    Ok(report)
}

const REVISIONS_AT_ONCE: i64 = 200;
const RECORDS_AT_ONCE: i64 = 200;

/// A site is read in several statements while others may write: what does not agree counts only if nobody wrote meanwhile.
async fn steady_fault(
    engine: &Engine,
    mut site: sql::SiteRow,
) -> Result<Option<String>, StoreError> {
    loop {
        let fault = match site_fault(engine, &site).await? {
            None => match content_fault(engine, &site).await? {
                None => version_fault(engine, &site).await?,
                fault => fault,
            },
            fault => fault,
        };
        if fault.is_none() {
            return Ok(None);
        }
        let now = sql::by_id(engine.store().read(), &SiteId::new(site.id.clone())).await?;
        match now {
            Some(now) if now.state_rev != site.state_rev => site = now,
            _ => return Ok(fault),
        }
    }
}

/// What an approval would run, and what its page shows, are what was asked.
async fn record_fault(engine: &Engine) -> Result<Option<String>, StoreError> {
    let db = engine.store().read();
    let mut after = String::new();
    loop {
        let ids = approvals_sql::ids_after(db, &after, RECORDS_AT_ONCE).await?;
        let Some(last) = ids.last() else {
            return Ok(None);
        };
        after = last.clone();
        for id in ids {
            let intact = match approvals_sql::get(db, &ApprovalId::new(id.clone())).await {
                Ok(stored) => stored.is_none_or(|stored| stored.is_intact()),
                Err(StoreError::Inconsistent { .. }) => false,
                Err(error) => return Err(error),
            };
            if !intact {
                return Ok(Some(format!("approval {id}: its row was changed")));
            }
        }
    }
}

/// What the hashes of a site's state stand for: every revision hashes to what it says, every node is as its revision is.
async fn content_fault(engine: &Engine, site: &sql::SiteRow) -> Result<Option<String>, StoreError> {
    let db = engine.store().read();
    if let Some((node,)) = nodes_sql::unlike_their_revision(db, &site.id)
        .await?
        .first()
    {
        return Ok(Some(format!(
            "site {} ({}): node {node} is not as its revision is",
            site.slug, site.id
        )));
    }
    let mut after = (String::new(), 0);
    loop {
        let rows = nodes_sql::revisions_after(db, &site.id, (&after.0, after.1), REVISIONS_AT_ONCE)
            .await?;
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        after = (last.node_id.clone(), last.rev);
        for row in rows {
            let (node, rev, hash) = (row.node_id.clone(), row.rev, row.hash.clone());
            if Content::from_revision(row)
                .map(|content| content.hash())
                .ok()
                != Some(hash)
            {
                return Ok(Some(format!(
                    "site {} ({}): revision {rev} of node {node} was changed",
                    site.slug, site.id
                )));
            }
        }
    }
}

/// What visitors see: every version holds the revisions that the draft had when it was published, all of them.
async fn version_fault(engine: &Engine, site: &sql::SiteRow) -> Result<Option<String>, StoreError> {
    let db = engine.store().read();
    let other = versions_sql::unlike_their_revisions(db, &site.id).await?;
    let older = versions_sql::not_the_newest(db, &site.id).await?;
    let counts = versions_sql::counts(db, &site.id).await?;
    let fault = match (other.first().or(older.first()), miscounted(&counts)) {
        (Some((version, node)), _) => {
            format!("version {version} holds node {node} as it was not when it was published")
        }
        (None, Some(version)) => {
            format!("version {version} holds another number of nodes than were published")
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(format!("site {} ({}): {fault}", site.slug, site.id)))
}

/// The first version that says another number of nodes than have begun and not ended up to it.
fn miscounted(counts: &[versions_sql::CountRow]) -> Option<i64> {
    let mut held = 0;
    let wrong = counts.iter().find(|row| {
        held += row.begun - row.ended;
        held != row.node_count
    });
    wrong.map(|row| row.version)
}

/// The lanes, the count and the digest of one site, from its nodes alone.
async fn site_fault(engine: &Engine, site: &sql::SiteRow) -> Result<Option<String>, StoreError> {
    let mut lanes = Lanes::default();
    let settings = settings_hash(&site.slug, &site.title, &site.description);
    lanes.add(Element {
        kind: Kind::Settings,
        id: "settings",
        rev: site.settings_rev,
        hash: &settings,
    });
    let elements = nodes_sql::elements(engine.store().read(), &site.id).await?;
    for (id, rev, hash) in &elements {
        lanes.add(Element {
            kind: Kind::Node,
            id,
            rev: *rev,
            hash,
        });
    }
    let stored = sql::stored_lanes(engine.store().read(), &site.id)
        .await?
        .unwrap_or_default();
    let count = elements.len() as i64;
    if count != site.node_count {
        return Ok(Some(format!(
            "site {} ({}): it says {} nodes and has {count}",
            site.slug, site.id, site.node_count
        )));
    }
    if stored != lanes.to_text() {
        return Ok(Some(format!(
            "site {} ({}): the running sum of its state does not equal its nodes",
            site.slug, site.id
        )));
    }
    if state::digest(&site.id, &lanes, site.live_version, count, site.state_rev).as_str()
        != site.state_hash
    {
        return Ok(Some(format!(
            "site {} ({}): its state hash does not equal its state",
            site.slug, site.id
        )));
    }
    Ok(None)
}
