//! `cargo xtask mutate [NAME…]`: breaks one guard at a time in a copy of the tree, and looks whether a named test turns red.
//!
//! A test that has never been red proves little. The table ([`table`]) says what is broken, and which test has to notice; a
//! mutation that survives, that no longer compiles or whose text is gone fails the command. Slow: a build of the engine's
//! suite for each.

mod table;
mod tree;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::postgres::Postgres;
use crate::run;
use crate::steps::{heading, seconds};
use table::{MUTATIONS, Mutation};
use tree::Tree;

/// A build or a run that takes longer hangs; the very first build takes its time.
const LIMIT: Duration = Duration::from_secs(3600);

/// What became of one mutation.
struct Outcome {
    mutation: &'static Mutation,
    took: Duration,
    verdict: Verdict,
}

enum Verdict {
    /// The tests that turned red.
    Caught(Vec<String>),
    Survived(String),
}

pub fn mutate(names: &[String]) -> Result<()> {
    let chosen = chosen(names)?;
    let tree = Tree::copied(&run::root(), &folder().join("tree"))?;
    let postgres = Postgres::start()?;
    let suite = Suite {
        tree: &tree,
        postgres: &postgres,
    };
    heading("As it is: every named test has to be green");
    suite.is_green(&chosen)?;
    let mut outcomes = Vec::new();
    for mutation in chosen {
        let start = Instant::now();
        let verdict = suite.verdict(mutation)?;
        let took = start.elapsed();
        let said = match &verdict {
            Verdict::Caught(_) => "caught",
            Verdict::Survived(_) => "SURVIVED",
        };
        println!("{:>8}  {said}  {}", seconds(took), mutation.name);
        outcomes.push(Outcome {
            mutation,
            took,
            verdict,
        });
    }
    heading("Mutations");
    print!("{}", as_table(&outcomes));
    let survived = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.verdict, Verdict::Survived(_)))
        .count();
    let total: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    println!(
        "\n{} mutations in {}, {survived} survived.",
        outcomes.len(),
        seconds(total)
    );
    if survived > 0 {
        bail!("{survived} of {} mutations survived", outcomes.len());
    }
    Ok(())
}

fn folder() -> PathBuf {
    run::target_dir().join("mutate")
}

fn chosen(names: &[String]) -> Result<Vec<&'static Mutation>> {
    if names.is_empty() {
        return Ok(MUTATIONS.iter().collect());
    }
    let known = |name: &String| {
        let found = MUTATIONS.iter().find(|mutation| mutation.name == name);
        found.with_context(|| {
            let all: Vec<&str> = MUTATIONS.iter().map(|mutation| mutation.name).collect();
            format!(
                "there is no mutation `{name}`; there are: {}",
                all.join(", ")
            )
        })
    };
    names.iter().map(known).collect()
}

/// The engine's suite, built and run in the copy.
struct Suite<'t> {
    tree: &'t Tree,
    postgres: &'t Postgres,
}

impl Suite<'_> {
    fn is_green(&self, mutations: &[&Mutation]) -> Result<()> {
        self.build().context("the tree does not compile as it is")?;
        let mut filters: Vec<&str> = mutations.iter().flat_map(|m| m.tests).copied().collect();
        filters.sort_unstable();
        filters.dedup();
        let (_, said) = self.run(&filters)?;
        let red = red(&said);
        if !red.is_empty() {
            bail!("red without any mutation: {}", red.join(", "));
        }
        let missing: Vec<&str> = filters
            .into_iter()
            .filter(|filter| !said.contains(&format!("test {filter}::")))
            .collect();
        if !missing.is_empty() {
            bail!("there is no such test: {}", missing.join(", "));
        }
        Ok(())
    }

    fn verdict(&self, mutation: &Mutation) -> Result<Verdict> {
        let broken = self.tree.broken_by(mutation)?;
        let verdict = self.verdict_on_broken(mutation);
        broken.mend()?;
        verdict
    }

    fn verdict_on_broken(&self, mutation: &Mutation) -> Result<Verdict> {
        if let Err(error) = self.build() {
            if run::interrupted() {
                return Err(error);
            }
            return Ok(Verdict::Survived(format!("does not compile: {error:#}")));
        }
        let (ended, said) = self.run(mutation.tests)?;
        let red = red(&said);
        Ok(match (ended, red.is_empty()) {
            (false, true) => Verdict::Survived("its tests hang".into()),
            (true, true) => Verdict::Survived("its tests stay green".into()),
            (_, false) if !said.contains(mutation.says) => Verdict::Survived(format!(
                "red, but no test says “{}”: {}",
                mutation.says,
                red.join(", ")
            )),
            (_, false) => Verdict::Caught(red),
        })
    }

    fn build(&self) -> Result<()> {
        let (_, passed, said) = self.cargo(&["--no-run"], "build")?;
        if !passed {
            let error = said.lines().find(|line| line.starts_with("error"));
            bail!("{}", error.unwrap_or("cargo failed"));
        }
        Ok(())
    }

    /// Whether they ended by themselves, and what they said.
    fn run(&self, filters: &[&str]) -> Result<(bool, String)> {
        let (ended, _, said) = self.cargo(&[&["--"], filters].concat(), "run")?;
        Ok((ended, said))
    }

    fn cargo(&self, more: &[&str], name: &str) -> Result<(bool, bool, String)> {
        let mut cargo = run::cargo(&["test", "-p", "cloudhal-engine", "--test", "it"]);
        cargo
            .args(more)
            .current_dir(&self.tree.folder)
            .env("CARGO_TARGET_DIR", folder().join("build"))
            .env("TEST_POSTGRES_URL", self.postgres.url());
        to_its_end(&mut cargo, &folder().join(format!("{name}.txt")))
    }
}

/// Runs a program, its words going to a file: whether it ended in time, whether it was content, and the words.
fn to_its_end(command: &mut Command, log: &Path) -> Result<(bool, bool, String)> {
    let file = File::create(log).with_context(|| format!("could not write {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    let mut child = run::spawn(command)?;
    let end = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if run::interrupted() || Instant::now() > end {
            run::stop(&mut child, Signal::TERM, Duration::from_secs(10));
            break None;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if run::interrupted() {
        bail!("interrupted");
    }
    let passed = status.is_some_and(|status| status.success());
    Ok((status.is_some(), passed, fs::read_to_string(log)?))
}

/// The tests that failed, each once, as `module::name` and the engines on which it did.
fn red(said: &str) -> Vec<String> {
    let mut red: Vec<String> = said
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(str::to_owned)
        .collect();
    red.sort();
    red
}

/// As Markdown, for `docs/mutations.md`.
fn as_table(outcomes: &[Outcome]) -> String {
    let mut table = String::from("| mutation | what is broken | caught by |\n|---|---|---|\n");
    for outcome in outcomes {
        let by = match &outcome.verdict {
            Verdict::Caught(red) => shortened(red),
            Verdict::Survived(why) => format!("**nothing**: {why}"),
        };
        let Mutation {
            name, what, says, ..
        } = outcome.mutation;
        let by = match *says {
            "" => by,
            says => format!("{by}, which says “{says}”"),
        };
        // Writing to a String does not fail.
        let _ = writeln!(table, "| `{name}` | {what} | {by} |");
    }
    table
}

/// `a::b::on_sqlite` and `a::b::on_postgres` are one test on two engines.
fn shortened(red: &[String]) -> String {
    let mut by: Vec<(String, Vec<&str>)> = Vec::new();
    for name in red {
        let (test, engine) = match name.rsplit_once("::on_") {
            Some((test, engine)) => (test, engine),
            None => (name.as_str(), ""),
        };
        match by.iter_mut().find(|(known, _)| known == test) {
            Some((_, engines)) => engines.push(engine),
            None => by.push((test.to_owned(), vec![engine])),
        }
    }
    let said: Vec<String> = by
        .into_iter()
        .map(|(test, engines)| match engines.as_slice() {
            ["sqlite"] => format!("`{test}` (SQLite)"),
            ["postgres"] => format!("`{test}` (PostgreSQL)"),
            _ => format!("`{test}`"),
        })
        .collect();
    said.join(", ")
}
