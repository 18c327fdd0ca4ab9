//! Decisions are signed with a key that is not in the database, so that a row edited with SQL does not redeem.
//!
//! Nodes need not share a secret: each registers the public half of its own key, in a table and in the journal, and checks
//! what another one signed. Whoever can write to the database could register a key of their own; `cloudhal verify` and the
//! journal show it.

use crate::{
    Engine,
    authority::Author,
    journal::{self, Entry},
    secret::{PublicKey, signer_of},
    store::{
        Fail, StoreError, Tx,
        approvals::{DecisionRow, Stored},
        journal as journal_sql, signing_keys as sql,
    },
};
use cloudhal_domain::{approval::Verdict, canonical, digest::Framed};
use serde_json::{Value, json};

const REGISTERED: &str = "signing_key.registered";

/// Makes this node's public key known, once.
pub(crate) async fn register(tx: &mut Tx, engine: &Engine) -> Result<(), Fail> {
    let key = engine.secret().public_key();
    let now = engine.now();
    if !sql::insert(tx, &key.id(), &key.to_text(), now).await? {
        return Ok(());
    }
    let entry = Entry {
        kind: REGISTERED,
        actor: &Author::system(),
        approval: None,
        body: json!({"key": key.id(), "publicKey": key.to_text()}),
    };
    journal::workspace(tx, now, entry).await
}

/// This node's signature over a decision and everything of the record that binds.
pub(crate) fn sign(engine: &Engine, stored: &Stored, row: &DecisionRow) -> String {
    engine.secret().sign(&message(stored, row))
}

/// Whether there is an approving decision, and every one is genuine and for the card as it is stored.
pub(crate) async fn all_genuine(
    tx: &mut Tx,
    engine: &Engine,
    stored: &Stored,
) -> Result<bool, Fail> {
    let seen = &stored.approval.seen_digest;
    if !stored.is_intact() {
        return Ok(false);
    }
    let mut any = false;
    for row in stored
        .decisions
        .iter()
        .filter(|d| d.verdict == Verdict::Approve.as_str())
    {
        any = true;
        let Some(key) = public_key(tx, engine, signer_of(&row.signature)).await? else {
            return Ok(false);
        };
        if row.seen_digest != seen.as_str() || !key.verifies(&message(stored, row), &row.signature)
        {
            return Ok(false);
        }
    }
    Ok(any)
}

/// Whether a node of ours signed this message.
pub(crate) async fn verifies(
    engine: &Engine,
    message: &str,
    signed: &str,
) -> Result<bool, StoreError> {
    let id = signer_of(signed);
    let ours = engine.secret().public_key();
    if ours.id() == id {
        return Ok(ours.verifies(message, signed));
    }
    if id.contains('\0') {
        return Ok(false);
    }
    let text = sql::get(engine.store().read(), id).await?;
    let key = text.as_deref().and_then(PublicKey::from_text);
    Ok(key.is_some_and(|key| key.id() == id && key.verifies(message, signed)))
}

/// Our own key comes from our own secret, never from the table.
async fn public_key(tx: &mut Tx, engine: &Engine, id: &str) -> Result<Option<PublicKey>, Fail> {
    let ours = engine.secret().public_key();
    if ours.id() == id {
        return Ok(Some(ours));
    }
    let text = sql::get(tx.sql(), id).await?;
    Ok(text
        .as_deref()
        .and_then(PublicKey::from_text)
        .filter(|key| key.id() == id))
}

fn message(stored: &Stored, row: &DecisionRow) -> String {
    let approval = &stored.approval;
    Framed::new("cloudhal/decision/v1")
        .part(&row.id)
        .part(&row.approval_id)
        .part(&row.person_id)
        .part(&row.verdict)
        .part(&row.via)
        .part(&row.seen_digest)
        .part(row.reason.as_deref().unwrap_or(""))
        .number(row.at)
        .part(approval.site.as_str())
        .part(&approval.tool)
        .part(&approval.tool_version)
        .part(canonical::text(&approval.arguments))
        .part(approval.args_hash.as_str())
        .part(approval.state_hash.as_str())
        .part(approval.caller_kind.as_str())
        .part(&approval.caller_id)
        .part(approval.surface.as_str())
        .part(&stored.card_text)
        .number(stored.epoch)
        .number(approval.expires_at.ms())
        .finish()
        .as_str()
        .to_owned()
}

/// A key in the table that the journal does not know was slipped in.
pub(crate) async fn first_fault(engine: &Engine) -> Result<Option<String>, StoreError> {
    let db = engine.store().read();
    let entries = journal_sql::of_kind(db, journal::WORKSPACE, REGISTERED).await?;
    let known = |id: &str, public: &str| {
        entries.iter().any(|entry| {
            let body: Value = serde_json::from_str(&entry.body).unwrap_or(Value::Null);
            body["key"] == id && body["publicKey"] == public
        })
    };
    let all = sql::all(db).await?;
    let stranger = all.iter().find(|(id, public)| !known(id, public));
    Ok(stranger.map(|(id, _)| format!("signing key {id}: the journal does not know it")))
}
