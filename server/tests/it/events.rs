//! `GET /api/events`: hints for those who may see the site, and for nobody else.

use crate::support::*;
use futures::StreamExt as _;
use reqwest::Method;

/// An open stream, read event by event.
struct Stream {
    bytes: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
}

impl Stream {
    async fn open(person: &PersonClient) -> Self {
        let response = person
            .request(Method::GET, "/api/events")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = Self {
            bytes: Box::pin(response.bytes_stream()),
            text: String::new(),
        };
        // Its first words come when it is listening.
        assert!(stream.block().await.unwrap().contains("resync"));
        stream
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let bytes = self.bytes.next().await?.ok()?;
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// The next hint; `None` when the stream ended.
    async fn hint(&mut self) -> Option<Value> {
        loop {
            let block = self.block().await?;
            if block.contains("event: hint") {
                let data = block
                    .lines()
                    .find_map(|line| line.strip_prefix("data: "))
                    .unwrap();
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_go_to_those_who_may_see() {
    let mut server = TestServer::start().await;
    let zoe_account = server.account("zoe").await;
    let cinema = server.add_site("cinema", &zoe_account).await;
    let bot = server.as_agent("bot").await;
    let usher = server.agent_for("usher", "zoe", &[&cinema], &[]).await;
    let (ada, zoe) = (server.as_person("ada").await, server.as_person("zoe").await);
    let (mut adas, mut zoes) = (Stream::open(&ada).await, Stream::open(&zoe).await);

    let id = bot.ask("publish", json!({"site": server.site})).await;
    let hint = adas.hint().await.unwrap();
    assert_eq!(
        hint,
        json!({"kind": "approval.requested", "site": server.site, "approval": id})
    );
    ada.approve(&server.site, &id).await;
    assert_eq!(adas.hint().await.unwrap()["kind"], "approval.decided");

    // What happened on the other site came first; it is not what she hears first.
    let theirs = usher.ask("publish", json!({"site": cinema})).await;
    let hint = zoes.hint().await.unwrap();
    assert_eq!(
        hint,
        json!({"kind": "approval.requested", "site": cinema, "approval": theirs})
    );
    assert!(!zoes.text.contains(server.site.as_str()));

    // [C07] A second window hears of the run, too.
    let mut second = Stream::open(&ada).await;
    assert_eq!(
        bot.call_with(&id, "publish", json!({"site": server.site}))
            .await
            .code(),
        "ok"
    );
    for stream in [&mut adas, &mut second] {
        let mut kinds = Vec::new();
        while !kinds.iter().any(|kind| kind == "approval.executed") {
            let hint = stream.hint().await.unwrap();
            assert_eq!(hint["site"], json!(server.site));
            kinds.push(hint["kind"].as_str().unwrap().to_owned());
        }
    }

    let ended = tokio::spawn(async move { while adas.block().await.is_some() {} });
    server.stop().await;
    ended.await.unwrap();
}

/// [C07] Denied: on every list and page, in a second window and on a device that reads it anew, and to the agent that waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_is_said_everywhere() {
    let server = TestServer::start().await;
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let (second, site) = (server.as_person("ada").await, &server.site);
    let id = bot.ask("publish", json!({"site": site})).await;
    let mut tab = Stream::open(&second).await;
    let (waiting, asked) = (bot.clone(), id.clone());
    let poll = tokio::spawn(async move {
        let which = json!({"approvalId": asked, "waitSeconds": 45});
        waiting.ok("approvals-get", which).await
    });
    ada.deny(site, &id).await;
    assert_eq!(poll.await.unwrap()["status"], "denied");
    let hint = tab.hint().await.unwrap();
    assert_eq!(hint["kind"], "approval.decided");
    assert_eq!(hint["approval"], json!(id));
    for person in [&ada, &second] {
        assert_eq!(person.record(site, &id).await["status"], "denied");
        let page = person.get(&format!("/approvals/{id}")).await.text;
        assert!(page.contains("Denied by") && !page.contains("name=\"seenDigest\""));
        let list = person
            .get(&format!("/api/sites/{site}/approvals?status=denied"))
            .await;
        assert_eq!(list.body["items"][0]["id"], json!(id));
        let waits = person
            .get(&format!("/api/sites/{site}/approvals?status=pending"))
            .await;
        assert_eq!(waits.body["items"], json!([]));
        assert!(!person.get("/approvals").await.text.contains(&id));
        let denied = person.get("/approvals?tab=denied").await.text;
        assert!(denied.contains(&id) && denied.contains("Denied"));
    }
    let seen = bot.call_with(&id, "publish", json!({"site": site})).await;
    assert_refused(&seen, Code::ApprovalDenied, "the agent's own call");
    drop(tab);
    server.done().await;
}

/// A person who may no longer see a site hears nothing of it on the next stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_needs_a_session() {
    let server = TestServer::start().await;
    let seen = server.anonymous().get("/api/events").await;
    assert_refused(&seen, Code::Unauthorized, "no session");
    let bot = server.as_agent("bot").await;
    assert_refused(
        &bot.get("/api/events").await,
        Code::AgentsNotAllowed,
        "a key",
    );
    server.done().await;
}
