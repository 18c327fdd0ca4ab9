//! Agents: holders of API keys. A [`Caller`] value exists only for a key that was verified.
//!
//! A key reads `clh_ID_SECRETCHECK`: a prefix that scanners recognise, an id that finds the row, 256 bits of chance of which
//! only the SHA-256 is kept, and a checksum that tells a typing error from an unknown key without a look-up.

use crate::{
    Engine,
    authority::Author,
    clock::{self, TEXT, fresh_id},
    journal,
    people::Person,
    secret::token_digest,
    store::{Fail, agents as sql, sites as sites_sql},
    tools::Tool,
};
use cloudhal_domain::{
    card::{Asker, Owner},
    code::{Code, Refusal},
    id::{AgentId, PersonId, SiteId},
    time::Timestamp,
    tool::{CallerKind, Effect, Surface},
};
use serde_json::json;
use std::collections::BTreeSet;
use subtle::ConstantTimeEq as _;

const PREFIX: &str = "clh_";
const ID_CHARS: usize = 26;
const SECRET_CHARS: usize = 52;
const CHECK_CHARS: usize = 7;

/// Who calls, over which surface, with which scope.
#[derive(Clone, Debug)]
pub struct Caller {
    kind: CallerKind,
    id: String,
    name: String,
    owner: Option<Owner>,
    key_id: Option<String>,
    surface: Surface,
    /// `None` means every tool.
    tools: Option<BTreeSet<String>>,
    client: Option<String>,
}

impl Caller {
    pub fn kind(&self) -> CallerKind {
        self.kind
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn surface(&self) -> Surface {
        self.surface
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// What the client says of itself; shown as such, never believed.
    #[must_use]
    pub fn with_client(mut self, client: Option<String>) -> Self {
        self.client = client.map(|c| c.chars().filter(|c| !c.is_control()).take(80).collect());
        self
    }

    pub(crate) fn author(&self) -> Author {
        Author {
            key: format!("{}:{}", self.kind.as_str(), self.id),
            name: self.name.clone(),
        }
    }

    pub(crate) fn asker(&self) -> Asker {
        Asker {
            kind: self.kind,
            id: self.id.clone(),
            name: self.name.clone(),
            owner: self.owner.clone(),
            surface: self.surface,
            client: self.client.clone(),
        }
    }

    /// Approvals of one's own are in every key's scope.
    pub fn may_call(&self, tool: &Tool) -> bool {
        tool.spec.effect == Effect::Approvals
            || self
                .tools
                .as_ref()
                .is_none_or(|tools| tools.contains(tool.spec.id))
    }

    pub(crate) fn check_scope(&self, tool: &Tool) -> Result<(), Refusal> {
        if self.may_call(tool) {
            return Ok(());
        }
        Err(Refusal::new(
            Code::InsufficientScope,
            format!(
                "This key may not call `{}`. Ask the agent's owner to widen its scope.",
                tool.spec.id
            ),
        ))
    }

    /// The site, if it is within this caller's reach; one answer for what is not there and what is foreign.
    pub(crate) async fn site(
        &self,
        engine: &Engine,
        site: &SiteId,
    ) -> Result<sites_sql::SiteRow, Refusal> {
        let row = sites_sql::by_id(engine.store().read(), site)
            .await?
            .filter(|row| row.deleted_at.is_none());
        match row {
            Some(row) if sql::has_site(engine.store().read(), &self.id, site.as_str()).await? => {
                Ok(row)
            }
            _ => Err(Refusal::not_found("site")),
        }
    }
}

/// Verifies a presented key. One answer for none, malformed, unknown, revoked and expired.
pub async fn verify_key(
    engine: &Engine,
    presented: &str,
    surface: Surface,
) -> Result<Caller, Refusal> {
    let Some((id, secret)) = split_key(presented) else {
        return Err(unauthorized());
    };
    let holder = sql::holder(engine.store().read(), id, engine.now()).await?;
    // Compared even on a miss, so that a known id takes no longer than an unknown one.
    let kept = holder
        .as_ref()
        .map_or_else(|| "0".repeat(64), |h| h.secret_hash.clone());
    let right = bool::from(token_digest(secret).as_bytes().ct_eq(kept.as_bytes()));
    let Some(holder) = holder.filter(|_| right) else {
        return Err(unauthorized());
    };
    let tools = match holder.all_tools {
        1 => None,
        _ => Some(
            sql::tools(engine.store().read(), &holder.agent_id)
                .await?
                .into_iter()
                .map(|(tool,)| tool)
                .collect(),
        ),
    };
    Ok(Caller {
        kind: CallerKind::Agent,
        id: holder.agent_id,
        name: holder.agent_name,
        owner: Some(Owner {
            id: PersonId::new(holder.owner_id),
            name: holder.owner_name,
        }),
        key_id: Some(holder.key_id),
        surface,
        tools,
        client: None,
    })
}

/// One answer for none, malformed, unknown, revoked and expired keys.
pub(crate) fn unauthorized() -> Refusal {
    Refusal::new(
        Code::Unauthorized,
        "A good API key is needed: send it as `Authorization: Bearer clh_…`.",
    )
}

fn make_key() -> (String, String, String) {
    let id = fresh_id();
    let secret = TEXT.encode(&clock::random::<32>());
    let key = format!("{PREFIX}{id}_{secret}{}", checksum(&id, &secret));
    (id, secret, key)
}

fn split_key(presented: &str) -> Option<(&str, &str)> {
    let rest = presented.strip_prefix(PREFIX)?;
    let (id, rest) = rest.split_once('_')?;
    if id.len() != ID_CHARS || rest.len() != SECRET_CHARS + CHECK_CHARS || !rest.is_ascii() {
        return None;
    }
    let (secret, check) = rest.split_at(SECRET_CHARS);
    (checksum(id, secret) == check).then_some((id, secret))
}

fn checksum(id: &str, secret: &str) -> String {
    TEXT.encode(&crc32fast::hash(format!("{id}_{secret}").as_bytes()).to_be_bytes())
}

/// What a person may see of a key again.
pub fn shown_prefix(key_id: &str) -> String {
    format!("{PREFIX}{}…", key_id.chars().take(8).collect::<String>())
}

/// A new agent, as its owner wants it.
pub struct NewAgent {
    pub name: String,
    pub sites: Vec<SiteId>,
    /// Empty means every tool that agents can have.
    pub tools: Vec<String>,
    pub expires_at: Option<Timestamp>,
}

/// Adds an agent and its first key; the key is returned once and never again.
pub async fn add(
    engine: &Engine,
    owner: &Person,
    new: NewAgent,
) -> Result<(AgentId, String), Refusal> {
    let name = new.name.trim().to_owned();
    if name.is_empty()
        || name.chars().count() > 60
        || name.contains(char::is_control)
        || cloudhal_domain::odd::count(&name) > 0
    {
        return Err(Refusal::new(
            Code::InvalidArguments,
            "An agent's name needs 1 to 60 visible characters.",
        ));
    }
    for tool in &new.tools {
        engine.tools().get(tool)?;
    }
    let (key_id, secret, key) = make_key();
    let id = fresh_id();
    let (agent, now, owner) = (AgentId::new(&id), engine.now(), owner.clone());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            if !sql::insert(tx, &id, &name, owner.id().as_str(), new.tools.is_empty(), now).await? {
                return Err(Refusal::conflict(format!("{} has an agent named {name} already. A further key for it: `cloudhal agent key`.", owner.name())).into());
            }
            for site in &new.sites {
                sql::add_site(tx, &id, site.as_str()).await?;
            }
            for tool in &new.tools {
                sql::add_tool(tx, &id, tool).await?;
            }
            sql::insert_key(tx, &key_id, &id, &token_digest(&secret), now, new.expires_at).await?;
            let body = json!({"agent": id, "name": name, "owner": owner.id(), "sites": new.sites, "tools": new.tools, "key": key_id});
            journal::workspace(tx, now, journal::Entry { kind: "agent.added", actor: &Author::system(), approval: None, body }).await
        })
    });
    unit.await?;
    Ok((agent, key))
}

/// A further key for an agent that its owner has already; shown once. Approvals are the agent's, so the new key redeems them.
pub async fn add_key(
    engine: &Engine,
    owner: &Person,
    name: &str,
    expires_at: Option<Timestamp>,
) -> Result<String, Refusal> {
    let (key_id, secret, key) = make_key();
    let (owner, name, now) = (owner.clone(), name.trim().to_owned(), engine.now());
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let Some(agent) = sql::of_owner(tx, owner.id().as_str(), &name).await? else {
                let said = format!(
                    "{} has no agent named {name}; add it with `cloudhal agent add`.",
                    owner.name()
                );
                return Err(Refusal::new(Code::NotFound, said).into());
            };
            sql::insert_key(tx, &key_id, &agent, &token_digest(&secret), now, expires_at).await?;
            let entry = journal::Entry {
                kind: "key.added",
                actor: &Author::system(),
                approval: None,
                body: json!({"agent": agent, "name": name, "key": key_id}),
            };
            journal::workspace(tx, now, entry).await
        })
    });
    unit.await?;
    Ok(key)
}

/// Ends a key at once.
pub async fn revoke_key(engine: &Engine, by: &Person, key_id: &str) -> Result<(), Refusal> {
    let (key_id, now, by) = (key_id.to_owned(), engine.now(), Author::person(by));
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            let agent = sql::revoke_key(tx, &key_id, now)
                .await?
                .ok_or_else(|| Fail::from(Refusal::not_found("key")))?;
            let body = json!({"agent": agent, "key": key_id});
            journal::workspace(
                tx,
                now,
                journal::Entry {
                    kind: "key.revoked",
                    actor: &by,
                    approval: None,
                    body,
                },
            )
            .await
        })
    });
    Ok(unit.await?)
}

/// Ends the one good key that begins like this, from the command line; returns its agent's name.
pub async fn revoke_by_prefix(engine: &Engine, shown: &str) -> Result<String, Refusal> {
    let shown = shown.trim().trim_end_matches('…');
    let id = shown
        .strip_prefix(PREFIX)
        .unwrap_or(shown)
        .split('_')
        .next()
        .unwrap_or_default()
        .to_owned();
    let now = engine.now();
    let unit = engine.store().write(move |tx| {
        Box::pin(async move {
            sql::lock_keys(tx).await?;
            let found = sql::good_keys(tx, &id).await?;
            let [(key, agent, name)] = found.as_slice() else {
                let problem = if found.is_empty() {
                    "No good key begins like that."
                } else {
                    "More than one key begins like that. Give more of it."
                };
                return Err(Refusal::new(Code::InvalidArguments, problem).into());
            };
            sql::revoke_key(tx, key, now).await?;
            let body = json!({"agent": agent, "key": key});
            let entry = journal::Entry {
                kind: "key.revoked",
                actor: &Author::system(),
                approval: None,
                body,
            };
            journal::workspace(tx, now, entry).await?;
            Ok(name.clone())
        })
    });
    Ok(unit.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_a_typing_error_shows() {
        let (id, secret, key) = make_key();
        assert_eq!(split_key(&key), Some((id.as_str(), secret.as_str())));
        assert_eq!(id.len(), ID_CHARS);
        for at in [4, 20, 31, 40, 85] {
            let mut broken: Vec<char> = key.chars().collect();
            broken[at] = if broken[at] == 'a' { 'b' } else { 'a' };
            assert_eq!(
                split_key(&broken.into_iter().collect::<String>()),
                None,
                "at {at}"
            );
        }
        for bad in [
            "",
            "clh_",
            "clh__",
            "Bearer x",
            &key[1..],
            &format!("{key}x"),
            &key.to_uppercase(),
        ] {
            assert_eq!(split_key(bad), None, "{bad}");
        }
    }
}
