//! The `cloudhal` binary in a folder of its own, as an operator runs it.

use super::{Database, Value};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

pub struct Operator {
    folder: tempfile::TempDir,
    settings: Vec<(String, String)>,
}

/// What a run said, and whether it was content.
pub struct Ran {
    pub ok: bool,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// The value of a `name: value` line.
    #[track_caller]
    pub fn said(&self, name: &str) -> String {
        let start = format!("{name}: ");
        let line = self.out.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no {name} in {} {}", self.out, self.err))
            .to_owned()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            ok: output.status.success(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Operator {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            settings: Vec::new(),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Nothing of the machine's own settings reaches the program.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cloudhal"));
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CLOUDHAL_") || text == "DATABASE_URL" {
                command.env_remove(&name);
            }
        }
        command
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .envs(self.settings.iter().map(|(name, value)| (name, value)))
            .args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .into()
    }

    #[track_caller]
    pub fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert!(ran.ok, "{arguments:?}: {} {}", ran.out, ran.err);
        ran
    }

    /// It says no with these words, and changes nothing that is looked at here.
    #[track_caller]
    pub fn refused(&self, arguments: &[&str], words: &str) {
        let ran = self.run(arguments);
        assert!(!ran.ok, "{arguments:?}: {}", ran.out);
        assert!(ran.err.contains(words), "{arguments:?} says: {}", ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that refuses early does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    pub fn database(&self) -> PathBuf {
        self.path("data/cloudhal.db")
    }

    /// SQL by hand on a database file that nobody serves.
    pub async fn sql(&self, file: &Path, statement: &str) {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("cloudhal.db");
        let log = |file: &Path| PathBuf::from(format!("{}-wal", file.display()));
        std::fs::copy(file, &work).unwrap();
        let _ = std::fs::copy(log(file), log(&work));
        let database = Database::Sqlite { folder };
        database.try_sql(statement).await.unwrap();
        // The last connection that closes a database folds its log into it.
        assert!(!log(&work).exists());
        std::fs::copy(&work, file).unwrap();
        for ending in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{ending}", file.display()));
        }
    }

    /// Starts it on a free port, and waits until it says that it serves.
    pub fn serve(&self, arguments: &[&str]) -> Serving {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        drop(listener);
        let errors = std::fs::File::create(self.path("stderr.log")).unwrap();
        let mut command = self.command(&[&["serve"], arguments].concat());
        command
            .env("CLOUDHAL_ADDR", &addr)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let wanted: &[&str] = match arguments.contains(&"--demo") {
            true => &["url", "sign-in", "agent-key"],
            false => &["url"],
        };
        let mut said = Vec::new();
        while said.len() < wanted.len() {
            let mut line = String::new();
            let read = out.read_line(&mut line).unwrap();
            assert!(
                read > 0,
                "it ended: {}",
                std::fs::read_to_string(self.path("stderr.log")).unwrap()
            );
            if let Some((name, value)) = line.trim().split_once(": ")
                && wanted.contains(&name)
            {
                said.push((name.to_owned(), value.to_owned()));
            }
        }
        Serving {
            child,
            said,
            out: Some(out),
            log: self.path("stderr.log"),
        }
    }
}

pub struct Serving {
    child: Child,
    said: Vec<(String, String)>,
    out: Option<BufReader<std::process::ChildStdout>>,
    log: PathBuf,
}

impl Serving {
    pub fn said(&self, name: &str) -> &str {
        &self.said.iter().find(|(known, _)| known == name).unwrap().1
    }

    pub fn url(&self) -> &str {
        self.said("url")
    }

    /// Asks it to stop, as an init system does, and gives everything that it printed and logged.
    pub fn stop(mut self) -> (String, String) {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(self.child.wait().unwrap().success());
        let mut out = String::new();
        self.out.take().unwrap().read_to_string(&mut out).unwrap();
        (out, std::fs::read_to_string(&self.log).unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One call to a served binary, with a key.
pub async fn call(url: &str, key: &str, tool: &str, body: Value) -> super::Seen {
    let request = reqwest::Client::new()
        .post(format!("{url}/tools/{tool}"))
        .bearer_auth(key);
    super::Seen::of(request.json(&body)).await
}
