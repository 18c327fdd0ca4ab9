//! People: accounts, passwords, one-time links. A [`Person`] value exists only for somebody whose credentials or session
//! were verified.

use crate::{
    Engine,
    authority::{Author, Steward},
    clock::{self, fresh_id},
    journal,
    secret::token_digest,
    store::{Fail, StoreError, Tx, journal as journal_sql, people as sql, sites as sites_sql},
};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash},
};
use cloudhal_domain::{
    code::{Code, Refusal},
    id::{PersonId, SiteId},
    limits,
    role::Role,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::sync::LazyLock;
use tokio::sync::Semaphore;

mod accounts;
pub(crate) use accounts::is_owner_now;
pub use accounts::{
    Change, Invited, Link, change, everybody, find, invite, list, new_link, owners_only,
};

/// Somebody who is signed in. Cannot be made from an API key.
#[derive(Clone, Debug)]
pub struct Person {
    id: PersonId,
    email: String,
    name: String,
    workspace_owner: bool,
    session_key: String,
}

impl Person {
    pub fn id(&self) -> &PersonId {
        &self.id
    }

    pub fn email(&self) -> &str {
        &self.email
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_workspace_owner(&self) -> bool {
        self.workspace_owner
    }

    /// What a session must match to stay good; it changes with the password.
    pub fn session_key(&self) -> &str {
        &self.session_key
    }

    fn from_row(row: sql::PersonRow) -> Option<Self> {
        row.disabled_at.is_none().then(|| Self {
            id: PersonId::new(row.id),
            email: row.email,
            name: row.name,
            workspace_owner: row.workspace_owner == 1,
            session_key: row.session_key,
        })
    }

    /// For a list filter: a workspace owner sees every site, anybody else those they belong to.
    pub(crate) fn filter(&self) -> Option<String> {
        (!self.workspace_owner).then(|| self.id.as_str().to_owned())
    }
}

/// A new account, checked.
pub struct NewPerson {
    pub email: String,
    pub name: String,
    pub workspace_owner: bool,
    pub password: Option<SecretString>,
}

/// What every start makes sure of: the instance's row, and this node's signing key.
pub(crate) async fn ensure_instance(engine: &Engine) -> Result<(), StoreError> {
    let (engine_now, now) = (engine.clone(), engine.now());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            sql::ensure_instance(tx, now).await?;
            crate::signing::register(tx, &engine_now).await
        })
    });
    unit.await.map_err(|fail| match fail {
        Fail::Store(error) => error,
        Fail::Refused(refusal) => StoreError::Unsuitable(refusal.message),
    })
}

/// Whether anybody has an account yet.
pub async fn is_empty(engine: &Engine) -> Result<bool, Refusal> {
    Ok(sql::count(engine.store().read()).await? == 0)
}

/// Adds an account, as the operator; the e-mail address must be free.
pub async fn add(engine: &Engine, new: NewPerson) -> Result<Person, Refusal> {
    let row = prepare(engine, new).await?;
    let now = engine.now();
    let unit = engine
        .store()
        .write(move |tx| Box::pin(async move { insert(tx, row, &Author::system(), now).await }));
    Ok(unit.await?)
}

async fn prepare(engine: &Engine, new: NewPerson) -> Result<sql::PersonRow, Refusal> {
    let email = new.email.trim().to_owned();
    let name = check_name(&new.name)?;
    let looks_right = email.len() <= 254
        && email
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
    if !looks_right || email.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(at_fault(
            "/email",
            "That does not look like an e-mail address.",
        ));
    }
    let password_hash = match new.password {
        Some(password) => Some(hash_password(password).await?),
        None => None,
    };
    Ok(sql::PersonRow {
        id: fresh_id(),
        email,
        name,
        password_hash,
        session_key: fresh_id(),
        workspace_owner: i64::from(new.workspace_owner),
        created_at: engine.now().ms(),
        disabled_at: None,
    })
}

/// A name that a person may have, without spaces around it.
fn check_name(name: &str) -> Result<String, Refusal> {
    let name = name.trim();
    if name.is_empty()
        || name.chars().count() > 100
        || name.contains(char::is_control)
        || cloudhal_domain::odd::count(name) > 0
    {
        return Err(at_fault(
            "/name",
            "A name needs 1 to 100 visible characters.",
        ));
    }
    Ok(name.to_owned())
}

fn at_fault(pointer: &str, problem: &str) -> Refusal {
    Refusal::new(Code::InvalidArguments, problem)
        .with("faults", json!([{"pointer": pointer, "problem": problem}]))
}

async fn insert(
    tx: &mut Tx,
    row: sql::PersonRow,
    by: &Author,
    now: cloudhal_domain::time::Timestamp,
) -> Result<Person, Fail> {
    journal_sql::lock_workspace(tx).await?;
    if !sql::insert(tx, &row, &row.email.to_lowercase()).await? {
        let problem = "Somebody has that e-mail address already; they need a new sign-in link, not a second account (People in the Studio, or `cloudhal person link`).";
        return Err(Refusal::conflict(problem)
            .with(
                "faults",
                json!([{"pointer": "/email", "problem": "somebody has it already"}]),
            )
            .into());
    }
    let entry = journal::Entry {
        kind: "person.added",
        actor: by,
        approval: None,
        body: json!({"person": row.id, "email": row.email, "name": row.name, "workspaceOwner": row.workspace_owner == 1}),
    };
    journal::workspace(tx, now, entry).await?;
    Person::from_row(row).ok_or_else(|| StoreError::Stopped.into())
}

/// A new password, and with it a new session key: whoever is signed in with the old one is no more.
pub async fn set_password(
    engine: &Engine,
    person: &Person,
    password: SecretString,
) -> Result<(), Refusal> {
    let hash = hash_password(password).await?;
    let (id, name) = (person.id.clone(), person.name.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            // The workspace before its people, as whoever changes an account does.
            journal_sql::lock_workspace(tx).await?;
            let now = tx.now().await?;
            sql::set_password(tx, id.as_str(), &hash, &fresh_id()).await?;
            let entry = journal::Entry {
                kind: "password.set",
                actor: &Author::system(),
                approval: None,
                body: json!({"person": id, "name": name}),
            };
            journal::workspace(tx, now, entry).await
        })
    });
    Ok(unit.await?)
}

/// Whose session this is, read afresh on every request: a disabled account is signed out everywhere at once.
pub async fn by_id(engine: &Engine, id: &str) -> Result<Option<Person>, Refusal> {
    Ok(sql::by_id(engine.store().read(), id)
        .await?
        .and_then(Person::from_row))
}

/// For the command line, which runs on the operator's own machine.
pub async fn by_email(engine: &Engine, email: &str) -> Result<Option<Person>, Refusal> {
    Ok(
        sql::by_email(engine.store().read(), &email.trim().to_lowercase())
            .await?
            .and_then(Person::from_row),
    )
}

pub async fn workspace_owners(engine: &Engine) -> Result<Vec<Person>, Refusal> {
    Ok(sql::owners(engine.store().read())
        .await?
        .into_iter()
        .filter_map(Person::from_row)
        .collect())
}

/// E-mail and password. An unknown address costs as much time as a wrong password.
pub async fn verify_password(
    engine: &Engine,
    email: &str,
    password: SecretString,
) -> Result<Person, Refusal> {
    let row = sql::by_email(engine.store().read(), &email.trim().to_lowercase()).await?;
    let hash = row.as_ref().and_then(|row| row.password_hash.clone());
    let right = check_password(password, hash).await?;
    match row.and_then(Person::from_row) {
        Some(person) if right => Ok(person),
        _ => Err(Refusal::new(
            Code::SignInFailed,
            "That e-mail address and password do not belong together.",
        )),
    }
}

/// A link that signs a person in once, by a POST; as the operator.
pub async fn sign_in_link(engine: &Engine, person: &Person) -> Result<String, Refusal> {
    let link = new_link(engine, &Steward::operator(), &person.id).await?;
    Ok(link.url)
}

/// Spends a sign-in link. One answer for unknown, spent and old ones.
pub async fn spend_sign_in_link(engine: &Engine, token: &str) -> Result<Person, Refusal> {
    let (hash, now) = (token_digest(token), engine.now());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let person = match sql::spend_link(tx, &hash, "sign_in", now).await? {
                Some(Some(id)) => sql::by_id(tx.sql(), &id).await?.and_then(Person::from_row),
                _ => None,
            };
            person.ok_or_else(|| {
                Refusal::new(
                    Code::SignInFailed,
                    "This link was used before or is too old. Ask for a new one.",
                )
                .into()
            })
        })
    });
    Ok(unit.await?)
}

/// The way in for the very first person; printed at start while there is nobody. Earlier ones end.
pub async fn set_up_link(engine: &Engine) -> Result<String, Refusal> {
    let token = link_token();
    let (hash, now) = (token_digest(&token), engine.now());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            sql::end_set_up_links(tx, now).await?;
            Ok(sql::insert_link(
                tx,
                &hash,
                "set_up",
                None,
                &Author::system().key,
                now,
                now.plus(limits::SIGN_IN_LINK_TTL),
            )
            .await?)
        })
    });
    unit.await?;
    Ok(format!("{}/setup/{token}", engine.settings().public_url))
}

/// Makes the first account, an owner; only with the printed link and only while there is nobody.
pub async fn set_up(engine: &Engine, token: &str, mut new: NewPerson) -> Result<Person, Refusal> {
    new.workspace_owner = true;
    if new.password.is_none() {
        return Err(Refusal::new(Code::InvalidArguments, "Choose a password."));
    }
    let (hash, now) = (token_digest(token), engine.now());
    let spent = || {
        Refusal::new(
            Code::SignInFailed,
            "This set-up link was used before or is too old. Restart Cloudhal for a new one.",
        )
    };
    // Asked first by reading alone: hashing a password is dear, and strangers may post here for ever.
    let good = sql::link_is_good(engine.store().read(), &hash, "set_up", now).await?;
    if !good || !is_empty(engine).await? {
        return Err(spent());
    }
    let row = prepare(engine, new).await?;
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let good = sql::spend_link(tx, &hash, "set_up", now).await?.is_some();
            if !good || sql::count_now(tx).await? > 0 {
                return Err(spent().into());
            }
            insert(tx, row, &Author::system(), now).await
        })
    });
    Ok(unit.await?)
}

fn link_token() -> String {
    clock::TEXT.encode(&clock::random::<32>())
}

/// The role on a site right now; workspace owners own every site.
pub async fn role_on(
    engine: &Engine,
    person: &Person,
    site: &SiteId,
) -> Result<Option<Role>, Refusal> {
    if person.workspace_owner {
        return Ok(Some(Role::Owner));
    }
    let text = sites_sql::role(engine.store().read(), site.as_str(), &person.id).await?;
    Ok(text.as_deref().and_then(Role::from_text))
}

/// The same inside a unit of work, and from the person's row as it is now.
pub(crate) async fn role_now(
    tx: &mut Tx,
    person: &PersonId,
    site: &str,
) -> Result<Option<Role>, Fail> {
    let Some(row) = sql::held(tx, person.as_str()).await? else {
        return Ok(None);
    };
    if row.disabled_at.is_some() {
        return Ok(None);
    }
    if row.workspace_owner == 1 {
        return Ok(Some(Role::Owner));
    }
    Ok(sites_sql::role_now(tx, site, person)
        .await?
        .as_deref()
        .and_then(Role::from_text))
}

/// Each check takes 19 MiB and a core: more at once would only queue elsewhere.
static HASHING: Semaphore = Semaphore::const_new(2);

/// Compared with when there is no account, so that its absence does not show in the time taken.
static NOBODY: LazyLock<Option<String>> = LazyLock::new(|| {
    Argon2::default()
        .hash_password(&clock::random::<16>())
        .ok()
        .map(|hash| hash.to_string())
});

async fn hash_password(password: SecretString) -> Result<String, Refusal> {
    let length = password.expose_secret().chars().count();
    if length < limits::PASSWORD_CHARS_MIN
        || password.expose_secret().len() > limits::PASSWORD_BYTES_MAX
    {
        return Err(Refusal::new(
            Code::InvalidArguments,
            format!(
                "A password needs at least {} characters.",
                limits::PASSWORD_CHARS_MIN
            ),
        ));
    }
    off_thread(move || {
        Argon2::default()
            .hash_password(password.expose_secret().as_bytes())
            .map(|hash| hash.to_string())
            .map_err(|e| e.to_string())
    })
    .await
}

async fn check_password(password: SecretString, hash: Option<String>) -> Result<bool, Refusal> {
    off_thread(move || {
        let known = hash.is_some();
        let Some(hash) = hash.or_else(|| NOBODY.clone()) else {
            return Ok(false);
        };
        if password.expose_secret().len() > limits::PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let parsed = PasswordHash::new(&hash).map_err(|e| e.to_string())?;
        Ok(Argon2::default()
            .verify_password(password.expose_secret().as_bytes(), &parsed)
            .is_ok()
            && known)
    })
    .await
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Refusal> {
    let _permit = HASHING
        .acquire()
        .await
        .map_err(|_| Refusal::new(Code::Unavailable, "Cloudhal is stopping."))?;
    let done = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| error.to_string())
        .and_then(|out| out);
    done.map_err(|error| {
        tracing::error!(%error, "password hashing");
        Refusal::new(
            Code::Internal,
            "The password could not be checked. Try again.",
        )
    })
}
