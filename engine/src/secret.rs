//! The key that is not in the database: a row edited with SQL cannot carry a valid signature.
//!
//! Each node has a secret of its own or shares one; decisions are signed with a key made from it. The public half is
//! registered in the database and in the journal, so that any node can check what another one signed, and a key that somebody
//! slipped in shows (`cloudhal verify`).

use data_encoding::HEXLOWER;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
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

    /// Derived, so that the file's own bytes are never used as a key of any one kind.
    fn signing_key(&self) -> SigningKey {
        let seed = blake3::derive_key(
            "cloudhal 2026 decision signing key v1",
            self.0.expose_secret(),
        );
        SigningKey::from_bytes(&seed)
    }

    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.signing_key().verifying_key())
    }

    /// `KEY.SIGNATURE` over a message, KEY being the id of the public key.
    pub fn sign(&self, message: &str) -> String {
        let signature = self.signing_key().sign(message.as_bytes());
        format!(
            "{}.{}",
            self.public_key().id(),
            HEXLOWER.encode(&signature.to_bytes())
        )
    }
}

/// The half of a signing key that everybody may know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    pub fn from_text(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
        VerifyingKey::from_bytes(&bytes.try_into().ok()?)
            .ok()
            .map(Self)
    }

    pub fn to_text(self) -> String {
        HEXLOWER.encode(self.0.as_bytes())
    }

    pub fn id(self) -> String {
        HEXLOWER.encode(&Sha256::digest(self.0.as_bytes())[..16])
    }

    /// Whether `signed` is this key's signature over the message.
    pub fn verifies(self, message: &str, signed: &str) -> bool {
        let Some((key, signature)) = signed.split_once('.') else {
            return false;
        };
        let bytes = HEXLOWER
            .decode(signature.as_bytes())
            .ok()
            .and_then(|bytes| bytes.try_into().ok());
        key == self.id()
            && bytes.is_some_and(|bytes| {
                self.0
                    .verify_strict(message.as_bytes(), &Signature::from_bytes(&bytes))
                    .is_ok()
            })
    }
}

/// The id of the key that a signature says it was made with.
pub fn signer_of(signed: &str) -> &str {
    signed.split_once('.').map_or("", |(key, _)| key)
}

/// SHA-256 as hexadecimal, for tokens of which only the digest is kept.
pub fn token_digest(token: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_for_its_message_and_its_key_alone() {
        let (ours, theirs) = (Secret::random(), Secret::random());
        let signed = ours.sign("yes");
        assert!(ours.public_key().verifies("yes", &signed));
        assert!(!ours.public_key().verifies("no", &signed));
        assert!(!theirs.public_key().verifies("yes", &signed));
        assert_eq!(signer_of(&signed), ours.public_key().id());
        for broken in ["", ".", "x.y", &signed[1..], &signed[..signed.len() - 2]] {
            assert!(!ours.public_key().verifies("yes", broken), "{broken}");
        }
        let again = Secret::from_text(&ours.to_text()).unwrap();
        assert!(again.public_key() == ours.public_key());
        assert!(PublicKey::from_text(&ours.public_key().to_text()).unwrap() == ours.public_key());
    }
}
