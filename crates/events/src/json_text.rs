//! JSON text that is kept as it will be sent.
//!
//! Owns the promise behind [`JsonText`]: valid, on one line, bounded in size and nesting, readable by strict parsers.
//! Must never change a text that it accepts.

use core::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::limits;

/// One JSON value as text on one line, exactly as it will be sent.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonText(String);

/// Why a text is no [`JsonText`]; says nothing about its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonTextError {
    #[error("JSON text is longer than an event can carry")]
    TooLong,
    #[error("JSON text spans more than one line")]
    LineBreak,
    #[error("text is not valid JSON within the nesting bound")]
    Invalid,
}

impl JsonText {
    /// Keeps a text of at most [`limits::EVENT_JSON_BYTES_MAX`] bytes that is one JSON value without a line break,
    /// nested at most [`limits::JSON_DEPTH_MAX`] deep, without lone surrogates and without numbers beyond a double.
    ///
    /// # Errors
    /// [`JsonTextError`] for any other text.
    pub fn new(text: impl Into<String>) -> Result<Self, JsonTextError> {
        let text = text.into();
        if text.len() > limits::EVENT_JSON_BYTES_MAX {
            return Err(JsonTextError::TooLong);
        }
        if text.contains(['\n', '\r']) {
            return Err(JsonTextError::LineBreak);
        }
        check_value(&text)?;
        Ok(Self(text))
    }

    /// Like [`Self::new`], for JSON that came laid out in lines: drops the white space between tokens.
    ///
    /// # Errors
    /// [`JsonTextError`] if the text is not valid, or too long even without the white space.
    pub fn compacted(text: &str) -> Result<Self, JsonTextError> {
        // Bounded before it is read: white space costs nothing in the result, but is not without end.
        if text.len() > 4 * limits::EVENT_JSON_BYTES_MAX {
            return Err(JsonTextError::TooLong);
        }
        // Valid JSON first: only then does no white space separate what would otherwise be one token, and no string
        // hold a line break.
        check_value(text)?;
        let mut kept = String::with_capacity(text.len());
        let (mut in_string, mut escaped) = (false, false);
        for character in text.chars() {
            if in_string {
                in_string = escaped || character != '"';
                escaped = !escaped && character == '\\';
            } else if matches!(character, ' ' | '\t' | '\n' | '\r') {
                continue;
            } else {
                in_string = character == '"';
            }
            kept.push(character);
        }
        if kept.len() > limits::EVENT_JSON_BYTES_MAX {
            return Err(JsonTextError::TooLong);
        }
        Ok(Self(kept))
    }

    /// Wraps a text that this crate assembled itself from valid parts; it may be longer than one event.
    pub(crate) fn assembled(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Gives the text away.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for JsonText {
    /// Shows the length only: the text is content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonText({} bytes)", self.0.len())
    }
}

fn check_value(text: &str) -> Result<(), JsonTextError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Check { depth_left: limits::JSON_DEPTH_MAX }
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
        .map_err(|_| JsonTextError::Invalid)
}

/// Reads one value and keeps nothing. Unlike serde's `IgnoredAny` it makes the parser decode strings and numbers,
/// which is where lone surrogates and numbers beyond a double are refused.
#[derive(Clone, Copy)]
struct Check {
    depth_left: usize,
}

impl Check {
    fn inner<E: de::Error>(self) -> Result<Self, E> {
        let depth_left = self.depth_left.checked_sub(1).ok_or_else(|| E::custom("nested too deep"))?;
        Ok(Self { depth_left })
    }
}

impl<'de> DeserializeSeed<'de> for Check {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Check {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let inner = self.inner()?;
        while members.next_key_seed(inner)?.is_some() {
            members.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
