//! Requests of other model APIs.

use sealog_dialects::Choice;
use sealog_events::Dialect;
use sealog_execution::Conversation;

/// The first byte chooses the dialect, the rest is the body. What is read is a conversation that meets its rules and
/// reads back from its own JSON, and nothing of it shows in a log.
pub(super) fn dialect_request(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let dialect = Dialect::ALL[usize::from(*choice) % Dialect::ALL.len()];
    let Ok(asked) = sealog_dialects::read(dialect, body) else { return };
    assert_eq!(asked.conversation.check(), Ok(()));
    let text = serde_json::to_string(&asked.conversation).expect("a conversation is JSON");
    let again = Conversation::parse(&text).expect("a conversation reads back");
    assert_eq!(serde_json::to_string(&again).expect("JSON"), text, "a conversation has one spelling");
    let (tools, modalities) = (asked.conversation.needs_tools(), asked.conversation.modalities());
    let request = asked.into_request(Choice { ability: "a".to_owned(), only: None });
    assert!(!request.input.is_empty() && (request.requirements.tools || !tools));
    assert!(modalities.iter().all(|modality| request.requirements.input_modalities.contains(modality)));
    assert_eq!(format!("{request:?}"), format!("ExecutionRequest {{ parts: {}, .. }}", request.input.len()));
}
