//! Requests of agents that do not reach their site any more: they are voided, whatever took the access away.

use crate::{
    Engine,
    authority::Author,
    background::Failures,
    journal::{self, Entry},
    sites::{self, LockedSite},
    store::{Fail, Tx, agents as sql},
};
use cloudhal_domain::{
    approval::VoidCause,
    code::Refusal,
    id::{ApprovalId, SiteId},
    time::Timestamp,
};
use serde_json::json;

/// Voids every such request, site by site, each in a unit of its own, so that one that fails stops no other. Nothing hangs on when it runs: what cannot be reached
/// does not redeem either.
pub async fn void_unreachable(engine: &Engine) -> Result<(), Refusal> {
    let mut failures = Failures::default();
    for (site,) in sql::sites_with_unreachable(engine.store().read()).await? {
        let of = site.clone();
        let unit = engine.store().write(move |tx| {
            Box::pin(async move {
                let Some(locked) = LockedSite::lock(tx, &SiteId::new(&site)).await? else {
                    return Ok(());
                };
                void_unreachable_now(tx, &site, &Author::system(), locked.now()).await
            })
        });
        failures.note("requests without access on a site", &of, unit.await);
    }
    failures.end()
}

/// The same after a change of access, whose answer does not hang on it: what is left here the sweeper finds.
pub(crate) async fn void_soon(engine: &Engine) {
    if let Err(refusal) = void_unreachable(engine).await {
        tracing::warn!(%refusal, "requests that lost their access are voided later");
    }
}

/// The same for one site, inside a unit that holds its lock.
pub(crate) async fn void_unreachable_now(
    tx: &mut Tx,
    site: &str,
    by: &Author,
    now: Timestamp,
) -> Result<(), Fail> {
    for (id,) in sql::void_unreachable(tx, site, now).await? {
        let id = ApprovalId::new(id);
        let entry = Entry {
            kind: "approval.voided",
            actor: by,
            approval: Some(&id),
            body: json!({"cause": VoidCause::AccessLost.as_str()}),
        };
        journal::site(tx, site, now, entry).await?;
        sites::announce(tx, "approval.voided", site, Some(&id), now).await?;
    }
    Ok(())
}
