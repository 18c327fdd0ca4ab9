//! `cargo xtask …`: everything a person types to set up, see, change, test and build Cloudhal.
//!
//! One module per command; `run` starts programs and cleans up after them, `setup` finds or installs what they need.

mod steps;

mod debian;
mod setup;
mod wasm_std;

mod front;
mod server;

mod demo;
mod mcp;
mod watch;

mod bench;
mod lint;
mod mutate;
mod test;
mod torture;

use std::env::args;
use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::{postgres, run};

const HELP: &str = "\
cargo xtask COMMAND

  setup                 find or install what the other commands need; quick when it is all there
  demo                  the whole story with a real agent, on a fresh demo site (--unattended: decide by itself)
  serve [ARGUMENTS]     build and run `cloudhal serve`, passing the arguments on
  watch [ARGUMENTS]     serve while you edit: CSS shows at once, Rust is rebuilt and the page reloads
  build [--debug]       the release binary, target/release/cloudhal (--debug: target/debug/cloudhal, with test hooks)
  lint                  formatting and clippy, native and wasm32
  test [PART] [FILTER]  lint, unit, torture, mcp, browser and demo; or one PART of them, with a filter for its tests
  torture [ARGUMENTS]   what must hold under races, kills, outages and full disks; `torture --help` lists it
  mutate [NAME…]        break one guard after the other, in a copy, and see a named test turn red; slow
  bench [ARGUMENTS]     the benchmark and the size of what the browser loads
";

fn main() -> ExitCode {
    match try_main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if run::interrupted() => {
            eprintln!("\nStopped.");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("\nThis did not work: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_main() -> Result<()> {
    run::catch_signals()?;
    let mut arguments = args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    match command.as_str() {
        "setup" => setup::everything(),
        "demo" => demo::demo(&rest),
        "serve" => server::serve(&rest),
        "watch" => watch::watch(&rest),
        "build" => server::build(&rest),
        "lint" => lint::lint(),
        "test" => test::test(&rest),
        "torture" => torture::torture(&rest),
        "mutate" => mutate::mutate(&rest),
        "bench" => bench::bench(&rest),
        "" | "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        unknown => bail!("there is no command `{unknown}`.\n\n{HELP}"),
    }
}
