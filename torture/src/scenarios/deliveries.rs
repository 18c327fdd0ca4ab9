//! R5c: the process ends after it has claimed a delivery, and after a receiver has answered one. The row is there from the
//! transaction of its event on: the next process delivers it, under the same id.

use super::in_process::Caller;
use crate::{
    checker,
    context::Context,
    http::header,
    node::{How, Node},
    report::Report,
    world::{Size, World},
};
use anyhow::{Context as _, Result, ensure};
use cloudhal_engine::clock::SystemClock;
use serde_json::json;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// Each with how often a receiver has heard of an event by then.
const POINTS: [(&str, usize); 2] = [("after-claim", 0), ("after-send", 1)];
const LOOK_EVERY: Duration = Duration::from_millis(5);
const LOOKS_MAX: usize = 2_000;

pub async fn at_points(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 2,
    };
    let world = World::new(context, size).await?;
    let receiver = Receiver::start().await?;
    let hook = format!(
        "insert into webhooks (id, site_id, url, secret, created_at) values ('hook', '{}', 'http://{}/', 'whsec_c2VjcmV0IG9mIHRoZSB0b3J0dXJl', 1)",
        world.sites[0], receiver.addr
    );
    world.database.execute(&hook).await?;
    for round in 0..context.figure {
        let (point, heard) = POINTS[round % POINTS.len()];
        one(context, &world, &receiver, point, heard, &mut report).await?;
    }
    checker::integrity(&world, &mut report).await?;
    report.fact("messages", receiver.all().len());
    crate::node::run(context, &world, &["verify"])?;
    Ok(report)
}

/// One event, whose delivery a process does not live to write down.
async fn one(
    context: &Context,
    world: &World,
    receiver: &Receiver,
    point: &str,
    heard: usize,
    report: &mut Report,
) -> Result<()> {
    let event = event(world).await?;
    let how = How {
        failpoint: Some(point.to_owned()),
        webhooks: Some(receiver.addr.clone()),
        ..How::default()
    };
    let mut node = Node::spawn(context, world, how)?;
    let status = node.ended().await?;
    ensure!(!status.success(), "it ended in order at {point}");
    let before = receiver.count(&event);
    report.expect(before == heard, || {
        format!("ended at {point}, the receiver had heard {before} times of {event}")
    });
    let row = format!("select status from outbox where id = '{event}'");
    let left = world.database.texts(&row).await?;
    report.expect(left == ["waiting"], || {
        format!("ended at {point}, {event} is {left:?}")
    });
    // Its lease would end by itself, half a minute later.
    let ends = format!("update outbox set due_at = created_at where id = '{event}'");
    world.database.execute(&ends).await?;
    let how = How {
        webhooks: Some(receiver.addr.clone()),
        ..How::default()
    };
    let node = Node::start(context, world, how).await?;
    let mut looks = 0;
    while world.database.texts(&row).await? != ["delivered"] {
        looks += 1;
        ensure!(
            looks < LOOKS_MAX,
            "the next process did not deliver {event}"
        );
        sleep(LOOK_EVERY).await;
    }
    node.kill()?;
    let after = receiver.count(&event);
    report.expect(after == heard + 1, || {
        format!("after {point} the receiver heard {after} times of {event}")
    });
    Ok(())
}

/// Has a request filed and withdrawn: the only event that is told is that it was asked. Its delivery's id.
async fn event(world: &World) -> Result<String> {
    let engine = world.engine(Arc::new(SystemClock)).await?;
    let agent = Caller::of(&engine, &world.agents[0]).await?;
    let id = agent.ask(&engine).await?;
    let withdrawn = json!({"approvalId": id});
    agent
        .call(&engine, "approvals-cancel", withdrawn, None)
        .await;
    engine.store().close().await;
    let row = format!("select id from outbox where approval_id = '{id}'");
    let rows = world.database.texts(&row).await?;
    ensure!(rows.len() == 1, "an event of one destination left {rows:?}");
    rows.into_iter().next().context("a row")
}

/// Answers every message with 200 and remembers its id.
struct Receiver {
    addr: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?.to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(hear(stream, told.clone()));
            }
        });
        Ok(Self { addr, heard })
    }

    fn all(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.clone()
    }

    fn count(&self, id: &str) -> usize {
        self.all().iter().filter(|one| *one == id).count()
    }
}

/// One message, read to its end: a connection that is closed before would be reset.
async fn hear(mut stream: TcpStream, told: Arc<Mutex<Vec<String>>>) -> Result<()> {
    let mut message = Vec::new();
    let id = loop {
        let mut chunk = [0u8; 4096];
        let n = stream.read(&mut chunk).await?;
        ensure!(n > 0, "a message without an end");
        message.extend_from_slice(&chunk[..n]);
        let text = String::from_utf8_lossy(&message);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length: usize = header(head, "content-length")
            .context("content-length")?
            .parse()?;
        if body.len() >= length {
            break header(head, "webhook-id").context("webhook-id")?.to_owned();
        }
    };
    told.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .await?;
    Ok(())
}
