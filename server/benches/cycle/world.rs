//! What is measured: a database with sites and agents, and the real binary on it.

use crate::http::{Client, Http};
use cloudhal_domain::id::SiteId;
use cloudhal_engine::{
    Engine, Settings, agents,
    authority::Author,
    gate::CallRequest,
    people::{self, NewPerson},
    secret::Secret,
    sites,
};
use serde_json::{Map, Value, json};
use std::{
    io::Write as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tokio::net::TcpStream;

pub const CLIENTS_MAX: usize = 64;

/// The binary under measurement: this build's, or another one to compare with.
pub fn binary() -> String {
    std::env::var("CLOUDHAL_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cloudhal").to_owned())
}

pub fn free_addr() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

/// A PostgreSQL, or a SQLite file among the data.
pub fn database(data: &Path, postgres: Option<&str>) -> String {
    let file = || format!("sqlite://{}", data.join("cloudhal.db").display());
    postgres.map_or_else(file, str::to_owned)
}

pub async fn open(data: &Path, database: &str, addr: &str) -> Engine {
    let secret_file = data.join("secret");
    let secret = match std::fs::read_to_string(&secret_file) {
        Ok(text) => Secret::from_text(&text).expect("our own secret"),
        Err(_) => {
            let secret = Secret::random();
            std::fs::write(&secret_file, secret.to_text()).expect("the secret is kept");
            secret
        }
    };
    Engine::open(
        database,
        Settings::for_url(format!("http://{addr}")),
        secret,
    )
    .await
    .expect("a database")
}

/// One site of ten pages and one agent for each client; one site's lock and the pending caps are not what is measured.
pub async fn fill(data: &Path, database: &str, addr: &str) -> (Vec<Client>, String) {
    let engine = open(data, database, addr).await;
    let new = NewPerson {
        email: "ada@example.com".into(),
        name: "Ada".into(),
        workspace_owner: true,
        password: None,
    };
    let ada = people::add(&engine, new).await.expect("a person");
    let mut clients = Vec::new();
    for at in 0..CLIENTS_MAX {
        let site = site_of(&engine, &format!("site-{at}"), 10).await;
        let (_, key) = agents::add(
            &engine,
            &ada,
            agents::NewAgent {
                name: format!("bot-{at}"),
                sites: vec![site.clone()],
                tools: vec![],
                expires_at: None,
            },
        )
        .await
        .expect("an agent");
        clients.push(Client {
            site: site.as_str().to_owned(),
            key,
        });
    }
    let link = people::sign_in_link(&engine, &ada).await.expect("a link");
    engine.store().close().await;
    (clients, link)
}

pub async fn site_of(engine: &Engine, slug: &str, pages: usize) -> SiteId {
    let site = sites::create_site(engine, slug, slug, None)
        .await
        .expect("a site");
    let page = |at: usize| sites::NewNode {
        path: vec![format!("page-{at}")],
        kind: "page".into(),
        title: format!("Page {at}"),
        position: at as i64,
        body: format!("Text of page {at}."),
        fields: Map::new(),
    };
    sites::fill(
        engine,
        &site,
        Author::system(),
        (0..pages).map(page).collect(),
    )
    .await
    .expect("pages");
    site
}

pub async fn first_node(
    engine: &Engine,
    caller: &cloudhal_engine::callers::Caller,
    site: &SiteId,
) -> String {
    let answer = engine
        .call(
            caller,
            request("node-list", json!({"site": site, "limit": 1})),
        )
        .await;
    json!(answer)["data"]["items"][0]["id"]
        .as_str()
        .expect("a node")
        .to_owned()
}

pub fn request(tool: &str, arguments: Value) -> CallRequest {
    CallRequest {
        tool: tool.into(),
        arguments,
        approval: None,
        reason: None,
    }
}

/// A server that ends with its owner, also when a measurement fails.
pub struct Server(Option<Child>);

impl Server {
    /// Nothing runs.
    pub fn none() -> Self {
        Self(None)
    }

    pub fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn serve(data: &Path, database: &str, addr: &str) -> Server {
    let child = Command::new(binary())
        .args(["serve", "--addr", addr])
        .env("CLOUDHAL_DATA_DIR", data)
        .env("CLOUDHAL_LOG", "warn")
        .env("DATABASE_URL", database)
        .stdout(Stdio::null())
        .spawn()
        .expect("the server starts");
    Server(Some(child))
}

pub async fn ready(addr: &str) {
    for _ in 0..2_000 {
        if TcpStream::connect(addr).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the server did not listen within 10 s");
}

pub async fn sign_in(addr: &str, link: &str) -> String {
    let path = link.split_once(addr).expect("our own link").1;
    let headers = format!(
        "Origin: http://{addr}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    );
    let (head, _) = Http::connect(addr)
        .await
        .raw("POST", path, &headers, "")
        .await;
    let cookie = head
        .lines()
        .find(|l| l.to_ascii_lowercase().starts_with("set-cookie:"))
        .expect("a session");
    cookie["set-cookie:".len()..]
        .trim()
        .split(';')
        .next()
        .expect("its value")
        .to_owned()
}

pub fn answers(addr: &str) -> bool {
    use std::io::Read as _;
    let Ok(mut stream) = std::net::TcpStream::connect(addr) else {
        return false;
    };
    if stream
        .write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .is_err()
    {
        return false;
    }
    let mut head = [0u8; "HTTP/1.1 200".len()];
    stream.read_exact(&mut head).is_ok() && head.ends_with(b"200")
}
