//! What a change answers is what that change made, whatever somebody else does in the next moment; and a change that was made
//! is never told as a refusal.

use crate::support::*;
use reqwest::Method;

const ROUNDS: usize = 8;

async fn on_each<F: Future<Output = ()>>(test: impl Fn(TestServer) -> F) {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let setup = Setup {
            kind,
            ..Setup::default()
        };
        match TestServer::start_as(setup).await {
            Some(server) => test(server).await,
            None => eprintln!("skipped: TEST_POSTGRES_URL is not set"),
        }
    }
}

async fn new_agent(server: &TestServer, by: &PersonClient, name: &str) -> String {
    let new = json!({"name": name, "sites": [server.site]});
    let made = by.ok(Method::POST, "/api/agents", new).await;
    assert_eq!(made["agent"]["name"], name);
    assert_eq!(made["agent"]["keys"].as_array().unwrap().len(), 1);
    made["agent"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_agent() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        let agent = new_agent(&server, &root, "bot").await;
        let path = format!("/api/agents/{agent}");
        let stop = async |off: bool| {
            root.ok(Method::PATCH, &path, json!({"disabled": off}))
                .await
        };
        for _ in 0..ROUNDS {
            let (stopped, started) = tokio::join!(stop(true), stop(false));
            let off = [&stopped, &started].map(|row| !row["disabledAt"].is_null());
            assert_eq!(off, [true, false], "{stopped} {started}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_members() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        server.as_member("ben", Role::Viewer).await;
        let members = format!("/api/sites/{}/members", server.site);
        let listed = root.get(&members).await.body;
        let of_ben = |list: &Value| {
            let items = list["items"].as_array().unwrap();
            let ben = items.iter().find(|one| one["name"] == "ben").unwrap();
            ben.clone()
        };
        let ben = of_ben(&listed)["person"].as_str().unwrap().to_owned();
        let path = format!("{members}/{ben}");
        let set = async |role: &'static str, group: &'static str| {
            let set = json!({"role": role, "groups": [group]});
            of_ben(&root.ok(Method::PUT, &path, set).await)
        };
        for _ in 0..ROUNDS {
            let (one, other) = tokio::join!(set("editor", "words"), set("approver", "legal"));
            let said = [&one, &other].map(|row| (row["role"].clone(), row["groups"].clone()));
            assert_eq!(
                said,
                [
                    (json!("editor"), json!(["words"])),
                    (json!("approver"), json!(["legal"]))
                ]
            );
        }
    })
    .await;
}

/// Of an agent that is taken off by two, and put on again: each list is the one that its change left.
#[tokio::test(flavor = "multi_thread")]
async fn of_the_agents_of_a_site() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        let agent = new_agent(&server, &root, "bot").await;
        let of_site = format!("/api/sites/{}/agents/{agent}", server.site);
        let of_agent = format!("/api/agents/{agent}");
        for _ in 0..ROUNDS {
            let on = async || {
                let sites = json!({"sites": [server.site]});
                root.ok(Method::PATCH, &of_agent, sites).await
            };
            let off = async || {
                let request = root.request(Method::DELETE, &of_site);
                Seen::of(request).await
            };
            let (off, on) = tokio::join!(off(), on());
            assert_eq!(on["sites"].as_array().unwrap().len(), 1, "{on}");
            assert_eq!(off.status, 200, "{}", off.text);
            let left = off.body["items"].as_array().unwrap();
            assert!(
                left.iter().all(|one| one["id"] != agent.as_str()),
                "{left:?}"
            );
            root.ok(Method::PATCH, &of_agent, json!({"sites": [server.site]}))
                .await;
        }
    })
    .await;
}

/// Whoever loses the right to look right after their change is told of the change, and whoever lost it before changed nothing.
#[tokio::test(flavor = "multi_thread")]
async fn to_whoever_loses_their_rights_meanwhile() {
    on_each(async |server: TestServer| {
        let root = server.as_owner("root").await;
        let nia = server.as_owner("nia").await;
        let people = root.get("/api/people").await.body;
        let people = people["items"].as_array().unwrap();
        let id = people.iter().find(|one| one["name"] == "nia").unwrap();
        let her = format!("/api/people/{}", id["id"].as_str().unwrap());
        for round in 0..ROUNDS {
            let agent = new_agent(&server, &root, &format!("bot {round}")).await;
            let path = format!("/api/agents/{agent}");
            let owns = async |yes: bool| {
                let change = json!({"workspaceOwner": yes});
                root.ok(Method::PATCH, &her, change).await
            };
            let stop = nia.send_json(Method::PATCH, &path, json!({"disabled": true}));
            let (told, _) = tokio::join!(stop, owns(false));
            let now = root.get(&path).await.body;
            let happened = !now["disabledAt"].is_null();
            assert_eq!(told.status == 200, happened, "{}", told.text);
            owns(true).await;
        }
    })
    .await;
}
