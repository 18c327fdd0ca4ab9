//! A `cloudhal serve` process: started, killed, stopped, continued, limited; ended with its owner in any case.

use crate::{context::Context, http::Target, world::World};
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};

const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Past it a process that should have started or ended is a failure of the run, not slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a node differs from the usual one.
#[derive(Clone, Default)]
pub struct How {
    /// Another port than the public one.
    pub port: Option<u16>,
    pub database_url: Option<String>,
    pub failpoint: Option<String>,
    /// A write past the file size limit fails instead of ending the process.
    pub survives_file_size: bool,
    /// Nothing is written down; for a node that may not write files.
    pub silent: bool,
    pub user: Option<(u32, u32)>,
    /// Host and port that webhooks may go to.
    pub webhooks: Option<String>,
    /// Holds milliseconds that the process adds to the host's clock.
    pub clock: Option<PathBuf>,
}

pub struct Node {
    child: Child,
    pub target: Target,
    log: PathBuf,
    started: Instant,
}

impl Node {
    pub fn spawn(context: &Context, world: &World, how: How) -> Result<Self> {
        let port = how.port.unwrap_or(world.port);
        let target = world.target_at(port);
        let mut command = if how.survives_file_size {
            let mut shell = Command::new("sh");
            // What is ignored stays so through exec.
            shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
            shell.arg(&context.binary);
            shell
        } else {
            Command::new(&context.binary)
        };
        environment(&mut command, world, &how);
        command.args(["serve", "--addr", &target.addr]);
        let log = world.folder.join(format!("node-{port}.log"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if how.silent {
            command.stderr(Stdio::null());
        } else {
            command.stderr(OpenOptions::new().create(true).append(true).open(&log)?);
        }
        if let Some((user, group)) = how.user {
            use std::os::unix::process::CommandExt as _;
            command.uid(user).gid(group);
        }
        let started = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("starting {}", context.binary.display()))?;
        Ok(Self {
            child,
            target,
            log,
            started,
        })
    }

    /// Started and ready to serve.
    pub async fn start(context: &Context, world: &World, how: How) -> Result<Self> {
        let mut node = Self::spawn(context, world, how)?;
        node.ready().await?;
        Ok(node)
    }

    /// Waits until `/readyz` says so, and tells how long that took since the process was started.
    pub async fn ready(&mut self) -> Result<Duration> {
        loop {
            let ready = is_ready(&self.target).await;
            // Asked after it: whoever answered may be somebody else on that port.
            if ready && self.child.try_wait()?.is_none() {
                return Ok(self.started.elapsed());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!(
                    "cloudhal ended with {status} instead of serving; its last words:\n{}",
                    self.last_words()
                );
            }
            if self.started.elapsed() > PATIENCE {
                bail!("cloudhal was not ready within {} s", PATIENCE.as_secs());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits for a process that ends by itself.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if begun.elapsed() > PATIENCE {
                bail!("cloudhal did not end within {} s", PATIENCE.as_secs());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Asks it to end, as an init system does, and waits for that.
    pub async fn stop(mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        self.ended().await?;
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.pid(), signal)?)
    }

    /// Waits until the process is stopped as by SIGSTOP.
    pub async fn stopped(&self) -> Result<()> {
        let begun = Instant::now();
        while self.state()? != 'T' {
            if begun.elapsed() > PATIENCE {
                bail!("the process did not come to its stopping place");
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    fn state(&self) -> Result<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, rest) = stat.rsplit_once(')').context("/proc/…/stat")?;
        rest.trim_start().chars().next().context("/proc/…/stat")
    }

    /// Files that it writes may not grow beyond `bytes` from now on; `None` lifts that.
    pub fn limit_files(&self, bytes: Option<u64>) -> Result<()> {
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(Some(self.pid()), Resource::Fsize, limit)?;
        Ok(())
    }

    /// Files and connections that it has open.
    pub fn open_files(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.child.id()))?.count())
    }

    /// Resident memory in bytes.
    pub fn memory(&self) -> Result<u64> {
        memory_of(self.child.id())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Resident memory of a process in bytes.
pub fn memory_of(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    Ok(kib.context("VmRSS")? * 1024)
}

/// `cloudhal mcp` on a world's database, with pipes for what it says and hears.
pub fn mcp(context: &Context, world: &World, log: &Path) -> Result<tokio::process::Child> {
    let mut command = Command::new(&context.binary);
    environment(&mut command, world, &How::default());
    command.args(["mcp", "--person", "ada@example.com"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(OpenOptions::new().create(true).append(true).open(log)?);
    let mut command = tokio::process::Command::from(command);
    command
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("starting {}", context.binary.display()))
}

/// Runs one of the other commands on a world's database.
pub fn run(context: &Context, world: &World, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(&context.binary);
    environment(&mut command, world, &How::default());
    let output = command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("running cloudhal")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!(
            "`cloudhal {}` ended with {}: {said}{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(said)
}

fn environment(command: &mut Command, world: &World, how: &How) {
    let url = how
        .database_url
        .clone()
        .unwrap_or_else(|| world.database.url());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CLOUDHAL_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(&world.folder)
        .env("NO_COLOR", "1")
        .env("CLOUDHAL_DATA_DIR", &world.folder)
        .env("CLOUDHAL_SECRET_FILE", world.secret_file())
        .env("CLOUDHAL_PUBLIC_URL", world.public_url())
        .env("CLOUDHAL_LOG", "warn")
        .env("DATABASE_URL", url);
    if let Some(clock) = &how.clock {
        command.env("CLOUDHAL_TEST_CLOCK", clock);
    }
    if let Some(receiver) = &how.webhooks {
        command.env("CLOUDHAL_WEBHOOKS", "listed");
        command.env("CLOUDHAL_WEBHOOK_ALLOW", receiver);
    }
    if let Some(failpoint) = &how.failpoint {
        command.env("CLOUDHAL_FAILPOINT", failpoint);
    }
}

async fn is_ready(target: &Target) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(&target.addr).await.ok()?;
        let request = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.ok()?;
        let mut head = [0u8; "HTTP/1.1 200".len()];
        stream.read_exact(&mut head).await.ok()?;
        head.ends_with(b"200").then_some(())
    };
    ask.await.is_some()
}
