//! The right to run a gated effect, as a value. An effect asks for an [`Authority`]; there are two ways to one, and each
//! has a single constructor: the redeeming UPDATE, and a verified session with the role on a request of our own page.

use crate::{callers::Caller, people::Person};
use cloudhal_domain::{
    approval::Via,
    code::{Code, Refusal},
    id::{ApprovalId, PersonId},
    origin::SameOrigin,
    role::Role,
};

pub enum Authority {
    Redeemed(Redeemed),
    Direct(Direct),
}

/// Proof that this very transaction has spent the approval.
pub struct Redeemed {
    approval: ApprovalId,
    by: Author,
}

impl Redeemed {
    /// Called by the redeeming UPDATE alone, in `approvals::redeem`.
    pub(crate) fn spent(approval: ApprovalId, by: Author) -> Self {
        Self { approval, by }
    }
}

/// Proof that a person with the role clicked on a page of our own.
pub struct Direct {
    by: Author,
    role: Role,
}

impl Direct {
    /// `role` is what the site says of the person at this moment.
    pub(crate) fn new(person: &Person, role: Role, _: SameOrigin) -> Result<Self, Refusal> {
        if !role.may_act() {
            return Err(Refusal::new(
                Code::Forbidden,
                "Your role on this site does not allow that. An owner can change your role.",
            ));
        }
        Ok(Self {
            by: Author::person(person),
            role,
        })
    }
}

impl Authority {
    /// Whose hand the record names.
    pub fn author(&self) -> &Author {
        match self {
            Self::Redeemed(redeemed) => &redeemed.by,
            Self::Direct(direct) => &direct.by,
        }
    }

    pub fn approval(&self) -> Option<&ApprovalId> {
        match self {
            Self::Redeemed(redeemed) => Some(&redeemed.approval),
            Self::Direct(_) => None,
        }
    }

    /// Deleting a site by hand takes its owner; redeeming was decided by somebody who saw it.
    pub fn may_delete_site(&self) -> bool {
        match self {
            Self::Redeemed(_) => true,
            Self::Direct(direct) => direct.role.may_delete_site(),
        }
    }
}

/// Who wrote or did something, for records that outlive accounts.
#[derive(Clone, Debug)]
pub struct Author {
    /// `person:…`, `agent:…` or `system`.
    pub key: String,
    pub name: String,
}

impl Author {
    pub fn person(person: &Person) -> Self {
        Self {
            key: format!("person:{}", person.id()),
            name: person.name().to_owned(),
        }
    }

    pub fn agent(id: &str, name: &str) -> Self {
        Self {
            key: format!("agent:{id}"),
            name: name.to_owned(),
        }
    }

    pub fn system() -> Self {
        Self {
            key: "system".into(),
            name: "Cloudhal".into(),
        }
    }
}

/// The right to decide: a verified browser session, and a request that provably came from a page of our own; or, for what a
/// person's own client asked for, that person's answer in it (DESIGN §4, rule 3).
#[derive(Clone, Debug)]
pub struct Decider {
    person: PersonId,
    name: String,
    by: Means,
}

#[derive(Clone, Debug)]
pub(crate) enum Means {
    Page,
    /// With the key that the client came with; none over standard input and output.
    OwnClient {
        key: Option<String>,
    },
}

impl Decider {
    pub fn new(person: &Person, _: SameOrigin) -> Self {
        Self {
            person: person.id().clone(),
            name: person.name().to_owned(),
            by: Means::Page,
        }
    }

    /// The person whose own client calls, answering in it. `None` for every agent.
    pub fn in_own_client(caller: &Caller) -> Option<Self> {
        Some(Self {
            person: caller.as_person()?.clone(),
            name: caller.name().to_owned(),
            by: Means::OwnClient {
                key: caller.key_id().map(str::to_owned),
            },
        })
    }

    pub fn person(&self) -> &PersonId {
        &self.person
    }

    pub(crate) fn means(&self) -> &Means {
        &self.by
    }

    pub(crate) fn via(&self) -> Via {
        match self.by {
            Means::Page => Via::Session,
            Means::OwnClient { .. } => Via::ClientElicitation,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn author(&self) -> Author {
        Author {
            key: format!("person:{}", self.person),
            name: self.name.clone(),
        }
    }
}

/// Who keeps accounts, agents and keys: the operator at the command line, or a person on a page of our own. What a person
/// may do is asked of the database in the unit that does it.
#[derive(Clone, Debug)]
pub struct Steward(Option<Person>);

impl Steward {
    /// For the command line: whoever reads the database's files may do everything.
    pub fn operator() -> Self {
        Self(None)
    }

    pub fn person(person: &Person, _: SameOrigin) -> Self {
        Self(Some(person.clone()))
    }

    pub(crate) fn as_person(&self) -> Option<&Person> {
        self.0.as_ref()
    }

    /// What a record of something made keeps of its maker.
    pub(crate) fn made_by(&self) -> Option<&str> {
        self.0.as_ref().map(|person| person.id().as_str())
    }

    pub(crate) fn author(&self) -> Author {
        self.0.as_ref().map_or_else(Author::system, Author::person)
    }
}
