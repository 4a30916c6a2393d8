//! Executions: submitting, looking, following, cancelling.

use sealog_engine::store::listing::ENTRIES_MAX;
use sealog_execution::request::NAME_LENGTH_MAX;
use serde_json::{Value, json};

use super::schemas::object;
use super::{Operation, Shared, schema};
use crate::cursor::CURSOR_MAX;

pub(super) fn operations() -> Vec<Operation> {
    vec![submit(), list(), snapshot(), events(), result(), cancel()]
}

fn submit() -> Operation {
    Operation::post("/v1/executions", "submitExecution", "Submit a request.")
        .about(
            "Checked in this order: content type, body size (1 MiB), `Idempotency-Key`, then the request itself. When\n\
             202 or 200 is answered the execution and its first event are durable. Capability problems are not HTTP\n\
             errors: the execution ends with `execution.failed`. With `Accept: text/event-stream` the answer is the\n\
             execution's event stream from sequence 1 instead of a submission. The body of a refused request is still\n\
             read, up to 2 MiB or 2 s.\n",
        )
        .idempotency_key()
        .json_body(schema("ExecutionRequest"))
        .events(200, "The key was known with the same request; or an event stream was asked for.")
        .json(200, "The key was known with the same request; or an event stream was asked for.", schema("Submission"))
        .json(202, "A new execution.", schema("Submission"))
        .shared(&[Shared::Invalid, Shared::Failed, Shared::Unavailable])
}

fn list() -> Operation {
    let page = object(
        &["data"],
        json!({
            "data": { "type": "array", "items": schema("Entry"), "maxItems": ENTRIES_MAX },
            "next": { "type": "string", "description": "Where there may be more: `after` of the next page." },
        }),
    );
    Operation::get("/v1/executions", "listExecutions", "The executions that are kept, the youngest first.")
        .about(
            "A page may be short or empty and still have a `next`: it ends at its number of entries, at its size, or after\n\
             a bounded number of executions was looked at. A place stays valid when its execution is gone. A query\n\
             member that is not known is 400.\n",
        )
        .parameter("query", "status", "Only executions of this status.", schema("Status"))
        .parameter(
            "query",
            "ability",
            "Only executions that were submitted for this ability.",
            json!({ "type": "string", "minLength": 1, "maxLength": NAME_LENGTH_MAX }),
        )
        .parameter(
            "query",
            "after",
            "Goes on behind a page: its `next`.",
            json!({
                "type": "string",
                "pattern": "^[0-9]{1,15}-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
            }),
        )
        .parameter(
            "query",
            "limit",
            "Most entries of the page; 20 if absent.",
            json!({ "type": "integer", "minimum": 1, "maximum": ENTRIES_MAX }),
        )
        .json(200, "A page.", page)
        .shared(&[Shared::Invalid, Shared::Failed])
}

fn of_execution(path: &'static str, id: &str, summary: &str) -> Operation {
    Operation::get(path, id, summary).id_parameter().shared(&[
        Shared::Invalid,
        Shared::NotFound,
        Shared::Failed,
        Shared::Unavailable,
    ])
}

fn snapshot() -> Operation {
    of_execution("/v1/executions/{id}", "getExecution", "The execution's events materialized.").json(
        200,
        "The snapshot.",
        schema("Snapshot"),
    )
}

fn cursor() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": CURSOR_MAX })
}

fn events() -> Operation {
    let summary = "The execution's durable events above a cursor, to its terminal event.";
    of_execution("/v1/executions/{id}/events", "followExecution", summary)
        .about(
            "Frames are exactly `id`, `event`, `data` and a blank line; `data` is the whole event on one line, as in the\n\
             schema `Event`; `id` is its `sequence`, `event` its `type`. The last event is `execution.completed` or\n\
             `execution.failed`; a cancelled execution ends with `execution.failed` and the status `cancelled`. A silent\n\
             stream carries a comment at least every 15 s. The transfer ends cleanly only after the terminal event,\n\
             or at once when there was none above the cursor; anything else breaks it. Closing it cancels nothing.\n\
             Where the journal was made from another one, a cursor above what it held of an unfinished execution is 400:\n\
             what the original went on to write is another history.\n",
        )
        .parameter("query", "after", "The cursor; wins over `Last-Event-ID`. Empty or absent is 0.", cursor())
        .parameter("header", "Last-Event-ID", "The cursor of a stream that is resumed.", cursor())
        .events(200, "The stream.")
}

fn result() -> Operation {
    let unfinished = object(&["status"], json!({ "status": schema("Status"), "error": schema("Error") }));
    of_execution("/v1/executions/{id}/result", "getResult", "The result of an execution that succeeded.")
        .json(200, "The result.", schema("Result"))
        .json(409, "It has not succeeded, or not yet.", unfinished)
}

fn cancel() -> Operation {
    let flat = |status: &str| object(&["status"], json!({ "status": { "type": "string", "const": status } }));
    Operation::post("/v1/executions/{id}/cancel", "cancelExecution", "Ask an active execution to stop.")
        .about("Body and content type are ignored.")
        .id_parameter()
        .json(202, "It was asked; the terminal event says what came of it.", flat("cancellation_requested"))
        .json(404, "Unknown, already ended, or of an earlier process.", flat("not_found"))
        .shared(&[Shared::Invalid, Shared::Failed, Shared::Unavailable])
}
