//! Starting other programs, waiting for them, and leaving nothing behind.
//!
//! A first Ctrl-C only sets a flag. Every wait in `xtask` looks at it, stops the child it waits for, and returns an
//! error, so that the ordinary way out (`?` and `Drop`) also stops servers, databases and removes temporary folders.

use std::env;
use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const POLL: Duration = Duration::from_millis(25);
const LOG_TAIL_LINES: usize = 30;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

pub fn catch_signals() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))
            .context("could not listen for Ctrl-C")?;
    }
    Ok(())
}

pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Sleeps, but not through a Ctrl-C.
pub fn pause(duration: Duration) -> Result<()> {
    let end = Instant::now() + duration;
    while Instant::now() < end {
        if interrupted() {
            bail!("interrupted");
        }
        sleep(POLL.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Cargo's folder for the server, xtask itself and the logs; the person may have moved it.
pub fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(moved) => root().join(moved),
        None => root().join("target"),
    }
}

/// Stamps, logs and helpers of xtask's own.
pub fn xtask_dir() -> PathBuf {
    target_dir().join("xtask")
}

/// A program run from the workspace root, without the traces that `cargo run` leaves in our environment. Some build
/// scripts watch those variables, and would rebuild half the tree whenever a build comes once from here and once by hand.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (key, _) in env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO"
        {
            command.env_remove(&key);
        }
    }
    if let Some(path) = env::var_os("LD_LIBRARY_PATH") {
        let added_by_cargo = |entry: &PathBuf| {
            entry.starts_with(target_dir())
                || entry
                    .components()
                    .any(|part| part.as_os_str() == "toolchains")
        };
        let kept = env::join_paths(env::split_paths(&path).filter(|entry| !added_by_cargo(entry)));
        command.env("LD_LIBRARY_PATH", kept.unwrap_or_default());
    }
    command
}

pub fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = command("cargo");
    cargo.args(arguments);
    cargo
}

/// Runs a program that talks to the person itself, and fails if it fails.
pub fn show(command: &mut Command) -> Result<()> {
    command.stdin(Stdio::null());
    let mut child = spawn(command)?;
    let status = wait(&mut child)?;
    ensure_success(command, status)
}

/// Runs a program whose chatter goes to a log; while it runs the person sees the seconds pass, and the end of the log
/// if it fails.
pub fn log(command: &mut Command, name: &str) -> Result<()> {
    let path = xtask_dir().join("log").join(format!("{name}.txt"));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file =
        File::create(&path).with_context(|| format!("could not write {}", path.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    let start = Instant::now();
    let mut child = spawn(command)?;
    let status = wait_with(&mut child, || tick(start));
    ensure_success(command, status?).with_context(|| tail_of(&path))
}

/// What a program prints, or `None` where it is missing or fails.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Every child leads a group of its own, so that `stop` also reaches its children: cargo, for one, would leave a test
/// program running.
pub fn spawn(command: &mut Command) -> Result<Child> {
    command
        .process_group(0)
        .spawn()
        .with_context(|| format!("could not start `{}`", words(command)))
}

pub fn wait(child: &mut Child) -> Result<ExitStatus> {
    wait_with(child, || ())
}

fn wait_with(child: &mut Child, mut meanwhile: impl FnMut()) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            if interrupted() {
                bail!("interrupted");
            }
            return Ok(status);
        }
        if interrupted() {
            stop(child, Signal::TERM, Duration::from_secs(10));
            bail!("interrupted");
        }
        meanwhile();
        sleep(POLL);
    }
}

/// Ends a child that we started, and what it started: asks first, and kills only what does not listen.
pub fn stop(child: &mut Child, signal: Signal, patience: Duration) {
    // A reaped child's number may belong to somebody else by now.
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // An error from here on means that it has just ended.
    let tell = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = tell(signal);
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        sleep(POLL);
    }
    let _ = tell(Signal::KILL);
    let _ = child.wait();
}

/// The first of these programs on the `PATH`.
pub fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// Writes a file only if that changes it: an untouched time stamp keeps others from rebuilding.
pub fn write_if_changed(path: &Path, content: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| format!("could not write {}", path.display()))?;
    Ok(true)
}

fn ensure_success(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` ended with {status}", words(command));
    }
    Ok(())
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(
        command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned()),
    );
    words.join(" ")
}

fn tick(start: Instant) {
    let mut out = std::io::stdout();
    if out.is_terminal() {
        // Only a picture of progress: a terminal that went away must not stop the work.
        let _ = write!(out, "\r  {:>4} s … ", start.elapsed().as_secs());
        let _ = out.flush();
    }
}

fn tail_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n    ");
    format!(
        "its last words (all of them: {}):\n    {tail}\n ",
        path.display()
    )
}
