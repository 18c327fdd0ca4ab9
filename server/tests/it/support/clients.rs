//! Who comes to the doors: an agent with its key, a person's browser, somebody without either.

use super::{Code, TestServer, Value, json};
use reqwest::{Client, Method, RequestBuilder, header::HeaderMap, redirect::Policy};
use std::net::{IpAddr, Ipv4Addr};

/// What came back.
#[derive(Clone, Debug)]
pub struct Seen {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// `null` where the body is not JSON.
    pub body: Value,
}

impl Seen {
    pub async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self {
            status,
            headers,
            text,
            body,
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Where a 303 sends the browser.
    #[track_caller]
    pub fn location(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.text);
        self.header("location")
    }

    /// The code of a refusal, or the status of another answer.
    pub fn code(&self) -> &str {
        let code = &self.body["error"]["code"];
        code.as_str()
            .or(self.body["status"].as_str())
            .unwrap_or_default()
    }

    pub fn details(&self) -> &Value {
        &self.body["error"]["details"]
    }

    #[track_caller]
    pub fn data(self) -> Value {
        assert_eq!((self.status, self.code()), (200, "ok"), "{}", self.text);
        self.body["data"].clone()
    }

    /// Everything but the date: two answers that must not be told apart are equal in this.
    pub fn alike(&self) -> (u16, Vec<(String, String)>, &str) {
        let named = self.headers.iter().filter(|(name, _)| *name != "date");
        let mut headers: Vec<(String, String)> = named
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        headers.sort();
        (self.status, headers, &self.text)
    }
}

/// A typed refusal, whole: status and code belong together, the words say something, nothing of the machinery shows.
#[track_caller]
pub fn assert_refused(seen: &Seen, code: Code, about: &str) {
    let error = &seen.body["error"];
    let got = (
        seen.status,
        seen.body["status"].as_str(),
        error["code"].as_str(),
    );
    let expect = (code.status(), Some("error"), Some(code.as_str()));
    assert_eq!(got, expect, "{about}: {}", seen.text);
    assert!(
        error["message"].as_str().is_some_and(|m| m.len() > 10),
        "{about}: {}",
        seen.text
    );
    assert_eq!(error["retryable"], code.retryable(), "{about}");
    assert!(error["details"].is_object(), "{about}: {}", seen.text);
}

fn client(cookies: bool, from: Ipv4Addr) -> Client {
    Client::builder()
        .cookie_store(cookies)
        .redirect(Policy::none())
        .local_address(IpAddr::V4(from))
        .no_proxy()
        .build()
        .unwrap()
}

/// Holds a key.
#[derive(Clone)]
pub struct AgentClient {
    http: Client,
    base: String,
    host: String,
    pub key: String,
}

impl AgentClient {
    pub fn new(server: &TestServer, key: String) -> Self {
        Self {
            http: client(false, Ipv4Addr::LOCALHOST),
            base: server.url(""),
            host: server.host().to_owned(),
            key,
        }
    }

    /// A request of this agent's, to be sent by hand.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        request.header("host", &self.host).bearer_auth(&self.key)
    }

    pub async fn get(&self, path: &str) -> Seen {
        Seen::of(self.request(Method::GET, path)).await
    }

    /// A call with whatever body.
    pub async fn send(&self, tool: &str, body: impl Into<reqwest::Body>) -> Seen {
        let request = self.request(Method::POST, &format!("/tools/{tool}"));
        let request = request.header("content-type", "application/json");
        Seen::of(request.body(body)).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Seen {
        let body = json!({"arguments": arguments});
        self.send(tool, body.to_string()).await
    }

    pub async fn call_with(&self, approval: &str, tool: &str, arguments: Value) -> Seen {
        let body = json!({"arguments": arguments, "approvalId": approval});
        self.send(tool, body.to_string()).await
    }

    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.data()
    }

    /// Files a request and gives its id.
    pub async fn ask(&self, tool: &str, arguments: Value) -> String {
        let seen = self.call(tool, arguments).await;
        let got = (seen.status, seen.code());
        assert_eq!(got, (202, "approval_pending"), "{}", seen.text);
        seen.body["approvalId"].as_str().unwrap().to_owned()
    }

    /// The id of the only node with this slug.
    pub async fn node(&self, site: &super::SiteId, slug: &str) -> String {
        let list = self.ok("node-list", json!({"site": site})).await;
        let items = list["items"].as_array().unwrap();
        let node = items.iter().find(|node| node["slug"] == slug);
        node.unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub async fn edit(&self, site: &super::SiteId, slug: &str, body: &str) -> Value {
        let node = self.node(site, slug).await;
        let arguments = json!({"site": site, "node": node, "body": body});
        self.ok("node-update", arguments).await
    }

    /// One JSON-RPC message to the MCP door, in the 2025-11-25 revision.
    pub async fn mcp(&self, body: impl Into<reqwest::Body>) -> Seen {
        let request = self.request(Method::POST, "/mcp");
        let request = request
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        Seen::of(request.body(body)).await
    }

    pub async fn mcp_call(&self, tool: &str, arguments: Value) -> Seen {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        });
        self.mcp(message.to_string()).await
    }
}

/// A browser with its cookies, on pages of ours. It follows no redirect by itself.
#[derive(Clone)]
pub struct PersonClient {
    http: Client,
    base: String,
    host: String,
    pub origin: String,
    cookie: std::sync::Arc<std::sync::Mutex<String>>,
}

impl PersonClient {
    pub fn new(server: &TestServer) -> Self {
        Self::from(server, Ipv4Addr::LOCALHOST)
    }

    /// At another loopback address: password tries are counted by address.
    pub fn from(server: &TestServer, address: Ipv4Addr) -> Self {
        Self {
            http: client(true, address),
            base: server.url(""),
            host: server.host().to_owned(),
            origin: server.origin.clone(),
            cookie: std::sync::Arc::default(),
        }
    }

    /// The last session cookie that this browser was given, `name=value`.
    pub fn cookie(&self) -> String {
        self.cookie.lock().unwrap().clone()
    }

    /// A request with the cookies and nothing else of a browser, to be sent by hand.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        request.header("host", &self.host)
    }

    /// As a page of ours sends it.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.bare(method.clone(), path);
        let request = request.header("sec-fetch-site", "same-origin");
        match method {
            Method::GET | Method::HEAD => request,
            _ => request.header("origin", &self.origin),
        }
    }

    async fn seen(&self, request: RequestBuilder) -> Seen {
        let seen = Seen::of(request).await;
        for set in seen.headers.get_all("set-cookie") {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            if pair.contains("cloudhal=") {
                *self.cookie.lock().unwrap() = pair.to_owned();
            }
        }
        seen
    }

    pub async fn get(&self, path: &str) -> Seen {
        self.seen(self.request(Method::GET, path)).await
    }

    pub async fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
        self.seen(self.request(Method::POST, path).form(fields))
            .await
    }

    pub async fn post_json(&self, path: &str, body: Value) -> Seen {
        self.seen(self.request(Method::POST, path).json(&body))
            .await
    }

    pub async fn send_json(&self, method: Method, path: &str, body: Value) -> Seen {
        self.seen(self.request(method, path).json(&body)).await
    }

    /// A change through the API that has to be taken.
    pub async fn ok(&self, method: Method, path: &str, body: Value) -> Value {
        let seen = self.send_json(method.clone(), path, body).await;
        assert_eq!(seen.status, 200, "{method} {path}: {}", seen.text);
        seen.body
    }

    /// The record, as the API gives it.
    pub async fn record(&self, site: &super::SiteId, id: &str) -> Value {
        let seen = self.get(&format!("/api/sites/{site}/approvals/{id}")).await;
        assert_eq!(seen.status, 200, "{}", seen.text);
        seen.body
    }

    /// Looks, then decides what was seen.
    pub async fn decide(&self, site: &super::SiteId, id: &str, verdict: &str) -> Seen {
        let seen = self.record(site, id).await["seenDigest"].clone();
        let path = format!("/api/sites/{site}/approvals/{id}/{verdict}");
        self.post_json(&path, json!({"seenDigest": seen})).await
    }

    pub async fn approve(&self, site: &super::SiteId, id: &str) {
        let seen = self.decide(site, id, "approve").await;
        assert_eq!(seen.status, 200, "{}", seen.text);
    }

    pub async fn deny(&self, site: &super::SiteId, id: &str) {
        let seen = self.decide(site, id, "deny").await;
        assert_eq!(seen.status, 200, "{}", seen.text);
    }

    /// The policy that a settings page shows, as its form carries it.
    #[track_caller]
    pub fn policy_seen(page: &Seen) -> String {
        Self::field(page, "seen").replace("&quot;", "\"")
    }

    /// The value of a hidden or pressed field of a page, as its form would send it.
    #[track_caller]
    pub fn field(page: &Seen, name: &str) -> String {
        let tag = format!("name=\"{name}\"");
        let at = page.text.find(&tag).unwrap_or_else(|| {
            panic!("no field {name} in {}", page.text);
        });
        let start = page.text[..at].rfind('<').unwrap();
        let end = at + page.text[at..].find('>').unwrap();
        let tag = &page.text[start..end];
        let value = tag.split_once("value=\"").unwrap().1;
        value.split_once('"').unwrap().0.to_owned()
    }
}

/// Neither key nor cookie.
pub struct Anonymous {
    http: Client,
    base: String,
    host: String,
}

impl Anonymous {
    pub fn new(server: &TestServer) -> Self {
        Self {
            http: client(false, Ipv4Addr::LOCALHOST),
            base: server.url(""),
            host: server.host().to_owned(),
        }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        request.header("host", &self.host)
    }

    pub async fn get(&self, path: &str) -> Seen {
        Seen::of(self.request(Method::GET, path)).await
    }
}
