//! One request as its page shows it: the record, what would change, and what came of it.

use super::{inbox_row, journal_row};
use crate::{
    Engine, approvals, changes as describing,
    people::{self, Person},
    policies,
    sites::Content,
    store::{
        approvals as approvals_sql, journal as journal_sql, nodes::RevisionRow as StoredRevision,
        sites as sites_sql,
    },
    tools::Run,
};
use cloudhal_domain::{
    approval::{Approval, Status},
    canonical,
    card::{NodeChange, RevisionRef},
    code::Refusal,
    id::{ApprovalId, NodeId},
    limits, link,
    role::Role,
    view::{ApprovalView, ChangesView, NodeDiff},
};

pub async fn approval(
    engine: &Engine,
    person: &Person,
    id: &ApprovalId,
) -> Result<ApprovalView, Refusal> {
    let (db, now) = (engine.store().read(), engine.now());
    let approval = approvals::for_person(engine, person, id).await?.approval;
    let role = people::role_on(engine, person, &approval.site).await?;
    let standing = approval.standing(now);
    let mut earlier = Vec::new();
    for other in approvals_sql::same_call(db, &approval, 5).await? {
        earlier.extend(
            approvals_sql::list_one(db, &other, now)
                .await?
                .and_then(inbox_row),
        );
    }
    earlier.retain(|row| row.requested_at <= approval.requested_at);
    // What was approved and ran has its own end to show; only one that came to nothing points on.
    let newer = if standing.is_open() || standing == Status::Redeemed {
        None
    } else {
        approvals_sql::newer_open(db, &approval, now)
            .await?
            .map(ApprovalId::new)
    };
    let journal = journal_sql::of_approval(db, id.as_str()).await?;
    let needs = {
        let mut reader = engine.store().reader().await?;
        policies::needs(&mut reader, &approval, person.id()).await?
    };
    Ok(ApprovalView {
        arguments_text: canonical::text(&approval.arguments),
        may_decide: role.is_some_and(Role::may_decide),
        needs,
        own_agent: approval
            .card
            .asker
            .owner
            .as_ref()
            .is_some_and(|owner| owner.id == *person.id()),
        diffs: diffs(engine, &approval).await?,
        changed: if standing == Status::Voided {
            describing::since(engine, &approval).await?
        } else {
            Vec::new()
        },
        newer,
        earlier,
        live_url: (standing == Status::Redeemed)
            .then(|| engine.live_url(&approval.card.site.slug, "")),
        journal: journal.iter().map(journal_row).collect(),
        record: approval.record(now, engine.approval_url(id)),
    })
}

async fn diffs(engine: &Engine, approval: &Approval) -> Result<Vec<NodeDiff>, Refusal> {
    let Some(all) = &approval.card.changes else {
        return Ok(Vec::new());
    };
    let mut diffs = Vec::new();
    for change in &all.nodes {
        let old = before(engine, approval, change).await?;
        let new = after(engine, approval, change).await?;
        diffs.push(describing::node_diff(
            change.clone(),
            old.as_ref(),
            new.as_ref(),
        ));
    }
    Ok(diffs)
}

/// What a node held when the request was made.
async fn before(
    engine: &Engine,
    approval: &Approval,
    change: &NodeChange,
) -> Result<Option<StoredRevision>, Refusal> {
    bound(engine, approval, change, change.before.as_ref()).await
}

/// What it would hold: a stored revision, or, where the request is for a change of the draft itself, that change on top of
/// what was there before, at the place that the card says.
async fn after(
    engine: &Engine,
    approval: &Approval,
    change: &NodeChange,
) -> Result<Option<StoredRevision>, Refusal> {
    let (Some(side), Run::Draft(draft)) = (&change.after, &engine.tools().get(&approval.tool)?.run)
    else {
        return bound(engine, approval, change, change.after.as_ref()).await;
    };
    let now = before(engine, approval, change).await?;
    let now = now.map(Content::from_revision).transpose()?;
    let mut content = draft.content(approval.arguments.clone(), now)?;
    content.position = change.position.unwrap_or(content.position);
    describing::expect_bound(&content, side)?;
    Ok(Some(content.as_revision(
        &approval.site,
        &change.node,
        side.rev,
    )))
}

async fn bound(
    engine: &Engine,
    approval: &Approval,
    change: &NodeChange,
    side: Option<&RevisionRef>,
) -> Result<Option<StoredRevision>, Refusal> {
    let (mut db, site) = (engine.store().reader().await?, approval.site.as_str());
    Ok(describing::bound_revision(&mut db, site, &change.node, side).await?)
}

/// The changes that a card does not list, a stretch at a time: drawn again from what never changes, and only if they are what
/// the card's digest binds.
pub async fn changes(
    engine: &Engine,
    person: &Person,
    id: &ApprovalId,
    from: i64,
) -> Result<ChangesView, Refusal> {
    let approval = approvals::for_person(engine, person, id).await?.approval;
    let missing = || Refusal::not_found("list of changes");
    let bound = approval.card.changes.as_ref().ok_or_else(missing)?;
    let Run::Gated(gated) = &engine.tools().get(&approval.tool)?.run else {
        return Err(missing());
    };
    let from = from.clamp(0, bound.total);
    let mut db = engine.store().reader().await?;
    let all = gated
        .differences(&mut db, &approval.card.site, &approval.arguments)
        .await?;
    let site = approval.site.as_str();
    let drawn = describing::stretch(&mut db, site, all, &bound.digest, from as usize).await?;
    let diffs = drawn.ok_or_else(describing::not_bound)?;
    let step = limits::CARD_NODES_MAX as i64;
    Ok(ChangesView {
        approval: id.clone(),
        sentence: approval.card.sentence.clone(),
        before: (from > 0).then(|| (from - step).max(0)),
        after: (from + step < bound.total).then_some(from + step),
        from,
        total: bound.total,
        diffs,
    })
}

/// One side of a listed change, rendered for a sandboxed frame.
pub async fn preview(
    engine: &Engine,
    person: &Person,
    id: &ApprovalId,
    node: &NodeId,
    side: link::Side,
) -> Result<String, Refusal> {
    let approval = approvals::for_person(engine, person, id).await?.approval;
    let change = approval
        .card
        .changes
        .as_ref()
        .and_then(|c| c.nodes.iter().find(|n| n.node == *node))
        .ok_or_else(|| Refusal::not_found("page"))?;
    let revision = match side {
        link::Side::Before => before(engine, &approval, change).await?,
        link::Side::After => after(engine, &approval, change).await?,
    };
    let revision = revision.ok_or_else(|| Refusal::not_found("page"))?;
    let site = sites_sql::by_id(engine.store().read(), &approval.site)
        .await?
        .ok_or_else(|| Refusal::not_found("site"))?;
    Ok(crate::published::preview(&site, &change.path, &revision))
}
