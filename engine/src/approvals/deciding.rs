//! A person's decision: once for each person, for what they saw.

use super::clean_reason;
use crate::{
    Engine,
    authority::{Decider, Means},
    callers,
    clock::fresh_id,
    journal::{self, Entry},
    people,
    policies::{self, Measured},
    signing,
    sites::{self, LockedSite, announce},
    store::{
        Fail, Tx,
        approvals::{self as sql, DecisionRow, Stored},
        personal_keys as personal_sql,
    },
};
use cloudhal_domain::{
    approval::{ApprovalRecord, State, Status, Verdict, closed_answer},
    code::{Code, Refusal},
    digest::Digest,
    id::{ApprovalId, SiteId},
    time::Timestamp,
    tool::{CallerKind, Surface},
};
use serde_json::json;

/// A person's decision, once, for what they saw. The site's row is locked first; the record second. Answers with the record
/// as this decision left it.
pub async fn decide(
    engine: &Engine,
    decider: &Decider,
    site: &SiteId,
    id: &ApprovalId,
    verdict: Verdict,
    seen: &str,
    reason: Option<String>,
) -> Result<ApprovalRecord, Refusal> {
    if site.as_str().contains('\0') {
        return Err(Refusal::not_found("approval"));
    }
    let deciding = Deciding {
        engine: engine.clone(),
        decider: decider.clone(),
        site: site.clone(),
        id: id.clone(),
        verdict,
        // PostgreSQL takes no NUL, and no digest has one.
        seen: Digest::from_text(if seen.contains('\0') { "" } else { seen }),
        reason: reason.map(|r| clean_reason(&r)).filter(|r| !r.is_empty()),
    };
    engine
        .store()
        .write(move |tx| Box::pin(async move { deciding.decide(tx).await }))
        .await?
}

struct Deciding {
    engine: Engine,
    decider: Decider,
    site: SiteId,
    id: ApprovalId,
    verdict: Verdict,
    seen: Digest,
    reason: Option<String>,
}

impl Deciding {
    /// The inner refusal keeps what the unit stored on the way, an expiry for instance.
    async fn decide(self, tx: &mut Tx) -> Result<Result<ApprovalRecord, Refusal>, Fail> {
        let locked = LockedSite::lock(tx, &self.site).await?;
        let now = match &locked {
            Some(locked) => locked.now(),
            None => tx.now().await?,
        };
        let role = people::role_now(tx, self.decider.person(), self.site.as_str()).await?;
        let Some(role) = role else {
            return Err(Refusal::not_found("approval").into());
        };
        let stored = sql::get_now(tx, &self.id)
            .await?
            .filter(|s| s.approval.site == self.site);
        let Some(stored) = stored else {
            return Err(Refusal::not_found("approval").into());
        };
        self.expect_own_client(tx, &stored, now).await?;
        if !role.may_decide() {
            return Err(Refusal::new(
                Code::Forbidden,
                "Your role on this site lets you look, not decide. An approver or owner can.",
            )
            .into());
        }
        if locked.is_some() {
            sites::expire_overdue(tx, self.site.as_str(), now).await?;
        }
        if !stored.is_intact() {
            tracing::error!(approval = %self.id, "the stored request was changed by hand");
            return Err(Refusal::new(
                Code::StaleView,
                "The stored request is not what was asked: somebody changed it in the database. Nothing was decided. Ask the operator to run `cloudhal verify`.",
            )
            .into());
        }
        let policy = match &locked {
            Some(locked) => policies::of_row(locked.row())?,
            None => Default::default(),
        };
        let measured = Measured::of(tx.sql(), &policy, &stored.approval).await?;
        if !measured.rule.takes(self.decider.via()) {
            return Err(studio_alone().into());
        }
        let becomes = match self.becomes(tx, &stored, &measured).await? {
            Ok(becomes) => becomes,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !sql::decide(tx, &self.site, &self.id, &self.seen, becomes, now).await? {
            let stored = sql::get_now(tx, &self.id).await?.unwrap_or(stored);
            return Ok(Err(self.why_not(&stored, now)));
        }
        let by = self.decider.author();
        let decision = self.row(&stored, now);
        if !(self.verdict == Verdict::Approve && self.approved_before(&stored)) {
            sql::insert_decision(tx, &decision).await?;
        }
        let body = json!({
            "verdict": self.verdict.as_str(), "via": decision.via, "seenDigest": decision.seen_digest, "reason": decision.reason,
            "tool": stored.approval.tool, "argsHash": stored.approval.args_hash, "stateHash": stored.approval.state_hash,
            "becomes": becomes.as_str(),
        });
        journal::site(
            tx,
            self.site.as_str(),
            now,
            Entry {
                kind: "approval.decided",
                actor: &by,
                approval: Some(&self.id),
                body,
            },
        )
        .await?;
        announce(
            tx,
            "approval.decided",
            self.site.as_str(),
            Some(&self.id),
            now,
        )
        .await?;
        let decided = sql::get_now(tx, &self.id)
            .await?
            .ok_or_else(|| Fail::from(Refusal::not_found("approval")))?;
        let url = self.engine.approval_url(&self.id);
        Ok(Ok(decided.approval.record(now, url)))
    }

    /// A client answers for its person alone, and for what that person's client asked at this very door.
    async fn expect_own_client(
        &self,
        tx: &mut Tx,
        stored: &Stored,
        now: Timestamp,
    ) -> Result<(), Fail> {
        let Means::OwnClient { key } = self.decider.means() else {
            return Ok(());
        };
        if let Some(key) = key
            && !personal_sql::key_is_good(tx, key, now).await?
        {
            return Err(callers::unauthorized().into());
        }
        let door = match key {
            Some(_) => Surface::Mcp,
            None => Surface::Stdio,
        };
        let approval = &stored.approval;
        let own = approval.caller_kind == CallerKind::Person
            && approval.caller_id == self.decider.person().as_str()
            && approval.surface == door;
        match own {
            true => Ok(()),
            false => Err(Refusal::not_found("approval").into()),
        }
    }

    /// What the record becomes with this decision: one denial ends it, and approvals count until the site's policy is met.
    /// The inner refusal is for a person whose approval adds nothing.
    async fn becomes(
        &self,
        tx: &mut Tx,
        stored: &Stored,
        measured: &Measured,
    ) -> Result<Result<Status, Refusal>, Fail> {
        if self.verdict == Verdict::Deny {
            return Ok(Ok(Status::Denied));
        }
        let open = matches!(stored.approval.state, State::Pending);
        if open && !measured.counts(self.decider.person()) {
            return Ok(Err(Refusal::new(
                Code::Forbidden,
                "This site wants somebody else to approve than whoever asks, or answers for the agent that does. You may deny it. Nothing was decided.",
            )));
        }
        if open && self.approved_in_vain(stored, measured) {
            return Ok(Err(Refusal::new(
                Code::AlreadyDecided,
                "You approved this in your own client, and by now the site takes decisions in the Studio alone: somebody else has to approve, or it is asked anew. You may deny it.",
            )));
        }
        let missing = measured
            .missing_with(tx.sql(), self.site.as_str(), self.decider.person())
            .await?;
        if missing.is_nothing() {
            return Ok(Ok(Status::Approved));
        }
        if open && self.approved_before(stored) {
            return Ok(Err(Refusal::new(
                Code::AlreadyDecided,
                "You approved this already. It waits for somebody else.",
            )
            .with("missing", json!(missing))));
        }
        Ok(Ok(Status::Pending))
    }

    /// In a way that does not count any more; there is one decision for each person.
    fn approved_in_vain(&self, stored: &Stored, measured: &Measured) -> bool {
        let mut own = stored.approval.decisions.iter();
        own.any(|d| &d.by.id == self.decider.person() && !measured.rule.takes(d.via))
    }

    fn approved_before(&self, stored: &Stored) -> bool {
        let decisions = &stored.approval.decisions;
        decisions.iter().any(|d| {
            d.decision == Verdict::Approve && d.by.id.as_str() == self.decider.person().as_str()
        })
    }

    fn row(&self, stored: &Stored, now: Timestamp) -> DecisionRow {
        let mut row = DecisionRow {
            id: fresh_id(),
            approval_id: self.id.as_str().to_owned(),
            person_id: self.decider.person().as_str().to_owned(),
            person_name: self.decider.name().to_owned(),
            verdict: self.verdict.as_str().to_owned(),
            via: self.decider.via().as_str().to_owned(),
            seen_digest: self.seen.as_str().to_owned(),
            reason: self.reason.clone(),
            at: now.ms(),
            signature: String::new(),
        };
        row.signature = signing::sign(&self.engine, stored, &row);
        row
    }

    /// Explains a decision that the UPDATE did not take; the record informs, the UPDATE decided.
    fn why_not(&self, stored: &Stored, now: Timestamp) -> Refusal {
        let approval = &stored.approval;
        if let (Some(last), true) = (
            approval.decisions.last(),
            !matches!(approval.state, State::Pending),
        ) {
            let verb = match last.decision {
                Verdict::Approve => "approved",
                Verdict::Deny => "denied",
            };
            let voided_later = closed_answer(approval, now)
                .filter(|_| !matches!(approval.state, State::Denied { .. }));
            return voided_later.unwrap_or_else(|| {
                Refusal::new(
                    Code::AlreadyDecided,
                    format!("Already {verb} by {}.", last.by.name),
                )
                .with("by", json!(last.by))
                .with("decision", last.decision.as_str())
                .with("at", last.at.to_string())
            });
        }
        closed_answer(approval, now).unwrap_or_else(|| {
            Refusal::new(Code::StaleView, "This is not what the page showed you. Nothing was decided. Reload the page and look again.")
        })
    }
}

fn studio_alone() -> Refusal {
    Refusal::new(
        Code::Forbidden,
        "This site takes decisions in the Studio alone. Nothing was decided. Open the link there.",
    )
}
