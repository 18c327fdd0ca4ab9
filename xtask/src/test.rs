//! `cargo xtask test`: everything that has to hold, without a link-time-optimised build.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::demo;
use crate::front::{self, Mode};
use crate::lint;
use crate::mcp;
use crate::postgres::Postgres;
use crate::run;
use crate::server;
use crate::setup;
use crate::steps::{self, Step, heading, part};
use crate::torture;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Unit,
    Torture,
    Mcp,
    Browser,
    Demo,
}

pub fn test(arguments: &[String]) -> Result<()> {
    let (part, filters) = which(arguments)?;
    match part {
        Part::Mcp => setup::for_mcp()?,
        _ => setup::everything()?,
    }
    let mut steps = Vec::new();
    run_parts(part, filters, &mut steps)?;
    steps::summary(&steps);
    let failed: Vec<&str> = steps
        .iter()
        .filter(|step| !step.passed)
        .map(|step| step.name.as_str())
        .collect();
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    println!("\nAll of it passed.");
    Ok(())
}

fn which(arguments: &[String]) -> Result<(Part, &[String])> {
    let Some((first, filters)) = arguments.split_first() else {
        return Ok((Part::All, &[]));
    };
    let part = match first.as_str() {
        "unit" => Part::Unit,
        "torture" => Part::Torture,
        "mcp" => Part::Mcp,
        "browser" => Part::Browser,
        "demo" => Part::Demo,
        other => bail!(
            "there is no part `{other}`; say unit, torture, mcp, browser or demo, then the filters for its tests"
        ),
    };
    Ok((part, filters))
}

fn run_parts(only: Part, filters: &[String], steps: &mut Vec<Step>) -> Result<()> {
    let wants = |part| only == Part::All || only == part;
    if only == Part::All {
        part(steps, "Lint", lint::check);
        stop_if_interrupted()?;
    }
    let what = match only {
        Part::Mcp => server::debug,
        _ => build,
    };
    part(steps, "Build", what);
    if steps.last().is_some_and(|step| !step.passed) {
        // Tests of an older build would say nothing about this one.
        return Ok(());
    }
    let postgres = matches!(only, Part::All | Part::Unit | Part::Browser)
        .then(|| start_postgres(steps))
        .flatten();
    if wants(Part::Unit) {
        part(steps, "Unit, store and HTTP tests", || {
            unit(filters, postgres.as_ref())
        });
        stop_if_interrupted()?;
    }
    if wants(Part::Torture) {
        part(steps, "Torture, its short form", torture::short);
        stop_if_interrupted()?;
    }
    if wants(Part::Mcp) {
        part(steps, "MCP with clients of others", || mcp::test(filters));
        stop_if_interrupted()?;
    }
    if wants(Part::Browser) {
        part(steps, "Browser tests", || {
            browser(filters, postgres.as_ref())
        });
        stop_if_interrupted()?;
    }
    if wants(Part::Demo) {
        part(steps, "The demo, unattended", demo::play_unattended);
        stop_if_interrupted()?;
    }
    Ok(())
}

/// One build for everything that follows: the `cloudhal` program and the test programs in a single call. Separately,
/// they would differ in the features that dev-dependencies switch on, and cargo would compile half the tree twice.
fn build() -> Result<()> {
    front::build(Mode::Debug)?;
    heading("The server and its tests");
    run::show(run::cargo(&["build", "--lib", "--bins", "--tests"]).args(lint::NATIVE))
}

fn start_postgres(steps: &mut Vec<Step>) -> Option<Postgres> {
    let mut started = None;
    part(steps, "A PostgreSQL to throw away", || {
        let postgres = Postgres::start()?;
        println!("listening at {}", postgres.url());
        started = Some(postgres);
        Ok(())
    });
    started
}

fn unit(filters: &[String], postgres: Option<&Postgres>) -> Result<()> {
    let mut cargo = run::cargo(&["test", "--no-fail-fast"]);
    // Positional words are cargo's filter; `--` is the person's to write for the test program's own flags.
    cargo.args(lint::NATIVE).args(filters);
    surroundings(&mut cargo, postgres);
    let server = run::show(&mut cargo);
    if filters.is_empty() {
        run::show(&mut run::cargo(&["test", "-p", "xtask"]))?;
    }
    server
}

fn browser(filters: &[String], postgres: Option<&Postgres>) -> Result<()> {
    let end2end = run::root().join("end2end");
    let mut playwright = run::command("node");
    // Playwright by its own name: npx would stand between it and our signals.
    playwright
        .current_dir(&end2end)
        .arg("node_modules/@playwright/test/cli.js")
        .arg("test")
        .args(filters);
    surroundings(&mut playwright, postgres);
    let chromium =
        setup::chromium().context("Chromium is missing; `cargo xtask setup` says what to do")?;
    run::show(playwright.env("CHROMIUM", chromium))
}

fn surroundings(tests: &mut Command, postgres: Option<&Postgres>) {
    tests.env("CLOUDHAL_BIN", server::debug_binary());
    if let Some(postgres) = postgres {
        tests.env("TEST_POSTGRES_URL", postgres.url());
    }
}

fn stop_if_interrupted() -> Result<()> {
    if run::interrupted() {
        bail!("interrupted");
    }
    Ok(())
}
