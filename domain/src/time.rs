//! Points in time as unix milliseconds: the only form that compares the same in SQLite, PostgreSQL and Rust.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, time::Duration};

/// Unix milliseconds. On the wire it is RFC 3339 in UTC (CONTRACT, first paragraph).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    pub fn ms(self) -> i64 {
        self.0
    }

    /// Saturates instead of wrapping, so that an absurd lifetime means "never" and not "already".
    pub fn plus(self, lifetime: Duration) -> Self {
        let ms = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(ms))
    }

    pub fn minus(self, lifetime: Duration) -> Self {
        let ms = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(ms))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(
                f,
                "{}",
                if self.0 < 0 {
                    "-009999-01-02T01:59:59.000Z"
                } else {
                    "9999-12-30T22:00:00.000Z"
                }
            ),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse::<jiff::Timestamp>()
            .map(|t| Self(t.as_millisecond()))
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_writes() {
        for ms in [0, 1, 1_796_000_000_123, -1] {
            let t = Timestamp(ms);
            let text = serde_json::to_string(&t).unwrap();
            assert_eq!(
                serde_json::from_str::<Timestamp>(&text).unwrap(),
                t,
                "{text}"
            );
        }
        assert_eq!(
            Timestamp(1_796_000_000_123).to_string(),
            "2026-11-30T00:53:20.123Z"
        );
    }

    #[test]
    fn an_absurd_lifetime_never_wraps() {
        assert_eq!(Timestamp(5).plus(Duration::MAX), Timestamp(i64::MAX));
    }
}
