//! SHA-256 digests over framed parts. Every part is preceded by its length and every kind of digest by its domain, so
//! that no two different lists of parts give the same bytes.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Takes a stored or received text as it is; comparing it with a computed one is what judges it.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Hash of the canonical arguments of a call; anyone can recompute it from the record.
pub fn of_arguments(arguments: &Value) -> Digest {
    finish(Sha256::new().chain_update(crate::canonical::text(arguments)))
}

/// A digest under construction: a domain, then framed parts.
pub struct Framed(Sha256);

impl Framed {
    pub fn new(domain: &str) -> Self {
        Self(Sha256::new()).part(domain)
    }

    pub fn part(self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        Self(
            self.0
                .chain_update((bytes.len() as u64).to_be_bytes())
                .chain_update(bytes),
        )
    }

    pub fn number(self, number: i64) -> Self {
        self.part(number.to_be_bytes())
    }

    pub fn finish(self) -> Digest {
        finish(self.0)
    }
}

fn finish(hasher: Sha256) -> Digest {
    let hex: String = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Digest(format!("sha256:{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cannot_slide_into_each_other() {
        let of = |parts: &[&str]| {
            parts
                .iter()
                .fold(Framed::new("t"), |f, p| f.part(p))
                .finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["abc"]), of(&["abc", ""]));
        assert_ne!(
            Framed::new("a").part("b").finish(),
            Framed::new("ab").finish()
        );
    }

    #[test]
    fn arguments_hash_is_sha256_of_the_canonical_text() {
        let digest = of_arguments(&serde_json::json!({"site": "a"}));
        // printf '{"site":"a"}' | sha256sum
        assert_eq!(
            digest.as_str(),
            "sha256:80cbd9aea2a3f01369354b1bef29eb54cd576d396b5413b65dd64f817c7d748e"
        );
    }
}
