//! The agents' plain HTTP door: `/tools`. The key says who calls, on every request; cookies are never read here.

use crate::{
    App, body,
    reply::{No, Reply},
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, header},
};
use cloudhal_domain::{
    canonical::{self, ParseError},
    code::{Code, Refusal},
    tool::Surface,
};
use cloudhal_engine::{
    callers::{self, Caller},
    gate::CallRequest,
    tools::Tool,
};
use serde_json::{Map, Value, json};

/// The caller behind a request's key. Exactly one `Authorization` header, or none of them counts.
pub async fn caller(app: &App, headers: &HeaderMap, surface: Surface) -> Result<Caller, Refusal> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let key = match (given.next(), given.next()) {
        (Some(one), None) => one.to_str().unwrap_or_default(),
        _ => "",
    };
    let key = key
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map_or("", |(_, key)| key.trim());
    let client = headers
        .get(header::USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .map(str::to_owned);
    Ok(callers::verify_key(&app.engine, key, surface)
        .await?
        .with_client(client))
}

/// `GET /tools`: what this key may call.
pub async fn list(State(app): State<App>, headers: HeaderMap) -> Result<Json<Value>, No> {
    let caller = caller(&app, &headers, Surface::Http).await?;
    let tools: Vec<Value> = app
        .engine
        .tools()
        .all()
        .iter()
        .filter(|tool| caller.may_call(tool))
        .map(describe)
        .collect();
    Ok(Json(json!({"tools": tools})))
}

fn describe(tool: &Tool) -> Value {
    let spec = &tool.spec;
    json!({
        "id": spec.id,
        "title": spec.title,
        "description": spec.description,
        "effect": spec.effect,
        "version": tool.binding_version,
        "inputSchema": tool.schema_for_agents(false),
        "outputSchema": spec.output_schema,
        "annotations": spec.annotations,
    })
}

/// `POST /tools/{tool}`: one call.
pub async fn call(
    State(app): State<App>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply, No> {
    let caller = caller(&app, &headers, Surface::Http).await?;
    let body = read_body(body).await?;
    let request = read_call(tool, body)?;
    Ok(Reply(app.engine.call(&caller, request).await))
}

/// A body within the limit, read strictly.
pub async fn read_body(body: Body) -> Result<Value, Refusal> {
    let bytes = body::whole(body).await?;
    canonical::parse(&bytes).map_err(|error| match error {
        ParseError::Malformed(words) => Refusal::new(
            Code::Malformed,
            format!("The body is not JSON: {words}. Nothing was done."),
        ),
        ParseError::Refused(fault) => Refusal::new(
            Code::InvalidArguments,
            format!(
                "The body cannot be taken: {} (at {}). Nothing was done.",
                fault.problem,
                if fault.pointer.is_empty() {
                    "the top"
                } else {
                    &fault.pointer
                }
            ),
        )
        .with("faults", json!([fault])),
    })
}

/// `{"arguments": {…}, "approvalId"?, "reason"?}` and nothing else: an unknown name may be a wish that we would ignore.
fn read_call(tool: String, body: Value) -> Result<CallRequest, Refusal> {
    let Value::Object(mut body) = body else {
        return Err(wrong("", "the body must be an object with `arguments`"));
    };
    let arguments = match body.remove("arguments") {
        Some(arguments @ Value::Object(_)) => arguments,
        None => Value::Object(Map::new()),
        Some(_) => return Err(wrong("/arguments", "arguments must be an object")),
    };
    let approval = text(&mut body, "approvalId")?;
    let reason = text(&mut body, "reason")?;
    if let Some(name) = body.keys().next() {
        let shown: String = name.chars().take(60).collect();
        return Err(wrong(
            &format!("/{shown}"),
            "only arguments, approvalId and reason stand at the top level",
        ));
    }
    Ok(CallRequest {
        tool,
        arguments,
        approval,
        reason,
    })
}

fn text(body: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Refusal> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(&format!("/{name}"), "it must be a string")),
    }
}

fn wrong(pointer: &str, problem: &str) -> Refusal {
    Refusal::new(
        Code::InvalidArguments,
        format!("The body is not valid: {problem}. Nothing was done."),
    )
    .with("faults", json!([{"pointer": pointer, "problem": problem}]))
}
