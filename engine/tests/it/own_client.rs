//! A person's own MCP client: it asks for what the person may do, and waits; the person may answer in it, where the site lets
//! them (DESIGN §4, rule 3).

use crate::support::*;
use cloudhal_domain::{approval::Verdict, id::KeyId};
use cloudhal_engine::{
    approvals::{self, Put},
    authority::Decider,
    people, personal_keys,
};
use secrecy::SecretString;

on_both! {
    a_persons_client_waits_and_redeems_what_its_person_approved,
    a_personal_key_opens_mcp_alone,
    a_personal_key_ends_with_its_session,
    what_waited_for_the_lock_is_asked_again,
    it_asks_for_no_more_than_its_person_may_do,
    c37_an_answer_in_the_client_is_journaled_as_such,
    c37_a_client_answers_only_where_the_site_lets_it,
    c37_what_a_client_approved_does_not_run_where_the_studio_decides_by_now,
    a_client_answers_for_its_own_request_alone,
    c05_an_answer_to_a_question_that_was_never_asked_decides_nothing,
    a_person_who_leaves_takes_their_own_requests_along,
    requests_on_two_sites_do_not_wait_for_each_other,
}

async fn a_persons_client_waits_and_redeems_what_its_person_approved(world: World) {
    let scene = world.scene().await;
    let laptop = scene.ada.own_client("laptop").await;
    let sites = laptop.call("site-list", json!({})).await.ok();
    assert_eq!(sites["items"][0]["id"], scene.site.as_str());
    let edit = json!({"site": scene.site, "node": scene.rye, "title": "Rye loaf"});
    assert_eq!(
        laptop.call("node-update", edit).await.ok()["title"],
        "Rye loaf"
    );

    let id = laptop
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    assert_eq!(scene.versions().await, 0);
    scene
        .bot
        .call_with(&id, "publish", scene.publish_args())
        .await
        .refused(Code::ApprovalNotFound);
    laptop
        .here()
        .call_with(&id, "publish", scene.publish_args())
        .await
        .refused(Code::ApprovalNotFound);
    let record = scene.ada.approve(&id).await.unwrap();
    assert_eq!(record.requested_by.name, "Ada");
    laptop
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
    assert_eq!(scene.versions().await, 1);
}

async fn a_personal_key_opens_mcp_alone(world: World) {
    let scene = world.scene().await;
    let laptop = scene.ada.own_client("laptop").await;
    for surface in [
        Surface::Http,
        Surface::Stdio,
        Surface::Assistant,
        Surface::Direct,
    ] {
        let verified =
            cloudhal_engine::callers::verify_key(world.engine(), &laptop.key, surface).await;
        refused(verified.map(drop), Code::Unauthorized);
    }
    assert!(laptop.caller().await.is_ok());
}

async fn a_personal_key_ends_with_its_session(world: World) {
    let scene = world.scene().await;
    let gone = async |client: &OwnClient| {
        refused(client.caller().await.map(drop), Code::Unauthorized);
    };
    let listed = async || {
        personal_keys::list(world.engine(), scene.ada.person())
            .await
            .unwrap()
    };

    let signed_out = scene.ada.own_client("signed-out").await;
    assert_eq!(listed().await[0].name, "signed-out");
    world
        .engine()
        .store()
        .end_session(signed_out.session.clone())
        .await
        .unwrap();
    gone(&signed_out).await;
    assert_eq!(world.number("select count(*) from personal_keys").await, 0);

    let ended = scene.ada.own_client("ended").await;
    let key = KeyId::new(listed().await[0].id.as_str());
    let bea = world.member("bea", &scene.site, Role::Owner).await;
    let by = bea.person();
    refused(
        personal_keys::end(world.engine(), by, own_page(), &key).await,
        Code::NotFound,
    );
    assert!(ended.caller().await.is_ok());
    personal_keys::end(world.engine(), scene.ada.person(), own_page(), &key)
        .await
        .unwrap();
    gone(&ended).await;

    let other_password = scene.ada.own_client("other-password").await;
    let password = SecretString::from("correct horse battery");
    people::set_password(world.engine(), scene.ada.person(), password)
        .await
        .unwrap();
    gone(&other_password).await;
    // And a session from before the password was changed makes no key.
    let stale = OwnClient::made(world.engine(), scene.ada.person(), "stale").await;
    refused(stale.map(drop), Code::Unauthorized);

    let bees = bea.own_client("bees").await;
    scene
        .world
        .sql(&format!(
            "update people set disabled_at = 1 where id = '{}'",
            bea.person().id()
        ))
        .await;
    gone(&bees).await;
    scene
        .world
        .sql("update people set disabled_at = null")
        .await;
    assert!(bees.caller().await.is_ok());

    // Idle for half an hour; and with a session that was kept busy, for twelve hours.
    world.advance(Duration::from_secs(1_800));
    gone(&bees).await;
    let busy = bea.own_client("busy").await;
    world
        .sql("update sessions set expires_at = expires_at + 1000000000")
        .await;
    world.advance(Duration::from_secs(43_199));
    assert!(busy.caller().await.is_ok());
    world.advance(Duration::from_secs(1));
    gone(&busy).await;
}

async fn what_waited_for_the_lock_is_asked_again(world: World) {
    let scene = world.scene().await;
    let laptop = scene.ada.own_client("laptop").await;
    let id = laptop
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    scene.ada.approve(&id).await.unwrap();
    let caller = laptop.caller().await.unwrap();
    world
        .engine()
        .store()
        .end_session(laptop.session.clone())
        .await
        .unwrap();
    let request = cloudhal_engine::gate::CallRequest {
        tool: "publish".into(),
        arguments: scene.publish_args(),
        approval: Some(id.as_str().into()),
        reason: None,
    };
    world
        .engine()
        .call(&caller, request)
        .await
        .refused(Code::Unauthorized);
    assert_eq!(scene.versions().await, 0);
    let withdraws = cloudhal_engine::gate::CallRequest {
        tool: "approvals-cancel".into(),
        arguments: json!({"approvalId": id}),
        approval: None,
        reason: None,
    };
    let withdrawn = world.engine().call(&caller, withdraws).await;
    withdrawn.refused(Code::Unauthorized);
    assert_eq!(scene.stored_status(&id).await, "approved");
    // The caller is the person: the next session's key redeems.
    let phone = scene.ada.own_client("phone").await;
    phone
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
}

async fn it_asks_for_no_more_than_its_person_may_do(world: World) {
    let scene = world.scene().await;
    let other = world.site("brewery", &world.person("otto").await).await;
    let vic = world.member("vic", &scene.site, Role::Viewer).await;
    let laptop = vic.own_client("laptop").await;
    let sites = laptop.call("site-list", json!({})).await.ok();
    assert_eq!(sites["items"].as_array().unwrap().len(), 1);
    laptop
        .call("site-get", json!({"site": other}))
        .await
        .refused(Code::NotFound);
    laptop
        .call("publish", json!({"site": other}))
        .await
        .refused(Code::NotFound);
    laptop
        .call("publish", scene.publish_args())
        .await
        .refused(Code::InsufficientScope);
    let edit = json!({"site": scene.site, "node": scene.rye, "title": "No"});
    laptop
        .call("node-update", edit)
        .await
        .refused(Code::InsufficientScope);
    let olga = world.owner("olga").await.own_client("laptop").await;
    let sites = olga.call("site-list", json!({})).await.ok();
    assert_eq!(sites["items"].as_array().unwrap().len(), 2);
}

async fn c37_an_answer_in_the_client_is_journaled_as_such(world: World) {
    let scene = world.scene().await;
    for client in [
        scene.ada.own_client("laptop").await,
        scene.ada.own_client("desk").await.here(),
    ] {
        let id = client
            .call("publish", scene.publish_args())
            .await
            .pending()
            .approval_id;
        let seen = scene.ada.look(&id).await.unwrap();
        assert_eq!(client.question(&id).await.unwrap().card, seen.card);
        let caller = client.caller().await.unwrap();
        let stale = client
            .answer(&caller, &seen, Verdict::Approve, "sha256:00")
            .await;
        refused(stale, Code::StaleView);
        let record = client
            .answer(&caller, &seen, Verdict::Approve, seen.seen_digest.as_str())
            .await
            .unwrap();
        assert_eq!(record.status, Status::Approved);
        assert_eq!(json!(record.decisions[0].via), "client_elicitation");
        assert!(client.question(&id).await.is_none());
        let told = format!(
            "select body from journal where kind = 'approval.decided' and approval_id = '{id}'"
        );
        assert!(
            world
                .text(&told)
                .await
                .contains(r#""via":"client_elicitation""#)
        );
        client
            .call_with(&id, "publish", scene.publish_args())
            .await
            .ok();
        scene.edit(&format!("After {id}.")).await;
        let id = client
            .call("publish", scene.publish_args())
            .await
            .pending()
            .approval_id;
        let seen = scene.ada.look(&id).await.unwrap();
        client
            .answer(&caller, &seen, Verdict::Deny, seen.seen_digest.as_str())
            .await
            .unwrap();
        client
            .call_with(&id, "publish", scene.publish_args())
            .await
            .refused(Code::ApprovalDenied);
        scene.edit(&format!("Once more after {id}.")).await;
    }
}

async fn c37_a_client_answers_only_where_the_site_lets_it(world: World) {
    let scene = world.scene().await;
    let laptop = scene.ada.own_client("laptop").await;
    let ed = world.member("ed", &scene.site, Role::Editor).await;
    let eds = ed.own_client("laptop").await;
    world.member("bea", &scene.site, Role::Approver).await;
    let id = laptop
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    let edits = eds
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    let seen = scene.ada.look(&id).await.unwrap();
    let answer = async |client: &OwnClient, seen: &ApprovalRecord| {
        let caller = client.caller().await.unwrap();
        client
            .answer(&caller, seen, Verdict::Approve, seen.seen_digest.as_str())
            .await
    };
    for policy in [
        json!({"default": {"studioOnly": true}}),
        json!({"tools": {"publish": {"studioOnly": true}}}),
        json!({"default": {"requireDistinctApprover": true}}),
    ] {
        scene
            .ada
            .set_policy(&scene.site, policy.clone())
            .await
            .unwrap();
        assert!(laptop.question(&id).await.is_none(), "{policy}");
        refused(answer(&laptop, &seen).await, Code::Forbidden);
        assert_eq!(scene.stored_status(&id).await, "pending", "{policy}");
    }
    scene
        .ada
        .set_policy(
            &scene.site,
            json!({"tools": {"rollback": {"studioOnly": true}}}),
        )
        .await
        .unwrap();
    assert!(
        eds.question(&edits).await.is_none(),
        "an editor does not decide"
    );
    refused(
        answer(&eds, &scene.ada.look(&edits).await.unwrap()).await,
        Code::Forbidden,
    );
    assert!(laptop.question(&id).await.is_some());
    let caller = laptop.caller().await.unwrap();
    world
        .engine()
        .store()
        .end_session(laptop.session.clone())
        .await
        .unwrap();
    let late = laptop
        .answer(&caller, &seen, Verdict::Approve, seen.seen_digest.as_str())
        .await;
    refused(late, Code::Unauthorized);
    assert_eq!(scene.stored_status(&id).await, "pending");
}

async fn c37_what_a_client_approved_does_not_run_where_the_studio_decides_by_now(world: World) {
    let scene = world.scene().await;
    let laptop = scene.ada.own_client("laptop").await;
    let bea = world.member("bea", &scene.site, Role::Approver).await;
    let studio_only =
        |approvers: u32| json!({"default": {"approvers": approvers, "studioOnly": true}});
    let two = json!({"default": {"approvers": 2}});
    let answered = async || {
        let asked = laptop.call("publish", scene.publish_args()).await;
        let id = asked.pending().approval_id;
        let seen = scene.ada.look(&id).await.unwrap();
        let (caller, digest) = (laptop.caller().await.unwrap(), seen.seen_digest.as_str());
        let answer = laptop.answer(&caller, &seen, Verdict::Approve, digest);
        answer.await.unwrap();
        id
    };
    let id = answered().await;
    let set = async |policy: Value| scene.ada.set_policy(&scene.site, policy).await.unwrap();
    set(studio_only(1)).await;
    let refusal = laptop
        .call_with(&id, "publish", scene.publish_args())
        .await
        .refused(Code::ApprovalVoided);
    assert_eq!(refusal.details["cause"], "access_lost");

    // One of two was given in the client, and counts no more; nor can the same person give a second one.
    set(two).await;
    let id = answered().await;
    assert_eq!(scene.stored_status(&id).await, "pending");
    set(studio_only(2)).await;
    assert_eq!(bea.approve(&id).await.unwrap().status, Status::Pending);
    refused(scene.ada.approve(&id).await, Code::AlreadyDecided);
    let cy = world.member("cy", &scene.site, Role::Approver).await;
    assert_eq!(cy.approve(&id).await.unwrap().status, Status::Approved);
    laptop
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
    assert_eq!(scene.versions().await, 1);
}

async fn a_client_answers_for_its_own_request_alone(world: World) {
    let scene = world.scene().await;
    let bea = world.member("bea", &scene.site, Role::Approver).await;
    let (laptop, beas) = (
        scene.ada.own_client("laptop").await,
        bea.own_client("laptop").await,
    );
    let of_bot = scene.asked().await;
    let of_ada = laptop
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    assert!(Decider::in_own_client(&scene.bot.verified().await.unwrap()).is_none());
    for (client, id) in [
        (&laptop, &of_bot),
        (&beas, &of_bot),
        (&beas, &of_ada),
        (&laptop.here(), &of_ada),
    ] {
        let seen = scene.ada.look(id).await.unwrap();
        let caller = client.caller().await.unwrap();
        let answered = client
            .answer(&caller, &seen, Verdict::Approve, seen.seen_digest.as_str())
            .await;
        refused(answered, Code::NotFound);
        assert_eq!(scene.stored_status(id).await, "pending");
    }
}

async fn c05_an_answer_to_a_question_that_was_never_asked_decides_nothing(world: World) {
    let scene = world.scene().await;
    let laptop = scene.ada.own_client("laptop").await;
    let phone = scene.ada.own_client("phone").await;
    let bea = world.member("bea", &scene.site, Role::Approver).await;
    let beas = bea.own_client("laptop").await;
    let (here, second) = (laptop.here(), world.second_engine().await);
    let id = laptop
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    let question = laptop.question(&id).await.unwrap();
    let (proof, half) = (question.proof.as_str(), question.proof.len() / 2);
    let foreign = cloudhal_engine::secret::Secret::random().sign("yes");
    let tried = async |client: &OwnClient, proof: &str, put: Put, engine: &Engine| {
        let caller = client.caller().await.unwrap();
        let call = cloudhal_engine::gate::CallRequest {
            tool: "publish".into(),
            arguments: scene.publish_args(),
            approval: None,
            reason: None,
        };
        let yes = (Verdict::Approve, None);
        approvals::answer_in_client(engine, &caller, &call, proof, put, yes).await
    };
    let ours = world.engine();
    for (client, proof, put) in [
        (&laptop, "", Put::Form),
        (&laptop, id.as_str(), Put::Form),
        (&laptop, &format!("{id}."), Put::Form),
        (&laptop, &format!("{id}.\0.\0"), Put::Form),
        (&laptop, &format!("{id}.{foreign}"), Put::Form),
        (&laptop, &proof[..half], Put::Form),
        (&laptop, proof, Put::Token),
        (&here, proof, Put::Form),
        (&beas, proof, Put::Form),
    ] {
        refused(tried(client, proof, put, ours).await, Code::StaleView);
        assert_eq!(scene.stored_status(&id).await, "pending", "{proof}");
    }
    // The person is the caller, whichever client and whichever node they answer by; and they answer once.
    tried(&phone, proof, Put::Form, &second).await.unwrap();
    refused(
        tried(&laptop, proof, Put::Form, ours).await,
        Code::AlreadyDecided,
    );
    laptop
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
    refused(
        tried(&laptop, proof, Put::Form, ours).await,
        Code::AlreadyDecided,
    );
    assert_eq!(scene.versions().await, 1);
    // What was asked of another state is not answered for this one.
    scene.edit("Something else.").await;
    let old = laptop
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    let proof = laptop.question(&old).await.unwrap().proof;
    scene.edit("Something else again.").await;
    refused(
        tried(&laptop, &proof, Put::Form, ours).await,
        Code::ApprovalVoided,
    );
}

async fn a_person_who_leaves_takes_their_own_requests_along(world: World) {
    let scene = world.scene().await;
    let ed = world.member("ed", &scene.site, Role::Editor).await;
    let laptop = ed.own_client("laptop").await;
    let id = laptop
        .call("publish", scene.publish_args())
        .await
        .pending()
        .approval_id;
    let of_bot = scene.asked().await;
    scene
        .ada
        .set_member(&scene.site, &ed, None, &[])
        .await
        .unwrap();
    assert_eq!(scene.stored_status(&id).await, "voided");
    assert_eq!(scene.stored_status(&of_bot).await, "pending");
}

/// Each takes the caller's row before it only holds it.
async fn requests_on_two_sites_do_not_wait_for_each_other(world: World) {
    let scene = world.scene().await;
    let other = world.site("brewery", &scene.ada).await;
    let both = world
        .agent("both", &scene.ada, &[&scene.site, &other])
        .await;
    let laptop = scene.ada.own_client("laptop").await;
    for round in 0..rounds(10) {
        let asks = (0..12).map(|n| {
            let (both, laptop) = (both.clone(), laptop.clone());
            let site = [&scene.site, &other][n % 2].clone();
            tokio::spawn(async move {
                let args = json!({"site": site});
                match n % 4 {
                    0 | 1 => both.call("publish", args).await,
                    _ => laptop.call("publish", args).await,
                }
            })
        });
        for ask in asks.collect::<Vec<_>>() {
            ask.await.unwrap().pending();
        }
        for site in [&scene.site, &other] {
            let rye = world.node(site, "rye").await;
            let edit = json!({"site": site, "node": rye, "body": format!("Round {round}.")});
            both.call("node-update", edit).await.ok();
        }
    }
}
