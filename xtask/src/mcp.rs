//! The MCP door proved with software of others: the protocol's own conformance suite, and clients as people use them. Both start
//! the debug build themselves, on free ports and fresh folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::debian;
use crate::run;
use crate::server;
use crate::steps::Done;

/// What is to be installed, to the version of each package.
const REQUIREMENTS: &str = "end2end/mcp/requirements.txt";

/// The suite and the clients; a filter names clients (`end2end/mcp/clients.mjs`) and leaves the suite out.
pub fn test(filters: &[String]) -> Result<()> {
    if filters.is_empty() {
        play("conformance.mjs", &[])?;
    }
    play("clients.mjs", filters)
}

fn play(script: &str, arguments: &[String]) -> Result<()> {
    let mut node = run::command(newer_node()?);
    node.arg(run::root().join("end2end/mcp").join(script))
        .args(arguments)
        .env("CLOUDHAL_BIN", server::debug_binary())
        .env("CLOUDHAL_PYTHON", python());
    run::show(&mut node)
}

/// The suite and the Inspector need a newer Node than the rest; npm brings it.
fn newer_node() -> Result<PathBuf> {
    let node = run::root().join("end2end/node_modules/node/bin/node");
    if !node.is_file() {
        bail!(
            "{} is missing: npm did not run the install script of its package `node`, which brings Node 22. Type `cd end2end && npm ci` to see why",
            node.display()
        );
    }
    Ok(node)
}

fn environment() -> PathBuf {
    run::xtask_dir().join("mcp-python")
}

fn python() -> PathBuf {
    environment().join("bin/python")
}

/// For `setup`: Python's MCP client, in a virtual environment of its own.
pub fn python_step() -> Result<Done> {
    let wanted = fs::read(run::root().join(REQUIREMENTS))
        .with_context(|| format!("{REQUIREMENTS} is missing"))?;
    let stamp = environment().join("cloudhal-requirements.txt");
    // An environment names the Python that made it, which may be gone by now.
    let runs = || run::output(run::command(python()).args(["-c", "import mcp"])).is_some();
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) && runs() {
        return Ok(Done::There(environment().display().to_string()));
    }
    make_environment(&environment())?;
    let mut pip = run::command(python());
    pip.args(["-m", "pip", "install", "--disable-pip-version-check", "-r"])
        .arg(REQUIREMENTS);
    run::log(&mut pip, "mcp-python-install").with_context(|| {
        format!("pip could not install {REQUIREMENTS}; `cargo xtask test mcp` needs all of it")
    })?;
    fs::write(&stamp, wanted)?;
    Ok(Done::Now(
        "installed by pip: Python's MCP client".to_owned(),
    ))
}

fn make_environment(folder: &Path) -> Result<()> {
    const INSTEAD: &str = "Install Python 3.10 or newer with its venv module";
    let make = || {
        let mut venv = run::command("python3");
        venv.args(["-m", "venv", "--clear"]).arg(folder);
        run::log(&mut venv, "mcp-python-venv")
    };
    if make().is_err() {
        debian::install(&["python3", "python3-venv"], INSTEAD)?;
        make().context(INSTEAD)?;
    }
    Ok(())
}
