//! What a caller may look at besides its calls: the requests it has open, and whether it may still be told of anything while a
//! stream of its own lasts. Both read alone.

use crate::{
    Engine,
    callers::Caller,
    store::{agents as agents_sql, approvals as sql, personal_keys as personal_sql},
};
use cloudhal_domain::{
    approval::Status,
    code::Refusal,
    id::{ApprovalId, SiteId},
    limits,
    time::Timestamp,
};

/// One of the caller's own requests that wait, or are approved and not yet run.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    pub id: ApprovalId,
    pub site: SiteId,
    /// What would happen, as the card says it.
    pub sentence: String,
    pub status: Status,
    pub requested_at: Timestamp,
}

/// The caller's own open requests over its own surface, newest first; at most [`limits::PAGE_ITEMS_MAX`].
pub async fn open_requests(engine: &Engine, caller: &Caller) -> Result<Vec<OpenRequest>, Refusal> {
    let key = sql::CallerKey {
        kind: caller.kind(),
        id: caller.id(),
        surface: caller.surface(),
    };
    let (db, now) = (engine.store().read(), engine.now());
    let rows = sql::open_of_caller(db, key, now, limits::PAGE_ITEMS_MAX).await?;
    let request = |row: sql::MineRow| OpenRequest {
        id: ApprovalId::new(row.id),
        site: SiteId::new(row.site_id),
        sentence: row.sentence,
        status: match row.status == Status::Approved.as_str() {
            true => Status::Approved,
            false => Status::Pending,
        },
        requested_at: Timestamp(row.requested_at),
    };
    Ok(rows.into_iter().map(request).collect())
}

/// Whether the key that a caller came with is still good now and, where a tool is named, still holds it. A stream asks now and
/// then, since its key was looked at only once. A caller without a key has none to lose.
pub async fn may_still(
    engine: &Engine,
    caller: &Caller,
    tool: Option<&str>,
) -> Result<bool, Refusal> {
    let Some(key) = caller.key_id() else {
        return Ok(true);
    };
    let (db, now) = (engine.store().read(), engine.now());
    if caller.as_person().is_some() {
        // A person's key holds every tool, and ends with its session.
        return Ok(personal_sql::holder(db, key, now).await?.is_some());
    }
    let Some(holder) = agents_sql::holder(db, key, now).await? else {
        return Ok(false);
    };
    match tool {
        Some(tool) if holder.all_tools != 1 => {
            let tools = agents_sql::tools(db, &holder.agent_id).await?;
            Ok(tools.iter().any(|(held,)| held == tool))
        }
        _ => Ok(true),
    }
}
