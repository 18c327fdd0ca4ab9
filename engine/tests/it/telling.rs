//! What a step of a request answers is what that step made, whatever comes right after it.

use crate::support::*;
use cloudhal_domain::approval::Verdict;

on_both! {
    a_decision_tells_what_it_made,
    a_withdrawal_tells_what_it_made,
}

async fn a_decision_tells_what_it_made(world: World) {
    let scene = world.scene().await;
    let mut approved = 0;
    let mut round = 0;
    while approved < rounds(10) {
        round += 1;
        let id = scene.asked().await;
        let seen = scene.ada.look(&id).await.unwrap();
        let digest = seen.seen_digest.as_str();
        let decide = scene.ada.decide(&seen, Verdict::Approve, digest, None);
        let cancel = json!({"approvalId": id});
        let cancel = scene.bot.call("approvals-cancel", cancel);
        let (decided, _) = tokio::join!(decide, cancel);
        if let Ok(record) = decided {
            approved += 1;
            let told = (record.status, record.decisions.len());
            assert_eq!(told, (Status::Approved, 1), "round {round}");
        }
        scene.edit(&format!("Text {round}.")).await;
    }
}

async fn a_withdrawal_tells_what_it_made(world: World) {
    let scene = world.scene().await;
    for round in 0..rounds(20) {
        let id = scene.asked().await;
        let cancel = json!({"approvalId": id});
        let cancel = scene.bot.call("approvals-cancel", cancel);
        let (cancelled, _) = tokio::join!(cancel, scene.ada.deny(&id, "No."));
        let stored = scene.stored_status(&id).await;
        match cancelled {
            Answer::Ok { data, .. } => {
                assert_eq!(
                    (data["status"].as_str(), &stored[..]),
                    (Some("cancelled"), "cancelled"),
                    "round {round}"
                );
            }
            other => {
                other.refused(Code::ApprovalDenied);
                assert_eq!(stored, "denied");
            }
        }
    }
}
