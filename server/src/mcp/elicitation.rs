//! A person's own client asks them: as a form, which they answer there, or with the link to the Studio. Agents' clients are
//! never asked (DESIGN §4, rule 3).
//!
//! In the newer era the answer is that input is required, and the client calls again with what it brought back; in the older
//! one, over standard input and output alone, the server asks and waits. Either way the engine decides what an answer is worth.

use super::words;
use cloudhal_domain::{answer::Pending, approval::Verdict, code::Refusal, id::ApprovalId, limits};
use cloudhal_engine::{
    Engine,
    approvals::{self, Put},
    callers::Caller,
    gate::CallRequest,
};
use rmcp::{
    Peer, RoleServer,
    model::{
        ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, JsonObject,
    },
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// What the one input that is asked for is called: it says how it was put.
const FORM: &str = "decision";
const LINK: &str = "link";
const WAIT: Duration = Duration::from_secs(limits::WAIT_SECONDS_MAX);

/// What a client brought back.
pub enum Brought {
    /// The call may go on with this id: it was decided, or the person was sent to the link.
    GoOn(ApprovalId),
    /// The person would not answer here; the call waits as anybody's does.
    NoAnswer,
}

/// Something to put to the person, and the proof that it was.
pub struct Question {
    put: Put,
    params: ElicitRequestParams,
    proof: String,
}

/// What this client may put to its person, by what it can show; `None` where it asks nothing.
pub async fn question(
    engine: &Engine,
    caller: &Caller,
    pending: &Pending,
    client: &ClientCapabilities,
) -> Result<Option<Question>, Refusal> {
    let Some(can) = client.elicitation.as_ref().filter(|_| !pending.approved) else {
        return Ok(None);
    };
    // An empty declaration is the older way to say "forms".
    let forms = can.form.is_some() || can.url.is_none();
    let puts = [(Put::Form, forms), (Put::Link, can.url.is_some())];
    for put in puts.into_iter().filter_map(|(put, can)| can.then_some(put)) {
        let id = &pending.approval_id;
        let Some(asked) = approvals::client_question(engine, caller, id, put).await? else {
            continue;
        };
        let params = match put {
            Put::Form => ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: words::question(&asked.card, &asked.url),
                requested_schema: schema(),
            },
            Put::Link | Put::Token => ElicitRequestParams::UrlElicitationParams {
                meta: None,
                message: words::sent_to_the_studio(&asked.card),
                url: asked.url,
                elicitation_id: id.as_str().to_owned(),
            },
        };
        let proof = asked.proof;
        return Ok(Some(Question { put, params, proof }));
    }
    Ok(None)
}

impl Question {
    /// As an answer of the newer era.
    pub fn required(self) -> InputRequiredResult {
        let name = match self.put {
            Put::Form => FORM,
            Put::Link | Put::Token => LINK,
        };
        let request = InputRequest::Elicitation(ElicitRequest::new(self.params));
        let requests = BTreeMap::from([(name.to_owned(), request)]);
        InputRequiredResult::new(Some(requests), Some(self.proof))
    }

    /// Asks a client of the older era and waits for it. A client that does not answer in time is as one that would not.
    pub async fn ask(
        self,
        engine: &Engine,
        caller: &Caller,
        call: &CallRequest,
        peer: &Peer<RoleServer>,
    ) -> Result<Brought, Refusal> {
        let put = self.put;
        match peer
            .create_elicitation_with_timeout(self.params, Some(WAIT))
            .await
        {
            Ok(result) => take(engine, caller, call, put, &self.proof, result).await,
            Err(error) => {
                tracing::debug!(%error, "the client could not be asked");
                Ok(Brought::NoAnswer)
            }
        }
    }
}

/// What a client of the newer era brought back with its call.
pub async fn brought(
    engine: &Engine,
    caller: &Caller,
    call: &CallRequest,
    proof: &str,
    mut responses: InputResponses,
) -> Result<Brought, Refusal> {
    let (put, response) = match (responses.remove(FORM), responses.remove(LINK)) {
        (Some(response), None) => (Put::Form, response),
        (None, Some(response)) => (Put::Link, response),
        _ => return Ok(Brought::NoAnswer),
    };
    match serde_json::from_value(response) {
        Ok(result) => take(engine, caller, call, put, proof, result).await,
        Err(_) => Ok(Brought::NoAnswer),
    }
}

async fn take(
    engine: &Engine,
    caller: &Caller,
    call: &CallRequest,
    put: Put,
    proof: &str,
    result: ElicitResult,
) -> Result<Brought, Refusal> {
    let approval = approvals::asked(engine, caller, proof, put).await?;
    if result.action != ElicitationAction::Accept {
        return Ok(Brought::NoAnswer);
    }
    match put {
        Put::Form => {
            let Some(verdict) = verdict(result.content) else {
                return Ok(Brought::NoAnswer);
            };
            approvals::answer_in_client(engine, caller, call, proof, put, verdict).await?;
        }
        // That the link was opened says nothing of what was decided there: wait for that (CONTRACT §4).
        Put::Link | Put::Token => {
            approvals::wait(engine, caller, &approval.id, WAIT).await?;
        }
    }
    Ok(Brought::GoOn(approval.id))
}

/// Exactly one of the two words; an accepted form that says nothing decides nothing.
fn verdict(content: Option<Value>) -> Option<(Verdict, Option<String>)> {
    let content = content?;
    let reason = content
        .get("reason")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let verdict = match content.get("decision")?.as_str()? {
        "approve" => Verdict::Approve,
        "deny" => Verdict::Deny,
        _ => return None,
    };
    Some((verdict, reason))
}

/// No answer is filled in beforehand: a client that accepts what it was shown has said nothing.
fn schema() -> ElicitationSchema {
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "oneOf": [
                    {"const": "approve", "title": "Approve: it runs now, once"},
                    {"const": "deny", "title": "Deny: nothing is changed"},
                ],
            },
            "reason": {
                "type": "string",
                "title": "Reason",
                "description": "If you deny it: what should be different. The agent reads it.",
                "maxLength": limits::REASON_CHARS_MAX,
            },
        },
        "required": ["decision"],
    });
    let schema: JsonObject = match schema {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    };
    ElicitationSchema::from_json_schema(schema)
        .unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new()))
}
