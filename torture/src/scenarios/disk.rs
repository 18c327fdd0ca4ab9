//! R9: no more room for a file to grow, and a database that may not be written to.

use crate::{
    checker::{self, Checker},
    clients::{Agent, Door, Person, word},
    context::Context,
    database::Kind,
    node::{How, Node},
    report::Report,
    trace::Got,
    world::{Size, World},
};
use anyhow::{Context as _, Result, ensure};
use std::time::{Duration, Instant};
use tokio::time::sleep;

const REFUSED_WITHIN: Duration = Duration::from_secs(1);
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// No file may grow past its first page: every write fails at once.
const NOTHING: u64 = 4096;
/// The size of PostgreSQL's log files, which are made whole: it lives on while no table can grow beyond.
const ONE_LOG_FILE: u64 = 16 * 1024 * 1024;
const BODY_CHARS: usize = 150_000;
/// Enough to outgrow [`ONE_LOG_FILE`].
const EDITS_MAX: usize = 400;

/// R9.
pub async fn full(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 4,
    };
    let world = World::new(context, size).await?;
    let how = How {
        survives_file_size: true,
        silent: true,
        ..How::default()
    };
    let node = Node::start(context, &world, how).await?;
    let mut run = Run {
        person: Person::sign_in(&world, 0).await?.traced(&world)?,
        agent: Agent::new(&world, &world.agents[0], Door::Tools).traced(&world)?,
        checker: Checker::new(&world),
        rng: context.rng(9),
        refused: 0,
        slowest: Duration::ZERO,
        slowest_back: Duration::ZERO,
    };
    for cycle in 0..context.figure {
        let approved = run.approved().await?;
        // So that a person's read would move the idle time.
        let due = "update sessions set data = replace(data, '\"seen\":1', '\"seen\":-1')";
        world.database.execute(due).await?;
        let room = Room::take(context, &world, &node, cycle, &mut run.rng).await?;
        run.without_room(&room, &approved, cycle, &mut report)
            .await?;
        room.give_back(context, &world, &node).await?;
        run.with_room_again(&approved, cycle).await?;
        run.checker.check(&world, &mut report).await?;
        checker::integrity(&world, &mut report).await?;
    }
    report.fact("writes refused", run.refused);
    report.fact("slowest refusal", format!("{} ms", run.slowest.as_millis()));
    report.fact(
        "writes again after",
        format!("{} ms", run.slowest_back.as_millis()),
    );
    report.expect(run.slowest <= REFUSED_WITHIN, || {
        "a refusal took longer than a second".into()
    });
    run.checker.conclude(context, &world, &mut report).await?;
    node.stop().await?;
    if context.kind == Kind::Sqlite {
        read_only_file(context, &world, &mut report).await?;
    }
    Ok(report)
}

struct Run {
    person: Person,
    agent: Agent,
    checker: Checker,
    rng: fastrand::Rng,
    refused: usize,
    slowest: Duration,
    slowest_back: Duration,
}

impl Run {
    async fn approved(&mut self) -> Result<String> {
        let asked = self.agent.ask().await?;
        let id = asked.body["approvalId"]
            .as_str()
            .context("a request")?
            .to_owned();
        let site = self.agent.key.site.clone();
        let decided = self.person.decide(&site, &id, true).await?;
        ensure!(decided.status == 200, "not approved: {}", decided.body);
        Ok(id)
    }

    async fn without_room(
        &mut self,
        room: &Room,
        approved: &str,
        cycle: usize,
        report: &mut Report,
    ) -> Result<()> {
        if room.ends_everything() {
            let got = self.timed(Act::Redeem, approved).await?;
            self.judge(&got, report);
        }
        for edit in 0..EDITS_MAX {
            let text = match room {
                Room::Tables => self.rng_text(),
                _ => format!("without room {cycle} {edit}"),
            };
            let got = self.timed(Act::Edit, &text).await?;
            if word(&got) != "ok" {
                self.judge(&got, report);
                break;
            }
            report.expect(edit + 1 < EDITS_MAX, || "the room did not end".into());
        }
        if room.ends_everything() {
            for act in [Act::Ask, Act::Edit, Act::Redeem] {
                let text = if matches!(act, Act::Edit) {
                    "more"
                } else {
                    approved
                };
                let got = self.timed(act, text).await?;
                self.judge(&got, report);
            }
        }
        let arguments = serde_json::json!({"site": self.agent.key.site});
        let read = self.agent.call("site-get", arguments, None).await?;
        report.expect(word(&read) == "ok", || {
            format!("a read was answered {}", read.body)
        });
        let list = format!("/api/sites/{}/approvals", self.agent.key.site);
        let read = self.person.get(&list).await?;
        report.expect(read.status == 200, || {
            format!(
                "a person's read was answered {}: {}",
                read.status, read.body
            )
        });
        Ok(())
    }

    /// Goes on by itself: the approval that could not be redeemed runs, if the site did not change meanwhile.
    async fn with_room_again(&mut self, approved: &str, cycle: usize) -> Result<()> {
        let since = Instant::now();
        loop {
            let got = self.agent.redeem(approved).await?;
            match word(&got) {
                "ok" | "replayed" | "approval_voided" => break,
                "unavailable" => sleep(Duration::from_millis(10)).await,
                other => anyhow::bail!(
                    "with room again a redeem was answered {other}: {}",
                    got.body
                ),
            }
            ensure!(
                since.elapsed() < BACK_WITHIN,
                "no write went through with room again"
            );
        }
        let got = self.agent.edit(&format!("with room again {cycle}")).await?;
        ensure!(word(&got) == "ok", "an edit was answered {}", got.body);
        self.slowest_back = self.slowest_back.max(since.elapsed());
        Ok(())
    }

    async fn timed(&mut self, act: Act, what: &str) -> Result<Got> {
        let since = Instant::now();
        let got = match act {
            Act::Ask => {
                // Another call than the approved one, which would be found by reading alone.
                let key = &self.agent.key;
                let arguments = serde_json::json!({"site": key.site, "node": key.node});
                self.agent.call("delete", arguments, None).await
            }
            Act::Edit => self.agent.edit(what).await,
            Act::Redeem => self.agent.redeem(what).await,
        };
        self.slowest = self.slowest.max(since.elapsed());
        got
    }

    fn judge(&mut self, got: &Got, report: &mut Report) {
        self.refused += 1;
        let typed = got.status == 503 && word(got) == "unavailable";
        report.expect(typed, || {
            format!(
                "without room a write was answered {}: {}",
                got.status, got.body
            )
        });
    }

    /// Text that no database can make smaller.
    fn rng_text(&mut self) -> String {
        std::iter::repeat_with(|| self.rng.alphanumeric())
            .take(BODY_CHARS)
            .collect()
    }
}

#[derive(Clone, Copy)]
enum Act {
    Ask,
    Edit,
    Redeem,
}

/// What ran out.
enum Room {
    /// SQLite: no file may grow at all.
    Files,
    /// SQLite: the log may grow a little more.
    Log,
    /// PostgreSQL: no table may grow past a size.
    Tables,
    /// PostgreSQL: nothing may be written, as after a failover.
    ReadOnly,
}

impl Room {
    async fn take(
        context: &Context,
        world: &World,
        node: &Node,
        cycle: usize,
        rng: &mut fastrand::Rng,
    ) -> Result<Self> {
        let room = match (context.kind, cycle % 2) {
            (Kind::Sqlite, 0) => Self::Files,
            (Kind::Sqlite, _) => Self::Log,
            (Kind::Postgres, 0) => Self::Tables,
            (Kind::Postgres, _) => Self::ReadOnly,
        };
        match room {
            Self::Files => node.limit_files(Some(NOTHING))?,
            Self::Log => {
                let log = world.database.file().context("a file")?;
                let log = format!("{}-wal", log.display());
                let length = std::fs::metadata(log).map_or(0, |file| file.len());
                // Within the log as well: a commit may fail at any of its pages.
                node.limit_files(Some(NOTHING + rng.u64(..length + 64 * 1024)))?;
            }
            Self::Tables => {
                context.with_postgres(|postgres| postgres.restart_with_room(Some(ONE_LOG_FILE)))?
            }
            Self::ReadOnly => read_only(context, world, true).await?,
        }
        Ok(room)
    }

    async fn give_back(&self, context: &Context, world: &World, node: &Node) -> Result<()> {
        match self {
            Self::Files | Self::Log => node.limit_files(None),
            Self::Tables => context.with_postgres(|postgres| postgres.restart_with_room(None)),
            Self::ReadOnly => read_only(context, world, false).await,
        }
    }

    fn ends_everything(&self) -> bool {
        matches!(self, Self::Files | Self::ReadOnly)
    }
}

async fn read_only(context: &Context, world: &World, on: bool) -> Result<()> {
    let url = world.database.url();
    let name = url.rsplit('/').next().unwrap_or_default();
    let mut sql =
        crate::database::Sql::open(&format!("{}/postgres", context.postgres_server()?)).await?;
    sql.execute(&format!(
        "alter database {name} set default_transaction_read_only = {on}"
    ))
    .await?;
    sql.close().await?;
    end_connections(context).await
}

async fn end_connections(context: &Context) -> Result<()> {
    let mut sql =
        crate::database::Sql::open(&format!("{}/postgres", context.postgres_server()?)).await?;
    sql.number("select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'")
        .await?;
    sql.close().await
}

/// A file that the process may not write: it must say so instead of serving half of what it is for.
async fn read_only_file(context: &Context, world: &World, report: &mut Report) -> Result<()> {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let file = world.database.file().context("a file")?;
    let folder = file.parent().context("a folder")?;
    let user = if rustix::process::geteuid().is_root() {
        let nobody = (65_534, 65_534);
        for path in [world.folder.as_path(), &world.secret_file()] {
            chown(path, Some(nobody.0), Some(nobody.1))?;
        }
        Some(nobody)
    } else {
        None
    };
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
    };
    mode(file, 0o444)?;
    mode(folder, 0o555)?;
    let how = How {
        user,
        ..How::default()
    };
    let mut node = Node::spawn(context, world, how)?;
    let outcome = match node.ready().await {
        Err(_) => {
            let said = node.log();
            let named = said.contains("cloudhal.db") || said.contains("DATABASE_URL");
            report.expect(named, || {
                format!("it does not say which file it cannot write: {said}")
            });
            "refuses to start and names it"
        }
        Ok(_) => {
            let mut agent = Agent::new(world, &world.agents[0], Door::Tools);
            let got = agent.edit("onto a file that may not be written").await?;
            report.expect(got.status == 503, || {
                format!("an edit was answered {}", got.body)
            });
            "reads, and refuses writes"
        }
    };
    report.fact("a read-only file", outcome);
    mode(folder, 0o755)?;
    mode(file, 0o644)?;
    Ok(())
}
