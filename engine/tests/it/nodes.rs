//! The node tools: what they refuse, what they list, and that an agent of one site sees nothing of another.

use crate::support::*;
use std::collections::BTreeMap;

on_both! {
    bad_nodes_are_refused_and_say_where,
    a_stale_revision_is_refused_with_the_current_one,
    a_slug_is_taken_once_at_a_place,
    nodes_are_at_most_sixteen_deep,
    a_node_never_stands_under_itself,
    the_home_page_has_nothing_under_it,
    an_update_keeps_what_it_does_not_name,
    pages_of_a_list_hold_each_node_once_with_its_address,
    an_agent_sees_and_does_nothing_on_another_site,
    a_slug_that_was_given_as_an_id_is_told_apart,
    parallel_edits_of_one_node_lose_nothing,
}

async fn bad_nodes_are_refused_and_say_where(world: World) {
    let scene = world.scene().await;
    let long = "x".repeat(201);
    let long_slug = "x".repeat(121);
    let cases = [
        ("no title", json!({"slug": "a"}), ""),
        ("empty title", json!({"title": "", "slug": "a"}), "/title"),
        (
            "blank title",
            json!({"title": " \t ", "slug": "a"}),
            "/title",
        ),
        ("long title", json!({"title": long, "slug": "a"}), "/title"),
        ("two lines", json!({"title": "a\nb", "slug": "a"}), "/title"),
        (
            "escape in title",
            json!({"title": "a\u{1b}[2J", "slug": "a"}),
            "/title",
        ),
        (
            "nul in title",
            json!({"title": "a\0", "slug": "a"}),
            "/title",
        ),
        (
            "number as title",
            json!({"title": 7, "slug": "a"}),
            "/title",
        ),
        (
            "null as title",
            json!({"title": null, "slug": "a"}),
            "/title",
        ),
        ("no slug", json!({"title": "A"}), ""),
        (
            "upper case",
            json!({"title": "A", "slug": "Visit"}),
            "/slug",
        ),
        ("space", json!({"title": "A", "slug": "a b"}), "/slug"),
        ("slash", json!({"title": "A", "slug": "a/b"}), "/slug"),
        ("dots", json!({"title": "A", "slug": ".."}), "/slug"),
        ("dot", json!({"title": "A", "slug": "."}), "/slug"),
        ("escaped", json!({"title": "A", "slug": "%2e%2e"}), "/slug"),
        (
            "look-alike",
            json!({"title": "A", "slug": "v\u{456}sit"}),
            "/slug",
        ),
        (
            "long slug",
            json!({"title": "A", "slug": long_slug}),
            "/slug",
        ),
        ("nul in slug", json!({"title": "A", "slug": "a\0"}), "/slug"),
        (
            "kind",
            json!({"title": "A", "slug": "a", "kind": "script"}),
            "/kind",
        ),
        (
            "kind's case",
            json!({"title": "A", "slug": "a", "kind": "Page"}),
            "/kind",
        ),
        (
            "body",
            json!({"title": "A", "slug": "a", "body": ["x"]}),
            "/body",
        ),
        (
            "nul in body",
            json!({"title": "A", "slug": "a", "body": "a\0b"}),
            "/body",
        ),
        (
            "nul in a field",
            json!({"title": "A", "slug": "a", "fields": {"x": ["\0"]}}),
            "/fields/x/0",
        ),
        (
            "nul in a field's name",
            json!({"title": "A", "slug": "a", "fields": {"\0": 1}}),
            "/fields",
        ),
        (
            "fields",
            json!({"title": "A", "slug": "a", "fields": []}),
            "/fields",
        ),
        (
            "large fields",
            json!({"title": "A", "slug": "a", "fields": {"x": "y".repeat(70_000)}}),
            "/fields",
        ),
        (
            "position",
            json!({"title": "A", "slug": "a", "position": "1"}),
            "/position",
        ),
        (
            "fraction",
            json!({"title": "A", "slug": "a", "position": 1.5}),
            "/position",
        ),
        (
            "extra",
            json!({"title": "A", "slug": "a", "author": "me"}),
            "",
        ),
        ("rev", json!({"title": "A", "slug": "a", "rev": 1}), ""),
    ];
    for (what, mut arguments, pointer) in cases {
        arguments["site"] = json!(scene.site);
        let answer = scene.bot.call("node-create", arguments).await;
        let refusal = answer.refused(Code::InvalidArguments);
        let at = refusal.details["faults"][0]["pointer"].as_str().unwrap();
        assert!(at.starts_with(pointer), "{what}: {refusal:?}");
    }
    for parent in ["nowhere", "../", "a\0", &"x".repeat(10_000)] {
        let arguments = json!({"site": scene.site, "title": "A", "slug": "a", "parent": parent});
        match scene.bot.call("node-create", arguments).await {
            Answer::Error { error } => assert!(
                [Code::NotFound, Code::InvalidArguments].contains(&error.code),
                "{error:?}"
            ),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.number("select count(*) from nodes").await, 4);
    let good = json!({"site": scene.site, "title": "Grüße 👩\u{200d}🚀", "slug": "a", "kind": "entry", "body": "\u{202e}\r\n<script>", "fields": {"": null}});
    let node = scene.bot.call("node-create", good).await.ok();
    let read = json!({"site": scene.site, "node": node["id"]});
    let read = scene.bot.call("node-get", read).await.ok();
    assert_eq!(
        (&read["body"], &read["fields"], &read["path"], &read["kind"]),
        (
            &json!("\u{202e}\r\n<script>"),
            &json!({"": null}),
            &json!("a"),
            &json!("entry")
        )
    );
}

async fn a_stale_revision_is_refused_with_the_current_one(world: World) {
    let scene = world.scene().await;
    scene.edit("Two.").await;
    for tool in ["node-update", "node-move"] {
        for stale in [0, 1, 3, -1, i64::MAX] {
            let arguments = json!({"site": scene.site, "node": scene.rye, "expectedRev": stale});
            let refusal = scene
                .bot
                .call(tool, arguments)
                .await
                .refused(Code::Conflict);
            assert_eq!(refusal.details["currentRev"], 2, "{tool} {stale}");
        }
    }
    let arguments =
        json!({"site": scene.site, "node": scene.rye, "expectedRev": 2, "body": "Three."});
    let node = scene.bot.call("node-update", arguments).await.ok();
    assert_eq!(node["rev"], 3);
}

async fn a_slug_is_taken_once_at_a_place(world: World) {
    let scene = world.scene().await;
    let bread = world.node(&scene.site, "bread").await;
    let new = |slug: &str, parent: &str| json!({"site": scene.site, "title": "A", "slug": slug, "parent": parent});
    for (slug, parent) in [("visit", ""), ("", ""), ("rye", bread.as_str())] {
        let answer = scene.bot.call("node-create", new(slug, parent)).await;
        answer.refused(Code::Conflict);
    }
    scene.bot.call("node-create", new("rye", "")).await.ok();
    let rename = json!({"site": scene.site, "node": scene.rye, "slug": "visit"});
    scene.bot.call("node-update", rename).await.ok();
    let up = json!({"site": scene.site, "node": scene.rye, "parent": ""});
    scene
        .bot
        .call("node-move", up)
        .await
        .refused(Code::Conflict);
    let visit = world
        .text("select id from nodes where slug = 'visit' and parent = ''")
        .await;
    let rename = json!({"site": scene.site, "node": visit, "slug": "bread"});
    scene
        .bot
        .call("node-update", rename)
        .await
        .refused(Code::Conflict);
    let empty = json!({"site": scene.site, "node": scene.rye, "slug": ""});
    scene
        .bot
        .call("node-update", empty)
        .await
        .refused(Code::InvalidArguments);
}

async fn nodes_are_at_most_sixteen_deep(world: World) {
    let scene = world.scene().await;
    let create = async |parent: &str, slug: String| {
        let new = json!({"site": scene.site, "title": "A", "slug": slug, "parent": parent});
        scene.bot.call("node-create", new).await
    };
    let mut chain = vec![String::new()];
    for level in 1..=16 {
        let node = create(&chain[level - 1], format!("l{level}")).await.ok();
        chain.push(node["id"].as_str().unwrap().to_owned());
    }
    create(&chain[16], "l17".into())
        .await
        .refused(Code::InvalidArguments);
    // A subtree of three levels fits under the thirteenth and not under the fourteenth.
    let mut top = String::new();
    let mut parent = String::new();
    for level in 1..=3 {
        let node = create(&parent, format!("m{level}")).await.ok();
        parent = node["id"].as_str().unwrap().to_owned();
        if level == 1 {
            top = parent.clone();
        }
    }
    let under = async |parent: &str| {
        scene
            .bot
            .call(
                "node-move",
                json!({"site": scene.site, "node": top, "parent": parent}),
            )
            .await
    };
    for level in [14, 15, 16] {
        let refusal = under(&chain[level]).await.refused(Code::InvalidArguments);
        assert_eq!(refusal.details["faults"][0]["pointer"], "/parent");
    }
    under(&chain[13]).await.ok();
}

async fn a_node_never_stands_under_itself(world: World) {
    let scene = world.scene().await;
    let bread = world.node(&scene.site, "bread").await;
    for (node, parent) in [
        (&bread, &bread),
        (&bread, &scene.rye),
        (&scene.rye, &scene.rye),
    ] {
        let arguments = json!({"site": scene.site, "node": node, "parent": parent});
        let answer = scene.bot.call("node-move", arguments).await;
        answer.refused(Code::InvalidArguments);
    }
    let arguments = json!({"site": scene.site, "node": bread, "parent": "nowhere"});
    scene
        .bot
        .call("node-move", arguments)
        .await
        .refused(Code::NotFound);
}

/// The home page has no part in an address, so a node under it would share one with a node at the top.
async fn the_home_page_has_nothing_under_it(world: World) {
    let scene = world.scene().await;
    let home = world.text("select id from nodes where slug = ''").await;
    let new = json!({"site": scene.site, "title": "A", "slug": "visit", "parent": home});
    let refusal = scene
        .bot
        .call("node-create", new)
        .await
        .refused(Code::InvalidArguments);
    assert_eq!(refusal.details["faults"][0]["pointer"], "/parent");
    let under = json!({"site": scene.site, "node": scene.rye, "parent": home});
    scene
        .bot
        .call("node-move", under)
        .await
        .refused(Code::InvalidArguments);
    // Nor does a node that has some become the home page.
    let away = json!({"site": scene.site, "node": home, "slug": "start"});
    scene.bot.call("node-update", away).await.ok();
    let bread = world.node(&scene.site, "bread").await;
    let become_home = json!({"site": scene.site, "node": bread, "slug": ""});
    let refusal = scene
        .bot
        .call("node-update", become_home)
        .await
        .refused(Code::InvalidArguments);
    assert_eq!(refusal.details["faults"][0]["pointer"], "/slug");
    let visit = world.node(&scene.site, "visit").await;
    let become_home = json!({"site": scene.site, "node": visit, "slug": ""});
    scene.bot.call("node-update", become_home).await.ok();
}

async fn an_update_keeps_what_it_does_not_name(world: World) {
    let scene = world.scene().await;
    let update = async |change: Value| {
        let mut arguments = json!({"site": scene.site, "node": scene.rye});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        scene.bot.call("node-update", arguments).await.ok();
        let node = scene
            .bot
            .call("node-get", json!({"site": scene.site, "node": scene.rye}))
            .await
            .ok();
        json!([
            node["title"],
            node["slug"],
            node["body"],
            node["fields"],
            node["position"],
            node["rev"]
        ])
    };
    assert_eq!(
        update(json!({"fields": {"price": 4}})).await,
        json!(["Rye", "rye", "Rye, as it was.", {"price": 4}, 10, 2])
    );
    assert_eq!(
        update(json!({"title": "Dark"})).await,
        json!(["Dark", "rye", "Rye, as it was.", {"price": 4}, 10, 3])
    );
    assert_eq!(
        update(json!({"body": ""})).await,
        json!(["Dark", "rye", "", {"price": 4}, 10, 4])
    );
    assert_eq!(
        update(json!({"slug": "dark", "fields": {}})).await,
        json!(["Dark", "dark", "", {}, 10, 5])
    );
    assert_eq!(
        update(json!({"title": null})).await,
        json!(["Dark", "dark", "", {}, 10, 5])
    );
}

async fn pages_of_a_list_hold_each_node_once_with_its_address(world: World) {
    let scene = world.scene().await;
    let mut parents = vec![("".to_owned(), "".to_owned())];
    for n in 0..37 {
        let (parent, _) = parents[n % parents.len()].clone();
        let new = json!({"site": scene.site, "title": "A", "slug": format!("n-{n}"), "parent": parent, "position": n % 3});
        let node = scene.bot.call("node-create", new).await.ok();
        let text = |name: &str| node[name].as_str().unwrap().to_owned();
        if n % 5 == 0 {
            parents.push((text("id"), text("path")));
        }
    }
    let list = async |limit: Option<i64>, parent: Option<&str>| {
        let (mut found, mut cursor) = (BTreeMap::new(), Value::Null);
        loop {
            let mut arguments = json!({"site": scene.site});
            if let Some(limit) = limit {
                arguments["limit"] = json!(limit);
            }
            if let Some(parent) = parent {
                arguments["parent"] = json!(parent);
            }
            if !cursor.is_null() {
                arguments["cursor"] = cursor;
            }
            let page = scene.bot.call("node-list", arguments).await.ok();
            for node in page["items"].as_array().unwrap() {
                let id = node["id"].as_str().unwrap().to_owned();
                assert!(found.insert(id, node.clone()).is_none(), "twice: {node}");
            }
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                return found;
            }
        }
    };
    let whole = list(None, None).await;
    assert_eq!(whole.len(), 41);
    for limit in [1, 2, 7, 40, 41, 200] {
        assert_eq!(list(Some(limit), None).await, whole, "by {limit}");
    }
    for node in whole.values() {
        let read = json!({"site": scene.site, "node": node["id"]});
        let read = scene.bot.call("node-get", read).await.ok();
        for name in ["path", "rev", "hash", "parent", "position"] {
            assert_eq!(read[name], node[name]);
        }
        let children: Vec<_> = whole
            .values()
            .filter(|child| child["parent"] == node["id"])
            .collect();
        let listed = list(Some(2), node["id"].as_str()).await;
        assert_eq!(listed.values().collect::<Vec<_>>(), children);
    }
    let top = list(Some(3), Some("")).await;
    assert!(top.values().all(|node| node["parent"] == "") && top.len() < 41);
    let forged = [
        "",
        "x",
        "!!",
        "bnVsbA",
        "WzEsMiwzXQ",
        "WyJcdTAwMDAiLDEsIlx1MDAwMCJd",
    ];
    for cursor in forged {
        let arguments = json!({"site": scene.site, "cursor": cursor});
        let answer = scene.bot.call("node-list", arguments).await;
        answer.refused(Code::InvalidArguments);
    }
    for cursor in ["", "x", "1.5", "99999999999999999999"] {
        let arguments = json!({"site": scene.site, "cursor": cursor});
        let answer = scene.bot.call("version-list", arguments).await;
        answer.refused(Code::InvalidArguments);
    }
    for limit in [0, -1, 201] {
        let arguments = json!({"site": scene.site, "limit": limit});
        let answer = scene.bot.call("node-list", arguments).await;
        answer.refused(Code::InvalidArguments);
    }
}

/// P7, C33.
async fn an_agent_sees_and_does_nothing_on_another_site(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    let bot = world.agent("florist bot", &scene.ada, &[&florist]).await;
    let (theirs, own) = (&scene.site, &florist);
    let foreign = &scene.rye;
    let calls = |site: &str, node: &str| {
        [
            ("site-get", json!({"site": site})),
            ("node-list", json!({"site": site})),
            ("node-get", json!({"site": site, "node": node})),
            (
                "node-create",
                json!({"site": site, "title": "A", "slug": "a"}),
            ),
            (
                "node-update",
                json!({"site": site, "node": node, "body": "x"}),
            ),
            (
                "node-move",
                json!({"site": site, "node": node, "position": 1}),
            ),
            ("node-search", json!({"site": site, "query": "rye"})),
            ("version-list", json!({"site": site})),
            ("version-compare", json!({"site": site})),
            ("publish", json!({"site": site})),
            ("rollback", json!({"site": site, "version": 1})),
            ("delete", json!({"site": site, "node": node})),
            ("delete", json!({"site": site})),
        ]
    };
    let unknown = calls("nowhere", "nothing");
    for ((tool, arguments), (_, reference)) in calls(theirs.as_str(), foreign.as_str())
        .into_iter()
        .zip(unknown)
    {
        let answer = bot.call(tool, arguments).await.refused(Code::NotFound);
        let reference = bot.call(tool, reference).await.refused(Code::NotFound);
        assert_eq!(answer, reference, "{tool}");
    }
    // Nor through a site of one's own.
    for (tool, arguments) in [
        ("node-get", json!({"site": own, "node": foreign})),
        (
            "node-update",
            json!({"site": own, "node": foreign, "body": "x"}),
        ),
        (
            "node-move",
            json!({"site": own, "node": foreign, "position": 1}),
        ),
        (
            "node-create",
            json!({"site": own, "title": "A", "slug": "a", "parent": foreign}),
        ),
        ("delete", json!({"site": own, "node": foreign})),
    ] {
        bot.call(tool, arguments).await.refused(Code::NotFound);
    }
    let children = json!({"site": own, "parent": foreign});
    let listed = bot.call("node-list", children).await.ok();
    assert_eq!(listed["items"], json!([]));
    let sites = bot.call("site-list", json!({})).await.ok();
    let slugs: Vec<_> = sites["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|site| site["slug"].clone())
        .collect();
    assert_eq!(slugs, [json!("florist")]);
    assert_eq!(world.number("select count(*) from approvals").await, 0);
}

async fn a_slug_that_was_given_as_an_id_is_told_apart(world: World) {
    let scene = world.scene().await;
    world.site("florist", &scene.ada).await;
    for tool in ["site-get", "node-list", "publish"] {
        let own = scene.bot.call(tool, json!({"site": "bakery"})).await;
        let own = own.refused(Code::NotFound).message;
        assert!(own.contains(scene.site.as_str()), "{tool}: {own}");
        let foreign = scene.bot.call(tool, json!({"site": "florist"})).await;
        let unknown = scene.bot.call(tool, json!({"site": "nowhere"})).await;
        assert_eq!(
            foreign.refused(Code::NotFound),
            unknown.refused(Code::NotFound),
            "{tool}"
        );
    }
}

async fn parallel_edits_of_one_node_lose_nothing(world: World) {
    let scene = world.scene().await;
    let edits = (0..16).map(|n| {
        let scene = scene.clone();
        tokio::spawn(async move {
            loop {
                let node = json!({"site": scene.site, "node": scene.rye});
                let node = scene.bot.call("node-get", node).await.ok();
                let body = format!("{}{n} ", node["body"].as_str().unwrap());
                let change = json!({"site": scene.site, "node": scene.rye, "expectedRev": node["rev"], "body": body});
                match scene.bot.call("node-update", change).await {
                    Answer::Ok { .. } => return,
                    other => drop(other.refused(Code::Conflict)),
                }
            }
        })
    });
    for edit in futures::future::join_all(edits).await {
        edit.unwrap();
    }
    let node = json!({"site": scene.site, "node": scene.rye});
    let node = scene.bot.call("node-get", node).await.ok();
    assert_eq!(node["rev"], 17);
    let mut numbers: Vec<u32> = node["body"].as_str().unwrap()["Rye, as it was.".len()..]
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..16).collect::<Vec<_>>());
}
