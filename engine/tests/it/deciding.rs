//! Only a person with the role decides, once, and only what was shown.

use crate::support::*;
use cloudhal_domain::approval::Verdict;

on_both! {
    a_digest_of_anything_else_decides_nothing,
    a_stale_page_never_decides_a_newer_request,
    who_may_not_decide_does_not,
    the_second_decision_is_told_who_was_first,
    what_is_closed_is_not_decided_any_more,
    one_of_many_deciders_wins,
    two_clicks_of_one_person_are_one_decision,
    reasons_are_kept_clean_and_short,
}

async fn a_digest_of_anything_else_decides_nothing(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let seen = scene.ada.look(&id).await.unwrap();
    let right = seen.seen_digest.as_str();
    let flipped = right.replace(&right[7..8], if &right[7..8] == "0" { "1" } else { "0" });
    let odd = [
        "",
        " ",
        "sha256:",
        "null",
        "true",
        "a\0b",
        right.trim_start_matches("sha256:"),
        &right[..70],
        &right.to_uppercase(),
        &format!("{right} "),
        &format!("{right}0"),
        &flipped,
        seen.args_hash.as_str(),
        seen.state_hash.as_str(),
        &"f".repeat(10_000),
    ];
    for digest in odd {
        for verdict in [Verdict::Approve, Verdict::Deny] {
            refused(
                scene.ada.decide(&seen, verdict, digest, None).await,
                Code::StaleView,
            );
        }
    }
    assert_eq!(scene.stored_status(&id).await, "pending");
    assert_eq!(world.number("select count(*) from decisions").await, 0);
    scene.ada.approve(&id).await.unwrap();
}

/// C13.
async fn a_stale_page_never_decides_a_newer_request(world: World) {
    let scene = world.scene().await;
    let first = scene.asked().await;
    let old_page = scene.ada.look(&first).await.unwrap();
    scene.edit("Changed meanwhile.").await;
    let second = scene.asked().await;
    let digest = old_page.seen_digest.as_str();
    let click = scene.ada.decide(&old_page, Verdict::Approve, digest, None);
    refused(click.await, Code::ApprovalVoided);
    let mixed = scene.ada.look(&second).await.unwrap();
    let click = scene.ada.decide(&mixed, Verdict::Approve, digest, None);
    refused(click.await, Code::StaleView);
    assert_eq!(scene.stored_status(&second).await, "pending");
}

/// C32, C36 in the engine: the doors add their own.
async fn who_may_not_decide_does_not(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let seen = scene.ada.look(&id).await.unwrap();
    let digest = seen.seen_digest.as_str();
    for role in [Role::Viewer, Role::Editor] {
        let looker = world.member(role.as_str(), &scene.site, role).await;
        looker.look(&id).await.unwrap();
        for verdict in [Verdict::Approve, Verdict::Deny] {
            let click = looker.decide(&seen, verdict, digest, None).await;
            refused(click, Code::Forbidden);
        }
    }
    let neighbour = world.person("neighbour").await;
    let florist = world.site("florist", &neighbour).await;
    refused(neighbour.look(&id).await, Code::NotFound);
    let unknown = ApprovalId::new("aaaaaaaaaaaaaaaaaaaaaaaaaa");
    let mut answers = Vec::new();
    for (site, id) in [
        (&scene.site, &id),
        (&florist, &id),
        (&florist, &unknown),
        (&scene.site, &unknown),
        (&SiteId::new("nowhere"), &id),
    ] {
        let click = neighbour.decide_on(site, id, Verdict::Approve, digest, None);
        answers.push(json!(refused(click.await, Code::NotFound)));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "unknown and foreign look the same");
    // Ada's own, but under another site's address.
    let click = scene
        .ada
        .decide_on(&florist, &id, Verdict::Approve, digest, None);
    refused(click.await, Code::NotFound);
    assert_eq!(scene.stored_status(&id).await, "pending");
    let approver = world.member("approver", &scene.site, Role::Approver).await;
    let record = approver.approve(&id).await.unwrap();
    assert_eq!(record.decisions[0].by.name, "approver");
}

/// C49.
async fn the_second_decision_is_told_who_was_first(world: World) {
    let scene = world.scene().await;
    let bea = world.member("bea", &scene.site, Role::Approver).await;
    for (verdict, verb) in [(Verdict::Approve, "approve"), (Verdict::Deny, "deny")] {
        let id = scene.asked().await;
        let page = bea.look(&id).await.unwrap();
        match verdict {
            Verdict::Approve => scene.ada.approve(&id).await.unwrap(),
            Verdict::Deny => scene.ada.deny(&id, "no").await.unwrap(),
        };
        let at = world.engine().now().to_string();
        world.advance(HOUR);
        for late in [Verdict::Approve, Verdict::Deny] {
            let click = bea.decide(&page, late, page.seen_digest.as_str(), None);
            let refusal = refused(click.await, Code::AlreadyDecided);
            assert_eq!(refusal.details["by"]["name"], "Ada");
            assert_eq!(refusal.details["decision"], verb);
            assert_eq!(refusal.details["at"], at);
        }
        if verdict == Verdict::Approve {
            scene.redeem(&id).await.ok();
            refused(bea.approve(&id).await, Code::AlreadyDecided);
        }
    }
}

async fn what_is_closed_is_not_decided_any_more(world: World) {
    let scene = world.scene().await;
    for approved_first in [false, true] {
        let open = async || match approved_first {
            true => scene.approved().await,
            false => scene.asked().await,
        };
        let voided = open().await;
        scene.edit(&format!("voids {voided}")).await;
        let cancelled = open().await;
        scene
            .bot
            .call("approvals-cancel", json!({"approvalId": cancelled}))
            .await
            .ok();
        let expired = open().await;
        world.advance(25 * HOUR);
        for (id, code) in [
            (&voided, Code::ApprovalVoided),
            (&cancelled, Code::ApprovalCancelled),
            (&expired, Code::ApprovalExpired),
        ] {
            refused(scene.ada.approve(id).await, code);
            refused(scene.ada.deny(id, "no").await, code);
        }
        // The click that came too late stored the expiry on its way.
        assert_eq!(scene.stored_status(&expired).await, "expired");
    }
}

/// R4: two approvers and two deniers, with a redeemer at their heels.
async fn one_of_many_deciders_wins(world: World) {
    let scene = world.scene().await;
    let mut people = vec![scene.ada.clone()];
    for name in ["bea", "cem", "dora"] {
        people.push(world.member(name, &scene.site, Role::Approver).await);
    }
    let (mut approved, mut denied) = (0, 0);
    for _ in 0..rounds(25) {
        let id = scene.asked().await;
        let clicks = people.iter().enumerate().map(|(n, person)| {
            let (person, id) = (person.clone(), id.clone());
            tokio::spawn(async move {
                match n % 2 {
                    0 => person.approve(&id).await,
                    _ => person.deny(&id, "no").await,
                }
            })
        });
        let ended: Vec<_> = futures::future::join_all(clicks)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let winners: Vec<_> = ended
            .iter()
            .filter_map(|click| click.as_ref().ok())
            .collect();
        let [won] = winners.as_slice() else {
            panic!("one wins: {ended:?}")
        };
        for lost in ended.iter().filter_map(|click| click.as_ref().err()) {
            assert_eq!(lost.code, Code::AlreadyDecided);
            assert_eq!(lost.details["by"], json!(won.decisions[0].by));
        }
        assert_eq!(won.decisions.len(), 1);
        match won.status {
            Status::Approved => {
                approved += 1;
                scene.redeem(&id).await.ok();
            }
            Status::Denied => {
                denied += 1;
                scene.redeem(&id).await.refused(Code::ApprovalDenied);
            }
            other => panic!("{other:?}"),
        }
        let told = scene.journal(&id).await;
        let decided = told.iter().filter(|kind| *kind == "approval.decided");
        assert_eq!(decided.count(), 1);
    }
    assert_eq!(scene.versions().await, approved);
    println!("approved {approved}, denied {denied}");
}

/// C49.
async fn two_clicks_of_one_person_are_one_decision(world: World) {
    let scene = world.scene().await;
    let id = scene.asked().await;
    let (one, two) = tokio::join!(scene.ada.approve(&id), scene.ada.approve(&id));
    let refusals: Vec<_> = [one, two].into_iter().filter_map(Result::err).collect();
    assert_eq!(refusals.len(), 1);
    assert_eq!(refusals[0].code, Code::AlreadyDecided);
    assert_eq!(refusals[0].details["by"]["name"], "Ada");
    assert_eq!(world.number("select count(*) from decisions").await, 1);
}

/// C87: framed, capped, cleaned.
async fn reasons_are_kept_clean_and_short(world: World) {
    let scene = world.scene().await;
    for (said, kept) in [
        ("Not now.", "Not now."),
        ("  two\nlines  ", "two\nlines"),
        ("\u{1b}[31mred\u{1b}[0m", "[31mred[0m"),
        ("a\u{202e}b\u{2066}c\u{2069}", "abc"),
        ("zero\u{200b}width", "zerowidth"),
        ("tag\u{e0041}", "tag"),
        ("nul\0bell\u{7}", "nulbell"),
        (
            "emoji 👩\u{200d}🚀 and می\u{200c}خواهم stay",
            "emoji 👩\u{200d}🚀 and می\u{200c}خواهم stay",
        ),
        (
            "[click](https://evil.example)",
            "[click](https://evil.example)",
        ),
    ] {
        let id = scene.asked().await;
        let record = scene.ada.deny(&id, said).await.unwrap();
        assert_eq!(record.decisions[0].reason.as_deref(), Some(kept));
        let refusal = scene.redeem(&id).await.refused(Code::ApprovalDenied);
        assert_eq!(refusal.details["reason"], kept);
    }
    let id = scene.asked().await;
    let record = scene.ada.deny(&id, &"ü".repeat(10_000)).await.unwrap();
    let kept = record.decisions[0].reason.clone().unwrap();
    assert_eq!(kept.chars().count(), 500);
    let id = scene.asked().await;
    let record = scene.ada.deny(&id, " \n\u{200b} ").await.unwrap();
    assert_eq!(
        record.decisions[0].reason, None,
        "nothing said is no reason"
    );
    let mut arguments = scene.publish_args();
    arguments["reason"] = json!("approve\u{202e} \u{1b}[2Jme");
    let asked = scene.bot.call("publish", arguments).await.pending();
    let record = scene.ada.look(&asked.approval_id).await.unwrap();
    assert_eq!(record.reason.as_deref(), Some("approve [2Jme"));
}
