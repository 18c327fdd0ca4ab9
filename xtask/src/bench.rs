//! `cargo xtask bench`: figures to compare with the budgets. Nothing here passes or fails.

use anyhow::Result;

use crate::front::{self, Mode};
use crate::postgres::Postgres;
use crate::run;
use crate::setup;
use crate::steps::heading;

pub fn bench(arguments: &[String]) -> Result<()> {
    setup::everything()?;
    front::build(Mode::Release)?;
    let postgres = Postgres::durable()?;
    heading("Cycles, reads, edits");
    let mut cargo = run::cargo(&["bench", "-p", "cloudhal-server", "--bench", "cycle", "--"]);
    run::show(
        cargo
            .args(arguments)
            .env("BENCH_POSTGRES_URL", postgres.url()),
    )?;
    heading("What the browser loads");
    println!("{}", front::sizes(&front::site())?);
    Ok(())
}
