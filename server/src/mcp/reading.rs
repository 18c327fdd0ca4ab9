//! What resources, prompts and completion know of the site they know from tools: each read goes through the gate, with the
//! key's scope, as if the model had called the tool.

use cloudhal_domain::{
    answer::Answer,
    code::{Code, Refusal},
};
use cloudhal_engine::{Engine, callers::Caller, gate::CallRequest};
use rmcp::model::{ErrorData, PaginatedRequestParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What a tool that only reads answers.
pub async fn read(
    engine: &Engine,
    caller: &Caller,
    tool: &str,
    arguments: Value,
) -> Result<Value, Refusal> {
    let request = CallRequest {
        tool: tool.to_owned(),
        arguments,
        approval: None,
        reason: None,
    };
    match engine.call(caller, request).await {
        Answer::Ok { data, .. } => Ok(data),
        Answer::Error { error } => Err(error),
        Answer::ApprovalPending(_) => Err(Refusal::new(
            Code::Internal,
            format!("`{tool}` is no tool that only reads."),
        )),
    }
}

/// A page of a tool's list.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// One of the caller's sites, from `site-list`.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Site {
    pub id: String,
    pub slug: String,
    pub title: String,
}

/// One node of a draft, from `node-list`.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Node {
    pub id: String,
    pub path: String,
    pub title: String,
}

pub async fn sites(engine: &Engine, caller: &Caller) -> Result<Vec<Site>, Refusal> {
    let page: Page<Site> = typed(read(engine, caller, "site-list", json!({})).await?)?;
    Ok(page.items)
}

pub async fn nodes(
    engine: &Engine,
    caller: &Caller,
    site: &str,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Page<Node>, Refusal> {
    let mut arguments = json!({"site": site, "limit": limit});
    if let Some(cursor) = cursor {
        arguments["cursor"] = json!(cursor);
    }
    typed(read(engine, caller, "node-list", arguments).await?)
}

/// Whether the key holds a tool, by its id.
pub fn may(engine: &Engine, caller: &Caller, tool: &str) -> bool {
    engine
        .tools()
        .get(tool)
        .is_ok_and(|tool| caller.may_call(tool))
}

/// A refusal where the protocol has no result that could carry it. The caller's own fault is `-32602`, ours is `-32603`.
pub fn error(refusal: &Refusal) -> ErrorData {
    let data = Some(json!(refusal));
    if refusal.retryable || refusal.code == Code::Internal {
        return ErrorData::internal_error(refusal.to_string(), data);
    }
    ErrorData::invalid_params(refusal.to_string(), data)
}

/// For lists that have one page.
pub fn only_page(page: Option<&PaginatedRequestParams>, what: &str) -> Result<(), ErrorData> {
    match page.is_some_and(|page| page.cursor.is_some()) {
        true => Err(ErrorData::invalid_params(
            format!("There is one page of {what}, so no cursor of this server's can be good."),
            None,
        )),
        false => Ok(()),
    }
}

fn typed<T: DeserializeOwned>(data: Value) -> Result<T, Refusal> {
    serde_json::from_value(data).map_err(|error| Refusal::new(Code::Internal, error.to_string()))
}
