//! The key that is not in the database: a row edited with SQL cannot carry a valid MAC.

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretBox};
use sha2::{Digest as _, Sha256};

const BYTES: usize = 32;

pub struct Secret(SecretBox<[u8; BYTES]>);

impl Secret {
    pub fn new(bytes: [u8; BYTES]) -> Self {
        Self(SecretBox::new(Box::new(bytes)))
    }

    /// A fresh one, for a first start or a test.
    pub fn random() -> Self {
        Self::new(crate::clock::random())
    }

    /// As kept in its file: hexadecimal, so that an editor does no harm.
    pub fn to_text(&self) -> String {
        HEXLOWER.encode(self.0.expose_secret())
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.trim().as_bytes()).ok()?;
        Some(Self::new(bytes.try_into().ok()?))
    }

    /// HMAC-SHA256 over framed parts; `purpose` keeps one use's MAC from being good for another.
    pub fn mac(&self, purpose: &str, parts: &[&[u8]]) -> String {
        HEXLOWER.encode(&self.computed(purpose, parts).finalize().into_bytes())
    }

    /// Constant-time check of a stored MAC.
    pub fn verifies(&self, purpose: &str, parts: &[&[u8]], mac: &str) -> bool {
        HEXLOWER
            .decode(mac.as_bytes())
            .is_ok_and(|bytes| self.computed(purpose, parts).verify_slice(&bytes).is_ok())
    }

    fn computed(&self, purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
        // HMAC takes a key of any length, so this cannot fail.
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret())
            .unwrap_or_else(|_| unreachable!("any key length is fine"));
        for part in std::iter::once(&purpose.as_bytes()).chain(parts) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

/// SHA-256 as hexadecimal, for tokens of which only the digest is kept.
pub fn token_digest(token: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
}
