//! R16: a database is restored to a time when a spent approval was approved, and the approval stays spent.

use crate::{
    clients::{Agent, Door, Person, word},
    context::Context,
    database::{Database, Kind, Sql},
    node::{self, How, Node},
    report::Report,
    world::{Size, World},
};
use anyhow::{Context as _, Result, ensure};
use xtask::run;

/// R16.
pub async fn restored(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    for _ in 0..context.figure {
        let size = Size {
            sites: 1,
            agents_per_site: 1,
            pages: 4,
        };
        let world = World::new(context, size).await?;
        once(context, world, &mut report).await?;
    }
    report.fact("refused as restored", context.figure);
    Ok(report)
}

async fn once(context: &Context, mut world: World, report: &mut Report) -> Result<()> {
    let serving = Node::start(context, &world, How::default()).await?;
    let mut person = Person::sign_in(&world, 0).await?;
    let mut agent = Agent::new(&world, &world.agents[0], Door::Tools);
    let id = approved(&mut agent, &mut person).await?;
    let backup = world.folder.join("backup");
    match context.kind {
        Kind::Sqlite => {
            let file = backup.to_str().context("a path")?;
            node::run(context, &world, &["backup", file])?;
        }
        Kind::Postgres => dump(context, &world, &backup)?,
    }
    let ran = agent.redeem(&id).await?;
    ensure!(word(&ran) == "ok", "not run: {}", ran.body);
    serving.stop().await?;
    match context.kind {
        Kind::Sqlite => copy_back(&world, &backup)?,
        Kind::Postgres => {
            load_back(context, &mut world, &backup).await?;
            node::run(context, &world, &["restored"])?;
        }
    }
    let serving = Node::start(context, &world, How::default()).await?;
    agent.to(&serving.target);
    let got = agent.redeem(&id).await?;
    let cause = got.body["error"]["details"]["cause"].as_str();
    report.expect(
        word(&got) == "approval_voided" && cause == Some("restored"),
        || {
            format!(
                "after a restore the repeat was answered {}: {}",
                got.status, got.body
            )
        },
    );
    let versions = world
        .database
        .number("select count(*) from versions")
        .await?;
    report.expect(versions == 0, || format!("{versions} versions"));
    // Nobody is signed in any more.
    person.to(&serving.target);
    let signed_out = approved(&mut agent, &mut person).await;
    report.expect(signed_out.is_err(), || {
        "a session of before still decides".into()
    });
    let mut person = sign_in_anew(context, &mut world).await?;
    person.to(&serving.target);
    let id = approved(&mut agent, &mut person).await?;
    let ran = agent.redeem(&id).await?;
    report.expect(word(&ran) == "ok", || {
        format!("a new request did not run: {}", ran.body)
    });
    serving.stop().await?;
    if let Err(error) = node::run(context, &world, &["verify"]) {
        report.fault(format!("verify: {error:#}"));
    }
    Ok(())
}

/// With a link of the operator's, since the old ones ended with the sessions.
async fn sign_in_anew(context: &Context, world: &mut World) -> Result<Person> {
    let said = node::run(
        context,
        world,
        &["person", "link", "--email", "ada@example.com"],
    )?;
    let link = said
        .split_whitespace()
        .find(|word| word.contains("/login/link/"));
    let path = link.and_then(|link| link.strip_prefix(&world.public_url()));
    world.links = vec![path.context("a sign-in link")?.to_owned()];
    Person::sign_in(world, 0).await
}

async fn approved(agent: &mut Agent, person: &mut Person) -> Result<String> {
    let asked = agent.ask().await?;
    let id = asked.body["approvalId"]
        .as_str()
        .context("a request")?
        .to_owned();
    let decided = person.decide(&agent.key.site.clone(), &id, true).await?;
    ensure!(decided.status == 200, "not approved: {}", decided.body);
    Ok(id)
}

fn copy_back(world: &World, backup: &std::path::Path) -> Result<()> {
    let file = world.database.file().context("a file")?;
    for ending in ["-wal", "-shm"] {
        let beside = format!("{}{ending}", file.display());
        if std::fs::exists(&beside)? {
            std::fs::remove_file(beside)?;
        }
    }
    std::fs::copy(backup, file)?;
    Ok(())
}

fn name_of(world: &World) -> String {
    let url = world.database.url();
    url.rsplit('/').next().unwrap_or_default().to_owned()
}

fn dump(context: &Context, world: &World, backup: &std::path::Path) -> Result<()> {
    context.with_postgres(|postgres| {
        let mut dump = postgres.client("pg_dump");
        dump.args(["--format=custom", "--dbname", &name_of(world), "--file"]);
        run::show(dump.arg(backup))
    })
}

/// Into a database of its own, which takes the place of the one that was lost.
async fn load_back(context: &Context, world: &mut World, backup: &std::path::Path) -> Result<()> {
    let server = context.postgres_server()?;
    let name = format!("{}_back", name_of(world));
    let mut admin = Sql::open(&format!("{server}/postgres")).await?;
    admin.execute(&format!("create database {name}")).await?;
    admin.close().await?;
    context.with_postgres(|postgres| {
        let mut load = postgres.client("pg_restore");
        load.args(["--dbname", &name]).arg(backup);
        run::show(&mut load)
    })?;
    world.database = Database::Postgres { server, name };
    Ok(())
}
