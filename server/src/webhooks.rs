//! How webhooks leave the house, and where they may go: only to public addresses over TLS, or to what the operator lists.
//!
//! An address is looked up and every answer checked, when it is set and again at each try, and the connection is made to the
//! very addresses that were checked: a name that leads elsewhere a moment later leads nowhere (guide to security: A45). One
//! connection, one request, no proxy, and nobody who would follow a redirect.

mod address;

use address::is_public;
use async_trait::async_trait;
use bytes::Bytes;
use cloudhal_domain::limits;
use cloudhal_engine::{
    outbox::Failure,
    webhooks::{Courier, Signed},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, StatusCode, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use std::{
    collections::BTreeSet,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, pki_types::ServerName},
};
use url::{Host, Url};

/// Where webhooks may go; the operator's to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    pub mode: Mode,
    /// `host:port`, as an address has it. They may be anywhere, and be spoken to without TLS.
    pub listed: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing leaves, and no destination can be set.
    #[default]
    Off,
    /// Only to what is listed.
    Listed,
    /// To what is listed, and to any public address over https.
    Public,
}

/// Looks names up. A test has its own, which changes its mind.
#[async_trait]
pub trait Names: fmt::Debug + Send + Sync {
    async fn addresses(&self, host: &str, port: u16) -> std::io::Result<Vec<IpAddr>>;
}

#[derive(Debug)]
struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn addresses(&self, host: &str, port: u16) -> std::io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, port)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// The courier of a server.
pub struct Post {
    allowed: Allowed,
    names: Arc<dyn Names>,
    tls: TlsConnector,
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post")
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

/// An address that may be told, and where it leads at this moment.
#[derive(Debug)]
struct Checked {
    url: Url,
    host: Host<String>,
    at: Vec<SocketAddr>,
}

impl Post {
    /// The courier that an operator allows; `None` where nothing may leave.
    pub fn allowed(allowed: &Allowed) -> Option<Arc<dyn Courier>> {
        if allowed.mode == Mode::Off {
            return None;
        }
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        Some(Arc::new(Self::with(allowed, Arc::new(SystemNames), roots)))
    }

    fn with(allowed: &Allowed, names: Arc<dyn Names>, roots: RootCertStore) -> Self {
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            allowed: allowed.clone(),
            names,
            tls: TlsConnector::from(Arc::new(tls)),
        }
    }

    /// The whole check: how it is written, where it leads. The words are for the owner of a site, and name no address of ours.
    async fn look_up(&self, text: &str) -> Result<Checked, String> {
        let url = plain(text)?;
        let host = url.host().map(|host| host.to_owned());
        let (Some(host), Some(port)) = (host, url.port_or_known_default()) else {
            return Err("it names no host".into());
        };
        let is_listed = self.allowed.listed.contains(&format!("{host}:{port}"));
        if !is_listed && self.allowed.mode != Mode::Public {
            return Err("the operator has not listed this host and port".into());
        }
        if !is_listed && url.scheme() != "https" {
            return Err("it must begin with https://".into());
        }
        let found = match &host {
            Host::Ipv4(address) => vec![IpAddr::V4(*address)],
            Host::Ipv6(address) => vec![IpAddr::V6(*address)],
            Host::Domain(name) => {
                let found = self.names.addresses(name, port).await;
                found.map_err(|error| nowhere(&host, &error.to_string()))?
            }
        };
        if found.is_empty() {
            return Err(nowhere(&host, "the name has no address"));
        }
        if !is_listed && !found.iter().all(|address| is_public(*address)) {
            return Err(nowhere(&host, "an address is not public"));
        }
        let at = found
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect();
        Ok(Checked { url, host, at })
    }

    /// The same within the time of a try: a name server that keeps silent is told from nothing else either.
    async fn check_in_time(&self, url: &str) -> Result<Checked, String> {
        let looked_up = timeout(limits::WEBHOOK_TRY, self.look_up(url)).await;
        looked_up.unwrap_or_else(|_| {
            let parsed = Url::parse(url).ok();
            let host = parsed.as_ref().and_then(Url::host_str);
            Err(nowhere(
                &host.unwrap_or_default(),
                "the look-up took too long",
            ))
        })
    }

    async fn try_once(&self, checked: &Checked, message: &Signed) -> Result<(), Failure> {
        let cannot_connect = || Failure::new("no connection could be made");
        let stream = TcpStream::connect(&checked.at[..])
            .await
            .map_err(|_| cannot_connect())?;
        if checked.url.scheme() == "http" {
            return exchange(stream, checked, message).await;
        }
        let name = match &checked.host {
            Host::Domain(name) => {
                ServerName::try_from(name.clone()).map_err(|_| cannot_connect())?
            }
            Host::Ipv4(address) => ServerName::from(IpAddr::V4(*address)),
            Host::Ipv6(address) => ServerName::from(IpAddr::V6(*address)),
        };
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| {
            tracing::info!(host = %checked.host, %error, "webhook");
            Failure::new("no secure connection could be made: its certificate may not hold")
        })?;
        exchange(stream, checked, message).await
    }
}

/// Why an address cannot be told, in one sentence for every reason that names would give away: whoever sets destinations
/// must not learn which names of the operator's network there are. The operator's log says more.
fn nowhere(host: &impl fmt::Display, why: &str) -> String {
    tracing::info!(%host, why, "webhook");
    "no public address was found for its host".to_owned()
}

#[async_trait]
impl Courier for Post {
    async fn check(&self, url: &str) -> Result<(), String> {
        self.check_in_time(url).await.map(drop)
    }

    async fn carry(&self, url: &str, message: &Signed) -> Result<(), Failure> {
        let began = Instant::now();
        let checked = self.check_in_time(url).await.map_err(Failure::new)?;
        let late = |_| Failure::new("it did not answer within 5 seconds");
        timeout_at(
            began + limits::WEBHOOK_TRY,
            self.try_once(&checked, message),
        )
        .await
        .map_err(late)?
    }
}

/// Reads an address that is written as it will be understood: no sign-in in it, no number or name in disguise.
fn plain(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "it is not an address".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must begin with https://".into());
    }
    let host = url.host_str().unwrap_or_default();
    if host.ends_with('.') {
        return Err("its host name ends in a dot".into());
    }
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err("it has a space or an invisible character in it".into());
    }
    if text.contains('#') {
        return Err("it has a part after #, which no receiver ever sees".into());
    }
    // 0x7f.1, %6c, full-width letters, a back-slash, name:password@: whatever the reader had to put right first.
    let port = url.port_or_known_default().unwrap_or_default();
    let begins = format!("{}://{host}", url.scheme());
    let written = text.split_once("://").map_or("", |(_, rest)| rest);
    let written = written.split(['/', '?']).next().unwrap_or_default();
    let as_understood = text.to_ascii_lowercase().starts_with(&begins)
        && (written.eq_ignore_ascii_case(host)
            || written.eq_ignore_ascii_case(&format!("{host}:{port}")));
    if as_understood {
        Ok(url)
    } else {
        Err("its host must stand there plainly: a name or a number as it is usually written, and no name before an @".into())
    }
}

/// One POST and its answer.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    to: &Checked,
    message: &Signed,
) -> Result<(), Failure> {
    let broken = |_| Failure::new("the connection broke before an answer came");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let driving = tokio::spawn(connection);
    // Whatever happens here, also a time-out, closes the connection.
    let _closing = AbortOnDrop(driving.abort_handle());
    let host = &to.url[url::Position::BeforeHost..url::Position::AfterPort];
    let path = &to.url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut request = Request::post(path)
        .header(header::HOST, host)
        .header(
            header::USER_AGENT,
            concat!("Cloudhal/", env!("CARGO_PKG_VERSION")),
        )
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close");
    for (name, value) in &message.headers {
        request = request.header(*name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(message.body.clone())))
        .map_err(|_| Failure::last("the address cannot be sent to"))?;
    let answer = sender.send_request(request).await.map_err(broken)?;
    let status = answer.status();
    read_a_little(answer.into_body()).await.map_err(broken)?;
    verdict(status)
}

/// Reads the answer as far as anybody has a right to make us, and forgets it.
async fn read_a_little(mut body: hyper::body::Incoming) -> Result<(), hyper::Error> {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame?.data_ref().map_or(0, Bytes::len);
        if read > limits::WEBHOOK_ANSWER_BYTES_MAX {
            break;
        }
    }
    Ok(())
}

fn verdict(status: StatusCode) -> Result<(), Failure> {
    let number = status.as_u16();
    match number {
        200..=299 => Ok(()),
        300..=399 => Err(Failure::new(format!(
            "it answered {number}: redirects are not followed; set the address that it leads to"
        ))),
        410 => Err(Failure::last("it answered 410: it wants nothing more")),
        _ => Err(Failure::new(format!("it answered {number}"))),
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
