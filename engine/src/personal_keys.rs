//! Keys of people's own MCP clients: made in a signed-in session, gone with it (DESIGN §4, rule 3). Calls with such a key wait
//! like an agent's; they may ask for what the person may do, and for no more.

use crate::{
    Engine,
    authority::Author,
    journal::{self, Entry},
    keys::{self, Kind},
    people::Person,
    sites,
    store::{Fail, Tx, journal as journal_sql, personal_keys as sql},
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::KeyId,
    origin::SameOrigin,
    time::Timestamp,
    view::PersonalKey,
};
use serde_json::{Value, json};

/// Long enough to tell one client from another.
const NAME_CHARS_MAX: usize = 60;

/// The session that a key is made in and ends with.
#[derive(Clone, Debug)]
pub struct Session {
    /// The digest that the session is kept under.
    pub id: String,
    /// When the person has to sign in again, whatever they do meanwhile.
    pub ends_at: Timestamp,
}

/// A key as it was just made; its secret is told once.
pub struct NewKey {
    pub secret: String,
    pub key: PersonalKey,
}

/// Makes a key for one client, which `name` tells apart from others.
pub async fn make(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    session: Session,
    name: &str,
) -> Result<NewKey, Refusal> {
    let name = checked(name)?;
    let made = keys::make(Kind::Personal);
    let (person, key, ends_at) = (person.clone(), made.key, session.ends_at);
    let (made_id, kept) = (made.id.clone(), name.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            journal_sql::lock_workspace(tx).await?;
            let now = tx.now().await?;
            let new = sql::NewKey {
                id: &made.id,
                person: person.id().as_str(),
                session: &session.id,
                session_key: person.session_key(),
                name: &kept,
                secret_hash: &made.secret_hash,
                created_at: now,
                expires_at: session.ends_at,
            };
            if !sql::insert(tx, new).await? {
                return Err(Refusal::new(
                    Code::Unauthorized,
                    "Your session has ended. Sign in again. No key was made.",
                )
                .into());
            }
            let body = json!({"key": made.id, "name": kept, "expiresAt": session.ends_at});
            note(tx, "personal_key.made", &person, body, now).await?;
            Ok(now)
        })
    });
    let created_at = unit.await?;
    let row = sql::KeyRow {
        id: made_id,
        name,
        created_at: created_at.ms(),
        expires_at: ends_at.ms(),
    };
    Ok(NewKey {
        secret: key,
        key: shown(row),
    })
}

/// A person's keys that are good now.
pub async fn list(engine: &Engine, person: &Person) -> Result<Vec<PersonalKey>, Refusal> {
    let rows = sql::of_person(engine.store().read(), person.id().as_str(), engine.now()).await?;
    Ok(rows.into_iter().map(shown).collect())
}

/// Ends a key of one's own at once.
pub async fn end(
    engine: &Engine,
    person: &Person,
    _: SameOrigin,
    key: &KeyId,
) -> Result<(), Refusal> {
    let (person, key) = (person.clone(), key.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            journal_sql::lock_workspace(tx).await?;
            let known = !key.as_str().contains('\0');
            if !known || !sql::delete(tx, person.id().as_str(), key.as_str()).await? {
                return Err(Refusal::not_found("key").into());
            }
            let now = tx.now().await?;
            note(tx, "personal_key.ended", &person, json!({"key": key}), now).await
        })
    });
    Ok(unit.await?)
}

async fn note(
    tx: &mut Tx,
    kind: &str,
    person: &Person,
    body: Value,
    now: Timestamp,
) -> Result<(), Fail> {
    let entry = Entry {
        kind,
        actor: &Author::person(person),
        approval: None,
        body,
    };
    journal::workspace(tx, now, entry).await?;
    sites::announce(tx, "people.changed", "", None, now).await
}

fn shown(row: sql::KeyRow) -> PersonalKey {
    PersonalKey {
        prefix: Kind::Personal.shown(&row.id),
        id: KeyId::new(row.id),
        name: row.name,
        created_at: Timestamp(row.created_at),
        expires_at: Timestamp(row.expires_at),
    }
}

/// Which client a key is for, as a person may name it.
fn checked(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    let good = !name.is_empty()
        && name.chars().count() <= NAME_CHARS_MAX
        && !name.chars().any(char::is_control);
    if good {
        return Ok(name.to_owned());
    }
    let problem = format!("a name of at most {NAME_CHARS_MAX} characters, such as “my laptop”");
    Err(Refusal::new(
        Code::InvalidArguments,
        format!("The key needs {problem}. No key was made."),
    )
    .with("faults", json!([{"pointer": "/name", "problem": problem}])))
}
