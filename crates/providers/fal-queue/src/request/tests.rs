use sealog_events::PortableCode;
use serde_json::{Value, json};

use super::*;

fn sent(input: Value, extensions: Value) -> Result<Value, PortableCode> {
    let request = json!({"ability": "a", "input": input, "extensions": extensions}).to_string();
    let request = ExecutionRequest::parse(request.as_bytes()).unwrap().request;
    let body = body(&request).map_err(|failure| failure.code)?;
    Ok(serde_json::from_slice(&body).unwrap())
}

#[test]
fn texts_and_json_are_the_lines_of_the_prompt() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let value = |value: Value| json!({"type": "json", "value": value});
    let input = json!([text("a"), value(json!(null)), value(json!(false)), value(json!(0)), text("b")]);
    assert_eq!(sent(input, json!({})), Ok(json!({"prompt": "a\nnull\nfalse\n0\nb"})));
    assert_eq!(sent(json!([text("")]), json!({"fal": {"input": {"seed": 7}}})), Ok(json!({"seed": 7})));
    let ours = json!({"fal": {"input": {"prompt": "other", "steps": 4}}});
    assert_eq!(sent(json!([text("a")]), ours), Ok(json!({"prompt": "a", "steps": 4})));
}

#[test]
fn images_stand_beside_the_prompt() {
    let image = |at: u32| json!({"type": "image", "uri": format!("https://example.com/{at}.png")});
    assert_eq!(sent(json!([image(1)]), json!({})), Ok(json!({"image_url": "https://example.com/1.png"})));
    let two = json!({"image_urls": ["https://example.com/1.png", "https://example.com/2.png"]});
    assert_eq!(sent(json!([image(1), image(2)]), json!({})), Ok(two));
    for kind in ["audio", "video", "file"] {
        let input = json!([{"type": kind, "uri": "https://example.com/x"}]);
        assert_eq!(sent(input, json!({})), Err(PortableCode::CapabilityUnavailable));
    }
}

#[test]
fn an_extension_of_another_shape_is_invalid() {
    for wrong in [json!(1), json!({"request": {}}), json!({"input": []})] {
        let text = json!([{"type": "text", "text": "a"}]);
        assert_eq!(sent(text, json!({ "fal": wrong })), Err(PortableCode::InvalidRequest));
    }
}

#[test]
fn a_conversation_is_more_than_a_prompt() {
    let conversation = json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": "a"}]}]});
    let text = json!([{"type": "text", "text": "a"}]);
    let extensions = json!({ "conversation": conversation });
    assert_eq!(sent(text, extensions), Err(PortableCode::CapabilityUnavailable));
}
