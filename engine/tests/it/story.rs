//! The founding story, and that one call is one request: repeats, storms, caps.

use crate::support::*;
use cloudhal_engine::gate::CallRequest;
use std::collections::BTreeSet;

on_both! {
    a_person_approves_and_the_repeated_call_runs_once,
    one_approval_never_covers_a_second_publish,
    the_same_call_after_it_ran_is_a_new_request,
    a_repeat_while_it_waits_finds_the_same_request,
    a_repeat_after_the_approval_says_approved_and_runs_nothing,
    other_arguments_are_a_request_of_their_own,
    a_storm_of_identical_calls_is_one_request,
    fifty_calls_at_once_keep_their_own_decisions,
    an_agent_has_at_most_ten_requests_waiting,
    a_site_has_at_most_fifty_requests_waiting,
    a_flood_of_distinct_calls_stops_at_the_cap,
    a_thousand_calls_with_a_counter_stop_at_the_cap,
    a_flood_over_several_sites_stops_at_the_same_cap,
    a_restart_between_the_steps_changes_nothing,
    a_rotated_key_still_redeems,
    the_forgetful_database_tells_the_same_story,
}

async fn a_person_approves_and_the_repeated_call_runs_once(world: World) {
    let scene = world.scene().await;
    let asked = scene.bot.call("publish", scene.publish_args()).await;
    assert_eq!(asked.http_status(), 202);
    let asked = asked.pending();
    assert!(!asked.approved);
    assert_eq!(
        asked.url,
        format!("https://hal.example/approvals/{}", asked.approval_id)
    );
    assert_eq!(asked.arguments, scene.publish_args());
    assert_eq!(scene.live_version().await, None, "nothing ran yet");

    let seen = scene.ada.look(&asked.approval_id).await.unwrap();
    assert_eq!(seen.status, Status::Pending);
    assert_eq!(
        seen.card.sentence,
        "Publish The bakery for the first time, with 4 pages"
    );
    let waiting = scene.redeem(&asked.approval_id).await.pending();
    assert_eq!(waiting.approval_id, asked.approval_id);

    let decided = scene.ada.approve(&asked.approval_id).await.unwrap();
    assert_eq!(decided.status, Status::Approved);
    assert_eq!(scene.live_version().await, None, "a decision runs nothing");

    let ran = scene.redeem(&asked.approval_id).await.ok();
    assert_eq!(
        ran,
        json!({"version": 1, "added": 4, "edited": 0, "removed": 0})
    );
    assert_eq!(scene.live_version().await, Some(1));
    let again = scene.redeem(&asked.approval_id).await;
    assert_eq!(again.http_status(), 200);
    assert_eq!(again.replayed(), ran);
    assert_eq!(scene.versions().await, 1);

    let record = scene.ada.look(&asked.approval_id).await.unwrap();
    assert_eq!(record.status, Status::Redeemed);
    let receipt = record.receipt.unwrap();
    assert_eq!(
        (receipt.outcome, receipt.result),
        (Outcome::Succeeded, Some(ran))
    );
    assert_eq!(
        scene.journal(&asked.approval_id).await,
        [
            "approval.requested",
            "approval.decided",
            "approval.redeemed"
        ]
    );
}

/// C63: the finding that this product was founded on.
async fn one_approval_never_covers_a_second_publish(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let first = scene.redeem(&id).await.ok();
    scene.edit("Something that nobody approved.").await;
    assert_eq!(scene.redeem(&id).await.replayed(), first);
    assert_eq!(scene.versions().await, 1);
    assert_eq!(scene.published_rye(1).await, "Rye, as it was.");
}

/// C21: no reuse window.
async fn the_same_call_after_it_ran_is_a_new_request(world: World) {
    let scene = world.scene().await;
    let old = scene.approved().await;
    let ran = scene.redeem(&old).await.ok();
    let new = scene.asked().await;
    assert_ne!(new, old);
    assert_eq!(scene.redeem(&old).await.replayed(), ran);
    assert_eq!(scene.versions().await, 1);
    scene.redeem(&new).await.pending();
}

async fn a_repeat_while_it_waits_finds_the_same_request(world: World) {
    let scene = world.scene().await;
    let first = scene
        .bot
        .call("publish", scene.publish_args())
        .await
        .pending();
    world.advance(HOUR);
    let again = scene
        .bot
        .call("publish", scene.publish_args())
        .await
        .pending();
    assert_eq!(again, first, "the same id, and its time is not renewed");
    assert_eq!(world.number("select count(*) from approvals").await, 1);
}

async fn a_repeat_after_the_approval_says_approved_and_runs_nothing(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let again = scene
        .bot
        .call("publish", scene.publish_args())
        .await
        .pending();
    assert_eq!((again.approval_id, again.approved), (id, true));
    assert_eq!(scene.versions().await, 0);
}

async fn other_arguments_are_a_request_of_their_own(world: World) {
    let scene = world.scene().await;
    let whole = json!({"site": scene.site});
    let node = json!({"site": scene.site, "node": scene.rye});
    let mut ids = BTreeSet::new();
    for (tool, arguments) in [("publish", &whole), ("delete", &whole), ("delete", &node)] {
        ids.insert(
            scene
                .bot
                .call(tool, arguments.clone())
                .await
                .pending()
                .approval_id,
        );
    }
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    ids.insert(
        other
            .call("publish", whole.clone())
            .await
            .pending()
            .approval_id,
    );
    let mcp = scene.bot.over(Surface::Mcp);
    ids.insert(mcp.call("publish", whole).await.pending().approval_id);
    assert_eq!(ids.len(), 5);
}

/// C53.
async fn a_storm_of_identical_calls_is_one_request(world: World) {
    let scene = world.scene().await;
    let calls = (0..100).map(|_| {
        let scene = scene.clone();
        tokio::spawn(async move { scene.asked().await })
    });
    let ids: BTreeSet<ApprovalId> = futures::future::join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(world.number("select count(*) from approvals").await, 1);
    assert_eq!(
        world
            .number("select count(*) from journal where kind = 'approval.requested'")
            .await,
        1
    );
}

/// C16: answers do not go astray.
async fn fifty_calls_at_once_keep_their_own_decisions(world: World) {
    let scene = world.scene().await;
    let mut nodes = Vec::new();
    for n in 0..50 {
        let arguments =
            json!({"site": scene.site, "title": format!("Page {n}"), "slug": format!("page-{n}")});
        nodes.push(scene.bot.call("node-create", arguments).await.ok()["id"].clone());
    }
    let mut bots = Vec::new();
    for n in 0..5 {
        bots.push(
            world
                .agent(&format!("bot {n}"), &scene.ada, &[&scene.site])
                .await,
        );
    }
    let calls = nodes.iter().enumerate().map(|(n, node)| {
        let (bot, arguments) = (
            bots[n % 5].clone(),
            json!({"site": scene.site, "node": node}),
        );
        tokio::spawn(async move { bot.call("delete", arguments).await.pending().approval_id })
    });
    let ids: Vec<ApprovalId> = futures::future::join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 50);
    // Twenty-five of each, in an order that nobody chose, all at once.
    let mut order: Vec<usize> = (0..50).collect();
    order.sort_by_cached_key(|_| cloudhal_engine::clock::fresh_id());
    let approves: BTreeSet<usize> = order[..25].iter().copied().collect();
    let decisions = order.into_iter().map(|n| {
        let (ada, id, yes) = (scene.ada.clone(), ids[n].clone(), approves.contains(&n));
        tokio::spawn(async move {
            match yes {
                true => ada.approve(&id).await.unwrap(),
                false => ada.deny(&id, &format!("no to {n}")).await.unwrap(),
            }
        })
    });
    for decided in futures::future::join_all(decisions).await {
        decided.unwrap();
    }
    for (n, id) in ids.iter().enumerate() {
        let (bot, yes) = (&bots[n % 5], approves.contains(&n));
        let record = bot.call("approvals-get", json!({"approvalId": id})).await;
        let record = record.ok();
        let status = if yes { "approved" } else { "denied" };
        assert_eq!(
            (&record["status"], &record["arguments"]["node"]),
            (&json!(status), &nodes[n]),
            "{n} of {approves:?}"
        );
        if !yes {
            let arguments = json!({"site": scene.site, "node": nodes[n]});
            let denied = bot.call_with(id, "delete", arguments).await;
            let denied = denied.refused(Code::ApprovalDenied);
            assert_eq!(denied.details["reason"], format!("no to {n}"));
        }
    }
}

async fn an_agent_has_at_most_ten_requests_waiting(world: World) {
    let scene = world.scene().await;
    let mut ids = Vec::new();
    for arguments in distinct(&scene, 11).await {
        match scene.bot.call("delete", arguments.clone()).await {
            Answer::ApprovalPending(pending) => ids.push((pending.approval_id, arguments)),
            other => {
                let refusal = other.refused(Code::TooManyPending);
                assert_eq!(refusal.details["limit"], 10);
                assert!(refusal.retryable);
            }
        }
    }
    assert_eq!(ids.len(), 10);
    // At the cap a repeat still finds its own request, a bystander is not hindered, and a decision makes room.
    let (id, arguments) = &ids[3];
    let again = scene.bot.call("delete", arguments.clone()).await.pending();
    assert_eq!(again.approval_id, *id);
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    other.call("publish", scene.publish_args()).await.pending();
    let publish = scene.bot.call("publish", scene.publish_args()).await;
    publish.refused(Code::TooManyPending);
    scene.ada.deny(id, "no").await.unwrap();
    scene.asked().await;
}

async fn a_site_has_at_most_fifty_requests_waiting(world: World) {
    let scene = world.scene().await;
    let arguments = distinct(&scene, 10).await;
    for n in 0..5 {
        let bot = world
            .agent(&format!("bot {n}"), &scene.ada, &[&scene.site])
            .await;
        for arguments in &arguments {
            bot.call("delete", arguments.clone()).await.pending();
        }
    }
    let refusal = scene
        .bot
        .call("publish", scene.publish_args())
        .await
        .refused(Code::TooManyPending);
    assert_eq!(refusal.details["limit"], 50);
    let elsewhere = world.site("florist", &scene.ada).await;
    let bot = world.agent("florist bot", &scene.ada, &[&elsewhere]).await;
    bot.call("publish", json!({"site": elsewhere}))
        .await
        .pending();
}

/// C54, all at once.
async fn a_flood_of_distinct_calls_stops_at_the_cap(world: World) {
    let scene = world.scene().await;
    let calls = distinct(&scene, 40).await.into_iter().map(|arguments| {
        let bot = scene.bot.clone();
        tokio::spawn(async move { bot.call("delete", arguments).await })
    });
    let answers: Vec<Answer> = futures::future::join_all(calls)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let filed = answers
        .iter()
        .filter(|answer| matches!(answer, Answer::ApprovalPending(_)))
        .count();
    assert_eq!(filed, 10, "{answers:?}");
    for answer in answers {
        if !matches!(answer, Answer::ApprovalPending(_)) {
            answer.refused(Code::TooManyPending);
        }
    }
    assert_eq!(
        world
            .number("select count(*) from approvals where status = 'pending'")
            .await,
        10
    );
}

/// C54. A site on which drafts wait takes as many different calls as there are titles.
async fn a_thousand_calls_with_a_counter_stop_at_the_cap(world: World) {
    let scene = world.scene().await;
    let policy = json!({"extraGatedTools": ["node-create"]});
    scene.ada.set_policy(&scene.site, policy).await.unwrap();
    let (mut waiting, mut refused) = (0, 0);
    for hundred in 0..10 {
        let calls = (0..100).map(|n| {
            let (bot, site) = (scene.bot.clone(), scene.site.clone());
            let n = hundred * 100 + n;
            let new =
                json!({"site": site, "title": format!("Page {n}"), "slug": format!("page-{n}")});
            tokio::spawn(async move { bot.call("node-create", new).await })
        });
        for answer in futures::future::join_all(calls).await {
            match answer.unwrap() {
                Answer::ApprovalPending(_) => waiting += 1,
                other => {
                    let refusal = other.refused(Code::TooManyPending);
                    assert_eq!(refusal.details["limit"], 10);
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((waiting, refused), (10, 990));
    assert_eq!(world.number("select count(*) from approvals").await, 10);
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    other.call("publish", scene.publish_args()).await.pending();
}

/// Each site has a lock of its own; what an agent has waiting is counted over all of them.
async fn a_flood_over_several_sites_stops_at_the_same_cap(world: World) {
    let scene = world.scene().await;
    let mut all = vec![scene.site.clone()];
    for slug in ["florist", "cobbler", "chandler"] {
        all.push(world.site(slug, &scene.ada).await);
    }
    let everywhere = world
        .agent("everywhere", &scene.ada, &all.iter().collect::<Vec<_>>())
        .await;
    let mut calls = Vec::new();
    for site in &all {
        let ids = format!("select id from nodes where site_id = '{site}'");
        for node in world.texts(&ids).await {
            calls.push(json!({"site": site, "node": node}));
        }
    }
    for _ in 0..rounds(5) {
        let flood = calls.iter().cloned().map(|arguments| {
            let bot = everywhere.clone();
            tokio::spawn(async move { bot.call("delete", arguments).await })
        });
        for answer in futures::future::join_all(flood).await {
            match answer.unwrap() {
                Answer::ApprovalPending(_) => {}
                other => drop(other.refused(Code::TooManyPending)),
            }
        }
        let waiting = "select count(*) from approvals where status = 'pending'";
        assert_eq!(world.number(waiting).await, 10);
        for id in world
            .texts("select id from approvals where status = 'pending'")
            .await
        {
            scene.ada.deny(&ApprovalId::new(id), "").await.unwrap();
        }
    }
}

/// C09.
async fn a_restart_between_the_steps_changes_nothing(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let second = world.second_engine().await;
    let bot = scene.bot.at(&second);
    let ran = bot
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
    assert_eq!(scene.redeem(&id).await.replayed(), ran);
    assert_eq!(world.number("select count(*) from approvals").await, 1);
}

async fn a_rotated_key_still_redeems(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    // There is no rotation yet; a second key of the same agent is what it would leave.
    let spare = world.agent("spare", &scene.ada, &[&scene.site]).await;
    world
        .sql(&format!(
            "update agent_keys set agent_id = '{}' where agent_id = '{}'",
            scene.bot.id, spare.id
        ))
        .await;
    let ran = spare.call_with(&id, "publish", scene.publish_args()).await;
    assert_eq!(ran.ok()["version"], 1);
}

/// `sqlite::memory:` is the coordinator that needs nothing and remembers nothing; it runs beside either engine.
async fn the_forgetful_database_tells_the_same_story(world: World) {
    let secret = cloudhal_engine::secret::Secret::random();
    let engine = Engine::open("sqlite::memory:", Settings::for_url(PUBLIC_URL), secret)
        .await
        .unwrap();
    let ada = {
        let new = cloudhal_engine::people::NewPerson {
            email: "ada@example.com".into(),
            name: "Ada".into(),
            workspace_owner: true,
            password: None,
        };
        let person = cloudhal_engine::people::add(&engine, new).await.unwrap();
        PersonClient::new(&engine, person)
    };
    let site = sites::create_site(&engine, "shop", "Shop", Some(ada.person()))
        .await
        .unwrap();
    let new = cloudhal_engine::agents::NewAgent {
        name: "bot".into(),
        sites: vec![site.clone()],
        tools: Vec::new(),
        expires_at: None,
    };
    let (id, key) = cloudhal_engine::agents::add(&engine, ada.person(), new)
        .await
        .unwrap();
    let bot = AgentClient::new(&engine, id, key);
    bot.call(
        "node-create",
        json!({"site": site, "title": "Home", "slug": ""}),
    )
    .await
    .ok();
    let asked = bot.call("publish", json!({"site": site})).await.pending();
    ada.approve(&asked.approval_id).await.unwrap();
    let request = CallRequest {
        tool: "publish".into(),
        arguments: json!({"site": site}),
        approval: Some(asked.approval_id.as_str().into()),
        reason: None,
    };
    assert_eq!(bot.request(request).await.ok()["version"], 1);
    // It has one connection: a page that held it while it asks for another would never come.
    use cloudhal_engine::studio;
    let person = ada.person();
    studio::agents(&engine, person).await.unwrap();
    studio::people(&engine, person).await.unwrap();
    studio::settings(&engine, person, "shop").await.unwrap();
    studio::site(&engine, person, "shop").await.unwrap();
    studio::approval(&engine, person, &asked.approval_id)
        .await
        .unwrap();
    assert_eq!(verify(&engine).await.unwrap().fault, None);
    drop(world);
}

/// Arguments of `delete` for as many nodes made for it.
async fn distinct(scene: &Scene, count: usize) -> Vec<Value> {
    let mut arguments = Vec::new();
    for n in 0..count {
        let new =
            json!({"site": scene.site, "title": format!("Page {n}"), "slug": format!("page-{n}")});
        let node = scene.bot.call("node-create", new).await.ok();
        arguments.push(json!({"site": scene.site, "node": node["id"]}));
    }
    arguments
}
