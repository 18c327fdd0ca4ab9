//! One line per step: what it is, what was done, how long it took.

use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What a step has to say when it is done.
pub enum Done {
    /// Nothing had to be done.
    There(String),
    /// Something was installed, built or checked.
    Now(String),
}

/// A finished step, for a summary at the end.
pub struct Step {
    pub name: String,
    pub took: Duration,
    pub passed: bool,
}

/// Runs a step and says how it went. The announcement comes first, so that a long step is never a silent one.
pub fn step(name: &str, work: impl FnOnce() -> Result<Done>) -> Result<()> {
    let start = Instant::now();
    if stdout().is_terminal() {
        print!("         … {name}");
        // Only a picture of progress.
        let _ = stdout().flush();
    }
    let done = work().with_context(|| format!("{name}, after {}", seconds(start.elapsed())));
    if stdout().is_terminal() {
        print!("\r\x1b[K");
    }
    let took = seconds(start.elapsed());
    match done? {
        Done::There(what) => println!("{took:>8}  {name}: already there ({what})"),
        Done::Now(what) => println!("{took:>8}  {name}: {what}"),
    }
    Ok(())
}

/// Says that something long begins, for a program that prints its own progress.
pub fn heading(text: &str) {
    println!("\n── {text}");
}

/// Runs one part of a longer run under a heading; the run goes on after a failure and fails at the end.
pub fn part(steps: &mut Vec<Step>, name: &str, work: impl FnOnce() -> Result<()>) {
    heading(name);
    let start = Instant::now();
    let result = work();
    if let Err(error) = &result {
        eprintln!("{name}: {error:#}");
    }
    steps.push(Step {
        name: name.to_owned(),
        took: start.elapsed(),
        passed: result.is_ok(),
    });
}

pub fn summary(steps: &[Step]) {
    heading("Summary");
    for step in steps {
        let verdict = if step.passed { "passed" } else { "FAILED" };
        println!("{:>8}  {verdict}  {}", seconds(step.took), step.name);
    }
}

pub fn seconds(took: Duration) -> String {
    let seconds = took.as_secs_f64();
    if seconds < 90.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{}m {:02}s", took.as_secs() / 60, took.as_secs() % 60)
    }
}
