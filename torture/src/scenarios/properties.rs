//! R12, its property part: one call has one hash, and another call another one.

use crate::{context::Context, report::Report};
use anyhow::{Context as _, Result};
use cloudhal_domain::{canonical, digest};
use serde_json::{Map, Value, json};

const DEPTH_MAX: usize = 4;
const INTEGER_MAX: i64 = 9_007_199_254_740_991;

/// R12. The order of keys and the spelling never change the hash, any value does, and the canonical form is its own.
pub async fn arguments(context: &Context) -> Result<Report> {
    let mut report = Report::default();
    let mut rng = context.rng(12);
    for case in 0..context.figure {
        let value = object(&mut rng, 0);
        let hash = digest::of_arguments(&value);
        let spelled = spell(&value, &mut rng);
        let again = canonical::parse(spelled.as_bytes())
            .map_err(|error| anyhow::anyhow!("case {case}: {error:?} in {spelled}"))?;
        report.expect(digest::of_arguments(&again) == hash, || {
            format!("case {case}: another spelling has another hash: {spelled}")
        });
        let text = canonical::text(&value);
        let back = canonical::parse(text.as_bytes())
            .map_err(|error| anyhow::anyhow!("case {case}: {error:?} in {text}"))?;
        report.expect(canonical::text(&back) == text, || {
            format!("case {case}: the canonical form is not its own: {text}")
        });
        let mut changed = value.clone();
        change(&mut changed, &mut rng).context("something to change")?;
        report.expect(digest::of_arguments(&changed) != hash, || {
            format!("case {case}: {value} and {changed} have one hash")
        });
    }
    Ok(report)
}

fn object(rng: &mut fastrand::Rng, depth: usize) -> Value {
    let mut map = Map::new();
    for _ in 0..rng.usize(1..6) {
        map.insert(string(rng), any(rng, depth + 1));
    }
    Value::Object(map)
}

fn any(rng: &mut fastrand::Rng, depth: usize) -> Value {
    match rng.u32(..if depth < DEPTH_MAX { 8 } else { 5 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i64(-INTEGER_MAX..=INTEGER_MAX)),
        3 => json!((rng.f64() - 0.5) * 10f64.powi(rng.i32(-20..15))),
        4 => json!(string(rng)),
        5 => Value::Array((0..rng.usize(..4)).map(|_| any(rng, depth + 1)).collect()),
        _ => object(rng, depth),
    }
}

fn string(rng: &mut fastrand::Rng) -> String {
    const ODD: [char; 12] = [
        '"', '\\', '/', '\n', '\u{1}', 'é', 'e', '\u{301}', '\u{202e}', '\u{200b}', '😀',
        '\u{ffff}',
    ];
    (0..rng.usize(..8))
        .map(|_| match rng.u32(..3) {
            0 => rng.choice(ODD).unwrap_or('x'),
            _ => rng.alphanumeric(),
        })
        .collect()
}

/// The same value in other words: shuffled keys, odd white space, escapes where none are needed.
fn spell(value: &Value, rng: &mut fastrand::Rng) -> String {
    let gap = |rng: &mut fastrand::Rng| *rng.choice(&["", " ", "\n", "\t "]).unwrap_or(&"");
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            rng.shuffle(&mut entries);
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| {
                    let (before, after) = (gap(rng), gap(rng));
                    format!(
                        "{before}{}{after}:{}",
                        spell_string(key, rng),
                        spell(value, rng)
                    )
                })
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| spell(item, rng)).collect();
            format!("[{}{}]", items.join(","), gap(rng))
        }
        Value::String(text) => spell_string(text, rng),
        other => other.to_string(),
    }
}

fn spell_string(text: &str, rng: &mut fastrand::Rng) -> String {
    let mut spelled = String::from('"');
    for character in text.chars() {
        if rng.u32(..4) == 0 {
            let mut units = [0u16; 2];
            for unit in character.encode_utf16(&mut units) {
                spelled.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            let quoted = Value::from(character.to_string()).to_string();
            spelled.push_str(&quoted[1..quoted.len() - 1]);
        }
    }
    spelled.push('"');
    spelled
}

/// Changes one value, key or length somewhere.
fn change(value: &mut Value, rng: &mut fastrand::Rng) -> Option<()> {
    match value {
        Value::Null => *value = json!(false),
        Value::Bool(is) => *is = !*is,
        Value::Number(number) => {
            *value = match number.as_i64() {
                Some(integer) if integer < INTEGER_MAX => json!(integer + 1),
                Some(integer) => json!(integer - 1),
                None => json!(next_up(number.as_f64()?)),
            }
        }
        Value::String(text) => match rng.bool() {
            true => text.push('x'),
            false => text.insert(0, '\u{200b}'),
        },
        Value::Array(items) => {
            let at = rng.usize(..=items.len());
            match items.get_mut(at) {
                Some(item) => change(item, rng)?,
                None => items.push(Value::Null),
            }
        }
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            let key = rng.choice(&keys)?;
            if rng.u32(..4) == 0 {
                let moved = map.remove(key)?;
                let mut other = format!("{key}_");
                while map.contains_key(&other) {
                    other.push('_');
                }
                map.insert(other, moved);
            } else {
                change(map.get_mut(key)?, rng)?;
            }
        }
    }
    Some(())
}

fn next_up(number: f64) -> f64 {
    let next = number.next_up();
    if next.is_finite() { next } else { 0.5 }
}
