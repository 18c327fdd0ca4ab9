//! A body becomes one JSON-RPC message with one meaning, or a JSON-RPC error.

use cloudhal_domain::{
    canonical::{self, Fault, ParseError},
    code::Code,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Why a body is not a message that we take.
#[derive(Debug)]
pub struct Unreadable {
    kind: Kind,
    message: String,
    id: Option<Value>,
    fault: Option<Fault>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    NotJson = -32700,
    NotAMessage = -32600,
    InvalidParams = -32602,
}

impl Unreadable {
    /// A line that is larger than any body may be.
    pub fn too_long() -> Self {
        Self {
            kind: Kind::NotJson,
            message: format!(
                "payload_too_large: a message is at most {} KiB. Nothing was done.",
                cloudhal_domain::limits::BODY_BYTES_MAX / 1024
            ),
            id: None,
            fault: None,
        }
    }

    /// A message of JSON-RPC that is none of MCP.
    pub fn of_no_known_shape() -> Self {
        not_a_message(None, "it has the shape of no message of MCP")
    }

    /// The id is left out where it could not be told, as the protocol asks.
    pub fn to_json(&self) -> Value {
        let (code, faults) = match (self.kind, &self.fault) {
            (Kind::InvalidParams, fault) => (Code::InvalidArguments, fault.as_ref()),
            (_, fault) => (Code::Malformed, fault.as_ref()),
        };
        let mut data = json!({"code": code});
        if let Some(fault) = faults {
            data["faults"] = json!([fault]);
        }
        let mut answer = json!({
            "jsonrpc": "2.0",
            "error": {"code": self.kind as i32, "message": self.message, "data": data},
        });
        if let Some(id) = &self.id {
            answer["id"] = id.clone();
        }
        answer
    }
}

/// Whether the server asks anything at this door, so that an answer may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    Taken,
    Refused,
}

/// Reads a body strictly (CONTRACT §4, `invalid_arguments`) and checks the envelope; what is inside `params` is `rmcp`'s to read.
pub fn read(bytes: &[u8], answers: Answers) -> Result<Value, Unreadable> {
    let value = canonical::parse(bytes).map_err(|error| not_one_meaning(error, bytes))?;
    match value {
        Value::Object(message) => checked(message, answers),
        Value::Array(_) => Err(not_a_message(
            None,
            "batches are not taken: send one message in each request",
        )),
        _ => Err(not_a_message(None, "a message is a JSON object")),
    }
}

fn not_one_meaning(error: ParseError, bytes: &[u8]) -> Unreadable {
    match error {
        ParseError::Malformed(words) => Unreadable {
            kind: Kind::NotJson,
            message: format!("malformed: the body is not JSON: {words}. Nothing was done."),
            id: None,
            fault: None,
        },
        ParseError::Refused(fault) => Unreadable {
            kind: Kind::InvalidParams,
            message: format!(
                "invalid_arguments: the message cannot be taken: {} (at {}). Nothing was done.",
                fault.problem,
                if fault.pointer.is_empty() {
                    "the top"
                } else {
                    &fault.pointer
                }
            ),
            id: id_of_refused(bytes),
            fault: Some(fault),
        },
    }
}

/// The id of a message that has faults elsewhere. A second `id` makes this fail, which is right: then nobody can tell.
fn id_of_refused(bytes: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Envelope {
        id: Value,
    }
    serde_json::from_slice::<Envelope>(bytes)
        .ok()
        .map(|envelope| envelope.id)
        .filter(is_id)
}

fn checked(message: Map<String, Value>, taken: Answers) -> Result<Value, Unreadable> {
    let has = |name: &str| message.contains_key(name);
    let id = message.get("id").filter(|id| is_id(id)).cloned();
    let no = |why: &str| Err(not_a_message(id.clone(), why));
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return no("`jsonrpc` must be \"2.0\"");
    }
    if has("id") && id.is_none() {
        return no("`id` must be a string or a whole number");
    }
    let answers = has("result") || has("error");
    match message.get("method") {
        Some(Value::String(_)) if answers => {
            return no("a message is a request or an answer, not both");
        }
        Some(Value::String(_)) => {}
        Some(_) => return no("`method` must be a string"),
        None if answers && taken == Answers::Taken => {}
        None if answers => return no("this server asks nothing, so there is nothing to answer"),
        None => return no("`method` is missing"),
    }
    let params = message.get("params");
    if params.is_some_and(|params| !params.is_object()) {
        return no("`params` must be an object");
    }
    let meta = params.and_then(|params| params.get("_meta"));
    if meta.is_some_and(|meta| !meta.is_object()) {
        return no("`_meta` must be an object");
    }
    Ok(Value::Object(message))
}

fn not_a_message(id: Option<Value>, why: &str) -> Unreadable {
    Unreadable {
        kind: Kind::NotAMessage,
        message: format!("malformed: not a JSON-RPC message: {why}. Nothing was done."),
        id,
        fault: None,
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, code: i32, id: Value, words: &str) {
        let answer = read(body.as_bytes(), Answers::Refused)
            .unwrap_err()
            .to_json();
        assert_eq!(answer["error"]["code"], code, "{body}");
        assert_eq!(answer["id"], id, "{body}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{body}: {message}");
    }

    #[test]
    fn what_is_not_json_is_a_parse_error() {
        for body in [
            "",
            "{",
            "{\"jsonrpc\":\"2.0\",}",
            "\u{feff}{}",
            "{} {}",
            "NaN",
        ] {
            check(body, -32700, Value::Null, "not JSON");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused_with_its_place() {
        let call = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"publish","arguments":{arguments}}}}}"#
            )
        };
        check(
            &call(r#"{"site":"a","site":"b"}"#),
            -32602,
            json!(7),
            "/params/arguments/site",
        );
        check(
            &call(r#"{"site":"a","s\u0069te":"b"}"#),
            -32602,
            json!(7),
            "/params/arguments/site",
        );
        check(
            &call(r#"{"site":"\ud800"}"#),
            -32602,
            json!(7),
            "lone surrogate",
        );
        check(&call("9007199254740993"), -32602, json!(7), "2^53");
        check(
            &call(&format!("{}1{}", "[".repeat(200), "]".repeat(200))),
            -32602,
            json!(7),
            "deep",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            -32602,
            Value::Null,
            "/id",
        );
    }

    #[test]
    fn what_is_no_message_is_an_invalid_request() {
        let none = Value::Null;
        check("[]", -32600, none.clone(), "batches");
        check(
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            -32600,
            none.clone(),
            "batches",
        );
        check("7", -32600, none.clone(), "object");
        check("{}", -32600, none.clone(), "jsonrpc");
        check(r#"{"id":1,"method":"ping"}"#, -32600, json!(1), "jsonrpc");
        for id in ["null", "1.5", "true", "{}", "[1]"] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            check(&body, -32600, none.clone(), "`id`");
        }
        check(
            r#"{"jsonrpc":"2.0","id":"a","method":7}"#,
            -32600,
            json!("a"),
            "`method` must",
        );
        check(r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1), "missing");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            -32600,
            json!(1),
            "not both",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            -32600,
            json!(1),
            "`params`",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":[]}}"#,
            -32600,
            json!(1),
            "`_meta`",
        );
        for answer in [r#""result":{}"#, r#""error":7"#] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#);
            check(&body, -32600, json!(1), "nothing to answer");
        }
    }

    #[test]
    fn a_message_keeps_its_one_meaning() {
        let body = br#"{"params":{"n":1.0},"method":"x","id":1e0,"jsonrpc":"2.0"}"#;
        let seen = read(body, Answers::Refused).unwrap();
        assert_eq!(
            seen,
            json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"n": 1}})
        );
    }
}
