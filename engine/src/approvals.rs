//! One record's life: request and wait here, then [`decide`] and [`redeem`] in files of their own, or cancel. What a person's own
//! client may ask them stands in `asking`.

mod asking;
mod deciding;
mod redeeming;

pub use asking::{ClientQuestion, Put, answer_in_client, asked, client_question};
pub use deciding::decide;
pub(crate) use redeeming::run_effect;
pub use redeeming::{Redeem, redeem};

use crate::{
    Engine,
    callers::{self, Caller},
    changes,
    clock::fresh_id,
    journal::{self, Entry},
    people, policies,
    sites::{self, LockedSite, announce},
    store::{
        Fail, Tx,
        approvals::{self as sql, CallKey, CallerKey, NewApproval, Stored},
    },
    tools::{Gatable, Tool},
};
use cloudhal_domain::{
    answer::{Answer, Pending},
    approval::{Approval, ApprovalRecord, State, Status, VoidCause, closed_answer},
    canonical,
    card::seen_digest,
    code::{Code, Refusal},
    digest::{self, Digest},
    id::{ApprovalId, SiteId},
    limits,
    odd::{self, Segment},
    time::Timestamp,
    tool::{CallerKind, Surface},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// Files a gated call, or finds the request that waits for this very call already.
pub async fn request(
    engine: &Engine,
    caller: &Caller,
    tool: &Tool,
    gated: Arc<dyn Gatable>,
    arguments: Value,
    reason: Option<String>,
) -> Result<Answer, Refusal> {
    let site_id = gated.site(&arguments)?;
    let site = caller.site(engine, &site_id).await?;
    let args_hash = digest::of_arguments(&arguments);
    // A duplicate is found by reading alone: a storm of retries must not queue for the write lock.
    let key = CallKey {
        caller: key_of(caller),
        site: &site_id,
        tool: tool.spec.id,
        tool_version: &tool.binding_version,
        args_hash: &args_hash,
        state_hash: &site.state_hash,
    };
    if let Some(open) = sql::open_for(engine.store().read(), key, engine.now()).await? {
        return Ok(waiting(
            engine,
            &open,
            caller.surface(),
            tool.spec.id,
            args_hash,
            &site.state_hash,
            arguments,
        ));
    }
    let filing = Filing {
        engine: engine.clone(),
        caller: caller.clone(),
        tool: tool.spec.id,
        tool_version: tool.binding_version.clone(),
        gated,
        site: site_id,
        args_hash: args_hash.clone(),
        arguments: arguments.clone(),
        reason: reason.map(|r| clean_reason(&r)),
    };
    let (open, state_hash) = engine
        .store()
        .write(move |tx| Box::pin(async move { filing.file(tx).await }))
        .await?;
    Ok(waiting(
        engine,
        &open,
        caller.surface(),
        tool.spec.id,
        args_hash,
        &state_hash,
        arguments,
    ))
}

/// Everything that filing a request takes, moved into its unit of work.
struct Filing {
    engine: Engine,
    caller: Caller,
    tool: &'static str,
    tool_version: String,
    gated: Arc<dyn Gatable>,
    site: SiteId,
    args_hash: Digest,
    arguments: Value,
    reason: Option<String>,
}

impl Filing {
    async fn file(self, tx: &mut Tx) -> Result<(sql::OpenRow, String), Fail> {
        let site = LockedSite::expect(tx, &self.site).await?;
        let now = site.now();
        sql::lock_caller(tx, key_of(&self.caller)).await?;
        callers::expect_may_call(tx, &self.caller, &site, self.tool).await?;
        let state_hash = site.row().state_hash.clone();
        let call = CallKey {
            caller: key_of(&self.caller),
            site: &self.site,
            tool: self.tool,
            tool_version: &self.tool_version,
            args_hash: &self.args_hash,
            state_hash: &state_hash,
        };
        sites::expire_overdue(tx, self.site.as_str(), now).await?;
        if let Some(open) = sql::open_for(tx.sql(), call, now).await? {
            return Ok((open, state_hash));
        }
        let rule = policies::of_row(site.row())?;
        let rule = rule.rule(self.tool);
        if let Some(cool_down) = rule.denial_cool_down() {
            refuse_denied_since(tx, call, now.minus(cool_down), cool_down).await?;
        }
        self.check_caps(tx, now).await?;
        let card = self
            .gated
            .card(tx, &site, self.caller.asker(), &self.arguments)
            .await?;
        let card_text = canonical::text(
            &serde_json::to_value(&card)
                .map_err(|e| Refusal::new(Code::Internal, e.to_string()))?,
        );
        let id = ApprovalId::new(fresh_id());
        let lifetime = rule
            .lifetime()
            .unwrap_or(self.engine.settings().approval_ttl);
        let expires_at = now.plus(lifetime);
        let seen = seen_digest(
            &card_text,
            &self.args_hash,
            &Digest::from_text(&state_hash),
            &self.tool_version,
        );
        let arguments = canonical::text(&self.arguments);
        let new = NewApproval {
            id: &id,
            call,
            arguments: &arguments,
            state_rev: site.row().state_rev,
            caller_name: self.caller.name(),
            key_id: self.caller.key_id(),
            conversation: None,
            reason: self.reason.as_deref(),
            sentence: &card.sentence,
            risk: if card.risk == cloudhal_domain::card::Risk::Irreversible {
                "irreversible"
            } else {
                "reversible"
            },
            card: &card_text,
            seen_digest: &seen,
            requested_at: now,
            expires_at,
        };
        if !sql::insert(tx, new).await? {
            // Only an open request of an older epoch can still stand in the index's way; it will never redeem.
            return Err(Refusal::new(
                Code::Unavailable,
                "An older request for this call is being cleared away. Try again in a moment.",
            )
            .into());
        }
        let body = json!({"tool": self.tool, "argsHash": self.args_hash, "stateHash": state_hash, "seenDigest": seen, "expiresAt": expires_at, "surface": self.caller.surface().as_str()});
        let entry = Entry {
            kind: "approval.requested",
            actor: &self.caller.author(),
            approval: Some(&id),
            body,
        };
        journal::site(tx, self.site.as_str(), now, entry).await?;
        announce(tx, "approval.requested", self.site.as_str(), Some(&id), now).await?;
        Ok((
            sql::OpenRow {
                id: id.as_str().to_owned(),
                status: Status::Pending.as_str().into(),
                expires_at: expires_at.ms(),
                sentence: card.sentence,
            },
            state_hash,
        ))
    }

    /// Attention is what a flood spends (DESIGN §4, rule 7).
    async fn check_caps(&self, tx: &mut Tx, now: Timestamp) -> Result<(), Fail> {
        let settings = self.engine.settings();
        let by_agent = sql::pending_of_caller(tx, key_of(&self.caller), now).await?;
        let by_site = sql::pending_of_site(tx, &self.site, now).await?;
        let over = |limit: i64, whose: &str| {
            Refusal::new(Code::TooManyPending, format!("{whose} has {limit} requests waiting for a person already. Wait for decisions, or withdraw some with approvals_cancel."))
                .with("limit", limit)
                .into()
        };
        if by_agent >= settings.pending_per_agent_max {
            let whose = match self.caller.kind() {
                CallerKind::Agent => "This agent",
                CallerKind::Person => "Your own client",
            };
            return Err(over(settings.pending_per_agent_max, whose));
        }
        if by_site >= settings.pending_per_site_max {
            return Err(over(settings.pending_per_site_max, "This site"));
        }
        Ok(())
    }
}

/// A denial of the same call on the same state stands for a while, whichever door the caller comes by.
async fn refuse_denied_since(
    tx: &mut Tx,
    call: CallKey<'_>,
    since: Timestamp,
    cool_down: Duration,
) -> Result<(), Fail> {
    let Some(id) = sql::denied_since(tx, call, since).await? else {
        return Ok(());
    };
    let denied = sql::get_now(tx, &ApprovalId::new(id)).await?;
    let Some((at, refusal)) = denied.and_then(|stored| match stored.approval.state {
        State::Denied { at, .. } => Some((at, closed_answer(&stored.approval, at)?)),
        _ => None,
    }) else {
        return Ok(());
    };
    let until = at.plus(cool_down);
    let message = format!(
        "{} The same call on the same state is refused until {until}.",
        refusal.message
    );
    Err(Refusal { message, ..refusal }
        .with("refusedUntil", until.to_string())
        .into())
}

fn key_of(caller: &Caller) -> CallerKey<'_> {
    CallerKey {
        kind: caller.kind(),
        id: caller.id(),
        surface: caller.surface(),
    }
}

/// Free text from outside: no control, direction or invisible characters, a limit, and nothing of it ever an instruction.
fn clean_reason(reason: &str) -> String {
    let kept: String = odd::segments(reason)
        .into_iter()
        .filter_map(|segment| match segment {
            Segment::Plain(text) | Segment::Mixed(text) | Segment::Coded(text) => Some(text),
            Segment::Odd(_) => None,
        })
        .flat_map(str::chars)
        .take(limits::REASON_CHARS_MAX)
        .collect();
    kept.trim().to_owned()
}

fn waiting(
    engine: &Engine,
    open: &sql::OpenRow,
    surface: Surface,
    tool: &str,
    args_hash: Digest,
    state_hash: &str,
    arguments: Value,
) -> Answer {
    let approved = open.status == Status::Approved.as_str();
    let id = ApprovalId::new(&open.id);
    let url = engine.approval_url(&id);
    Answer::ApprovalPending(Box::new(Pending {
        message: Pending::words(tool, &url, approved, surface),
        approval_id: id,
        url,
        expires_at: Timestamp(open.expires_at),
        approved,
        poll_after_ms: limits::POLL_AFTER_MS,
        tool: tool.to_owned(),
        args_hash,
        state_hash: Digest::from_text(state_hash),
        arguments,
        sentence: open.sentence.clone(),
        confirm_token: None,
    }))
}

/// The waiting answer of a record.
pub fn pending_answer(engine: &Engine, approval: &Approval, approved: bool) -> Answer {
    let status = if approved {
        Status::Approved
    } else {
        Status::Pending
    };
    let open = sql::OpenRow {
        id: approval.id.as_str().to_owned(),
        status: status.as_str().into(),
        expires_at: approval.expires_at.ms(),
        sentence: approval.card.sentence.clone(),
    };
    waiting(
        engine,
        &open,
        approval.surface,
        &approval.tool,
        approval.args_hash.clone(),
        approval.state_hash.as_str(),
        approval.arguments.clone(),
    )
}

/// A record of this very caller over this very surface; one answer for all others (DESIGN §4, rule 10).
pub async fn of_caller(
    engine: &Engine,
    caller: &Caller,
    id: &ApprovalId,
) -> Result<Stored, Refusal> {
    let stored = sql::get(engine.store().read(), id).await?;
    stored
        .filter(|s| s.approval.caller_kind == caller.kind() && s.approval.caller_id == caller.id() && s.approval.surface == caller.surface())
        .ok_or_else(|| Refusal::new(Code::ApprovalNotFound, "There is no such approval for this caller at this door: an id from MCP is good over MCP, one from /tools at /tools. Nothing was done. To ask here, make the call without approvalId."))
}

/// Reads one's own record, waiting up to `wait` for it to leave pending. Writes nothing (DESIGN §4, rule 8).
pub async fn wait(
    engine: &Engine,
    caller: &Caller,
    id: &ApprovalId,
    wait: Duration,
) -> Result<ApprovalRecord, Refusal> {
    let deadline = tokio::time::Instant::now() + wait;
    let waiting = engine.live().wait_for(id);
    loop {
        let changed = waiting.changed();
        // The record is let go of before waiting: a thousand agents wait at once.
        let left = {
            let approval = Box::pin(of_caller(engine, caller, id)).await?.approval;
            let now = engine.now();
            let over = approval.standing(now) != Status::Pending
                || tokio::time::Instant::now() >= deadline;
            if over {
                return Ok(approval.record(now, engine.approval_url(id)));
            }
            // An approval that runs out while somebody waits is told then, not at the next poll.
            u64::try_from(approval.expires_at.ms() - now.ms()).unwrap_or(0)
        };
        let left = Duration::from_millis(left);
        let until = deadline.min(tokio::time::Instant::now() + left + Duration::from_millis(1));
        let _ = tokio::time::timeout_at(until, changed).await;
    }
}

/// Names what changed on the site since a voided request.
pub async fn with_changes(
    engine: &Engine,
    stored: &Stored,
    refusal: Refusal,
) -> Result<Refusal, Refusal> {
    let approval = &stored.approval;
    if !matches!(
        approval.state,
        State::Voided {
            cause: VoidCause::StateChanged,
            ..
        }
    ) {
        return Ok(refusal);
    }
    let db = engine.store().read();
    let nodes = changes::since(engine, approval).await?;
    let mut changed: Vec<Value> = nodes.iter().map(|node| json!(node)).collect();
    let site = crate::store::sites::by_id(db, &approval.site).await?;
    if let Some(site) = site {
        if site.deleted_at.is_some() {
            changed.push(json!({"site": site.id, "what": "deleted"}));
        } else if site.live_version != approval.card.site.live_version {
            changed
                .push(json!({"liveVersion": site.live_version, "what": "another version is live"}));
        }
    }
    Ok(refusal.with("changed", changed))
}

/// Withdraws one's own open request. Answers with the record as it was left.
pub async fn cancel(
    engine: &Engine,
    caller: &Caller,
    id: &ApprovalId,
) -> Result<ApprovalRecord, Refusal> {
    let stored = of_caller(engine, caller, id).await?;
    let (caller_now, site, id_now) = (caller.clone(), stored.approval.site.clone(), id.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let locked = LockedSite::lock(tx, &site).await?;
            let now = match &locked {
                Some(locked) => locked.now(),
                None => tx.now().await?,
            };
            callers::expect_key(tx, &caller_now, now).await?;
            if sql::cancel(tx, &id_now, key_of(&caller_now), now).await? {
                let entry = Entry {
                    kind: "approval.cancelled",
                    actor: &caller_now.author(),
                    approval: Some(&id_now),
                    body: json!({}),
                };
                journal::site(tx, site.as_str(), now, entry).await?;
                announce(tx, "approval.cancelled", site.as_str(), Some(&id_now), now).await?;
            }
            let left = sql::get_now(tx, &id_now).await?;
            let left = left.ok_or_else(|| Fail::from(Refusal::not_found("approval")))?;
            Ok((left.approval, now))
        })
    });
    let (approval, now) = unit.await?;
    match approval.standing(now) {
        Status::Cancelled => Ok(approval.record(now, engine.approval_url(id))),
        Status::Redeemed => Err(Refusal::conflict(
            "The call ran already; there is nothing to withdraw.",
        )),
        _ => Err(closed_answer(&approval, now).unwrap_or_else(|| {
            Refusal::new(
                Code::Unavailable,
                "It could not be withdrawn just now. Try again.",
            )
        })),
    }
}

/// A record for a person who may see its site; everybody else gets the same "not found".
pub async fn for_person(
    engine: &Engine,
    person: &people::Person,
    id: &ApprovalId,
) -> Result<Stored, Refusal> {
    let stored = sql::get(engine.store().read(), id).await?;
    match stored {
        Some(stored)
            if people::role_on(engine, person, &stored.approval.site)
                .await?
                .is_some() =>
        {
            Ok(stored)
        }
        _ => Err(Refusal::not_found("approval")),
    }
}
