//! A call with an id is answered in one order (CONTRACT §5), and nothing that a caller can think up gets around the gate.

use crate::support::*;
use cloudhal_domain::approval::Status::*;
use cloudhal_engine::gate::CallRequest;

on_both! {
    every_record_answers_every_call_in_the_order_of_the_contract,
    unknown_foreign_and_other_doors_ids_answer_alike,
    made_up_evidence_runs_nothing,
    an_approval_is_good_for_its_own_call_only,
    a_denied_call_never_runs,
    guessed_tool_names_reach_nothing,
    one_call_has_one_spelling,
    what_is_not_part_of_the_call_does_not_bind,
    the_scope_is_asked_again_when_it_runs,
    resume_runs_the_stored_call_once,
    get_tells_every_status_and_runs_nothing,
    cancel_withdraws_ones_own_open_request,
}

/// The order itself, as the contract has it.
fn expected(status: Status, stranger: bool, other_call: bool, no_scope: bool) -> &'static str {
    match status {
        _ if stranger => "approval_not_found",
        Denied => "approval_denied",
        _ if other_call => "approval_mismatch",
        Redeemed => "stored result",
        Cancelled => "approval_cancelled",
        Voided => "approval_voided",
        Expired => "approval_expired",
        _ if no_scope => "insufficient_scope",
        Pending => "approval_pending",
        Approved => "fresh result",
    }
}

fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Ok { replayed: true, .. } => "stored result",
        Answer::Ok { .. } => "fresh result",
        Answer::ApprovalPending(_) => "approval_pending",
        Answer::Error { error } => error.code.as_str(),
    }
}

async fn in_status(scene: &Scene, status: Status) -> ApprovalId {
    let id = match status {
        Approved | Redeemed => scene.approved().await,
        _ => scene.asked().await,
    };
    match status {
        Pending | Approved => {}
        Denied => drop(scene.ada.deny(&id, "no").await.unwrap()),
        Expired => scene.world.advance(25 * HOUR),
        Voided => drop(scene.edit(&format!("voids {id}")).await),
        Cancelled => drop(
            scene
                .bot
                .call("approvals-cancel", json!({"approvalId": id}))
                .await
                .ok(),
        ),
        Redeemed => drop(scene.redeem(&id).await.ok()),
    }
    id
}

async fn set_scope(scene: &Scene, every_tool: bool) {
    let sql = format!(
        "update agents set all_tools = {} where id = '{}'",
        i64::from(every_tool),
        scene.bot.id
    );
    scene.world.sql(&sql).await;
}

async fn every_record_answers_every_call_in_the_order_of_the_contract(world: World) {
    let scene = world.scene().await;
    let other_bot = world.agent("other", &scene.ada, &[&scene.site]).await;
    for status in Status::ALL {
        let id = in_status(&scene, status).await;
        // From the most wrong call to the right one, which may spend the record.
        for wrongs in (0..8).rev() {
            let (stranger, other_call, no_scope) =
                (wrongs & 4 != 0, wrongs & 2 != 0, wrongs & 1 != 0);
            set_scope(&scene, !no_scope).await;
            let bot = if stranger { &other_bot } else { &scene.bot };
            let tool = if other_call { "delete" } else { "publish" };
            let before = scene.stored_status(&id).await;
            let answer = bot.call_with(&id, tool, scene.publish_args()).await;
            let expect = expected(status, stranger, other_call, no_scope);
            let case = format!(
                "{status:?}, stranger: {stranger}, other call: {other_call}, no scope: {no_scope}"
            );
            assert_eq!(word(&answer), expect, "{case}: {answer:?}");
            if expect != "fresh result" {
                assert_eq!(scene.stored_status(&id).await, before, "{case}");
            }
        }
        scene
            .bot
            .call("approvals-cancel", json!({"approvalId": id}))
            .await;
    }
    assert_eq!(
        scene.versions().await,
        2,
        "one for the redeemed record, one for the approved"
    );
}

async fn unknown_foreign_and_other_doors_ids_answer_alike(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    let florist = world.site("florist", &scene.ada).await;
    let far = world.agent("far", &scene.ada, &[&florist]).await;
    let unknown = ApprovalId::new("aaaaaaaaaaaaaaaaaaaaaaaaaa");
    for tool in [
        "publish",
        "approvals-get",
        "approvals-resume",
        "approvals-cancel",
    ] {
        let ask = async |bot: &AgentClient, id: &ApprovalId| match tool {
            "publish" => bot.call_with(id, tool, scene.publish_args()).await,
            _ => bot.call(tool, json!({"approvalId": id})).await,
        };
        let reference = ask(&scene.bot, &unknown).await;
        let reference = json!(reference.refused(Code::ApprovalNotFound));
        for (who, bot) in [
            ("another agent", &other),
            ("another site's agent", &far),
            ("another door", &scene.bot.over(Surface::Mcp)),
        ] {
            let answer = ask(bot, &id).await.refused(Code::ApprovalNotFound);
            assert_eq!(json!(answer), reference, "{tool} by {who}");
        }
        for odd in ["", " ", "..", "%2e%2e", "' or 1=1 --", &"x".repeat(10_000)] {
            let answer = ask(&scene.bot, &ApprovalId::new(odd)).await;
            assert_eq!(
                json!(answer.refused(Code::ApprovalNotFound)),
                reference,
                "{tool}, {odd:.20}"
            );
        }
    }
    let wrong_case = ApprovalId::new(id.as_str().to_uppercase());
    scene
        .redeem(&wrong_case)
        .await
        .refused(Code::ApprovalNotFound);
    scene.redeem(&id).await.ok();
}

/// C01.
async fn made_up_evidence_runs_nothing(world: World) {
    let scene = world.scene().await;
    let random = ApprovalId::new(cloudhal_engine::clock::fresh_id());
    scene.redeem(&random).await.refused(Code::ApprovalNotFound);
    let long = ApprovalId::new("x".repeat(10_000));
    scene.redeem(&long).await.refused(Code::ApprovalNotFound);
    assert_eq!(
        misused(&world).await,
        [
            ("approval_not_found".to_owned(), random.to_string()),
            ("approval_not_found".to_owned(), "x".repeat(64)),
        ],
        "the journal tells who tried"
    );
    let waiting = scene.asked().await;
    for (name, value) in [
        ("approved", json!(true)),
        ("approvalId", json!(waiting)),
        ("approval_id", json!(waiting)),
        ("confirmToken", json!("x")),
        ("_meta", json!({"approved": true})),
        ("__proto__", json!({})),
        ("", json!(1)),
    ] {
        let mut arguments = scene.publish_args();
        arguments[name] = value;
        let refusal = scene
            .bot
            .call("publish", arguments.clone())
            .await
            .refused(Code::InvalidArguments);
        assert!(refusal.details["faults"].is_array(), "{name}");
        let refusal = scene.bot.call_with(&waiting, "publish", arguments).await;
        refusal.refused(Code::InvalidArguments);
    }
    assert_eq!(scene.versions().await, 0);
    assert_eq!(scene.stored_status(&waiting).await, "pending");
}

/// The code and the id of each misuse on record.
async fn misused(world: &World) -> Vec<(String, String)> {
    let bodies = "select body from journal where kind = 'approval.misused' order by seq";
    let read = |body: &String| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        (text("code"), text("approvalId"))
    };
    world.texts(bodies).await.iter().map(read).collect()
}

/// C02, C08.
async fn an_approval_is_good_for_its_own_call_only(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    world
        .sql(&format!(
            "insert into agent_sites (agent_id, site_id) values ('{}', '{florist}')",
            scene.bot.id
        ))
        .await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.publish().await;
    let asked = scene
        .bot
        .call("rollback", json!({"site": scene.site, "version": 1}))
        .await
        .pending();
    scene.ada.approve(&asked.approval_id).await.unwrap();
    for (tool, arguments) in [
        ("rollback", json!({"site": scene.site, "version": 2})),
        ("rollback", json!({"site": florist, "version": 1})),
        ("publish", json!({"site": scene.site})),
        ("delete", json!({"site": scene.site})),
        (
            "node-update",
            json!({"site": scene.site, "node": scene.rye, "body": "x"}),
        ),
        ("site-list", json!({})),
    ] {
        let answer = scene
            .bot
            .call_with(&asked.approval_id, tool, arguments)
            .await;
        let refusal = answer.refused(Code::ApprovalMismatch);
        assert_eq!(refusal.details["tool"], "rollback");
        assert_eq!(refusal.details["argsHash"], json!(asked.args_hash));
    }
    assert_eq!(misused(&world).await.len(), 6);
    assert_eq!(scene.live_version().await, Some(2));
    let ran = scene
        .bot
        .call_with(
            &asked.approval_id,
            "rollback",
            json!({"site": scene.site, "version": 1}),
        )
        .await
        .ok();
    assert_eq!(ran, json!({"liveVersion": 1}));
}

/// C12.
async fn a_denied_call_never_runs(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    scene.ada.deny(&id, "Not on a Friday.").await.unwrap();
    let refusal = scene.redeem(&id).await.refused(Code::ApprovalDenied);
    assert_eq!(refusal.details["reason"], "Not on a Friday.");
    assert_eq!(
        refusal.details["decidedAt"],
        world.engine().now().to_string()
    );
    assert!(
        !refusal.message.contains("Friday"),
        "data, not words of ours"
    );
    world.advance(48 * HOUR);
    scene.redeem(&id).await.refused(Code::ApprovalDenied);
    scene
        .bot
        .call("approvals-resume", json!({"approvalId": id}))
        .await
        .refused(Code::ApprovalDenied);
    assert_eq!(scene.versions().await, 0);
    assert_ne!(scene.asked().await, id, "a denied request is never reused");
}

/// C14.
async fn guessed_tool_names_reach_nothing(world: World) {
    let scene = world.scene().await;
    let names = [
        "site_publish",
        "site-publish",
        "publish ",
        " publish",
        "PUBLISH",
        "Publish",
        "publish\n",
        "publish\0",
        "publish/",
        "publish.v1",
        "publish_all",
        "bulk-publish",
        "roll-back",
        "rollback ",
        "delete_site",
        "delete-node",
        "remove",
        "approve",
        "approvals-approve",
        "approvals_get",
        "decide",
        "",
        "*",
        "../publish",
        "ρublish",
        &"p".repeat(10_000),
    ];
    for name in names {
        scene
            .bot
            .call(name, scene.publish_args())
            .await
            .refused(Code::UnknownTool);
    }
    for tool in world.engine().tools().all() {
        let gated = tool.spec.effect == cloudhal_domain::tool::Effect::Gated;
        assert_eq!(
            gated,
            ["publish", "rollback", "delete"].contains(&tool.spec.id),
            "{}",
            tool.spec.id
        );
    }
    assert_eq!(world.number("select count(*) from approvals").await, 0);
    assert_eq!(scene.versions().await, 0);
}

/// C18, C19: written otherwise it is the same approval or no call at all.
async fn one_call_has_one_spelling(world: World) {
    let scene = world.scene().await;
    let site = scene.site.as_str();
    let whole = scene
        .bot
        .call("delete", json!({"site": site}))
        .await
        .pending();
    let null = scene
        .bot
        .call("delete", json!({"site": site, "node": null}))
        .await
        .pending();
    assert_eq!(
        (&null.approval_id, &null.arguments),
        (&whole.approval_id, &json!({"site": site}))
    );
    for (tool, arguments, code) in [
        ("publish", json!({"site": [site]}), Code::InvalidArguments),
        (
            "publish",
            json!({"site": {"id": site}}),
            Code::InvalidArguments,
        ),
        ("publish", json!({"site": 7}), Code::InvalidArguments),
        ("publish", json!({"site": null}), Code::InvalidArguments),
        ("publish", json!({"Site": site}), Code::InvalidArguments),
        ("publish", json!({}), Code::InvalidArguments),
        ("publish", json!([site]), Code::InvalidArguments),
        ("publish", json!(site), Code::InvalidArguments),
        ("publish", json!(null), Code::InvalidArguments),
        (
            "publish",
            json!({"site": format!(" {site}")}),
            Code::NotFound,
        ),
        (
            "publish",
            json!({"site": format!("{site} ")}),
            Code::NotFound,
        ),
        (
            "publish",
            json!({"site": site.to_uppercase()}),
            Code::NotFound,
        ),
        ("publish", json!({"site": "bakery"}), Code::NotFound),
        (
            "rollback",
            json!({"site": site, "version": "1"}),
            Code::InvalidArguments,
        ),
        (
            "rollback",
            json!({"site": site, "version": 1.0}),
            Code::InvalidArguments,
        ),
        (
            "rollback",
            json!({"site": site, "version": 1.5}),
            Code::InvalidArguments,
        ),
        (
            "rollback",
            json!({"site": site, "version": 0}),
            Code::InvalidArguments,
        ),
        (
            "rollback",
            json!({"site": site, "version": -1}),
            Code::InvalidArguments,
        ),
        (
            "rollback",
            json!({"site": site, "version": true}),
            Code::InvalidArguments,
        ),
        (
            "rollback",
            json!({"site": site, "version": 1}),
            Code::NotFound,
        ),
        (
            "rollback",
            json!({"site": site, "version": i64::MAX}),
            Code::NotFound,
        ),
    ] {
        scene.bot.call(tool, arguments).await.refused(code);
    }
    assert_eq!(world.number("select count(*) from approvals").await, 1);
}

/// C20.
async fn what_is_not_part_of_the_call_does_not_bind(world: World) {
    let scene = world.scene().await;
    let ask = async |reason: Option<&str>, inside: Option<&str>, approval: Option<&ApprovalId>| {
        let mut arguments = scene.publish_args();
        if let Some(inside) = inside {
            arguments["reason"] = json!(inside);
        }
        let request = CallRequest {
            tool: "publish".into(),
            arguments,
            approval: approval.map(|id| id.as_str().to_owned()),
            reason: reason.map(str::to_owned),
        };
        scene.bot.request(request).await
    };
    let first = ask(Some("The new hours are urgent."), None, None)
        .await
        .pending();
    let again = ask(None, Some("Please."), None).await.pending();
    assert_eq!(again.approval_id, first.approval_id);
    assert_eq!(again.args_hash, first.args_hash);
    let record = scene.ada.approve(&first.approval_id).await.unwrap();
    assert_eq!(record.reason.as_deref(), Some("The new hours are urgent."));
    ask(Some("Now?"), Some("Now!"), Some(&first.approval_id))
        .await
        .ok();
    // Anything but a text is no reason.
    let mut arguments = scene.publish_args();
    arguments["reason"] = json!(["x"]);
    let answer = scene.bot.call("publish", arguments).await;
    answer.refused(Code::InvalidArguments);
}

/// C35: an approval adds no rights.
async fn the_scope_is_asked_again_when_it_runs(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    // Verified with the scope, robbed of it before the transaction.
    let caller = scene.bot.verified().await.unwrap();
    set_scope(&scene, false).await;
    let request = CallRequest {
        tool: "publish".into(),
        arguments: scene.publish_args(),
        approval: Some(id.as_str().into()),
        reason: None,
    };
    let answer = world.engine().call(&caller, request).await;
    answer.refused(Code::InsufficientScope);
    assert_eq!(scene.stored_status(&id).await, "approved");
    set_scope(&scene, true).await;
    world.sql("delete from agent_sites").await;
    scene.redeem(&id).await.refused(Code::NotFound);
    let back = format!(
        "insert into agent_sites (agent_id, site_id) values ('{}', '{}')",
        scene.bot.id, scene.site
    );
    world.sql(&back).await;
    scene.redeem(&id).await.ok();
    // C35: an approval adds no rights. Without the tool there is not even a request.
    let reader = world
        .agent_for("reader", &scene.ada, &[&scene.site], &["site-get"])
        .await;
    let answer = reader.call("publish", scene.publish_args()).await;
    answer.refused(Code::InsufficientScope);
}

async fn resume_runs_the_stored_call_once(world: World) {
    let scene = world.scene().await;
    let resume = async |bot: &AgentClient, id: &ApprovalId| {
        bot.call("approvals-resume", json!({"approvalId": id}))
            .await
    };
    let id = scene.asked().await;
    let waiting = resume(&scene.bot, &id).await.pending();
    assert_eq!((waiting.approval_id, waiting.approved), (id.clone(), false));
    scene.ada.approve(&id).await.unwrap();
    let other = world.agent("other", &scene.ada, &[&scene.site]).await;
    resume(&other, &id).await.refused(Code::ApprovalNotFound);
    let ran = resume(&scene.bot, &id).await.ok();
    assert_eq!(ran["version"], 1);
    assert_eq!(resume(&scene.bot, &id).await.replayed(), ran);
    assert_eq!(scene.redeem(&id).await.replayed(), ran);
    resume(&other, &id).await.refused(Code::ApprovalNotFound);
    assert_eq!(scene.versions().await, 1);
    // Approvals of one's own are in every key's scope, running the stored call is not.
    let id = scene.approved().await;
    set_scope(&scene, false).await;
    resume(&scene.bot, &id)
        .await
        .refused(Code::InsufficientScope);
    assert_eq!(scene.stored_status(&id).await, "approved");
}

/// C51 in part: looking changes nothing.
async fn get_tells_every_status_and_runs_nothing(world: World) {
    let scene = world.scene().await;
    for status in Status::ALL {
        let id = in_status(&scene, status).await;
        let before = scene.journal(&id).await;
        for _ in 0..20 {
            let record = scene
                .bot
                .call("approvals-get", json!({"approvalId": id}))
                .await
                .ok();
            assert_eq!(record["status"], status.as_str());
            assert_eq!(record["id"], json!(id));
            assert_eq!(record["requestedBy"]["name"], "bot");
            assert_eq!(record["receipt"].is_null(), status != Redeemed);
        }
        assert_eq!(scene.journal(&id).await, before, "waiting never writes");
        scene
            .bot
            .call("approvals-cancel", json!({"approvalId": id}))
            .await;
    }
    let answer = scene
        .bot
        .call(
            "approvals-get",
            json!({"approvalId": "x", "waitSeconds": 46}),
        )
        .await;
    answer.refused(Code::InvalidArguments);
}

async fn cancel_withdraws_ones_own_open_request(world: World) {
    let scene = world.scene().await;
    let cancel = async |bot: &AgentClient, id: &ApprovalId| {
        bot.call("approvals-cancel", json!({"approvalId": id}))
            .await
    };
    for status in Status::ALL {
        let id = in_status(&scene, status).await;
        let answer = cancel(&scene.bot, &id).await;
        match status {
            Pending | Approved | Cancelled => {
                assert_eq!(answer.ok()["status"], "cancelled");
                scene.redeem(&id).await.refused(Code::ApprovalCancelled);
                refused(scene.ada.approve(&id).await, Code::ApprovalCancelled);
            }
            Denied => drop(answer.refused(Code::ApprovalDenied)),
            Expired => drop(answer.refused(Code::ApprovalExpired)),
            Voided => drop(answer.refused(Code::ApprovalVoided)),
            Redeemed => drop(answer.refused(Code::Conflict)),
        }
        let told = scene.journal(&id).await;
        let times = told
            .iter()
            .filter(|kind| *kind == "approval.cancelled")
            .count();
        assert_eq!(
            times,
            usize::from(matches!(status, Pending | Approved | Cancelled)),
            "{status:?}: {told:?}"
        );
    }
}
