//! A server of one test: built as `main` builds it, on a free port, with a database, a secret and a clock of its own. Whoever
//! comes to its doors is one of [`clients`]; what no HTTP library would send goes through [`raw`].

pub mod binary;
mod clients;
#[path = "../../../../engine/tests/it/support/database.rs"]
#[expect(
    dead_code,
    reason = "written for the engine's suite, which uses more of it"
)]
mod database;
mod raw;

pub use clients::{AgentClient, Anonymous, PersonClient, Seen, assert_refused};
pub use cloudhal_domain::{code::Code, id::SiteId, limits, role::Role};
pub use database::{Database, Kind};
pub use raw::Raw;
pub use serde_json::{Map, Value, json};
pub use std::time::Duration;

use cloudhal_engine::{
    Engine,
    agents::{self, NewAgent},
    authority::Author,
    clock::TestClock,
    people::{self, NewPerson, Person},
    sites,
    verify::verify,
};
use cloudhal_server::{Server, config::Config, webhooks::Allowed};
use std::net::SocketAddr;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

/// 2026-03-29 at 00:30 UTC, the night in which Europe's clocks move: no test may care.
pub const START_MS: i64 = 1_774_744_200_000;
pub const HOUR: Duration = Duration::from_secs(3600);
/// What a server has in it from the start: a site of four nodes, nothing of it published.
pub const SLUG: &str = "bakery";

/// How a server of a test differs from the usual one.
#[derive(Clone)]
pub struct Setup {
    pub kind: Kind,
    pub public_url: Option<String>,
    pub live_url: Option<String>,
    /// Ada, who owns the site `bakery`; without it, nobody and nothing.
    pub with_site: bool,
    /// Where webhooks may go.
    pub webhooks: Allowed,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            kind: Kind::Sqlite,
            public_url: None,
            live_url: None,
            with_site: true,
            webhooks: Allowed::default(),
        }
    }
}

pub struct TestServer {
    /// Where it can be reached.
    pub addr: SocketAddr,
    /// The origin that it believes to have.
    pub origin: String,
    pub clock: TestClock,
    pub database: Database,
    engine: Engine,
    /// The site `bakery`.
    pub site: SiteId,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    folder: tempfile::TempDir,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_as(Setup::default())
            .await
            .expect("SQLite is always at hand")
    }

    /// `None` where the database is not at hand.
    pub async fn start_as(setup: Setup) -> Option<Self> {
        let database = Database::fresh(setup.kind).await?;
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self::serve(database, folder, &setup).await;
        if setup.with_site {
            let ada = server.account("ada").await;
            server.site = server.add_site(SLUG, &ada).await;
        }
        Some(server)
    }

    async fn serve(database: Database, folder: tempfile::TempDir, setup: &Setup) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let origin = setup
            .public_url
            .clone()
            .unwrap_or_else(|| format!("http://{addr}"));
        let config = Config {
            data_dir: folder.path().to_owned(),
            database_url: database.url(),
            addr,
            public_url: origin.clone(),
            approval_ttl: limits::APPROVAL_TTL,
            live_url: setup.live_url.clone(),
            secret_file: folder.path().join("secret"),
            webhooks: setup.webhooks.clone(),
            log: "info".into(),
        };
        let clock = TestClock::at(START_MS);
        let server = Server::build_with(&config, std::sync::Arc::new(clock.clone()))
            .await
            .unwrap();
        let engine = server.app.engine.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let until = async move {
            let _ = stopped.await;
        };
        let serving = tokio::spawn(async move { server.serve(listener, until).await.unwrap() });
        Self {
            addr,
            origin,
            clock,
            database,
            engine,
            site: SiteId::new(""),
            stop: Some(stop),
            serving: Some(serving),
            folder,
        }
    }

    /// The same database behind a new process, as after a restart: nothing is remembered but what was written.
    pub async fn restart(mut self) -> Self {
        self.stop().await;
        let (site, clock) = (self.site.clone(), self.clock.clone());
        let setup = Setup::default();
        let mut server = Self::serve(self.database, self.folder, &setup).await;
        server
            .clock
            .set(cloudhal_engine::clock::Clock::now(&clock).ms());
        server.site = site;
        server
    }

    /// Asks it to stop and waits until it did.
    pub async fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(serving) = self.serving.take() {
            serving.await.unwrap();
        }
    }

    /// Ends a test: whatever it did, `verify` agrees with what it left behind.
    pub async fn done(mut self) {
        let fault = verify(&self.engine).await.unwrap().fault;
        self.stop().await;
        self.database.remove().await;
        assert_eq!(fault, None, "verify disagrees with what the test left");
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// The Host that it answers to.
    pub fn host(&self) -> &str {
        self.origin.split_once("://").unwrap().1
    }

    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub fn anonymous(&self) -> Anonymous {
        Anonymous::new(self)
    }

    /// An agent of Ada's on the site `bakery`, with every tool.
    pub async fn as_agent(&self, name: &str) -> AgentClient {
        self.agent_for(name, "ada", &[&self.site], &[]).await
    }

    pub async fn agent_for(
        &self,
        name: &str,
        owner: &str,
        on: &[&SiteId],
        tools: &[&str],
    ) -> AgentClient {
        let new = NewAgent {
            name: name.to_owned(),
            sites: on.iter().map(|site| (*site).clone()).collect(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            expires_at: None,
        };
        self.agent_with(owner, new).await
    }

    pub async fn agent_with(&self, owner: &str, new: NewAgent) -> AgentClient {
        let owner = self.account(owner).await;
        let (_, key) = agents::add(&self.engine, &owner, new).await.unwrap();
        AgentClient::new(self, key)
    }

    /// Somebody with an account, signed in through a one-time link as a browser does it.
    pub async fn as_person(&self, name: &str) -> PersonClient {
        let account = self.account(name).await;
        let link = people::sign_in_link(&self.engine, &account).await.unwrap();
        let person = PersonClient::new(self);
        let path = link.strip_prefix(&self.origin).unwrap().to_owned();
        let page = person.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let signed_in = person.post_form(&path, &[("next", "")]).await;
        assert_eq!(signed_in.location(), "/approvals");
        person
    }

    pub async fn as_member(&self, name: &str, role: Role) -> PersonClient {
        let account = self.account(name).await;
        sites::add_member(&self.engine, &self.site, &account, role)
            .await
            .unwrap();
        self.as_person(name).await
    }

    /// The account of that name, new or known; it has no right of its own.
    pub async fn account(&self, name: &str) -> Person {
        let email = format!("{name}@example.com");
        if let Some(person) = people::by_email(&self.engine, &email).await.unwrap() {
            return person;
        }
        let new = NewPerson {
            email,
            name: name.to_owned(),
            workspace_owner: false,
            password: None,
        };
        people::add(&self.engine, new).await.unwrap()
    }

    pub async fn account_with_password(&self, name: &str, password: &str) -> Person {
        let new = NewPerson {
            email: format!("{name}@example.com"),
            name: name.to_owned(),
            workspace_owner: false,
            password: Some(password.to_owned().into()),
        };
        people::add(&self.engine, new).await.unwrap()
    }

    pub async fn add_site(&self, slug: &str, owner: &Person) -> SiteId {
        let title = format!("The {slug}");
        let site = sites::create_site(&self.engine, slug, &title, Some(owner))
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
        sites::fill(&self.engine, &site, Author::person(owner), nodes)
            .await
            .unwrap();
        site
    }

    /// What must not have moved when a call was refused: the state of every site, and how many requests there are.
    pub async fn effects(&self) -> (Vec<String>, i64, i64) {
        let states = "select state_hash from sites order by id";
        (
            self.database.texts(states).await,
            self.database.number("select count(*) from approvals").await,
            self.database.number("select count(*) from decisions").await,
        )
    }

    /// The same, and who there is and what they may.
    pub async fn everything(&self) -> ((Vec<String>, i64, i64), Vec<String>) {
        let access = "select policy from sites
            union all select id || name || session_key || workspace_owner || coalesce(disabled_at, 0) from people
            union all select id || all_tools || coalesce(disabled_at, 0) from agents
            union all select id || coalesce(revoked_at, 0) from agent_keys union all select agent_id || site_id from agent_sites
            union all select 'off' || agent_id || site_id from agents_taken_off union all select agent_id || tool from agent_tools
            union all select person_id || site_id || role from memberships
            union all select person_id || site_id || name from group_members
            union all select id || url || secret || coalesce(old_secret_until, 0) from webhooks
            union all select token_hash from sign_in_links where used_at is null order by 1";
        (self.effects().await, self.database.texts(access).await)
    }

    /// The id of the only agent of that name.
    pub async fn agent_id(&self, name: &str) -> String {
        let sql = format!("select id from agents where name = '{name}'");
        self.database.texts(&sql).await.remove(0)
    }

    /// Somebody who owns the workspace, signed in.
    pub async fn as_owner(&self, name: &str) -> PersonClient {
        let new = NewPerson {
            email: format!("{name}@example.com"),
            name: name.to_owned(),
            workspace_owner: true,
            password: None,
        };
        people::add(&self.engine, new).await.unwrap();
        self.as_person(name).await
    }

    /// The journal's entries about the site, oldest first.
    pub async fn journal(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        cloudhal_engine::journal::export(
            &self.engine,
            Some(self.site.as_str()),
            cloudhal_domain::time::Timestamp(i64::MIN),
            |line| {
                lines.push(line);
                Ok(())
            },
        )
        .await
        .unwrap();
        lines
    }
}
