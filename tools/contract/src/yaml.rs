//! JSON values as YAML text, laid out for reading: members that say what a thing is before those that say how.
//!
//! Writes a small part of YAML, and never a scalar whose reading depends on the reader.

use serde_json::{Map, Value};

/// Lists and members longer than this are written one item per line.
const LINE_MAX: usize = 118;

/// Members that stand before others, in this order; the rest follows by name.
const FIRST: &[&str] = &[
    "openapi",
    "info",
    "servers",
    "security",
    "paths",
    "components",
    "title",
    "version",
    "operationId",
    "name",
    "in",
    "summary",
    "description",
    "type",
    "format",
    "enum",
    "const",
    "required",
    "additionalProperties",
    "parameters",
    "requestBody",
    "responses",
    "headers",
    "content",
    "schema",
];

/// The text of a document.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in ordered(members) {
                pad(out, indent);
                out.push_str(&scalar(name));
                out.push(':');
                below(out, member, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                pad(out, indent);
                out.push('-');
                below(out, item, indent);
            }
        }
        value => {
            pad(out, indent);
            out.push_str(&flow(value));
            out.push('\n');
        }
    }
}

/// What stands behind `name:` or `-`: on the same line where it is short, else below.
fn below(out: &mut String, value: &Value, indent: usize) {
    if let Value::String(text) = value
        && let Some(lines) = text.strip_suffix('\n')
    {
        out.push_str(" |\n");
        for line in lines.split('\n') {
            pad(out, indent + 2);
            out.push_str(line);
            out.push('\n');
        }
        return;
    }
    let short = flow(value);
    let nested = match value {
        Value::Object(members) => {
            members.len() > 1 || members.values().any(|member| member.is_object() || member.is_array())
        }
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let container = value.is_object() || value.is_array();
    if container && (nested || indent + short.len() > LINE_MAX) && short.len() > 2 {
        out.push('\n');
        block(out, value, indent + 2);
    } else {
        out.push(' ');
        out.push_str(&short);
        out.push('\n');
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn ordered(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let mut ordered: Vec<_> = members.iter().collect();
    ordered.sort_by(|(left, _), (right, _)| (rank(left), left).cmp(&(rank(right), right)));
    ordered
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members = ordered(members)
                .into_iter()
                .map(|(name, member)| format!("{}: {}", scalar(name), flow(member)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Plain where every reader takes it for text, else quoted as in JSON, which YAML reads too.
fn scalar(text: &str) -> String {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/{}".contains(&byte);
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && !text.contains("{}")
        && (text.starts_with('/') || !text.contains(['{', '}']))
        && text.bytes().all(word)
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_ordered_and_ambiguous_scalars_are_quoted() {
        let value = json!({
            "zeta": [1, "no", "0x1", "a b"],
            "description": "one: two",
            "paths": { "/v1/{id}": { "200": {}, "nested": { "type": "object" } } },
            "text": "first\nsecond\n",
            "list": [{ "a": 1, "b": 2 }],
            "empty": [],
        });
        assert_eq!(
            text(&value),
            "paths:\n  /v1/{id}:\n    \"200\": {}\n    nested: { type: object }\ndescription: \"one: two\"\nempty: []\n\
             list:\n  -\n    a: 1\n    b: 2\ntext: |\n  first\n  second\nzeta: [1, \"no\", \"0x1\", \"a b\"]\n"
        );
    }
}
