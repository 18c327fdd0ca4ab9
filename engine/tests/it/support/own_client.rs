//! A person's own MCP client: with a key that was made in a session, or at their own machine.

use super::{
    Answer, ApprovalId, ApprovalRecord, Duration, Engine, Refusal, Surface, Value, own_page,
};
use cloudhal_domain::approval::Verdict;
use cloudhal_engine::{
    approvals::{self, ClientQuestion, Put},
    authority::Decider,
    callers::{self, Caller},
    gate::CallRequest,
    people::Person,
    personal_keys::{self, Session},
};

#[derive(Clone)]
pub struct OwnClient {
    engine: Engine,
    pub key: String,
    pub session: String,
    person: Person,
    here: bool,
}

impl OwnClient {
    /// Makes a session that idles out after half an hour, and a key in it that ends after 12 hours.
    pub async fn made(engine: &Engine, person: &Person, name: &str) -> Result<Self, Refusal> {
        let session = format!("session-{name}-{}", person.id());
        let ends = |after: u64| engine.now().plus(Duration::from_secs(after));
        engine
            .store()
            .save_session(session.clone(), "{}".into(), ends(1_800).ms())
            .await?;
        let of = Session {
            id: session.clone(),
            ends_at: ends(43_200),
        };
        let made = personal_keys::make(engine, person, own_page(), of, name).await?;
        Ok(Self {
            engine: engine.clone(),
            key: made.secret,
            session,
            person: person.clone(),
            here: false,
        })
    }

    /// The same person over standard input and output.
    pub fn here(&self) -> Self {
        Self {
            here: true,
            ..self.clone()
        }
    }

    pub async fn caller(&self) -> Result<Caller, Refusal> {
        match self.here {
            true => Ok(Caller::here(&self.person)),
            false => callers::verify_key(&self.engine, &self.key, Surface::Mcp).await,
        }
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.request(tool, arguments, None).await
    }

    pub async fn call_with(&self, id: &ApprovalId, tool: &str, arguments: Value) -> Answer {
        self.request(tool, arguments, Some(id.as_str().into()))
            .await
    }

    async fn request(&self, tool: &str, arguments: Value, approval: Option<String>) -> Answer {
        let request = CallRequest {
            tool: tool.into(),
            arguments,
            approval,
            reason: None,
        };
        match self.caller().await {
            Ok(caller) => self.engine.call(&caller, request).await,
            Err(refusal) => refusal.into(),
        }
    }

    /// What this client may ask its person.
    pub async fn question(&self, id: &ApprovalId) -> Option<ClientQuestion> {
        let caller = self.caller().await.unwrap();
        approvals::client_question(&self.engine, &caller, id, Put::Form)
            .await
            .unwrap()
    }

    /// The person answers in the client, whether or not it may ask.
    pub async fn answer(
        &self,
        caller: &Caller,
        seen: &ApprovalRecord,
        verdict: Verdict,
        digest: &str,
    ) -> Result<ApprovalRecord, Refusal> {
        let decider = Decider::in_own_client(caller).unwrap();
        let (site, id) = (&seen.site, &seen.id);
        approvals::decide(&self.engine, &decider, site, id, verdict, digest, None).await
    }
}
