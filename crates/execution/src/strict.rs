//! Reading JSON strictly: every member must be asked for, `null` is no substitute for absence, and a number is
//! taken by its value (`5.0` and `5e3` are integers).
//!
//! Callers give text that [`sealog_events::canonical`] has accepted (valid UTF-8, no duplicate members, bounded
//! depth). Refusals name no member, path or value, because they end in public errors.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The text does not have the shape that was asked for. Says nothing else on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("JSON does not have the required shape")]
pub struct Refused;

type Result<T> = std::result::Result<T, Refused>;

/// The members of one object that were not taken yet.
#[derive(Debug)]
pub struct Members<'a> {
    left: BTreeMap<String, &'a RawValue>,
}

impl<'a> Members<'a> {
    /// The members of `json`, which must be an object.
    ///
    /// # Errors
    /// `json` is not an object.
    pub fn of(json: &'a str) -> Result<Members<'a>> {
        serde_json::from_str(json).map(|left| Members { left }).map_err(|_| Refused)
    }

    /// Takes a member that may be absent; its JSON text, which may be `null`.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        self.left.remove(name).map(RawValue::get)
    }

    /// Takes a member that must be there.
    ///
    /// # Errors
    /// The member is absent.
    pub fn require(&mut self, name: &str) -> Result<&'a str> {
        self.take(name).ok_or(Refused)
    }

    /// Takes and reads a member that may be absent.
    ///
    /// # Errors
    /// What `read` refuses.
    pub fn optional<T>(&mut self, name: &str, read: impl FnOnce(&'a str) -> Result<T>) -> Result<Option<T>> {
        self.take(name).map(read).transpose()
    }

    /// Ends the object.
    ///
    /// # Errors
    /// A member was not taken, that is, it is unknown.
    pub fn finish(self) -> Result<()> {
        if self.left.is_empty() { Ok(()) } else { Err(Refused) }
    }

    /// All members that were not taken, for objects whose names are the caller's, at most `count_max`.
    ///
    /// # Errors
    /// More than `count_max` members are left.
    pub fn rest(self, count_max: usize) -> Result<BTreeMap<String, &'a RawValue>> {
        if self.left.len() <= count_max { Ok(self.left) } else { Err(Refused) }
    }
}

/// The items of an array.
///
/// # Errors
/// `json` is not an array.
pub fn items(json: &str) -> Result<Vec<&RawValue>> {
    serde_json::from_str(json).map_err(|_| Refused)
}

/// A string of `length_min..=length_max` code points.
///
/// # Errors
/// `json` is not a string, or its length is outside.
pub fn text(json: &str, length_min: usize, length_max: usize) -> Result<String> {
    let text: String = serde_json::from_str(json).map_err(|_| Refused)?;
    // Every code point takes at least one byte, so most texts are judged without counting.
    let too_long = text.len() > length_max && text.chars().count() > length_max;
    if too_long || (length_min > 0 && text.chars().take(length_min).count() < length_min) {
        return Err(Refused);
    }
    Ok(text)
}

/// A Boolean.
///
/// # Errors
/// `json` is neither `true` nor `false`.
pub fn boolean(json: &str) -> Result<bool> {
    match json {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Refused),
    }
}

/// Any finite number.
///
/// # Errors
/// `json` is not a number, or its nearest double is infinite.
pub fn number(json: &str) -> Result<f64> {
    let literal = json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let value: f64 =
        if literal { serde_json::from_str(json).map_err(|_| Refused)? } else { return Err(Refused) };
    if value.is_finite() { Ok(value) } else { Err(Refused) }
}

/// A whole number of `min..=max`, however it is written. `max` is below 2^53.
///
/// # Errors
/// `json` is not a number, has a fraction, or lies outside.
pub fn integer(json: &str, min: u64, max: u64) -> Result<u64> {
    let value = number(json)?;
    // Both bounds are below 2^53, so the conversions are exact where they matter.
    if value.fract() != 0.0 || value < min as f64 || value > max as f64 {
        return Err(Refused);
    }
    Ok(value as u64)
}

/// Reads an array whose items must differ from each other.
///
/// # Errors
/// `json` is not an array, `read` refuses an item, or two items are equal.
pub fn unique<T: Ord + Clone>(json: &str, mut read: impl FnMut(&str) -> Result<T>) -> Result<Vec<T>> {
    let list = items(json)?.into_iter().map(|item| read(item.get())).collect::<Result<Vec<T>>>()?;
    let distinct: std::collections::BTreeSet<&T> = list.iter().collect();
    if distinct.len() == list.len() { Ok(list) } else { Err(Refused) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_judged_by_value_not_by_spelling() {
        for (json, expected) in [
            ("5", Ok(5)),
            ("5.0", Ok(5)),
            ("5e3", Ok(5000)),
            ("50e-1", Ok(5)),
            ("-0", Ok(0)),
            ("5.5", Err(Refused)),
            ("-1", Err(Refused)),
            ("10001", Err(Refused)),
            ("1e400", Err(Refused)),
            ("\"5\"", Err(Refused)),
            ("null", Err(Refused)),
            ("true", Err(Refused)),
        ] {
            assert_eq!(integer(json, 0, 10_000), expected, "{json}");
        }
    }

    #[test]
    fn lengths_count_code_points() {
        let astral = format!("\"{}\"", "\u{1F600}".repeat(4));
        assert!(text(&astral, 1, 4).is_ok());
        assert_eq!(text(&astral, 1, 3), Err(Refused));
        assert_eq!(text("\"\"", 1, 4), Err(Refused));
        assert_eq!(text("\"\"", 0, 0), Ok(String::new()));
        assert_eq!(text("\"\\u0061\"", 1, 1), Ok("a".to_owned()));
        assert_eq!(text("null", 0, 4), Err(Refused));
    }

    #[test]
    fn members_must_all_be_taken_and_null_is_a_value() {
        let mut members = Members::of(r#"{"a":1,"b":null}"#).unwrap();
        assert_eq!(members.take("b"), Some("null"));
        assert_eq!(members.require("c"), Err(Refused));
        assert_eq!(members.optional("b", boolean), Ok(None));
        assert!(members.finish().is_err());
        assert!(Members::of("[]").is_err());
        assert!(Members::of("null").is_err());
        assert!(Members::of(r#"{"a":1,"b":2}"#).unwrap().rest(1).is_err());
    }

    #[test]
    fn lists_are_unique_by_value() {
        let read = |json: &str| text(json, 1, 8);
        assert_eq!(unique(r#"["a","b"]"#, read), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(unique(r#"["a","\u0061"]"#, read), Err(Refused));
        assert_eq!(unique(r#"{"a":1}"#, read), Err(Refused));
    }
}
