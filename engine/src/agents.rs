//! Agents: holders of API keys. A [`Caller`] value exists only for a key that was verified.
//!
//! A key reads `clh_ID_SECRETCHECK`: a prefix that scanners recognise, an id that finds the row, 256 bits of chance of which
//! only the SHA-256 is kept, and a checksum that tells a typing error from an unknown key without a look-up.

use crate::{
    Engine,
    authority::Author,
    clock::{self, TEXT, fresh_id},
    secret::token_digest,
    sites::LockedSite,
    store::{Fail, Tx, agents as sql, sites as sites_sql},
    tools::Tool,
};
use cloudhal_domain::{
    card::{Asker, Owner},
    code::{Code, Refusal},
    id::{PersonId, SiteId},
    role::Role,
    tool::{CallerKind, Effect, Surface},
};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq as _;

mod keeping;
mod lost;
mod used;

pub use keeping::{
    Change, NewAgent, NewKey, add, add_by, add_key, change, everyone, new_key, revoke_by_prefix,
    revoke_key, take_off,
};
pub use lost::void_unreachable;
pub(crate) use lost::{void_soon, void_unreachable_now};
pub(crate) use used::Used;

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
        Err(insufficient_scope(tool.spec.id))
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
            Some(row)
                if sql::owners_role(engine.store().read(), &self.id, site.as_str())
                    .await?
                    .is_some() =>
            {
                Ok(row)
            }
            _ => Err(Refusal::not_found("site")),
        }
    }
}

/// Asks again, under the site's lock, what the door asked before: is the key still good, does the agent still reach the site and
/// the tool, and may the person who answers for it edit there. What is found holds until the unit of work ends.
pub(crate) async fn expect_may_call(
    tx: &mut Tx,
    caller: &Caller,
    site: &LockedSite,
    tool: &str,
) -> Result<(), Fail> {
    if !sql::key_is_good(tx, caller.key_id(), site.now()).await? {
        return Err(unauthorized().into());
    }
    let reach = sql::reach_now(tx, caller.id(), &site.row().id, tool).await?;
    let Some(reach) = reach else {
        return Err(Refusal::not_found("site").into());
    };
    if reach.may_call == 0 {
        return Err(insufficient_scope(tool).into());
    }
    // An agent does, and asks for, no more than its owner's role lets them do: what a viewer answers for only reads.
    match Role::from_text(&reach.role) {
        Some(role) if role.may_edit() => Ok(()),
        _ => Err(Refusal::new(
            Code::InsufficientScope,
            "The person who answers for this agent may only look at this site, so the agent may too. An owner of the site can change that. Nothing was changed.",
        )
        .into()),
    }
}

fn insufficient_scope(tool: &str) -> Refusal {
    let message = format!(
        "This key may not call `{tool}`. Nothing was changed. Ask the agent's owner to widen its scope."
    );
    Refusal::new(Code::InsufficientScope, message)
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
    engine.used().mark(&holder.key_id, engine.now());
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
