//! The schemas of bodies. What serde renders describes itself; events, snapshots and results are rendered by hand in
//! `sealog_events::json`, so their schemas are made here from the same closed sets.

use sealog_events::{
    Outcome, Phase, PortableCode, Reached, RecordKind, RequestId, Status, StopReason, UsageSource,
};
use sealog_execution::request::schema::generator;
use sealog_execution::{ExecutionRequest, ProviderManifest};
use serde_json::{Map, Value, json};

use super::schema;
use crate::error::ErrorCode;
use crate::routes::operation::Readiness;
use crate::wire::runtime::Runtime;
use crate::wire::submission::Wire as Submission;

/// `components.schemas`.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = derived();
    for (name, value) in [
        ("Status", closed(Status::ALL.iter().map(|status| status.as_str()))),
        ("Error", error()),
        ("ErrorEnvelope", object(&["error"], json!({ "error": schema("Error") }))),
        ("Target", object(&["provider", "model"], json!({ "provider": text(), "model": text() }))),
        ("UsageFact", usage_fact()),
        ("Artifact", artifact()),
        ("Attempt", attempt()),
        ("Event", event()),
        ("Frame", frame()),
        ("Joined", joined()),
        ("Snapshot", snapshot()),
        ("Entry", entry()),
        ("Result", result()),
    ] {
        schemas.insert(name.to_owned(), value);
    }
    schemas
}

/// What the types say of themselves.
fn derived() -> Map<String, Value> {
    let mut generator = generator();
    generator.subschema_for::<Readiness>();
    generator.subschema_for::<Runtime<'_>>();
    generator.subschema_for::<ProviderManifest>();
    generator.subschema_for::<ExecutionRequest>();
    generator.subschema_for::<Submission>();
    generator
        .take_definitions(true)
        .into_iter()
        .map(|(name, mut value)| {
            move_references(&mut value);
            (name, value)
        })
        .collect()
}

/// A definition beside the schema becomes a component of the document.
fn move_references(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "$ref" => {
                        *text = text.replace("#/$defs/", "#/components/schemas/");
                    }
                    member => move_references(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn closed(names: impl Iterator<Item = &'static str>) -> Value {
    json!({ "type": "string", "enum": names.collect::<Vec<_>>() })
}

/// An object with these members; what is not required may be absent, and is never `null`.
pub(super) fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

fn described(mut value: Value, about: &str) -> Value {
    value["description"] = about.into();
    value
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn id() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

fn time() -> Value {
    described(json!({ "type": "string", "format": "date-time" }), "UTC, with milliseconds and `Z`.")
}

fn count(minimum: u64) -> Value {
    json!({ "type": "integer", "minimum": minimum })
}

fn list(name: &str) -> Value {
    json!({ "type": "array", "items": schema(name) })
}

fn error() -> Value {
    let mut codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    codes.extend(PortableCode::ALL.iter().map(|code| code.as_str()));
    let mut seen = std::collections::BTreeSet::new();
    codes.retain(|code| seen.insert(*code));
    object(
        &["code", "message"],
        json!({
            "code": closed(codes.into_iter()),
            "message": described(text(), "A fixed sentence."),
            "retryable": { "type": "boolean", "description": "Absent on `not_found` only." },
            "provider_code": described(text(), "What the provider called it."),
            "outcome": described(
                closed(Outcome::ALL.iter().map(|outcome| outcome.as_str())),
                "Only on work that a restart interrupted.",
            ),
        }),
    )
}

fn usage_fact() -> Value {
    object(
        &["unit", "quantity", "source"],
        json!({
            "unit": { "type": "string", "minLength": 1 },
            "quantity": { "type": "number", "minimum": 0 },
            "source": closed(UsageSource::ALL.iter().map(|source| source.as_str())),
            "complete": { "type": "boolean" },
        }),
    )
}

fn artifact() -> Value {
    object(
        &["uri"],
        json!({
            "uri": described(text(), "Never followed by the node."),
            "media_type": text(),
            "name": text(),
            "expires_at": text(),
        }),
    )
}

fn attempt() -> Value {
    let request_id = json!({ "type": "string", "minLength": 1, "maxLength": RequestId::BYTES_MAX });
    let reached = closed(Reached::ALL.iter().map(|reached| reached.as_str()));
    object(
        &["attempt", "target", "reached"],
        json!({
            "attempt": count(1),
            "target": schema("Target"),
            "reached": described(reached, "How far records prove that it came; a step that is not shown is not proven."),
            "request_id": described(request_id, "The provider's own, from the head of its answer."),
            "error": schema("Error"),
        }),
    )
}

fn event() -> Value {
    let event = object(
        &["type", "status", "execution_id", "sequence", "time"],
        json!({
            "type": closed(RecordKind::event_types()),
            "status": schema("Status"),
            "execution_id": id(),
            "sequence": described(count(1), "1, 2, 3 and so on without a hole."),
            "time": time(),
            "target": described(schema("Target"), "`route.*` and `execution.completed`."),
            "attempt": described(count(1), "`route.*`."),
            "output_index": described(count(0), "`output.delta`: which output the text goes on."),
            "delta": described(text(), "`output.delta` and `tool.call.arguments.delta`: the further text."),
            "call_id": described(text(), "`tool.call.*`."),
            "name": described(text(), "`tool.call.started`: what is called. A repeated start begins anew."),
            "phase": described(
                closed(Phase::ALL.iter().map(|phase| phase.as_str())),
                "`execution.progress`.",
            ),
            "progress": { "type": "number", "description": "`execution.progress`, where the provider gives one." },
            "result": { "description": "`output.result`: a whole result, any JSON; the last one counts." },
            "artifacts": described(list("Artifact"), "`output.result`."),
            "facts": described(list("UsageFact"), "`usage.reported`: to be added to those before."),
            "stop_reason": stop_reason(),
            "error": described(schema("Error"), "`route.attempt_failed` and `execution.failed`."),
        }),
    );
    described(
        event,
        "One event, in `data` of a stream. What stands beside the required members depends on `type`.",
    )
}

fn stop_reason() -> Value {
    described(
        closed(StopReason::ALL.iter().map(|reason| reason.as_str())),
        "`execution.completed`: why the provider says that its answer ended; absent where it says nothing.",
    )
}

/// One frame of a stream, as a reader of server-sent events sees it.
fn frame() -> Value {
    let data = json!({
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": schema("Event"),
        "description": "The whole event on one line.",
    });
    let frame = object(
        &["id", "event", "data"],
        json!({
            "id": described(text(), "The event's `sequence`."),
            "event": described(closed(RecordKind::event_types()), "The event's `type`."),
            "data": data,
        }),
    );
    described(frame, "One frame of an event stream.")
}

fn joined() -> Value {
    let output = object(
        &["index", "type", "text"],
        json!({ "index": count(0), "type": { "type": "string", "const": "text" }, "text": text() }),
    );
    let call = object(
        &["call_id", "name", "arguments"],
        json!({
            "call_id": text(),
            "name": text(),
            "arguments": described(text(), "As the provider sent it; usually JSON."),
        }),
    );
    let joined = object(
        &["outputs", "tool_calls"],
        json!({
            "outputs": { "type": "array", "items": output },
            "tool_calls": { "type": "array", "items": call },
        }),
    );
    described(joined, "What the deltas of an execution without an `output.result` give together.")
}

fn any_result() -> Value {
    json!({
        "description": "The last `output.result`, any JSON; else `Joined`; absent where there was no output.",
    })
}

fn snapshot() -> Value {
    object(
        &["execution_id", "status", "created_at", "updated_at", "last_sequence", "usage", "attempts"],
        json!({
            "execution_id": id(),
            "status": schema("Status"),
            "created_at": time(),
            "updated_at": time(),
            "last_sequence": count(0),
            "usage": list("UsageFact"),
            "attempts": list("Attempt"),
            "target": schema("Target"),
            "stop_reason": stop_reason(),
            "error": schema("Error"),
            "result": any_result(),
            "artifacts": list("Artifact"),
        }),
    )
}

/// A snapshot as a list shows it.
fn entry() -> Value {
    let mut entry = snapshot();
    if let Some(members) = entry["properties"].as_object_mut() {
        members.remove("result");
        members.remove("artifacts");
        members.insert(
            "ability".to_owned(),
            described(text(), "Absent for executions that were created before it was kept."),
        );
    }
    entry
}

fn result() -> Value {
    object(
        &["execution_id", "artifacts", "usage"],
        json!({
            "execution_id": id(),
            "target": schema("Target"),
            "result": any_result(),
            "artifacts": list("Artifact"),
            "usage": list("UsageFact"),
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every member of a rendered value stands in its schema, and every required one is rendered.
    #[track_caller]
    fn fits(name: &str, rendered: &str) {
        let schemas = all();
        let value: Value = serde_json::from_str(rendered).unwrap();
        let members = value.as_object().unwrap();
        let known = schemas[name]["properties"].as_object().unwrap();
        for member in members.keys() {
            assert!(known.contains_key(member), "{name} has no member {member}: {rendered}");
        }
        for required in schemas[name]["required"].as_array().unwrap() {
            assert!(members.contains_key(required.as_str().unwrap()), "{name} lacks {required}: {rendered}");
        }
    }

    #[test]
    fn what_is_rendered_by_hand_is_what_is_described() {
        use sealog_events::json::{event_json, result_json, snapshot_json};
        use sealog_events::{
            Artifact, ErrorFact, Event, EventBody, ExecutionId, Quantity, Target, Timestamp, UsageFact,
            materialize::materialize,
        };
        let id = ExecutionId::from_random([7; 16]);
        let target = Target { provider: "p".to_owned(), model: "m".to_owned() };
        let error = ErrorFact::new(PortableCode::RateLimited, "m", true).with_provider_code("429");
        let artifact = Artifact {
            uri: "u".to_owned(),
            media_type: Some("m".to_owned()),
            name: Some("n".to_owned()),
            expires_at: Some("e".to_owned()),
        };
        let fact = UsageFact {
            unit: "request".to_owned(),
            quantity: Quantity::new(1.0).unwrap(),
            source: UsageSource::Runtime,
            complete: Some(true),
        };
        fits("Artifact", &only_entry(&snapshot_json, id, &artifact, &fact, "artifacts"));
        fits("UsageFact", &only_entry(&snapshot_json, id, &artifact, &fact, "usage"));
        let bodies = [
            EventBody::Accepted,
            EventBody::RouteSelected { target: target.clone(), attempt: 1 },
            EventBody::RouteAttemptFailed { target: target.clone(), attempt: 1, error: error.clone() },
            EventBody::OutputDelta { output_index: 0, delta: "d".to_owned() },
            EventBody::ToolCallStarted { call_id: "c".to_owned(), name: "n".to_owned() },
            EventBody::ToolCallArgumentsDelta { call_id: "c".to_owned(), delta: "d".to_owned() },
            EventBody::UsageReported { facts: vec![fact.clone()] },
            EventBody::Completed { target, stop_reason: Some(sealog_events::StopReason::Stop) },
            EventBody::Failed { error: error.clone(), cancelled: true },
        ];
        for body in bodies {
            let event = Event { sequence: 1, time: Timestamp(0), body };
            fits("Event", &event_json(id, &event));
            let snapshot = materialize(id, Timestamp(0), [&event]);
            fits("Snapshot", &snapshot_json(&snapshot));
            fits("Result", &result_json(&snapshot));
        }
        fits("Error", &sealog_events::json::error_json(&error));
    }

    /// The only entry of a list of a rendered snapshot.
    fn only_entry(
        render: &dyn Fn(&sealog_events::Snapshot) -> String,
        id: sealog_events::ExecutionId,
        artifact: &sealog_events::Artifact,
        fact: &sealog_events::UsageFact,
        name: &str,
    ) -> String {
        let mut snapshot = sealog_events::materialize::materialize(id, sealog_events::Timestamp(0), []);
        snapshot.artifacts = Some(vec![artifact.clone()]);
        snapshot.usage = vec![fact.clone()];
        let value: Value = serde_json::from_str(&render(&snapshot)).unwrap();
        value[name][0].to_string()
    }

    #[test]
    fn derived_schemas_are_components() {
        let schemas = derived();
        for name in [
            "RuntimeInfo",
            "ProviderManifest",
            "ModelManifest",
            "ExecutionRequest",
            "Part",
            "Submission",
            "Modality",
        ] {
            assert!(schemas.contains_key(name), "{name}");
        }
        assert!(!Value::Object(schemas).to_string().contains("$defs"));
    }
}
