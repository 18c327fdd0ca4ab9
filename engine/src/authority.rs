//! The right to run a gated effect, as a value. An effect asks for an [`Authority`]; there are two ways to one, and each
//! has a single constructor: the redeeming UPDATE, and a verified session with the role on a request of our own page.

use crate::people::Person;
use cloudhal_domain::{
    code::{Code, Refusal},
    id::ApprovalId,
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

/// The right to decide: a verified browser session, and a request that provably came from a page of our own.
pub struct Decider<'p> {
    person: &'p Person,
}

impl<'p> Decider<'p> {
    pub fn new(person: &'p Person, _: SameOrigin) -> Self {
        Self { person }
    }

    pub fn person(&self) -> &Person {
        self.person
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
