//! The corpus of R11: texts that are JSON, are not, or are on the border, in the families that parsers get wrong; and frames
//! that were good until something happened to them.

use crate::world::World;
use serde_json::json;

const FILE: &str = include_str!("../../data/texts.txt");
/// Larger ones are refused by their length alone, which needs no corpus.
const BYTES_MAX: usize = 400_000;

/// Every text, and each family's depths and lengths that no file should hold.
pub fn all() -> Vec<Vec<u8>> {
    let lines = FILE.lines().filter(|line| !line.starts_with('#'));
    let mut texts: Vec<Vec<u8>> = lines.map(bytes).collect();
    for deep in [127, 128, 129, 1_000, 100_000] {
        texts.push(b"[".repeat(deep));
        texts.push([b"[".repeat(deep), b"]".repeat(deep)].concat());
        texts.push([b"{\"a\":".repeat(deep), b"1".to_vec(), b"}".repeat(deep)].concat());
    }
    for long in [1_000, 262_143, 262_144, 262_145, 300_000] {
        texts.push([b"\"".to_vec(), b"a".repeat(long), b"\"".to_vec()].concat());
        texts.push(b"1".repeat(long));
        texts.push(b" ".repeat(long));
    }
    texts.push(Vec::new());
    texts
}

/// `%XX` stands for a byte; a percent sign before anything else for itself.
fn bytes(line: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |at: usize| {
            after
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// A frame that was good until some of it was bitten off, doubled, swapped or blown up.
pub fn made_up(rng: &mut fastrand::Rng, world: &World) -> Vec<u8> {
    let node = &world.agents[0].node;
    let arguments = json!({"site": world.sites[0], "node": node, "reason": "because"});
    let good = match rng.bool() {
        true => json!({"arguments": arguments, "approvalId": "aaaaaaaaaaaaaaaaaaaaaaaaaa"}),
        false => {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "node_get", "arguments": arguments}})
        }
    };
    let mut body = good.to_string().into_bytes();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..body.len().max(1)).min(body.len());
        match rng.u32(..8) {
            0 => body.truncate(at),
            1 => body.insert(at, rng.u8(..)),
            2 if at < body.len() => body[at] = rng.u8(..),
            3 if at < body.len() => drop(body.remove(at)),
            4 => {
                let copy = body[at..].to_vec();
                body.extend(copy);
            }
            5 => {
                let deep = rng.usize(1..5_000);
                body.splice(at..at, b"[".repeat(deep));
            }
            6 => {
                let long = rng.usize(1..300_000);
                body.splice(at..at, b"x".repeat(long));
            }
            _ => {
                let keys: String = (0..rng.usize(1..200))
                    .map(|key| format!("\"k{key}\":{key},"))
                    .collect();
                body.splice(at..at, keys.into_bytes());
            }
        }
        body.truncate(BYTES_MAX);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_has_its_families_and_no_text_twice() {
        let texts = all();
        let mut once = texts.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), texts.len());
        assert!(texts.len() >= 300, "{}", texts.len());
        assert_eq!(bytes("%22%00%zz%"), b"\"\0%zz%");
    }
}
