//! The database goes away under a signed-in person: a typed answer, and everything as before when it is back.

use crate::support::*;

#[tokio::test]
async fn without_its_sessions_a_server_says_that_it_is_unavailable() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let setup = Setup {
            kind,
            ..Setup::default()
        };
        let Some(server) = TestServer::start_as(setup).await else {
            continue;
        };
        let ada = server.as_person("ada").await;
        let gone = "alter table sessions rename to sessions_gone";
        server.database.try_sql(gone).await.unwrap();
        let seen = ada.get("/api/sites").await;
        assert_eq!((seen.status, seen.code()), (503, "unavailable"));
        assert_eq!(seen.body["error"]["retryable"], true);
        let page = ada.get("/approvals").await;
        assert_eq!(page.status, 503);
        assert!(page.text.contains("Try again in a moment"), "{}", page.text);
        let back = "alter table sessions_gone rename to sessions";
        server.database.try_sql(back).await.unwrap();
        assert_eq!(ada.get("/api/sites").await.status, 200);
        server.done().await;
    }
}

/// A disk that is full: reading goes on, also when the idle time is due to be moved.
#[tokio::test]
async fn an_idle_time_that_cannot_be_moved_takes_no_answer_back() {
    let server = TestServer::start().await;
    let ada = server.as_person("ada").await;
    let due = "update sessions set data = replace(data, '\"seen\":', '\"seen\":-')";
    server.database.try_sql(due).await.unwrap();
    let full =
        "create trigger full before update on sessions begin select raise(abort, 'full'); end";
    server.database.try_sql(full).await.unwrap();
    assert_eq!(ada.get("/api/sites").await.status, 200);
    let moved = "select count(*) from sessions where data like '%\"seen\":-%'";
    assert_eq!(server.database.number(moved).await, 1, "it was due");
    server.database.try_sql("drop trigger full").await.unwrap();
    assert_eq!(ada.get("/api/sites").await.status, 200);
    assert_eq!(server.database.number(moved).await, 0, "now it is moved");
    server.done().await;
}
