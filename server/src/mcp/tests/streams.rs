//! Answers that come as a stream: progress while a call waits, and what is told to whoever listens.

use super::*;

const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_secs(3600);

impl Demo {
    fn listens(&self, key: &str, uris: &[&str]) -> Request<Body> {
        let filter = json!({"resourceSubscriptions": uris, "toolsListChanged": true, "resourcesListChanged": true});
        self.asks(
            key,
            Era::Modern,
            "subscriptions/listen",
            json!({"notifications": filter}),
        )
    }

    async fn asked(&self, site: &str, text: &str) -> String {
        self.edit(site, text).await;
        let waits = self
            .call(Era::Modern, "publish", json!({"site": site}))
            .await;
        waits.structured()["approvalId"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

fn updated(message: &Value) -> &str {
    assert_eq!(
        message["method"], "notifications/resources/updated",
        "{message}"
    );
    message["params"]["uri"].as_str().unwrap()
}

#[tokio::test]
async fn a_call_that_waits_tells_of_its_progress_and_then_answers() {
    let demo = Demo::start().await.at_pace(SOON, LATE);
    let site = demo.site().await;
    for era in ERAS {
        let id = demo.asked(&site, &format!("{era:?}")).await;
        let params = json!({
            "name": "approvals_get",
            "arguments": {"approvalId": id, "waitSeconds": 45},
            "_meta": {"progressToken": "mine"},
        });
        let mut stream = demo
            .stream(demo.asks(&demo.key, era, "tools/call", params))
            .await;
        let mut last = 0.0;
        for _ in 0..3 {
            let note = stream.next().await.unwrap();
            assert_eq!(note["method"], "notifications/progress", "{note}");
            assert_eq!(note["params"]["progressToken"], "mine");
            assert_eq!(note["params"]["total"], 45.0);
            let progress = note["params"]["progress"].as_f64().unwrap();
            assert!(progress > last && progress < 45.0, "{note}");
            last = progress;
        }
        demo.decide(&site, &id, Verdict::Approve).await;
        let (mut before, mut now) = (Value::Null, stream.next().await.unwrap());
        while now["method"] == "notifications/progress" {
            (before, now) = (now, stream.next().await.unwrap());
        }
        assert_eq!(
            before["params"]["progress"], before["params"]["total"],
            "the last"
        );
        assert_eq!(
            now["result"]["structuredContent"]["data"]["status"], "approved",
            "{now}"
        );
        assert_eq!(stream.next().await, None, "the answer is the end");
    }
}

/// C68: as many streams as there are agents, all with the same id of the message, and no note and no answer comes by another's.
#[tokio::test]
async fn c68_streams_do_not_cross_over() {
    let demo = Demo::start().await.at_pace(SOON, LATE);
    let site = demo.site().await;
    demo.edit(&site, "For all of them.").await;
    let mut open = Vec::new();
    for at in 0..8 {
        let (_, key) = demo.agent(&format!("agent-{at}"), &["publish"]).await;
        let era = ERAS[at % 2];
        let publish = json!({"name": "publish", "arguments": {"site": site}});
        let waits = demo.rpc_as(&key, era, "tools/call", publish).await;
        let id = waits.structured()["approvalId"]
            .as_str()
            .unwrap()
            .to_owned();
        let wait = json!({
            "name": "approvals_get",
            "arguments": {"approvalId": id, "waitSeconds": 45},
            "_meta": {"progressToken": id},
        });
        let stream = demo.stream(demo.asks(&key, era, "tools/call", wait)).await;
        open.push((id, stream));
    }
    let verdict = |at: usize| [Verdict::Approve, Verdict::Deny][at % 2];
    for (at, (id, stream)) in open.iter_mut().enumerate() {
        assert_eq!(&stream.next().await.unwrap()["params"]["progressToken"], id);
        demo.decide(&site, id, verdict(at)).await;
    }
    for (at, (id, stream)) in open.iter_mut().enumerate() {
        let answer = loop {
            let message = stream.next().await.unwrap();
            if message["method"].is_null() {
                break message;
            }
            assert_eq!(&message["params"]["progressToken"], id);
        };
        let record = &answer["result"]["structuredContent"]["data"];
        let status = ["approved", "denied"][at % 2];
        assert_eq!(
            (&record["id"], &record["status"]),
            (&json!(id), &json!(status))
        );
        assert_eq!(stream.next().await, None);
    }
}

/// C11: however a gated call is sent and however its answer comes, it waits.
#[tokio::test]
async fn every_way_to_send_a_gated_call_over_mcp_suspends() {
    let demo = Demo::start().await.at_pace(SOON, LATE);
    let site = demo.site().await;
    demo.edit(&site, "However it comes.").await;
    let tasks = json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
    let progress = json!({"progressToken": 1});
    for (era, meta, session) in [
        (Era::Legacy, json!({}), false),
        (Era::Legacy, json!({}), true),
        (Era::Legacy, progress.clone(), false),
        (Era::Legacy, tasks.clone(), false),
        (Era::Modern, json!({}), false),
        (Era::Modern, json!({}), true),
        (Era::Modern, progress, false),
        (Era::Modern, tasks, false),
    ] {
        let params = json!({"name": "publish", "arguments": {"site": site}, "_meta": meta});
        let mut request = demo.asks(&demo.key, era, "tools/call", params);
        if session {
            let id = "0123456789abcdef".parse().unwrap();
            request.headers_mut().insert("mcp-session-id", id);
        }
        let answer = demo.router.clone().oneshot(request).await.unwrap();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let waits = text.contains("\"approval_pending\"") || text.contains("\"working\"");
        assert!(
            waits && !text.contains("\"status\":\"ok\""),
            "{era:?} {meta}: {text}"
        );
    }
    let versions = demo
        .call(Era::Modern, "version_list", json!({"site": site}))
        .await;
    let items = versions.structured()["data"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "nothing ran");
    assert_eq!(waiting(&demo).await, 1, "and all of them are one request");
}

#[tokio::test]
async fn a_listener_hears_of_its_sites_and_requests_and_of_nothing_else() {
    let demo = Demo::start().await.at_pace(LATE, LATE);
    let site = demo.site().await;
    let foreign = demo.foreign_site().await;
    let id = demo.asked(&site, "One.").await;
    let (_, stranger) = demo.agent("stranger", &[]).await;
    let [of_site, of_foreign] = [&site, &foreign].map(|id| format!("cloudhal://sites/{id}"));
    let of_request = format!("cloudhal://approvals/{id}");
    let all = [
        of_site.as_str(),
        &of_foreign,
        &of_request,
        "cloudhal://sites/x/nodes/y",
        "file:///x",
    ];
    let mut mine = demo.stream(demo.listens(&demo.key, &all)).await;
    let mut theirs = demo.stream(demo.listens(&stranger, &all)).await;
    for stream in [&mut mine, &mut theirs] {
        let hello = stream.next().await.unwrap();
        assert_eq!(hello["method"], "notifications/subscriptions/acknowledged");
        let accepted = &hello["params"]["notifications"];
        let expected = json!({"resourceSubscriptions": [of_site, of_foreign, of_request]});
        assert_eq!(*accepted, expected, "{hello}");
    }
    demo.decide(&site, &id, Verdict::Approve).await;
    assert_eq!(updated(&mine.next().await.unwrap()), of_request);
    demo.edit(&site, "Two.").await;
    while updated(&mine.next().await.unwrap()) != of_site {}
    let ada = demo.ada().await;
    let node = sites::NewNode {
        path: vec!["a".into()],
        kind: "page".into(),
        title: "A".into(),
        position: 1,
        body: String::new(),
        fields: serde_json::Map::new(),
    };
    let author = cloudhal_engine::authority::Author::person(&ada);
    let elsewhere = SiteId::new(&foreign);
    sites::fill(&demo.engine, &elsewhere, author, vec![node])
        .await
        .unwrap();
    demo.edit(&site, "Three.").await;
    let next = mine.next().await.unwrap();
    assert_eq!(
        updated(&next),
        of_site,
        "and nothing of the foreign one before"
    );
    demo.stop.send(true).unwrap();
    let end = mine.next().await.unwrap();
    assert_eq!(
        end["result"]["resultType"], "complete",
        "the server says that it ends: {end}"
    );
    assert_eq!(mine.next().await, None);
    while let Some(message) = theirs.next().await {
        if message.get("method").is_some() {
            assert_eq!(
                updated(&message),
                of_site,
                "the site is theirs too, the request is not"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_does_not_outlive_its_key_nor_its_scope() {
    let demo = Demo::start().await.at_pace(LATE, SOON);
    let site = demo.site().await;
    demo.edit(&site, "One.").await;
    let (agent, key) = demo.agent("listener", &["site-get", "publish"]).await;
    let call = async |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let seen = demo.rpc_as(&key, Era::Modern, "tools/call", params).await;
        seen.structured().clone()
    };
    let waits = call("publish", json!({"site": site})).await;
    let id = waits["approvalId"].as_str().unwrap();
    let of_site = format!("cloudhal://sites/{site}");
    let of_request = format!("cloudhal://approvals/{id}");
    let listens = demo.listens(&key, &[&of_site, &of_request]);
    let mut stream = demo.stream(listens).await;
    stream.next().await.unwrap();
    demo.narrow(&agent, &["site-list"]).await;
    demo.edit(&site, "Two.").await;
    assert_eq!(
        updated(&stream.next().await.unwrap()),
        of_request,
        "the site is not its to read any more"
    );
    let off = agents::Change {
        sites: None,
        tools: None,
        disabled: Some(true),
        only_after: None,
    };
    let changed = agents::change(&demo.engine, &Steward::operator(), &agent, off).await;
    changed.unwrap();
    let end = stream.next().await.unwrap();
    assert_eq!(end["error"]["data"]["code"], "unauthorized", "{end}");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn streams_are_few_for_each_caller_and_a_closed_one_makes_room() {
    let demo = Demo::start().await.at_pace(LATE, SOON);
    let mut open = Vec::new();
    let greeted = async |mut stream: Stream| {
        let hello = stream.next().await.unwrap();
        assert_eq!(hello["method"], "notifications/subscriptions/acknowledged");
        stream
    };
    let site = demo.site().await;
    let uri = format!("cloudhal://sites/{site}");
    for _ in 0..8 {
        open.push(greeted(demo.stream(demo.listens(&demo.key, &[&uri])).await).await);
    }
    demo.edit(&site, "All of them listen.").await;
    for stream in &mut open {
        assert_eq!(updated(&stream.next().await.unwrap()), uri);
    }
    let mut ninth = greeted(demo.stream(demo.listens(&demo.key, &[&uri])).await).await;
    demo.edit(&site, "One too many?").await;
    let no = ninth.next().await.unwrap();
    assert_eq!(no["error"]["data"]["code"], "rate_limited", "{no}");
    assert_eq!(no["error"]["data"]["details"]["limit"], 8);
    let (_, other) = demo.agent("other", &[]).await;
    let mut theirs = greeted(demo.stream(demo.listens(&other, &[])).await).await;
    drop(open.pop());
    // The count goes down once the server has noticed; until then a new stream is turned away.
    let mut again = loop {
        let mut stream = greeted(demo.stream(demo.listens(&demo.key, &[&uri])).await).await;
        demo.edit(&site, "Room?").await;
        let next = stream.next().await.unwrap();
        if next.get("method").is_some() {
            break stream;
        }
        assert_eq!(next["error"]["data"]["code"], "rate_limited", "{next}");
    };
    demo.stop.send(true).unwrap();
    for stream in [&mut again, &mut theirs] {
        let end = stream.next().await.unwrap();
        assert_eq!(end["result"]["resultType"], "complete", "{end}");
    }
}

#[tokio::test]
async fn each_era_is_offered_what_it_has() {
    let demo = Demo::start().await;
    let params = json!({"notifications": {"resourceSubscriptions": []}});
    let seen = demo.rpc(Era::Legacy, "subscriptions/listen", params).await;
    assert_eq!(seen.body["error"]["code"], -32601, "{}", seen.body);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        for era in ERAS {
            let seen = demo
                .rpc(era, method, json!({"uri": "cloudhal://sites/x"}))
                .await;
            assert_eq!(
                seen.body["error"]["code"], -32601,
                "{method}: {}",
                seen.body
            );
        }
    }
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "unit", "version": "1"}});
    let legacy = demo.rpc(Era::Legacy, "initialize", hello).await.body;
    let modern = demo
        .rpc(Era::Modern, "server/discover", json!({}))
        .await
        .body;
    let plain = json!({"tools": {}, "resources": {}, "prompts": {}, "completions": {}});
    assert_eq!(legacy["result"]["capabilities"], plain);
    let mut more = plain.clone();
    more["resources"] = json!({"subscribe": true});
    more["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    assert_eq!(modern["result"]["capabilities"], more);
    let info = &legacy["result"]["serverInfo"];
    assert_eq!(info["title"], "Cloudhal");
    let icon = info["icons"][0]["src"].as_str().unwrap();
    assert!(icon.starts_with("data:image/svg+xml,"), "{icon}");
    let in_addresses = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=%".contains(&b);
    assert!(
        icon.bytes().all(in_addresses),
        "clients validate it: {icon}"
    );
}
