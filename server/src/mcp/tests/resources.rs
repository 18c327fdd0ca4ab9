//! Resources: the same reads as the tools', under addresses.

use super::*;

impl Demo {
    async fn read_as(&self, key: &str, era: Era, uri: &str) -> Seen {
        self.rpc_as(key, era, "resources/read", json!({"uri": uri}))
            .await
    }

    async fn read(&self, era: Era, uri: &str) -> Seen {
        self.read_as(&self.key, era, uri).await
    }

    /// Every address, over all pages.
    async fn addresses(&self, key: &str, era: Era) -> Vec<String> {
        let (mut all, mut params) = (Vec::new(), json!({}));
        loop {
            let seen = self.rpc_as(key, era, "resources/list", params).await.body;
            let page = seen["result"]["resources"].as_array().unwrap();
            all.extend(
                page.iter()
                    .map(|one| one["uri"].as_str().unwrap().to_owned()),
            );
            match &seen["result"]["nextCursor"] {
                Value::Null => return all,
                cursor => params = json!({"cursor": cursor}),
            }
        }
    }
}

fn content(seen: &Seen) -> (&str, &str) {
    let content = &seen.body["result"]["contents"][0];
    let text = |name: &str| {
        content[name]
            .as_str()
            .unwrap_or_else(|| panic!("{}", seen.body))
    };
    (text("mimeType"), text("text"))
}

#[tokio::test]
async fn what_a_tool_reads_stands_under_an_address_in_both_eras() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    demo.edit(&site, "# Read *me*").await;
    let list = demo
        .call(Era::Modern, "node_list", json!({"site": site}))
        .await;
    let node = list.structured()["data"]["items"][0]["id"]
        .as_str()
        .unwrap();
    let waits = demo
        .call(Era::Modern, "publish", json!({"site": site}))
        .await;
    let id = waits.structured()["approvalId"].as_str().unwrap();
    for era in ERAS {
        for (uri, tool, arguments) in [
            (
                format!("cloudhal://sites/{site}"),
                "site_get",
                json!({"site": site}),
            ),
            (
                format!("cloudhal://sites/{site}/nodes/{node}"),
                "node_get",
                json!({"site": site, "node": node}),
            ),
            (
                format!("cloudhal://approvals/{id}"),
                "approvals_get",
                json!({"approvalId": id}),
            ),
        ] {
            let seen = demo.read(era, &uri).await;
            let (mime, text) = content(&seen);
            assert_eq!(mime, "application/json");
            assert_eq!(seen.body["result"]["contents"][0]["uri"], uri);
            let told = demo.call(era, tool, arguments).await;
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read, told.structured()["data"], "{uri}");
        }
        let body = format!("cloudhal://sites/{site}/nodes/{node}/body");
        let seen = demo.read(era, &body).await;
        assert_eq!(content(&seen), ("text/markdown", "# Read *me*"));
        let seen = demo.rpc(era, "resources/templates/list", json!({})).await;
        let templates = seen.body["result"]["resourceTemplates"].as_array().unwrap();
        assert_eq!(names(templates), ["site", "node", "body", "approval"]);
    }
    assert_eq!(waiting(&demo).await, 1, "reading changes nothing");
}

#[tokio::test]
async fn the_list_has_sites_what_waits_and_every_node_a_page_at_a_time() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let foreign = demo.foreign_site().await;
    for n in 0..120 {
        let node = json!({"site": site, "kind": "page", "title": format!("Page {n}"), "slug": format!("p{n}")});
        let made = demo.call(Era::Modern, "node_create", node).await;
        assert_eq!(made.structured()["status"], "ok", "{}", made.body);
    }
    let waits = demo
        .call(Era::Modern, "publish", json!({"site": site}))
        .await;
    let id = waits.structured()["approvalId"].as_str().unwrap();
    let sites = demo
        .call(Era::Modern, "site_get", json!({"site": site}))
        .await;
    let nodes = sites.structured()["data"]["nodeCount"].as_u64().unwrap();
    let first = demo
        .rpc(Era::Modern, "resources/list", json!({}))
        .await
        .body;
    assert!(
        first["result"]["nextCursor"].is_string(),
        "more than a page"
    );
    assert_eq!(first["result"]["cacheScope"], "private");
    assert_eq!(
        first["result"]["resources"][0]["name"],
        "harbour-street-bakery"
    );
    for era in ERAS {
        let all = demo.addresses(&demo.key, era).await;
        assert_eq!(all[0], format!("cloudhal://sites/{site}"));
        assert_eq!(all[1], format!("cloudhal://approvals/{id}"));
        assert_eq!(all.len() as u64, nodes + 2);
        let once: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(once.len(), all.len(), "nothing twice");
        assert!(!all.iter().any(|uri| uri.contains(&foreign)));
        for uri in [&all[2], &all[all.len() - 1]] {
            assert_eq!(content(&demo.read(era, uri).await).0, "application/json");
        }
    }
    for cursor in ["x", "", "eyJub2RlcyI6MX0", "Ing"] {
        let seen = demo.rpc(Era::Modern, "resources/list", json!({"cursor": cursor}));
        let seen = seen.await.body;
        assert_eq!(seen["error"]["code"], -32602, "{cursor}: {seen}");
    }
    // A cursor is no permission: made up for a foreign site, it leads nowhere.
    let made_up = json!({"nodes": [foreign, null]}).to_string();
    let cursor = data_encoding::BASE64URL_NOPAD.encode(made_up.as_bytes());
    let seen = demo.rpc(Era::Modern, "resources/list", json!({"cursor": cursor}));
    assert_eq!(seen.await.body["result"]["resources"], json!([]));
}

#[tokio::test]
async fn unknown_foreign_and_misspelt_have_one_answer() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let foreign = demo.foreign_site().await;
    demo.edit(&site, "Mine.").await;
    let waits = demo
        .call(Era::Modern, "publish", json!({"site": site}))
        .await;
    let id = waits.structured()["approvalId"].as_str().unwrap();
    let (_, stranger) = demo.agent("stranger", &[]).await;
    for (era, code) in [(Era::Legacy, -32002), (Era::Modern, -32602)] {
        let unknown = |uri: &str| json!({"code": code, "message": "not_found: there is no such resource for this caller.", "data": {"code": "not_found", "uri": uri}});
        for uri in [
            format!("cloudhal://sites/{foreign}"),
            "cloudhal://sites/made-up".to_owned(),
            format!("cloudhal://sites/{site}/nodes/made-up"),
            format!("cloudhal://sites/{foreign}/nodes/made-up/body"),
            "cloudhal://approvals/made-up".to_owned(),
            "file:///etc/passwd".to_owned(),
            format!("cloudhal://sites/{site}/../{site}"),
        ] {
            let seen = demo.read(era, &uri).await.body;
            assert_eq!(seen["error"], unknown(&uri), "{seen}");
        }
        let uri = format!("cloudhal://approvals/{id}");
        let seen = demo.read_as(&stranger, era, &uri).await.body;
        assert_eq!(seen["error"], unknown(&uri), "another agent's request");
        assert!(
            demo.addresses(&stranger, era)
                .await
                .iter()
                .all(|one| *one != uri)
        );
    }
}

#[tokio::test]
async fn a_key_reads_by_address_no_more_than_by_its_tools() {
    let demo = Demo::start().await;
    let site = demo.site().await;
    let list = demo
        .call(Era::Modern, "node_list", json!({"site": site}))
        .await;
    let node = list.structured()["data"]["items"][0]["id"]
        .as_str()
        .unwrap();
    let (_, key) = demo.agent("reader", &["site-list", "node-list"]).await;
    for era in ERAS {
        for uri in [
            format!("cloudhal://sites/{site}"),
            format!("cloudhal://sites/{site}/nodes/{node}"),
            format!("cloudhal://sites/{site}/nodes/{node}/body"),
        ] {
            let seen = demo.read_as(&key, era, &uri).await.body;
            assert_eq!(
                seen["error"]["data"]["code"], "insufficient_scope",
                "{uri}: {seen}"
            );
        }
        assert!(
            demo.addresses(&key, era).await.is_empty(),
            "nothing that it could not read"
        );
        let seen = demo
            .rpc_as(&key, era, "resources/templates/list", json!({}))
            .await;
        let templates = seen.body["result"]["resourceTemplates"].as_array().unwrap();
        assert_eq!(names(templates), ["approval"]);
    }
}
