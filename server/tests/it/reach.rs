//! What can be reached, as a file that review sees: `docs/reach.json`. A tool, a schema, a route, a server function or a code
//! that comes or goes shows there as a line. Write it anew with `CLOUDHAL_BLESS=1 cargo test -p cloudhal-server --test it`.

use crate::support::*;
use sha2::{Digest as _, Sha256};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// A route as the router has it: its path, the methods it answers to, and whether it is a people's one.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    pub path: String,
    pub methods: BTreeSet<&'static str>,
    pub for_people: bool,
}

const METHODS: [&str; 9] = [
    "get", "post", "put", "patch", "delete", "head", "options", "trace", "any",
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every `.route(…)` of the server. axum cannot list a router, and a list kept by hand would forget.
pub fn routes() -> Vec<Route> {
    let mut sources = Vec::new();
    collect(&root().join("server/src"), &mut sources);
    let text: Vec<String> = sources.iter().map(|path| product(&read(path))).collect();
    let all = text.concat();
    let mut routes = Vec::new();
    for source in &text {
        for (at, call) in calls(source, &[".route(", ".route_service("]) {
            let (path, handler) = call.split_once(',').unwrap();
            let methods = METHODS
                .into_iter()
                .filter(|method| names_method(handler, method));
            let methods: BTreeSet<&str> = match ["get(", "post(", "put(", "patch(", "delete("]
                .iter()
                .any(|one| call.contains(one))
            {
                true => methods.collect(),
                false => ["any"].into(),
            };
            let for_people = source[..at].rfind("fn for_people").is_some_and(|start| {
                // The last function that began before this call.
                !source[start + 1..at].contains("\nfn ")
                    && !source[start + 1..at].contains("\nasync fn ")
            });
            let path = literal(path.trim(), &all);
            routes.push(Route {
                path,
                methods,
                for_people,
            });
        }
    }
    routes.sort_by(|a, b| a.path.cmp(&b.path));
    routes
}

/// A source without its unit tests and comments.
fn product(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => collect(&path, into),
            false if path.ends_with("tests.rs") => {}
            false => into.push(path),
        }
    }
}

/// Arguments of each call of one of these, by balanced parentheses.
fn calls<'s>(source: &'s str, openings: &[&str]) -> Vec<(usize, &'s str)> {
    let mut found = Vec::new();
    for opening in openings {
        for (at, _) in source.match_indices(opening) {
            let start = at + opening.len();
            let mut depth = 1;
            let end = source[start..]
                .find(|c| {
                    match c {
                        '(' => depth += 1,
                        ')' => depth -= 1,
                        _ => {}
                    }
                    depth == 0
                })
                .unwrap();
            found.push((at, &source[start..start + end]));
        }
    }
    found
}

fn names_method(handler: &str, method: &str) -> bool {
    handler
        .match_indices(&format!("{method}("))
        .any(|(at, _)| !handler[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// A path as written, or the value of the constant that it is.
fn literal(path: &str, sources: &str) -> String {
    if let Some(text) = path.strip_prefix('"') {
        return text.trim_end_matches('"').to_owned();
    }
    let name = path.rsplit("::").next().unwrap();
    let declared = format!("const {name}: &str = \"");
    let (_, rest) = sources
        .split_once(&declared)
        .unwrap_or_else(|| panic!("no constant {name}"));
    rest.split('"').next().unwrap().to_owned()
}

pub fn server_functions() -> BTreeSet<String> {
    leptos::server_fn::axum::server_fn_paths()
        .map(|(path, method)| format!("{method} {path}"))
        .collect()
}

fn digest(value: &Value) -> String {
    let bytes = Sha256::digest(value.to_string().as_bytes());
    format!("sha256:{}", data_encoding::HEXLOWER.encode(&bytes))
}

async fn tools(server: &TestServer) -> BTreeMap<String, Value> {
    let listed = server.as_agent("bot").await.get("/tools").await.body;
    let tools = listed["tools"].as_array().unwrap().iter().map(|tool| {
        let seen = json!({
            "effect": tool["effect"],
            "version": tool["version"],
            "inputSchema": digest(&tool["inputSchema"]),
            "outputSchema": digest(&tool["outputSchema"]),
            "annotations": tool["annotations"],
        });
        (tool["id"].as_str().unwrap().to_owned(), seen)
    });
    tools.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_reached_is_what_review_saw() {
    let server = TestServer::start().await;
    let routes: Vec<String> = routes()
        .into_iter()
        .map(|route| {
            let methods: Vec<String> = route.methods.iter().map(|m| m.to_uppercase()).collect();
            let whose = if route.for_people { " (people)" } else { "" };
            format!("{} {}{whose}", methods.join(","), route.path)
        })
        .collect();
    let codes: BTreeMap<&str, u16> = Code::ALL.iter().map(|c| (c.as_str(), c.status())).collect();
    let reach = json!({
        "routes": routes,
        "serverFunctions": server_functions(),
        "tools": tools(&server).await,
        "codes": codes,
    });
    let text = format!("{reach:#}\n");
    let file = root().join("docs/reach.json");
    if std::env::var_os("CLOUDHAL_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let kept = read(&file);
    let differs = text
        .lines()
        .filter(|line| !kept.lines().any(|known| known == *line))
        .map(|line| format!("+ {line}"))
        .chain(
            kept.lines()
                .filter(|known| !text.lines().any(|line| line == *known))
                .map(|line| format!("- {line}")),
        );
    let differs: Vec<String> = differs.collect();
    assert!(
        kept == text,
        "docs/reach.json is not what can be reached; if that is meant, bless it:\n{}",
        differs.join("\n")
    );
    server.done().await;
}

/// The scan itself: it knows the routes that a reader of the router knows.
#[test]
fn the_scan_finds_what_is_there() {
    let routes = routes();
    let find = |path: &str| routes.iter().find(|route| route.path == path).unwrap();
    assert_eq!(find("/mcp").methods, ["any"].into());
    assert_eq!(find("/tools/{tool}").methods, ["post"].into());
    assert!(!find("/tools").for_people);
    let deciding = find("/approvals/{id}");
    assert!(deciding.for_people);
    assert_eq!(deciding.methods, ["get", "post"].into());
    assert!(find("/_fn/{*name}").for_people);
    assert_eq!(find("/api/agents/{agent}").methods, ["get", "patch"].into());
    assert_eq!(find("/api/people/{person}").methods, ["patch"].into());
    assert!(find("/api/people").for_people);
    assert_eq!(server_functions().len(), 12);
}
