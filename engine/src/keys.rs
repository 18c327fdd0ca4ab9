//! What a key for machines looks like: `clh_ID_SECRETCHECK` for agents, `clhp_…` for a person's own client.
//!
//! A prefix that scanners recognise, an id that finds the row, 256 bits of chance of which only the SHA-256 is kept, and a
//! checksum that tells a typing error from an unknown key without a look-up.

use crate::{
    clock::{self, TEXT, fresh_id},
    secret::token_digest,
};
use subtle::ConstantTimeEq as _;

const ID_CHARS: usize = 26;
const SECRET_CHARS: usize = 52;
const CHECK_CHARS: usize = 7;

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Agent,
    Personal,
}

impl Kind {
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Agent => "clh_",
            Self::Personal => "clhp_",
        }
    }

    /// What a person may see of a key again.
    pub(crate) fn shown(self, id: &str) -> String {
        let start: String = id.chars().take(8).collect();
        format!("{}{start}…", self.prefix())
    }
}

/// A new key: its id, what the database keeps of its secret, and the key itself, which is told once.
pub(crate) struct Made {
    pub id: String,
    pub secret_hash: String,
    pub key: String,
}

pub(crate) fn make(kind: Kind) -> Made {
    let id = fresh_id();
    let secret = TEXT.encode(&clock::random::<32>());
    let key = format!(
        "{}{id}_{secret}{}",
        kind.prefix(),
        checksum(kind, &id, &secret)
    );
    Made {
        secret_hash: token_digest(&secret),
        id,
        key,
    }
}

/// A key as it was presented, well formed but not yet verified.
pub(crate) struct Presented<'k> {
    pub kind: Kind,
    pub id: &'k str,
    secret: &'k str,
}

impl<'k> Presented<'k> {
    pub fn read(presented: &'k str) -> Option<Self> {
        let (kind, rest) = [Kind::Personal, Kind::Agent]
            .into_iter()
            .find_map(|kind| Some((kind, presented.strip_prefix(kind.prefix())?)))?;
        let (id, rest) = rest.split_once('_')?;
        if id.len() != ID_CHARS || rest.len() != SECRET_CHARS + CHECK_CHARS || !rest.is_ascii() {
            return None;
        }
        let (secret, check) = rest.split_at(SECRET_CHARS);
        (checksum(kind, id, secret) == check).then_some(Self { kind, id, secret })
    }

    /// Compared even where no such key is kept, so that a known id takes no longer than an unknown one.
    pub fn is(&self, kept: Option<&str>) -> bool {
        let nobody = "0".repeat(64);
        let digest = token_digest(self.secret);
        let right = digest
            .as_bytes()
            .ct_eq(kept.unwrap_or(&nobody).as_bytes())
            .into();
        right && kept.is_some()
    }
}

/// An agent's is over its id and secret alone, as keys that were given out have it.
fn checksum(kind: Kind, id: &str, secret: &str) -> String {
    let text = match kind {
        Kind::Agent => format!("{id}_{secret}"),
        Kind::Personal => format!("{}{id}_{secret}", kind.prefix()),
    };
    TEXT.encode(&crc32fast::hash(text.as_bytes()).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_a_typing_error_shows() {
        for kind in [Kind::Agent, Kind::Personal] {
            let made = make(kind);
            let read = Presented::read(&made.key).unwrap();
            assert_eq!((read.kind, read.id), (kind, made.id.as_str()));
            assert!(read.is(Some(&made.secret_hash)));
            assert!(!read.is(Some(&make(kind).secret_hash)));
            assert!(!read.is(None));
            for at in [4, 20, 31, 40, 85] {
                let mut broken: Vec<char> = made.key.chars().collect();
                broken[at] = if broken[at] == 'a' { 'b' } else { 'a' };
                let broken: String = broken.into_iter().collect();
                assert!(Presented::read(&broken).is_none(), "at {at}");
            }
            let (key, prefix) = (&made.key, kind.prefix());
            for bad in [
                "",
                prefix,
                &format!("{prefix}_"),
                "Bearer x",
                &key[1..],
                &format!("{key}x"),
                &key.to_uppercase(),
            ] {
                assert!(Presented::read(bad).is_none(), "{bad}");
            }
        }
    }

    #[test]
    fn the_rest_of_one_kind_of_key_is_no_key_of_the_other() {
        let agents = make(Kind::Agent).key.replacen("clh_", "clhp_", 1);
        let persons = make(Kind::Personal).key.replacen("clhp_", "clh_", 1);
        assert!(Presented::read(&agents).is_none() && Presented::read(&persons).is_none());
    }
}
