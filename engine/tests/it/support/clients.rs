//! Who acts: an agent with its key, a person in a session. Each goes in as a door would let it in.

use super::{
    Answer, ApprovalId, ApprovalRecord, Code, Engine, OwnClient, PUBLIC_URL, Refusal, Surface,
    Value,
};
use cloudhal_domain::{
    answer::Pending,
    approval::Verdict,
    id::{AgentId, KeyId, SiteId},
    origin::{self, SameOrigin},
    role::Role,
    view::{Account, AgentRow},
};
use cloudhal_engine::{
    agents, approvals,
    authority::{Decider, Steward},
    callers::{self, Caller},
    direct,
    gate::CallRequest,
    members,
    people::{self, Person},
    policies,
    store::sites as sites_sql,
};
use std::fmt::Debug;

/// Holds a key, which is verified afresh on every call.
#[derive(Clone)]
pub struct AgentClient {
    engine: Engine,
    pub id: AgentId,
    pub key: String,
    surface: Surface,
}

impl AgentClient {
    pub fn new(engine: &Engine, id: AgentId, key: String) -> Self {
        Self {
            engine: engine.clone(),
            id,
            key,
            surface: Surface::Http,
        }
    }

    /// The same agent at another door.
    pub fn over(&self, surface: Surface) -> Self {
        Self {
            surface,
            ..self.clone()
        }
    }

    /// The same agent at another node.
    pub fn at(&self, engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            ..self.clone()
        }
    }

    /// The part of the key that is no secret.
    pub fn key_id(&self) -> &str {
        let rest = self.key.strip_prefix("clh_").unwrap();
        rest.split_once('_').unwrap().0
    }

    pub async fn verified(&self) -> Result<Caller, Refusal> {
        callers::verify_key(&self.engine, &self.key, self.surface).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.request(CallRequest {
            tool: tool.into(),
            arguments,
            approval: None,
            reason: None,
        })
        .await
    }

    pub async fn call_with(&self, approval: &ApprovalId, tool: &str, arguments: Value) -> Answer {
        self.request(CallRequest {
            tool: tool.into(),
            arguments,
            approval: Some(approval.as_str().into()),
            reason: None,
        })
        .await
    }

    pub async fn request(&self, request: CallRequest) -> Answer {
        match self.verified().await {
            Ok(caller) => self.engine.call(&caller, request).await,
            Err(refusal) => refusal.into(),
        }
    }
}

/// Signed in, at a page of our own.
#[derive(Clone)]
pub struct PersonClient {
    engine: Engine,
    person: Person,
}

impl PersonClient {
    pub fn new(engine: &Engine, person: Person) -> Self {
        Self {
            engine: engine.clone(),
            person,
        }
    }

    pub fn person(&self) -> &Person {
        &self.person
    }

    /// A client of this person's own, with a key from a session.
    pub async fn own_client(&self, name: &str) -> OwnClient {
        OwnClient::made(&self.engine, &self.person, name)
            .await
            .unwrap()
    }

    /// The same person at another node.
    pub fn at(&self, engine: &Engine) -> Self {
        Self::new(engine, self.person.clone())
    }

    /// Opens the page of an approval.
    pub async fn look(&self, id: &ApprovalId) -> Result<ApprovalRecord, Refusal> {
        let stored = approvals::for_person(&self.engine, &self.person, id).await?;
        let url = self.engine.approval_url(id);
        Ok(stored.approval.record(self.engine.now(), url))
    }

    pub async fn approve(&self, id: &ApprovalId) -> Result<ApprovalRecord, Refusal> {
        let seen = self.look(id).await?;
        self.decide(&seen, Verdict::Approve, seen.seen_digest.as_str(), None)
            .await
    }

    pub async fn deny(&self, id: &ApprovalId, reason: &str) -> Result<ApprovalRecord, Refusal> {
        let seen = self.look(id).await?;
        let reason = Some(reason.to_owned());
        self.decide(&seen, Verdict::Deny, seen.seen_digest.as_str(), reason)
            .await
    }

    /// Clicks on a page that shows `seen`, with whatever digest.
    pub async fn decide(
        &self,
        seen: &ApprovalRecord,
        verdict: Verdict,
        digest: &str,
        reason: Option<String>,
    ) -> Result<ApprovalRecord, Refusal> {
        self.decide_on(&seen.site, &seen.id, verdict, digest, reason)
            .await
    }

    pub async fn decide_on(
        &self,
        site: &SiteId,
        id: &ApprovalId,
        verdict: Verdict,
        digest: &str,
        reason: Option<String>,
    ) -> Result<ApprovalRecord, Refusal> {
        let decider = Decider::new(&self.person, own_page());
        approvals::decide(&self.engine, &decider, site, id, verdict, digest, reason).await
    }

    pub async fn set_policy(&self, site: &SiteId, policy: Value) -> Result<(), Refusal> {
        let set = policies::set(&self.engine, &self.person, own_page(), site, policy, None);
        set.await.map(drop)
    }

    /// Gives somebody a role and groups, or takes them away.
    pub async fn set_member(
        &self,
        site: &SiteId,
        who: &PersonClient,
        role: Option<Role>,
        groups: &[&str],
    ) -> Result<(), Refusal> {
        let change = members::Change {
            role,
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            only_after: None,
        };
        let who = who.person.id();
        members::set(&self.engine, &self.person, own_page(), site, who, change)
            .await
            .map(drop)
    }

    /// This person as whoever keeps accounts, agents and keys.
    pub fn steward(&self) -> Steward {
        Steward::person(&self.person, own_page())
    }

    pub async fn revoke_key(&self, agent: &AgentId, key: &str) -> Result<AgentRow, Refusal> {
        agents::revoke_key(&self.engine, &self.steward(), agent, &KeyId::new(key)).await
    }

    pub async fn change_agent(
        &self,
        agent: &AgentId,
        change: agents::Change,
    ) -> Result<AgentRow, Refusal> {
        agents::change(&self.engine, &self.steward(), agent, change).await
    }

    /// Changes the account of `who`.
    pub async fn change_person(
        &self,
        who: &PersonClient,
        change: people::Change,
    ) -> Result<Account, Refusal> {
        people::change(&self.engine, &self.steward(), who.person.id(), change).await
    }

    /// Disables the account of `who`, or enables it again.
    pub async fn set_disabled(
        &self,
        who: &PersonClient,
        disabled: bool,
    ) -> Result<Account, Refusal> {
        let change = people::Change {
            disabled: Some(disabled),
            ..Default::default()
        };
        self.change_person(who, change).await
    }

    /// Runs a gated tool by hand, seeing the site as it is now.
    pub async fn act(&self, tool: &str, arguments: Value) -> Result<Value, Refusal> {
        let site = SiteId::new(arguments["site"].as_str().unwrap());
        let state = state_of(&self.engine, &site).await;
        direct::act(
            &self.engine,
            &self.person,
            own_page(),
            tool,
            arguments,
            &state,
        )
        .await
    }
}

/// What only a request from a page of our own can show.
pub fn own_page() -> SameOrigin {
    origin::prove(PUBLIC_URL, Some("same-origin"), Some(PUBLIC_URL)).unwrap()
}

/// The state hash of a site, as a page would have been given it.
async fn state_of(engine: &Engine, site: &SiteId) -> String {
    let site = site.clone();
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            Ok(sites_sql::lock(tx, &site)
                .await?
                .map(|(row, _)| row.state_hash))
        })
    });
    unit.await.unwrap().unwrap_or_default()
}

/// What a test expects an answer to be; anything else fails it and is shown.
pub trait Expect: Sized {
    fn pending(self) -> Pending;
    /// Ran now.
    fn ok(self) -> Value;
    /// Ran before.
    fn replayed(self) -> Value;
    fn refused(self, code: Code) -> Refusal;
}

impl Expect for Answer {
    #[track_caller]
    fn pending(self) -> Pending {
        match self {
            Answer::ApprovalPending(pending) => *pending,
            other => panic!("expected approval_pending, got {other:?}"),
        }
    }

    #[track_caller]
    fn ok(self) -> Value {
        match self {
            Answer::Ok {
                data,
                replayed: false,
            } => data,
            other => panic!("expected a fresh result, got {other:?}"),
        }
    }

    #[track_caller]
    fn replayed(self) -> Value {
        match self {
            Answer::Ok {
                data,
                replayed: true,
            } => data,
            other => panic!("expected the stored result, got {other:?}"),
        }
    }

    #[track_caller]
    fn refused(self, code: Code) -> Refusal {
        match self {
            Answer::Error { error } if error.code == code => error,
            other => panic!("expected {code}, got {other:?}"),
        }
    }
}

#[track_caller]
pub fn refused<T: Debug>(result: Result<T, Refusal>, code: Code) -> Refusal {
    match result {
        Err(refusal) if refusal.code == code => refusal,
        other => panic!("expected {code}, got {other:?}"),
    }
}
