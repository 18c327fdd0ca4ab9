//! What the product costs, measured from outside: the real binary on loopback, a small keep-alive client beside it on the
//! same cores. Figures are printed, never asserted; every block stands between two probes of the disk, and a run whose probe
//! is slow says so.
//!
//! `cargo xtask bench`, or `cargo bench -p cloudhal-server --bench cycle -- [cycles] [doors] [reads] [wake] [edit] [footprint] [recovery]
//! [postgres]`

mod http;
mod report;
mod world;

use cloudhal_domain::tool::Surface;
use cloudhal_engine::{
    Engine, agents,
    callers::{Caller, verify_key},
    clock::fresh_id,
    people::{self, NewPerson},
};
use http::{Client, Door, Http};
use report::{probe, probes, spread};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use world::{
    CLIENTS_MAX, Server, answers, binary, database, fill, first_node, free_addr, open, ready,
    request, serve, sign_in, site_of,
};

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    println!(
        "two cores or what there is: {} · server, database and driver share them",
        std::thread::available_parallelism().map_or(0, usize::from)
    );
    if ["cycles", "doors", "wake", "reads", "footprint", "recovery"]
        .into_iter()
        .any(runs)
    {
        let mut bench = Bench::start(None, 1).await;
        if runs("cycles") {
            bench.all_cycles(1).await;
        }
        if runs("doors") {
            bench.doors().await;
        }
        if runs("wake") {
            bench.wake(200).await;
        }
        if runs("reads") {
            bench.reads(32, 8_000).await;
        }
        if runs("footprint") {
            bench.footprint();
            bench.cold_start();
        }
        if runs("recovery") {
            bench.recovery(20).await;
        }
    }
    if runs("edit") {
        edits().await;
    }
    if runs("postgres") {
        match std::env::var("BENCH_POSTGRES_URL") {
            Ok(url) => postgres(&url).await,
            Err(_) => println!("postgres: BENCH_POSTGRES_URL names none"),
        }
    }
}

/// The same over one database and two nodes; it keeps its own cores busy on the same machine.
async fn postgres(url: &str) {
    println!("\nPostgreSQL, two nodes");
    let mut bench = Bench::start(Some(url), 2).await;
    for nodes in [1, 2] {
        println!("{nodes} in use:");
        bench.all_cycles(nodes).await;
    }
    bench.wake(200).await;
    bench.recovery(20).await;
}

struct Bench {
    nodes: Vec<Node>,
    clients: Vec<Client>,
    cookie: String,
}

/// One process, with a folder of its own.
struct Node {
    server: Server,
    addr: String,
    database: String,
    data: tempfile::TempDir,
}

impl Node {
    async fn restart(&mut self) {
        self.server = serve(self.data.path(), &self.database, &self.addr);
        ready(&self.addr).await;
    }
}

impl Bench {
    async fn start(postgres: Option<&str>, nodes: usize) -> Self {
        let places: Vec<_> = (0..nodes)
            .map(|_| {
                let data = tempfile::tempdir().expect("a temporary folder");
                (database(data.path(), postgres), data, free_addr())
            })
            .collect();
        let (database, data, addr) = &places[0];
        let (clients, link) = fill(data.path(), database, addr).await;
        let mut nodes = Vec::new();
        for (database, data, addr) in places {
            let server = serve(data.path(), &database, &addr);
            ready(&addr).await;
            nodes.push(Node {
                server,
                addr,
                database,
                data,
            });
        }
        let cookie = sign_in(&nodes[0].addr, &link).await;
        Self {
            nodes,
            clients,
            cookie,
        }
    }

    async fn all_cycles(&self, nodes: usize) {
        for clients in [1, 16, CLIENTS_MAX] {
            self.cycles(nodes, clients, 400 * clients.min(8), Door::Tools)
                .await;
        }
    }

    /// The same cycle through each door.
    async fn doors(&self) {
        for clients in [1, 16] {
            for door in Door::ALL {
                println!("{}:", door.name());
                self.cycles(1, clients, 400 * clients.min(4), door).await;
            }
        }
    }

    /// How long a killed node takes to answer again, with others' work cut off in the middle.
    async fn recovery(&mut self, kills: usize) {
        let mut took = Vec::new();
        for _ in 0..kills {
            let addr = self.nodes[0].addr.clone();
            let clients = self.clients.iter().take(8).cloned();
            let pestering: Vec<_> = clients
                .map(|client| tokio::spawn(pester(addr.clone(), client)))
                .collect();
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(std::mem::replace(&mut self.nodes[0].server, Server::none()));
            for client in pestering {
                client.await.expect("a client ends with its connection");
            }
            let begun = Instant::now();
            self.nodes[0].restart().await;
            while !answers(&addr) {
                assert!(
                    begun.elapsed() < Duration::from_secs(10),
                    "not ready within 10 s"
                );
            }
            took.push(begun.elapsed());
        }
        println!("killed to ready again         {}", spread(&mut took));
    }

    /// Request, approve, redeem, each durable, with one edit's worth of state between two cycles made by the publish itself.
    async fn cycles(&self, nodes: usize, clients: usize, total: usize, door: Door) {
        let before = probe();
        let left = Arc::new(AtomicUsize::new(total));
        let start = Instant::now();
        let mut workers = Vec::new();
        for (at, client) in self.clients.iter().take(clients).enumerate() {
            let client = client.clone();
            let addr = self.nodes[at % nodes].addr.clone();
            let (cookie, left) = (self.cookie.clone(), left.clone());
            workers.push(tokio::spawn(async move {
                let mut http = Http::connect(&addr).await;
                let mut took = Vec::new();
                while left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                    .is_ok()
                {
                    let begun = Instant::now();
                    cycle(&mut http, &addr, &client, &cookie, door).await;
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

    /// From the decision's request, on the last node, to the end of the long poll that waits for it, on the first.
    async fn wake(&self, rounds: usize) {
        let before = probe();
        let client = &self.clients[0];
        let there = &self.nodes[0].addr;
        let here = &self.nodes[self.nodes.len() - 1].addr;
        let (mut agent, mut waiter, mut person) = (
            Http::connect(there).await,
            Http::connect(there).await,
            Http::connect(here).await,
        );
        let mut took = Vec::new();
        for _ in 0..rounds {
            let asked = agent
                .call(
                    Door::Tools,
                    client,
                    "publish",
                    json!({"site": client.site}),
                    None,
                )
                .await;
            let id = asked["approvalId"]
                .as_str()
                .expect("a pending answer")
                .to_owned();
            let seen = person.record(here, client, &self.cookie, &id).await;
            let wait = json!({"approvalId": id, "waitSeconds": 30});
            let waiting = waiter.call(Door::Tools, client, "approvals-get", wait, None);
            let deciding = async {
                // The long poll is on its way first; how long it takes to arrive is not what is measured.
                tokio::time::sleep(Duration::from_millis(5)).await;
                let begun = Instant::now();
                person.approve(here, client, &self.cookie, &id, &seen).await;
                begun
            };
            let ((record, end), begun) =
                tokio::join!(async { (waiting.await, Instant::now()) }, deciding);
            assert_eq!(record["data"]["status"], "approved");
            took.push(end.duration_since(begun));
            agent
                .call(
                    Door::Tools,
                    client,
                    "publish",
                    json!({"site": client.site}),
                    Some(&id),
                )
                .await;
        }
        println!(
            "decision to woken agent      {}   {}",
            spread(&mut took),
            probes(before, probe())
        );
    }

    async fn reads(&self, clients: usize, total: usize) {
        for door in Door::ALL {
            let left = Arc::new(AtomicUsize::new(total));
            let start = Instant::now();
            let mut workers = Vec::new();
            for client in self.clients.iter().take(clients).cloned() {
                let (addr, left) = (self.nodes[0].addr.clone(), left.clone());
                workers.push(tokio::spawn(async move {
                    let mut http = Http::connect(&addr).await;
                    let mut took = Vec::new();
                    while left
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                        .is_ok()
                    {
                        let begun = Instant::now();
                        let site = json!({"site": client.site});
                        let answer = http.call(door, &client, "site-get", site, None).await;
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
                "{:<15} reads C={clients} {rate:>8.0}/s   {}",
                door.name(),
                spread(&mut took)
            );
        }
    }

    fn footprint(&self) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.nodes[0].server.id()))
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

    /// From exec to the first good answer, on the database that the runs above left.
    fn cold_start(&mut self) {
        let node = &mut self.nodes[0];
        let mut took = Vec::new();
        for _ in 0..5 {
            drop(std::mem::replace(&mut node.server, Server::none()));
            let start = Instant::now();
            node.server = serve(node.data.path(), &node.database, &node.addr);
            while !answers(&node.addr) {
                assert!(
                    start.elapsed() < Duration::from_secs(10),
                    "the server did not answer within 10 s"
                );
            }
            took.push(start.elapsed());
        }
        println!("exec to first 200            {}", spread(&mut took));
    }
}

/// Edits until the connection ends.
async fn pester(addr: String, client: Client) {
    let Ok(mut http) = Http::try_connect(&addr).await else {
        return;
    };
    let headers = format!("Authorization: Bearer {}\r\n", client.key);
    for at in 0.. {
        let arguments =
            json!({"site": client.site, "title": format!("Page {at}"), "slug": fresh_id()});
        let body = json!({"arguments": arguments}).to_string();
        if http
            .try_raw("POST", "/tools/node-create", &headers, &body)
            .await
            .is_err()
        {
            return;
        }
    }
}

async fn cycle(http: &mut Http, addr: &str, client: &Client, cookie: &str, door: Door) {
    let asked = http
        .call(door, client, "publish", json!({"site": client.site}), None)
        .await;
    let id = asked["approvalId"]
        .as_str()
        .unwrap_or_else(|| panic!("not pending: {asked}"))
        .to_owned();
    let seen = http.record(addr, client, cookie, &id).await;
    http.approve(addr, client, cookie, &id, &seen).await;
    let done = http
        .call(
            door,
            client,
            "publish",
            json!({"site": client.site}),
            Some(&id),
        )
        .await;
    assert_eq!(done["status"], "ok", "{done}");
}

/// One edit through the gate, in process, on sites of very different sizes.
async fn edits() {
    let mut medians = Vec::new();
    for size in [1_000usize, 100_000] {
        let data = tempfile::tempdir().expect("a temporary folder");
        let file = database(data.path(), None);
        let engine = open(data.path(), &file, "127.0.0.1:1").await;
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
        let caller = verify_key(&engine, &key, Surface::Http)
            .await
            .expect("its key");
        let node = first_node(&engine, &caller, &site).await;
        let before = probe();
        let edit = |round| json!({"site": site, "node": node, "body": format!("round {round}")});
        let mut took = timed(&engine, &caller, "node-update", 300, edit).await;
        println!(
            "one edit of {size:>7} nodes     {}   filled in {:.1} s   {}",
            spread(&mut took),
            filled.as_secs_f64(),
            probes(before, probe())
        );
        medians.push(took[took.len() / 2]);
        for (what, query) in [("a rare word", "77"), ("a word of every page", "text")] {
            let search = |_| json!({"site": site, "query": query});
            let mut took = timed(&engine, &caller, "node-search", 50, search).await;
            println!("  search for {what:<20} {}", spread(&mut took));
        }
        engine.store().close().await;
    }
    println!(
        "ratio of the two medians     {:.2}",
        medians[1].as_secs_f64() / medians[0].as_secs_f64()
    );
}

/// How long each of some calls took, in process.
async fn timed(
    engine: &Engine,
    caller: &Caller,
    tool: &str,
    rounds: usize,
    arguments: impl Fn(usize) -> Value,
) -> Vec<Duration> {
    let mut took = Vec::new();
    for round in 0..rounds {
        let begun = Instant::now();
        let answer = engine.call(caller, request(tool, arguments(round))).await;
        took.push(begun.elapsed());
        assert_eq!(answer.http_status(), 200, "{}", json!(answer));
    }
    took
}
