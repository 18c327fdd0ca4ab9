//! Formatting and clippy. A warning is an error here, and only here: while you write, it stays a warning.

use std::process::Command;

use anyhow::Result;

use crate::front;
use crate::run;
use crate::setup;
use crate::steps::heading;
use crate::wasm_std::{self, WasmStd};

/// The crates that live on the server's side, with every feature that some build turns on. `cloudhal-frontend` is not
/// among them: it would bring `hydrate` into the same build as `ssr`.
pub const NATIVE: [&str; 10] = [
    "-p",
    "cloudhal-domain",
    "-p",
    "cloudhal-engine",
    "-p",
    "cloudhal-app",
    "-p",
    "cloudhal-server",
    "--features",
    "cloudhal-app/ssr,cloudhal-server/test-hooks",
];

pub fn lint() -> Result<()> {
    setup::for_linting()?;
    check()
}

pub fn check() -> Result<()> {
    heading("Formatting");
    run::show(&mut run::cargo(&["fmt", "--all", "--check"]))?;
    heading("Clippy, the server's side");
    run::show(
        run::cargo(&["clippy", "--all-targets"])
            .args(NATIVE)
            .args(["--", "-D", "warnings"]),
    )?;
    heading("Clippy, xtask");
    run::show(&mut run::cargo(&[
        "clippy",
        "--all-targets",
        "-p",
        "xtask",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))?;
    heading("Clippy, the browser's side");
    run::show(front_clippy()?.args(["--", "-D", "warnings"]))
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
