//! Spending an approval: every condition, the effect, its receipt and the journal in one transaction.
//!
//! The protocol: 1 lock the site and read its state · 2 ask again whether the caller and the
//! approver still may · 3 the redeeming UPDATE, whose row count is the verdict · 4 the effect, from the stored arguments, in a
//! part of its own · 5 receipt · 6 check the decisions' signatures · 7 journal · 8 the site's new state, which voids every other
//! request · COMMIT. A failure of the domain undoes 4 alone and the receipt says so; any other undoes everything.

use super::key_of;
use crate::{
    Engine,
    agents::{self, Caller},
    authority::{Author, Authority, Redeemed},
    clock::fresh_id,
    journal::{self, Entry},
    people, signing,
    sites::{LockedSite, announce},
    store::{
        Fail, Tx, agents as agents_sql,
        approvals::{self as sql, CallKey, Stored},
    },
    tools::{Gated, Tool},
};
use cloudhal_domain::{
    approval::{Approval, Outcome, Receipt, Verdict, VoidCause},
    canonical,
    code::{Code, Refusal},
    id::PersonId,
    time::Timestamp,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// How an attempt to spend ended.
pub enum Redeem {
    Ran(Receipt),
    /// Nothing was there to spend; the record says why.
    Lost,
}

/// Spends an approved record and runs its effect, all or nothing. Runs detached from the asking request.
pub async fn redeem(
    engine: &Engine,
    caller: &Caller,
    tool: &Tool,
    gated: Arc<dyn Gated>,
    stored: &Stored,
) -> Result<Redeem, Refusal> {
    let spending = Spending {
        engine: engine.clone(),
        caller: caller.clone(),
        tool: tool.spec.id,
        tool_version: tool.binding_version.clone(),
        gated,
        approval: stored.approval.clone(),
    };
    engine
        .store()
        .write(move |tx| Box::pin(async move { spending.spend(tx).await }))
        .await?
}

struct Spending {
    engine: Engine,
    caller: Caller,
    tool: &'static str,
    tool_version: String,
    gated: Arc<dyn Gated>,
    approval: Approval,
}

impl Spending {
    async fn spend(self, tx: &mut Tx) -> Result<Result<Redeem, Refusal>, Fail> {
        let now = self.engine.now();
        let id = self.approval.id.clone();
        let Some(mut site) = LockedSite::lock(tx, &self.approval.site, now).await? else {
            return Ok(Ok(Redeem::Lost));
        };
        if !agents_sql::key_is_good(tx, self.caller.key_id(), now).await? {
            return Ok(Err(agents::unauthorized()));
        }
        if !agents_sql::may_now(tx, self.caller.id(), self.approval.site.as_str(), self.tool)
            .await?
        {
            return Ok(Err(Refusal::new(
                Code::InsufficientScope,
                "This key may no longer make this call. The approval stays as it was.",
            )));
        }
        if let Some(cause) = self.no_longer_holds(tx).await? {
            self.void(tx, cause, now).await?;
            return Ok(Ok(Redeem::Lost));
        }
        let receipt_id = fresh_id();
        let state_hash = site.row().state_hash.clone();
        let call = CallKey {
            caller: key_of(&self.caller),
            site: &self.approval.site,
            tool: self.tool,
            tool_version: &self.tool_version,
            args_hash: &self.approval.args_hash,
            state_hash: &state_hash,
        };
        let Some(arguments) = sql::redeem(tx, &id, call, &receipt_id, now).await? else {
            return Ok(Ok(Redeem::Lost));
        };
        let author = self.caller.author();
        let authority = Authority::Redeemed(Redeemed::spent(id.clone(), author.clone()));
        let arguments = serde_json::from_str(&arguments)
            .map_err(|e| Refusal::new(Code::Internal, e.to_string()))?;
        let receipt = run_effect(tx, &mut site, &*self.gated, &authority, arguments, now).await?;
        self.keep_receipt(tx, &receipt_id, &receipt).await?;
        self.check_decisions(tx).await?;
        let body = json!({"tool": self.tool, "argsHash": self.approval.args_hash, "stateHash": state_hash, "receipt": receipt_id, "outcome": receipt.outcome.as_str()});
        journal::site(
            tx,
            self.approval.site.as_str(),
            now,
            Entry {
                kind: "approval.redeemed",
                actor: &author,
                approval: Some(&id),
                body,
            },
        )
        .await?;
        announce(
            tx,
            "approval.executed",
            self.approval.site.as_str(),
            Some(&id),
            now,
        )
        .await?;
        site.finish(tx, &author).await?;
        Ok(Ok(Redeem::Ran(receipt)))
    }

    /// Reasons that are not in the record itself: the tool, the epoch, and whether whoever approved still may.
    async fn no_longer_holds(&self, tx: &mut Tx) -> Result<Option<VoidCause>, Fail> {
        if self.approval.tool_version != self.tool_version {
            return Ok(Some(VoidCause::ToolChanged));
        }
        let Some(stored) = sql::get_now(tx, &self.approval.id).await? else {
            return Ok(None);
        };
        if stored.epoch != sql::epoch(tx.sql()).await? {
            return Ok(Some(VoidCause::Restored));
        }
        for decision in stored
            .approval
            .decisions
            .iter()
            .filter(|d| d.decision == Verdict::Approve)
        {
            let role = people::role_now(
                tx,
                &PersonId::new(decision.by.id.as_str()),
                self.approval.site.as_str(),
            )
            .await?;
            if !role.is_some_and(|r| r.may_decide()) {
                return Ok(Some(VoidCause::AccessLost));
            }
        }
        Ok(None)
    }

    async fn void(&self, tx: &mut Tx, cause: VoidCause, now: Timestamp) -> Result<(), Fail> {
        if sql::void_one(tx, &self.approval.id, cause, now).await? {
            let entry = Entry {
                kind: "approval.voided",
                actor: &Author::system(),
                approval: Some(&self.approval.id),
                body: json!({"cause": cause.as_str()}),
            };
            journal::site(tx, self.approval.site.as_str(), now, entry).await?;
            announce(
                tx,
                "approval.voided",
                self.approval.site.as_str(),
                Some(&self.approval.id),
                now,
            )
            .await?;
        }
        Ok(())
    }

    /// A row that says approved without genuine decisions behind it was edited by hand: the whole unit fails.
    async fn check_decisions(&self, tx: &mut Tx) -> Result<(), Fail> {
        let stored = sql::get_now(tx, &self.approval.id)
            .await?
            .ok_or_else(|| Fail::from(Refusal::not_found("approval")))?;
        if signing::all_genuine(tx, &self.engine, &stored).await? {
            return Ok(());
        }
        tracing::error!(approval = %self.approval.id, "a decision's signature does not verify: somebody edited the row");
        Err(Refusal::new(
            Code::ApprovalVoided,
            "Not executed: the stored decision is not genuine. Ask the operator to run `cloudhal verify`, and ask again without approvalId.",
        )
        .with("cause", VoidCause::AccessLost.as_str())
        .into())
    }

    async fn keep_receipt(
        &self,
        tx: &mut Tx,
        receipt_id: &str,
        receipt: &Receipt,
    ) -> Result<(), Fail> {
        let result = receipt.result.as_ref().map(canonical::text);
        let error = receipt.error.as_ref().map(|e| json!(e).to_string());
        Ok(sql::insert_receipt(
            tx,
            receipt_id,
            &self.approval.id,
            receipt.outcome,
            result.as_deref(),
            error.as_deref(),
            receipt.at,
        )
        .await?)
    }
}

/// Runs a gated effect so that its own refusal undoes its own writes and nothing else.
pub(crate) async fn run_effect(
    tx: &mut Tx,
    site: &mut LockedSite,
    gated: &dyn Gated,
    authority: &Authority,
    arguments: Value,
    now: Timestamp,
) -> Result<Receipt, Fail> {
    let before = site.clone();
    let part = tx.begin_part().await?;
    match gated.run(tx, site, authority, arguments).await {
        Ok(result) => {
            tx.keep_part(part).await?;
            Ok(Receipt {
                outcome: Outcome::Succeeded,
                at: now,
                result: Some(result),
                error: None,
            })
        }
        Err(Fail::Refused(refusal)) => {
            tx.undo_part(part).await?;
            *site = before;
            Ok(Receipt {
                outcome: Outcome::Failed,
                at: now,
                result: None,
                error: Some(refusal),
            })
        }
        Err(fail) => Err(fail),
    }
}
