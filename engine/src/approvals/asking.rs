//! A person's own client puts a waiting request to its person, and brings back what they said (DESIGN §4, rule 3).
//!
//! What it carries meanwhile is a proof that it was asked: signed by a node, and bound to the caller, the record and what was
//! shown. It is no decision and decides nothing by itself; whoever made it up is told so.

use super::{decide, of_caller};
use crate::{
    Engine,
    authority::Decider,
    callers::Caller,
    gate::{self, CallRequest},
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
    /// As a link to the Studio, where they decide; the client only says that it was opened.
    Link,
    /// As a token that the client repeats its call with, where the operator of the machine allowed that.
    Token,
}

impl Put {
    fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Link => "link",
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

/// `None` for agents. A form or a token also is for nobody where the Studio alone decides: on a site or tool that wants it so,
/// and where this person's approval would not count.
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
    if approval.standing(engine.now()) != Status::Pending {
        return Ok(None);
    }
    if put != Put::Link && !may_answer(engine, &decider, &approval).await? {
        return Ok(None);
    }
    let signed = engine.secret().sign(&message(caller, &approval, put));
    Ok(Some(ClientQuestion {
        url: engine.approval_url(id),
        proof: format!("{id}.{signed}"),
        card: approval.card,
    }))
}

/// Whether the client may bring an answer back. Deciding asks all of it again, under the site's lock.
async fn may_answer(
    engine: &Engine,
    decider: &Decider,
    approval: &Approval,
) -> Result<bool, Refusal> {
    let role = sites_sql::persons_role(engine.store().read(), &approval.site, decider.person());
    let role = role.await?.as_deref().and_then(Role::from_text);
    let mut db = engine.store().reader().await?;
    let policy = policies::of_site(&mut db, approval.site.as_str()).await?;
    let measured = Measured::of(&mut db, &policy, approval).await?;
    Ok(role.is_some_and(Role::may_decide)
        && !measured.rule.studio_only
        && measured.counts(decider.person())
        && approval.decisions.is_empty())
}

/// Takes the person's answer to a form or a token, which comes with the call that it is for; what it is bound to has to be as
/// it was asked.
pub async fn answer_in_client(
    engine: &Engine,
    caller: &Caller,
    call: &CallRequest,
    proof: &str,
    put: Put,
    (verdict, reason): (Verdict, Option<String>),
) -> Result<ApprovalRecord, Refusal> {
    let approval = asked(engine, caller, proof, put).await?;
    gate::expect_call_of(engine, call, &approval)?;
    let decider = Decider::in_own_client(caller).filter(|_| put != Put::Link);
    let decider = decider.ok_or_else(never_asked)?;
    let (site, id, seen) = (&approval.site, &approval.id, &approval.seen_digest);
    decide(engine, &decider, site, id, verdict, seen.as_str(), reason).await
}

/// The caller's own request that a proof was given for.
pub async fn asked(
    engine: &Engine,
    caller: &Caller,
    proof: &str,
    put: Put,
) -> Result<Approval, Refusal> {
    let (id, signed) = proof.split_once('.').ok_or_else(never_asked)?;
    let stored = of_caller(engine, caller, &ApprovalId::new(id)).await;
    let approval = match stored {
        Ok(stored) => stored.approval,
        Err(refusal) if refusal.code == Code::ApprovalNotFound => return Err(never_asked()),
        Err(refusal) => return Err(refusal),
    };
    match signing::verifies(engine, &message(caller, &approval, put), signed).await? {
        true => Ok(approval),
        false => Err(never_asked()),
    }
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
