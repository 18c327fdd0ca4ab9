//! An answer as the text it travels in, read once, where it is drawn.
//!
//! A resource and a server function would each bring a reader and a writer of their own for every type of every screen
//! into the browser's module; this way there is one reader per type and no writer.

use super::StudioError;
use cloudhal_domain::code::Code;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use std::marker::PhantomData;

pub struct Packed<T> {
    text: String,
    of: PhantomData<fn() -> T>,
}

impl<T> Packed<T> {
    /// As it came; [`open`] reads it.
    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(feature = "ssr")]
impl<T: Serialize> Packed<T> {
    pub fn new(value: &T) -> Result<Self, StudioError> {
        let text = serde_json::to_string(value).map_err(|_| unreadable())?;
        Ok(Self {
            text,
            of: PhantomData,
        })
    }
}

/// Reads what [`Packed`] carried.
pub fn open<T: DeserializeOwned>(text: &str) -> Result<T, StudioError> {
    serde_json::from_str(text).map_err(|_| unreadable())
}

fn unreadable() -> StudioError {
    StudioError {
        code: Code::Internal,
        message: "The answer could not be read.".into(),
    }
}

impl<T> Serialize for Packed<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de, T> Deserialize<'de> for Packed<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Ok(Self {
            text,
            of: PhantomData,
        })
    }
}
