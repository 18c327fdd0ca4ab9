//! `cargo xtask demo`: the whole story, with an agent that speaks MCP through a client that others wrote.
//!
//! 1. A fresh server on a fresh folder prints its address, a sign-in link for the person and a key for the agent.
//! 2. `end2end/demo-agent.mjs` edits a page, asks to publish, and waits for the person.
//! 3. The person decides in the browser. With `--unattended` the script signs in and approves as the person would.
//! 4. The agent repeats its call, and the change is live.
//!
//! It uses the debug build: the same product, built in a fraction of the time of a release.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::run;
use crate::server;
use crate::setup;
use crate::steps::heading;

const START_LIMIT: Duration = Duration::from_secs(30);

pub fn demo(arguments: &[String]) -> Result<()> {
    let unattended = match arguments {
        [] => false,
        [flag] if flag == "--unattended" => true,
        _ => bail!("`demo` takes --unattended or nothing"),
    };
    setup::for_building()?;
    setup::for_npm()?;
    server::debug()?;
    if unattended {
        play_unattended()
    } else {
        play()
    }
}

/// For tests, with the program that they have built.
pub fn play_unattended() -> Result<()> {
    let stage = Stage::set("127.0.0.1:0")?;
    stage
        .agent(true)
        .and_then(|mut agent| run::show(&mut agent))
}

fn play() -> Result<()> {
    let stage = Stage::set("127.0.0.1:3000")?;
    run::show(&mut stage.agent(false)?)?;
    println!(
        "\nThe server stays up for you to look around. Ctrl-C ends it and throws its data away."
    );
    while run::pause(Duration::from_secs(60)).is_ok() {}
    Ok(())
}

/// A server with the demo site, and what it said at its start.
struct Stage {
    server: Child,
    // Dropped after `server` has been stopped; removes the data.
    _data: TempDir,
    url: String,
    sign_in: String,
    agent_key: String,
}

impl Stage {
    fn set(address: &str) -> Result<Self> {
        heading("A fresh Cloudhal with a demo site");
        let data = tempfile::Builder::new()
            .prefix("cloudhal-demo-")
            .tempdir()?;
        let address = free_address(address)?;
        let mut command = run::command(server::debug_binary());
        command
            .args(["serve", "--demo"])
            .env_remove("DATABASE_URL")
            .env_remove("CLOUDHAL_PUBLIC_URL");
        command
            .env("CLOUDHAL_DATA_DIR", data.path())
            .env("CLOUDHAL_ADDR", &address);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(server_log()?);
        let mut server = run::spawn(&mut command)?;
        let lines = read_lines(&mut server);
        let mut stage = Self {
            server,
            _data: data,
            url: String::new(),
            sign_in: String::new(),
            agent_key: String::new(),
        };
        stage.listen(&lines)?;
        Ok(stage)
    }

    /// Reads `url:`, `sign-in:` and `agent-key:`, in any order.
    fn listen(&mut self, lines: &Receiver<String>) -> Result<()> {
        let end = Instant::now() + START_LIMIT;
        while self.url.is_empty() || self.sign_in.is_empty() || self.agent_key.is_empty() {
            if run::interrupted() {
                bail!("interrupted");
            }
            match lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => self.note(&line),
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(RecvTimeoutError::Timeout) => bail!(
                    "the server did not say where it is within {} s; {}",
                    START_LIMIT.as_secs(),
                    log_hint()
                ),
                Err(RecvTimeoutError::Disconnected) => bail!(
                    "the server ended before it said where it is; {}",
                    log_hint()
                ),
            }
        }
        Ok(())
    }

    fn note(&mut self, line: &str) {
        match line.trim().split_once(": ") {
            Some(("url", value)) => self.url = value.trim().to_owned(),
            Some(("sign-in", value)) => self.sign_in = value.trim().to_owned(),
            Some(("agent-key", value)) => self.agent_key = value.trim().to_owned(),
            _ => {}
        }
    }

    fn agent(&self, unattended: bool) -> Result<Command> {
        let script = run::root().join("end2end/demo-agent.mjs");
        if !script.is_file() {
            bail!("{} is missing", script.display());
        }
        heading("The story");
        let mut node = run::command("node");
        // By environment, not as arguments: those can be read by everybody on the machine.
        node.arg(script)
            .env("CLOUDHAL_URL", &self.url)
            .env("CLOUDHAL_SIGN_IN", &self.sign_in)
            .env("CLOUDHAL_AGENT_KEY", &self.agent_key);
        if unattended {
            node.arg("--unattended");
        }
        Ok(node)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        run::stop(&mut self.server, Signal::TERM, Duration::from_secs(5));
    }
}

/// The usual address if nobody sits there, otherwise any.
fn free_address(usual: &str) -> Result<String> {
    let listener = TcpListener::bind(usual)
        .or_else(|_| TcpListener::bind("127.0.0.1:0"))
        .context("no port is free on this machine")?;
    Ok(listener.local_addr()?.to_string())
}

/// Goes on reading to the end: a server whose standard output nobody reads would stop at some point.
fn read_lines(server: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(out) = server.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                // Once everything is known, nobody listens any more.
                let _ = sender.send(line);
            }
        });
    }
    receiver
}

fn server_log() -> Result<std::fs::File> {
    let folder = run::xtask_dir().join("log");
    std::fs::create_dir_all(&folder)?;
    Ok(std::fs::File::create(folder.join("demo-server.txt"))?)
}

fn log_hint() -> String {
    format!(
        "its log is {}",
        run::xtask_dir().join("log/demo-server.txt").display()
    )
}
