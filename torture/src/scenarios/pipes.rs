//! R11 over standard input and output: whatever a line holds, the next good one is answered, and the process ends in order
//! when its input does.

use super::texts;
use crate::{
    context::Context,
    node,
    report::Report,
    world::{Size, World},
};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

const MEMORY_GROWTH_MAX: u64 = 64 * 1024 * 1024;
/// Growth is measured from here: the first requests fill pools and caches.
const WARM_UP: usize = 200;
/// Past it an answer that should have come is missing, not slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// R11, the other door.
pub async fn malformed(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let size = Size {
        sites: 1,
        agents_per_site: 1,
        pages: 4,
    };
    let world = World::new(context, size).await?;
    let mut pipes = Pipes::open(context, &world).await?;
    let mut rng = context.rng(111);
    let state = "select state_hash from sites";
    let before = world.database.texts(state).await?;
    let corpus = texts::all();
    let (mut codes, mut memory) = (BTreeMap::<String, usize>::new(), 0);
    for frame in 0..context.figure.max(corpus.len()) {
        if frame == WARM_UP {
            memory = pipes.memory()?;
        }
        let text = match corpus.get(frame) {
            Some(text) => text.clone(),
            None => texts::made_up(&mut rng, &world),
        };
        // What is no message of ours is answered before what comes after it, so the good call's answer ends the turn.
        pipes.line(&text).await?;
        let good = json!({"jsonrpc": "2.0", "id": format!("good-{frame}"), "method": "ping"});
        pipes.line(good.to_string().as_bytes()).await?;
        loop {
            let answer = pipes.next().await.with_context(|| {
                format!(
                    "after {}",
                    String::from_utf8_lossy(&text[..text.len().min(300)])
                )
            })?;
            if answer["id"] == good["id"] {
                report.expect(answer["result"].is_object(), || {
                    format!("a good call was answered {answer}")
                });
                break;
            }
            let code = answer["error"]["code"].as_i64();
            let said = code.map_or_else(|| "other".to_owned(), |code| code.to_string());
            *codes.entry(said).or_default() += 1;
            report.expect(code != Some(-32603), || {
                format!(
                    "{} was answered {answer}",
                    String::from_utf8_lossy(&text[..text.len().min(300)])
                )
            });
        }
    }
    let grown = pipes.memory()?.saturating_sub(memory);
    report.expect(memory == 0 || grown < MEMORY_GROWTH_MAX, || {
        format!("memory grew by {} MiB", grown >> 20)
    });
    report.expect(world.database.texts(state).await? == before, || {
        "a site changed".into()
    });
    let log = pipes.end().await?;
    report.expect(!log.contains("panicked"), || format!("it panicked: {log}"));
    for (code, count) in codes {
        report.fact(&code, count);
    }
    report.fact("memory grew by", format!("{} MiB", grown >> 20));
    Ok(report)
}

/// A `cloudhal mcp` process, past its handshake.
struct Pipes {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
    log: std::path::PathBuf,
}

impl Pipes {
    async fn open(context: &Context, world: &World) -> Result<Self> {
        let log = world.folder.join("pipes.log");
        let mut child = node::mcp(context, world, &log)?;
        let to = child.stdin.take().context("its standard input")?;
        let from = child.stdout.take().context("its standard output")?;
        let mut pipes = Self {
            child,
            to,
            from: BufReader::new(from).lines(),
            log,
        };
        let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"},
        }});
        pipes.line(hello.to_string().as_bytes()).await?;
        let answer = pipes.next().await?;
        if answer["result"]["serverInfo"]["name"] != "cloudhal" {
            bail!("it said hello with {answer}");
        }
        Ok(pipes)
    }

    async fn line(&mut self, line: &[u8]) -> Result<()> {
        self.to.write_all(line).await?;
        self.to.write_all(b"\n").await?;
        Ok(())
    }

    async fn next(&mut self) -> Result<Value> {
        let line = timeout(PATIENCE, self.from.next_line()).await??;
        Ok(serde_json::from_str(&line.context("it ended")?)?)
    }

    /// Resident memory in bytes.
    fn memory(&self) -> Result<u64> {
        node::memory_of(self.child.id().context("it ended")?)
    }

    /// Closes its input and waits for its end; what it logged.
    async fn end(mut self) -> Result<String> {
        drop(self.to);
        let status = timeout(PATIENCE, self.child.wait()).await??;
        if !status.success() {
            bail!("it ended with {status}");
        }
        Ok(std::fs::read_to_string(&self.log)?)
    }
}
