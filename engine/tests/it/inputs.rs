//! Bad input that the strict parser lets pass, since it is good JSON: a typed no, no effect, and the next good call works
//! (guide to security, D 4 to 7 and 10 to 12).

use crate::support::*;
use cloudhal_engine::gate::CallRequest;

on_both! {
    wrong_types_and_extra_fields_are_refused_by_every_tool,
    odd_texts_as_ids_are_nobody,
    large_values_are_kept_whole,
    a_malformed_or_foreign_key_is_unauthorized,
    business_nonsense_is_refused,
    names_that_deceive_are_refused,
}

async fn wrong_types_and_extra_fields_are_refused_by_every_tool(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let good = |tool: &str| match tool {
        "site-list" => json!({}),
        "node-get" | "node-update" | "node-move" => json!({"site": scene.site, "node": scene.rye}),
        "node-create" => json!({"site": scene.site, "title": "A", "slug": "a"}),
        "node-search" => json!({"site": scene.site, "query": "rye"}),
        "rollback" => json!({"site": scene.site, "version": 1}),
        "approvals-get" | "approvals-resume" | "approvals-cancel" => json!({"approvalId": id}),
        _ => json!({"site": scene.site}),
    };
    let before = world.text("select state_hash from sites").await;
    for tool in world.engine().tools().all() {
        let tool = tool.spec.id;
        let arguments = good(tool);
        for not_an_object in [json!(null), json!([]), json!("x"), json!(7), json!(true)] {
            let answer = scene.bot.call(tool, not_an_object).await;
            answer.refused(Code::InvalidArguments);
        }
        let mut extra = arguments.clone();
        extra["surprise"] = json!(1);
        let refusal = scene
            .bot
            .call(tool, extra)
            .await
            .refused(Code::InvalidArguments);
        let words = refusal.details["faults"][0].to_string();
        assert!(
            words.contains("surprise") || words.contains("nothing is taken here"),
            "{tool}: {refusal:?}"
        );
        for name in arguments.as_object().unwrap().keys() {
            for wrong in [
                json!(null),
                json!(["x"]),
                json!({"x": 1}),
                json!(true),
                json!(1.5),
            ] {
                let mut broken = arguments.clone();
                broken[name.as_str()] = wrong.clone();
                // A node may be left out of `delete`, and null says so.
                if tool == "delete" || (wrong.is_null() && name == "node") {
                    continue;
                }
                let refusal = scene
                    .bot
                    .call(tool, broken)
                    .await
                    .refused(Code::InvalidArguments);
                let pointer = refusal.details["faults"][0]["pointer"].as_str().unwrap();
                assert!(
                    pointer.is_empty() || pointer == format!("/{name}"),
                    "{tool}: {refusal:?}"
                );
            }
        }
    }
    assert_eq!(world.text("select state_hash from sites").await, before);
    assert_eq!(scene.stored_status(&id).await, "pending");
}

async fn odd_texts_as_ids_are_nobody(world: World) {
    let scene = world.scene().await;
    let long = "x".repeat(10_000);
    for odd in [
        "",
        " ",
        "\0",
        "a\0b",
        "..",
        "../..",
        "%2e%2e",
        "' or '1'='1",
        "{}",
        "null",
        "\u{202e}",
        "\u{feff}",
        "ａ",
        "💣",
        &long,
    ] {
        for (tool, arguments) in [
            ("site-get", json!({"site": odd})),
            ("publish", json!({"site": odd})),
            (
                "node-create",
                json!({"site": odd, "title": "A", "slug": "a"}),
            ),
            ("node-get", json!({"site": scene.site, "node": odd})),
            (
                "node-update",
                json!({"site": scene.site, "node": odd, "body": "x"}),
            ),
            ("delete", json!({"site": scene.site, "node": odd})),
        ] {
            match scene.bot.call(tool, arguments).await {
                Answer::Error { error } => assert!(
                    matches!(error.code, Code::NotFound | Code::InvalidArguments),
                    "{tool} {odd:?}: {error:?}"
                ),
                other => panic!("{tool} {odd:?}: {other:?}"),
            }
        }
        let request = CallRequest {
            tool: "publish".into(),
            arguments: scene.publish_args(),
            approval: Some(odd.into()),
            reason: Some(odd.into()),
        };
        let answer = scene.bot.request(request).await;
        answer.refused(Code::ApprovalNotFound);
        let id = ApprovalId::new(odd);
        refused(scene.ada.look(&id).await, Code::NotFound);
        let verdict = cloudhal_domain::approval::Verdict::Approve;
        let click = scene
            .ada
            .decide_on(&scene.site, &id, verdict, odd, Some(odd.into()));
        refused(click.await, Code::NotFound);
        let site = SiteId::new(odd);
        let click = scene.ada.decide_on(&site, &id, verdict, odd, None);
        refused(click.await, Code::NotFound);
    }
    scene.edit("The next good call works.").await;
}

async fn large_values_are_kept_whole(world: World) {
    let scene = world.scene().await;
    let body = "Brot und Käse 🧀 ".repeat(60_000);
    scene.edit(&body).await;
    let node = json!({"site": scene.site, "node": scene.rye});
    let node = scene.bot.call("node-get", node).await.ok();
    assert_eq!(node["body"], json!(body));
    let mut arguments = scene.publish_args();
    arguments["reason"] = json!("ü".repeat(100_000));
    let asked = scene.bot.call("publish", arguments).await.pending();
    let record = scene.ada.approve(&asked.approval_id).await.unwrap();
    assert_eq!(record.reason.unwrap().chars().count(), 500);
    scene.redeem(&asked.approval_id).await.ok();
    assert_eq!(scene.published_rye(1).await, body);
}

async fn a_malformed_or_foreign_key_is_unauthorized(world: World) {
    let scene = world.scene().await;
    let good = scene.bot.key.clone();
    let (id, rest) = good.strip_prefix("clh_").unwrap().split_once('_').unwrap();
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    let (other_id, other_rest) = other
        .key
        .strip_prefix("clh_")
        .unwrap()
        .split_once('_')
        .unwrap();
    let keys = [
        "".to_owned(),
        "clh_".into(),
        good.to_uppercase(),
        format!(" {good}"),
        format!("{good}\0"),
        format!("Bearer {good}"),
        good[..good.len() - 1].into(),
        format!("clh_{other_id}_{rest}"),
        format!("clh_{id}_{other_rest}"),
        format!("clh_{id}_"),
        "x".repeat(100_000),
        format!("clh_{}_{}", "é".repeat(13), "é".repeat(29)),
    ];
    let mut answers = Vec::new();
    for key in keys {
        let mut bot = scene.bot.clone();
        bot.key = key;
        let answer = bot.call("site-list", json!({})).await;
        answers.push(answer.refused(Code::Unauthorized));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "one answer for all");
    let kept = world
        .texts("select secret_hash from agent_keys")
        .await
        .join(" ");
    assert!(!kept.contains(&rest[..20]), "only the digest is kept");
    scene.bot.call("site-list", json!({})).await.ok();
}

/// D 15, as far as the engine has it.
async fn business_nonsense_is_refused(world: World) {
    let scene = world.scene().await;
    let create = async |slug: &str, title: &str| {
        sites::create_site(world.engine(), slug, title, Some(scene.ada.person())).await
    };
    refused(create("bakery", "Twin").await, Code::Conflict);
    for slug in ["", "Bakery", "a b", "..", "a/b", "\0"] {
        refused(create(slug, "X").await, Code::InvalidArguments);
    }
    refused(create("ok", "").await, Code::InvalidArguments);
    refused(create("ok", "a\0b").await, Code::InvalidArguments);
    let node = json!({"site": scene.site, "node": scene.rye});
    let twice = async || scene.ada.act("delete", node.clone()).await;
    twice().await.unwrap();
    refused(twice().await, Code::NotFound);
    scene.ada.act("delete", scene.publish_args()).await.unwrap();
    refused(
        scene.ada.act("delete", scene.publish_args()).await,
        Code::NotFound,
    );
    refused(
        scene.ada.act("publish", scene.publish_args()).await,
        Code::NotFound,
    );
}

async fn names_that_deceive_are_refused(world: World) {
    let scene = world.scene().await;
    for name in [
        "",
        "  ",
        "a\0",
        "a\nb",
        "bot\u{202e}",
        "b\u{200b}ot",
        &"x".repeat(101),
    ] {
        let agent = cloudhal_engine::agents::NewAgent {
            name: name.into(),
            sites: vec![scene.site.clone()],
            tools: Vec::new(),
            expires_at: None,
        };
        let added = cloudhal_engine::agents::add(world.engine(), scene.ada.person(), agent).await;
        refused(added.map(|_| ()), Code::InvalidArguments);
        let person = cloudhal_engine::people::NewPerson {
            email: "new@example.com".into(),
            name: name.into(),
            workspace_owner: false,
            password: None,
        };
        let added = cloudhal_engine::people::add(world.engine(), person).await;
        refused(added.map(|_| ()), Code::InvalidArguments);
    }
    for email in ["", "x", "@", "a@", "@b", "a b@c", "a@b\0", "a\n@b"] {
        let person = cloudhal_engine::people::NewPerson {
            email: email.into(),
            name: "New".into(),
            workspace_owner: false,
            password: None,
        };
        let added = cloudhal_engine::people::add(world.engine(), person).await;
        refused(added.map(|_| ()), Code::InvalidArguments);
    }
    let twin = cloudhal_engine::people::NewPerson {
        email: "ADA@Example.com".into(),
        name: "Twin".into(),
        workspace_owner: false,
        password: None,
    };
    let added = cloudhal_engine::people::add(world.engine(), twin).await;
    refused(added.map(|_| ()), Code::Conflict);
}
