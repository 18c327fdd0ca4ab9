//! What the scenarios of the conformance suite expect to find, as they describe it.

use rmcp::model::{ClientCapabilities, ErrorData, InputResponses, RequestStateCodec};
use serde_json::{Map, Value, json};

pub const PROMPT_WITH_ARGUMENTS: &str = "test_prompt_with_arguments";
/// Of a picture with one red point, as PNG.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// Of no sound at all, as WAV.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// Seals no secret: the fixtures live as long as one run of the suite.
const SEAL: &[u8] = b"conformance fixtures, of tests only";

const PLAIN: [&str; 15] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_missing_capability",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_x_mcp_header",
    "greet",
    "slow_compute",
];

const ASKING: [&str; 9] = [
    "test_streaming_elicitation",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

pub fn tools() -> Value {
    let named = PLAIN.iter().chain(&ASKING);
    let mut all: Vec<Value> = named
        .map(|name| {
            let input = match *name {
                "test_x_mcp_header" => json!({
                    "type": "object",
                    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
                    "required": ["region"],
                }),
                _ => json!({"type": "object"}),
            };
            json!({"name": name, "description": "For the conformance suite.", "inputSchema": input})
        })
        .collect();
    all.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": schema_2020_12(),
    }));
    json!(all)
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// The result of a tool that answers alike whatever it is given.
pub fn tool_answer(name: &str) -> Option<Value> {
    let embedded = |uri: &str, mime: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = match name {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image],
        "test_audio_content" => {
            vec![json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})]
        }
        "test_embedded_resource" => vec![embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            image,
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ],
        "test_error_handling" => {
            let said = text("This tool intentionally returns an error for testing");
            return Some(json!({"isError": true, "content": [said]}));
        }
        name if PLAIN.contains(&name) || name == "json_schema_2020_12_tool" => vec![text("Done.")],
        _ => return None,
    };
    Some(json!({"content": content}))
}

pub fn resources() -> Value {
    json!([
        {"uri": "test://static-text", "name": "static-text", "description": "A text.", "mimeType": "text/plain"},
        {"uri": "test://static-binary", "name": "static-binary", "description": "A picture.", "mimeType": "image/png"},
    ])
}

/// The contents of a fixture.
pub fn resource(uri: &str) -> Option<Value> {
    Some(match uri {
        "test://static-text" => json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => {
            let id = uri.strip_prefix("test://template/")?;
            let id = id.strip_suffix("/data")?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    })
}

pub fn prompts() -> Value {
    let argument =
        |name: &str| json!({"name": name, "description": "An argument.", "required": true});
    let prompt = |name: &str, arguments: Vec<Value>| json!({"name": name, "description": "For the conformance suite.", "arguments": arguments});
    json!([
        prompt("test_simple_prompt", vec![]),
        prompt(
            PROMPT_WITH_ARGUMENTS,
            vec![argument("arg1"), argument("arg2")]
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            vec![argument("resourceUri")]
        ),
        prompt("test_prompt_with_image", vec![]),
        prompt("test_input_required_result_prompt", vec![]),
    ])
}

/// One message of a user.
pub fn said(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
}

pub fn prompt(name: &str, given: &Value) -> Option<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let messages = match name {
        "test_simple_prompt" => return Some(said("This is a simple prompt for testing.")),
        PROMPT_WITH_ARGUMENTS => {
            let of = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
            let (one, two) = (of("arg1"), of("arg2"));
            return Some(said(&format!(
                "Prompt with arguments: arg1='{one}', arg2='{two}'"
            )));
        }
        "test_prompt_with_embedded_resource" => [
            json!({"type": "resource", "resource": {
                "uri": given["resourceUri"],
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => [
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ],
        _ => return None,
    };
    let messages = messages.map(|content| json!({"role": "user", "content": content}));
    Some(json!({"messages": messages}))
}

/// What the client brought with its call.
pub struct Brought {
    pub responses: InputResponses,
    pub state: Option<String>,
}

/// How a fixture that asks goes on.
pub enum Asked {
    Done(String),
    /// What is required, as on the wire.
    Again(Value),
}

/// The fixtures that ask the client for input, round by round; `None` for any other name.
pub fn asked(
    name: &str,
    brought: &Brought,
    can: &ClientCapabilities,
) -> Result<Option<Asked>, ErrorData> {
    let Some(rounds) = rounds(name, can) else {
        return Ok(None);
    };
    let sealed = name.ends_with("_state") || name.contains("_multi");
    let codec = RequestStateCodec::try_new(SEAL)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let round = match (&brought.state, sealed) {
        (Some(state), true) => {
            let opened = codec
                .open(state)
                .map_err(|_| ErrorData::invalid_params("This requestState is not ours.", None))?;
            usize::from(opened.first().copied().unwrap_or(0))
        }
        _ => 0,
    };
    let wanted = rounds.get(round).cloned().unwrap_or_default();
    let is_answer = |key: &String| brought.responses.get(key).is_some_and(Value::is_object);
    let answered = wanted.keys().all(is_answer) && (brought.state.is_some() || !sealed);
    let next = if answered { round + 1 } else { round };
    let Some(requests) = rounds.get(next) else {
        let state = if sealed { "state-ok " } else { "" };
        let text = format!("{state}{}", json!(brought.responses));
        return Ok(Some(Asked::Done(text)));
    };
    let mut required = json!({"resultType": "input_required", "inputRequests": requests});
    if sealed {
        let number = u8::try_from(next).unwrap_or_default();
        required["requestState"] = json!(codec.seal(&[number]));
    }
    Ok(Some(Asked::Again(required)))
}

fn rounds(name: &str, can: &ClientCapabilities) -> Option<Vec<Map<String, Value>>> {
    let elicit = |message: &str, field: &str, kind: &str| {
        let schema =
            json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
        json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
    };
    let sample = |text: &str| {
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}})
    };
    let roots = || json!({"method": "roots/list", "params": {}});
    let all = match name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            json!([{"user_name": elicit("What is your name?", "name", "string")}])
        }
        "test_input_required_result_sampling" => {
            json!([{"capital_question": sample("What is the capital of France?")}])
        }
        "test_input_required_result_list_roots" => json!([{"client_roots": roots()}]),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            json!([{"confirm": elicit("Please confirm", "ok", "boolean")}])
        }
        "test_input_required_result_multiple_inputs" => json!([{
            "user_name": elicit("What is your name?", "name", "string"),
            "greeting": sample("Generate a greeting"),
            "client_roots": roots(),
        }]),
        "test_input_required_result_multi_round" => json!([
            {"step1": elicit("Step 1: What is your name?", "name", "string")},
            {"step2": elicit("Step 2: What is your favorite color?", "color", "string")},
        ]),
        "test_input_required_result_capabilities" => {
            let mut round = Map::new();
            if can.elicitation.is_some() {
                round.insert(
                    "user_name".into(),
                    elicit("What is your name?", "name", "string"),
                );
            }
            if can.sampling.is_some() {
                round.insert("greeting".into(), sample("Generate a greeting"));
            }
            json!([round])
        }
        "test_input_required_result_prompt" => {
            json!([{"user_context": elicit("What context should the prompt use?", "context", "string")}])
        }
        _ => return None,
    };
    serde_json::from_value(all).ok()
}
