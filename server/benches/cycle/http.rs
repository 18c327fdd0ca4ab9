//! Who calls: a client of one site, over a small HTTP of our own.

use serde_json::{Value, json};
use std::io;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// One client: a site, an agent's key, and nothing shared with the others.
#[derive(Clone)]
pub struct Client {
    pub site: String,
    pub key: String,
}

/// Where an agent's call arrives.
#[derive(Clone, Copy, PartialEq)]
pub enum Door {
    Tools,
    Mcp2025,
    Mcp2026,
}

impl Door {
    pub const ALL: [Self; 3] = [Self::Tools, Self::Mcp2025, Self::Mcp2026];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "/tools",
            Self::Mcp2025 => "/mcp 2025-11-25",
            Self::Mcp2026 => "/mcp 2026-07-28",
        }
    }

    fn revision(self) -> &'static str {
        match self {
            Self::Mcp2025 => "2025-11-25",
            Self::Tools | Self::Mcp2026 => "2026-07-28",
        }
    }
}

/// A keep-alive HTTP/1.1 client that costs little beside the server.
pub struct Http {
    stream: TcpStream,
    addr: String,
    buffer: Vec<u8>,
}

impl Http {
    pub async fn connect(addr: &str) -> Self {
        Self::try_connect(addr).await.expect("the server listens")
    }

    pub async fn try_connect(addr: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            addr: addr.to_owned(),
            buffer: Vec::new(),
        })
    }

    /// A tool by its id, through any door: the answer that all doors give.
    pub async fn call(
        &mut self,
        door: Door,
        client: &Client,
        tool: &str,
        mut arguments: Value,
        approval: Option<&str>,
    ) -> Value {
        let key = format!("Authorization: Bearer {}\r\n", client.key);
        if door == Door::Tools {
            let mut body = json!({"arguments": arguments});
            if let Some(id) = approval {
                body["approvalId"] = id.into();
            }
            let path = format!("/tools/{tool}");
            return self.send("POST", &path, &key, &body.to_string()).await;
        }
        if let Some(id) = approval {
            arguments["approvalId"] = id.into();
        }
        let tool = tool.replace('-', "_");
        let mut params = json!({"name": tool, "arguments": arguments});
        let accept = "Accept: application/json, text/event-stream\r\n";
        let mut headers = format!("{key}{accept}MCP-Protocol-Version: {}\r\n", door.revision());
        if door == Door::Mcp2026 {
            headers.push_str(&format!("Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"));
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": door.revision(),
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let mut answer = self.send("POST", "/mcp", &headers, &body.to_string()).await;
        answer["result"]["structuredContent"].take()
    }

    pub async fn record(&mut self, addr: &str, client: &Client, cookie: &str, id: &str) -> String {
        let headers = format!("Cookie: {cookie}\r\nOrigin: http://{addr}\r\n");
        let record = self
            .send(
                "GET",
                &format!("/api/sites/{}/approvals/{id}", client.site),
                &headers,
                "",
            )
            .await;
        record["seenDigest"].as_str().expect("a record").to_owned()
    }

    pub async fn approve(
        &mut self,
        addr: &str,
        client: &Client,
        cookie: &str,
        id: &str,
        seen: &str,
    ) {
        let headers =
            format!("Cookie: {cookie}\r\nOrigin: http://{addr}\r\nSec-Fetch-Site: same-origin\r\n");
        let record = self
            .send(
                "POST",
                &format!("/api/sites/{}/approvals/{id}/approve", client.site),
                &headers,
                &json!({"seenDigest": seen}).to_string(),
            )
            .await;
        assert_eq!(record["status"], "approved", "{record}");
    }

    pub async fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Value {
        let raw = self.raw(method, path, headers, body).await;
        serde_json::from_str(&raw.1).unwrap_or(Value::Null)
    }

    pub async fn raw(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (String, String) {
        let answer = self.try_raw(method, path, headers, body).await;
        answer.expect("the server answers")
    }

    pub async fn try_raw(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<(String, String)> {
        let kind = if headers.contains("Content-Type") {
            ""
        } else {
            "Content-Type: application/json\r\n"
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}{kind}Content-Length: {}\r\n\r\n{body}",
            self.addr,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        let head_end = loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            self.more().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).to_ascii_lowercase();
        let length: usize = head
            .lines()
            .find_map(|l| l.strip_prefix("content-length:"))
            .and_then(|v| v.trim().parse().ok())
            .unwrap_or(0);
        while self.buffer.len() < head_end + length {
            self.more().await?;
        }
        let original = String::from_utf8_lossy(&self.buffer[..head_end]).into_owned();
        let body = &self.buffer[head_end..head_end + length];
        Ok((original, String::from_utf8_lossy(body).into_owned()))
    }

    async fn more(&mut self) -> io::Result<()> {
        let mut chunk = [0u8; 16 * 1024];
        let n = self.stream.read(&mut chunk).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.buffer.extend_from_slice(&chunk[..n]);
        Ok(())
    }
}
