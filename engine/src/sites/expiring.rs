//! Time that has run out is stored, so that a clock that goes back revives nothing.

use super::announce;
use crate::{
    authority::Author,
    journal,
    store::{Fail, Tx, approvals as approvals_sql},
};
use cloudhal_domain::{id::ApprovalId, time::Timestamp};
use serde_json::json;

/// Stores as expired what readers already see so.
pub(crate) async fn expire_overdue(tx: &mut Tx, site: &str, now: Timestamp) -> Result<(), Fail> {
    for id in approvals_sql::expire_site(tx, site, now).await? {
        note_expired(tx, site, &ApprovalId::new(id), now).await?;
    }
    Ok(())
}

/// Ends one open request whose time the site's policy has cut short since it was asked.
pub(crate) async fn expire_early(
    tx: &mut Tx,
    site: &str,
    id: &ApprovalId,
    now: Timestamp,
) -> Result<(), Fail> {
    if approvals_sql::expire_one(tx, id, now).await? {
        note_expired(tx, site, id, now).await?;
    }
    Ok(())
}

async fn note_expired(
    tx: &mut Tx,
    site: &str,
    id: &ApprovalId,
    now: Timestamp,
) -> Result<(), Fail> {
    let entry = journal::Entry {
        kind: "approval.expired",
        actor: &Author::system(),
        approval: Some(id),
        body: json!({}),
    };
    journal::site(tx, site, now, entry).await?;
    announce(tx, "approval.expired", site, Some(id), now).await
}
