//! Recomputes what is kept incrementally or chained, and names the first place that does not agree.

use crate::{
    Engine, journal,
    sites::settings_hash,
    state::{self, Element, Kind, Lanes},
    store::{
        StoreError, approvals as approvals_sql, journal as journal_sql, nodes as nodes_sql,
        sites as sql,
    },
};

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
        if let Some(fault) = site_fault(engine, &site).await? {
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
    if let Some(id) = approvals_sql::redeemed_without_receipt(engine.store().read())
        .await?
        .first()
    {
        report.fault = Some(format!("approval {id}: redeemed, but without its receipt"));
    }
    Ok(report)
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
