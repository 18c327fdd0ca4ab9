//! `node-search`: found by words, on the draft as it stands, by whom it concerns.

use crate::support::*;
use cloudhal_engine::{authority::Author, search};

on_both! {
    a_page_is_found_by_words_of_its_title_body_and_fields,
    a_title_counts_for_more_than_a_text,
    what_is_found_is_the_draft_as_it_stands,
    an_index_that_is_behind_is_made_again,
    there_is_more_than_fits,
    words_of_long_and_strange_pages_are_found,
    bad_queries_are_refused_and_say_why,
    an_agent_searches_its_own_sites_alone,
}

async fn found(agent: &AgentClient, site: &SiteId, query: &str) -> Vec<String> {
    let data = agent
        .call("node-search", json!({"site": site, "query": query}))
        .await
        .ok();
    let items = data["items"].as_array().expect("items");
    let titles = items.iter().map(|item| item["title"].as_str());
    titles.map(|title| title.expect("a title").into()).collect()
}

async fn add(agent: &AgentClient, site: &SiteId, title: &str, slug: &str, body: &str) -> String {
    let page = json!({"site": site, "title": title, "slug": slug, "body": body});
    let data = agent.call("node-create", page).await.ok();
    data["id"].as_str().expect("an id").into()
}

async fn a_page_is_found_by_words_of_its_title_body_and_fields(world: World) {
    let scene = world.scene().await;
    let (bot, site) = (&scene.bot, &scene.site);
    let under = add(bot, site, "Straßen", "roads", "").await;
    let fields = json!({"description": "Über Brücken", "tags": ["crossing"], "weight": 7});
    bot.call("node-create", json!({"site": site, "parent": under, "title": "Bridges", "slug": "bridges", "body": "The *Forth Bridge* spans the firth.\n\n橋は長い。", "fields": fields})).await.ok();
    for (query, hit) in [
        ("bridges", true),
        ("BRIDG", true),
        ("firth forth", true),
        ("\"forth bridge\"", true),
        ("\"bridge forth\"", false),
        ("\"forth bridg\"", false),
        ("forth tunnel", false),
        ("brucken", true),
        ("crossing", true),
        ("長い", true),
        ("い長", false),
        ("description", false),
        ("weight", false),
        ("site", false),
    ] {
        let expected: &[&str] = if hit { &["Bridges"] } else { &[] };
        assert_eq!(found(bot, site, query).await, expected, "{query}");
    }
    let data = bot
        .call("node-search", json!({"site": site, "query": "spans"}))
        .await
        .ok();
    let hit = &data["items"][0];
    assert_eq!(hit["path"], "roads/bridges");
    assert_eq!(hit["rev"], 1);
    assert_eq!(
        hit["excerpt"],
        "The *Forth Bridge* spans the firth. 橋は長い。"
    );
    let data = bot
        .call("node-search", json!({"site": site, "query": "strassen"}))
        .await
        .ok();
    assert_eq!(data["items"], json!([]), "ß stays itself");
}

async fn a_title_counts_for_more_than_a_text(world: World) {
    let scene = world.scene().await;
    let (bot, site) = (&scene.bot, &scene.site);
    add(bot, site, "Opening", "a", "walrus").await;
    add(bot, site, "Walrus", "b", "It swims in cold water.").await;
    add(bot, site, "Closing", "c", "A walrus is not a seal.").await;
    let titles = found(bot, site, "walrus").await;
    assert_eq!(titles[0], "Walrus");
    assert_eq!(titles.len(), 3);
}

async fn what_is_found_is_the_draft_as_it_stands(world: World) {
    let scene = world.scene().await;
    let (bot, site) = (&scene.bot, &scene.site);
    let node = add(bot, site, "Plan", "plan", "a zebra").await;
    assert_eq!(found(bot, site, "zebra").await, ["Plan"]);
    let change = json!({"site": site, "node": node, "expectedRev": 1, "body": "an okapi"});
    bot.call("node-update", change).await.ok();
    assert_eq!(found(bot, site, "zebra").await, [""; 0]);
    assert_eq!(found(bot, site, "okapi").await, ["Plan"]);
    let moved = json!({"site": site, "node": node, "position": 5});
    bot.call("node-move", moved).await.ok();
    assert_eq!(found(bot, site, "okapi").await, ["Plan"]);
    let delete = json!({"site": site, "node": node});
    scene.ada.act("delete", delete).await.unwrap();
    assert_eq!(found(bot, site, "okapi").await, [""; 0]);
}

async fn an_index_that_is_behind_is_made_again(world: World) {
    let scene = world.scene().await;
    let (bot, site) = (&scene.bot, &scene.site);
    let old = add(bot, site, "Old", "old", "a heron").await;
    add(bot, site, "Never", "never", "a heron").await;
    // What a node of a release without the search leaves behind: nothing, or the words of an older revision.
    let of = |slug: &str| format!("node_id = (select id from nodes where slug = '{slug}')");
    world
        .sql(&format!("delete from node_words where {}", of("never")))
        .await;
    world
        .sql(&format!(
            "update node_words set rev = 0 where {}",
            of("old")
        ))
        .await;
    assert_eq!(found(bot, site, "heron").await, ["Old"]);
    // The work beside the server does it, without anybody asking.
    let made = async {
        for _ in 0..5_000 {
            if found(bot, site, "heron").await.len() == 2 {
                return;
            }
        }
        panic!("nobody made the words of a page that had none");
    };
    tokio::select! {
        () = background::run(world.engine().clone()) => unreachable!("it runs until it is dropped"),
        () = made => {}
    }
    let rows = format!("select rev from node_words where {}", of("old"));
    search::catch_up(world.engine()).await.expect("caught up");
    assert_eq!(world.number(&rows).await, 1);
    // Whoever comes late with an older revision does not take a newer one's place.
    world
        .sql(&format!(
            "update node_words set rev = 9 where {}",
            of("old")
        ))
        .await;
    let change = json!({"site": site, "node": old, "expectedRev": 1, "body": "a stork"});
    bot.call("node-update", change).await.ok();
    assert_eq!(found(bot, site, "stork").await, [""; 0]);
    assert_eq!(world.number(&rows).await, 9);
}

async fn there_is_more_than_fits(world: World) {
    let scene = world.scene().await;
    let (bot, site) = (&scene.bot, &scene.site);
    for index in 0..60 {
        let body = match index {
            59 => "a quokka swims".to_owned(),
            _ => "swims a quokka".to_owned(),
        };
        add(bot, site, "Page", &format!("p{index}"), &body).await;
    }
    for (limit, count, more) in [(50, 50, true), (1, 1, true)] {
        let query = json!({"site": site, "query": "quokka", "limit": limit});
        let data = bot.call("node-search", query).await.ok();
        assert_eq!(data["items"].as_array().map(Vec::len), Some(count));
        assert_eq!(data["more"], more);
    }
    // Every page has the words, one has them in this order: every proposal is looked at.
    let query = json!({"site": site, "query": "\"quokka swims\""});
    let data = bot.call("node-search", query).await.ok();
    assert_eq!(data["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(data["more"], false);
}

async fn words_of_long_and_strange_pages_are_found(world: World) {
    let scene = world.scene().await;
    let (bot, site) = (&scene.bot, &scene.site);
    let mut many: String = (0..30_000).map(|n| format!("w{n} ")).collect();
    many.push_str("farthest");
    add(bot, site, "Many", "many", &many).await;
    add(bot, site, "Same", "same", &"same ".repeat(40_000)).await;
    let strange = format!(
        "'quoted' \\ \"double\" a:b & | ! <-> * {} é\u{301}",
        "x".repeat(5_000)
    );
    add(bot, site, "Strange", "strange", &strange).await;
    assert_eq!(found(bot, site, "farthest w29999").await, ["Many"]);
    assert_eq!(found(bot, site, "same").await, ["Same"]);
    for (query, hit) in [
        ("'quoted'", true),
        ("\\double", true),
        ("a:b", true),
        ("& quoted", true),
        ("NEAR(quoted)", false),
        ("title:quoted", false),
    ] {
        let expected: &[&str] = if hit { &["Strange"] } else { &[] };
        assert_eq!(found(bot, site, query).await, expected, "{query}");
    }
    assert_eq!(found(bot, site, &"x".repeat(100)).await, ["Strange"]);
    // An import takes what no agent may send.
    let enormous: String = (0..400_000).map(|n| format!("word{n} ")).collect();
    let page = sites::NewNode {
        path: vec!["enormous".into()],
        kind: "page".into(),
        title: "Enormous".into(),
        position: 90,
        body: enormous,
        fields: Map::new(),
    };
    let by = Author::person(scene.ada.person());
    sites::fill(world.engine(), site, by, vec![page])
        .await
        .unwrap();
    assert_eq!(found(bot, site, "enormous word1234").await, ["Enormous"]);
}

async fn bad_queries_are_refused_and_say_why(world: World) {
    let scene = world.scene().await;
    let words = "a ".repeat(33);
    let long = "a".repeat(201);
    for (query, pointer) in [
        (json!(""), "/query"),
        (json!("!?"), "/query"),
        (json!("\"\""), "/query"),
        (json!(words), "/query"),
        (json!(long), "/query"),
        (json!("a\0"), "/query"),
        (json!(7), "/query"),
    ] {
        let refusal = scene
            .bot
            .call("node-search", json!({"site": scene.site, "query": query}))
            .await
            .refused(Code::InvalidArguments);
        assert_eq!(refusal.details["faults"][0]["pointer"], pointer, "{query}");
    }
}

async fn an_agent_searches_its_own_sites_alone(world: World) {
    let scene = world.scene().await;
    add(&scene.bot, &scene.site, "Secret", "secret", "a narwhal").await;
    let other = world.site("florist", &scene.ada).await;
    let agent = world.agent("florist", &scene.ada, &[&other]).await;
    add(&agent, &other, "Open", "open", "a narwhal").await;
    assert_eq!(found(&agent, &other, "narwhal").await, ["Open"]);
    assert_eq!(found(&scene.bot, &scene.site, "narwhal").await, ["Secret"]);
    let foreign = json!({"site": scene.site, "query": "narwhal"});
    agent
        .call("node-search", foreign)
        .await
        .refused(Code::NotFound);
}
