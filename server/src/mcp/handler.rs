//! The protocol's methods over the engine's registry and gate. Written by hand: what is listed, what is found and what is called
//! must be one list, and it is the engine's.

use super::{
    catalog, completion,
    elicitation::{self, Brought},
    progress, prompts, resources, subscriptions, tasks, words,
};
use axum::http::request::Parts;
use cloudhal_domain::{
    answer::Answer,
    approval::Verdict,
    code::{Code, Refusal},
    limits,
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
        CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams,
        CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorCode, ErrorData,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Icon,
        Implementation, InitializeRequestParams, InitializeResult, InputResponses, JsonObject,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, SubscriptionFilter, Tool as ListedTool, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// A key's scope may change under a client that keeps its list; a minute is how long it may be wrong about it.
pub const LIST_FRESH_MS: u64 = 60_000;

/// How long things take, and how often they are looked at; tests have their own.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Between two notifications of progress.
    pub progress: Duration,
    /// Between two looks at the key of an open stream.
    pub recheck: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            progress: Duration::from_secs(10),
            recheck: Duration::from_secs(5),
        }
    }
}

/// Over HTTP one per request, all alike: nothing of one caller is here to be seen by another, but for the count of its streams.
#[derive(Clone)]
pub struct Handler {
    engine: Engine,
    door: Door,
    /// In the registry's order.
    listed: Arc<[ListedTool]>,
    info: Arc<ServerConfig>,
    pace: Pace,
    streams: subscriptions::Streams,
    early: subscriptions::Early,
    /// Turns true, or is gone, when open streams are to end.
    stopping: watch::Receiver<bool>,
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
    pub fn over_http(engine: Engine, pace: Pace, stopping: watch::Receiver<bool>) -> Self {
        Self {
            pace,
            ..Self::new(engine, Door::Http, stopping)
        }
    }

    /// The same for the next request.
    pub fn fresh(&self) -> Self {
        Self {
            early: subscriptions::Early::default(),
            ..self.clone()
        }
    }

    /// The same, with streams that end when this turns true or is gone.
    pub fn ending_with(self, stopping: watch::Receiver<bool>) -> Self {
        Self { stopping, ..self }
    }

    /// For the person at whose machine this runs. With `confirm_tokens` a pending answer carries a token, and the call that
    /// repeats it runs: for clients that cannot ask, where the operator accepts that a program answers for a person.
    pub fn here(engine: Engine, caller: Caller, confirm_tokens: bool) -> Self {
        let door = Door::Here {
            caller,
            confirm_tokens,
        };
        Self::new(engine, door, watch::channel(false).1)
    }

    fn new(engine: Engine, door: Door, stopping: watch::Receiver<bool>) -> Self {
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
            pace: Pace::default(),
            streams: subscriptions::Streams::default(),
            early: subscriptions::Early::default(),
            stopping,
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
            let brought = elicitation::brought(engine, caller, &request, &proof, responses);
            match Box::pin(brought).await? {
                Brought::GoOn(id) => request.approval = Some(id.as_str().to_owned()),
                Brought::NoAnswer => may_ask = false,
            }
        }
        if let Some(token) = input.confirm_token {
            let (put, yes) = (Put::Token, (Verdict::Approve, None));
            let decided = approvals::answer_in_client(engine, caller, &request, &token, put, yes);
            let record = Box::pin(decided).await?;
            request.approval = Some(record.id.as_str().to_owned());
        }
        let answer = engine.call(caller, request.clone()).await;
        let Answer::ApprovalPending(mut pending) = answer else {
            return Ok(words::result(&answer).into());
        };
        let can = context.client_capabilities().filter(|_| may_ask);
        let question = match &can {
            Some(can) => Box::pin(elicitation::question(engine, caller, &pending, can)).await?,
            None => None,
        };
        match question {
            Some(question) if tasks::is_modern(context) => return Ok(question.required().into()),
            // Over HTTP the older era has no way back for an answer.
            Some(question) if matches!(self.door, Door::Here { .. }) => {
                let asks = question.ask(engine, caller, &request, &context.peer);
                if let Brought::GoOn(id) = Box::pin(asks).await? {
                    request.approval = Some(id.as_str().to_owned());
                    let answer = engine.call(caller, request).await;
                    return Ok(words::result(&answer).into());
                }
            }
            Some(_) | None => {}
        }
        if let Door::Here {
            confirm_tokens: true,
            ..
        } = self.door
        {
            let id = &pending.approval_id;
            let question = approvals::client_question(engine, caller, id, Put::Token).await?;
            if let Some(question) = question {
                pending.message.push_str(words::CONFIRM);
                pending.confirm_token = Some(question.proof);
            }
        }
        if pending.confirm_token.is_none()
            && tasks::are_wanted(context)
            && let Some(task) = tasks::instead_of(engine, caller, &pending).await
        {
            return Ok(task.into());
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

fn info() -> ServerConfig {
    // An address has no spaces, though browsers take them.
    let icon = Icon::new(cloudhal_app::ICON.replace(' ', "%20"))
        .with_mime_type("image/svg+xml")
        .with_sizes(vec!["any".to_owned()]);
    let server = Implementation::new("cloudhal", env!("CARGO_PKG_VERSION"))
        .with_title("Cloudhal")
        .with_description("Sites that agents edit and people approve.")
        .with_icons(vec![icon]);
    ServerConfig::new(modern())
        .with_server_info(server)
        .with_instructions(words::INSTRUCTIONS)
}

/// Of 2026-07-28: tasks, and streams of what moved, are of this era alone.
fn modern() -> ServerCapabilities {
    ServerCapabilities::builder()
        .enable_tools()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_prompts()
        .enable_completions()
        .enable_tasks()
        .build()
}

/// Of the handshake's era, which would have both over a session, and there are none.
fn legacy() -> ServerCapabilities {
    ServerCapabilities::builder()
        .enable_tools()
        .enable_resources()
        .enable_prompts()
        .enable_completions()
        .build()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::clone(&self.info)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut hello = self.negotiate_initialize(&request)?;
        hello.capabilities = legacy();
        Ok(hello)
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
        let (every, expected) = (self.pace.progress, longest_wait(&request));
        let answer = self.answer(&caller, request, input, &context);
        let answer = progress::told(&context, every, expected, answer).await?;
        Ok(answer.unwrap_or_else(|refusal| words::result(&refusal.into()).into()))
    }

    async fn get_task(
        &self,
        task: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = self.caller(&context)?;
        tasks::serve(&context, tasks::get(&self.engine, &caller, task.task_id)).await
    }

    async fn update_task(
        &self,
        task: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        tasks::serve(&context, tasks::update(&self.engine, &caller, task.task_id)).await
    }

    async fn cancel_task(
        &self,
        task: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        tasks::serve(&context, tasks::cancel(&self.engine, &caller, task.task_id)).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.engine, &self.caller(&context)?, page).await
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        resources::templates(&self.engine, &self.caller(&context)?, page.as_ref())
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::contents(&self.engine, &self.caller(&context)?, &asked.uri).await?;
        Ok(read.into())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.early.begin(&self.engine);
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, stream: SubscriptionContext) -> Result<(), ErrorData> {
        let listener = subscriptions::Listener {
            engine: self.engine.clone(),
            caller: self.caller(stream.request_context())?,
            streams: self.streams.clone(),
            early: self.early.clone(),
            recheck: self.pace.recheck,
            stopping: self.stopping.clone(),
        };
        listener.listen(stream).await
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list(page.as_ref())
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = prompts::get(&self.engine, &self.caller(&context)?, asked).await?;
        Ok(prompt.into())
    }

    async fn complete(
        &self,
        asked: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        completion::complete(&self.engine, &self.caller(&context)?, asked).await
    }

    /// `rmcp` brings a request here when it does not know the method, or when the parameters do not fit the method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, .. } = request;
        let modern = tasks::is_modern(&context);
        let ours = match method.as_str() {
            "tools/list"
            | "tools/call"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "prompts/list"
            | "prompts/get"
            | "completion/complete" => true,
            // The handshake is gone from the modern era: there it is a method that does not exist.
            "initialize" | "ping" => !modern,
            "server/discover"
            | "subscriptions/listen"
            | "tasks/get"
            | "tasks/update"
            | "tasks/cancel" => modern,
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

/// What whoever hung up is told, should anybody still listen.
pub fn gone() -> ErrorData {
    ErrorData::internal_error("The client went away, or cancelled.", None)
}

/// How long a call may wait at most, where it says so itself.
fn longest_wait(request: &CallRequest) -> Option<Duration> {
    let seconds = request.arguments.get("waitSeconds")?.as_u64()?;
    (seconds > 0).then(|| Duration::from_secs(seconds.min(limits::WAIT_SECONDS_MAX)))
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
