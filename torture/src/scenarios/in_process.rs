//! Agents and people at an engine in this process, for races that a network would only blur.

use crate::world::AgentKey;
use anyhow::{Context as _, Result, bail};
use cloudhal_domain::{
    answer::Answer,
    approval::{ApprovalRecord, Verdict},
    code::Refusal,
    id::{ApprovalId, SiteId},
    origin,
    tool::Surface,
};
use cloudhal_engine::{
    Engine, approvals,
    authority::Decider,
    callers,
    gate::CallRequest,
    people::{self, Person},
};
use serde_json::{Value, json};

/// An agent whose key was verified once.
#[derive(Clone)]
pub struct Caller {
    caller: callers::Caller,
    pub key: AgentKey,
}

impl Caller {
    pub async fn of(engine: &Engine, key: &AgentKey) -> Result<Self> {
        Ok(Self {
            caller: callers::verify_key(engine, &key.key, Surface::Http).await?,
            key: key.clone(),
        })
    }

    pub async fn call(
        &self,
        engine: &Engine,
        tool: &str,
        arguments: Value,
        approval: Option<&ApprovalId>,
    ) -> Answer {
        let request = CallRequest {
            tool: tool.into(),
            arguments,
            approval: approval.map(|id| id.as_str().to_owned()),
            reason: None,
        };
        engine.call(&self.caller, request).await
    }

    /// Asks for a publish of its site.
    pub async fn ask(&self, engine: &Engine) -> Result<ApprovalId> {
        match self
            .call(engine, "publish", json!({"site": self.key.site}), None)
            .await
        {
            Answer::ApprovalPending(pending) => Ok(pending.approval_id),
            other => bail!("not pending: {other:?}"),
        }
    }

    pub async fn redeem(&self, engine: &Engine, id: &ApprovalId) -> Answer {
        self.call(engine, "publish", json!({"site": self.key.site}), Some(id))
            .await
    }

    pub async fn edit(&self, engine: &Engine, text: &str) -> Result<()> {
        let arguments = json!({"site": self.key.site, "node": self.key.node, "body": text});
        match self.call(engine, "node-update", arguments, None).await {
            Answer::Ok { .. } => Ok(()),
            other => bail!("an edit was answered {other:?}"),
        }
    }
}

/// A person, as a page of our own lets them act.
#[derive(Clone)]
pub struct Approver(Person);

impl Approver {
    pub async fn of(engine: &Engine, name: &str) -> Result<Self> {
        let person = people::by_email(engine, &format!("{name}@example.com")).await?;
        Ok(Self(person.context("nobody of that name")?))
    }

    pub async fn decide(
        &self,
        engine: &Engine,
        site: &str,
        id: &ApprovalId,
        verdict: Verdict,
    ) -> Result<ApprovalRecord, Refusal> {
        let stored = approvals::for_person(engine, &self.0, id).await?;
        let url = engine.settings().public_url.clone();
        let page = origin::prove(&url, Some("same-origin"), Some(&url))
            .ok_or_else(|| Refusal::not_found("page of our own"))?;
        let decider = Decider::new(&self.0, page);
        let record = stored
            .approval
            .record(engine.now(), engine.approval_url(id));
        let seen = record.seen_digest.as_str();
        approvals::decide(
            engine,
            &decider,
            &SiteId::new(site),
            id,
            verdict,
            seen,
            None,
        )
        .await
    }

    pub async fn approve(&self, engine: &Engine, site: &str, id: &ApprovalId) -> Result<()> {
        self.decide(engine, site, id, Verdict::Approve).await?;
        Ok(())
    }
}
