//! Who calls a tool. A [`Caller`] exists only for a key that was verified, or for the person at whose machine the command runs.

use crate::{
    Engine,
    authority::Author,
    keys::{self, Presented},
    people::{self, Person},
    sites::LockedSite,
    store::{
        Fail, Tx, agents as sql, personal_keys as personal_sql,
        sites::{self as sites_sql, SiteRow},
    },
    tools::Tool,
};
use cloudhal_domain::{
    card::{Asker, Owner},
    code::{Code, Refusal},
    id::{PersonId, SiteId},
    role::Role,
    time::Timestamp,
    tool::{CallerKind, Effect, Surface},
};
use std::collections::BTreeSet;

/// Who calls, over which surface.
#[derive(Clone, Debug)]
pub struct Caller {
    who: Who,
    surface: Surface,
    client: Option<String>,
}

#[derive(Clone, Debug)]
enum Who {
    Agent {
        id: String,
        name: String,
        owner: Owner,
        key: String,
        /// `None` means every tool.
        tools: Option<BTreeSet<String>>,
    },
    /// A person's own client: it may ask for what the person may, and its calls wait like an agent's.
    Person {
        id: PersonId,
        name: String,
        /// None where no key was needed: over standard input and output.
        key: Option<String>,
    },
}

impl Caller {
    /// The person at whose machine `cloudhal mcp` runs: whoever reads the database's files needs no key.
    pub fn here(person: &Person) -> Self {
        Self {
            who: Who::Person {
                id: person.id().clone(),
                name: person.name().to_owned(),
                key: None,
            },
            surface: Surface::Stdio,
            client: None,
        }
    }

    pub fn kind(&self) -> CallerKind {
        match self.who {
            Who::Agent { .. } => CallerKind::Agent,
            Who::Person { .. } => CallerKind::Person,
        }
    }

    pub fn id(&self) -> &str {
        match &self.who {
            Who::Agent { id, .. } => id,
            Who::Person { id, .. } => id.as_str(),
        }
    }

    pub fn name(&self) -> &str {
        match &self.who {
            Who::Agent { name, .. } | Who::Person { name, .. } => name,
        }
    }

    /// The person whose own client calls; `None` for an agent.
    pub(crate) fn as_person(&self) -> Option<&PersonId> {
        match &self.who {
            Who::Agent { .. } => None,
            Who::Person { id, .. } => Some(id),
        }
    }

    pub fn surface(&self) -> Surface {
        self.surface
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        match &self.who {
            Who::Agent { key, .. } => Some(key),
            Who::Person { key, .. } => key.as_deref(),
        }
    }

    /// What the client says of itself; shown as such, never believed.
    #[must_use]
    pub fn with_client(mut self, client: Option<String>) -> Self {
        self.client = client.map(|c| c.chars().filter(|c| !c.is_control()).take(80).collect());
        self
    }

    pub(crate) fn author(&self) -> Author {
        Author {
            key: format!("{}:{}", self.kind().as_str(), self.id()),
            name: self.name().to_owned(),
        }
    }

    pub(crate) fn asker(&self) -> Asker {
        let owner = match &self.who {
            Who::Agent { owner, .. } => Some(owner.clone()),
            Who::Person { .. } => None,
        };
        Asker {
            kind: self.kind(),
            id: self.id().to_owned(),
            name: self.name().to_owned(),
            owner,
            surface: self.surface,
            client: self.client.clone(),
        }
    }

    /// Approvals of one's own are in every key's scope.
    pub fn may_call(&self, tool: &Tool) -> bool {
        match &self.who {
            Who::Agent {
                tools: Some(tools), ..
            } => tool.spec.effect == Effect::Approvals || tools.contains(tool.spec.id),
            Who::Agent { tools: None, .. } | Who::Person { .. } => true,
        }
    }

    pub(crate) fn check_scope(&self, tool: &Tool) -> Result<(), Refusal> {
        if self.may_call(tool) {
            return Ok(());
        }
        Err(insufficient_scope(tool.spec.id))
    }

    /// The site, if it is within this caller's reach; one answer for what is not there and what is foreign.
    pub(crate) async fn site(&self, engine: &Engine, site: &SiteId) -> Result<SiteRow, Refusal> {
        let db = engine.store().read();
        let row = sites_sql::by_id(db, site).await?;
        let Some(row) = row.filter(|row| row.deleted_at.is_none()) else {
            return Err(self.no_such_site(engine, site).await?);
        };
        let reached = match &self.who {
            Who::Agent { id, .. } => sql::owners_role(db, id, site.as_str()).await?.is_some(),
            Who::Person { id, .. } => sites_sql::persons_role(db, site, id).await?.is_some(),
        };
        reached
            .then_some(row)
            .ok_or_else(|| Refusal::not_found("site"))
    }

    /// Models take a slug for an id. Told only of a site that the caller may list: a foreign slug is as unknown as any text.
    async fn no_such_site(&self, engine: &Engine, site: &SiteId) -> Result<Refusal, Refusal> {
        let refusal = Refusal::not_found("site");
        let sites = self.sites(engine).await?;
        let Some(meant) = sites.iter().find(|row| row.slug == site.as_str()) else {
            return Ok(refusal);
        };
        Ok(Refusal {
            message: format!(
                "There is no site with the id `{site}`; that is a slug. The id of that site is `{}`.",
                meant.id
            ),
            ..refusal
        })
    }

    /// Every site within this caller's reach, by title.
    pub(crate) async fn sites(&self, engine: &Engine) -> Result<Vec<SiteRow>, Refusal> {
        let db = engine.store().read();
        Ok(match &self.who {
            Who::Agent { id, .. } => sites_sql::of_agent(db, id).await?,
            Who::Person { id, .. } => sites_sql::of_persons_client(db, id).await?,
        })
    }
}

/// Whether the key that a caller came with is still good; held until the unit of work ends.
pub(crate) async fn expect_key(tx: &mut Tx, caller: &Caller, now: Timestamp) -> Result<(), Fail> {
    let good = match &caller.who {
        Who::Agent { key, .. } => sql::key_is_good(tx, key, now).await?,
        Who::Person { key: Some(key), .. } => personal_sql::key_is_good(tx, key, now).await?,
        Who::Person { key: None, .. } => true,
    };
    match good {
        true => Ok(()),
        false => Err(unauthorized().into()),
    }
}

/// Asks again, under the site's lock, what the door asked before: is the key still good, does the caller still reach the site
/// and the tool, and may the person behind it edit there. What is found holds until the unit of work ends.
pub(crate) async fn expect_may_call(
    tx: &mut Tx,
    caller: &Caller,
    site: &LockedSite,
    tool: &str,
) -> Result<(), Fail> {
    expect_key(tx, caller, site.now()).await?;
    let site = site.row().id.as_str();
    let role = match &caller.who {
        Who::Agent { id, .. } => {
            let Some(reach) = sql::reach_now(tx, id, site, tool).await? else {
                return Err(Refusal::not_found("site").into());
            };
            if reach.may_call == 0 {
                return Err(insufficient_scope(tool).into());
            }
            Role::from_text(&reach.role)
        }
        Who::Person { id, .. } => {
            let role = people::role_now(tx, id, site).await?;
            Some(role.ok_or_else(|| Fail::from(Refusal::not_found("site")))?)
        }
    };
    // Nobody's client does, or asks for, more than their role lets them do: what a viewer answers for only reads.
    match role {
        Some(role) if role.may_edit() => Ok(()),
        _ => Err(only_looks(caller.kind()).into()),
    }
}

fn only_looks(kind: CallerKind) -> Refusal {
    let why = match kind {
        CallerKind::Agent => {
            "The person who answers for this agent may only look at this site, so the agent may too."
        }
        CallerKind::Person => "You may only look at this site.",
    };
    let message = format!("{why} An owner of the site can change that. Nothing was changed.");
    Refusal::new(Code::InsufficientScope, message)
}

fn insufficient_scope(tool: &str) -> Refusal {
    let message = format!(
        "This key may not call `{tool}`. Nothing was changed. Ask the agent's owner to widen its scope."
    );
    Refusal::new(Code::InsufficientScope, message)
}

/// Verifies a presented key. One answer for none, malformed, unknown, revoked and expired, and for a person's key anywhere
/// but over MCP.
pub async fn verify_key(
    engine: &Engine,
    presented: &str,
    surface: Surface,
) -> Result<Caller, Refusal> {
    let presented = Presented::read(presented).ok_or_else(unauthorized)?;
    let who = match presented.kind {
        keys::Kind::Agent => agent(engine, &presented).await?,
        keys::Kind::Personal if surface == Surface::Mcp => person(engine, &presented).await?,
        keys::Kind::Personal => None,
    };
    Ok(Caller {
        who: who.ok_or_else(unauthorized)?,
        surface,
        client: None,
    })
}

async fn agent(engine: &Engine, presented: &Presented<'_>) -> Result<Option<Who>, Refusal> {
    let (db, now) = (engine.store().read(), engine.now());
    let holder = sql::holder(db, presented.id, now).await?;
    let right = presented.is(holder.as_ref().map(|holder| holder.secret_hash.as_str()));
    let Some(holder) = holder.filter(|_| right) else {
        return Ok(None);
    };
    engine.used().mark(&holder.key_id, now);
    let tools = match holder.all_tools {
        1 => None,
        _ => {
            let tools = sql::tools(db, &holder.agent_id).await?;
            Some(tools.into_iter().map(|(tool,)| tool).collect())
        }
    };
    Ok(Some(Who::Agent {
        id: holder.agent_id,
        name: holder.agent_name,
        owner: Owner {
            id: PersonId::new(holder.owner_id),
            name: holder.owner_name,
        },
        key: holder.key_id,
        tools,
    }))
}

async fn person(engine: &Engine, presented: &Presented<'_>) -> Result<Option<Who>, Refusal> {
    let holder = personal_sql::holder(engine.store().read(), presented.id, engine.now()).await?;
    let right = presented.is(holder.as_ref().map(|holder| holder.secret_hash.as_str()));
    Ok(holder.filter(|_| right).map(|holder| Who::Person {
        id: PersonId::new(holder.person_id),
        name: holder.person_name,
        key: Some(presented.id.to_owned()),
    }))
}

/// One answer for none, malformed, unknown, revoked and expired keys.
pub(crate) fn unauthorized() -> Refusal {
    Refusal::new(
        Code::Unauthorized,
        "A good API key is needed: send it as `Authorization: Bearer clh_…`, or `clhp_…` over MCP for your own client, whose key ends with the session it was made in.",
    )
}
