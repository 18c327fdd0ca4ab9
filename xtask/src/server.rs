//! Building the two halves together, and running the result.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::front::{self, Mode};
use crate::run;
use crate::setup;
use crate::steps::heading;

/// `cargo xtask build`: one file that runs from any folder.
pub fn build(arguments: &[String]) -> Result<()> {
    let binary = match arguments {
        [] => release()?,
        [flag] if flag == "--debug" => {
            setup::for_building()?;
            debug()?;
            debug_binary()
        }
        _ => bail!("`build` takes --debug or nothing"),
    };
    println!("\nBuilt {}", binary.display());
    Ok(())
}

/// `cargo xtask serve`: the arguments go to `cloudhal serve`.
pub fn serve(arguments: &[String]) -> Result<()> {
    setup::for_building()?;
    debug()?;
    heading("cloudhal serve");
    run::show(run::command(debug_binary()).arg("serve").args(arguments))
}

/// The debug front and a debug server with the hooks that tests use.
pub fn debug() -> Result<()> {
    front::build(Mode::Debug)?;
    debug_server()
}

pub fn debug_server() -> Result<()> {
    heading("The server");
    run::show(&mut run::cargo(&[
        "build",
        "-p",
        "cloudhal-server",
        "--features",
        "test-hooks",
    ]))
}

pub fn debug_binary() -> PathBuf {
    run::target_dir().join("debug/cloudhal")
}

fn release() -> Result<PathBuf> {
    setup::for_building()?;
    setup::for_npm()?;
    // The server embeds what the front leaves in target/site, so the front comes first.
    front::build(Mode::Release)?;
    heading("The server");
    run::show(&mut run::cargo(&[
        "build",
        "--release",
        "-p",
        "cloudhal-server",
    ]))?;
    Ok(run::target_dir().join("release/cloudhal"))
}
