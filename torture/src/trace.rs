//! What a client wrote down: every request before it is sent and every answer after it came, in a file of its own, so that
//! the checker can later say what was promised to whom. A line per request and per answer, JSON.

use anyhow::{Context as _, Result};
use cloudhal_engine::clock::{Clock as _, SystemClock};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

/// What a client tried to do.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "do", rename_all = "camelCase")]
pub enum Attempt {
    Ask { site: String },
    Redeem { approval: String },
    Decide { approval: String, approve: bool },
    Edit { node: String, text: String },
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Got {
    pub status: u16,
    pub body: Value,
}

#[derive(Deserialize, Serialize)]
struct Line {
    n: u64,
    at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<Attempt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    got: Option<Got>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

/// The pen of one client.
pub struct Trace {
    file: File,
    next: u64,
}

impl Trace {
    pub fn new(folder: &Path, client: &str) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{client}.jsonl"));
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        Ok(Self { file, next: 0 })
    }

    pub fn before(&mut self, attempt: &Attempt) -> Result<u64> {
        let n = self.next;
        self.next += 1;
        self.write(Line {
            n,
            at: SystemClock.now().ms(),
            attempt: Some(attempt.clone()),
            got: None,
            lost: None,
        })?;
        Ok(n)
    }

    pub fn after(&mut self, n: u64, got: Result<Got, String>) -> Result<()> {
        let (got, lost) = match got {
            Ok(got) => (Some(got), None),
            Err(lost) => (None, Some(lost)),
        };
        let at = SystemClock.now().ms();
        self.write(Line {
            n,
            at,
            attempt: None,
            got,
            lost,
        })
    }

    fn write(&mut self, line: Line) -> Result<()> {
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        // In one call, so that a reader never sees half a line.
        Ok(self.file.write_all(text.as_bytes())?)
    }
}

/// One request with what came of it; `None` where no answer came.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub client: String,
    pub attempt: Attempt,
    pub got: Option<Got>,
}

/// Reads the files of a folder again and again, each line once.
pub struct Reader {
    folder: PathBuf,
    read: HashMap<PathBuf, u64>,
    open: HashMap<(PathBuf, u64), Attempt>,
}

impl Reader {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            read: HashMap::new(),
            open: HashMap::new(),
        }
    }

    /// The exchanges that ended since the last time.
    pub fn ended(&mut self) -> Result<Vec<Exchange>> {
        let mut ended = Vec::new();
        if !self.folder.exists() {
            return Ok(ended);
        }
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let from = self.read.get(&path).copied().unwrap_or(0);
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(from))?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            self.read.insert(path.clone(), from + text.len() as u64);
            let client = path
                .file_stem()
                .map_or(String::new(), |name| name.to_string_lossy().into_owned());
            for line in text.lines() {
                let line: Line = serde_json::from_str(line)
                    .with_context(|| format!("{}: {line}", path.display()))?;
                let key = (path.clone(), line.n);
                match line.attempt {
                    Some(attempt) => drop(self.open.insert(key, attempt)),
                    None => {
                        let attempt = self
                            .open
                            .remove(&key)
                            .with_context(|| format!("{}: an answer to nothing", path.display()))?;
                        ended.push(Exchange {
                            client: client.clone(),
                            attempt,
                            got: line.got,
                        });
                    }
                }
            }
        }
        Ok(ended)
    }
}
