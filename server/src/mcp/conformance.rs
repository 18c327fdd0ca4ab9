//! For the protocol's own conformance suite, in builds for tests alone: the product's handler with the suite's fixtures beside it,
//! and one fixed caller, since the suite cannot send a key. What is not a fixture is the product's own answer.

mod fixtures;

use super::{door, handler::Handler, tasks};
use crate::App;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities,
        CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, ErrorData,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ReadResourceRequestParams, ReadResourceResponse, Reference, ServerConfig,
        SubscriptionFilter, Tool as ListedTool, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};

/// Names the file that holds the key of the fixed caller; it may be written after the server has started.
const KEY_FILE: &str = "CLOUDHAL_TEST_CONFORMANCE";

/// The door with fixtures, where the environment asks for it.
pub fn with_fixtures(app: &App, handler: &Handler) -> Option<Router> {
    let file: Arc<PathBuf> = Arc::new(std::env::var_os(KEY_FILE)?.into());
    let handler = handler.clone();
    let door = door(app, move || Fixtures(handler.fresh()));
    Some(door.layer(from_fn_with_state(file, as_the_fixed_caller)))
}

async fn as_the_fixed_caller(
    State(file): State<Arc<PathBuf>>,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers_mut();
    if !headers.contains_key(header::AUTHORIZATION)
        && let Ok(key) = tokio::fs::read_to_string(file.as_path()).await
        && let Ok(bearer) = HeaderValue::try_from(format!("Bearer {}", key.trim()))
    {
        headers.insert(header::AUTHORIZATION, bearer);
    }
    next.run(request).await
}

struct Fixtures(Handler);

type Context = RequestContext<RoleServer>;

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        self.0.initialize(request, context).await
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut all = self.0.list_tools(page, context).await?;
        all.tools.extend(read::<Vec<_>>(fixtures::tools())?);
        Ok(all)
    }

    fn get_tool(&self, name: &str) -> Option<ListedTool> {
        let fixtures = read::<Vec<ListedTool>>(fixtures::tools()).unwrap_or_default();
        let fixture = fixtures.into_iter().find(|tool| tool.name == name);
        fixture.or_else(|| self.0.get_tool(name))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let can = context.client_capabilities().unwrap_or_default();
        match call.name.as_ref() {
            "slow_compute" => return self.wait_for_a_person(context).await,
            "test_missing_capability" if can.sampling.is_none() => {
                let wanted: ClientCapabilities = read(json!({"sampling": {}}))?;
                return Err(ErrorData::missing_required_client_capability(wanted));
            }
            "test_tool_with_progress" => tell_progress(&context).await,
            _ => {}
        }
        if let Some(answer) = fixtures::tool_answer(&call.name) {
            return Ok(CallToolResponse::Complete(result(answer)?));
        }
        let brought = fixtures::Brought {
            responses: call.input_responses.clone().unwrap_or_default(),
            state: call.request_state.clone(),
        };
        match fixtures::asked(&call.name, &brought, &can)? {
            Some(fixtures::Asked::Done(text)) => {
                let answer = json!({"content": [{"type": "text", "text": text}]});
                Ok(CallToolResponse::Complete(result(answer)?))
            }
            Some(fixtures::Asked::Again(required)) => {
                Ok(CallToolResponse::InputRequired(read(required)?))
            }
            None => self.0.call_tool(call, context).await,
        }
    }

    async fn get_task(
        &self,
        task: GetTaskParams,
        context: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        self.0.get_task(task, context).await
    }

    async fn update_task(&self, task: UpdateTaskParams, context: Context) -> Result<(), ErrorData> {
        self.0.update_task(task, context).await
    }

    async fn cancel_task(&self, task: CancelTaskParams, context: Context) -> Result<(), ErrorData> {
        self.0.cancel_task(task, context).await
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut all = self.0.list_resources(page, context).await?;
        all.resources.extend(read::<Vec<_>>(fixtures::resources())?);
        Ok(all)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.0.list_resource_templates(page, context).await
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match fixtures::resource(&asked.uri) {
            Some(contents) => {
                let caching = json!({"ttlMs": 0, "cacheScope": "private", "contents": [contents]});
                Ok(ReadResourceResponse::Complete(result(caching)?))
            }
            None => self.0.read_resource(asked, context).await,
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(requested)
    }

    async fn listen(&self, stream: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listen(stream).await
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut all = self.0.list_prompts(page, context).await?;
        all.prompts.extend(read::<Vec<_>>(fixtures::prompts())?);
        Ok(all)
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = json!(asked.arguments.clone().unwrap_or_default());
        if let Some(messages) = fixtures::prompt(&asked.name, &given) {
            return Ok(GetPromptResponse::Complete(result(messages)?));
        }
        let can = context.client_capabilities().unwrap_or_default();
        let brought = fixtures::Brought {
            responses: asked.input_responses.clone().unwrap_or_default(),
            state: asked.request_state.clone(),
        };
        match fixtures::asked(&asked.name, &brought, &can)? {
            Some(fixtures::Asked::Done(text)) => {
                Ok(GetPromptResponse::Complete(result(fixtures::said(&text))?))
            }
            Some(fixtures::Asked::Again(required)) => {
                Ok(GetPromptResponse::InputRequired(read(required)?))
            }
            None => self.0.get_prompt(asked, context).await,
        }
    }

    async fn complete(
        &self,
        asked: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        match &asked.r#ref {
            Reference::Prompt(prompt) if prompt.name == fixtures::PROMPT_WITH_ARGUMENTS => result(
                json!({"completion": {"values": ["paris", "park"], "total": 2, "hasMore": false}}),
            ),
            _ => self.0.complete(asked, context).await,
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        self.0.on_custom_request(request, context).await
    }
}

impl Fixtures {
    /// What takes its time here is a person: `slow_compute` asks to publish the first site, through the gate.
    async fn wait_for_a_person(&self, context: Context) -> Result<CallToolResponse, ErrorData> {
        let listing: CallToolRequestParams = read(json!({"name": "site_list"}))?;
        let listed = match self.0.call_tool(listing, context.clone()).await? {
            CallToolResponse::Complete(result) => result.structured_content.unwrap_or_default(),
            _ => Value::Null,
        };
        let site = listed.pointer("/data/items/0/id").cloned();
        let site = site.unwrap_or_default();
        let publish = read(json!({"name": "publish", "arguments": {"site": site}}))?;
        let answer = self.0.call_tool(publish, context.clone()).await?;
        debug_assert!(
            !tasks::are_wanted(&context) || matches!(answer, CallToolResponse::Task(_)),
            "a call that waits is a task for a client that takes them",
        );
        Ok(answer)
    }
}

async fn tell_progress(context: &Context) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    for percent in [0.0, 50.0, 100.0] {
        let note = ProgressNotificationParam::new(token.clone(), percent).with_total(100.0);
        // The suite counts what arrived.
        let _ = context.peer.notify_progress(note).await;
    }
}

/// A result that says that it is whole, which `rmcp` takes out again for the older era.
fn result<T: DeserializeOwned>(mut fixture: Value) -> Result<T, ErrorData> {
    fixture["resultType"] = json!("complete");
    read(fixture)
}

/// Fixtures are written down as they look on the wire.
fn read<T: DeserializeOwned>(fixture: Value) -> Result<T, ErrorData> {
    serde_json::from_value(fixture)
        .map_err(|error| ErrorData::internal_error(format!("a fixture is wrong: {error}"), None))
}
