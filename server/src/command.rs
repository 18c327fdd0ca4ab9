//! The command line. No command decides an approval.

use crate::{
    Server,
    config::{Config, Flags},
    mcp,
};
use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Parser, Subcommand};
use cloudhal_domain::{code::Refusal, id::SiteId, time::Timestamp};
use cloudhal_engine::{
    Engine, Settings, agents,
    authority::{Author, Steward},
    background,
    content::{export, import},
    demo, journal,
    people::{self, NewPerson, Person},
    published, sites,
    store::{self, Store},
    verify,
};
use secrecy::SecretString;
use std::{io::Read as _, io::Write as _, path::PathBuf};

/// Agents operate a site; people approve what matters.
#[derive(Parser)]
#[command(name = "cloudhal", version = env!("CARGO_PKG_VERSION"), disable_version_flag = true, arg_required_else_help = true)]
pub struct Cloudhal {
    /// Print the version, and the version of SQLite inside
    #[arg(long, short = 'V')]
    version: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    Serve {
        /// On a fresh database: fill it with a demo site, one person and one agent, and print how to begin
        #[arg(long)]
        demo: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// MCP over standard input and output, for a client on your own machine; the server may run or not
    Mcp {
        /// E-mail address of the person it works for [default: the only owner of the workspace]
        #[arg(long, value_name = "EMAIL")]
        person: Option<String>,
        /// Let a program say yes in place of the person: a waiting answer carries a token, and the call that repeats it runs
        #[arg(long)]
        allow_confirm_token: bool,
        #[command(flatten)]
        flags: Flags,
    },
    /// People: those who sign in and decide
    Person {
        #[command(subcommand)]
        command: PersonCommand,
        #[command(flatten)]
        flags: Flags,
    },
    /// Sites: bring content in, take it out
    Site {
        #[command(subcommand)]
        command: SiteCommand,
        #[command(flatten)]
        flags: Flags,
    },
    /// Agents: those who hold API keys and never decide
    Agent {
        #[command(subcommand)]
        command: AgentCommand,
        #[command(flatten)]
        flags: Flags,
    },
    /// Recompute site states and the journal's chain; exit 0 only if all agree
    Verify {
        #[command(flatten)]
        flags: Flags,
    },
    /// The append-only account of who asked, decided and ran
    Journal {
        #[command(subcommand)]
        command: JournalCommand,
        #[command(flatten)]
        flags: Flags,
    },
    /// A consistent copy of a SQLite database, also while it serves; using the copy later starts a new restore epoch
    Backup {
        file: PathBuf,
        #[command(flatten)]
        flags: Flags,
    },
    /// After restoring a PostgreSQL dump: start a new restore epoch, so that no older approval redeems
    Restored {
        #[command(flatten)]
        flags: Flags,
    },
}

#[derive(Subcommand)]
enum PersonCommand {
    /// Add a person; without a password, print a one-time sign-in link
    Add {
        #[arg(long)]
        email: String,
        #[arg(long)]
        name: String,
        /// Owner of the workspace: owns every site
        #[arg(long)]
        owner: bool,
        /// Read the password from standard input
        #[arg(long)]
        password_stdin: bool,
    },
    /// Print a one-time sign-in link for somebody who has an account
    Link {
        #[arg(long)]
        email: String,
    },
    /// Set somebody's password, read from standard input; it ends their sessions
    Password {
        #[arg(long)]
        email: String,
    },
    /// Everybody who has an account: e-mail address, name, owner of the workspace or not, disabled or not
    List,
    /// End somebody's sessions, decisions and agents' keys at once; never the last owner of the workspace
    Disable {
        #[arg(long)]
        email: String,
    },
    /// Let somebody who was disabled in again
    Enable {
        #[arg(long)]
        email: String,
    },
}

#[derive(Subcommand)]
enum SiteCommand {
    /// Make a site from a folder of Markdown with optional front matter
    Import {
        dir: PathBuf,
        #[arg(long)]
        slug: String,
        #[arg(long)]
        title: Option<String>,
    },
    /// Write a published version as static files that any web server serves
    Export {
        slug: String,
        #[arg(long)]
        version: Option<i64>,
        #[arg(long)]
        out: PathBuf,
    },
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Add an agent of a person, and print its first key once
    Add {
        #[arg(long)]
        name: String,
        /// E-mail address of the person who answers for it
        #[arg(long)]
        owner: String,
        /// Slug of a site it works on; may be repeated
        #[arg(long, required = true)]
        site: Vec<String>,
        /// A tool it may call; may be repeated; all of them without it
        #[arg(long)]
        tool: Vec<String>,
        /// When the key ends, like 30d; never without it
        #[arg(long, value_name = "TIME")]
        expires_in: Option<String>,
    },
    /// Print a further key for an agent that exists, as for a rotation; the others stay good until they are revoked
    Key {
        #[arg(long)]
        name: String,
        /// E-mail address of the person who answers for it
        #[arg(long)]
        owner: String,
        /// When the key ends, like 30d; never without it
        #[arg(long, value_name = "TIME")]
        expires_in: Option<String>,
    },
    /// Every agent with the person who answers for it, its sites, and the beginnings of its good keys
    List,
    /// End a key at once
    Revoke {
        /// The key, or as much of its beginning as the Studio shows
        key: String,
    },
}

#[derive(Subcommand)]
enum JournalCommand {
    /// JSON Lines, oldest first, chain by chain
    Export {
        /// Slug of one site
        #[arg(long)]
        site: Option<String>,
        /// RFC 3339 time
        #[arg(long)]
        since: Option<String>,
    },
}

impl Cloudhal {
    pub async fn run(self) -> Result<()> {
        if self.version {
            println!(
                "cloudhal {} (SQLite {})",
                env!("CARGO_PKG_VERSION"),
                Store::sqlite_version().await?
            );
            return Ok(());
        }
        match self.command.context("see `cloudhal --help`")? {
            Command::Serve { demo, flags } => serve(Config::load(flags)?, demo).await,
            Command::Mcp {
                person,
                allow_confirm_token,
                flags,
            } => mcp_here(Config::load(flags)?, person, allow_confirm_token).await,
            Command::Person { command, flags } => person(&open(flags).await?, command).await,
            Command::Site { command, flags } => site(&open(flags).await?, command).await,
            Command::Agent { command, flags } => agent(&open(flags).await?, command).await,
            Command::Verify { flags } => check(&open_there(flags).await?).await,
            Command::Journal { command, flags } => {
                export_journal(&open_there(flags).await?, command).await
            }
            Command::Backup { file, flags } => backup(&open_there(flags).await?, file).await,
            Command::Restored { flags } => restored(&open_there(flags).await?).await,
        }
    }
}

/// For a command that does one thing and ends.
async fn open(flags: Flags) -> Result<Engine> {
    open_config(&Config::load(flags)?, true).await
}

/// For a command that makes nothing where there is nothing.
async fn open_there(flags: Flags) -> Result<Engine> {
    let config = Config::load(flags)?;
    config.expect_database()?;
    open_config(&config, true).await
}

async fn open_config(config: &Config, patient: bool) -> Result<Engine> {
    let settings = Settings {
        live_url: config.live_url.clone(),
        approval_ttl: config.approval_ttl,
        patient,
        ..Settings::for_url(&config.public_url)
    };
    let secret = config.secret()?;
    Engine::open(&config.database_url, settings, secret)
        .await
        .context("DATABASE_URL: the database could not be opened")
}

fn refused(refusal: Refusal) -> anyhow::Error {
    anyhow!(refusal.message)
}

async fn serve(config: Config, with_demo: bool) -> Result<()> {
    start_log(&config.log);
    let stop = asked_to_stop()?;
    let server = Server::build(&config).await?;
    let engine = server.app.engine.clone();
    if config.database_url.contains(":memory:") {
        println!("This database is in memory: everything is forgotten when the server stops.");
    }
    let listener = tokio::net::TcpListener::bind(config.addr)
        .await
        .with_context(|| format!("CLOUDHAL_ADDR: cannot listen on {}", config.addr))?;
    if with_demo {
        let proof =
            cloudhal_domain::origin::prove(&config.public_url, None, Some(&config.public_url))
                .context("the demo could not publish")?;
        let demo = demo::fill(&engine, proof).await.map_err(refused)?;
        say(&[
            ("url", &config.public_url),
            ("sign-in", &demo.sign_in),
            ("agent-key", &demo.agent_key),
        ]);
    } else {
        say(&[("url", &config.public_url)]);
        if people::is_empty(&engine).await.map_err(refused)? {
            println!("Nobody has an account yet. Open this link to make yours:");
            say(&[(
                "set-up",
                &people::set_up_link(&engine).await.map_err(refused)?,
            )]);
        }
    }
    server.serve(listener, stop).await
}

/// Standard output belongs to the protocol; what there is to say goes to the log.
async fn mcp_here(config: Config, email: Option<String>, confirm_tokens: bool) -> Result<()> {
    start_log(&config.log);
    config.expect_database()?;
    let engine = open_config(&config, false).await?;
    let person = match email {
        Some(email) => somebody(&engine, "--person", &email).await?,
        None => only_owner(&engine).await?,
    };
    let stop = asked_to_stop()?;
    let beside = tokio::spawn(background::run(engine.clone()));
    tokio::select! {
        served = mcp::here(engine, &person, confirm_tokens) => served.context("standard input and output")?,
        // Standard input is read on a thread that nothing but a line or its end wakes: waiting for it would be for ever.
        () = stop => std::process::exit(0),
    }
    beside.abort();
    Ok(())
}

async fn only_owner(engine: &Engine) -> Result<Person> {
    let owners = people::workspace_owners(engine).await.map_err(refused)?;
    match owners.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            bail!("nobody owns this workspace yet: add yourself with `cloudhal person add --owner`")
        }
        several => bail!(
            "--person: {} people own this workspace; say for whom this is, as {}",
            several.len(),
            several[0].email()
        ),
    }
}

/// Each on its own line as `name: value`; flushed, since scripts wait for them.
fn say(lines: &[(&str, &str)]) {
    let mut out = std::io::stdout().lock();
    for (name, value) in lines {
        let _ = writeln!(out, "{name}: {value}");
    }
    let _ = out.flush();
}

fn start_log(filter: &str) {
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_default();
    // A second start, as in tests, keeps the first one's log.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
}

/// Listens from this call on: whoever starts us may stop us as soon as our first line is read.
#[cfg(unix)]
fn asked_to_stop() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn asked_to_stop() -> Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

async fn person(engine: &Engine, command: PersonCommand) -> Result<()> {
    let (email, name, owner, password_stdin) = match command {
        PersonCommand::Add {
            email,
            name,
            owner,
            password_stdin,
        } => (email, name, owner, password_stdin),
        PersonCommand::Link { email } => {
            let person = somebody(engine, "--email", &email).await?;
            let link = people::sign_in_link(engine, &person).await;
            say(&[("sign-in", &link.map_err(refused)?)]);
            return Ok(());
        }
        PersonCommand::Password { email } => {
            let person = somebody(engine, "--email", &email).await?;
            people::set_password(engine, &person, read_password()?)
                .await
                .map_err(refused)?;
            println!(
                "{} <{}> has a new password; sessions with the old one have ended.",
                person.name(),
                person.email()
            );
            return Ok(());
        }
        PersonCommand::List => return list_people(engine).await,
        PersonCommand::Disable { email } => return set_disabled(engine, &email, true).await,
        PersonCommand::Enable { email } => return set_disabled(engine, &email, false).await,
    };
    let password = password_stdin.then(read_password).transpose()?;
    let needs_link = password.is_none();
    let person = people::add(
        engine,
        NewPerson {
            email,
            name,
            workspace_owner: owner,
            password,
        },
    )
    .await
    .map_err(refused)?;
    println!("Added {} <{}>.", person.name(), person.email());
    if needs_link {
        say(&[(
            "sign-in",
            &people::sign_in_link(engine, &person)
                .await
                .map_err(refused)?,
        )]);
    }
    Ok(())
}

async fn list_people(engine: &Engine) -> Result<()> {
    for one in people::everybody(engine).await.map_err(refused)? {
        let owner = if one.workspace_owner { "owner" } else { "-" };
        let disabled = if one.disabled_at.is_some() {
            "disabled"
        } else {
            "-"
        };
        println!("{}\t{}\t{owner}\t{disabled}", one.email, one.name);
    }
    Ok(())
}

async fn set_disabled(engine: &Engine, email: &str, disabled: bool) -> Result<()> {
    let found = people::find(engine, email).await.map_err(refused)?;
    let account = found.ok_or_else(|| nobody("--email", email))?;
    let change = people::Change {
        disabled: Some(disabled),
        ..Default::default()
    };
    people::change(engine, &Steward::operator(), &account.id, change)
        .await
        .map_err(refused)?;
    let now = if disabled {
        "is disabled: signed out everywhere, and their agents' keys open nothing"
    } else {
        "is enabled; a link to sign in: `cloudhal person link`"
    };
    println!("{} <{}> {now}.", account.name, account.email);
    Ok(())
}

fn nobody(flag: &str, email: &str) -> anyhow::Error {
    anyhow!(
        "{flag}: nobody here has the e-mail address {email}; add them with `cloudhal person add`"
    )
}

fn read_password() -> Result<SecretString> {
    let mut text = String::new();
    std::io::stdin()
        .take(4096)
        .read_to_string(&mut text)
        .context("reading the password")?;
    Ok(SecretString::from(text.trim_end_matches(['\r', '\n'])))
}

/// A person by the e-mail address that a flag gave.
async fn somebody(engine: &Engine, flag: &str, email: &str) -> Result<Person> {
    let person = people::by_email(engine, email).await.map_err(refused)?;
    person.ok_or_else(|| nobody(flag, email))
}

fn key_end(engine: &Engine, expires_in: Option<String>) -> Result<Option<Timestamp>> {
    let Some(text) = expires_in else {
        return Ok(None);
    };
    let left = crate::config::parse_time("--expires-in", &text)?;
    Ok(Some(engine.now().plus(left)))
}

async fn site(engine: &Engine, command: SiteCommand) -> Result<()> {
    match command {
        SiteCommand::Import { dir, slug, title } => import_site(engine, dir, slug, title).await,
        SiteCommand::Export { slug, version, out } => {
            let pages = published::export(engine, &slug, version)
                .await
                .map_err(refused)?;
            let title = pages.title.clone();
            let report = export::write_site(&out, &title, pages.pages.into_iter())?;
            println!(
                "Wrote {} pages ({} bytes) to {}; {} old files removed.",
                report.pages,
                report.bytes,
                out.display(),
                report.removed
            );
            Ok(())
        }
    }
}

async fn import_site(
    engine: &Engine,
    dir: PathBuf,
    slug: String,
    title: Option<String>,
) -> Result<()> {
    let found = import::read_folder(&dir)?;
    let home = found
        .nodes
        .iter()
        .find(|node| node.path.is_empty())
        .map(|node| node.title.clone());
    let title = title.or(home).unwrap_or_else(|| slug.clone());
    let owner = people::workspace_owners(engine)
        .await
        .map_err(refused)?
        .into_iter()
        .next();
    let id = sites::create_site(engine, &slug, &title, owner.as_ref())
        .await
        .map_err(refused)?;
    let nodes = found.nodes.into_iter().map(new_node).collect();
    let by = owner.as_ref().map_or_else(Author::system, Author::person);
    let count = sites::fill(engine, &id, by, nodes).await.map_err(refused)?;
    println!("Imported {count} pages as “{title}”.");
    for skipped in &found.skipped {
        println!("skipped {}: {}", skipped.path, skipped.reason);
    }
    say(&[("site", id.as_str()), ("slug", &slug)]);
    Ok(())
}

fn new_node(node: import::ImportedNode) -> sites::NewNode {
    let mut fields = node.fields;
    if let Some(description) = node.description {
        fields.insert("description".into(), description.into());
    }
    let kind = match node.kind {
        import::ImportedKind::Page => "page",
        import::ImportedKind::Collection => "collection",
    };
    sites::NewNode {
        path: node.path,
        kind: kind.into(),
        title: node.title,
        position: node.order,
        body: node.body,
        fields,
    }
}

async fn agent(engine: &Engine, command: AgentCommand) -> Result<()> {
    match command {
        AgentCommand::Add {
            name,
            owner,
            site,
            tool,
            expires_in,
        } => {
            let person = somebody(engine, "--owner", &owner).await?;
            let mut sites: Vec<SiteId> = Vec::new();
            for slug in &site {
                let found = published::site_by_slug(engine, slug)
                    .await
                    .map_err(refused)?;
                sites.push(
                    found
                        .ok_or_else(|| anyhow!("--site: there is no site with the slug {slug}"))?,
                );
            }
            let expires_at = key_end(engine, expires_in)?;
            let (_, key) = agents::add(
                engine,
                &person,
                agents::NewAgent {
                    name,
                    sites,
                    tools: tool,
                    expires_at,
                },
            )
            .await
            .map_err(refused)?;
            println!("The key is shown this once. Keep it where the agent can read it.");
            say(&[("agent-key", &key)]);
        }
        AgentCommand::Key {
            name,
            owner,
            expires_in,
        } => {
            let person = somebody(engine, "--owner", &owner).await?;
            let expires_at = key_end(engine, expires_in)?;
            let key = agents::add_key(engine, &person, &name, expires_at).await;
            say(&[("agent-key", &key.map_err(refused)?)]);
        }
        AgentCommand::List => {
            for one in agents::everyone(engine).await.map_err(refused)? {
                println!("{one}");
            }
        }
        AgentCommand::Revoke { key } => {
            let agent = agents::revoke_by_prefix(engine, &key)
                .await
                .map_err(refused)?;
            println!(
                "Revoked a key of {agent}. Whatever it asked for can no longer be run with it."
            );
        }
    }
    Ok(())
}

async fn check(engine: &Engine) -> Result<()> {
    let report = verify::verify(engine).await?;
    if let Some(fault) = report.fault {
        bail!("does not agree: {fault}");
    }
    println!(
        "All agree: {} sites, {} journal chains.",
        report.sites, report.chains
    );
    Ok(())
}

async fn export_journal(engine: &Engine, command: JournalCommand) -> Result<()> {
    let JournalCommand::Export { site, since } = command;
    let chain = match &site {
        Some(slug) => Some(
            published::site_ever(engine, slug)
                .await
                .map_err(refused)?
                .ok_or_else(|| {
                    anyhow!(
                        "--site: there is no site with the slug or id {slug}, and there never was"
                    )
                })?,
        ),
        None => None,
    };
    let since = match since {
        Some(text) => serde_json::from_value(text.clone().into())
            .with_context(|| format!("--since: “{text}” is not an RFC 3339 time"))?,
        None => Timestamp(i64::MIN),
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    journal::export(engine, chain.as_ref().map(SiteId::as_str), since, |line| {
        writeln!(out, "{line}")
    })
    .await?;
    out.flush()?;
    Ok(())
}

async fn backup(engine: &Engine, file: PathBuf) -> Result<()> {
    if file.exists() {
        bail!("{} exists; a backup never overwrites", file.display());
    }
    // The copy takes its name only once it is stamped: one that is cut short is never taken for a backup.
    let folder = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => std::path::Path::new("."),
    };
    let place = tempfile::Builder::new()
        .prefix(".cloudhal-backup-")
        .tempdir_in(folder)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    let unstamped = place.path().join("copy.db");
    engine.store().backup(&unstamped).await?;
    let copy = Engine::open(
        &store::sqlite_url(&unstamped),
        engine.settings().clone(),
        cloudhal_engine::secret::Secret::random(),
    )
    .await?;
    background::start_epoch(&copy).await.map_err(refused)?;
    copy.store().close().await;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&unstamped, std::fs::Permissions::from_mode(0o600))?;
    }
    std::fs::hard_link(&unstamped, &file)
        .with_context(|| format!("cannot write {}; a backup never overwrites", file.display()))?;
    println!(
        "Wrote {}. No approval of before opens anything in it, nobody is signed in, and no sign-in link of before works.",
        file.display()
    );
    Ok(())
}

async fn restored(engine: &Engine) -> Result<()> {
    let voided = background::start_epoch(engine).await.map_err(refused)?;
    println!(
        "A new restore epoch has begun; {voided} open requests were voided. Everybody is signed out, and sign-in links made before open nothing."
    );
    println!(
        "Keys that were revoked and accounts that were disabled after the backup are as they were in it: look through `cloudhal agent list` and `cloudhal person list`, and end them again with `cloudhal agent revoke KEY` and `cloudhal person disable --email E`."
    );
    Ok(())
}
