//! The state of a site as one digest that costs the same after an edit whatever the site's size.
//!
//! An incremental set hash (LtHash: 1,024 lanes of 16 bits): each element expands to 2 KiB by the BLAKE3 extendable
//! output of its framed parts; adding and removing are lane-wise sums. The digest that approvals are bound to is SHA-256
//! over the lanes together with the site's id, its live version, node count and monotonic counter.

use cloudhal_domain::digest::{Digest, Framed};
use data_encoding::BASE64_NOPAD;

const LANES: usize = 1024;
/// Named in every digest; a new way to compute it needs a new number.
pub const DIGEST_VERSION: i64 = 1;

/// What kind of thing an element of the state is; tagged, so that no two kinds can be mistaken for each other.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Node,
    Settings,
}

/// One element: a node at a revision, or the settings at theirs.
#[derive(Clone, Copy, Debug)]
pub struct Element<'e> {
    pub kind: Kind,
    pub id: &'e str,
    pub rev: i64,
    pub hash: &'e str,
}

impl Element<'_> {
    fn expand(&self, mut lane: impl FnMut(usize, u16)) {
        let tag = match self.kind {
            Kind::Node => "node",
            Kind::Settings => "settings",
        };
        let mut hasher = blake3::Hasher::new_derive_key("cloudhal 2026 site state element v1");
        for part in [
            tag.as_bytes(),
            self.id.as_bytes(),
            &self.rev.to_be_bytes(),
            self.hash.as_bytes(),
        ] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut bytes = [0u8; LANES * 2];
        hasher.finalize_xof().fill(&mut bytes);
        for (index, pair) in bytes.chunks_exact(2).enumerate() {
            lane(index, u16::from_le_bytes([pair[0], pair[1]]));
        }
    }
}

/// The running sum over a set of elements.
#[derive(Clone, PartialEq, Eq)]
pub struct Lanes(Box<[u16; LANES]>);

impl Default for Lanes {
    fn default() -> Self {
        Self(Box::new([0; LANES]))
    }
}

impl Lanes {
    pub fn add(&mut self, element: Element<'_>) {
        element.expand(|lane, value| self.0[lane] = self.0[lane].wrapping_add(value));
    }

    pub fn remove(&mut self, element: Element<'_>) {
        element.expand(|lane, value| self.0[lane] = self.0[lane].wrapping_sub(value));
    }

    /// As it is kept: text, since the engines differ about bytes.
    pub fn to_text(&self) -> String {
        BASE64_NOPAD.encode(&self.bytes())
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let bytes = BASE64_NOPAD.decode(text.as_bytes()).ok()?;
        if bytes.len() != LANES * 2 {
            return None;
        }
        let mut lanes = Self::default();
        for (lane, pair) in lanes.0.iter_mut().zip(bytes.chunks_exact(2)) {
            *lane = u16::from_le_bytes([pair[0], pair[1]]);
        }
        Some(lanes)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }
}

/// What an approval is bound to.
pub fn digest(
    site: &str,
    lanes: &Lanes,
    live_version: Option<i64>,
    node_count: i64,
    state_rev: i64,
) -> Digest {
    Framed::new("cloudhal/state")
        .number(DIGEST_VERSION)
        .part(site)
        .number(live_version.unwrap_or(0))
        .number(node_count)
        .number(state_rev)
        .part(lanes.bytes())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(id: &str, rev: i64) -> Element<'_> {
        Element {
            kind: Kind::Node,
            id,
            rev,
            hash: "sha256:00",
        }
    }

    #[test]
    fn the_order_of_edits_does_not_matter_and_their_count_does() {
        let (mut a, mut b) = (Lanes::default(), Lanes::default());
        a.add(node("x", 1));
        a.add(node("y", 1));
        b.add(node("y", 1));
        b.add(node("x", 1));
        assert!(a == b);
        b.add(node("x", 1));
        assert!(a != b);
    }

    #[test]
    fn kinds_ids_revs_and_hashes_all_count() {
        let of = |e: Element<'_>| {
            let mut lanes = Lanes::default();
            lanes.add(e);
            lanes.to_text()
        };
        let base = of(node("x", 1));
        assert_ne!(base, of(node("x", 2)));
        assert_ne!(base, of(node("x1", 1)));
        assert_ne!(
            base,
            of(Element {
                kind: Kind::Settings,
                ..node("x", 1)
            })
        );
        assert_ne!(
            base,
            of(Element {
                hash: "sha256:01",
                ..node("x", 1)
            })
        );
    }

    #[test]
    fn a_counter_alone_changes_the_digest() {
        let lanes = Lanes::default();
        assert_ne!(
            digest("s", &lanes, None, 0, 1),
            digest("s", &lanes, None, 0, 2)
        );
        assert_ne!(
            digest("s", &lanes, None, 0, 1),
            digest("s", &lanes, Some(1), 0, 1)
        );
    }

    proptest! {
        /// Whatever was edited in whatever order, the running sum equals the sum computed from what is left.
        #[test]
        fn edits_equal_a_fresh_sum(edits in prop::collection::vec((0usize..8, 1i64..50), 1..60)) {
            let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
            let mut running = Lanes::default();
            let mut left: std::collections::BTreeMap<usize, i64> = Default::default();
            for (which, rev) in edits {
                if let Some(old) = left.insert(which, rev) {
                    running.remove(node(ids[which], old));
                }
                running.add(node(ids[which], rev));
                if rev % 7 == 0 {
                    left.remove(&which);
                    running.remove(node(ids[which], rev));
                }
            }
            let mut fresh = Lanes::default();
            for (which, rev) in &left {
                fresh.add(node(ids[*which], *rev));
            }
            prop_assert!(running == fresh);
            prop_assert!(Lanes::from_text(&running.to_text()).unwrap() == running);
        }
    }
}
