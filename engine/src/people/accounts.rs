//! Accounts as a workspace owner keeps them: who has one, who owns the workspace, who is disabled, and how they get in.
//!
//! Every change takes the workspace's lock first, so that of two owners who demote each other one is told no: a workspace
//! keeps an owner who can sign in.

use super::{NewPerson, Person, check_name, insert, link_token, prepare};
use crate::{
    Engine, agents,
    authority::{Author, Steward},
    clock::fresh_id,
    journal::{self, Entry},
    secret::token_digest,
    sites,
    store::{Fail, Tx, agents as agents_sql, journal as journal_sql, people as sql},
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::PersonId,
    limits,
    time::Timestamp,
    view::Account,
};
use serde_json::{Map, Value, json};

/// A link that signs somebody in once. Whoever has it is that person: shown once, never stored.
pub struct Link {
    /// Of whom it signs in.
    pub name: String,
    pub url: String,
    pub expires_at: Timestamp,
}

/// A new account and the way into it.
pub struct Invited {
    pub account: Account,
    pub link: Link,
}

/// What is to be different about an account; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub name: Option<String>,
    pub workspace_owner: Option<bool>,
    pub disabled: Option<bool>,
}

/// Everybody who has an account, by name; for a workspace owner.
pub async fn list(engine: &Engine, person: &Person) -> Result<Vec<Account>, Refusal> {
    if !person.is_workspace_owner() {
        return Err(owners_only());
    }
    everybody(engine).await
}

/// The same for the command line, which runs on the operator's own machine.
pub async fn everybody(engine: &Engine) -> Result<Vec<Account>, Refusal> {
    let rows = sql::all(engine.store().read()).await?;
    Ok(rows.into_iter().map(account).collect())
}

/// An account by its e-mail address, disabled or not; for the command line.
pub async fn find(engine: &Engine, email: &str) -> Result<Option<Account>, Refusal> {
    let key = email.trim().to_lowercase();
    let row = sql::by_email(engine.store().read(), &key).await?;
    Ok(row.map(account))
}

/// Adds an account and its first sign-in link.
pub async fn invite(engine: &Engine, by: &Steward, new: NewPerson) -> Result<Invited, Refusal> {
    let row = prepare(engine, new).await?;
    let by = by.clone();
    let (token, kept) = (link_token(), account(row.clone()));
    let hash = token_digest(&token);
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = expect_owner(tx, &by).await?;
            let (id, row_name) = (row.id.clone(), row.name.clone());
            insert(tx, row, &by.author(), now).await?;
            let until = put_link(tx, &by.author(), (&id, &row_name), &hash, now).await?;
            tell(tx, now).await?;
            Ok(until)
        })
    });
    let expires_at = unit.await?;
    let link = link(engine, kept.name.clone(), &token, expires_at);
    Ok(Invited {
        account: kept,
        link,
    })
}

/// A further sign-in link; one that was made before and not used ends.
pub async fn new_link(engine: &Engine, by: &Steward, who: &PersonId) -> Result<Link, Refusal> {
    let token = link_token();
    let hash = token_digest(&token);
    let (by, who) = (by.clone(), who.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = expect_owner(tx, &by).await?;
            let row = expect(tx, &who).await?;
            if row.disabled_at.is_some() {
                return Err(Refusal::conflict(format!(
                    "{} is disabled and could not use a link. Enable the account first.",
                    row.name
                ))
                .into());
            }
            sql::end_links(tx, &row.id, now).await?;
            let until = put_link(tx, &by.author(), (&row.id, &row.name), &hash, now).await?;
            Ok((row.name, until))
        })
    });
    let (name, expires_at) = unit.await?;
    Ok(link(engine, name, &token, expires_at))
}

/// Renames, makes or unmakes a workspace owner, disables or enables; all of it or nothing.
///
/// Whoever is disabled is signed out everywhere at once, their approvals no longer count, and the keys of their agents open
/// nothing; what those agents wait for is voided.
pub async fn change(
    engine: &Engine,
    by: &Steward,
    who: &PersonId,
    change: Change,
) -> Result<Account, Refusal> {
    let name = change.name.as_deref().map(check_name).transpose()?;
    let change = Change { name, ..change };
    let (by, who) = (by.clone(), who.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let now = expect_owner(tx, &by).await?;
            let before = expect(tx, &who).await?;
            apply(tx, &by, &before, &change, now).await?;
            let after = expect(tx, &who).await?;
            let moved = differences(&before, &after);
            if !moved.is_empty() {
                let entry = Entry {
                    kind: "person.changed",
                    actor: &by.author(),
                    approval: None,
                    body: json!({"person": who, "name": after.name, "changed": moved}),
                };
                journal::workspace(tx, now, entry).await?;
                tell(tx, now).await?;
            }
            Ok(account(after))
        })
    });
    let account = unit.await?;
    agents::void_soon(engine).await;
    Ok(account)
}

/// The lock that every change begins with, and whether this steward may change accounts at this moment; tells the time.
async fn expect_owner(tx: &mut Tx, by: &Steward) -> Result<Timestamp, Fail> {
    journal_sql::lock_workspace(tx).await?;
    match is_owner_now(tx, by).await? {
        true => Ok(tx.now().await?),
        false => Err(owners_only().into()),
    }
}

/// Whether a steward may do what only a workspace owner may.
pub(crate) async fn is_owner_now(tx: &mut Tx, by: &Steward) -> Result<bool, Fail> {
    let Some(person) = by.as_person() else {
        return Ok(true);
    };
    let row = sql::by_id(tx.sql(), person.id().as_str()).await?;
    Ok(row.is_some_and(|row| row.disabled_at.is_none() && row.workspace_owner == 1))
}

/// What anybody else is told, whatever they ask.
pub fn owners_only() -> Refusal {
    Refusal::new(
        Code::Forbidden,
        "Only an owner of the workspace keeps its people. Nothing was changed.",
    )
}

async fn expect(tx: &mut Tx, who: &PersonId) -> Result<sql::PersonRow, Fail> {
    if who.as_str().contains('\0') {
        return Err(Refusal::not_found("person").into());
    }
    let row = sql::by_id(tx.sql(), who.as_str()).await?;
    row.ok_or_else(|| Refusal::not_found("person").into())
}

async fn apply(
    tx: &mut Tx,
    by: &Steward,
    before: &sql::PersonRow,
    change: &Change,
    now: Timestamp,
) -> Result<(), Fail> {
    let id = &before.id;
    let steps_down = change.workspace_owner == Some(false) && before.workspace_owner == 1;
    // Before the person's row, as whoever redeems takes them.
    let owned = match steps_down {
        true => agents_sql::lock_owned(tx, id).await?,
        false => Vec::new(),
    };
    if let Some(name) = &change.name {
        sql::rename(tx, id, name).await?;
    }
    match (change.workspace_owner, before.workspace_owner == 1) {
        (Some(true), false) => sql::promote(tx, id).await?,
        (Some(false), true) => {
            if !sql::demote(tx, id).await? {
                return Err(last(before));
            }
            sql::end_links_by(tx, &format!("person:{id}"), now).await?;
            agents::take_along_everywhere(tx, by, &owned, id, now).await?;
        }
        _ => {}
    }
    match (change.disabled, before.disabled_at.is_some()) {
        (Some(true), false) => {
            if !sql::disable(tx, id, &fresh_id(), now).await? {
                return Err(last(before));
            }
            sql::end_links(tx, id, now).await?;
            sql::end_links_by(tx, &format!("person:{id}"), now).await?;
        }
        (Some(false), true) => sql::enable(tx, id).await?,
        _ => {}
    }
    Ok(())
}

fn last(person: &sql::PersonRow) -> Fail {
    Refusal::conflict(format!(
        "Without {} nobody could manage this workspace any more. Make somebody else an owner of it first. Nothing was changed.",
        person.name
    ))
    .into()
}

/// What moved, before and after, for the journal.
fn differences(before: &sql::PersonRow, after: &sql::PersonRow) -> Map<String, Value> {
    let pairs = [
        ("name", json!(before.name), json!(after.name)),
        (
            "workspaceOwner",
            json!(before.workspace_owner == 1),
            json!(after.workspace_owner == 1),
        ),
        (
            "disabled",
            json!(before.disabled_at.is_some()),
            json!(after.disabled_at.is_some()),
        ),
    ];
    pairs
        .into_iter()
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| (name.to_owned(), json!({"before": before, "after": after})))
        .collect()
}

/// Keeps the digest of a link's token; returns until when the link is good.
async fn put_link(
    tx: &mut Tx,
    by: &Author,
    (person, name): (&str, &str),
    hash: &str,
    now: Timestamp,
) -> Result<Timestamp, Fail> {
    let until = now.plus(limits::SIGN_IN_LINK_TTL);
    sql::insert_link(tx, hash, "sign_in", Some(person), &by.key, now, until).await?;
    let entry = Entry {
        kind: "person.link_made",
        actor: by,
        approval: None,
        body: json!({"person": person, "name": name, "expiresAt": until}),
    };
    journal::workspace(tx, now, entry).await?;
    Ok(until)
}

fn link(engine: &Engine, name: String, token: &str, expires_at: Timestamp) -> Link {
    let url = format!("{}/login/link/{token}", engine.settings().public_url);
    Link {
        name,
        url,
        expires_at,
    }
}

/// Tells open streams and pages that somebody's rights may have moved.
async fn tell(tx: &mut Tx, now: Timestamp) -> Result<(), Fail> {
    sites::announce(tx, "people.changed", "", None, now).await
}

fn account(row: sql::PersonRow) -> Account {
    Account {
        id: PersonId::new(row.id),
        name: row.name,
        email: row.email,
        workspace_owner: row.workspace_owner == 1,
        created_at: Timestamp(row.created_at),
        disabled_at: row.disabled_at.map(Timestamp),
    }
}
