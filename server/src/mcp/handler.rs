//! The protocol's methods over the engine's registry and gate. Written by hand: what is listed, what is found and what is called
//! must be one list, and it is the engine's.

use super::{
    catalog,
    elicitation::{self, Brought},
    words,
};
use axum::http::request::Parts;
use cloudhal_domain::{
    answer::Answer,
    approval::Verdict,
    code::{Code, Refusal},
    tool::Effect,
};
use cloudhal_engine::{
    Engine,
    approvals::{self, Put},
    callers::Caller,
    gate::CallRequest,
    tools::Tool,
};
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult,
        ErrorCode, ErrorData, Implementation, InputResponses, JsonObject, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
        Tool as ListedTool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A key's scope may change under a client that keeps its list; a minute is how long it may be wrong about it.
const LIST_FRESH_MS: u64 = 60_000;

/// Over HTTP one per request, all alike: nothing of one caller is here to be seen by another.
#[derive(Clone)]
pub struct Handler {
    engine: Engine,
    door: Door,
    /// In the registry's order.
    listed: Arc<[ListedTool]>,
    info: Arc<ServerConfig>,
}

#[derive(Clone)]
enum Door {
    /// Who calls comes with each request.
    Http,
    /// Standard input and output, at the machine of one person.
    Here {
        caller: Caller,
        confirm_tokens: bool,
    },
}

impl Handler {
    pub fn over_http(engine: Engine) -> Self {
        Self::new(engine, Door::Http)
    }

    /// For the person at whose machine this runs. With `confirm_tokens` a pending answer carries a token, and the call that
    /// repeats it runs: for clients that cannot ask, where the operator accepts that a program answers for a person.
    pub fn here(engine: Engine, caller: Caller, confirm_tokens: bool) -> Self {
        Self::new(
            engine,
            Door::Here {
                caller,
                confirm_tokens,
            },
        )
    }

    fn new(engine: Engine, door: Door) -> Self {
        let confirm_tokens = matches!(
            door,
            Door::Here {
                confirm_tokens: true,
                ..
            }
        );
        let tools = engine.tools().all().iter();
        let listed = tools
            .map(|tool| catalog::listed(tool, confirm_tokens))
            .collect();
        Self {
            engine,
            door,
            listed,
            info: Arc::new(info()),
        }
    }

    /// Who calls, as the door found out; with what the client says of itself where the protocol carries it. Not from `rmcp`'s
    /// peer information over HTTP, which names `rmcp` itself when the client said nothing.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let caller = match &self.door {
            Door::Here { caller, .. } => caller.clone(),
            Door::Http => context
                .extensions
                .get::<Parts>()
                .and_then(|parts| parts.extensions.get::<Caller>())
                .cloned()
                .ok_or_else(|| {
                    ErrorData::internal_error("This request came past the door.", None)
                })?,
        };
        let client = context.meta.client_info().or_else(|| match self.door {
            Door::Here { .. } => context
                .peer
                .peer_info()
                .map(|peer| peer.client_info.clone()),
            Door::Http => None,
        });
        Ok(match client {
            Some(client) => caller.with_client(Some(format!("{} {}", client.name, client.version))),
            None => caller,
        })
    }

    /// The call, asking the person whose client this is where that is possible. At most two rounds of the gate.
    async fn answer(
        &self,
        caller: &Caller,
        mut request: CallRequest,
        input: Input,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, Refusal> {
        let engine = &self.engine;
        let mut may_ask = request.approval.is_none();
        if let (Some(proof), Some(responses), true) = (input.state, input.responses, may_ask) {
            match elicitation::brought(engine, caller, &request, &proof, responses).await? {
                Brought::GoOn(id) => request.approval = Some(id.as_str().to_owned()),
                Brought::NoAnswer => may_ask = false,
            }
        }
        if let Some(token) = input.confirm_token {
            let (put, yes) = (Put::Token, (Verdict::Approve, None));
            let decided = approvals::answer_in_client(engine, caller, &request, &token, put, yes);
            let record = decided.await?;
            request.approval = Some(record.id.as_str().to_owned());
        }
        let answer = engine.call(caller, request.clone()).await;
        let Answer::ApprovalPending(mut pending) = answer else {
            return Ok(words::result(&answer).into());
        };
        let can = context.client_capabilities().filter(|_| may_ask);
        let question = match &can {
            Some(can) => elicitation::question(engine, caller, &pending, can).await?,
            None => None,
        };
        match question {
            Some(question) if is_modern(context) => return Ok(question.required().into()),
            Some(question) => {
                if let Brought::GoOn(id) = question
                    .ask(engine, caller, &request, &context.peer)
                    .await?
                {
                    request.approval = Some(id.as_str().to_owned());
                    let answer = engine.call(caller, request).await;
                    return Ok(words::result(&answer).into());
                }
            }
            None => {}
        }
        if let Door::Here {
            confirm_tokens: true,
            ..
        } = self.door
        {
            let id = &pending.approval_id;
            let question = approvals::client_question(engine, caller, id, Put::Token).await?;
            pending.confirm_token = question.map(|question| question.proof);
        }
        Ok(words::result(&Answer::ApprovalPending(pending)).into())
    }
}

/// What came with a call beside it.
struct Input {
    state: Option<String>,
    responses: Option<InputResponses>,
    confirm_token: Option<String>,
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn info() -> ServerConfig {
    let server = Implementation::new("cloudhal", env!("CARGO_PKG_VERSION"))
        .with_title("Cloudhal")
        .with_description("Sites that agents edit and people approve.");
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(server)
        .with_instructions(words::INSTRUCTIONS)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::clone(&self.info)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if page.is_some_and(|page| page.cursor.is_some()) {
            return Err(ErrorData::invalid_params(
                "There is one page of tools, so no cursor of this server's can be good.",
                None,
            ));
        }
        let caller = self.caller(&context)?;
        let all = self.engine.tools().all().iter().zip(self.listed.iter());
        let tools = all
            .filter(|(tool, _)| caller.may_call(tool))
            .map(|(_, listed)| listed.clone());
        Ok(ListToolsResult::with_all_items(tools.collect())
            .with_ttl_ms(LIST_FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    fn get_tool(&self, name: &str) -> Option<ListedTool> {
        self.listed.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let Some(tool) = self.engine.tools().by_mcp_name(&call.name) else {
            return Err(words::unknown_tool(&call.name));
        };
        let mut arguments = call.arguments.unwrap_or_default();
        let confirm_token = match &self.door {
            Door::Here {
                confirm_tokens: true,
                ..
            } => arguments.remove(catalog::CONFIRM_TOKEN),
            _ => None,
        };
        let input = Input {
            state: call.request_state,
            responses: call.input_responses,
            // What is no text is no token of ours, and is answered as one that is wrong.
            confirm_token: confirm_token.map(|token| token.as_str().unwrap_or_default().to_owned()),
        };
        let request = match call_request(tool, arguments) {
            Ok(request) => request,
            Err(refusal) => return Ok(words::result(&refusal.into()).into()),
        };
        // A client that hangs up ends only our waiting: the engine runs units of work on tasks of their own.
        tokio::select! {
            answer = self.answer(&caller, request, input, &context) => {
                Ok(answer.unwrap_or_else(|refusal| words::result(&refusal.into()).into()))
            }
            () = context.ct.cancelled() => Err(ErrorData::internal_error("The client went away, or cancelled.", None)),
        }
    }

    /// `rmcp` brings a request here when it does not know the method, or when the parameters do not fit the method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, .. } = request;
        let modern = is_modern(&context);
        let ours = match method.as_str() {
            "tools/list" | "tools/call" => true,
            // The handshake is gone from the modern era: there it is a method that does not exist.
            "initialize" | "ping" => !modern,
            "server/discover" => modern,
            _ => false,
        };
        if !ours {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        let message = format!(
            "invalid_arguments: the parameters of {method} do not have the shape that the protocol gives them. Nothing was done."
        );
        let data = json!({"code": Code::InvalidArguments});
        Err(ErrorData::invalid_params(message, Some(data)))
    }
}

/// Over MCP `approvalId` stands among the arguments and is taken out before they are validated (CONTRACT §5). The tools about
/// approvals keep theirs: there it is the argument.
fn call_request(tool: &Tool, mut arguments: JsonObject) -> Result<CallRequest, Refusal> {
    let approval = match tool.spec.effect {
        Effect::Approvals => None,
        Effect::Read | Effect::Draft | Effect::Gated => arguments.remove("approvalId"),
    };
    let approval = match approval {
        None => None,
        Some(Value::String(id)) => Some(id),
        Some(_) => {
            let problem = "it must be the text from an approval_pending answer, or be left out";
            let fault = json!([{"pointer": "/approvalId", "problem": problem}]);
            let message = format!("approvalId is not valid: {problem}. Nothing was done.");
            return Err(Refusal::new(Code::InvalidArguments, message).with("faults", fault));
        }
    };
    Ok(CallRequest {
        tool: tool.spec.id.to_owned(),
        arguments: Value::Object(arguments),
        approval,
        reason: None,
    })
}
