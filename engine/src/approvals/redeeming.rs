//! Spending an approval: every condition, the effect, its receipt and the journal in one transaction.
//!
//! The protocol: 1 lock the site and read its state · 2 ask again whether the caller still may, whether the record and its
//! decisions are genuine, and whether they still are what the site's policy asks for · 3 the redeeming UPDATE, whose row count
//! is the verdict · 4 the effect, from the arguments that were verified, in a part of its own · 5 receipt · 6 journal · 7 the
//! site's new state, which voids every other request · COMMIT. A failure of the domain undoes 4 alone and the receipt says so; any other undoes everything.

use super::{key_of, refuse_denied_since};
use crate::{
    Engine,
    authority::{Author, Authority, Redeemed},
    callers::{self, Caller},
    clock::fresh_id,
    failpoint::{self, Point},
    journal::{self, Entry},
    policies::{self, Measured},
    signing,
    sites::{self, LockedSite, announce},
    store::{
        Fail, Tx,
        approvals::{self as sql, CallKey, Stored},
        people as people_sql,
    },
    tools::{Gatable, Tool},
};
use cloudhal_domain::{
    approval::{Approval, Outcome, Receipt, State, Status, VoidCause},
    canonical,
    code::{Code, Refusal},
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
    gated: Arc<dyn Gatable>,
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
    gated: Arc<dyn Gatable>,
    approval: Approval,
}

impl Spending {
    async fn spend(self, tx: &mut Tx) -> Result<Result<Redeem, Refusal>, Fail> {
        let id = self.approval.id.clone();
        let Some(mut site) = LockedSite::lock(tx, &self.approval.site).await? else {
            return Ok(Ok(Redeem::Lost));
        };
        let now = site.now();
        callers::expect_may_call(tx, &self.caller, &site, self.tool).await?;
        let Some(stored) = sql::get_now(tx, &id).await? else {
            return Ok(Ok(Redeem::Lost));
        };
        if stored.approval.state.status() != Status::Approved {
            return Ok(Ok(Redeem::Lost));
        }
        if let Some(cause) = self.another_time(&stored) {
            self.void(tx, cause, now).await?;
            return Ok(Ok(Redeem::Lost));
        }
        if !signing::all_genuine(tx, &self.engine, &stored).await? {
            return Ok(Err(self.not_genuine(tx, now).await?));
        }
        people_sql::hold_deciders(tx, &id).await?;
        let policy = policies::of_row(site.row())?;
        let measured = Measured::of(tx.sql(), &policy, &stored.approval).await?;
        let lifetime = measured.rule.lifetime();
        if lifetime.is_some_and(|held| stored.approval.requested_at.plus(held) <= now) {
            sites::expire_early(tx, self.approval.site.as_str(), &id, now).await?;
            return Ok(Ok(Redeem::Lost));
        }
        if !measured.missing().is_nothing() {
            self.void(tx, VoidCause::AccessLost, now).await?;
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
        if let (Some(cool_down), State::Approved { at }) =
            (measured.rule.denial_cool_down(), &stored.approval.state)
        {
            // An approval that came after the denial took it back.
            let since = now.minus(cool_down).max(*at);
            refuse_denied_since(tx, call, since, cool_down).await?;
        }
        failpoint::reach(Point::BeforeRedeem);
        if !sql::redeem(tx, &id, call, &receipt_id, now).await? {
            return Ok(Ok(Redeem::Lost));
        }
        tx.spends();
        failpoint::reach(Point::AfterRedeem);
        let author = self.caller.author();
        let authority = Authority::Redeemed(Redeemed::spent(id.clone(), author.clone()));
        let arguments = stored.approval.arguments;
        let receipt = run_effect(tx, &mut site, &*self.gated, &authority, arguments, now).await?;
        self.keep_receipt(tx, &receipt_id, &receipt).await?;
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
        failpoint::reach(Point::AfterEffect);
        Ok(Ok(Redeem::Ran(receipt)))
    }

    /// Whether the record is of another time: the tool is not what it was, or the database was restored since.
    fn another_time(&self, stored: &Stored) -> Option<VoidCause> {
        if stored.approval.tool_version != self.tool_version {
            return Some(VoidCause::ToolChanged);
        }
        (stored.epoch != stored.epoch_now).then_some(VoidCause::Restored)
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

    /// A row that says approved without genuine decisions behind it was edited by hand, or was signed by a node that this one
    /// does not know: it stays as it is, for the operator to look at, and the journal tells that it was tried.
    async fn not_genuine(&self, tx: &mut Tx, now: Timestamp) -> Result<Refusal, Fail> {
        let id = &self.approval.id;
        tracing::error!(approval = %id, "a decision's signature does not verify: somebody edited the row");
        let entry = Entry {
            kind: "approval.not_genuine",
            actor: &Author::system(),
            approval: Some(id),
            body: json!({"tool": self.tool, "caller": self.caller.author().key}),
        };
        journal::site(tx, self.approval.site.as_str(), now, entry).await?;
        Ok(Refusal::new(
            Code::ApprovalVoided,
            "Not executed: the stored decision is not genuine. Ask the operator to run `cloudhal verify`, and ask again without approvalId.",
        )
        .with("cause", VoidCause::AccessLost.as_str()))
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

/// Runs an effect so that its own refusal undoes its own writes and nothing else.
pub(crate) async fn run_effect(
    tx: &mut Tx,
    site: &mut LockedSite,
    gated: &dyn Gatable,
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
