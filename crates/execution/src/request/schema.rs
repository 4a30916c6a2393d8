//! The JSON schema of a request, made from its types.
//!
//! Describes what [`ExecutionRequest::parse`] takes, as far as a schema can: it counts no bytes of the whole body, and
//! what a body must be besides (strict UTF-8, no member twice, bounded depth) no schema says. Not part of the product.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::{ENTRIES_MAX, ExecutionRequest, MediaKind, NAME_LENGTH_MAX, Part, URI_LENGTH_MAX};

/// Names the schema, whoever holds a copy of it.
pub const ID: &str = "urn:sealog:schema:execution-request:0.1";

/// The schema as a document of its own.
#[must_use]
pub fn document() -> Value {
    let mut schema = generator().into_root_schema_for::<ExecutionRequest>();
    schema.insert("$id".to_owned(), ID.into());
    schema.to_value()
}

/// Makes schemas as every generated document has them: a type's own range and format say nothing that a caller of
/// JSON could use, and a default would be taken for one that is filled in.
#[must_use]
pub fn generator() -> SchemaGenerator {
    let plain = RecursiveTransform(|schema: &mut Schema| {
        let number =
            schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint"));
        if number {
            schema.remove("format");
        }
        schema.remove("default");
        // Descriptions are one line of text; the source breaks lines where its columns end.
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace('\n', " ");
        }
    });
    SchemaSettings::draft2020_12().with_transform(plain).into_generator()
}

pub(super) fn metadata(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": ENTRIES_MAX,
        "additionalProperties": { "type": ["string", "number", "boolean"] },
    })
}

pub(super) fn extensions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "maxProperties": ENTRIES_MAX, "additionalProperties": true })
}

impl JsonSchema for Part {
    fn schema_name() -> Cow<'static, str> {
        "Part".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let media = generator.subschema_for::<MediaKind>();
        json_schema!({
            "description": "One typed part of the input.",
            "oneOf": [
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["type", "text"],
                    "properties": {
                        "type": { "type": "string", "const": "text" },
                        "text": { "type": "string" },
                    },
                },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["type", "value"],
                    "properties": {
                        "type": { "type": "string", "const": "json" },
                        "value": { "description": "Any JSON value." },
                    },
                },
                {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["type", "uri"],
                    "properties": {
                        "type": media,
                        "uri": { "type": "string", "minLength": 1, "maxLength": URI_LENGTH_MAX },
                        "media_type": { "type": "string", "maxLength": NAME_LENGTH_MAX },
                    },
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_closed_and_keeps_the_limits() {
        let schema = document();
        assert_eq!(schema["$id"], ID);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["required"], serde_json::json!(["ability", "input"]));
        assert_eq!(schema["properties"]["input"]["maxItems"], 1024);
        assert_eq!(schema["properties"]["ability"]["maxLength"], 256);
        assert_eq!(schema["properties"]["deadline_ms"]["maximum"], 86_400_000);
        assert_eq!(schema["additionalProperties"], false);
        for name in ["Requirements", "Routing"] {
            assert_eq!(schema["$defs"][name]["additionalProperties"], false, "{name}");
            assert!(schema["$defs"][name].get("required").is_none(), "{name}");
        }
        let text = schema.to_string();
        assert!(
            !text.contains("\"null\"") && !text.contains("\"format\"") && !text.contains("\"default\""),
            "{text}"
        );
    }
}
