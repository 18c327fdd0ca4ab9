//! `cargo xtask torture`: the proof that approvals hold. The scenarios are in the crate `torture`; this builds them beside
//! the server that they torture, and starts them.

use anyhow::Result;

use crate::front::{self, Mode};
use crate::run;
use crate::server;
use crate::setup;
use crate::steps::heading;

/// `cargo xtask torture`: the arguments go to the program; `--release` among them builds both without debug assertions.
pub fn torture(arguments: &[String]) -> Result<()> {
    setup::for_building()?;
    front::build(Mode::Debug)?;
    heading("The server and its torture");
    let (release, rest): (Vec<&String>, Vec<&String>) = arguments
        .iter()
        .partition(|argument| *argument == "--release");
    let mut build = run::cargo(&[
        "build",
        "-p",
        "cloudhal-server",
        "-p",
        "cloudhal-torture",
        "--features",
        "cloudhal-server/test-hooks",
    ]);
    if !release.is_empty() {
        build.arg("--release");
    }
    run::show(&mut build)?;
    let folder = run::target_dir().join(if release.is_empty() {
        "debug"
    } else {
        "release"
    });
    heading("Torture");
    run::show(
        run::command(folder.join("cloudhal-torture"))
            .args(rest)
            .env("CLOUDHAL_BIN", folder.join("cloudhal")),
    )
}

/// The short form with the programs that are built already, for `cargo xtask test`.
pub fn short() -> Result<()> {
    let torture = run::target_dir().join("debug/cloudhal-torture");
    run::show(run::command(torture).env("CLOUDHAL_BIN", server::debug_binary()))
}
