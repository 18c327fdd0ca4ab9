//! A wire between a node and PostgreSQL that can be cut around a COMMIT. It reads just enough of the protocol to know which
//! statement is bound: `P` names one, `B` executes a named one, `Q` is one by itself.

use anyhow::{Context as _, Result};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// Where the wire is cut, for the next COMMIT that spends an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// COMMIT never arrives.
    Before,
    /// COMMIT has been sent; nobody waits for what comes of it.
    AtOnce,
    /// PostgreSQL has answered, and the answer is dropped.
    AfterAnswer,
}

const WHOLE: u8 = 0;
const REDEEMS: &str = "update approvals set status = 'redeemed'";

#[derive(Clone)]
pub struct Proxy {
    pub port: u16,
    cut: Arc<AtomicU8>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens and forwards to `to` until the runtime ends.
    pub async fn start(to: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let proxy = Self {
            port: listener.local_addr()?.port(),
            cut: Arc::new(AtomicU8::new(WHOLE)),
            cuts: Arc::default(),
        };
        let shared = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (shared, to) = (shared.clone(), to.clone());
                tokio::spawn(async move {
                    // A connection that ends, by either side or by us, is no failure here.
                    let _ = shared.forward(client, &to).await;
                });
            }
        });
        Ok(proxy)
    }

    pub fn cut_next(&self, cut: Cut) {
        let code = match cut {
            Cut::Before => 1,
            Cut::AtOnce => 2,
            Cut::AfterAnswer => 3,
        };
        self.cut.store(code, Ordering::SeqCst);
    }

    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }

    async fn forward(&self, client: TcpStream, to: &str) -> Result<()> {
        let server = TcpStream::connect(to).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, mut to_client) = client.into_split();
        let (mut from_server, to_server) = server.into_split();
        let (cut, mut is_cut) = tokio::sync::oneshot::channel();
        let answers = async {
            let mut chunk = [0u8; 16 * 1024];
            loop {
                let count = from_server.read(&mut chunk).await?;
                if count == 0 || is_cut.try_recv().is_ok() {
                    return anyhow::Ok(());
                }
                to_client.write_all(&chunk[..count]).await?;
            }
        };
        let mut requests = Requests::new(from_client, to_server);
        tokio::select! {
            ended = answers => ended,
            ended = requests.forward(self, cut) => ended,
        }
    }

    fn take_cut(&self) -> Option<Cut> {
        let cut = match self.cut.swap(WHOLE, Ordering::SeqCst) {
            1 => Cut::Before,
            2 => Cut::AtOnce,
            3 => Cut::AfterAnswer,
            _ => return None,
        };
        self.cuts.fetch_add(1, Ordering::SeqCst);
        Some(cut)
    }
}

/// The client's half of one connection.
struct Requests {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    unread: Vec<u8>,
    started: bool,
    statements: HashMap<Vec<u8>, String>,
    redeems: bool,
}

impl Requests {
    fn new(from: OwnedReadHalf, to: OwnedWriteHalf) -> Self {
        Self {
            from,
            to,
            unread: Vec::new(),
            started: false,
            statements: HashMap::new(),
            redeems: false,
        }
    }

    async fn forward(
        &mut self,
        proxy: &Proxy,
        tell: tokio::sync::oneshot::Sender<()>,
    ) -> Result<()> {
        let mut chunk = [0u8; 16 * 1024];
        loop {
            let count = self.from.read(&mut chunk).await?;
            if count == 0 {
                return Ok(());
            }
            self.unread.extend_from_slice(&chunk[..count]);
            let cut = match self.commits()? {
                true => proxy.take_cut(),
                false => None,
            };
            if cut == Some(Cut::Before) {
                return Ok(());
            }
            if cut == Some(Cut::AfterAnswer) {
                // The other half ends the connection when the answer comes, instead of forwarding it.
                let _ = tell.send(());
                self.to.write_all(&chunk[..count]).await?;
                std::future::pending::<()>().await;
                return Ok(());
            }
            self.to.write_all(&chunk[..count]).await?;
            if cut == Some(Cut::AtOnce) {
                return Ok(());
            }
        }
    }

    /// Reads the messages that are whole; whether one of them commits a transaction that spent an approval.
    fn commits(&mut self) -> Result<bool> {
        let mut commits = false;
        loop {
            let head = usize::from(self.started);
            if self.unread.len() < head + 4 {
                return Ok(commits);
            }
            let length: [u8; 4] = self.unread[head..head + 4].try_into()?;
            let end = head + u32::from_be_bytes(length) as usize;
            if self.unread.len() < end {
                return Ok(commits);
            }
            let message: Vec<u8> = self.unread.drain(..end).collect();
            if !self.started {
                // Protocol 3; before it a client may ask for encryption in a message of the same shape.
                self.started = message.get(4..8) == Some(&196_608u32.to_be_bytes());
                continue;
            }
            commits |= self.is_commit(&message)?;
        }
    }

    fn is_commit(&mut self, message: &[u8]) -> Result<bool> {
        let mut parts = message[5..].split(|byte| *byte == 0);
        let mut part = || parts.next().context("a message of another shape");
        let sql = match message[0] {
            b'P' => {
                let name = part()?.to_vec();
                let sql = String::from_utf8_lossy(part()?).trim().to_lowercase();
                self.statements.insert(name, sql);
                return Ok(false);
            }
            b'B' => {
                part()?;
                self.statements.get(part()?).cloned().unwrap_or_default()
            }
            b'Q' => String::from_utf8_lossy(part()?).trim().to_lowercase(),
            _ => return Ok(false),
        };
        if sql.starts_with(REDEEMS) {
            self.redeems = true;
        }
        let ends = matches!(sql.as_str(), "commit" | "rollback");
        let commits = sql == "commit" && self.redeems;
        self.redeems &= !ends;
        Ok(commits)
    }
}
