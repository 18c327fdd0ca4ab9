//! `cargo xtask watch`: the server runs while you edit.
//!
//! CSS needs nothing from here: a server with `CLOUDHAL_DEV=1` reads `style/` from disk and tells the page. For Rust, the
//! old server goes on until the new one has been built, so a mistake costs a message and not the page.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use rustix::process::Signal;

use crate::front::{self, Mode};
use crate::run;
use crate::server;
use crate::setup;
use crate::steps::heading;

const LOOK_EVERY: Duration = Duration::from_millis(300);
const SERVER_PATIENCE: Duration = Duration::from_secs(3);

/// What the browser part is made of, and what the server is made of.
const FRONT: [&str; 4] = ["domain", "app", "frontend", "Cargo.lock"];
const SERVER: [&str; 6] = [
    "domain",
    "engine",
    "app",
    "server",
    "migrations",
    "Cargo.lock",
];

pub fn watch(arguments: &[String]) -> Result<()> {
    setup::for_building()?;
    let mut seen = Look::now();
    server::debug()?;
    let mut running = Running::start(arguments)?;
    loop {
        run::pause(LOOK_EVERY)?;
        running.say_if_it_ended();
        let look = Look::now();
        if look == seen {
            continue;
        }
        let settled = settle(look)?;
        match rebuild(&seen, &settled) {
            Ok(()) => running.restart(arguments)?,
            Err(_) if run::interrupted() => return Ok(()),
            Err(error) => {
                eprintln!("\nNot rebuilt, the page shows the last version that worked: {error:#}")
            }
        }
        seen = settled;
    }
}

fn rebuild(before: &Look, after: &Look) -> Result<()> {
    if before.front != after.front {
        front::build(Mode::Debug)?;
    }
    if before.server != after.server {
        server::debug_server()?;
    }
    Ok(())
}

/// Waits for the end of a burst: editors and version control write many files at once.
fn settle(mut look: Look) -> Result<Look> {
    loop {
        run::pause(Duration::from_millis(100))?;
        let next = Look::now();
        if next == look {
            return Ok(look);
        }
        look = next;
    }
}

/// How the sources look: the newest change and the number of files, so that a deletion counts too.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    front: (SystemTime, usize),
    server: (SystemTime, usize),
}

impl Look {
    fn now() -> Self {
        Self {
            front: look_at(&FRONT),
            server: look_at(&SERVER),
        }
    }
}

fn look_at(parts: &[&str]) -> (SystemTime, usize) {
    parts
        .iter()
        .map(|part| look_into(&run::root().join(part)))
        .fold(NOTHING, together)
}

const NOTHING: (SystemTime, usize) = (SystemTime::UNIX_EPOCH, 0);

fn look_into(path: &Path) -> (SystemTime, usize) {
    if let Ok(entries) = fs::read_dir(path) {
        return entries
            .flatten()
            .map(|entry| look_into(&entry.path()))
            .fold(NOTHING, together);
    }
    // A file that has just gone is simply not counted.
    fs::metadata(path)
        .and_then(|facts| facts.modified())
        .map_or(NOTHING, |modified| (modified, 1))
}

fn together(one: (SystemTime, usize), other: (SystemTime, usize)) -> (SystemTime, usize) {
    (one.0.max(other.0), one.1 + other.1)
}

struct Running {
    server: Child,
    ended: bool,
}

impl Running {
    fn start(arguments: &[String]) -> Result<Self> {
        heading("cloudhal serve; Ctrl-C ends it");
        let mut command = run::command(server::debug_binary());
        command
            .arg("serve")
            .args(arguments)
            .env("CLOUDHAL_DEV", "1");
        Ok(Self {
            server: run::spawn(&mut command)?,
            ended: false,
        })
    }

    /// The demo fills a fresh database and refuses any other, so only the first start asks for it.
    fn restart(&mut self, arguments: &[String]) -> Result<()> {
        run::stop(&mut self.server, Signal::TERM, SERVER_PATIENCE);
        let arguments: Vec<String> = arguments
            .iter()
            .filter(|a| *a != "--demo")
            .cloned()
            .collect();
        *self = Self::start(&arguments)?;
        Ok(())
    }

    fn say_if_it_ended(&mut self) {
        if !self.ended && matches!(self.server.try_wait(), Ok(Some(_))) {
            self.ended = true;
            eprintln!("\nThe server has ended. It starts again after your next change.");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        run::stop(&mut self.server, Signal::TERM, SERVER_PATIENCE);
    }
}
