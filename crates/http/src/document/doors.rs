//! The model APIs of others, in front of the same executions. Their bodies are described where they come from; what of
//! them is honoured stands in docs/dialects.md.

use serde_json::{Value, json};

use super::{EVENTS, Operation};
use crate::Method;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        asks(
            "/v1/chat/completions",
            "createChatCompletion",
            "An execution asked for and answered in the form of the OpenAI chat API.",
            "What is honoured, ignored and refused stands in docs/dialects.md. `sealog-execution-id` names the execution.\n\
             Closing the connection cancels nothing.\n",
        ),
        asks(
            "/v1/responses",
            "createResponse",
            "An execution asked for and answered in the form of the OpenAI responses API.",
            "As `/v1/chat/completions`. With `background` the answer is the response as it stands, at once.\n",
        ),
        response(),
        cancel(),
        asks(
            "/v1/messages",
            "createMessage",
            "An execution asked for and answered in the form of the Anthropic messages API.",
            "As `/v1/chat/completions`.\n",
        ),
        Operation::get(
            "/v1/models",
            "listModels",
            "Everything that `model` may name, for the clients of all three APIs.",
        )
        .json(200, "The list.", anything())
        .dialect_errors(&[500]),
        Operation::get("/v1/models/{id}", "getModel", "One entry of the list.")
            .text_id_parameter(
                "A name as the list has it, its slashes as they are or escaped; the name of nothing is 404.",
            )
            .json(200, "The entry.", anything())
            .dialect_errors(&[404, 500]),
    ]
}

/// Frames have the form of the API that was asked.
fn one_event() -> Value {
    json!({ "type": "object", "description": "One frame of the stream." })
}

fn anything() -> Value {
    json!({ "type": "object" })
}

fn asks(path: &'static str, id: &str, summary: &str, about: &str) -> Operation {
    const ANSWER: &str = "The answer, or with `stream` its events.";
    Operation::new(Method::Post, path, id, summary)
        .about(about)
        .idempotency_key()
        .json_body(anything())
        .json(200, ANSWER, anything())
        .content(200, ANSWER, EVENTS, one_event())
        .dialect_errors(&[400, 404, 409, 429, 500, 502, 503, 504])
}

fn response() -> Operation {
    const ANSWER: &str = "The response, or its events.";
    Operation::get("/v1/responses/{id}", "getResponse", "A response as it stands, or its events.")
        .about(
            "The request is not kept: `instructions` and `tools` are empty. The same event has the same `sequence_number`\n\
             whenever the stream is read.\n",
        )
        .text_id_parameter("The id of a response; another text, or the id of no response, is 404.")
        .parameter("query", "stream", "Whether its events are asked for.", json!({ "type": "boolean" }))
        .parameter(
            "query",
            "starting_after",
            "Only events with a higher `sequence_number`.",
            json!({ "type": "integer", "minimum": 0 }),
        )
        .json(200, ANSWER, anything())
        .content(200, ANSWER, EVENTS, one_event())
        .dialect_errors(&[400, 404, 500, 503])
}

fn cancel() -> Operation {
    let summary = "Asks the response's execution to stop and waits until it has ended.";
    Operation::post("/v1/responses/{id}/cancel", "cancelResponse", summary)
        .text_id_parameter("The id of a response; another text, or the id of no response, is 404.")
        .json(200, "The response; one that had ended is as it was.", anything())
        .dialect_errors(&[400, 404, 500, 503])
}
