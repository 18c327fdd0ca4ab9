//! The founding story over `/tools` and `/api`, and the shape of every answer on its way.

use crate::support::*;

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// [C63] at its end: one approval, an edit, and no second effect.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_a_person_approves_it_runs_once() {
    the_story(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_on_postgres() {
    the_story(Kind::Postgres).await;
}

async fn the_story(kind: Kind) {
    let setup = Setup {
        kind,
        ..Setup::default()
    };
    let Some(server) = TestServer::start_as(setup).await else {
        eprintln!("skipped: TEST_POSTGRES_URL is not set");
        return;
    };
    let (bot, ada) = (server.as_agent("bot").await, server.as_person("ada").await);
    let site = &server.site;
    bot.edit(site, "visit", "We moved to 4 Quay Lane.").await;

    let asked = bot.call("publish", json!({"site": site})).await;
    assert_eq!((asked.status, asked.code()), (202, "approval_pending"));
    let mut pending = keys(&asked.body);
    pending.sort_unstable();
    let expect = [
        "approvalId",
        "approved",
        "argsHash",
        "arguments",
        "expiresAt",
        "message",
        "pollAfterMs",
        "sentence",
        "stateHash",
        "status",
        "tool",
        "url",
    ];
    assert_eq!(pending, expect);
    let id = asked.body["approvalId"].as_str().unwrap();
    assert_eq!(asked.body["approved"], false);
    assert_eq!(asked.body["tool"], "publish");
    assert_eq!(asked.body["pollAfterMs"], 2000);
    assert_eq!(asked.body["expiresAt"], "2026-03-30T00:30:00.000Z");
    assert_eq!(
        asked.body["url"],
        format!("{}/approvals/{id}", server.origin)
    );
    assert!(
        asked.body["argsHash"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
    assert!(
        asked.body["message"]
            .as_str()
            .unwrap()
            .starts_with("Not executed.")
    );
    assert_eq!(server.anonymous().get("/live/bakery/").await.status, 404);

    let again = bot.call("publish", json!({"site": site})).await;
    assert_eq!(again.body, asked.body, "one waiting request per call");

    let page = ada.get(&format!("/approvals/{id}")).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("Publish"), "{}", page.text);
    ada.approve(site, id).await;

    let reminded = bot.call("publish", json!({"site": site})).await;
    assert_eq!(
        (reminded.status, &reminded.body["approved"]),
        (202, &json!(true))
    );
    assert_eq!(reminded.body["approvalId"], id);
    assert_eq!(server.anonymous().get("/live/bakery/").await.status, 404);

    let ran = bot.call_with(id, "publish", json!({"site": site})).await;
    assert_eq!((ran.status, ran.code()), (200, "ok"), "{}", ran.text);
    assert_eq!(keys(&ran.body), ["data", "replayed", "status"]);
    assert_eq!(ran.body["replayed"], false);
    let live = server.anonymous().get("/live/bakery/visit/").await;
    assert!(live.text.contains("4 Quay Lane"), "{}", live.text);

    bot.edit(site, "visit", "We moved again.").await;
    let third = bot.call_with(id, "publish", json!({"site": site})).await;
    assert_eq!(third.body["replayed"], true);
    assert_eq!(third.body["data"], ran.body["data"]);
    let live = server.anonymous().get("/live/bakery/visit/").await;
    assert!(
        live.text.contains("4 Quay Lane"),
        "[C63] one approval, one effect"
    );

    let record = ada.record(site, id).await;
    assert_eq!(record["status"], "redeemed");
    assert_eq!(record["receipt"]["outcome"], "succeeded");
    assert_eq!(record["decisions"][0]["decision"], "approve");
    server.done().await;
}
