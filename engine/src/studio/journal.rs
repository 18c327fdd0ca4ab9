//! The journal as people read it.

use super::site_of;
use crate::{
    Engine,
    authority::Author,
    people::Person,
    store::journal::{self as journal_sql, EntryRow},
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::{ApprovalId, SiteId},
    limits,
    time::Timestamp,
    tool::Surface,
    view::{JournalPage, JournalRow},
};
use serde_json::Value;

/// A site's chain, or, for a workspace owner, everything.
pub async fn journal(
    engine: &Engine,
    person: &Person,
    site: Option<String>,
    cursor: Option<String>,
) -> Result<JournalPage, Refusal> {
    let db = engine.store().read();
    let limit = limits::PAGE_ITEMS_DEFAULT;
    let bad_cursor = || crate::sites::invalid("/cursor", "this is not a cursor of an earlier page");
    let mut rows = match &site {
        Some(slug) => {
            let (site, _) = site_of(engine, person, slug).await?;
            let before = cursor
                .map(|c| c.parse().map_err(|_| bad_cursor()))
                .transpose()?
                .unwrap_or(i64::MAX);
            journal_sql::recent(db, &site.id, before, limit + 1).await?
        }
        None if person.is_workspace_owner() => {
            let place = cursor
                .as_deref()
                .map(|c| parse_place(c).ok_or_else(bad_cursor))
                .transpose()?;
            journal_sql::recent_everywhere(db, place.unwrap_or((i64::MAX, "", 0)), limit + 1)
                .await?
        }
        None => {
            return Err(Refusal::new(
                Code::Forbidden,
                "Only an owner of the workspace sees the whole journal. Open it from one of your sites.",
            ));
        }
    };
    let more = rows.len() as i64 > limit;
    rows.truncate(limit as usize);
    let next_cursor = rows.last().filter(|_| more).map(|row| {
        if site.is_some() {
            row.seq.to_string()
        } else {
            format!("{}.{}.{}", row.at, row.chain, row.seq)
        }
    });
    Ok(JournalPage {
        rows: rows.iter().map(journal_row).collect(),
        next_cursor,
    })
}

fn parse_place(text: &str) -> Option<(i64, &str, i64)> {
    let mut parts = text.split('.');
    Some((
        parts.next()?.parse().ok()?,
        parts.next()?,
        parts.next()?.parse().ok()?,
    ))
}

pub(super) fn journal_row(row: &EntryRow) -> JournalRow {
    let body: Value = serde_json::from_str(&row.body).unwrap_or(Value::Null);
    JournalRow {
        seq: row.seq,
        at: Timestamp(row.at),
        kind: row.kind.clone(),
        actor: if row.actor == Author::system().key {
            Author::system().name
        } else {
            row.actor_name.clone()
        },
        sentence: journal_sentence(&row.kind, &body),
        site: (row.chain != crate::journal::WORKSPACE).then(|| SiteId::new(&row.chain)),
        approval: row.approval_id.as_deref().map(ApprovalId::new),
        hash: row.hash.clone(),
    }
}

/// One line of the journal as a person reads it, after the name of whoever did it.
fn journal_sentence(kind: &str, body: &Value) -> String {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let act = || match text("tool") {
        "publish" => "publish the site".to_owned(),
        "rollback" => "roll the site back".to_owned(),
        "delete" => "delete".to_owned(),
        "node-create" => "add a page".to_owned(),
        "node-update" => "change a page".to_owned(),
        "node-move" => "move a page".to_owned(),
        other => format!("call {other}"),
    };
    match kind {
        "approval.requested" => {
            let door = Surface::from_text(text("surface")).map_or("", Surface::in_words);
            format!("asked to {}, {door}", act())
        }
        "approval.decided" if text("verdict") == "approve" => {
            format!("approved the request to {}", act())
        }
        "approval.decided" => format!("denied the request to {}", act()),
        "approval.redeemed" if text("outcome") == "succeeded" => {
            format!("ran the approved request to {}", act())
        }
        "approval.redeemed" => format!("ran the approved request to {}, and it failed", act()),
        "approval.voided" => match text("cause") {
            "state_changed" => "changed the site, which voided a request".into(),
            "tool_changed" => "voided a request: the tool changed".into(),
            "restored" => "voided a request: the database was restored".into(),
            _ => {
                "voided a request: somebody's access was taken away, or the site asks for more now"
                    .into()
            }
        },
        "approval.expired" => "closed a request whose time ran out".into(),
        "approval.misused" if text("code") == "approval_mismatch" => {
            format!(
                "tried to {} with an approval of another call; nothing ran",
                act()
            )
        }
        "approval.misused" => {
            format!(
                "tried to {} with an approval that it was never given; nothing ran",
                act()
            )
        }
        "approval.not_genuine" => "stopped a request: its stored decision is not genuine".into(),
        "policy.set" => "changed what an approval takes".into(),
        "member.set" => match body.get("role").and_then(Value::as_str) {
            Some(role) => format!("made {} {role} of the site", text("name")),
            None => format!("took {} off the site", text("name")),
        },
        "webhook.created" => format!("had events told to {}", text("host")),
        "webhook.deleted" => format!("stopped telling events to {}", text("host")),
        "webhook.secret_rotated" => {
            format!("made a new secret for events told to {}", text("host"))
        }
        "webhook.tested" => format!("sent a test to {}", text("host")),
        "webhook.sent_again" => format!("had an event told to {} once more", text("host")),
        "webhook.gave_up" => format!(
            "gave up telling an event ({}): {}",
            text("event"),
            text("error")
        ),
        "key.added" => format!("made a further key for {}", text("name")),
        "password.set" => format!("set a new password for {}", text("name")),
        "approval.cancelled" => "withdrew the request".into(),
        "tool.ran" => format!("chose to {}, by hand", act()),
        "site.created" => format!("created the site {}", text("title")),
        "site.imported" => {
            let pages = body.get("nodes").and_then(Value::as_i64).unwrap_or(0);
            format!("imported {pages} pages")
        }
        "site.deleted" => format!("deleted the site {}", text("title")),
        "member.added" => format!("gave somebody the role {}", text("role")),
        "person.added" => format!("added {}", text("name")),
        "agent.added" => format!("added the agent {}", text("name")),
        "signing_key.registered" => "made a node's signing key known".into(),
        "agent.changed" => match (&body["before"]["disabled"], &body["after"]["disabled"]) {
            (Value::Bool(false), Value::Bool(true)) => {
                format!("disabled the agent {}", text("name"))
            }
            (Value::Bool(true), Value::Bool(false)) => {
                format!("enabled the agent {}", text("name"))
            }
            _ => format!("changed what the agent {} reaches", text("name")),
        },
        "agent.taken_off" => format!("took the agent {} off the site", text("name")),
        "agent.put_back" => format!("put the agent {} on the site again", text("name")),
        "key.revoked" if text("name").is_empty() => "revoked a key".into(),
        "key.revoked" => format!("revoked a key of {}", text("name")),
        "personal_key.made" => format!("made a key for a client of their own, {}", text("name")),
        "personal_key.ended" => "ended a key of a client of their own".into(),
        "person.changed" => person_changed(text("name"), &body["changed"]),
        "person.link_made" => format!("made a sign-in link for {}", text("name")),
        "instance.restored" => "started a new epoch after a restore".into(),
        other => other.replace('.', " "),
    }
}

fn person_changed(name: &str, changed: &Value) -> String {
    let after = |what: &str| changed[what]["after"].as_bool();
    let mut said = Vec::new();
    match after("disabled") {
        Some(true) => said.push(format!("disabled {name}")),
        Some(false) => said.push(format!("enabled {name}")),
        None => {}
    }
    match after("workspaceOwner") {
        Some(true) => said.push(format!("made {name} an owner of the workspace")),
        Some(false) => said.push(format!("made {name} no owner of the workspace any more")),
        None => {}
    }
    if let Some(before) = changed["name"]["before"].as_str() {
        said.push(format!("renamed {before} to {name}"));
    }
    said.join(", ")
}
