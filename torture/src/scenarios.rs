//! The scenarios by name, with the figures of their long and short forms. One file a family.

mod clocks;
mod corpus;
mod deliveries;
mod disk;
mod flood;
mod hangups;
mod in_process;
mod kills;
mod outages;
mod pauses;
mod pipes;
mod properties;
mod races;
mod redeem_races;
mod restore;
mod texts;
mod waiters;

use crate::{context::Context, database::Kind, report::Report};
use anyhow::Result;
use futures::future::BoxFuture;

pub struct Scenario {
    pub id: &'static str,
    pub what: &'static str,
    pub unit: &'static str,
    pub short: usize,
    pub long: usize,
    /// The same on PostgreSQL, where its figure differs.
    pub long_postgres: usize,
    pub engines: &'static [Kind],
    pub run: for<'c> fn(&'c Context) -> BoxFuture<'c, Result<Report>>,
}

const BOTH: &[Kind] = &[Kind::Sqlite, Kind::Postgres];
const POSTGRES: &[Kind] = &[Kind::Postgres];
/// Where no database takes part, one run says it all.
const ONCE: &[Kind] = &[Kind::Sqlite];

macro_rules! scenario {
    ($id:literal, $what:literal, $unit:literal, $short:literal, $long:literal, $engines:expr, $run:path) => {
        scenario!($id, $what, $unit, $short, $long / $long, $engines, $run)
    };
    ($id:literal, $what:literal, $unit:literal, $short:literal, $long:literal / $long_postgres:literal, $engines:expr, $run:path) => {
        Scenario {
            id: $id,
            what: $what,
            unit: $unit,
            short: $short,
            long: $long,
            long_postgres: $long_postgres,
            engines: $engines,
            run: |context| Box::pin($run(context)),
        }
    };
}

pub const ALL: &[Scenario] = &[
    scenario!(
        "R1",
        "32 redeemers of one approval, in one process",
        "rounds",
        40,
        10000,
        BOTH,
        redeem_races::in_the_store
    ),
    scenario!(
        "R2",
        "16 redeemers of one approval over HTTP, two processes",
        "rounds",
        30,
        2000,
        BOTH,
        redeem_races::over_http
    ),
    scenario!(
        "R3",
        "an editor against a redeemer",
        "rounds",
        60,
        10000,
        BOTH,
        races::editor
    ),
    scenario!(
        "R4",
        "two who approve, two who deny, a sweeper and an editor",
        "rounds",
        60,
        10000,
        BOTH,
        races::decision
    ),
    scenario!(
        "R5",
        "kill -9 under load",
        "kills",
        12,
        500 / 200,
        BOTH,
        kills::under_load
    ),
    scenario!(
        "R5b",
        "the process ends at a named point",
        "kills",
        14,
        800,
        BOTH,
        kills::at_points
    ),
    scenario!(
        "R5c",
        "the process ends around a delivery",
        "kills",
        4,
        200,
        BOTH,
        deliveries::at_points
    ),
    scenario!(
        "R6",
        "the client hangs up",
        "redeems",
        90,
        2000,
        BOTH,
        hangups::hangups
    ),
    scenario!(
        "R7",
        "PostgreSQL restarts, and throws everybody out",
        "outages",
        4,
        100,
        POSTGRES,
        outages::restarts
    ),
    scenario!(
        "R8",
        "the answer to COMMIT is lost",
        "times",
        12,
        200,
        POSTGRES,
        outages::lost_commit
    ),
    scenario!(
        "R9",
        "no space left, and a file that may not be written",
        "cycles",
        3,
        20,
        BOTH,
        disk::full
    ),
    scenario!(
        "R10",
        "clocks that jump and differ",
        "cases",
        100,
        1000,
        BOTH,
        clocks::clocks
    ),
    scenario!(
        "R11",
        "malformed bodies and frames",
        "frames",
        1100,
        10000,
        ONCE,
        corpus::malformed
    ),
    scenario!(
        "R11b",
        "the same over standard input and output",
        "frames",
        600,
        10000,
        ONCE,
        pipes::malformed
    ),
    scenario!(
        "R12",
        "canonical form and hash of arguments",
        "cases",
        5000,
        100000,
        ONCE,
        properties::arguments
    ),
    scenario!(
        "R14",
        "one agent floods",
        "seconds",
        4,
        60,
        BOTH,
        flood::flood
    ),
    scenario!(
        "R15",
        "a node is stopped in the middle of a redeem",
        "rounds",
        4,
        100,
        POSTGRES,
        pauses::stopped_node
    ),
    scenario!(
        "R16",
        "a backup is restored",
        "times",
        1,
        5,
        BOTH,
        restore::restored
    ),
    scenario!(
        "R18",
        "agents that wait for one decision",
        "agents",
        200,
        1000,
        BOTH,
        waiters::thousand
    ),
];
