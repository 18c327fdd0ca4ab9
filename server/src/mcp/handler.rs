//! The protocol's methods over the engine's registry and gate. Written by hand: what is listed, what is found and what is called
//! must be one list, and it is the engine's.

use super::{catalog, words};
use axum::http::request::Parts;
use cloudhal_domain::{
    code::{Code, Refusal},
    tool::Effect,
};
use cloudhal_engine::{Engine, callers::Caller, gate::CallRequest, tools::Tool};
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult,
        ErrorCode, ErrorData, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ServerCapabilities, ServerConfig, Tool as ListedTool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// A key's scope may change under a client that keeps its list; a minute is how long it may be wrong about it.
const LIST_FRESH_MS: u64 = 60_000;

/// One per request, all alike: nothing of one caller is here to be seen by another.
#[derive(Clone)]
pub struct Handler {
    engine: Engine,
    /// In the registry's order.
    listed: Arc<[ListedTool]>,
    info: Arc<ServerConfig>,
}

impl Handler {
    pub fn new(engine: Engine) -> Self {
        let listed = engine.tools().all().iter().map(catalog::listed).collect();
        Self {
            engine,
            listed,
            info: Arc::new(info()),
        }
    }
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
        let caller = caller(&context)?;
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
        let caller = caller(&context)?;
        let Some(tool) = self.engine.tools().by_mcp_name(&call.name) else {
            return Err(words::unknown_tool(&call.name));
        };
        let request = match call_request(tool, call.arguments.unwrap_or_default()) {
            Ok(request) => request,
            Err(refusal) => return Ok(words::result(&refusal.into()).into()),
        };
        // A client that hangs up ends only our waiting: the engine runs units of work on tasks of their own.
        tokio::select! {
            answer = self.engine.call(&caller, request) => Ok(words::result(&answer).into()),
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
        let modern = context
            .protocol_version()
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
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

/// Who calls, as the door found out for this request; with what the client says of itself where the protocol carries it.
/// Not from `rmcp`'s peer information, which names `rmcp` itself when the client said nothing.
fn caller(context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
    let caller = context
        .extensions
        .get::<Parts>()
        .and_then(|parts| parts.extensions.get::<Caller>())
        .cloned()
        .ok_or_else(|| ErrorData::internal_error("This request came past the door.", None))?;
    Ok(match context.meta.client_info() {
        Some(client) => caller.with_client(Some(format!("{} {}", client.name, client.version))),
        None => caller,
    })
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
