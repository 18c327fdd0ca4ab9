//! Settings: flags, then environment, then `cloudhal.toml`, then defaults; refused completely before anything listens.

use crate::webhooks::{Allowed, Mode};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use cloudhal_engine::{secret::Secret, store};
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use url::Url;

/// Every setting as a flag; the environment name stands beside it in `--help`.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Folder for the database, the secret and nothing else [default: ./data]
    #[arg(long, global = true, env = "CLOUDHAL_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Database address: `sqlite://FILE`, `sqlite::memory:` (forgets everything), or, from the environment only when it holds a password, `postgres://…` [default: sqlite://DATA_DIR/cloudhal.db]
    #[arg(
        long,
        global = true,
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub database_url: Option<String>,
    /// Address to listen on [default: 127.0.0.1:3000]
    #[arg(long, global = true, env = "CLOUDHAL_ADDR", value_name = "HOST:PORT")]
    pub addr: Option<String>,
    /// Address people and agents use; links, Host and Origin checks derive from it [default: http://ADDR]
    #[arg(long, global = true, env = "CLOUDHAL_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// How long a request for approval stays valid, like 90m, 24h or 7d [default: 24h]
    #[arg(
        long,
        global = true,
        env = "CLOUDHAL_APPROVAL_TTL",
        value_name = "TIME"
    )]
    pub approval_ttl: Option<String>,
    /// Serve published sites on an origin of their own [default: under /live of the public URL]
    #[arg(long, global = true, env = "CLOUDHAL_LIVE_URL", value_name = "URL")]
    pub live_url: Option<String>,
    /// File of the key that signs decisions; made with mode 0600 at the first start [default: DATA_DIR/secret]
    #[arg(long, global = true, env = "CLOUDHAL_SECRET_FILE", value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Whether sites may tell receivers outside of approvals: `off`, `public` (any public https address), or `listed` (only what CLOUDHAL_WEBHOOK_ALLOW names) [default: off]
    #[arg(long, global = true, env = "CLOUDHAL_WEBHOOKS", value_name = "MODE")]
    pub webhooks: Option<String>,
    /// Receivers that webhooks may reach wherever they are, and without TLS, like 127.0.0.1:8080,hooks.internal:443: for your own network and for trying things out [default: none]
    #[arg(
        long,
        global = true,
        env = "CLOUDHAL_WEBHOOK_ALLOW",
        value_name = "HOST:PORT,…"
    )]
    pub webhook_allow: Option<String>,
    /// What to log, like info or cloudhal_server=debug,warn [default: info,rmcp=warn]
    #[arg(long, global = true, env = "CLOUDHAL_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// Settings file with the names above in snake_case [default: ./cloudhal.toml if there is one]
    #[arg(long, global = true, env = "CLOUDHAL_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What `cloudhal.toml` may hold; an unknown name is an error, since a typing error must not pass as a default.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FromFile {
    data_dir: Option<PathBuf>,
    database_url: Option<String>,
    addr: Option<String>,
    public_url: Option<String>,
    approval_ttl: Option<String>,
    live_url: Option<String>,
    secret_file: Option<PathBuf>,
    webhooks: Option<String>,
    webhook_allow: Option<String>,
    log: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Config {
    pub data_dir: PathBuf,
    pub database_url: String,
    pub addr: SocketAddr,
    pub public_url: String,
    pub approval_ttl: Duration,
    pub live_url: Option<String>,
    pub secret_file: PathBuf,
    pub webhooks: Allowed,
    pub log: String,
}

impl Config {
    pub fn load(flags: Flags) -> Result<Self> {
        let file = read_file(flags.config.as_deref())?;
        let data_dir = flags
            .data_dir
            .or(file.data_dir)
            .unwrap_or_else(|| "./data".into());
        let addr = flags
            .addr
            .or(file.addr)
            .unwrap_or_else(|| "127.0.0.1:3000".into());
        let addr: SocketAddr = addr.parse().with_context(|| {
            format!("CLOUDHAL_ADDR: “{addr}” is not an address and a port like 127.0.0.1:3000")
        })?;
        let public_url = flags
            .public_url
            .or(file.public_url)
            .unwrap_or_else(|| default_url(addr));
        let ttl = flags
            .approval_ttl
            .or(file.approval_ttl)
            .unwrap_or_else(|| "24h".into());
        let live_url = flags
            .live_url
            .or(file.live_url)
            .filter(|url| !url.is_empty());
        let database_url = flags
            .database_url
            .or(file.database_url)
            .unwrap_or_else(|| store::sqlite_url(&data_dir.join("cloudhal.db")));
        let config = Self {
            public_url: origin("CLOUDHAL_PUBLIC_URL", &public_url)?,
            live_url: live_url
                .map(|url| origin("CLOUDHAL_LIVE_URL", &url))
                .transpose()?,
            approval_ttl: parse_time("CLOUDHAL_APPROVAL_TTL", &ttl)?,
            secret_file: flags
                .secret_file
                .or(file.secret_file)
                .unwrap_or_else(|| data_dir.join("secret")),
            log: flags
                .log
                .or(file.log)
                .unwrap_or_else(|| "info,rmcp=warn".into()),
            webhooks: webhooks(
                flags.webhooks.or(file.webhooks).as_deref(),
                flags.webhook_allow.or(file.webhook_allow).as_deref(),
            )?,
            database_url: check_database_url(database_url)?,
            data_dir,
            addr,
        };
        if config.live_url.as_ref() == Some(&config.public_url) {
            bail!(
                "CLOUDHAL_LIVE_URL: it is the public URL; leave it out, or give published sites an origin of their own"
            );
        }
        tracing_subscriber::EnvFilter::try_new(&config.log)
            .with_context(|| format!("CLOUDHAL_LOG: “{}” is not a log filter", config.log))?;
        private_folder(&config.data_dir).with_context(|| {
            format!(
                "CLOUDHAL_DATA_DIR: cannot make {}",
                config.data_dir.display()
            )
        })?;
        Ok(config)
    }

    /// Refuses where there is no database yet: what only looks, or copies, makes none.
    pub fn expect_database(&self) -> Result<()> {
        let Some(file) = store::sqlite_file(&self.database_url) else {
            return Ok(());
        };
        if file.exists() {
            return Ok(());
        }
        bail!(
            "there is no database at {}: say where it is with --data-dir or DATABASE_URL; `cloudhal serve` and `cloudhal person add` make one",
            file.display()
        )
    }

    /// Reads the signing key, making one at the first start.
    pub fn secret(&self) -> Result<Secret> {
        let path = &self.secret_file;
        match std::fs::read_to_string(path) {
            Ok(text) => Secret::from_text(&text).with_context(|| {
                format!("CLOUDHAL_SECRET_FILE: {} does not hold 64 hexadecimal digits; without it no approval of the past can be redeemed", path.display())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let secret = Secret::random();
                write_private(path, &secret.to_text()).with_context(|| format!("CLOUDHAL_SECRET_FILE: cannot write {}", path.display()))?;
                Ok(secret)
            }
            Err(error) => Err(error).with_context(|| format!("CLOUDHAL_SECRET_FILE: cannot read {}", path.display())),
        }
    }
}

fn read_file(named: Option<&Path>) -> Result<FromFile> {
    let path = named.unwrap_or(Path::new("cloudhal.toml"));
    match std::fs::read_to_string(path) {
        Ok(text) => {
            toml::from_str(&text).with_context(|| format!("settings file {}", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            Ok(FromFile::default())
        }
        Err(error) => Err(error).with_context(|| format!("settings file {}", path.display())),
    }
}

/// `http://127.0.0.1:3000`; a wildcard address is not one that a browser can open.
fn default_url(addr: SocketAddr) -> String {
    if addr.ip().is_unspecified() {
        format!("http://localhost:{}", addr.port())
    } else {
        format!("http://{addr}")
    }
}

fn origin(setting: &str, text: &str) -> Result<String> {
    let url = Url::parse(text).with_context(|| format!("{setting}: “{text}” is not a URL"))?;
    let bare = matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() || !bare {
        bail!(
            "{setting}: “{text}” must be http:// or https://, a host and maybe a port, and nothing more"
        );
    }
    Ok(url.origin().ascii_serialization())
}

fn webhooks(mode: Option<&str>, listed: Option<&str>) -> Result<Allowed> {
    let mode = match mode.unwrap_or("off") {
        "off" | "" => Mode::Off,
        "listed" => Mode::Listed,
        "public" => Mode::Public,
        other => bail!("CLOUDHAL_WEBHOOKS: “{other}” is not off, listed or public"),
    };
    let entries = listed.unwrap_or_default().split(',').map(str::trim);
    let listed: BTreeSet<String> = entries
        .filter(|entry| !entry.is_empty())
        .map(host_and_port)
        .collect::<Result<_>>()?;
    if mode == Mode::Listed && listed.is_empty() {
        bail!(
            "CLOUDHAL_WEBHOOKS: it is `listed`, and CLOUDHAL_WEBHOOK_ALLOW lists nothing; name the receivers there, or set `off`"
        );
    }
    Ok(Allowed { mode, listed })
}

/// `host:port` as an address will have it.
fn host_and_port(entry: &str) -> Result<String> {
    let bad = || {
        format!("CLOUDHAL_WEBHOOK_ALLOW: “{entry}” is not a host and a port like 127.0.0.1:8080")
    };
    let port = entry.rsplit_once(':').map_or("", |(_, port)| port);
    let port: u16 = port.parse().with_context(bad)?;
    let url = Url::parse(&format!("http://{entry}/")).with_context(bad)?;
    let host = url.host_str().with_context(bad)?;
    if url.port_or_known_default() != Some(port) || url.path() != "/" || !url.username().is_empty()
    {
        bail!(bad());
    }
    Ok(format!("{host}:{port}"))
}

fn check_database_url(url: String) -> Result<String> {
    if ["sqlite:", "postgres://", "postgresql://"]
        .iter()
        .any(|start| url.starts_with(start))
    {
        let holds_password = url
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('@'))
            .is_some_and(|(user, _)| user.contains(':') && !user.contains('/'));
        if holds_password && std::env::args().any(|argument| argument.contains(&url)) {
            bail!(
                "DATABASE_URL: it holds a password, and other programs can read a command line; set it in the environment or in cloudhal.toml"
            );
        }
        return Ok(url);
    }
    bail!("DATABASE_URL: it must begin with sqlite:// or postgres://")
}

/// Makes the data folder, for its owner alone: the database in it holds drafts and the journal. One that is there already is
/// left as it is.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// A time like 90m, 24h or 7d, between a second and a year; `setting` is named when it is not.
pub fn parse_time(setting: &str, text: &str) -> Result<Duration> {
    let bad = || format!("{setting}: “{text}” is not a time like 90m, 24h or 7d");
    let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text
        .trim()
        .strip_suffix(unit)
        .unwrap_or_default()
        .parse()
        .with_context(bad)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => bail!(bad()),
    };
    match number.checked_mul(seconds) {
        Some(seconds @ 1..=31_536_000) => Ok(Duration::from_secs(seconds)),
        _ => bail!("{setting}: “{text}” must be between 1s and 365d"),
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Hosts and origins that requests may name, from the public URL alone.
#[derive(Clone, Debug)]
pub struct Origins {
    pub public: String,
    pub public_host: String,
    pub live_host: Option<String>,
    pub https: bool,
}

impl Origins {
    pub fn new(public: &str, live: Option<&str>) -> Result<Self> {
        let host = |text: &str| -> Result<String> {
            let url = Url::parse(text)?;
            Ok(url[url::Position::BeforeHost..url::Position::AfterPort].to_ascii_lowercase())
        };
        Ok(Self {
            public_host: host(public)?,
            live_host: live.map(host).transpose()?,
            https: public.starts_with("https://"),
            public: public.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(flags: Flags) -> Result<Config> {
        Config::load(Flags {
            data_dir: Some(std::env::temp_dir().join("cloudhal-config-test")),
            ..flags
        })
    }

    #[test]
    fn a_bad_setting_is_named() {
        let check = |flags: Flags, name: &str| {
            let error = format!("{:#}", load(flags).unwrap_err());
            assert!(error.starts_with(name), "{error}");
        };
        let none = Flags::default;
        check(
            Flags {
                addr: Some("nowhere".into()),
                ..none()
            },
            "CLOUDHAL_ADDR",
        );
        check(
            Flags {
                public_url: Some("hal.example".into()),
                ..none()
            },
            "CLOUDHAL_PUBLIC_URL",
        );
        check(
            Flags {
                public_url: Some("https://hal.example/path".into()),
                ..none()
            },
            "CLOUDHAL_PUBLIC_URL",
        );
        check(
            Flags {
                public_url: Some("ftp://hal.example".into()),
                ..none()
            },
            "CLOUDHAL_PUBLIC_URL",
        );
        check(
            Flags {
                live_url: Some("javascript:x".into()),
                ..none()
            },
            "CLOUDHAL_LIVE_URL",
        );
        check(
            Flags {
                approval_ttl: Some("soon".into()),
                ..none()
            },
            "CLOUDHAL_APPROVAL_TTL",
        );
        check(
            Flags {
                approval_ttl: Some("0h".into()),
                ..none()
            },
            "CLOUDHAL_APPROVAL_TTL",
        );
        check(
            Flags {
                approval_ttl: Some("99999999999999999999h".into()),
                ..none()
            },
            "CLOUDHAL_APPROVAL_TTL",
        );
        check(
            Flags {
                database_url: Some("mysql://x".into()),
                ..none()
            },
            "DATABASE_URL",
        );
        check(
            Flags {
                webhooks: Some("on".into()),
                ..none()
            },
            "CLOUDHAL_WEBHOOKS",
        );
        check(
            Flags {
                webhooks: Some("listed".into()),
                ..none()
            },
            "CLOUDHAL_WEBHOOKS",
        );
        for entry in ["127.0.0.1", "http://x:1", "a@b:1", "x:1/in", "x:65536"] {
            check(
                Flags {
                    webhook_allow: Some(entry.into()),
                    ..none()
                },
                "CLOUDHAL_WEBHOOK_ALLOW",
            );
        }
        check(
            Flags {
                log: Some("a=b=c".into()),
                ..none()
            },
            "CLOUDHAL_LOG",
        );
    }

    #[test]
    fn webhooks_are_off_until_somebody_allows_them() {
        assert_eq!(load(Flags::default()).unwrap().webhooks.mode, Mode::Off);
        let config = load(Flags {
            webhooks: Some("public".into()),
            webhook_allow: Some("127.0.0.1:8080, Hooks.Internal:80,[::1]:9".into()),
            ..Flags::default()
        });
        let allowed = config.unwrap().webhooks;
        assert_eq!(allowed.mode, Mode::Public);
        let listed: Vec<&str> = allowed.listed.iter().map(String::as_str).collect();
        assert_eq!(listed, ["127.0.0.1:8080", "[::1]:9", "hooks.internal:80"]);
    }

    #[test]
    fn defaults_follow_from_the_address() {
        let config = load(Flags {
            addr: Some("0.0.0.0:8080".into()),
            ..Flags::default()
        })
        .unwrap();
        assert_eq!(config.public_url, "http://localhost:8080");
        assert_eq!(config.approval_ttl, Duration::from_secs(24 * 3600));
        let config = load(Flags {
            public_url: Some("https://HAL.example/".into()),
            ..Flags::default()
        })
        .unwrap();
        assert_eq!(config.public_url, "https://hal.example");
        assert_eq!(
            Origins::new(&config.public_url, None).unwrap().public_host,
            "hal.example"
        );
    }
}
