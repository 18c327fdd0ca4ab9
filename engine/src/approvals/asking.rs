//! A person's own client puts a waiting request to its person, and brings back what they said (DESIGN §4, rule 3).
//!
//! What it carries meanwhile is a proof that it was asked: signed by a node, and bound to the caller, the record and what was
//! shown. It is no decision and decides nothing by itself; whoever made it up is told so.

use super::{decide, of_caller};
use crate::{
    Engine,
    authority::Decider,
    callers::Caller,
    policies::{self, Measured},
    signing,
    store::sites as sites_sql,
};
use cloudhal_domain::{
    approval::{Approval, ApprovalRecord, Status, Verdict},
    card::Card,
    code::{Code, Refusal},
    digest::Framed,
    id::ApprovalId,
    role::Role,
};

/// How it is put to the person; a proof of one is none of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// As a form in the client.
    Form,
    /// As a token that the client repeats its call with, where the operator of the machine allowed that.
    Token,
}

impl Put {
    fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Token => "token",
        }
    }
}

/// What the client may put to its person.
#[derive(Clone, Debug)]
pub struct ClientQuestion {
    pub card: Card,
    pub url: String,
    /// Comes back with the answer.
    pub proof: String,
}

/// `None` where only the Studio decides: for agents, on a site or tool that wants it so, and where this person's approval would
/// not count.
pub async fn client_question(
    engine: &Engine,
    caller: &Caller,
    id: &ApprovalId,
    put: Put,
) -> Result<Option<ClientQuestion>, Refusal> {
    let Some(decider) = Decider::in_own_client(caller) else {
        return Ok(None);
    };
    let approval = of_caller(engine, caller, id).await?.approval;
    if approval.standing(engine.now()) != Status::Pending || !approval.decisions.is_empty() {
        return Ok(None);
    }
    let role = sites_sql::persons_role(engine.store().read(), &approval.site, decider.person());
    let role = role.await?.as_deref().and_then(Role::from_text);
    let mut db = engine.store().reader().await?;
    let policy = policies::of_site(&mut db, approval.site.as_str()).await?;
    let measured = Measured::of(&mut db, &policy, &approval).await?;
    let asked = role.is_some_and(Role::may_decide)
        && !measured.rule.studio_only
        && measured.counts(decider.person());
    Ok(asked.then(|| ClientQuestion {
        url: engine.approval_url(id),
        proof: format!(
            "{id}.{}",
            engine.secret().sign(&message(caller, &approval, put))
        ),
        card: approval.card,
    }))
}

/// Takes the person's answer to a [`client_question`]; what it is bound to has to be as it was asked.
pub async fn answer_in_client(
    engine: &Engine,
    caller: &Caller,
    proof: &str,
    put: Put,
    verdict: Verdict,
    reason: Option<String>,
) -> Result<ApprovalRecord, Refusal> {
    let decider = Decider::in_own_client(caller).ok_or_else(never_asked)?;
    let (id, signed) = proof.split_once('.').ok_or_else(never_asked)?;
    let id = ApprovalId::new(id);
    let approval = of_caller(engine, caller, &id)
        .await
        .map_err(|refusal| match refusal.code {
            Code::ApprovalNotFound => never_asked(),
            _ => refusal,
        })?;
    let approval = approval.approval;
    if !signing::verifies(engine, &message(caller, &approval, put), signed).await? {
        return Err(never_asked());
    }
    let seen = approval.seen_digest.as_str();
    decide(engine, &decider, &approval.site, &id, verdict, seen, reason).await
}

fn message(caller: &Caller, approval: &Approval, put: Put) -> String {
    Framed::new("cloudhal/client-question/v1")
        .part(put.as_str())
        .part(caller.kind().as_str())
        .part(caller.id())
        .part(caller.surface().as_str())
        .part(approval.id.as_str())
        .part(approval.args_hash.as_str())
        .part(approval.state_hash.as_str())
        .part(approval.seen_digest.as_str())
        .finish()
        .as_str()
        .to_owned()
}

fn never_asked() -> Refusal {
    Refusal::new(
        Code::StaleView,
        "This answers nothing that was asked here. Nothing was decided, and nothing ran. Make the call again without it.",
    )
}
