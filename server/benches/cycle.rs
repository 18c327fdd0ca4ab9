//! What the product costs, measured from outside: the real binary on loopback, a small keep-alive client beside it on the
//! same cores. Figures are printed, never asserted; every block stands between two probes of the disk, and a run whose probe
//! is slow says so.
//!
//! `cargo xtask bench`, or `cargo bench -p cloudhal-server --bench cycle -- [cycles] [reads] [wake] [edit] [footprint]`

use cloudhal_domain::{id::SiteId, tool::Surface};
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
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const CLIENTS_MAX: usize = 64;

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    let bench = Bench::start().await;
    println!(
        "two cores or what there is: {} · server and driver share them",
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    if runs("cycles") {
        for clients in [1, 16, CLIENTS_MAX] {
            bench.cycles(clients, 400 * clients.min(8)).await;
        }
    }
    if runs("wake") {
        bench.wake(200).await;
    }
    if runs("reads") {
        bench.reads(32, 8_000).await;
    }
    if runs("footprint") {
        bench.footprint();
    }
    let data = bench.stop();
    if runs("footprint") {
        cold_start(data.path());
    }
    if runs("edit") {
        edits().await;
    }
}

/// One client: a site, an agent's key, and nothing shared with the others.
#[derive(Clone)]
struct Client {
    site: String,
    key: String,
}

struct Bench {
    server: Server,
    addr: String,
    clients: Vec<Client>,
    cookie: String,
    data: tempfile::TempDir,
}

impl Bench {
    async fn start() -> Self {
        let data = tempfile::tempdir().expect("a temporary folder");
        let addr = free_addr();
        let (clients, link) = fill(data.path(), &addr).await;
        let server = serve(data.path(), &addr);
        ready(&addr).await;
        let cookie = sign_in(&addr, &link).await;
        Self {
            server,
            addr,
            clients,
            cookie,
            data,
        }
    }

    /// Ends the server; its data stay for the next measurement.
    fn stop(self) -> tempfile::TempDir {
        self.data
    }

    /// Request, approve, redeem, each durable, with one edit's worth of state between two cycles made by the publish itself.
    async fn cycles(&self, clients: usize, total: usize) {
        let before = probe();
        let left = Arc::new(AtomicUsize::new(total));
        let start = Instant::now();
        let mut workers = Vec::new();
        for client in self.clients.iter().take(clients) {
            let client = client.clone();
            let (addr, cookie, left) = (self.addr.clone(), self.cookie.clone(), left.clone());
            workers.push(tokio::spawn(async move {
                let mut http = Http::connect(&addr).await;
                let mut took = Vec::new();
                while left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                    .is_ok()
                {
                    let begun = Instant::now();
                    cycle(&mut http, &addr, &client, &cookie).await;
                    took.push(begun.elapsed());
                }
                took
            }));
        }
        let mut took = Vec::new();
        for worker in workers {
            took.extend(worker.await.expect("a client"));
        }
        let rate = took.len() as f64 / start.elapsed().as_secs_f64();
        println!(
            "cycles C={clients:<3} {rate:>8.0}/s   {}   {}",
            spread(&mut took),
            probes(before, probe())
        );
    }

    /// From the decision's request to the end of the long poll that waits for it.
    async fn wake(&self, rounds: usize) {
        let before = probe();
        let client = &self.clients[0];
        let (mut agent, mut waiter, mut person) = (
            Http::connect(&self.addr).await,
            Http::connect(&self.addr).await,
            Http::connect(&self.addr).await,
        );
        let mut took = Vec::new();
        for _ in 0..rounds {
            let asked = agent
                .tool(client, "publish", json!({"site": client.site}), None)
                .await;
            let id = asked["approvalId"]
                .as_str()
                .expect("a pending answer")
                .to_owned();
            let seen = person.record(&self.addr, client, &self.cookie, &id).await;
            let wait = json!({"approvalId": id, "waitSeconds": 30});
            let waiting = waiter.tool(client, "approvals-get", wait, None);
            let deciding = async {
                // The long poll is on its way first; how long it takes to arrive is not what is measured.
                tokio::time::sleep(Duration::from_millis(5)).await;
                let begun = Instant::now();
                person
                    .approve(&self.addr, client, &self.cookie, &id, &seen)
                    .await;
                begun
            };
            let ((record, end), begun) =
                tokio::join!(async { (waiting.await, Instant::now()) }, deciding);
            assert_eq!(record["data"]["status"], "approved");
            took.push(end.duration_since(begun));
            agent
                .tool(client, "publish", json!({"site": client.site}), Some(&id))
                .await;
        }
        println!(
            "decision to woken agent      {}   {}",
            spread(&mut took),
            probes(before, probe())
        );
    }

    async fn reads(&self, clients: usize, total: usize) {
        for door in ["/tools", "/mcp"] {
            let left = Arc::new(AtomicUsize::new(total));
            let start = Instant::now();
            let mut workers = Vec::new();
            for client in self.clients.iter().take(clients).cloned() {
                let (addr, left) = (self.addr.clone(), left.clone());
                workers.push(tokio::spawn(async move {
                    let mut http = Http::connect(&addr).await;
                    let mut took = Vec::new();
                    while left
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                        .is_ok()
                    {
                        let begun = Instant::now();
                        let answer = match door {
                            "/tools" => {
                                http.tool(&client, "site-get", json!({"site": client.site}), None)
                                    .await
                            }
                            _ => {
                                http.mcp(&client, "site_get", json!({"site": client.site}))
                                    .await
                            }
                        };
                        assert_eq!(answer["status"], "ok", "{answer}");
                        took.push(begun.elapsed());
                    }
                    took
                }));
            }
            let mut took = Vec::new();
            for worker in workers {
                took.extend(worker.await.expect("a client"));
            }
            let rate = took.len() as f64 / start.elapsed().as_secs_f64();
            println!(
                "{door:<7} reads C={clients} {rate:>8.0}/s   {}",
                spread(&mut took)
            );
        }
    }

    fn footprint(&self) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.0.id()))
            .unwrap_or_default();
        let memory = |name: &str| {
            status
                .lines()
                .find_map(|l| l.strip_prefix(name))
                .map(str::trim)
                .unwrap_or("?")
                .to_owned()
        };
        println!(
            "resident memory after the above: {} (peak {})",
            memory("VmRSS:"),
            memory("VmHWM:")
        );
        let size = std::fs::metadata(binary()).map_or(0, |m| m.len());
        println!("binary: {:.1} MB", size as f64 / 1e6);
    }
}

async fn cycle(http: &mut Http, addr: &str, client: &Client, cookie: &str) {
    let asked = http
        .tool(client, "publish", json!({"site": client.site}), None)
        .await;
    let id = asked["approvalId"]
        .as_str()
        .unwrap_or_else(|| panic!("not pending: {asked}"))
        .to_owned();
    let seen = http.record(addr, client, cookie, &id).await;
    http.approve(addr, client, cookie, &id, &seen).await;
    let done = http
        .tool(client, "publish", json!({"site": client.site}), Some(&id))
        .await;
    assert_eq!(done["status"], "ok", "{done}");
}

/// A keep-alive HTTP/1.1 client that costs little beside the server.
struct Http {
    stream: TcpStream,
    addr: String,
    buffer: Vec<u8>,
}

impl Http {
    async fn connect(addr: &str) -> Self {
        let stream = TcpStream::connect(addr).await.expect("the server listens");
        stream.set_nodelay(true).expect("nodelay");
        Self {
            stream,
            addr: addr.to_owned(),
            buffer: Vec::new(),
        }
    }

    async fn tool(
        &mut self,
        client: &Client,
        tool: &str,
        arguments: Value,
        approval: Option<&str>,
    ) -> Value {
        let mut body = json!({"arguments": arguments});
        if let Some(id) = approval {
            body["approvalId"] = id.into();
        }
        self.send(
            "POST",
            &format!("/tools/{tool}"),
            &format!("Authorization: Bearer {}\r\n", client.key),
            &body.to_string(),
        )
        .await
    }

    async fn mcp(&mut self, client: &Client, tool: &str, arguments: Value) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}});
        let headers = format!(
            "Authorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n",
            client.key
        );
        self.send("POST", "/mcp", &headers, &body.to_string()).await["result"]["structuredContent"]
            .clone()
    }

    async fn record(&mut self, addr: &str, client: &Client, cookie: &str, id: &str) -> String {
        let headers = format!("Cookie: {cookie}\r\nOrigin: http://{addr}\r\n");
        let record = self
            .send(
                "GET",
                &format!("/api/sites/{}/approvals/{id}", client.site),
                &headers,
                "",
            )
            .await;
        record["seenDigest"].as_str().expect("a record").to_owned()
    }

    async fn approve(&mut self, addr: &str, client: &Client, cookie: &str, id: &str, seen: &str) {
        let headers =
            format!("Cookie: {cookie}\r\nOrigin: http://{addr}\r\nSec-Fetch-Site: same-origin\r\n");
        let record = self
            .send(
                "POST",
                &format!("/api/sites/{}/approvals/{id}/approve", client.site),
                &headers,
                &json!({"seenDigest": seen}).to_string(),
            )
            .await;
        assert_eq!(record["status"], "approved", "{record}");
    }

    async fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Value {
        let raw = self.raw(method, path, headers, body).await;
        serde_json::from_str(&raw.1).unwrap_or(Value::Null)
    }

    async fn raw(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (String, String) {
        let kind = if headers.contains("Content-Type") {
            ""
        } else {
            "Content-Type: application/json\r\n"
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}{kind}Content-Length: {}\r\n\r\n{body}",
            self.addr,
            body.len()
        );
        self.stream
            .write_all(request.as_bytes())
            .await
            .expect("sending");
        self.buffer.clear();
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).to_ascii_lowercase();
        let length: usize = head
            .lines()
            .find_map(|l| l.strip_prefix("content-length:"))
            .and_then(|v| v.trim().parse().ok())
            .unwrap_or(0);
        while self.buffer.len() < head_end + length {
            self.more().await;
        }
        let original = String::from_utf8_lossy(&self.buffer[..head_end]).into_owned();
        (
            original,
            String::from_utf8_lossy(&self.buffer[head_end..head_end + length]).into_owned(),
        )
    }

    async fn more(&mut self) {
        let mut chunk = [0u8; 16 * 1024];
        let n = self.stream.read(&mut chunk).await.expect("reading");
        assert!(n > 0, "the server closed the connection");
        self.buffer.extend_from_slice(&chunk[..n]);
    }
}

/// The binary under measurement: this build's, or another one to compare with.
fn binary() -> String {
    std::env::var("CLOUDHAL_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_cloudhal").to_owned())
}

fn free_addr() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}

fn database(data: &Path) -> String {
    format!("sqlite://{}", data.join("cloudhal.db").display())
}

async fn open(data: &Path, addr: &str) -> Engine {
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
        &database(data),
        Settings::for_url(format!("http://{addr}")),
        secret,
    )
    .await
    .expect("a database")
}

/// One site of ten pages and one agent for each client; one site's lock and the pending caps are not what is measured.
async fn fill(data: &Path, addr: &str) -> (Vec<Client>, String) {
    let engine = open(data, addr).await;
    let ada = people::add(
        &engine,
        NewPerson {
            email: "ada@example.com".into(),
            name: "Ada".into(),
            workspace_owner: true,
            password: None,
        },
    )
    .await
    .expect("a person");
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

async fn site_of(engine: &Engine, slug: &str, pages: usize) -> SiteId {
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

async fn first_node(engine: &Engine, caller: &agents::Caller, site: &SiteId) -> String {
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

fn request(tool: &str, arguments: Value) -> CallRequest {
    CallRequest {
        tool: tool.into(),
        arguments,
        approval: None,
        reason: None,
    }
}

/// A server that ends with its owner, also when a measurement fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(data: &Path, addr: &str) -> Server {
    let child = Command::new(binary())
        .args(["serve", "--addr", addr])
        .env("CLOUDHAL_DATA_DIR", data)
        .env("CLOUDHAL_LOG", "warn")
        .env_remove("DATABASE_URL")
        .stdout(Stdio::null())
        .spawn()
        .expect("the server starts");
    Server(child)
}

async fn ready(addr: &str) {
    for _ in 0..2_000 {
        if TcpStream::connect(addr).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the server did not listen within 10 s");
}

async fn sign_in(addr: &str, link: &str) -> String {
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

/// From exec to the first good answer, on the database that the runs above left.
fn cold_start(data: &Path) {
    let mut took = Vec::new();
    for _ in 0..5 {
        let addr = free_addr();
        let start = Instant::now();
        let server = serve(data, &addr);
        while !answers(&addr) {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "the server did not answer within 10 s"
            );
        }
        took.push(start.elapsed());
        drop(server);
    }
    println!("exec to first 200            {}", spread(&mut took));
}

fn answers(addr: &str) -> bool {
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

/// One edit through the gate, in process, on sites of very different sizes.
async fn edits() {
    let mut medians = Vec::new();
    for size in [1_000usize, 100_000] {
        let data = tempfile::tempdir().expect("a temporary folder");
        let engine = open(data.path(), "127.0.0.1:1").await;
        let ada = people::add(
            &engine,
            NewPerson {
                email: "a@b.c".into(),
                name: "Ada".into(),
                workspace_owner: true,
                password: None,
            },
        )
        .await
        .expect("a person");
        let filling = Instant::now();
        let site = site_of(&engine, "big", size).await;
        let filled = filling.elapsed();
        let (_, key) = agents::add(
            &engine,
            &ada,
            agents::NewAgent {
                name: "bot".into(),
                sites: vec![site.clone()],
                tools: vec![],
                expires_at: None,
            },
        )
        .await
        .expect("an agent");
        let caller = agents::verify_key(&engine, &key, Surface::Http)
            .await
            .expect("its key");
        let node = first_node(&engine, &caller, &site).await;
        let before = probe();
        let mut took = Vec::new();
        for round in 0..300 {
            let begun = Instant::now();
            let answer = engine
                .call(
                    &caller,
                    request(
                        "node-update",
                        json!({"site": site, "node": node, "body": format!("round {round}")}),
                    ),
                )
                .await;
            took.push(begun.elapsed());
            assert_eq!(answer.http_status(), 200);
        }
        println!(
            "one edit of {size:>7} nodes     {}   filled in {:.1} s   {}",
            spread(&mut took),
            filled.as_secs_f64(),
            probes(before, probe())
        );
        medians.push(took[took.len() / 2]);
        engine.store().close().await;
    }
    println!(
        "ratio of the two medians     {:.2}",
        medians[1].as_secs_f64() / medians[0].as_secs_f64()
    );
}

fn spread(took: &mut [Duration]) -> String {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!(
        "p50 {:>7.2} ms  p99 {:>7.2} ms  max {:>7.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

/// Median of a 4 KiB write with its fdatasync: what every durable answer waits for.
fn probe() -> Duration {
    let mut file = tempfile::tempfile().expect("a file");
    let block = [7u8; 4096];
    let mut took: Vec<Duration> = (0..50)
        .map(|_| {
            let begun = Instant::now();
            file.write_all(&block).expect("writing");
            file.sync_data().expect("syncing");
            begun.elapsed()
        })
        .collect();
    took.sort();
    took[took.len() / 2]
}

fn probes(before: Duration, after: Duration) -> String {
    let slow = if before.max(after) > Duration::from_micros(200) {
        "  (busy disk: compare ratios only)"
    } else {
        ""
    };
    format!(
        "fsync {:.2}/{:.2} ms{slow}",
        before.as_secs_f64() * 1e3,
        after.as_secs_f64() * 1e3
    )
}
