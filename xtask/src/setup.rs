//! Finding or installing what the commands need. Each step looks first and is quick when there is nothing to do; none
//! asks the network unless something is missing.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::run;
use crate::steps::{Done, step};
use crate::{debian, front, mcp, postgres, wasm_std};

/// For `cargo xtask setup`, `test` and `bench`.
pub fn everything() -> Result<()> {
    for_building()?;
    for_npm()?;
    step("rustfmt and clippy", linters)?;
    step("Python's MCP client", mcp::python_step)?;
    step("Chromium", chromium_step)?;
    step("PostgreSQL", postgres_step)
}

pub fn for_linting() -> Result<()> {
    step("wasm32 standard library", wasm_std::set_up)?;
    step("rustfmt and clippy", linters)
}

/// What a debug build needs. Somebody who only wants to look at Cloudhal gets neither a browser nor a database.
pub fn for_building() -> Result<()> {
    step("wasm32 standard library", wasm_std::set_up)?;
    step("wasm-bindgen", front::bindgen_step)
}

/// For `test mcp`: neither a browser nor a database.
pub fn for_mcp() -> Result<()> {
    for_building()?;
    for_npm()?;
    step("Python's MCP client", mcp::python_step)
}

/// What the demo's agent, other MCP clients, wasm-opt and the browser tests come from.
pub fn for_npm() -> Result<()> {
    step("npm packages", npm_packages)
}

fn npm_packages() -> Result<Done> {
    let end2end = run::root().join("end2end");
    let wanted = fs::read(end2end.join("package-lock.json"))
        .context("end2end/package-lock.json is missing")?;
    let stamp = end2end.join("node_modules/.cloudhal-lock.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(Done::There("end2end/node_modules".to_owned()));
    }
    check_node()?;
    let mut npm = run::command("npm");
    npm.current_dir(&end2end)
        .args(["ci", "--no-audit", "--no-fund"])
        .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    run::log(&mut npm, "npm-ci")
        .context("npm could not install them. Type `cd end2end && npm ci` to see for yourself")?;
    fs::write(&stamp, wanted)?;
    Ok(Done::Now(
        "installed by npm ci: Playwright, MCP clients and their conformance suite, axe, wasm-opt"
            .to_owned(),
    ))
}

fn check_node() -> Result<()> {
    const INSTEAD: &str = "Install Node 20 or newer, with npm, from https://nodejs.org";
    let version = run::output(run::command("node").arg("--version"))
        .with_context(|| format!("Node is missing. {INSTEAD}"))?;
    let major: u32 = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
        .unwrap_or(0);
    if major < 20 {
        bail!("Node here is {version}, which is too old. {INSTEAD}");
    }
    if run::find_program(&["npm"]).is_none() {
        bail!("npm is missing. {INSTEAD}");
    }
    Ok(())
}

fn linters() -> Result<Done> {
    let bin = wasm_std::sysroot()
        .context("rustc does not run")?
        .join("bin");
    let present = || {
        ["rustfmt", "cargo-fmt", "cargo-clippy", "clippy-driver"]
            .iter()
            .all(|tool| bin.join(tool).is_file())
    };
    if !present() {
        let mut rustup = run::command("rustup");
        rustup.args(["component", "add", "rustfmt", "clippy"]);
        run::log(&mut rustup, "rustup-component")
            .context("Type `rustup component add rustfmt clippy`")?;
    } else if wasm_clippy_is_there() {
        return Ok(Done::There(bin.display().to_string()));
    }
    if !wasm_clippy_is_there() {
        debian::install(
            &["rust-web-clippy"],
            "Without it, the browser part is not linted",
        )?;
    }
    Ok(Done::Now("installed".to_owned()))
}

/// Debian's compiler needs Debian's clippy; rustup's brings its own.
fn wasm_clippy_is_there() -> bool {
    !matches!(wasm_std::find(), Some(wasm_std::WasmStd::Debian { .. }))
        || PathBuf::from("/usr/bin/clippy-driver").is_file()
}

fn chromium_step() -> Result<Done> {
    if let Some(found) = chromium() {
        return Ok(Done::There(found.display().to_string()));
    }
    if let Some(named) = env::var_os("CHROMIUM") {
        bail!(
            "the CHROMIUM variable names {}, and there is no such file",
            named.display()
        );
    }
    debian::install(
        &["chromium"],
        "Install Chromium or Chrome, or name it in the CHROMIUM variable",
    )?;
    let found =
        chromium().context("the package is installed, but there is no `chromium` on the PATH")?;
    Ok(Done::Now(format!("installed, {}", found.display())))
}

pub fn chromium() -> Option<PathBuf> {
    match env::var_os("CHROMIUM") {
        Some(named) => Some(PathBuf::from(named)).filter(|file| file.is_file()),
        None => run::find_program(&[
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ]),
    }
}

fn postgres_step() -> Result<Done> {
    if let Some(found) = postgres::programs() {
        return Ok(Done::There(found.display().to_string()));
    }
    debian::install(
        &["postgresql"],
        "Install the PostgreSQL server, version 15 or newer; its `initdb` must be on the PATH",
    )?;
    let found =
        postgres::programs().context("the package is installed, but there is no `initdb`")?;
    Ok(Done::Now(format!("installed, {}", found.display())))
}
