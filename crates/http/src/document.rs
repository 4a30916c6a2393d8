//! The API's own description: every operation of the router as OpenAPI 3.1, made from the types that answer.
//!
//! Owns the form of an operation and what all of them share. Operations stand in one file per resource, beside none of
//! the handlers: a test holds them against the router, both ways, and every status that a test of this crate sees must
//! stand here. `tools/contract` writes the text. Not part of the product.

mod doors;
mod executions;
mod node;
mod schemas;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::Method;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// One operation under construction. What is left out is not described.
#[derive(Clone, Debug)]
pub struct Operation {
    method: Method,
    path: &'static str,
    value: Value,
}

impl Operation {
    /// An operation; `id` is what generated clients call it, `summary` one sentence.
    pub(crate) fn new(method: Method, path: &'static str, id: &str, summary: &str) -> Operation {
        let value = json!({ "operationId": id, "summary": summary, "parameters": [], "responses": {} });
        // What the guard in front of every route answers.
        Operation { method, path, value }.shared(&[Shared::Unauthorized, Shared::Forbidden])
    }

    pub(crate) fn get(path: &'static str, id: &str, summary: &str) -> Operation {
        Operation::new(Method::Get, path, id, summary)
    }

    pub(crate) fn post(path: &'static str, id: &str, summary: &str) -> Operation {
        Operation::new(Method::Post, path, id, summary)
    }

    /// One that is answered whoever asks.
    pub(crate) fn without_token(mut self) -> Operation {
        self.value["security"] = json!([{}]);
        if let Some(responses) = self.value["responses"].as_object_mut() {
            responses.remove(Shared::Unauthorized.status().as_str());
        }
        self
    }

    /// More than the summary.
    pub(crate) fn about(mut self, text: &str) -> Operation {
        self.value["description"] = text.into();
        self
    }

    /// A parameter in the `query` or a `header` that may be absent.
    pub(crate) fn parameter(self, place: &str, name: &str, about: &str, schema: Value) -> Operation {
        self.any_parameter(
            json!({ "name": name, "in": place, "required": false, "description": about, "schema": schema }),
        )
    }

    /// The execution that the path names.
    pub(crate) fn id_parameter(self) -> Operation {
        self.any_parameter(json!({ "$ref": "#/components/parameters/Id" }))
    }

    fn any_parameter(mut self, parameter: Value) -> Operation {
        if let Some(list) = self.value["parameters"].as_array_mut() {
            list.push(parameter);
        }
        self
    }

    /// A JSON body that must be there.
    pub(crate) fn json_body(mut self, schema: Value) -> Operation {
        self.value["requestBody"] = json!({ "required": true, "content": { JSON: { "schema": schema } } });
        self
    }

    /// An answer with JSON of this schema.
    pub(crate) fn json(self, status: u16, about: &str, schema: Value) -> Operation {
        self.content(status, about, JSON, schema)
    }

    /// An answer that is an event stream.
    pub(crate) fn events(self, status: u16, about: &str) -> Operation {
        self.content(status, about, EVENTS, schema("Frame"))
    }

    /// One more content type of the answer with this status.
    pub(crate) fn content(
        mut self,
        status: u16,
        about: &str,
        content_type: &str,
        schema: Value,
    ) -> Operation {
        let answer = &mut self.value["responses"][status.to_string()];
        answer["description"] = about.into();
        answer["content"][content_type] = json!({ "schema": schema });
        self
    }

    /// The key that makes asking again safe.
    pub(crate) fn idempotency_key(self) -> Operation {
        self.parameter(
            "header",
            "Idempotency-Key",
            "The same key with the same request gives the same execution; with another request, 400.",
            json!({ "type": "string", "minLength": 1, "maxLength": 256 }),
        )
    }

    /// What the path names, where any text may stand.
    pub(crate) fn text_id_parameter(self, about: &str) -> Operation {
        let text = json!({ "type": "string" });
        self.any_parameter(
            json!({ "name": "id", "in": "path", "required": true, "description": about, "schema": text }),
        )
    }

    /// Errors in the form of somebody else's API, the guard's among them.
    pub(crate) fn dialect_errors(mut self, statuses: &[u16]) -> Operation {
        for status in statuses.iter().chain(&[401, 403]) {
            self.value["responses"][status.to_string()] =
                json!({ "$ref": "#/components/responses/DialectError" });
        }
        self
    }

    /// Answers that mean the same wherever they stand; see `components.responses`.
    pub(crate) fn shared(mut self, answers: &[Shared]) -> Operation {
        for shared in answers {
            let reference = format!("#/components/responses/{}", shared.name());
            self.value["responses"][shared.status().as_str()] = json!({ "$ref": reference });
        }
        self
    }

    #[cfg(test)]
    pub(crate) fn method(&self) -> Method {
        self.method
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    #[cfg(test)]
    pub(crate) fn statuses(&self) -> std::collections::BTreeSet<u16> {
        let statuses = self.value["responses"].as_object().into_iter().flatten();
        statuses.filter_map(|(status, _)| status.parse().ok()).collect()
    }
}

/// An answer that several operations give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    Invalid,
    NotFound,
    Failed,
    Unavailable,
    Unauthorized,
    Forbidden,
}

impl Shared {
    const ALL: [Shared; 6] = [
        Shared::Invalid,
        Shared::NotFound,
        Shared::Failed,
        Shared::Unavailable,
        Shared::Unauthorized,
        Shared::Forbidden,
    ];

    fn name(self) -> &'static str {
        match self {
            Shared::Invalid => "Invalid",
            Shared::NotFound => "NotFound",
            Shared::Failed => "Failed",
            Shared::Unavailable => "Unavailable",
            Shared::Unauthorized => "Unauthorized",
            Shared::Forbidden => "Forbidden",
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Shared::Invalid => StatusCode::BAD_REQUEST,
            Shared::NotFound => StatusCode::NOT_FOUND,
            Shared::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            Shared::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Shared::Unauthorized => StatusCode::UNAUTHORIZED,
            Shared::Forbidden => StatusCode::FORBIDDEN,
        }
    }

    fn about(self) -> &'static str {
        match self {
            Shared::Invalid => {
                "The request is at fault (`invalid_request`). The message says what is: of a body it names members of the schema, and \
                 nothing of what was sent."
            }
            Shared::NotFound => {
                "Nothing is here under this name, or no longer (`not_found`, without `retryable`)."
            }
            Shared::Failed => "Any other error, usually `internal_error`. The cause is never shown.",
            Shared::Unavailable => {
                "No room for more work (`queue_full`), or the node takes none (`provider_unavailable`): it is stopping, \
                 it is read-only, or it is fenced, since its journal was made by `restore`, `repair` or `import`, and does not \
                 know what was asked for: the original may know it."
            }
            Shared::Unauthorized => "The node asks for a token, and this request has none that it knows.",
            Shared::Forbidden => {
                "`Host` is not one of the node's names, `Origin` is not the node's own, or the token lacks the scope."
            }
        }
    }

    fn response(self) -> Value {
        let mut response = json!({
            "description": self.about(),
            "content": { JSON: { "schema": schema("ErrorEnvelope") } },
        });
        if self == Shared::Unavailable {
            let seconds = json!({ "type": "integer", "const": 1 });
            response["headers"]["Retry-After"] =
                json!({ "description": "Present when the error is retryable.", "schema": seconds });
        }
        response
    }
}

/// A reference to one of `components.schemas`.
pub(crate) fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Every operation, in the order of the resources.
pub(crate) fn operations() -> Vec<Operation> {
    [node::operations(), executions::operations(), doors::operations()].concat()
}

/// The whole document.
#[must_use]
pub fn openapi() -> Value {
    let mut paths = Map::new();
    for operation in operations() {
        let method = match operation.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        let mut value = operation.value;
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, member| {
                name != "parameters" || member.as_array().is_some_and(|list| !list.is_empty())
            });
        }
        paths.entry(operation.path).or_insert_with(|| json!({}))[method] = value;
    }
    let mut responses: Map<String, Value> =
        Shared::ALL.iter().map(|shared| (shared.name().to_owned(), shared.response())).collect();
    responses.insert("DialectError".to_owned(), dialect_error());
    json!({
        "openapi": "3.1.0",
        "info": info(),
        "servers": [{ "url": "http://127.0.0.1:4320", "description": "Where a node listens unless told otherwise." }],
        "security": [{}, { "bearer": [] }, { "apiKey": [] }],
        "paths": paths,
        "components": {
            "parameters": { "Id": id() },
            "responses": responses,
            "schemas": schemas::all(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "Where the node asks for tokens." },
                "apiKey": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "x-api-key",
                    "description": "The same token, for clients that send it so.",
                },
            },
        },
    })
}

fn dialect_error() -> Value {
    json!({
        "description":
            "An error in the form of the API that was asked: `{\"error\": {message, type, param, code}}`, or\n\
             `{\"type\": \"error\", \"error\": {type, message}}`. `x-should-retry` says whether trying again makes sense.\n",
        "content": { JSON: { "schema": { "type": "object" } } },
    })
}

fn info() -> Value {
    json!({
        "title": "Sealog model API",
        "version": sealog_execution::manifest::PROTOCOL_VERSION,
        "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        "summary": "Submit executions, follow their durable events, read what came of them.",
        "description":
            "Every response carries `x-content-type-options: nosniff` and `cache-control: no-store`. JSON responses have\n\
             the content type `application/json; charset=utf-8`. Any path or method that is not listed here is answered\n\
             with 404 and `{\"error\":{\"code\":\"not_found\",\"message\":\"Route not found\"}}`, or with 404 in the form of the API\n\
             whose path it is; there is no 405.\n\
             The rules behind this document are in `spec/protocol.md` and `spec/runtime-model.md`.\n",
    })
}

fn id() -> Value {
    json!({
        "name": "id",
        "in": "path",
        "required": true,
        "description": "Text that is no UUID names no execution (404); an escape that cannot be decoded is 400.",
        "schema": { "type": "string", "format": "uuid" },
    })
}
