//! Webhooks as their receivers see them, and as the owner of a site sets them: real sockets on loopback, which the operator of
//! the test has listed.

use crate::support::{binary::Operator, *};
use axum::{Router, body::Bytes, http::HeaderMap, response::IntoResponse, routing::post};
use cloudhal_engine::outbox::deliver_due;
use cloudhal_server::webhooks::{Allowed, Mode};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::{Method, StatusCode};
use sha2::Sha256;
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::{Notify, mpsc},
};

/// One message, as it came.
pub struct Got {
    headers: HeaderMap,
    body: Bytes,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    fn id(&self) -> &str {
        self.header("webhook-id")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Judged twice: by the specification's own crate, and by hand.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        // The crate verifies against the machine's clock, which a test does not have: it signs, and the two must be equal.
        let at = self.header("webhook-timestamp").parse().unwrap();
        let of_crate = standardwebhooks::Webhook::new(secret)
            .unwrap()
            .sign(self.id(), at, &self.body)
            .unwrap();
        let key = data_encoding::BASE64
            .decode(secret.strip_prefix("whsec_").unwrap().as_bytes())
            .unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(format!("{}.{at}.", self.id()).as_bytes());
        mac.update(&self.body);
        let right = data_encoding::BASE64.encode(&mac.finalize().into_bytes());
        assert_eq!(of_crate, format!("v1,{right}"));
        let mut given = self.header("webhook-signature").split(' ');
        given.any(|one| one == of_crate)
    }
}

/// Somebody who is told. Answers as it is set to, and hands over what it got.
pub struct Receiver {
    pub addr: SocketAddr,
    answer: Arc<Mutex<u16>>,
    got: mpsc::UnboundedReceiver<Got>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (give, got) = mpsc::unbounded_channel();
        let answer = Arc::new(Mutex::new(204));
        let status = answer.clone();
        let handler = post(move |headers: HeaderMap, body: Bytes| async move {
            give.send(Got { headers, body }).unwrap();
            let status = StatusCode::from_u16(*status.lock().unwrap()).unwrap();
            let to = format!("http://{addr}/elsewhere");
            (status, [("location", to)], "x".repeat(1000)).into_response()
        });
        let router = Router::new().fallback_service(handler);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { addr, answer, got }
    }

    pub fn url(&self) -> String {
        format!("http://{}/in?token=of-the-receiver", self.addr)
    }

    pub fn answers(&self, status: u16) {
        *self.answer.lock().unwrap() = status;
    }

    pub async fn next(&mut self) -> Got {
        self.got.recv().await.unwrap()
    }

    fn has_nothing(&mut self) {
        assert!(self.got.try_recv().is_err(), "something came");
    }
}

pub fn allowing(addresses: &[SocketAddr]) -> Setup {
    Setup {
        webhooks: Allowed {
            mode: Mode::Public,
            listed: addresses.iter().map(ToString::to_string).collect(),
        },
        ..Setup::default()
    }
}

struct Told {
    server: TestServer,
    ada: PersonClient,
    bot: AgentClient,
    path: String,
    hook: String,
    secret: String,
}

impl Told {
    async fn by(setup: Setup, url: &str) -> Option<Self> {
        let server = TestServer::start_as(setup).await?;
        let (ada, bot) = (server.as_person("ada").await, server.as_agent("bot").await);
        let path = format!("/api/sites/{}/webhooks", server.site);
        let made = ada.post_json(&path, json!({"url": url})).await;
        assert_eq!(made.status, 200, "{}", made.text);
        let text = |name: &str| made.body[name].as_str().unwrap().to_owned();
        let (hook, secret) = (text("id"), text("secret"));
        Some(Self {
            server,
            ada,
            bot,
            path,
            hook,
            secret,
        })
    }

    async fn receiver(receiver: &Receiver) -> Self {
        Self::by(allowing(&[receiver.addr]), &receiver.url())
            .await
            .unwrap()
    }

    async fn post(&self, rest: &str) -> Value {
        let path = format!("{}/{}{rest}", self.path, self.hook);
        let seen = self.ada.post_json(&path, json!({})).await;
        assert_eq!(seen.status, 200, "{}", seen.text);
        seen.body
    }

    async fn ping(&self) -> String {
        self.post("/ping").await["delivery"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The newest delivery, once this node has done what is due.
    async fn settled(&self) -> Value {
        let path = format!("{}/{}/deliveries", self.path, self.hook);
        loop {
            deliver_due(self.server.engine()).await.unwrap();
            let seen = self.ada.get(&path).await;
            let newest = seen.body["items"][0].clone();
            // One that another task of the server holds at this moment has no word yet of how it went.
            let untold = newest["status"] == "waiting" && newest.get("lastError").is_none();
            if !untold {
                return newest;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_arrives_signed_with_a_link_and_nothing_that_acts() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let mut receiver = Receiver::start().await;
        let setup = Setup {
            kind,
            ..allowing(&[receiver.addr])
        };
        let Some(told) = Told::by(setup, &receiver.url()).await else {
            continue;
        };
        told.bot
            .edit(&told.server.site, "visit", "A secret plan.")
            .await;
        let id = told
            .bot
            .ask("publish", json!({"site": told.server.site}))
            .await;
        let got = receiver.next().await;
        assert!(got.is_signed_with(&told.secret));
        assert_eq!(got.header("content-type"), "application/json");
        assert_eq!(
            got.header("webhook-timestamp"),
            (START_MS / 1000).to_string()
        );
        let link = format!("{}/approvals/{id}", told.server.origin);
        let body = got.json();
        let summary = body["data"]["summary"].as_str().unwrap();
        assert!(summary.contains("The bakery"), "{summary}");
        let expect = json!({
            "type": "approval.requested", "timestamp": "2026-03-29T00:30:00.000Z",
            "data": {"id": id, "site": told.server.site, "siteTitle": "The bakery", "tool": "publish", "status": "pending",
                "summary": summary, "url": link},
        });
        assert_eq!(body, expect);
        told.ada.approve(&told.server.site, &id).await;
        assert_eq!(receiver.next().await.json()["data"]["status"], "approved");
        let ran = told
            .bot
            .call_with(&id, "publish", json!({"site": told.server.site}))
            .await;
        assert_eq!(ran.status, 200, "{}", ran.text);
        let executed = receiver.next().await.json();
        assert_eq!(executed["type"], "approval.executed");
        assert_eq!(executed["data"]["outcome"], "succeeded");
        told.server.done().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_tried_again_under_the_same_id() {
    let mut receiver = Receiver::start().await;
    receiver.answers(500);
    let told = Told::receiver(&receiver).await;
    let id = told.ping().await;
    assert_eq!(receiver.next().await.id(), id);
    let waiting = told.settled().await;
    assert_eq!(waiting["lastError"], "it answered 500");
    assert_eq!(
        (&waiting["status"], &waiting["tries"]),
        (&json!("waiting"), &json!(1))
    );
    receiver.answers(200);
    told.server.advance(Duration::from_secs(5));
    let done = told.settled().await;
    let again = receiver.next().await;
    assert_eq!(again.id(), id);
    assert_eq!(
        again.header("webhook-timestamp"),
        (START_MS / 1000 + 5).to_string(),
        "signed anew"
    );
    assert!(again.is_signed_with(&told.secret));
    assert_eq!(again.json()["type"], "ping");
    assert_eq!(
        (&done["status"], &done["tries"]),
        (&json!("delivered"), &json!(2))
    );
    told.post(&format!("/deliveries/{id}/redeliver")).await;
    assert_eq!(receiver.next().await.id(), id);
    told.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_says_gone_is_not_asked_again() {
    let mut receiver = Receiver::start().await;
    receiver.answers(410);
    let told = Told::receiver(&receiver).await;
    told.ping().await;
    receiver.next().await;
    assert_eq!(told.settled().await["status"], "gave_up");
    let kinds: Vec<Value> = told
        .server
        .journal()
        .await
        .iter()
        .map(|e| e["kind"].clone())
        .collect();
    assert!(kinds.contains(&json!("webhook.gave_up")), "{kinds:?}");
    told.server.done().await;
}

/// [C86] The redirect is an answer like any other failure; where it leads is never asked.
#[tokio::test(flavor = "multi_thread")]
async fn c86_a_redirect_is_not_followed() {
    let mut receiver = Receiver::start().await;
    let told = Told::receiver(&receiver).await;
    for status in [301, 302, 303, 307, 308] {
        receiver.answers(status);
        told.ping().await;
        receiver.next().await;
        let failed = told.settled().await;
        let why = failed["lastError"].as_str().unwrap();
        assert!(
            why.contains(&status.to_string()) && why.contains("redirect"),
            "{failed}"
        );
        receiver.has_nothing();
        told.server.advance(Duration::from_millis(1));
    }
    told.server.done().await;
}

/// A socket that takes what comes and says `answer`, then waits to be let go, without ever closing by itself.
async fn odd_receiver(answer: &'static [u8], endless: bool) -> (SocketAddr, Arc<Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let closed = Arc::new(Notify::new());
    let tell = closed.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await.unwrap();
            let _ = stream.write_all(answer).await;
            while endless && stream.write_all(&[b'x'; 1024]).await.is_ok() {}
            // The other side hangs up.
            while stream.read(&mut head).await.is_ok_and(|read| read > 0) {}
            tell.notify_one();
        }
    });
    (addr, closed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_receiver_is_hung_up_on() {
    let (addr, closed) = odd_receiver(b"", false).await;
    let told = Told::by(allowing(&[addr]), &format!("http://{addr}/"))
        .await
        .unwrap();
    told.ping().await;
    closed.notified().await;
    let failed = told.settled().await;
    assert_eq!(failed["lastError"], "it did not answer within 5 seconds");
    told.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_read_a_little() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
    let (addr, closed) = odd_receiver(head, true).await;
    let told = Told::by(allowing(&[addr]), &format!("http://{addr}/"))
        .await
        .unwrap();
    told.ping().await;
    closed.notified().await;
    assert_eq!(told.settled().await["status"], "delivered");
    told.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_for_an_answer_is_a_failure() {
    let (addr, closed) = odd_receiver(b"220 mail.example ESMTP\r\n", false).await;
    let told = Told::by(allowing(&[addr]), &format!("http://{addr}/"))
        .await
        .unwrap();
    told.ping().await;
    closed.notified().await;
    assert_eq!(told.settled().await["status"], "waiting");
    told.server.done().await;
}

/// A listed destination over https is no less verified: this one speaks no TLS at all.
#[tokio::test(flavor = "multi_thread")]
async fn https_means_tls() {
    let mut receiver = Receiver::start().await;
    let url = receiver.url().replace("http:", "https:");
    let told = Told::by(allowing(&[receiver.addr]), &url).await.unwrap();
    told.ping().await;
    let why = told.settled().await["lastError"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(why.contains("no secure connection"), "{why}");
    receiver.has_nothing();
    told.server.done().await;
}

const DESTINATIONS: &str = include_str!("../data/14-webhook-destinations.json");

#[tokio::test(flavor = "multi_thread")]
async fn c86_a_webhook_never_reaches_inside() {
    let receiver = Receiver::start().await;
    let told = Told::receiver(&receiver).await;
    let all: Vec<Value> = serde_json::from_str(DESTINATIONS).unwrap();
    assert!(all.len() >= 25);
    let hooks = "select count(*) from webhooks";
    for one in &all {
        let seen = told
            .ada
            .post_json(&told.path, json!({"url": one["url"]}))
            .await;
        let about = one.to_string();
        assert_refused(&seen, Code::InvalidArguments, &about);
        assert_eq!(seen.details()["faults"][0]["pointer"], "/url", "{about}");
        // A refusal names no address that a name leads to.
        assert!(
            !seen.text.contains("169.254") && !seen.text.contains("127.0"),
            "{}",
            seen.text
        );
        assert_eq!(told.server.database.number(hooks).await, 1, "{about}");
    }
    // What was set before the list of the operator changed, or by hand, is checked again at each try.
    for url in [
        "https://127.0.0.1:1/",
        "https://localhost:1/",
        "http://127.0.0.1:1/",
        "https://[::ffff:7f00:1]:1/",
    ] {
        told.server
            .database
            .try_sql(&format!("update webhooks set url = '{url}'"))
            .await
            .unwrap();
        told.ping().await;
        let failed = told.settled().await;
        assert_eq!(failed["status"], "waiting", "{url}: {failed}");
        assert!(
            !failed["lastError"].as_str().unwrap().contains("answered"),
            "{url}: {failed}"
        );
        told.server.advance(Duration::from_millis(1));
    }
    told.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn they_are_off_until_the_operator_allows_them() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    let path = format!("/api/sites/{}/webhooks", server.site);
    assert_eq!(
        ada.get(&path).await.body,
        json!({"items": [], "nextCursor": null, "enabled": false})
    );
    let seen = ada
        .post_json(&path, json!({"url": "https://hooks.example/"}))
        .await;
    assert_refused(&seen, Code::Conflict, "off");
    assert!(seen.text.contains("CLOUDHAL_WEBHOOKS"), "{}", seen.text);
    server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_is_shown_once_and_rotates() {
    let mut receiver = Receiver::start().await;
    let told = Told::receiver(&receiver).await;
    let list = told.ada.get(&told.path).await;
    assert_eq!(list.body["items"][0]["id"], told.hook.as_str());
    assert!(!list.text.contains("whsec_"), "{}", list.text);
    let rotated = told.post("/secret").await;
    let new = rotated["secret"].as_str().unwrap();
    told.ping().await;
    let got = receiver.next().await;
    assert!(
        got.is_signed_with(&told.secret) && got.is_signed_with(new),
        "both for a day"
    );
    told.server.advance(24 * HOUR);
    // The session has ended meanwhile.
    let ada = told.server.as_person("ada").await;
    let ping = format!("{}/{}/ping", told.path, told.hook);
    assert_eq!(ada.post_json(&ping, json!({})).await.status, 200);
    let got = receiver.next().await;
    assert!(!got.is_signed_with(&told.secret) && got.is_signed_with(new));
    let seen = Seen::of(ada.request(Method::DELETE, &format!("{}/{}", told.path, told.hook))).await;
    assert_eq!(seen.status, 200, "{}", seen.text);
    assert_refused(
        &ada.post_json(&ping, json!({})).await,
        Code::NotFound,
        "deleted",
    );
    told.server.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_owners_of_the_site_reach_its_webhooks() {
    let receiver = Receiver::start().await;
    let told = Told::receiver(&receiver).await;
    let id = told.ping().await;
    let one = format!("{}/{}", told.path, told.hook);
    let routes = [
        (Method::GET, told.path.clone()),
        (Method::POST, told.path.clone()),
        (Method::DELETE, one.clone()),
        (Method::POST, format!("{one}/secret")),
        (Method::POST, format!("{one}/ping")),
        (Method::GET, format!("{one}/deliveries")),
        (Method::POST, format!("{one}/deliveries/{id}/redeliver")),
    ];
    let mia = told.server.as_member("mia", Role::Approver).await;
    let eve = told.server.as_person("eve").await;
    let account = told.server.account("eve").await;
    let florist = told.server.add_site("florist", &account).await;
    let body = json!({"url": receiver.url()});
    for (method, path) in &routes {
        let about = format!("{method} {path}");
        let bot = told.bot.request(method.clone(), path).json(&body);
        assert_refused(&Seen::of(bot).await, Code::AgentsNotAllowed, &about);
        let mia = mia.request(method.clone(), path).json(&body);
        assert_refused(&Seen::of(mia).await, Code::Forbidden, &about);
        let stranger = eve.request(method.clone(), path).json(&body);
        assert_refused(&Seen::of(stranger).await, Code::NotFound, &about);
        if *path == told.path {
            continue;
        }
        // By way of a site of one's own.
        let own = path.replace(told.server.site.as_str(), florist.as_str());
        let eve = eve.request(method.clone(), &own).json(&body);
        assert_refused(&Seen::of(eve).await, Code::NotFound, &own);
    }
    for body in [
        json!({}),
        json!({"url": 1}),
        json!({"url": "https://x.example", "secret": "mine"}),
        json!([receiver.url()]),
    ] {
        let seen = told.ada.post_json(&told.path, body.clone()).await;
        assert_refused(&seen, Code::InvalidArguments, &body.to_string());
    }
    let unknown = format!("{one}/deliveries/nothing/redeliver");
    assert_refused(
        &told.ada.post_json(&unknown, json!({})).await,
        Code::NotFound,
        "unknown",
    );
    told.server.done().await;
}

/// A receiver that takes a message and says nothing; gives its `webhook-id`.
async fn take_in_silence(listener: &TcpListener) -> (String, tokio::net::TcpStream) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut text = String::new();
    while !text.contains("\r\n\r\n") {
        let mut some = [0; 4096];
        let read = stream.read(&mut some).await.unwrap();
        text.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("webhook-id: "));
    (line.unwrap().to_owned(), stream)
}

/// [R5b] Killed after the claim, before its mark: when the lease is over, the same message comes again. [C84] And with
/// everything logged, no secret of a webhook is in the log, in the journal or in an answer after the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_delivers_again_and_logs_no_secret() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let operator = Operator::new()
        .with("CLOUDHAL_LOG", "trace")
        .with("CLOUDHAL_WEBHOOKS", "listed")
        .with("CLOUDHAL_WEBHOOK_ALLOW", &addr.to_string());
    let serving = operator.serve(&["--demo"]);
    let url = serving.url().to_owned();
    let browser = reqwest::Client::builder()
        .cookie_store(true)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let send = |path: &str| browser.post(format!("{url}{path}")).header("origin", &url);
    let link = serving
        .said("sign-in")
        .strip_prefix(&url)
        .unwrap()
        .to_owned();
    assert_eq!(
        Seen::of(send(&link).form(&[("next", "")])).await.status,
        303
    );
    let sites = Seen::of(browser.get(format!("{url}/api/sites"))).await;
    let site = sites.body["items"][0]["id"].as_str().unwrap().to_owned();
    let hooks = format!("/api/sites/{site}/webhooks");
    let to = format!("http://{addr}/in?token=of-the-receiver");
    let made = Seen::of(send(&hooks).json(&json!({"url": to}))).await;
    let (hook, secret) = (
        &made.body["id"],
        made.body["secret"].as_str().unwrap().to_owned(),
    );
    let hook = hook.as_str().unwrap();
    let ping = Seen::of(send(&format!("{hooks}/{hook}/ping")).json(&json!({}))).await;
    let list = Seen::of(browser.get(format!("{url}{hooks}/{hook}/deliveries"))).await;
    let (id, held) = take_in_silence(&listener).await;
    // SIGKILL.
    drop(serving);
    drop(held);
    let first_log = std::fs::read_to_string(operator.path("stderr.log")).unwrap();
    // The lease would be over in half a minute; here its end is moved, not waited for.
    operator
        .sql(&operator.database(), "update outbox set due_at = created_at where status = 'waiting' and holder is not null and tries = 1")
        .await;
    let serving = operator.serve(&[]);
    let (again, mut stream) = take_in_silence(&listener).await;
    assert_eq!(again, id);
    assert_eq!(ping.body["delivery"], id.as_str());
    stream.write_all(b"HTTP/1.1 204 \r\n\r\n").await.unwrap();
    let (printed, log) = serving.stop();
    assert!(
        first_log.len() + log.len() > 50_000,
        "the log is not at TRACE"
    );
    let journal = operator.ok(&["journal", "export"]).out;
    let secrets = [secret.as_str(), &secret[6..], "of-the-receiver"];
    for (place, text) in [
        ("a log", &first_log),
        ("a log", &log),
        ("what was printed", &printed),
        ("the journal", &journal),
    ] {
        for secret in secrets {
            let line = text.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{secret} is in {place}");
        }
    }
    for answer in [&ping.text, &list.text] {
        assert!(!answer.contains(&secret[6..]), "{answer}");
    }
}

/// The copy that `backup` makes delivers nothing of what waited when it was made.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_delivers_nothing_of_before() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let operator = Operator::new();
    let serving = operator.serve(&["--demo"]);
    drop(serving);
    let file = operator.database();
    operator
        .sql(&file, &format!("insert into webhooks (id, site_id, url, secret, created_at) select 'w', id, 'http://{addr}/', 'whsec_c2VjcmV0', 0 from sites;
            insert into outbox (id, kind, site_id, target, topic, body, epoch, status, tries, due_at, created_at)
            select 'o', 'webhook', id, 'w', 'ping', '{{}}', 1, 'waiting', 0, 9000000000000, 0 from sites"))
        .await;
    let copy = operator.path("copy.db");
    operator.ok(&["backup", copy.to_str().unwrap()]);
    let look = |file: &std::path::Path| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(file, folder.path().join("cloudhal.db")).unwrap();
        Database::Sqlite { folder }
    };
    let states = "select status from outbox";
    assert_eq!(look(&copy).texts(states).await, ["gave_up"]);
    assert_eq!(look(&file).texts(states).await, ["waiting"]);
}
