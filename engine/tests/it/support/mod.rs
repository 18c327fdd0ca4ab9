//! The world of a test: an engine on a database of its own, a clock that stands still until it is moved, agents and people.

mod clients;
mod database;
mod own_client;
mod scene;

pub use clients::{AgentClient, Expect, PersonClient, own_page, refused};
pub use database::{Database, Kind};
pub use own_client::OwnClient;
pub use scene::Scene;

use cloudhal_domain::time::Timestamp;
pub use cloudhal_domain::{
    answer::Answer,
    approval::{ApprovalRecord, Outcome, Status},
    code::{Code, Refusal},
    id::{ApprovalId, NodeId, SiteId},
    role::Role,
    tool::Surface,
};
pub use cloudhal_engine::{Engine, Settings, background, clock::TestClock, sites, verify::verify};
pub use serde_json::{Map, Value, json};
pub use std::time::Duration;

use cloudhal_engine::{
    agents::{self, NewAgent},
    authority::Author,
    clock::{Clock, SystemClock},
    people::{self, NewPerson},
    secret::Secret,
    store::StoreError,
};
use futures::FutureExt as _;
use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

pub const PUBLIC_URL: &str = "https://hal.example";
/// 2026-03-29 at 00:30 UTC, the night in which Europe's clocks move: no test may care.
const START_MS: i64 = 1_774_744_200_000;
const SECRET: [u8; 32] = [7; 32];
pub const HOUR: Duration = Duration::from_secs(3600);

/// Names the tests of a file, each to be run on both engines. A test that is not named does not compile quietly: it is
/// dead code.
macro_rules! on_both {
    ($($name:ident,)+) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread")]
            async fn on_sqlite() {
                crate::support::run(crate::support::Kind::Sqlite, super::$name).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn on_postgres() {
                crate::support::run(crate::support::Kind::Postgres, super::$name).await;
            }
        }
    )+};
}

/// The same for what only nodes that share a database can meet.
macro_rules! on_postgres {
    ($($name:ident,)+) => {$(
        mod $name {
            #[tokio::test(flavor = "multi_thread")]
            async fn on_postgres() {
                crate::support::run(crate::support::Kind::Postgres, super::$name).await;
            }
        }
    )+};
}

/// Runs a test in a world of its own, and then lets `verify` judge what it left behind.
pub async fn run<F: Future<Output = ()>>(kind: Kind, test: impl FnOnce(World) -> F) {
    let Some(world) = World::fresh(kind).await else {
        eprintln!("skipped: TEST_POSTGRES_URL is not set");
        return;
    };
    let outcome = AssertUnwindSafe(test(world.clone())).catch_unwind().await;
    let fault = match &outcome {
        Ok(()) if !world.0.tampered.load(Ordering::SeqCst) => world.fault().await,
        _ => None,
    };
    world.0.database.remove().await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    assert_eq!(fault, None, "verify disagrees with what the test left");
}

/// How often a race is run: `usual` times, or as often as `CLOUDHAL_TEST_ROUNDS` says.
pub fn rounds(usual: usize) -> usize {
    match std::env::var("CLOUDHAL_TEST_ROUNDS") {
        Ok(text) => text.parse().expect("CLOUDHAL_TEST_ROUNDS is a number"),
        Err(_) => usual,
    }
}

#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    engine: Engine,
    clock: TestClock,
    database: Database,
    tampered: AtomicBool,
}

impl World {
    async fn fresh(kind: Kind) -> Option<Self> {
        let database = Database::fresh(kind).await?;
        let clock = TestClock::at(START_MS);
        let engine = open(&database, &clock, Settings::for_url(PUBLIC_URL), SECRET)
            .await
            .unwrap();
        Some(Self(Arc::new(Inner {
            engine,
            clock,
            database,
            tampered: AtomicBool::new(false),
        })))
    }

    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub fn database(&self) -> &Database {
        &self.0.database
    }

    /// Another engine on the same database: a second node, or the first one after a restart.
    pub async fn second_engine(&self) -> Engine {
        self.engine_with(Settings::for_url(PUBLIC_URL), SECRET)
            .await
            .unwrap()
    }

    /// Another one, which differs.
    pub async fn engine_with(
        &self,
        settings: Settings,
        secret: [u8; 32],
    ) -> Result<Engine, StoreError> {
        open(&self.0.database, &self.0.clock, settings, secret).await
    }

    /// Another node, whose machine's clock is wrong by this many milliseconds and whose time is not the test's.
    pub async fn engine_off_by(&self, ms: i64) -> Engine {
        let (settings, secret) = (Settings::for_url(PUBLIC_URL), Secret::new(SECRET));
        let clock = Arc::new(WrongClock(ms));
        Engine::open_with(&self.0.database.url(), settings, secret, clock)
            .await
            .unwrap()
    }

    pub fn advance(&self, by: Duration) {
        self.0.clock.advance(by);
    }

    pub fn turn_back(&self, by: Duration) {
        let now = self.0.engine.now().ms();
        self.0.clock.set(now - by.as_millis() as i64);
    }

    /// SQL by hand.
    pub async fn sql(&self, sql: &str) {
        self.0.database.try_sql(sql).await.unwrap();
    }

    /// From now on no row of `table` of which `what` is true changes: each engine has a way of its own to say no.
    pub async fn refuse(&self, table: &str, what: &str) {
        let no = match self.database().kind() {
            Kind::Sqlite => format!("create trigger no before update on {table} when old.{what} begin select raise(abort, 'no'); end"),
            Kind::Postgres => format!(
                "create function no() returns trigger language plpgsql as $$ begin if old.{what} then raise 'no'; end if; return new; end $$;
                 create trigger no before update on {table} for each row execute function no()"
            ),
        };
        self.sql(&no).await;
    }

    pub async fn refuse_no_more(&self) {
        self.sql(match self.database().kind() {
            Kind::Sqlite => "drop trigger no",
            Kind::Postgres => "drop function no cascade",
        })
        .await;
    }

    pub async fn number(&self, sql: &str) -> i64 {
        self.0.database.number(sql).await
    }

    pub async fn text(&self, sql: &str) -> String {
        self.0.database.texts(sql).await.remove(0)
    }

    pub async fn texts(&self, sql: &str) -> Vec<String> {
        self.0.database.texts(sql).await
    }

    /// This test edits rows by hand: `verify` is not asked at its end.
    pub fn tampers(&self) {
        self.0.tampered.store(true, Ordering::SeqCst);
    }

    /// What `verify` says.
    pub async fn fault(&self) -> Option<String> {
        verify(self.engine()).await.unwrap().fault
    }

    /// An account without any right.
    pub async fn person(&self, name: &str) -> PersonClient {
        let new = NewPerson {
            email: format!("{name}@example.com"),
            name: name.to_owned(),
            workspace_owner: false,
            password: None,
        };
        PersonClient::new(
            self.engine(),
            people::add(self.engine(), new).await.unwrap(),
        )
    }

    /// Somebody who owns the workspace.
    pub async fn owner(&self, name: &str) -> PersonClient {
        let new = NewPerson {
            email: format!("{name}@example.com"),
            name: name.to_owned(),
            workspace_owner: true,
            password: None,
        };
        PersonClient::new(
            self.engine(),
            people::add(self.engine(), new).await.unwrap(),
        )
    }

    pub async fn member(&self, name: &str, site: &SiteId, role: Role) -> PersonClient {
        let person = self.person(name).await;
        sites::add_member(self.engine(), site, person.person(), role)
            .await
            .unwrap();
        person
    }

    /// A site of three pages and a collection, nothing of it published, owned by `owner`.
    pub async fn site(&self, slug: &str, owner: &PersonClient) -> SiteId {
        let title = format!("The {slug}");
        let site = sites::create_site(self.engine(), slug, &title, Some(owner.person()))
            .await
            .unwrap();
        let node = |path: &[&str], kind: &str, title: &str, position| sites::NewNode {
            path: path.iter().map(|slug| (*slug).to_owned()).collect(),
            kind: kind.into(),
            title: title.into(),
            position,
            body: format!("{title}, as it was."),
            fields: Map::new(),
        };
        let nodes = vec![
            node(&[""], "page", "Home", 10),
            node(&["bread"], "collection", "Our bread", 20),
            node(&["bread", "rye"], "entry", "Rye", 10),
            node(&["visit"], "page", "Visit us", 30),
        ];
        sites::fill(self.engine(), &site, Author::person(owner.person()), nodes)
            .await
            .unwrap();
        site
    }

    /// The only node of a site with this slug.
    pub async fn node(&self, site: &SiteId, slug: &str) -> NodeId {
        let sql = format!("select id from nodes where site_id = '{site}' and slug = '{slug}'");
        NodeId::new(self.text(&sql).await)
    }

    /// An agent with a key for these sites and every tool, over HTTP.
    pub async fn agent(&self, name: &str, owner: &PersonClient, on: &[&SiteId]) -> AgentClient {
        self.agent_for(name, owner, on, &[]).await
    }

    pub async fn agent_for(
        &self,
        name: &str,
        owner: &PersonClient,
        on: &[&SiteId],
        tools: &[&str],
    ) -> AgentClient {
        let new = NewAgent {
            name: name.to_owned(),
            sites: on.iter().map(|site| (*site).clone()).collect(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            expires_at: None,
        };
        let (id, key) = agents::add(self.engine(), owner.person(), new)
            .await
            .unwrap();
        AgentClient::new(self.engine(), id, key)
    }

    /// What most tests begin with.
    pub async fn scene(&self) -> Scene {
        Scene::set(self.clone()).await
    }
}

struct WrongClock(i64);

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        Timestamp(SystemClock.now().ms() + self.0)
    }
}

async fn open(
    database: &Database,
    clock: &TestClock,
    settings: Settings,
    secret: [u8; 32],
) -> Result<Engine, StoreError> {
    let (secret, clock) = (Secret::new(secret), Arc::new(clock.clone()));
    Engine::open_with(&database.url(), settings, secret, clock).await
}
