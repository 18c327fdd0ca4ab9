//! [C86, A45] Where webhooks may not go, with names that lead wherever a test says.

use super::*;
use serde::Deserialize;
use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};

const DESTINATIONS: &str = include_str!("../../tests/data/14-webhook-destinations.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Destination {
    url: String,
    is: String,
    leads_to: Option<Vec<IpAddr>>,
}

/// What each look-up of a name gives, one after the other; the last one stays.
#[derive(Debug, Default)]
struct Book(Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>);

impl Book {
    fn with(self, name: &str, answers: &[&[IpAddr]]) -> Self {
        let answers = answers.iter().map(|one| one.to_vec()).collect();
        self.0.lock().unwrap().insert(name.into(), answers);
        self
    }
}

#[async_trait]
impl Names for Book {
    async fn addresses(&self, host: &str, _: u16) -> std::io::Result<Vec<IpAddr>> {
        match host {
            ABSENT => return Err(std::io::Error::other("no such name")),
            SILENT => std::future::pending().await,
            _ => {}
        }
        let mut book = self.0.lock().unwrap();
        let Some(answers) = book.get_mut(host) else {
            return Ok(vec![PUBLIC]);
        };
        let next = answers.pop_front().unwrap();
        if answers.is_empty() {
            answers.push_back(next.clone());
        }
        Ok(next)
    }
}

/// A name that there is not, and one whose server never answers.
const ABSENT: &str = "absent.example";
const SILENT: &str = "silent.example";
const PUBLIC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(93, 184, 216, 34));
const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn post(mode: Mode, listed: &[&str], names: Book) -> Post {
    trusting(mode, listed, names, RootCertStore::empty())
}

fn trusting(mode: Mode, listed: &[&str], names: Book, roots: RootCertStore) -> Post {
    let listed = listed.iter().map(|one| (*one).to_owned()).collect();
    Post::with(&Allowed { mode, listed }, Arc::new(names), roots)
}

fn message() -> Signed {
    Signed {
        headers: ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|n| (n, "x".into())),
        body: "{}".into(),
    }
}

#[tokio::test]
async fn c86_every_way_inside_is_refused() {
    let all: Vec<Destination> = serde_json::from_str(DESTINATIONS).unwrap();
    assert!(all.len() > 60);
    for one in all {
        let mut names = Book::default();
        if let Some(to) = &one.leads_to {
            let host = Url::parse(&one.url).unwrap().host_str().unwrap().to_owned();
            names = names.with(&host, &[to]);
        }
        let post = post(Mode::Public, &[], names);
        let (url, about) = (&one.url, &one.is);
        assert!(post.check(url).await.is_err(), "{about}: {url:?} is taken");
        let tried = post.carry(url, &message()).await;
        assert!(tried.is_err(), "{about}: {url:?} was told");
    }
    let post = post(Mode::Public, &[], Book::default());
    for fine in [
        "https://public.example",
        "https://Public.Example:8443/in?a=b",
        "https://public.example:443/in",
        "https://93.184.216.34/in",
        "https://[2606:4700::1111]/in",
        "https://xn--bcher-kva.example/",
    ] {
        assert_eq!(post.check(fine).await, Ok(()), "{fine}");
    }
}

/// Rebinding: public when it was set, inside when it is told.
#[tokio::test]
async fn c86_a_name_that_moves_inside_is_not_told() {
    let names = Book::default().with("moves.example", &[&[PUBLIC], &[LOOPBACK]]);
    let post = post(Mode::Public, &[], names);
    let url = "https://moves.example/";
    assert_eq!(post.check(url).await, Ok(()));
    let refused = post.carry(url, &message()).await.unwrap_err();
    assert!(refused.why.contains("no public address"), "{refused:?}");
}

/// A name of the operator's network, one that there is not, and one whose server says nothing: nobody who sets a destination
/// learns which it is.
#[tokio::test]
async fn every_name_that_leads_nowhere_is_answered_alike() {
    let names = Book::default()
        .with("inside.example", &[&[LOOPBACK]])
        .with("both.example", &[&[PUBLIC, LOOPBACK]])
        .with("empty.example", &[&[]]);
    let post = post(Mode::Public, &[], names);
    let names = [
        "inside.example",
        "both.example",
        "empty.example",
        ABSENT,
        SILENT,
        "127.0.0.1",
    ];
    // Side by side: the silent one takes the time that a look-up may take.
    let asked = names.map(|name| {
        let (post, url) = (&post, format!("https://{name}/in"));
        async move {
            let message = message();
            let (checked, tried) = tokio::join!(post.check(&url), post.carry(&url, &message));
            let tried = tried.unwrap_err();
            assert!(!tried.last, "{name}: it may lead somewhere again");
            [checked.unwrap_err(), tried.why]
        }
    });
    let answers = futures::future::join_all(asked).await;
    let answers: std::collections::BTreeSet<String> = answers.into_iter().flatten().collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
}

/// The addresses that were checked are those that are connected to: a second look-up would lead nowhere here.
#[tokio::test]
async fn c86_a_name_is_looked_up_once_a_try() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let names = Book::default().with("moves.example", &[&[LOOPBACK], &[]]);
    let post = post(Mode::Listed, &[&format!("moves.example:{port}")], names);
    let receiver = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 1024];
        let read = stream.read(&mut head).await.unwrap();
        stream.write_all(b"HTTP/1.1 204 \r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    let url = format!("http://moves.example:{port}/in?a=b");
    assert_eq!(post.carry(&url, &message()).await, Ok(()));
    let head = receiver.await.unwrap();
    assert!(head.starts_with("POST /in?a=b HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains(&format!("host: moves.example:{port}\r\n")),
        "{head}"
    );
}

/// Over TLS only somebody who shows a trusted certificate of that very name is told.
#[tokio::test]
async fn c86_a_certificate_is_asked_for_and_verified() {
    let of_receiver = rcgen::generate_simple_self_signed(["receiver.example".to_owned()]).unwrap();
    let chain = vec![of_receiver.cert.der().clone()];
    let key = PrivateKeyDer::try_from(of_receiver.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.clone(), key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let told = tokio::spawn(async move {
        let mut told = Vec::new();
        while told.len() < 3 {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                told.push(None);
                continue;
            };
            let mut head = vec![0; 1024];
            let read = stream.read(&mut head).await.unwrap_or(0);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await;
            told.push(Some(String::from_utf8_lossy(&head[..read]).into_owned()));
        }
        told
    });
    let mut trusted = RootCertStore::empty();
    trusted.add(chain[0].clone()).unwrap();
    let mut outcomes = Vec::new();
    for (name, roots) in [
        ("receiver.example", &trusted),
        ("another.example", &trusted),
        ("receiver.example", &RootCertStore::empty()),
    ] {
        let names = Book::default().with(name, &[&[LOOPBACK]]);
        let listed = format!("{name}:{port}");
        let post = trusting(Mode::Listed, &[&listed], names, roots.clone());
        let url = format!("https://{name}:{port}/in");
        outcomes.push(post.carry(&url, &message()).await.map_err(|f| f.why));
    }
    let no = Err("no secure connection could be made: its certificate may not hold".to_owned());
    assert_eq!(outcomes, [Ok(()), no.clone(), no]);
    let told = told.await.unwrap();
    assert!(
        told[0]
            .as_ref()
            .unwrap()
            .starts_with("POST /in HTTP/1.1\r\n")
    );
    assert_eq!(told[1..], [None, None]);
}

#[tokio::test]
async fn where_only_the_listed_is_allowed_nothing_else_is() {
    let post = post(Mode::Listed, &["127.0.0.1:8080"], Book::default());
    assert_eq!(post.check("http://127.0.0.1:8080/in").await, Ok(()));
    for other in [
        "http://127.0.0.1:8081/",
        "https://127.0.0.1/",
        "https://public.example/",
        "http://localhost:8080/",
        "http://0x7f.1:8080/",
    ] {
        assert!(post.check(other).await.is_err(), "{other}");
    }
}
