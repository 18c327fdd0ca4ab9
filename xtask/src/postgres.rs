//! A PostgreSQL that lives as long as a run: its own folder, its own port, loopback only; durable only where that is measured.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::run;

const START_LIMIT: Duration = Duration::from_secs(60);

pub struct Postgres {
    server: Child,
    // Dropped after `server` has been stopped; removes the data.
    folder: TempDir,
    account: Account,
    programs: PathBuf,
    settings: &'static [&'static str],
    port: u16,
}

/// What a test does not wait for: it throws the data away.
const NOT_DURABLE: &[&str] = &[
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
];

impl Postgres {
    pub fn start() -> Result<Self> {
        Self::start_with(NOT_DURABLE)
    }

    /// One that waits for its disk, as an operator's does.
    pub fn durable() -> Result<Self> {
        Self::start_with(&[])
    }

    fn start_with(settings: &'static [&'static str]) -> Result<Self> {
        let programs =
            programs().context("PostgreSQL is missing; `cargo xtask setup` says what to do")?;
        let account = Account::for_server()?;
        let folder = tempfile::Builder::new()
            .prefix("cloudhal-postgres-")
            .tempdir()?;
        account.own(folder.path())?;
        let data = folder.path().join("data");
        run::log(
            account
                .command(&programs.join("initdb"))
                .args([
                    "-U",
                    "postgres",
                    "-A",
                    "trust",
                    "-E",
                    "UTF8",
                    "--locale=C",
                    "--no-sync",
                    "-D",
                ])
                .arg(&data),
            "postgres-initdb",
        )?;
        let port = free_port()?;
        let server = start_server(&account, &programs, &data, port, settings, None)?;
        let mut postgres = Self {
            server,
            folder,
            account,
            programs,
            settings,
            port,
        };
        postgres.wait_until_ready()?;
        let mut createdb = postgres.client("createdb");
        run::log(createdb.arg("cloudhal"), "postgres-createdb")?;
        Ok(postgres)
    }

    /// Tests make databases of their own from this one.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/cloudhal", self.port)
    }

    /// Ends it as a crash does (SIGQUIT, its immediate shutdown), and starts it again on the same data and port.
    pub fn crash_and_restart(&mut self) -> Result<()> {
        run::stop(&mut self.server, Signal::QUIT, Duration::from_secs(10));
        let data = self.folder.path().join("data");
        self.server = start_server(
            &self.account,
            &self.programs,
            &data,
            self.port,
            self.settings,
            None,
        )?;
        self.wait_until_ready()
    }

    /// Ends it in order and starts it again, so that none of its files can grow past `bytes`; `None` lifts that.
    pub fn restart_with_room(&mut self, bytes: Option<u64>) -> Result<()> {
        run::stop(&mut self.server, Signal::INT, Duration::from_secs(30));
        let data = self.folder.path().join("data");
        self.server = start_server(
            &self.account,
            &self.programs,
            &data,
            self.port,
            self.settings,
            bytes,
        )?;
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let end = Instant::now() + START_LIMIT;
        while run::output(self.client("pg_isready").arg("-q")).is_none() {
            if let Some(status) = self.server.try_wait()? {
                bail!(
                    "PostgreSQL ended with {status} instead of starting; see {}",
                    server_log().display()
                );
            }
            if Instant::now() > end {
                bail!(
                    "PostgreSQL did not start within {} s; see {}",
                    START_LIMIT.as_secs(),
                    server_log().display()
                );
            }
            run::pause(Duration::from_millis(50))?;
        }
        Ok(())
    }

    /// One of PostgreSQL's own programs, told where this server is.
    pub fn client(&self, name: &str) -> Command {
        let mut client = run::command(self.programs.join(name));
        client
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p"])
            .arg(self.port.to_string());
        client
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // QUIT is PostgreSQL's immediate shutdown: nothing here is worth a checkpoint.
        run::stop(&mut self.server, Signal::QUIT, Duration::from_secs(10));
    }
}

/// The folder with `initdb` and its companions. Debian keeps it off the `PATH`, one per version; the newest wins.
pub fn programs() -> Option<PathBuf> {
    // Followed to its end: a link to one program does not have the others beside it.
    let on_path = run::find_program(&["initdb"])
        .and_then(|initdb| Some(initdb.canonicalize().ok()?.parent()?.to_path_buf()));
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let debian = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    let newest = debian
        .filter(|(_, bin)| bin.join("initdb").is_file())
        .max()
        .map(|(_, bin)| bin);
    on_path.or(newest)
}

/// PostgreSQL refuses to run as root, so root lends it the account that its package made.
struct Account {
    other: Option<(u32, u32)>,
}

impl Account {
    fn for_server() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { other: None });
        }
        let accounts = fs::read_to_string("/etc/passwd").context("could not read /etc/passwd")?;
        let other = ["postgres", "nobody"]
            .iter()
            .find_map(|name| ids_of(&accounts, name));
        Ok(Self {
            other: Some(other.context(
                "PostgreSQL cannot run as root, and there is no account `postgres` or `nobody`",
            )?),
        })
    }

    fn own(&self, folder: &Path) -> Result<()> {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        if let Some((user, group)) = self.other {
            chown(folder, Some(user), Some(group))?;
        }
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = run::command(program);
        // The other account may not be allowed into the workspace's folder.
        command.current_dir("/");
        if let Some((user, group)) = self.other {
            command.uid(user).gid(group);
        }
        command
    }
}

fn ids_of(accounts: &str, name: &str) -> Option<(u32, u32)> {
    let line = accounts
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn start_server(
    account: &Account,
    programs: &Path,
    data: &Path,
    port: u16,
    settings: &[&str],
    file_bytes_max: Option<u64>,
) -> Result<Child> {
    let always = [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "max_connections=200",
    ];
    let program = programs.join("postgres");
    let mut server = match file_bytes_max {
        None => account.command(&program),
        Some(bytes) => {
            // The shell's limit is in blocks of 512 bytes; a process that is not ours could not be limited later.
            let mut shell = account.command(Path::new("sh"));
            let limit = format!("ulimit -f {}; exec \"$0\" \"$@\"", bytes / 512);
            shell.args(["-c", &limit]).arg(&program);
            shell
        }
    };
    server.arg("-D").arg(data).args(["-p", &port.to_string()]);
    for setting in always.iter().chain(settings) {
        server.args(["-c", setting]);
    }
    let log = fs::File::create(server_log())?;
    run::spawn(
        server
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log),
    )
}

fn server_log() -> PathBuf {
    run::xtask_dir().join("log/postgres.txt")
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::ids_of;

    #[test]
    fn reads_an_account_by_its_whole_name() {
        let accounts = "root:x:0:0::/root:/bin/sh\npostgres-old:x:7:8::/:/bin/sh\npostgres:x:101:104::/:/bin/sh\n";
        assert_eq!(ids_of(accounts, "postgres"), Some((101, 104)));
        assert_eq!(ids_of(accounts, "post"), None);
    }
}
