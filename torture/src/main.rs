//! The proof that approvals hold: scenarios that race, kill, cut off, stop and starve real `cloudhal` processes and the engine
//! under them, on SQLite and on PostgreSQL, and a checker that says what was lost, doubled or wrong.
//!
//! `cargo xtask torture --help`. Every run prints its seed; a run with that seed draws the same chances, though not the same
//! interleaving.

mod checker;
mod clients;
mod context;
mod database;
mod http;
mod load;
mod node;
mod proxy;
mod report;
mod scenarios;
mod trace;
mod world;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use context::Context;
use database::Kind;
use report::Report;
use scenarios::Scenario;
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use xtask::{postgres::Postgres, run};

/// Tortures approvals and counts what was lost, doubled or wrong.
#[derive(Parser)]
#[command(after_help = scenarios_text())]
struct Arguments {
    /// short (a few minutes in all), long (the promised figures), or a number for every scenario chosen
    #[arg(long, default_value = "short", value_name = "short|long|N")]
    rounds: Rounds,
    /// Draw the chances of an earlier run again
    #[arg(long)]
    seed: Option<u64>,
    /// Only these, like R1,R5b
    #[arg(long, value_delimiter = ',', value_name = "R1,R5")]
    only: Vec<String>,
    /// Only on this database
    #[arg(long)]
    engine: Option<Kind>,
    /// The program under torture
    #[arg(long, env = "CLOUDHAL_BIN", value_name = "FILE")]
    binary: PathBuf,
    /// Keep databases, traces and logs of this run here
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Rounds {
    Short,
    Long,
    Number(usize),
}

impl std::str::FromStr for Rounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "short" => Ok(Self::Short),
            "long" => Ok(Self::Long),
            _ => match text.parse() {
                Ok(number) if number > 0 => Ok(Self::Number(number)),
                _ => Err("say short, long or a number".into()),
            },
        }
    }
}

fn scenarios_text() -> String {
    let lines = scenarios::ALL.iter().map(|scenario| {
        format!(
            "  {:<4} {} (short: {} {unit}, long: {})",
            scenario.id,
            scenario.what,
            scenario.short,
            scenario.long,
            unit = scenario.unit,
        )
    });
    format!("Scenarios:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = tokio::select! {
        ended = torture(arguments) => ended,
        () = interrupted() => Err(anyhow::anyhow!("interrupted")),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Ends the run in order, so that every process and folder of it goes.
async fn interrupted() {
    if run::catch_signals().is_err() {
        std::future::pending::<()>().await;
    }
    while !run::interrupted() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn torture(arguments: Arguments) -> Result<bool> {
    let chosen = choose(&arguments)?;
    let seed = arguments
        .seed
        .unwrap_or_else(|| fastrand::u64(..u64::from(u32::MAX)));
    println!("seed {seed}");
    let temporary = tempfile::tempdir()?;
    let folder = match &arguments.keep {
        Some(folder) => std::path::absolute(folder)?.join(format!("{seed}-{}", std::process::id())),
        None => temporary.path().to_owned(),
    };
    let wants_postgres = chosen.iter().any(|(_, kind)| *kind == Kind::Postgres);
    let postgres = match wants_postgres {
        true => Some(Arc::new(Mutex::new(tokio::task::block_in_place(
            Postgres::durable,
        )?))),
        false => None,
    };
    let begun = Instant::now();
    let mut failed = Vec::new();
    for (scenario, kind) in chosen {
        let figure = match (arguments.rounds, kind) {
            (Rounds::Short, _) => scenario.short,
            (Rounds::Long, Kind::Sqlite) => scenario.long,
            (Rounds::Long, Kind::Postgres) => scenario.long_postgres,
            (Rounds::Number(number), _) => number,
        };
        let own = folder.join(format!("{}-{}", scenario.id, kind.name()));
        std::fs::create_dir_all(&own)?;
        // An operator's other account must be able to reach what is made for it below.
        let long = matches!(arguments.rounds, Rounds::Long);
        let context = Context::new(
            kind,
            figure,
            long,
            seed,
            &arguments.binary,
            own.clone(),
            postgres.clone(),
        );
        let start = Instant::now();
        let report = (scenario.run)(&context).await.unwrap_or_else(|error| {
            let mut report = Report::default();
            report.fault(format!("{error:#}"));
            report
        });
        println!(
            "{}",
            report.text(
                scenario.id,
                kind.name(),
                start.elapsed(),
                &format!("{figure} {}", scenario.unit)
            )
        );
        if !report.passed() {
            failed.push(format!("{} on {}", scenario.id, kind.name()));
        } else if arguments.keep.is_none() {
            let _ = std::fs::remove_dir_all(&own);
        }
    }
    println!(
        "\nseed {seed}, {:.0} s in all",
        begun.elapsed().as_secs_f64()
    );
    if !failed.is_empty() {
        println!("Failed: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

fn choose(arguments: &Arguments) -> Result<Vec<(&'static Scenario, Kind)>> {
    for id in &arguments.only {
        if !scenarios::ALL.iter().any(|s| s.id.eq_ignore_ascii_case(id)) {
            bail!("there is no scenario `{id}`; --help lists them");
        }
    }
    if !arguments.binary.is_file() {
        bail!("there is no program at {}", arguments.binary.display());
    }
    let wanted = |scenario: &&Scenario| {
        arguments.only.is_empty()
            || arguments
                .only
                .iter()
                .any(|id| scenario.id.eq_ignore_ascii_case(id))
    };
    let chosen: Vec<_> = scenarios::ALL
        .iter()
        .filter(wanted)
        .flat_map(|scenario| scenario.engines.iter().map(move |kind| (scenario, *kind)))
        .filter(|(_, kind)| arguments.engine.is_none_or(|only| only == *kind))
        .collect();
    chosen
        .first()
        .context("nothing of that runs on that database")?;
    Ok(chosen)
}
