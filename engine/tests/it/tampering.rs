//! An operator with SQL, or whoever stole the database: an edited row does not redeem, and `verify` names what was touched.

use crate::support::*;

on_both! {
    a_pending_row_with_other_arguments_is_not_decided,
    a_row_set_to_approved_by_hand_does_not_redeem,
    each_reason_not_to_redeem_can_be_told_apart,
    an_approved_row_with_anything_changed_does_not_redeem,
    a_decision_of_another_request_does_not_count,
    a_node_redeems_what_another_one_signed_if_it_knows_its_key,
    verify_names_a_signing_key_that_was_slipped_in,
    verify_names_an_edited_site,
    verify_names_edited_content,
    verify_names_edited_versions,
    verify_names_an_edited_journal,
    verify_names_a_journal_that_was_cut_short,
    verify_names_a_redeemed_record_without_receipt,
    the_journal_takes_no_change,
}

/// A47: what runs is what was asked, also when the row was edited before anybody looked.
async fn a_pending_row_with_other_arguments_is_not_decided(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.publish().await;
    let ask = json!({"site": scene.site, "version": 1});
    let asked = async || {
        let answer = scene.bot.call("rollback", ask.clone()).await;
        answer.pending().approval_id
    };
    for edit in [
        "update approvals set arguments = replace(arguments, '\"version\":1', '\"version\":2')",
        "update approvals set card = replace(card, 'Rye', 'Oat')",
    ] {
        let id = asked().await;
        world.sql(edit).await;
        refused(scene.ada.approve(&id).await, Code::StaleView);
        assert_eq!(scene.stored_status(&id).await, "pending");
        let fault = world.fault().await.unwrap();
        assert!(fault.contains(id.as_str()), "{fault}");
        // Approved, then edited.
        world.sql("delete from approvals").await;
        let id = asked().await;
        scene.ada.approve(&id).await.unwrap();
        world.sql(edit).await;
        let answer = scene.bot.call_with(&id, "rollback", ask.clone()).await;
        answer.refused(Code::ApprovalVoided);
        assert_eq!(scene.live_version().await, Some(2));
        world
            .sql("delete from decisions; delete from approvals")
            .await;
    }
    world.tampers();
}

/// C39, A47.
async fn a_row_set_to_approved_by_hand_does_not_redeem(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    world
        .sql("update approvals set status = 'approved', changed_at = requested_at")
        .await;
    let refuse = async || {
        let refusal = scene.redeem(&id).await.refused(Code::ApprovalVoided);
        assert!(refusal.message.contains("not genuine"), "{refusal:?}");
        assert_eq!(scene.versions().await, 0);
        assert_eq!(scene.stored_status(&id).await, "approved");
        assert_eq!(world.fault().await, None, "nothing of it stays");
    };
    refuse().await;
    let seen = scene.ada.look(&id).await.unwrap().seen_digest;
    let ada = scene.ada.person().id();
    let zeros = "0".repeat(64);
    for signature in ["", "x", &zeros] {
        world
            .sql(&format!(
                "delete from decisions;
                 insert into decisions (id, approval_id, person_id, person_name, verdict, via, seen_digest, reason, at, signature)
                 values ('d', '{id}', '{ada}', 'Ada', 'approve', 'session', '{seen}', null, 1, '{signature}')"
            ))
            .await;
        refuse().await;
    }
}

/// C39: what happened after the approval is told by code, cause and words, and no two of them are told alike.
async fn each_reason_not_to_redeem_can_be_told_apart(world: World) {
    let scene = world.scene().await;
    let bea = world.member("bea", &scene.site, Role::Approver).await;
    let (bot, who) = (scene.bot.id.as_str(), bea.person().id().as_str());
    let undo = "update agent_keys set revoked_at = null; update agents set disabled_at = null; update people set disabled_at = null;
        update memberships set role = 'approver' where role = 'viewer'";
    let happened = [
        (
            "its key was revoked",
            "update agent_keys set revoked_at = 1".to_owned(),
        ),
        (
            "the agent was disabled",
            format!("update agents set disabled_at = 1 where id = '{bot}'"),
        ),
        (
            "the approver was demoted",
            format!("update memberships set role = 'viewer' where person_id = '{who}'"),
        ),
        (
            "the approver's account was disabled",
            format!("update people set disabled_at = 1 where id = '{who}'"),
        ),
        (
            "the row was edited",
            "update approvals set expires_at = expires_at + 1 where status = 'approved'".to_owned(),
        ),
        (
            "the database was restored",
            "update instance set epoch = epoch + 1".to_owned(),
        ),
        ("its time ran out", String::new()),
        ("the site changed", String::new()),
    ];
    let mut told = std::collections::BTreeMap::new();
    for (what, sql) in happened {
        let id = scene.asked().await;
        bea.approve(&id).await.unwrap();
        let caller = scene.bot.verified().await.unwrap();
        match what {
            "its time ran out" => world.advance(25 * HOUR),
            "the site changed" => drop(scene.edit("Else.").await),
            _ => world.sql(&sql).await,
        }
        let request = cloudhal_engine::gate::CallRequest {
            tool: "publish".into(),
            arguments: scene.publish_args(),
            approval: Some(id.as_str().into()),
            reason: None,
        };
        // Past the door, which knows a revoked key already.
        let Answer::Error { error } = world.engine().call(&caller, request).await else {
            panic!("{what}, and it did not refuse")
        };
        assert_eq!(scene.versions().await, 0, "{what}");
        let words = (
            error.code.as_str(),
            error.details["cause"].to_string(),
            error.message,
        );
        told.entry(words).or_insert_with(Vec::new).push(what);
        world.sql(undo).await;
        world
            .sql("delete from decisions; delete from approvals")
            .await;
    }
    world.tampers();
    let alike: Vec<_> = told.values().filter(|whats| whats.len() > 1).collect();
    // An approver who was demoted and one whose account was disabled: of either, only that they may not decide any more. And a
    // key that is good no longer hears the door's one answer, whatever ended it.
    assert_eq!(
        alike,
        [
            &vec![
                "the approver was demoted",
                "the approver's account was disabled"
            ],
            &vec!["its key was revoked", "the agent was disabled"],
        ],
        "{told:#?}"
    );
}

async fn an_approved_row_with_anything_changed_does_not_redeem(world: World) {
    let scene = world.scene().await;
    let florist = world.site("florist", &scene.ada).await;
    let other = world
        .agent("other", &scene.ada, &[&scene.site, &florist])
        .await;
    let rebound = cloudhal_domain::digest::of_arguments(&json!({"site": florist}));
    let edits = [
        (
            "the site and its arguments",
            format!(
                "update approvals set site_id = '{florist}', scope_id = '{florist}', arguments = '{{\"site\":\"{florist}\"}}', args_hash = '{rebound}', caller_id = '{}', state_hash = (select state_hash from sites where id = '{florist}')",
                other.id
            ),
        ),
        (
            "the caller",
            format!("update approvals set caller_id = '{}'", other.id),
        ),
        (
            "the expiry",
            "update approvals set expires_at = expires_at + 1".to_owned(),
        ),
        (
            "the card",
            "update approvals set card = replace(card, 'Publish', 'Bless')".to_owned(),
        ),
        (
            "the epoch",
            "update instance set epoch = epoch + 1; update approvals set epoch = epoch + 1"
                .to_owned(),
        ),
        (
            "the decision's digest",
            "update decisions set seen_digest = 'sha256:00'".to_owned(),
        ),
        (
            "the decision's moment",
            "update decisions set at = at + 1".to_owned(),
        ),
        (
            "the decision's reason",
            "update decisions set reason = 'fine by me'".to_owned(),
        ),
        (
            "the decision's way",
            "update decisions set via = 'client_elicitation'".to_owned(),
        ),
        (
            "a denial",
            "update decisions set verdict = 'approve'".to_owned(),
        ),
        (
            "a voided request",
            format!(
                "update approvals set status = 'approved', void_cause = null, state_hash = (select state_hash from sites where id = '{}')",
                scene.site
            ),
        ),
    ];
    for (what, edit) in edits {
        let id = match what {
            "a denial" => scene.asked().await,
            _ => scene.approved().await,
        };
        match what {
            "a denial" => {
                scene.ada.deny(&id, "").await.unwrap();
                world.sql("update approvals set status = 'approved'").await;
            }
            "a voided request" => drop(scene.edit("Something that nobody saw.").await),
            _ => {}
        }
        world.sql(&edit).await;
        let bot = match what {
            "the caller" | "the site and its arguments" => &other,
            _ => &scene.bot,
        };
        let arguments = match what {
            "the site and its arguments" => json!({"site": florist}),
            _ => scene.publish_args(),
        };
        let answer = bot.call_with(&id, "publish", arguments).await;
        let refusal = answer.refused(Code::ApprovalVoided);
        assert!(
            refusal.message.contains("not genuine"),
            "{what}: {refusal:?}"
        );
        assert_eq!(
            world.number("select count(*) from versions").await,
            0,
            "{what}"
        );
        world
            .sql("delete from decisions; delete from approvals")
            .await;
    }
}

async fn a_decision_of_another_request_does_not_count(world: World) {
    let scene = world.scene().await;
    let approved = scene.approved().await;
    let site_deletion = scene
        .bot
        .call("delete", scene.publish_args())
        .await
        .pending()
        .approval_id;
    world
        .sql(&format!(
            "update decisions set approval_id = '{site_deletion}';
             update approvals set status = 'approved', changed_at = 1 where id = '{site_deletion}'"
        ))
        .await;
    let answer = scene
        .bot
        .call_with(&site_deletion, "delete", scene.publish_args())
        .await;
    let refusal = answer.refused(Code::ApprovalVoided);
    assert!(refusal.message.contains("not genuine"));
    let refusal = scene.redeem(&approved).await.refused(Code::ApprovalVoided);
    assert!(refusal.message.contains("not genuine"));
}

/// Nodes need not share a secret: each knows the others by the public keys that they registered.
async fn a_node_redeems_what_another_one_signed_if_it_knows_its_key(world: World) {
    let scene = world.scene().await;
    let there = world
        .engine_with(Settings::for_url(PUBLIC_URL), [8; 32])
        .await
        .unwrap();
    let bot_there = scene.bot.at(&there);
    let id = scene.approved().await;
    let ran = bot_there
        .call_with(&id, "publish", scene.publish_args())
        .await
        .ok();
    assert_eq!(scene.redeem(&id).await.replayed(), ran);
    let id = scene.approved().await;
    world.sql("delete from signing_keys").await;
    let answer = bot_there
        .call_with(&id, "publish", scene.publish_args())
        .await;
    let refusal = answer.refused(Code::ApprovalVoided);
    assert!(refusal.message.contains("not genuine"), "{refusal:?}");
    assert_eq!(scene.versions().await, 1);
    // Who signed it needs no table to know its own key.
    scene.redeem(&id).await.ok();
}

async fn verify_names_a_signing_key_that_was_slipped_in(world: World) {
    let scene = world.scene().await;
    let stranger = cloudhal_engine::secret::Secret::random().public_key();
    let (id, text) = (stranger.id(), stranger.to_text());
    world
        .sql(&format!(
            "insert into signing_keys (id, public_key, created_at) values ('{id}', '{text}', 1)"
        ))
        .await;
    assert!(world.fault().await.unwrap().contains(&id));
    world
        .sql(&format!("delete from signing_keys where id = '{id}'"))
        .await;
    assert_eq!(world.fault().await, None);
    world
        .sql(&format!("update signing_keys set public_key = '{text}'"))
        .await;
    assert!(world.fault().await.is_some());
    // Our own key comes from our own secret, whatever the table says.
    let approved = scene.approved().await;
    scene.redeem(&approved).await.ok();
    world.tampers();
}

/// Each edit is made, found, and taken back.
async fn finds(world: &World, edits: &[(&str, String, String)]) {
    for (expect, edit, undo) in edits {
        assert_eq!(world.fault().await, None, "before {edit}");
        world.sql(edit).await;
        let fault = world.fault().await;
        let fault = fault.unwrap_or_else(|| panic!("not found: {edit}"));
        assert!(fault.contains(expect), "{edit}: {fault}");
        world.sql(undo).await;
    }
    assert_eq!(world.fault().await, None);
}

fn edit<'e>(expect: &'e str, edit: &str, undo: &str) -> (&'e str, String, String) {
    (expect, edit.to_owned(), undo.to_owned())
}

async fn verify_names_an_edited_site(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    let site = format!("site bakery ({})", scene.site);
    let edits = [
        edit(
            "nodes and has",
            "update sites set node_count = node_count + 1",
            "update sites set node_count = node_count - 1",
        ),
        edit(
            "state hash",
            "update sites set state_rev = state_rev + 1",
            "update sites set state_rev = state_rev - 1",
        ),
        edit(
            "state hash",
            "update sites set live_version = null",
            "update sites set live_version = 1",
        ),
        edit(
            "state hash",
            "update sites set state_hash = state_hash || 'x'",
            "update sites set state_hash = substr(state_hash, 1, 71)",
        ),
        edit(
            "running sum",
            "update sites set title = title || 'x'",
            "update sites set title = 'The bakery'",
        ),
        edit(
            "running sum",
            "update sites set settings_rev = 2",
            "update sites set settings_rev = 1",
        ),
        edit(
            "running sum",
            "update site_states set lanes = 'x' || lanes",
            "update site_states set lanes = substr(lanes, 2)",
        ),
        edit(
            "running sum",
            "update nodes set hash = hash || 'x' where slug = 'rye'",
            "update nodes set hash = substr(hash, 1, 71) where slug = 'rye'",
        ),
        edit(
            "running sum",
            "update nodes set rev = 2 where slug = 'rye'",
            "update nodes set rev = 1 where slug = 'rye'",
        ),
        edit(
            "nodes and has",
            "update nodes set deleted_at = 1 where slug = 'rye'",
            "update nodes set deleted_at = null where slug = 'rye'",
        ),
    ];
    finds(&world, &edits).await;
    world
        .sql("update nodes set deleted_at = 1 where slug = 'rye'")
        .await;
    let fault = world.fault().await.unwrap();
    assert!(fault.starts_with(&site), "{fault}");
    world.tampers();
}

/// The sum is over hashes: what they cover must be looked at too, or a body could be swapped under an approval.
async fn verify_names_edited_content(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    let rye = scene.rye.as_str();
    let edits = [
        edit(
            rye,
            "update node_revisions set body = 'Sneaked in.' where body = 'Two.'",
            "update node_revisions set body = 'Two.' where body = 'Sneaked in.'",
        ),
        edit(
            rye,
            "update node_revisions set body = 'Sneaked in.' where body = 'Rye, as it was.'",
            "update node_revisions set body = 'Rye, as it was.' where body = 'Sneaked in.'",
        ),
        edit(
            rye,
            "update node_revisions set title = 'X' where body = 'Two.'",
            "update node_revisions set title = 'Rye' where body = 'Two.'",
        ),
        edit(
            rye,
            "update node_revisions set fields = '{\"a\":1}' where body = 'Two.'",
            "update node_revisions set fields = '{}' where body = 'Two.'",
        ),
        edit(
            rye,
            "update nodes set title = 'X' where slug = 'rye'",
            "update nodes set title = 'Rye' where slug = 'rye'",
        ),
        edit(
            rye,
            "update nodes set slug = 'x' where slug = 'rye'",
            "update nodes set slug = 'rye' where slug = 'x'",
        ),
        edit(
            rye,
            "update nodes set position = 99 where slug = 'rye'",
            "update nodes set position = 10 where slug = 'rye'",
        ),
    ];
    finds(&world, &edits).await;
}

async fn verify_names_edited_versions(world: World) {
    let scene = world.scene().await;
    scene.publish().await;
    scene.edit("Two.").await;
    scene.publish().await;
    let edits = [
        edit(
            "version",
            "update published set title = 'X' where slug = 'rye' and from_version = 1",
            "update published set title = 'Rye' where title = 'X'",
        ),
        edit(
            "version",
            "update published set slug = 'x' where slug = 'visit'",
            "update published set slug = 'visit' where slug = 'x'",
        ),
        edit(
            "version",
            "update published set rev = 1 where slug = 'rye' and from_version = 2",
            "update published set rev = 2 where slug = 'rye' and from_version = 2",
        ),
        edit(
            "version",
            "update published set to_version = 2 where slug = 'visit'",
            "update published set to_version = null where slug = 'visit'",
        ),
        edit(
            "version",
            "update published set from_version = 2 where slug = 'visit'",
            "update published set from_version = 1 where slug = 'visit'",
        ),
    ];
    finds(&world, &edits).await;
}

async fn verify_names_an_edited_journal(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    scene.redeem(&id).await.ok();
    world.sql(remove_triggers(&world)).await;
    let chain = format!("journal {}", scene.site);
    let third = format!("chain = '{}' and seq = 3", scene.site);
    for (expect, edit, undo) in [
        (
            "entry 3 was changed",
            "body = body || ' '",
            "body = substr(body, 1, length(body) - 1)",
        ),
        (
            "entry 3 was changed",
            "actor = actor || 'x'",
            "actor = substr(actor, 1, length(actor) - 1)",
        ),
        (
            "entry 3 was changed",
            "kind = kind || 'x'",
            "kind = substr(kind, 1, length(kind) - 1)",
        ),
        ("entry 3 was changed", "at = at + 1", "at = at - 1"),
        (
            "entry 3 was changed",
            "approval_id = 'x'",
            &format!("approval_id = '{id}'"),
        ),
        (
            "entry 3 was changed",
            "hash = hash || 'x'",
            "hash = substr(hash, 1, 71)",
        ),
        (
            "entry 3 does not name the hash of entry 2",
            "prev_hash = prev_hash || 'x'",
            "prev_hash = substr(prev_hash, 1, 71)",
        ),
    ] {
        world
            .sql(&format!("update journal set {edit} where {third}"))
            .await;
        let fault = world
            .fault()
            .await
            .unwrap_or_else(|| panic!("not found: {edit}"));
        assert!(
            fault.contains(&chain) && fault.contains(expect),
            "{edit}: {fault}"
        );
        world
            .sql(&format!("update journal set {undo} where {third}"))
            .await;
        assert_eq!(world.fault().await, None, "{undo}");
    }
    world
        .sql(&format!("update journal set seq = 99 where {third}"))
        .await;
    assert!(
        world
            .fault()
            .await
            .unwrap()
            .contains("entry 4 follows entry 2")
    );
    world
        .sql(&format!(
            "delete from journal where chain = '{}' and seq = 99",
            scene.site
        ))
        .await;
    assert!(
        world
            .fault()
            .await
            .unwrap()
            .contains("entry 4 follows entry 2")
    );
    world.tampers();
}

/// What is left of a chain that was cut is a good chain; the records say what it should tell.
async fn verify_names_a_journal_that_was_cut_short(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    scene.redeem(&id).await.ok();
    world.sql(remove_triggers(&world)).await;
    world
        .sql(&format!(
            "delete from journal where approval_id = '{id}' and kind = 'approval.redeemed'"
        ))
        .await;
    assert!(world.fault().await.unwrap().contains(id.as_str()));
    world.tampers();
}

fn remove_triggers(world: &World) -> &'static str {
    match world.database().kind() {
        Kind::Sqlite => "drop trigger journal_no_update; drop trigger journal_no_delete",
        Kind::Postgres => "drop trigger journal_no_change on journal",
    }
}

async fn verify_names_a_redeemed_record_without_receipt(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    scene.redeem(&id).await.ok();
    world.sql("delete from receipts").await;
    assert!(world.fault().await.unwrap().contains(id.as_str()));
    world.tampers();
}

async fn the_journal_takes_no_change(world: World) {
    let scene = world.scene().await;
    let id = scene.approved().await;
    scene.redeem(&id).await.ok();
    let mut attempts = vec![
        "update journal set body = '{}'",
        "update journal set seq = seq + 1000",
        "delete from journal",
        "delete from journal where seq = 1",
    ];
    if world.database().kind() == Kind::Postgres {
        attempts.push("truncate journal");
    }
    for attempt in attempts {
        let words = world.database().try_sql(attempt).await.unwrap_err();
        assert!(words.contains("append-only"), "{attempt}: {words}");
    }
}
