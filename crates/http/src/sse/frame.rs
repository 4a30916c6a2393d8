//! The bytes of one frame: the one place, used by the live stream and by offline replay alike.

/// The content type of an event stream.
pub const CONTENT_TYPE: &str = "text/event-stream; charset=utf-8";

/// What a silent stream sends: a comment, so that no client takes it for an event.
pub const HEARTBEAT: &str = ": heartbeat\n\n";

/// One frame, from `id:` to the blank line that dispatches it.
///
/// `data` is the event's JSON text on one line, as `sealog_events::json::event_json` writes it.
pub fn sse_frame(sequence: u64, type_name: &str, data: &str) -> String {
    debug_assert!(!data.contains(['\n', '\r']), "an event's JSON text is one line");
    format!("id: {sequence}\nevent: {type_name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_three_lines_and_a_blank_one() {
        assert_eq!(
            sse_frame(7, "execution.completed", r#"{"type":"execution.completed"}"#),
            "id: 7\nevent: execution.completed\ndata: {\"type\":\"execution.completed\"}\n\n"
        );
    }

    #[test]
    fn a_heartbeat_is_a_comment_that_ends_its_block() {
        assert!(HEARTBEAT.starts_with(':') && HEARTBEAT.ends_with("\n\n"));
    }
}
