//! A keep-alive HTTP/1.1 client that costs little beside the server, and gives up a connection as soon as anything is odd.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Longer than the longest long poll.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub struct Request<'r> {
    pub method: &'r str,
    pub path: &'r str,
    /// Whole lines, each ended by CR LF.
    pub headers: String,
    pub body: &'r [u8],
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// Where to connect, and the Host to name: nodes behind one public address differ in the former only.
#[derive(Clone, Debug)]
pub struct Target {
    pub addr: String,
    pub host: String,
}

/// One connection, opened when it is needed.
pub struct Http {
    target: Target,
    stream: Option<TcpStream>,
}

impl Http {
    pub fn new(target: Target) -> Self {
        Self {
            target,
            stream: None,
        }
    }

    pub fn to(&mut self, target: Target) {
        self.target = target;
        self.stream = None;
    }

    /// The bytes of a request as they would be sent.
    pub fn bytes(&self, request: &Request<'_>) -> Vec<u8> {
        let head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n{}Content-Length: {}\r\n\r\n",
            request.method,
            request.path,
            self.target.host,
            request.headers,
            request.body.len()
        );
        [head.as_bytes(), request.body].concat()
    }

    /// An error means that no whole answer came: whether the request was carried out is not known.
    pub async fn send(&mut self, request: &Request<'_>) -> Result<Answer> {
        let bytes = self.bytes(request);
        self.send_bytes(&bytes).await
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<Answer> {
        // Taken out, so that a failure or a dropped future leaves no half-read connection behind.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(&self.target).await?,
        };
        let exchange = async {
            stream.write_all(bytes).await?;
            read_answer(&mut stream).await
        };
        let answer = timeout(ANSWER_WITHIN, exchange)
            .await
            .context("no answer in time")??;
        let close = answer
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if !close {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    /// Sends and resets the connection after a while, without reading.
    pub async fn send_and_hang_up(&self, request: &Request<'_>, after: Duration) -> Result<()> {
        let mut stream = connect(&self.target).await?;
        stream.write_all(&self.bytes(request)).await?;
        tokio::time::sleep(after).await;
        stream.set_zero_linger()?;
        Ok(())
    }
}

async fn connect(target: &Target) -> Result<TcpStream> {
    let stream = TcpStream::connect(&target.addr).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn read_answer(stream: &mut TcpStream) -> Result<Answer> {
    let mut buffer = Vec::with_capacity(4096);
    let end = loop {
        if let Some(at) = find(&buffer, b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, &mut buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .context("no status line")?;
    let mut body = buffer.split_off(end);
    if header(&head, "transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        body = read_chunks(stream, body).await?;
    } else {
        let length: usize = header(&head, "content-length")
            .map_or(Ok(0), str::parse)
            .context("content-length")?;
        while body.len() < length {
            more(stream, &mut body).await?;
        }
    }
    Ok(Answer { status, head, body })
}

async fn read_chunks(stream: &mut TcpStream, mut raw: Vec<u8>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = loop {
            if let Some(at) = find(&raw, b"\r\n") {
                break at;
            }
            more(stream, &mut raw).await?;
        };
        let size = String::from_utf8_lossy(&raw[..line]).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or("").trim(), 16)
            .context("chunk size")?;
        let end = line + 2 + size + 2;
        while raw.len() < end {
            more(stream, &mut raw).await?;
        }
        body.extend_from_slice(&raw[line + 2..line + 2 + size]);
        raw.drain(..end);
        if size == 0 {
            return Ok(body);
        }
    }
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    let mut chunk = [0u8; 16 * 1024];
    let count = stream.read(&mut chunk).await?;
    if count == 0 {
        bail!("the connection was closed");
    }
    buffer.extend_from_slice(&chunk[..count]);
    Ok(())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// A line of a head.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
