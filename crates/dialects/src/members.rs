//! Reading a dialect's request: each member is honoured, is known to be harmless, or is refused by its name.
//!
//! `null` stands for absence, as it does in these protocols. A path such as `messages.role` names the member `role`
//! and is what the refusal says.

use std::collections::BTreeMap;

use sealog_events::canonical;
use sealog_execution::strict;
use serde_json::value::RawValue;

use crate::error::Refusal;

type Result<T> = std::result::Result<T, Refusal>;

/// Longest text: a body's.
const TEXT_MAX: usize = sealog_execution::request::BODY_BYTES_MAX;

/// The members of one object that were not taken yet.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    left: BTreeMap<String, &'a RawValue>,
}

fn name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

impl<'a> Object<'a> {
    /// The members of `json`, which stands at `path`.
    pub fn of(json: &'a str, path: &'static str) -> Result<Object<'a>> {
        serde_json::from_str(json).map(|left| Object { left }).map_err(|_| Refusal::invalid(path))
    }

    /// A member that may be absent.
    pub fn take(&mut self, path: &str) -> Option<&'a str> {
        self.left.remove(name(path)).map(RawValue::get).filter(|json| *json != "null")
    }

    pub fn need(&mut self, path: &'static str) -> Result<&'a str> {
        self.take(path).ok_or_else(|| Refusal::missing(path))
    }

    pub fn text(&mut self, path: &'static str) -> Result<Option<String>> {
        self.take(path).map(|json| text(json, path)).transpose()
    }

    pub fn need_text(&mut self, path: &'static str) -> Result<String> {
        text(self.need(path)?, path)
    }

    pub fn boolean(&mut self, path: &'static str) -> Result<Option<bool>> {
        let read = |json| strict::boolean(json).map_err(|_| Refusal::invalid(path));
        self.take(path).map(read).transpose()
    }

    pub fn number(&mut self, path: &'static str) -> Result<Option<f64>> {
        let read = |json| strict::number(json).map_err(|_| Refusal::invalid(path));
        self.take(path).map(read).transpose()
    }

    pub fn integer(&mut self, path: &'static str) -> Result<Option<u64>> {
        let max = sealog_execution::conversation::TOKENS_MAX;
        let read = |json| strict::integer(json, 1, max).map_err(|_| Refusal::invalid(path));
        self.take(path).map(read).transpose()
    }

    pub fn raw(&mut self, path: &'static str) -> Result<Option<Box<RawValue>>> {
        let read = |json: &str| RawValue::from_string(json.to_owned()).map_err(|_| Refusal::invalid(path));
        self.take(path).map(read).transpose()
    }

    /// Members that change nothing of what is answered.
    pub fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.left.remove(*name);
        }
    }

    /// Members that would change the answer and cannot be honoured, unless they say what is true anyway: one of
    /// `harmless`, an empty list or an empty object.
    /// By value: `1.0` is `1`, and white space says nothing.
    pub fn refuse(&mut self, path: &'static str, harmless: &[&str]) -> Result<()> {
        let Some(json) = self.take(path) else { return Ok(()) };
        let value = canonical::canonical_json(json.as_bytes()).map_err(|_| Refusal::invalid(path))?;
        match value.as_str() {
            "[]" | "{}" => Ok(()),
            value if harmless.contains(&value) => Ok(()),
            _ => Err(Refusal::unsupported(path)),
        }
    }

    /// As [`Object::refuse`] for several that have no harmless value.
    pub fn refuse_all(&mut self, paths: &[&'static str]) -> Result<()> {
        paths.iter().try_for_each(|path| self.refuse(path, &[]))
    }

    /// Ends the object. What is left is known to nobody, and its name is the caller's.
    pub fn finish(self) -> Result<()> {
        if self.left.values().all(|value| value.get() == "null") { Ok(()) } else { Err(Refusal::unknown()) }
    }
}

pub(crate) fn text(json: &str, path: &'static str) -> Result<String> {
    strict::text(json, 0, TEXT_MAX).map_err(|_| Refusal::invalid(path))
}

pub(crate) fn items<'a>(json: &'a str, path: &'static str) -> Result<Vec<&'a RawValue>> {
    strict::items(json).map_err(|_| Refusal::invalid(path))
}

pub(crate) fn list<'a, T>(
    json: &'a str,
    path: &'static str,
    read: impl Fn(&'a str) -> Result<T>,
) -> Result<Vec<T>> {
    items(json, path)?.into_iter().map(|item| read(item.get())).collect()
}

/// Whether `json` is a text and not a list or an object.
pub(crate) fn is_text(json: &str) -> bool {
    json.starts_with('"')
}

/// Texts of a list, or the one text that stands in its place.
pub(crate) fn texts(json: &str, path: &'static str) -> Result<Vec<String>> {
    if is_text(json) { Ok(vec![text(json, path)?]) } else { list(json, path, |json| text(json, path)) }
}
