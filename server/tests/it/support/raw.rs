//! Bytes on a socket: for what an HTTP library would tidy up or refuse to send.

use super::{Seen, TestServer, Value};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// One request, header by header.
pub struct Raw {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Raw {
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            line: format!("{method} {path} HTTP/1.1"),
            headers: vec![("connection".into(), "close".into())],
            body: Vec::new(),
        }
    }

    /// May be given more than once for one name.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("content-length", &length)
    }

    fn head(&self) -> String {
        let mut text = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text
    }

    pub async fn send(&self, server: &TestServer) -> Seen {
        let mut socket = TcpStream::connect(server.addr).await.unwrap();
        socket.write_all(self.head().as_bytes()).await.unwrap();
        // The server may have answered and closed already.
        let _ = socket.write_all(&self.body).await;
        answer(socket).await
    }

    /// The head, then the same chunk until the server has had enough.
    pub async fn send_endlessly(mut self, server: &TestServer, chunk: &[u8]) -> Seen {
        self = self.header("transfer-encoding", "chunked");
        let socket = TcpStream::connect(server.addr).await.unwrap();
        let (reading, mut writing) = socket.into_split();
        writing.write_all(self.head().as_bytes()).await.unwrap();
        let framed = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
        let writer = tokio::spawn(async move { while writing.write_all(&framed).await.is_ok() {} });
        let seen = answer(reading).await;
        writer.abort();
        seen
    }

    /// The whole request, and then nobody who waits for its answer. The connection is held for so many turns of the
    /// scheduler, so that the server is met at different points of its work.
    pub async fn send_and_leave(&self, server: &TestServer, turns: usize) {
        let mut socket = TcpStream::connect(server.addr).await.unwrap();
        socket.write_all(self.head().as_bytes()).await.unwrap();
        socket.write_all(&self.body).await.unwrap();
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    }

    /// Bodies one after the other on one connection, and their answers.
    pub async fn pipelined(
        server: &TestServer,
        path: &str,
        key: &str,
        bodies: &[Vec<u8>],
    ) -> Vec<Seen> {
        let mut socket = TcpStream::connect(server.addr).await.unwrap();
        let mut seen = Vec::new();
        for body in bodies {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\ncontent-length: {}\r\n\r\n",
                server.host(),
                body.len()
            );
            socket.write_all(head.as_bytes()).await.unwrap();
            socket.write_all(body).await.unwrap();
            seen.push(answer(&mut socket).await);
        }
        seen
    }

    /// The head and a part of the body that it announced, then nothing more.
    pub async fn send_and_hang_up(&self, server: &TestServer, part: &[u8]) -> Seen {
        let mut socket = TcpStream::connect(server.addr).await.unwrap();
        socket.write_all(self.head().as_bytes()).await.unwrap();
        socket.write_all(part).await.unwrap();
        socket.shutdown().await.unwrap();
        answer(socket).await
    }
}

/// Reads until the server closes; a reset after an answer is no less an answer.
async fn answer(mut reading: impl tokio::io::AsyncRead + Unpin) -> Seen {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match reading.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
        if is_whole(&bytes) {
            break;
        }
    }
    parse(&bytes)
}

fn split(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    Some((head, &bytes[end + 4..]))
}

fn is_whole(bytes: &[u8]) -> bool {
    let Some((head, body)) = split(bytes) else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    length.is_some_and(|length| body.len() >= length)
}

fn parse(bytes: &[u8]) -> Seen {
    let Some((head, body)) = split(bytes) else {
        return Seen {
            status: 0,
            headers: HeaderMap::new(),
            text: String::from_utf8_lossy(bytes).into_owned(),
            body: Value::Null,
        };
    };
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    let text = String::from_utf8_lossy(body).into_owned();
    Seen {
        status: status.parse().unwrap(),
        headers,
        body: serde_json::from_str(&text).unwrap_or(Value::Null),
        text,
    }
}
