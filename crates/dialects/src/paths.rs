//! Whose a path is: which dialect's clients ask there, whether a node serves it or not.

use sealog_events::Dialect;

/// What the interfaces of others have below `/v1/`.
const OPENAI: [&str; 18] = [
    "assistants",
    "audio",
    "batches",
    "chat",
    "completions",
    "containers",
    "conversations",
    "embeddings",
    "evals",
    "fine_tuning",
    "images",
    "moderations",
    "realtime",
    "responses",
    "threads",
    "uploads",
    "vector_stores",
    "videos",
];
const ANTHROPIC: [&str; 2] = ["complete", "messages"];
/// In both; only one of the two says which version of it is meant.
const EITHER: [&str; 3] = ["files", "models", "skills"];

/// The dialect of a path, `None` for one that is the node's own or nobody's. `versioned`: the request has the header
/// `anthropic-version`.
pub fn dialect_of(path: &str, versioned: bool) -> Option<Dialect> {
    let name = path.strip_prefix("/v1/")?.split('/').next()?;
    if ANTHROPIC.contains(&name) || (EITHER.contains(&name) && versioned) {
        Some(Dialect::AnthropicMessages)
    } else if name == "responses" {
        Some(Dialect::OpenAiResponses)
    } else if OPENAI.contains(&name) || EITHER.contains(&name) {
        Some(Dialect::OpenAiChat)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, plain: Option<Dialect>, versioned: Option<Dialect>) {
        assert_eq!((dialect_of(path, false), dialect_of(path, true)), (plain, versioned), "{path}");
    }

    #[test]
    fn a_path_is_somebodys_or_nobodys() {
        let (chat, responses) = (Some(Dialect::OpenAiChat), Some(Dialect::OpenAiResponses));
        let messages = Some(Dialect::AnthropicMessages);
        for path in
            ["/v1/chat/completions", "/v1/embeddings", "/v1/completions", "/v1/audio/speech", "/v1/chat"]
        {
            check(path, chat, chat);
        }
        for path in ["/v1/responses", "/v1/responses/r/input_items", "/v1/responses/"] {
            check(path, responses, responses);
        }
        for path in ["/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches/b", "/v1/complete"] {
            check(path, messages, messages);
        }
        for path in ["/v1/models", "/v1/models/a/b", "/v1/files/f"] {
            check(path, chat, messages);
        }
        for path in [
            "",
            "/",
            "/v1",
            "/v1/",
            "/v1//models",
            "/v2/models",
            "/V1/models",
            "/models",
            "/v1/model",
            "/v1/modelsx",
            "/v1/executions/e",
            "/v1/runtime",
            "/v1/providers",
        ] {
            check(path, None, None);
        }
    }
}
