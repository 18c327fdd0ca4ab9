//! A database with sites, agents and people in it, for processes to serve or for an engine in this process.

use crate::{
    context::{Context, free_port},
    database::{Database, Kind},
    http::Target,
};
use anyhow::{Context as _, Result};
use cloudhal_domain::id::SiteId;
use cloudhal_engine::{
    Engine, Settings,
    agents::{self, NewAgent},
    authority::Author,
    clock::{Clock, SystemClock},
    people::{self, NewPerson, Person},
    secret::Secret,
    sites,
};
use serde_json::Map;
use std::{path::PathBuf, sync::Arc};

const PEOPLE: [&str; 2] = ["ada", "grace"];

/// How large a world is.
#[derive(Clone, Copy)]
pub struct Size {
    pub sites: usize,
    pub agents_per_site: usize,
    pub pages: usize,
}

/// An agent, the site that it works on, and a page there that is its own to edit.
#[derive(Clone, Debug)]
pub struct AgentKey {
    pub name: String,
    pub site: String,
    pub key: String,
    pub node: String,
}

pub struct World {
    pub database: Database,
    /// Folder of the nodes' data, logs and secret.
    pub folder: PathBuf,
    /// The port behind the public address.
    pub port: u16,
    pub sites: Vec<String>,
    pub agents: Vec<AgentKey>,
    /// Paths of one-time sign-in links, one a person.
    pub links: Vec<String>,
}

impl World {
    pub async fn new(context: &Context, size: Size) -> Result<Self> {
        Self::with_clock(context, size, Arc::new(SystemClock)).await
    }

    pub async fn with_clock(context: &Context, size: Size, clock: Arc<dyn Clock>) -> Result<Self> {
        let mut world = Self::empty(context).await?;
        let engine = world.engine(clock).await?;
        world.fill(&engine, size).await?;
        engine.store().close().await;
        // The constraint behind the guard is taken away: the guard alone has to hold, and a double shows as two rows.
        world
            .database
            .execute("drop index receipts_one_each")
            .await?;
        Ok(world)
    }

    /// A place for a database that nobody has opened yet.
    pub async fn empty(context: &Context) -> Result<Self> {
        let database = context.database().await?;
        let port = free_port()?;
        let folder = context.folder.join(format!("world-{port}"));
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            database,
            folder,
            port,
            sites: Vec::new(),
            agents: Vec::new(),
            links: Vec::new(),
        })
    }

    /// A further agent on the first site: what one of the two publishes voids what the other waits for.
    pub async fn share_first_site(&mut self) -> Result<()> {
        let engine = self.engine(Arc::new(SystemClock)).await?;
        let ada = people::by_email(&engine, "ada@example.com").await?;
        let ada = ada.context("ada is there")?;
        let site = self.sites[0].clone();
        let key = add_agent(&engine, &ada, "bot-0-other", &SiteId::new(&site)).await?;
        let node = self.agents[0].node.clone();
        self.agents.push(AgentKey {
            name: "bot-0-other".into(),
            site,
            key,
            node,
        });
        engine.store().close().await;
        Ok(())
    }

    pub fn public_url(&self) -> String {
        format!("http://{}", self.host())
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn target(&self) -> Target {
        self.target_at(self.port)
    }

    /// Another node behind the same public address.
    pub fn target_at(&self, port: u16) -> Target {
        Target {
            addr: format!("127.0.0.1:{port}"),
            host: self.host(),
        }
    }

    pub fn traces(&self) -> PathBuf {
        self.folder.join("trace")
    }

    pub fn secret_file(&self) -> PathBuf {
        self.folder.join("secret")
    }

    pub fn kind(&self) -> Kind {
        match self.database {
            Database::Sqlite(_) => Kind::Sqlite,
            Database::Postgres { .. } => Kind::Postgres,
        }
    }

    /// The product in this process.
    pub async fn engine(&self, clock: Arc<dyn Clock>) -> Result<Engine> {
        let file = self.secret_file();
        let secret = match std::fs::read_to_string(&file) {
            Ok(text) => Secret::from_text(&text).context("our own secret")?,
            Err(_) => {
                let secret = Secret::random();
                std::fs::write(&file, secret.to_text())?;
                secret
            }
        };
        let settings = Settings::for_url(self.public_url());
        Ok(Engine::open_with(&self.database.url(), settings, secret, clock).await?)
    }

    async fn fill(&mut self, engine: &Engine, size: Size) -> Result<()> {
        let mut people = Vec::new();
        for name in PEOPLE {
            let new = NewPerson {
                email: format!("{name}@example.com"),
                name: name.to_owned(),
                workspace_owner: true,
                password: None,
            };
            people.push(people::add(engine, new).await?);
        }
        for at in 0..size.sites {
            let site = fill_site(engine, at, size.pages).await?;
            let nodes = self
                .database
                .texts(&format!(
                    "select id from nodes where site_id = '{site}' order by position"
                ))
                .await?;
            for number in 0..size.agents_per_site {
                let name = format!("bot-{at}-{number}");
                let key = add_agent(engine, &people[0], &name, &site).await?;
                let node = nodes.iter().cycle().nth(number).context("a page")?.clone();
                self.agents.push(AgentKey {
                    name,
                    site: site.as_str().to_owned(),
                    key,
                    node,
                });
            }
            self.sites.push(site.as_str().to_owned());
        }
        for person in &people {
            let link = people::sign_in_link(engine, person).await?;
            let path = link
                .strip_prefix(&self.public_url())
                .context("a link of our own")?;
            self.links.push(path.to_owned());
        }
        Ok(())
    }
}

async fn fill_site(engine: &Engine, at: usize, pages: usize) -> Result<SiteId> {
    let site =
        sites::create_site(engine, &format!("site-{at}"), &format!("Site {at}"), None).await?;
    let page = |page: usize| sites::NewNode {
        path: vec![format!("page-{page}")],
        kind: "page".into(),
        title: format!("Page {page}"),
        position: page as i64,
        body: format!("Text of page {page}."),
        fields: Map::new(),
    };
    let pages = (0..pages).map(page).collect();
    sites::fill(engine, &site, Author::system(), pages).await?;
    Ok(site)
}

async fn add_agent(engine: &Engine, owner: &Person, name: &str, site: &SiteId) -> Result<String> {
    let new = NewAgent {
        name: name.to_owned(),
        sites: vec![site.clone()],
        tools: vec![],
        expires_at: None,
    };
    Ok(agents::add(engine, owner, new).await?.1)
}
