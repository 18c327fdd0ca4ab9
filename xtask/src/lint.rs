//! Formatting and clippy. A warning is an error here, and only here: while you write, it stays a warning.

use std::process::Command;

use anyhow::{Result, bail};

use crate::front;
use crate::run;
use crate::setup;
use crate::steps::heading;
use crate::wasm_std::{self, WasmStd};

/// The crates that live on the server's side, with every feature that some build turns on. `cloudhal-frontend` is not
/// among them: it would bring `hydrate` into the same build as `ssr`.
pub const NATIVE: [&str; 12] = [
    "-p",
    "cloudhal-domain",
    "-p",
    "cloudhal-engine",
    "-p",
    "cloudhal-app",
    "-p",
    "cloudhal-server",
    "-p",
    "cloudhal-torture",
    "--features",
    "cloudhal-app/ssr,cloudhal-server/test-hooks",
];

pub fn lint() -> Result<()> {
    setup::for_linting()?;
    check()
}

/// All of them, even after a failure: one run should show everything there is to mend.
pub fn check() -> Result<()> {
    let mut native = run::cargo(&["clippy", "--all-targets"]);
    native.args(NATIVE).args(["--", "-D", "warnings"]);
    let mut xtask = run::cargo(&["clippy", "--all-targets", "-p", "xtask", "--all-features"]);
    xtask.args(["--", "-D", "warnings"]);
    let mut front = front_clippy()?;
    front.args(["--", "-D", "warnings"]);
    let lints = [
        ("formatting", run::cargo(&["fmt", "--all", "--check"])),
        ("clippy for xtask", xtask),
        ("clippy for the server's side", native),
        ("clippy for the browser's side", front),
    ];
    let mut failed = Vec::new();
    for (name, mut command) in lints {
        heading(name);
        if run::show(&mut command).is_err() {
            failed.push(name);
        }
        if run::interrupted() {
            bail!("interrupted");
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join(", "));
    }
    Ok(())
}

/// The lints must come from the compiler that has the wasm32 library. `cargo clippy` always takes rustup's, so Debian's is
/// started by its own name; it then calls cargo itself.
fn front_clippy() -> Result<Command> {
    let cargo = front::cargo("clippy")?;
    if !matches!(wasm_std::find(), Some(WasmStd::Debian { .. })) {
        return Ok(cargo);
    }
    let mut clippy = run::command("/usr/bin/cargo-clippy");
    clippy.args(cargo.get_args());
    for (key, value) in cargo.get_envs() {
        if let Some(value) = value {
            clippy.env(key, value);
        }
    }
    Ok(clippy)
}
