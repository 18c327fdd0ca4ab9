//! One spelling for one value. Bytes from outside are read by [`parse`], which refuses what two readers could read
//! differently; [`text`] writes a value as RFC 8785 does.
//!
//! Refused before any other parser sees the body (CONTRACT §4, `invalid_arguments`): duplicate keys, lone surrogates,
//! integers beyond 2^53−1, numbers that are not finite, nesting and objects beyond the limits.

use crate::limits;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::{cell::RefCell, collections::HashSet, fmt};

/// The greatest integer that every JSON reader keeps exactly: 2^53 − 1.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// One thing wrong with a value, and where: `pointer` is a JSON Pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fault {
    pub pointer: String,
    pub problem: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not JSON at all.
    #[error("the body is not JSON: {0}")]
    Malformed(String),
    /// JSON, but of a kind that two readers may read differently.
    #[error("{} at {}", .0.problem, if .0.pointer.is_empty() { "the top" } else { &.0.pointer })]
    Refused(Fault),
}

/// Reads JSON that has exactly one meaning.
pub fn parse(bytes: &[u8]) -> Result<Value, ParseError> {
    let fault = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let seed = Strict {
        fault: &fault,
        parent: None,
        depth: 0,
    };
    let value = seed
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| match fault.take() {
        Some(fault) => ParseError::Refused(fault),
        None => from_serde(&error),
    })
}

/// RFC 8785 text of a value: sorted keys, shortest numbers, no white space.
pub fn text(value: &Value) -> String {
    // The crate fails only on non-finite numbers, which `Value` cannot hold.
    serde_json_canonicalizer::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// serde_json reports two of our refusals as syntax errors; their words are pinned by a test below.
fn from_serde(error: &serde_json::Error) -> ParseError {
    let words = error.to_string();
    let refused = |problem: &str| {
        ParseError::Refused(Fault {
            pointer: String::new(),
            problem: problem.into(),
        })
    };
    if words.starts_with("number out of range") {
        refused("a number is not finite")
    } else if words.contains("surrogate") || words.starts_with("unexpected end of hex escape") {
        refused("a string holds a lone surrogate")
    } else if words.starts_with("recursion limit exceeded") {
        refused("nested too deeply")
    } else {
        ParseError::Malformed(words)
    }
}

/// One step of the path from the top to where the reader stands; text is made only for a fault.
struct Step<'p> {
    parent: Option<&'p Step<'p>>,
    key: Key<'p>,
}

enum Key<'p> {
    Name(&'p str),
    Index(usize),
}

impl Step<'_> {
    fn pointer(&self) -> String {
        let mut text = self.parent.map(Step::pointer).unwrap_or_default();
        text.push('/');
        match self.key {
            Key::Name(name) => text.push_str(&name.replace('~', "~0").replace('/', "~1")),
            Key::Index(index) => text.push_str(&index.to_string()),
        }
        text
    }
}

struct Strict<'f, 'p> {
    fault: &'f RefCell<Option<Fault>>,
    parent: Option<&'p Step<'p>>,
    depth: usize,
}

impl Strict<'_, '_> {
    fn refuse<T, E: de::Error>(&self, problem: impl Into<String>) -> Result<T, E> {
        let pointer = self.parent.map(Step::pointer).unwrap_or_default();
        *self.fault.borrow_mut() = Some(Fault {
            pointer,
            problem: problem.into(),
        });
        Err(E::custom("refused"))
    }

    fn integer<E: de::Error>(&self, magnitude: u64, value: Value) -> Result<Value, E> {
        if magnitude > INTEGER_MAX {
            return self.refuse("an integer is beyond 2^53-1");
        }
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_, '_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        if self.depth > limits::JSON_DEPTH_MAX {
            return self.refuse(format!(
                "nested deeper than {} levels",
                limits::JSON_DEPTH_MAX
            ));
        }
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Value, E> {
        self.integer(v, v.into())
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Value, E> {
        self.integer(v.unsigned_abs(), v.into())
    }

    /// `1.0`, `1e0` and `-0` are the integers 1, 1 and 0: the canonical text spells them so, and so must the hash.
    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Value, E> {
        if v.fract() != 0.0 {
            return Ok(v.into());
        }
        if v.abs() > INTEGER_MAX as f64 {
            return self.refuse("an integer is beyond 2^53-1");
        }
        Ok((v as i64).into())
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E: de::Error>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let step = Step {
                parent: self.parent,
                key: Key::Index(items.len()),
            };
            let seed = Strict {
                fault: self.fault,
                parent: Some(&step),
                depth: self.depth + 1,
            };
            match seq.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let step = Step {
                parent: self.parent,
                key: Key::Name(&name),
            };
            let seed = Strict {
                fault: self.fault,
                parent: Some(&step),
                depth: self.depth + 1,
            };
            if !seen.insert(name.clone()) {
                return seed.refuse("a key stands twice in one object");
            }
            if seen.len() > limits::JSON_KEYS_MAX {
                return seed.refuse(format!(
                    "an object has more than {} keys",
                    limits::JSON_KEYS_MAX
                ));
            }
            let value = map.next_value_seed(seed)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(json: &str, expect: &str) {
        let seen = match parse(json.as_bytes()) {
            Ok(value) => text(&value),
            Err(ParseError::Malformed(_)) => "malformed".into(),
            Err(ParseError::Refused(fault)) => format!("{} @{}", fault.problem, fault.pointer),
        };
        assert_eq!(seen, expect, "{json}");
    }

    #[test]
    fn one_value_has_one_spelling() {
        check(
            r#" {"b":1,"a":[true,null,"x"]} "#,
            r#"{"a":[true,null,"x"],"b":1}"#,
        );
        check("1.0", "1");
        check("1e0", "1");
        check("-0", "0");
        check("-0.0", "0");
        check("0.5", "0.5");
        check("9007199254740991", "9007199254740991");
        check(r#""\u00e9""#, "\"é\"");
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        check(
            r#"{"site":"a","site":"b"}"#,
            "a key stands twice in one object @/site",
        );
        check(
            r#"{"x":{"site":"a","s\u0069te":"b"}}"#,
            "a key stands twice in one object @/x/site",
        );
        check(
            r#"[{"a/b~":{"k":1,"k":1}}]"#,
            "a key stands twice in one object @/0/a~1b~0/k",
        );
        check("9007199254740992", "an integer is beyond 2^53-1 @");
        check("-9007199254740992", "an integer is beyond 2^53-1 @");
        check("9007199254740993.0", "an integer is beyond 2^53-1 @");
        check("18446744073709551616", "an integer is beyond 2^53-1 @");
        check("1e400", "a number is not finite @");
        check(r#""\ud800""#, "a string holds a lone surrogate @");
        check(r#""\udc00x""#, "a string holds a lone surrogate @");
        check(r#""\ud800\u0041""#, "a string holds a lone surrogate @");
    }

    #[test]
    fn depth_and_width_have_limits() {
        let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(deep(limits::JSON_DEPTH_MAX).as_bytes()).is_ok());
        assert!(matches!(
            parse(deep(limits::JSON_DEPTH_MAX + 1).as_bytes()),
            Err(ParseError::Refused(_))
        ));
        assert!(matches!(
            parse(deep(10_000).as_bytes()),
            Err(ParseError::Refused(_))
        ));
        let wide = |n: usize| {
            format!(
                "{{{}}}",
                (0..n)
                    .map(|i| format!("\"k{i}\":1"))
                    .collect::<Vec<_>>()
                    .join(",")
            )
        };
        assert!(parse(wide(limits::JSON_KEYS_MAX).as_bytes()).is_ok());
        assert!(matches!(
            parse(wide(limits::JSON_KEYS_MAX + 1).as_bytes()),
            Err(ParseError::Refused(_))
        ));
    }

    #[test]
    fn what_is_not_json_is_malformed() {
        for json in [
            "",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "NaN",
            "01",
            "'a'",
            "\u{feff}{}",
            "{} {}",
            "// x",
            "\"\u{1}\"",
        ] {
            check(json, "malformed");
        }
        assert!(matches!(parse(b"\"\xff\""), Err(ParseError::Malformed(_))));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1_000_000i64..1_000_000).prop_map(Value::from),
            any::<f64>()
                .prop_filter("finite, not whole", |f| f.is_finite() && f.fract() != 0.0)
                .prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_is_stable(value in any_json()) {
            let once = text(&value);
            prop_assert_eq!(text(&parse(once.as_bytes()).unwrap()), once);
        }

        #[test]
        fn white_space_and_key_order_change_nothing(value in any_json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(text(&parse(pretty.as_bytes()).unwrap()), text(&value));
        }
    }
}
