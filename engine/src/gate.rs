//! The gate: an agent's call from arrival to answer. Read this first.
//!
//! Without an approval id a call that reads or drafts runs, and a gated one becomes a request that waits, as does a draft tool
//! where the site's policy says so. With an id nothing of
//! the new request is ever run: the record is found, compared with the call, and redeemed, in the order of CONTRACT §5.

use crate::{
    Engine,
    approvals::{self, Redeem},
    callers::{self, Caller},
    journal::{self, Entry},
    policies,
    sites::LockedSite,
    store::approvals::Stored,
    tools::{self, Draft, Run, Tool},
};
use cloudhal_domain::{
    answer::Answer,
    approval::{Approval, Outcome, Receipt, State, Status, closed_answer},
    code::{Code, Refusal},
    digest,
    id::ApprovalId,
};
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::{panic::AssertUnwindSafe, sync::Arc};

/// As much of a made-up id as the journal keeps; a real one is shorter.
const MISUSED_ID_CHARS: usize = 64;

/// A call as it arrives, its body already read by the strict parser.
#[derive(Clone, Debug)]
pub struct CallRequest {
    pub tool: String,
    pub arguments: Value,
    pub approval: Option<String>,
    /// The agent's own words for the person who decides.
    pub reason: Option<String>,
}

impl Engine {
    /// One call, one answer; never an error beside the answer.
    pub async fn call(&self, caller: &Caller, request: CallRequest) -> Answer {
        whatever_happens(answer(self, caller, request)).await
    }
}

/// A fault of ours must not leave a caller without an answer, on a door that would wait for it for ever.
async fn whatever_happens(answering: impl Future<Output = Result<Answer, Refusal>>) -> Answer {
    let answered = AssertUnwindSafe(answering).catch_unwind().await;
    let answered = answered.unwrap_or_else(|_| {
        tracing::error!("a call panicked");
        Err(Refusal::new(
            Code::Internal,
            "Something went wrong here while the call was answered; it may or may not have run. Look before you repeat it.",
        ))
    });
    answered.unwrap_or_else(Answer::from)
}

/// What takes the larger part of a call's memory is boxed where it is reached: a thousand agents that only wait must not each
/// hold room for a redeem.
async fn answer(engine: &Engine, caller: &Caller, request: CallRequest) -> Result<Answer, Refusal> {
    let tool = engine.tools().get(&request.tool)?;
    if let Some(id) = request.approval {
        let id = ApprovalId::new(id);
        let redeems = redeem_as_asked(engine, caller, tool, request.arguments, &id);
        let answer = Box::pin(redeems).await;
        if let Err(refusal) = &answer {
            Box::pin(note_misuse(engine, caller, tool, &id, refusal)).await;
        }
        return answer;
    }
    caller.check_scope(tool)?;
    let (arguments, reason) = without_reason(tool, request.arguments);
    let arguments = tool.parse(arguments)?;
    match &tool.run {
        Run::Read(read) => Ok(Answer::ok(read.run(engine, caller, arguments).await?)),
        Run::Draft(draft) => {
            let drafts = run_draft(engine, caller, tool, draft.clone(), arguments.clone());
            match Box::pin(drafts).await? {
                Drafted::Done(data) => Ok(Answer::ok(data)),
                Drafted::Waits => {
                    let reason = request.reason.or(reason);
                    let asks =
                        approvals::request(engine, caller, tool, draft.clone(), arguments, reason);
                    Box::pin(asks).await
                }
            }
        }
        Run::Gated(gated) => {
            let reason = request.reason.or(reason);
            let asks = approvals::request(engine, caller, tool, gated.clone(), arguments, reason);
            Box::pin(asks).await
        }
        Run::Resume => Box::pin(tools::approvals::resume(engine, caller, arguments)).await,
    }
}

async fn redeem_as_asked(
    engine: &Engine,
    caller: &Caller,
    tool: &Tool,
    arguments: Value,
    id: &ApprovalId,
) -> Result<Answer, Refusal> {
    let stored = approvals::of_caller(engine, caller, id).await?;
    refuse_denied(&stored, engine)?;
    let (arguments, _) = without_reason(tool, arguments);
    let arguments = tool.parse(arguments)?;
    redeem(engine, caller, tool, arguments, stored).await
}

/// Journals a call under an id that is not the caller's, or that was given for another call: neither happens to an honest
/// agent often. The caller is refused whether or not this can be written.
async fn note_misuse(
    engine: &Engine,
    caller: &Caller,
    tool: &Tool,
    id: &ApprovalId,
    refusal: &Refusal,
) {
    let known = match refusal.code {
        Code::ApprovalNotFound => None,
        Code::ApprovalMismatch => Some(id.clone()),
        _ => return,
    };
    let (by, now) = (caller.author(), engine.now());
    let said: String = id.as_str().chars().take(MISUSED_ID_CHARS).collect();
    let body = json!({"tool": tool.spec.id, "code": refusal.code.as_str(), "approvalId": said});
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let entry = Entry {
                kind: "approval.misused",
                actor: &by,
                approval: known.as_ref(),
                body,
            };
            journal::workspace(tx, now, entry).await
        })
    });
    if let Err(error) = unit.await {
        tracing::warn!(%error, "a misused approval could not be journaled");
    }
}

/// Runs the stored call of an approval, as `approvals-resume` asks.
pub(crate) async fn resume(
    engine: &Engine,
    caller: &Caller,
    id: &ApprovalId,
) -> Result<Answer, Refusal> {
    let stored = approvals::of_caller(engine, caller, id).await?;
    let tool = engine.tools().get(&stored.approval.tool)?;
    let arguments = stored.approval.arguments.clone();
    redeem(engine, caller, tool, arguments, stored).await
}

/// Everything after the record was found: denied · mismatch · stored result · cancelled, voided, expired · scope · pending · redeem.
async fn redeem(
    engine: &Engine,
    caller: &Caller,
    tool: &Tool,
    arguments: Value,
    stored: Stored,
) -> Result<Answer, Refusal> {
    refuse_denied(&stored, engine)?;
    let approval = &stored.approval;
    if !approval.is_of(tool.spec.id, &digest::of_arguments(&arguments)) {
        return Err(mismatch(approval));
    }
    if let State::Redeemed { receipt, .. } = &approval.state {
        return stored_result(receipt);
    }
    if let Some(refusal) = closed_answer(approval, engine.now()) {
        return Err(approvals::with_changes(engine, &stored, refusal).await?);
    }
    caller.check_scope(tool)?;
    if approval.standing(engine.now()) == Status::Pending {
        return Ok(approvals::pending_answer(engine, approval, false));
    }
    let Some(gatable) = tool.run.gatable() else {
        return Err(mismatch(approval));
    };
    match approvals::redeem(engine, caller, tool, gatable, &stored).await? {
        Redeem::Ran(receipt) => fresh_result(&receipt),
        Redeem::Lost => explain(engine, caller, &approval.id).await,
    }
}

/// The UPDATE found nothing to spend; the record as it is now says why.
async fn explain(engine: &Engine, caller: &Caller, id: &ApprovalId) -> Result<Answer, Refusal> {
    let stored = approvals::of_caller(engine, caller, id).await?;
    if let State::Redeemed { receipt, .. } = &stored.approval.state {
        return stored_result(receipt);
    }
    match closed_answer(&stored.approval, engine.now()) {
        Some(refusal) => Err(approvals::with_changes(engine, &stored, refusal).await?),
        None => Err(Refusal::new(
            Code::Unavailable,
            "The approval could not be redeemed just now. Nothing was changed. Repeat the call.",
        )),
    }
}

fn refuse_denied(stored: &Stored, engine: &Engine) -> Result<(), Refusal> {
    match (
        &stored.approval.state,
        closed_answer(&stored.approval, engine.now()),
    ) {
        (State::Denied { .. }, Some(refusal)) => Err(refusal),
        _ => Ok(()),
    }
}

/// Whether a call is the one that an approval is for.
pub(crate) fn expect_call_of(
    engine: &Engine,
    request: &CallRequest,
    approval: &Approval,
) -> Result<(), Refusal> {
    let tool = engine.tools().get(&request.tool)?;
    let (arguments, _) = without_reason(tool, request.arguments.clone());
    let arguments = tool.parse(arguments)?;
    match approval.is_of(tool.spec.id, &digest::of_arguments(&arguments)) {
        true => Ok(()),
        false => Err(mismatch(approval)),
    }
}

fn mismatch(approval: &Approval) -> Refusal {
    Refusal::new(
        Code::ApprovalMismatch,
        format!("Not executed: this approval is for `{}` with other arguments than this call. The approval stays as it was. Repeat the call exactly as it was asked, or ask anew without approvalId.", approval.tool),
    )
    .with("tool", approval.tool.clone())
    .with("argsHash", approval.args_hash.as_str())
    .with("arguments", approval.arguments.clone())
}

fn fresh_result(receipt: &Receipt) -> Result<Answer, Refusal> {
    result(receipt, false)
}

fn stored_result(receipt: &Receipt) -> Result<Answer, Refusal> {
    result(receipt, true)
}

fn result(receipt: &Receipt, replayed: bool) -> Result<Answer, Refusal> {
    match receipt.outcome {
        Outcome::Succeeded => Ok(Answer::Ok {
            data: receipt.result.clone().unwrap_or(Value::Null),
            replayed,
        }),
        Outcome::Failed => Err(receipt
            .error
            .clone()
            .unwrap_or_else(|| Refusal::new(Code::Internal, "The call failed."))),
        Outcome::Unknown => Err(Refusal::new(
            Code::ApprovalUnknownOutcome,
            "The call was sent outside and its outcome is not known. It will not be tried again. A person has to say what happened.",
        )),
    }
}

/// `reason` stands among the arguments of what can wait, but is never part of the call.
fn without_reason(tool: &Tool, mut arguments: Value) -> (Value, Option<String>) {
    let reason = match (&tool.run, &mut arguments) {
        (Run::Gated(_) | Run::Draft(_), Value::Object(map)) => match map.get("reason") {
            Some(Value::String(_)) => map.remove("reason"),
            _ => None,
        },
        _ => None,
    };
    (
        arguments,
        reason.and_then(|r| r.as_str().map(str::to_owned)),
    )
}

enum Drafted {
    Done(Value),
    /// The site's policy lets the tool wait; nothing was done.
    Waits,
}

/// A draft tool: the site is locked, changed, and its state moved, in one unit.
async fn run_draft(
    engine: &Engine,
    caller: &Caller,
    tool: &Tool,
    draft: Arc<dyn Draft>,
    arguments: Value,
) -> Result<Drafted, Refusal> {
    let site = draft.site(&arguments)?;
    caller.site(engine, &site).await?;
    let (caller, tool) = (caller.clone(), tool.spec.id);
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let mut locked = LockedSite::expect(tx, &site).await?;
            callers::expect_may_call(tx, &caller, &locked, tool).await?;
            if policies::of_row(locked.row())?.gates(tool) {
                return Ok(Drafted::Waits);
            }
            let by = caller.author();
            let out = draft.change(tx, &mut locked, &by, arguments).await?;
            locked.finish(tx, &by).await?;
            Ok(Drafted::Done(out))
        })
    });
    Ok(unit.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_answered() {
        let broken = async { panic!("a fault") };
        let answer = whatever_happens(broken).await;
        assert_eq!(answer.http_status(), 500);
    }
}
