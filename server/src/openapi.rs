//! `GET /openapi.json`: `/tools` from the registry itself, `/api` beside it. Built from the same values that serve.

use crate::App;
use axum::{Json, extract::State};
use cloudhal_domain::{
    code::Code,
    policy,
    webhook::{EVENTS, PING},
};
use cloudhal_engine::tools::Tool;
use serde_json::{Map, Value, json};

pub async fn document(State(app): State<App>) -> Json<Value> {
    let mut paths = Map::new();
    paths.insert("/tools".into(), json!({"get": operation("listTools", "The tools this key may call", &["key"], json!({"type": "object"}))}));
    for tool in app.engine.tools().all() {
        paths.insert(
            format!("/tools/{}", tool.spec.id),
            json!({"post": call(tool)}),
        );
    }
    paths.extend(people());
    paths.extend(access());
    Json(json!({
        "openapi": "3.1.0",
        "info": {"title": "Cloudhal", "version": env!("CARGO_PKG_VERSION"), "description": "Agents operate a site through /tools; people decide through /api and the Studio."},
        "servers": [{"url": app.origins.public}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An agent's API key"},
                "session": {"type": "apiKey", "in": "cookie", "name": if app.origins.https { "__Host-cloudhal" } else { "cloudhal" }},
            },
            "schemas": {"Error": error_schema()},
        },
    }))
}

fn operation(id: &str, summary: &str, security: &[&str], result: Value) -> Value {
    let security: Vec<Value> = security.iter().map(|name| json!({*name: []})).collect();
    json!({
        "operationId": id,
        "summary": summary,
        "security": security,
        "responses": {
            "200": {"description": "Done", "content": {"application/json": {"schema": result}}},
            "default": {"description": "A typed refusal", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
        },
    })
}

fn call(tool: &Tool) -> Value {
    let ok = json!({"type": "object", "properties": {"status": {"const": "ok"}, "data": tool.spec.output_schema, "replayed": {"type": "boolean"}}});
    let mut operation = operation(&tool.spec.mcp_name(), tool.spec.title, &["key"], ok);
    let body = json!({
        "type": "object",
        "properties": {"arguments": tool.schema_for_agents(false), "approvalId": {"type": "string"}, "reason": {"type": "string"}},
        "additionalProperties": false,
    });
    operation["description"] = tool.spec.description.into();
    operation["requestBody"] =
        json!({"required": true, "content": {"application/json": {"schema": body}}});
    if tool.run.gatable().is_some() {
        operation["responses"]["202"] =
            json!({"description": "Waits for a person; nothing has run"});
    }
    operation
}

fn people() -> Map<String, Value> {
    let record = json!({"type": "object"});
    let list = json!({"type": "object", "properties": {"items": {"type": "array", "items": record}, "nextCursor": {"type": ["string", "null"]}}});
    let parameter = |name: &str, place: &str| json!({"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}});
    let site = || parameter("site", "path");
    let of_one = || json!([site(), parameter("id", "path")]);
    let decide = |id: &str, summary: &str| {
        let mut operation = operation(id, summary, &["session"], json!({"type": "object"}));
        let body = json!({"type": "object", "required": ["seenDigest"], "properties": {"seenDigest": {"type": "string"}, "reason": {"type": "string", "maxLength": 500}}});
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body}}});
        json!({"parameters": of_one(), "post": operation})
    };
    let mut paths = Map::new();
    paths.insert(
        "/api/sites".into(),
        json!({"get": operation("listSites", "Sites you may see", &["session"], list.clone())}),
    );
    paths.insert(
        "/api/sites/{site}/approvals".into(),
        json!({"parameters": [site(), parameter("status", "query"), parameter("cursor", "query"), parameter("limit", "query")], "get": operation("listApprovals", "Approvals of a site", &["session"], list)}),
    );
    paths.insert("/api/sites/{site}/approvals/{id}".into(), json!({"parameters": of_one(), "get": operation("getApproval", "One approval with its card", &["session"], json!({"type": "object"}))}));
    paths.insert(
        "/api/sites/{site}/approvals/{id}/approve".into(),
        decide("approve", "Approve, once, what was seen"),
    );
    paths.insert(
        "/api/sites/{site}/approvals/{id}/deny".into(),
        decide("deny", "Deny, once, what was seen"),
    );
    let put = |id: &str, summary: &str, body: Value| {
        let mut operation = operation(id, summary, &["session"], json!({"type": "object"}));
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body}}});
        operation
    };
    let rule = json!({"type": "object", "additionalProperties": false, "properties": {
        "approvers": {"type": "integer", "minimum": 1, "maximum": policy::APPROVERS_MAX, "default": 1},
        "groups": {"type": "array", "items": {"type": "string"}, "maxItems": policy::GROUPS_MAX},
        "requireDistinctApprover": {"type": "boolean", "default": false},
        "lifetimeSeconds": {"type": ["integer", "null"], "minimum": policy::LIFETIME_MIN.as_secs(), "maximum": policy::LIFETIME_MAX.as_secs()},
        "studioOnly": {"type": "boolean", "default": false},
        "denialCoolDownSeconds": {"type": "integer", "minimum": 0, "maximum": policy::COOL_DOWN_MAX.as_secs(), "default": 0},
    }});
    let rules = json!({"type": "object", "additionalProperties": false, "properties": {"default": rule, "tools": {"type": "object", "additionalProperties": rule}, "extraGatedTools": {"type": "array", "items": {"type": "string"}, "uniqueItems": true}}});
    let tag = json!({"ETag": {"description": "Names this policy, for If-Match", "schema": {"type": "string"}}});
    let mut get = operation(
        "getPolicy",
        "What approvals of a site take",
        &["session"],
        rules.clone(),
    );
    let mut set = put("setPolicy", "Set what approvals of a site take", rules);
    get["responses"]["200"]["headers"] = tag.clone();
    set["responses"]["200"]["headers"] = tag;
    set["parameters"] = json!([{"name": "If-Match", "in": "header", "required": false, "schema": {"type": "string"}, "description": "ETag of the policy as it was read: where another one is set by now the answer is `conflict` and nothing changes. Without it the policy is set over whatever there is."}]);
    paths.insert(
        "/api/sites/{site}/policy".into(),
        json!({"parameters": [site()], "get": get, "put": set}),
    );
    paths.extend(webhooks(&site()));
    paths.insert("/api/events".into(), json!({"get": operation("events", "Live hints as server-sent events", &["session"], json!({"type": "string"}))}));
    paths
}

/// The routes of a site's webhooks.
fn webhooks(site: &Value) -> Map<String, Value> {
    let text = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let of_one = json!([site, text("webhook")]);
    let webhook = json!({"type": "object", "properties": {
        "id": {"type": "string"}, "url": {"type": "string"}, "createdAt": {"type": "string", "format": "date-time"},
        "oldSecretUntil": {"type": "string", "format": "date-time"},
    }});
    let mut with_secret = webhook.clone();
    with_secret["properties"]["secret"] =
        json!({"type": "string", "description": "Shown this once", "pattern": "^whsec_"});
    let delivery = json!({"type": "object", "properties": {
        "id": {"type": "string"}, "event": {"enum": EVENTS.iter().chain([&PING]).collect::<Vec<_>>()}, "approval": {"type": "string"},
        "status": {"enum": ["waiting", "delivered", "gave_up"]}, "tries": {"type": "integer"}, "lastError": {"type": "string"},
        "createdAt": {"type": "string", "format": "date-time"}, "nextTryAt": {"type": "string", "format": "date-time"}, "finishedAt": {"type": "string", "format": "date-time"},
    }});
    let list = |items: &Value| json!({"type": "object", "properties": {"items": {"type": "array", "items": items}, "nextCursor": {"type": "null"}}});
    let mut webhooks = list(&webhook);
    webhooks["properties"]["enabled"] =
        json!({"type": "boolean", "description": "Whether the operator lets webhooks go out"});
    let mut create = operation(
        "createWebhook",
        "Have a site's events told to an address",
        &["session"],
        with_secret.clone(),
    );
    create["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": {"type": "object", "additionalProperties": false, "required": ["url"], "properties": {"url": {"type": "string", "format": "uri"}}}}}});
    let one = |id: &str, summary: &str, result: Value| operation(id, summary, &["session"], result);
    let base = "/api/sites/{site}/webhooks";
    let paths = [
        (
            base.to_owned(),
            json!({"parameters": [site], "get": one("listWebhooks", "Where a site's events are told", webhooks), "post": create}),
        ),
        (
            format!("{base}/{{webhook}}"),
            json!({"parameters": of_one, "delete": one("deleteWebhook", "Stop telling an address", json!({"type": "object"}))}),
        ),
        (
            format!("{base}/{{webhook}}/secret"),
            json!({"parameters": of_one, "post": one("rotateWebhookSecret", "A new secret; the old one signs as well for a day", with_secret)}),
        ),
        (
            format!("{base}/{{webhook}}/ping"),
            json!({"parameters": of_one, "post": one("pingWebhook", "Send a test", json!({"type": "object", "properties": {"delivery": {"type": "string"}}}))}),
        ),
        (
            format!("{base}/{{webhook}}/deliveries"),
            json!({"parameters": of_one, "get": one("listDeliveries", "How the latest events fared", list(&delivery))}),
        ),
        (
            format!("{base}/{{webhook}}/deliveries/{{delivery}}/redeliver"),
            json!({"parameters": [site, text("webhook"), text("delivery")], "post": one("redeliver", "Tell an event once more, under the same id", delivery)}),
        ),
    ];
    paths.into_iter().collect()
}

/// Who there is and who may what: members, people, agents, keys.
fn access() -> Map<String, Value> {
    let plain =
        |id: &str, summary: &str| operation(id, summary, &["session"], json!({"type": "object"}));
    let with = |id: &str, summary: &str, required: &[&str], properties: Value| {
        let mut operation = plain(id, summary);
        let body = json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties});
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body}}});
        operation
    };
    let at = |names: &[&str]| -> Value {
        let one = |name: &&str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
        names.iter().map(one).collect()
    };
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let yes_no = || json!({"type": "boolean"});
    let moment = || json!({"type": ["string", "null"], "format": "date-time"});
    let roles = json!({"enum": ["viewer", "editor", "approver", "owner"]});
    let role_or_none = json!({"enum": ["viewer", "editor", "approver", "owner", null]});
    let paths = json!({
        "/api/sites/{site}/members": {
            "parameters": at(&["site"]),
            "get": plain("listMembers", "Who belongs to a site, and the rules that nobody could satisfy any more"),
            "post": with("addMember", "Add somebody with an account by their e-mail address", &["email", "role"], json!({"email": text(), "role": roles, "groups": texts()})),
        },
        "/api/sites/{site}/members/{person}": {
            "parameters": at(&["site", "person"]),
            "put": with("setMember", "Set or end a membership", &["role"], json!({"role": role_or_none, "groups": texts()})),
        },
        "/api/sites/{site}/agents": {
            "parameters": at(&["site"]),
            "get": plain("listSiteAgents", "Agents that work on a site"),
        },
        "/api/sites/{site}/agents/{agent}": {
            "parameters": at(&["site", "agent"]),
            "delete": plain("takeAgentOff", "Take an agent off a site"),
        },
        "/api/people": {
            "get": plain("listPeople", "Everybody with an account; for owners of the workspace"),
            "post": with("addPerson", "Add an account; answers with a link that signs in once", &["email", "name"], json!({"email": text(), "name": text(), "workspaceOwner": yes_no()})),
        },
        "/api/people/{person}": {
            "parameters": at(&["person"]),
            "patch": with("changePerson", "Rename, make or unmake an owner of the workspace, disable or enable", &[], json!({"name": text(), "workspaceOwner": yes_no(), "disabled": yes_no()})),
        },
        "/api/people/{person}/sign-in-link": {
            "parameters": at(&["person"]),
            "post": plain("newSignInLink", "A further link that signs in once; the one before ends"),
        },
        "/api/agents": {
            "get": plain("listAgents", "Your agents; every agent for owners of the workspace"),
            "post": with("addAgent", "Add an agent; answers with its first key, once", &["name", "sites"], json!({"name": text(), "sites": texts(), "tools": texts(), "owner": text(), "expiresAt": moment()})),
        },
        "/api/agents/{agent}": {
            "parameters": at(&["agent"]),
            "get": plain("getAgent", "One agent with its keys"),
            "patch": with("changeAgent", "Change its sites and tools, disable or enable it; no tools means every tool", &[], json!({"sites": texts(), "tools": texts(), "disabled": yes_no()})),
        },
        "/api/agents/{agent}/keys": {
            "parameters": at(&["agent"]),
            "get": plain("listKeys", "The keys of an agent, without their secrets"),
            "post": with("newKey", "A further key, told once", &[], json!({"expiresAt": moment()})),
        },
        "/api/agents/{agent}/keys/{key}": {
            "parameters": at(&["agent", "key"]),
            "delete": plain("revokeKey", "End a key at once"),
        },
        "/api/personal-keys": {
            "get": plain("listPersonalKeys", "Keys of your own MCP clients that are good now"),
            "post": with("makePersonalKey", "A key for your own MCP client, told once; it ends with this session", &["name"], json!({"name": text()})),
        },
        "/api/personal-keys/{key}": {
            "parameters": at(&["key"]),
            "delete": plain("endPersonalKey", "End a key of your own client at once"),
        },
    });
    match paths {
        Value::Object(paths) => paths,
        _ => Map::new(),
    }
}

fn error_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "status": {"const": "error"},
            "error": {
                "type": "object",
                "properties": {"code": {"enum": codes}, "message": {"type": "string"}, "retryable": {"type": "boolean"}, "details": {"type": "object"}},
            },
        },
    })
}
