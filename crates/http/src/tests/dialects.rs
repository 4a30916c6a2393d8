//! The front doors: what the clients of other model APIs get to see of an execution.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::node::{Node, PLAIN, Setup};

const JSON: (&str, &str) = ("content-type", "application/json");

fn chat(members: Value) -> Value {
    let mut body = json!({"model": "model-alpha", "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

fn messages(members: Value) -> Value {
    let mut body = chat(json!({"max_tokens": 100}));
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

fn responses(members: Value) -> Value {
    let mut body = json!({"model": "model-alpha", "input": "hi"});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

/// What the mock is told to do.
fn told(mock: Value) -> Value {
    json!({"extensions": {"mock": mock}})
}

struct Got {
    status: u16,
    headers: http::HeaderMap,
    text: String,
}

impl Got {
    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json; charset=utf-8", "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }

    /// Event and data of every frame.
    #[track_caller]
    fn frames(&self) -> Vec<(Option<String>, String)> {
        assert_eq!(self.status, 200, "{}", self.text);
        assert_eq!(self.headers["content-type"], "text/event-stream; charset=utf-8");
        assert!(self.text.ends_with("\n\n"));
        let blocks = self.text.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
        blocks
            .map(|block| {
                let (event, data) = match block.split_once('\n') {
                    Some((event, data)) => (Some(event.strip_prefix("event: ").unwrap().to_owned()), data),
                    None => (None, block),
                };
                (event, data.strip_prefix("data: ").unwrap().to_owned())
            })
            .collect()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Node {
    async fn ask(&self, path: &str, body: &Value, key: Option<&str>) -> Got {
        let mut headers = vec![JSON];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        let (status, headers, text) = self.post(path, &headers, &body.to_string()).await;
        Got { status: status.as_u16(), headers, text }
    }

    async fn look(&self, path: &str) -> Got {
        let (status, headers, text) = self.get(path).await;
        Got { status: status.as_u16(), headers, text }
    }
}

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

#[tokio::test]
async fn a_completion_of_the_mock() {
    let node = Node::new(Setup::default());
    for model in ["provider-mock/model-alpha", "model-alpha", "text-generation"] {
        let got = node.ask(CHAT, &chat(json!({ "model": model })), None).await;
        let completion = got.json();
        assert_eq!(completion["choices"][0]["message"]["content"], "hello from mock");
        assert_eq!(completion["choices"][0]["finish_reason"], "stop");
        assert_eq!((&completion["object"], &completion["model"]), (&json!("chat.completion"), &json!(model)));
        assert_eq!(completion["usage"]["total_tokens"], 4);
        // The same execution in our own API.
        let id = got.header("sealog-execution-id").unwrap();
        assert_eq!(completion["id"], format!("chatcmpl-{}", id.replace('-', "")));
        let snapshot = node.look(&format!("/v1/executions/{id}")).await.json();
        assert_eq!(snapshot["target"], json!({"provider": "provider-mock", "model": "model-alpha"}));
    }
    let streamed = chat(json!({"stream": true, "stream_options": {"include_usage": true}}));
    let frames = node.ask(CHAT, &streamed, None).await.frames();
    assert_eq!(frames.len(), 7);
    assert!(frames[1].1.contains(r#""content":"hello""#) && frames[5].1.contains(r#""total_tokens":4"#));
    assert_eq!(frames[6].1, "[DONE]");
}

#[tokio::test]
async fn a_message_of_the_mock() {
    let node = Node::new(Setup::default());
    let message = node.ask(MESSAGES, &messages(json!({})), None).await.json();
    assert_eq!(message["content"], json!([{"type": "text", "text": "hello from mock"}]));
    assert_eq!(
        (&message["stop_reason"], &message["usage"]["output_tokens"]),
        (&json!("end_turn"), &json!(3))
    );
    let call = json!({"chunks": 0, "tool_calls": [{"call_id": "c1", "name": "f", "arguments": "{\"a\":1}"}]});
    let calling = messages(json!({"sealog": told(call)}));
    let message = node.ask(MESSAGES, &calling, None).await.json();
    let expected = json!([{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]);
    assert_eq!((&message["content"], &message["stop_reason"]), (&expected, &json!("tool_use")));
    let mut calling = calling;
    calling["stream"] = json!(true);
    let frames = node.ask(MESSAGES, &calling, None).await.frames();
    let events: Vec<&str> = frames.iter().map(|frame| frame.0.as_deref().unwrap()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(events, expected);
}

/// RM-33: as one object and in the stream.
#[tokio::test]
async fn why_an_answer_ended_is_what_its_provider_said() {
    let node = Node::new(Setup::default());
    for (said, [finish, response, message]) in [
        ("stop", ["stop", "completed", "end_turn"]),
        ("length", ["length", "max_output_tokens", "max_tokens"]),
        ("content_filter", ["content_filter", "content_filter", "refusal"]),
        ("refusal", ["content_filter", "content_filter", "refusal"]),
        ("stop_sequence", ["stop", "completed", "stop_sequence"]),
        ("pause_turn", ["stop", "completed", "pause_turn"]),
        ("context_window", ["length", "max_output_tokens", "model_context_window_exceeded"]),
        ("other", ["stop", "completed", "end_turn"]),
    ] {
        let told = json!({"sealog": told(json!({"stop_reason": said}))});
        let streamed = |mut body: Value| {
            body["stream"] = json!(true);
            body
        };
        let completion = node.ask(CHAT, &chat(told.clone()), None).await.json();
        assert_eq!(completion["choices"][0]["finish_reason"], finish);
        let text = node.ask(CHAT, &streamed(chat(told.clone())), None).await.text;
        assert!(text.contains(&format!(r#""finish_reason":"{finish}""#)), "{text}");
        let answer = node.ask(RESPONSES, &responses(told.clone()), None).await.json();
        let reason = answer["incomplete_details"]["reason"].as_str();
        assert_eq!(reason.unwrap_or(answer["status"].as_str().unwrap()), response);
        let frames = node.ask(RESPONSES, &streamed(responses(told.clone())), None).await.frames();
        let last: Value = serde_json::from_str(&frames.last().unwrap().1).unwrap();
        assert_eq!(last["response"]["status"], answer["status"]);
        assert_eq!(last["response"]["incomplete_details"], answer["incomplete_details"]);
        let object = node.ask(MESSAGES, &messages(told.clone()), None).await.json();
        assert_eq!(object["stop_reason"], message);
        let text = node.ask(MESSAGES, &streamed(messages(told)), None).await.text;
        assert!(text.contains(&format!(r#""stop_reason":"{message}""#)), "{text}");
    }
}

#[tokio::test]
async fn a_background_response_is_read_later_and_its_stream_goes_on_anywhere() {
    let node = Node::new(Setup::default());
    let created = node.ask(RESPONSES, &responses(json!({"background": true})), None).await;
    let id = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!((&created.json()["status"], &created.json()["background"]), (&json!("queued"), &json!(true)));
    let execution = created.header("sealog-execution-id").unwrap().to_owned();
    node.finished(sealog_events::ExecutionId::parse(&execution).unwrap()).await;

    let path = format!("{RESPONSES}/{id}");
    let response = node.look(&path).await.json();
    assert_eq!(response["output"][0]["content"][0]["text"], "hello from mock");
    assert_eq!((&response["status"], &response["model"]), (&json!("completed"), &json!("model-alpha")));
    assert_eq!((&response["instructions"], &response["tools"]), (&Value::Null, &json!([])));
    let whole = node.look(&format!("{path}?stream=true")).await;
    let frames = whole.frames();
    assert_eq!(frames.first().unwrap().0.as_deref(), Some("response.created"));
    assert_eq!(frames.last().unwrap().0.as_deref(), Some("response.completed"));
    let last: Value = serde_json::from_str(&frames.last().unwrap().1).unwrap();
    assert_eq!(last["response"], response);
    for after in 0..frames.len() {
        let rest = node.look(&format!("{path}?stream=true&starting_after={after}")).await;
        let expected = frames[after + 1..].to_vec();
        let got = if rest.text.is_empty() { Vec::new() } else { rest.frames() };
        assert_eq!(got, expected, "{after}");
    }
    for wrong in ["stream=1", "stream=true&starting_after=-1", "starting_after=x", "starting_after="] {
        let refused = node.look(&format!("{path}?{wrong}")).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("invalid_request")));
    }
}

#[tokio::test]
async fn a_stream_and_a_later_look_at_it_are_the_same_bytes() {
    let node = Node::new(Setup::default());
    let live = node.ask(RESPONSES, &responses(json!({"stream": true})), None).await;
    let execution = live.header("sealog-execution-id").unwrap().replace('-', "");
    let later = node.look(&format!("{RESPONSES}/resp_{execution}?stream=true")).await;
    assert_eq!(live.text, later.text);
    let waited = node.ask(RESPONSES, &responses(json!({})), None).await.json();
    assert_eq!((&waited["status"], &waited["background"]), (&json!("completed"), &json!(false)));
}

#[tokio::test]
async fn only_a_response_is_one() {
    let node = Node::new(Setup::default());
    let chat = node.ask(CHAT, &chat(json!({})), None).await;
    let other = chat.header("sealog-execution-id").unwrap().replace('-', "");
    let own = node.submit(PLAIN).await.to_string().replace('-', "");
    for id in [other.as_str(), own.as_str(), "00000000000040008000000000000000", "x", ""] {
        for got in [
            node.look(&format!("{RESPONSES}/resp_{id}")).await,
            node.ask(&format!("{RESPONSES}/resp_{id}/cancel"), &json!({}), None).await,
        ] {
            assert_eq!(
                (got.status, &got.json()["error"]["code"]),
                (404, &json!("response_not_found")),
                "{id}"
            );
        }
    }
}

#[tokio::test]
async fn a_response_can_be_cancelled_once_and_again() {
    let node = Node::new(Setup::default());
    let stalling = responses(json!({"background": true, "sealog": told(json!({"stall_after": 1}))}));
    let id = node.ask(RESPONSES, &stalling, None).await.json()["id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let cancelled = node.ask(&format!("{RESPONSES}/{id}/cancel"), &json!({}), None).await.json();
        assert_eq!((&cancelled["id"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    }
}

#[tokio::test]
async fn failures_are_the_dialects_errors_with_their_status() {
    let node = Node::new(Setup::default());
    let failing = |code: &str, retryable: bool, after: u32| json!({"sealog": told(json!({"fail_after": after, "fail_code": code, "fail_retryable": retryable}))});
    for (code, status, retryable) in [
        ("rate_limited", 429, true),
        ("provider_unavailable", 503, false),
        ("provider_protocol_error", 502, false),
        ("deadline_exceeded", 504, false),
        ("invalid_request", 400, false),
        ("capability_unavailable", 400, false),
    ] {
        for stream in [false, true] {
            let mut request = chat(failing(code, retryable, 0));
            request["stream"] = json!(stream);
            let got = node.ask(CHAT, &request, None).await;
            assert_eq!((got.status, &got.json()["error"]["code"]), (status, &json!(code)));
            assert_eq!(got.header("x-should-retry"), Some(if retryable { "true" } else { "false" }));
            let mut request = messages(failing(code, retryable, 0));
            request["stream"] = json!(stream);
            let got = node.ask(MESSAGES, &request, None).await;
            assert_eq!((got.status, &got.json()["type"]), (status, &json!("error")));
            let mut request = responses(failing(code, retryable, 0));
            request["stream"] = json!(stream);
            assert_eq!(node.ask(RESPONSES, &request, None).await.status, status);
        }
    }
    // Behind output the stream says it; it is not a retry any more.
    let mut request = chat(failing("rate_limited", true, 1));
    request["stream"] = json!(true);
    let frames = node.ask(CHAT, &request, None).await.frames();
    assert!(frames.last().unwrap().1.contains("rate_limited"), "{frames:?}");
    let mut request = messages(failing("rate_limited", true, 1));
    request["stream"] = json!(true);
    let frames = node.ask(MESSAGES, &request, None).await.frames();
    assert_eq!(frames.last().unwrap().0.as_deref(), Some("error"));
    let mut request = responses(failing("rate_limited", true, 1));
    request["stream"] = json!(true);
    let frames = node.ask(RESPONSES, &request, None).await.frames();
    assert_eq!(frames.last().unwrap().0.as_deref(), Some("response.failed"));
    let got = node.ask(CHAT, &chat(failing("rate_limited", true, 1)), None).await;
    assert_eq!((got.status, got.header("x-should-retry")), (429, Some("false")));
}

#[tokio::test]
async fn what_is_refused_makes_no_execution() {
    let node = Node::new(Setup::default());
    let refused = async |path: &str, body: Value, status: u16, member: Value| {
        let got = node.ask(path, &body, None).await;
        assert_eq!((got.status, got.header("sealog-execution-id")), (status, None), "{}", got.text);
        if path != MESSAGES {
            assert_eq!(got.json()["error"]["param"], member, "{}", got.text);
        } else {
            assert_eq!(got.json()["type"], "error");
        }
    };
    for path in [CHAT, MESSAGES] {
        refused(path, messages(json!({"model": "nobody"})), 404, json!("model")).await;
        refused(path, messages(json!({"temperature": 9})), 400, json!("temperature")).await;
        refused(path, messages(json!({"whatever": 9})), 400, Value::Null).await;
    }
    refused(CHAT, chat(json!({"n": 2})), 400, json!("n")).await;
    refused(RESPONSES, responses(json!({"model": "x"})), 404, json!("model")).await;
    let earlier = responses(json!({"previous_response_id": "resp_1"}));
    refused(RESPONSES, earlier, 400, json!("previous_response_id")).await;
    refused(CHAT, json!([]), 400, Value::Null).await;
    for path in [CHAT, MESSAGES, RESPONSES] {
        let (status, _, text) = node.post(path, &[("content-type", "text/plain")], "{}").await;
        assert_eq!(status, 400, "{text}");
        let large = format!("{{\"model\":\"{}\"}}", "x".repeat(1 << 20));
        let (status, _, text) = node.post(path, &[JSON], &large).await;
        assert_eq!(status, 400, "{text}");
        let keys = [JSON, ("idempotency-key", "a"), ("idempotency-key", "b")];
        assert_eq!(node.post(path, &keys, &messages(json!({})).to_string()).await.0, 400);
    }
    // The mock has no tools and takes no images, so nobody can do it; that is an execution that failed.
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    let got = node.ask(CHAT, &chat(json!({ "tools": tools })), None).await;
    assert_eq!((got.status, &got.json()["error"]["code"]), (400, &json!("capability_unavailable")));
    assert!(got.header("sealog-execution-id").is_some());
}

#[tokio::test]
async fn an_idempotency_key_is_honoured() {
    let node = Node::new(Setup::default());
    let body = chat(json!({}));
    let first = node.ask(CHAT, &body, Some("k")).await;
    let again = node.ask(CHAT, &body, Some("k")).await;
    assert_eq!(first.text, again.text);
    let other = node.ask(CHAT, &chat(json!({"seed": 1})), Some("k")).await;
    assert_eq!((other.status, &other.json()["error"]["code"]), (400, &json!("invalid_request")));
    // The same request streamed is another one, and so is the same text in another dialect.
    assert_eq!(node.ask(MESSAGES, &messages(json!({})), Some("k")).await.status, 400);
    // A failure is what the key answers from now on, so nobody is told to try again.
    let failing = json!({"sealog": told(json!({"fail_after": 0, "fail_code": "rate_limited", "fail_retryable": true}))});
    for (path, body) in [
        (CHAT, chat(failing.clone())),
        (MESSAGES, messages(failing.clone())),
        (RESPONSES, responses(failing)),
    ] {
        let without = node.ask(path, &body, None).await;
        assert_eq!((without.status, without.header("x-should-retry")), (429, Some("true")));
        let (first, again) =
            (node.ask(path, &body, Some(path)).await, node.ask(path, &body, Some(path)).await);
        assert_eq!((first.status, first.header("x-should-retry")), (429, Some("false")));
        assert_eq!(first.header("sealog-execution-id"), again.header("sealog-execution-id"));
        assert_eq!((again.status, again.text), (429, first.text));
    }
    let live = node.ask(RESPONSES, &responses(json!({"stream": true})), Some("s")).await;
    assert_eq!(node.ask(RESPONSES, &responses(json!({"stream": true})), Some("s")).await.text, live.text);
}

/// Each official client finds the id of its request where it looks for it.
#[tokio::test]
async fn the_id_of_a_request_stands_where_the_client_looks() {
    let node = Node::new(Setup::default());
    for (path, body, is_theirs) in [
        (CHAT, chat(json!({})), false),
        (RESPONSES, responses(json!({})), false),
        (MESSAGES, messages(json!({})), true),
        ("/v1/messages/count_tokens", json!({}), true),
        ("/v1/embeddings", json!({}), false),
    ] {
        for body in [body, json!({})] {
            let got = node.ask(path, &body, None).await;
            let id = got.header("x-request-id").unwrap();
            assert_eq!(got.header("request-id"), is_theirs.then_some(id), "{path} {}", got.status);
        }
    }
}

#[tokio::test]
async fn models_are_listed_for_every_client() {
    let node = Node::new(Setup::default());
    let list = node.look("/v1/models").await.json();
    let ids: Vec<&str> = list["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["provider-mock/model-alpha", "model-alpha", "text-generation"]);
}

#[tokio::test]
async fn a_failing_store_breaks_the_stream_and_is_no_end() {
    let node = Node::new(Setup::default());
    node.store.watch_events_max.store(4, Ordering::SeqCst);
    let listening = node.listen().await;
    let mut client = listening.connect().await;
    let body = chat(json!({"stream": true})).to_string();
    client.send(super::node::request("POST", CHAT, "content-type: application/json\r\n", &body)).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    head.check_fixed_headers();
    assert!(client.chunks().await.is_err(), "a clean end");
    let (head, _) = client_of(&listening, &chat(json!({})).to_string()).await;
    assert_eq!(head.status, 500);
}

async fn client_of(listening: &super::node::Listening, body: &str) -> (crate::testing::Head, String) {
    let mut client = listening.connect().await;
    client.ask(super::node::request("POST", CHAT, "content-type: application/json\r\n", body)).await
}

#[tokio::test]
async fn a_client_that_goes_away_ends_nothing() {
    let mut listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    let stalling = responses(json!({"stream": true, "sealog": told(json!({"stall_after": 1}))}));
    client
        .send(super::node::request(
            "POST",
            RESPONSES,
            "content-type: application/json\r\n",
            &stalling.to_string(),
        ))
        .await;
    let head = client.head().await;
    let id = head.header("sealog-execution-id").unwrap().to_owned();
    drop(client);
    listening.node.watch_dropped.recv().await;
    let snapshot = listening.node.look(&format!("/v1/executions/{id}")).await.json();
    assert_eq!(snapshot["status"], "running");
    let path = format!("{RESPONSES}/resp_{}/cancel", id.replace('-', ""));
    assert_eq!(listening.node.ask(&path, &json!({}), None).await.json()["status"], "cancelled");
}

#[tokio::test]
async fn a_deadline_that_runs_out_is_a_timeout() {
    let node = Node::new(Setup::default());
    let sealog = json!({"deadline_ms": 1, "extensions": {"mock": {"stall_after": 0}}});
    let got = node.ask(CHAT, &chat(json!({"sealog": sealog, "stream": true})), None).await;
    assert_eq!((got.status, &got.json()["error"]["code"]), (504, &json!("deadline_exceeded")));
}

#[tokio::test]
async fn a_silent_stream_has_its_head_and_then_its_error() {
    let server = crate::ServerOptions { heartbeat_ms: 1, ..crate::ServerOptions::default() };
    let listening = Node::new(Setup { server, ..Setup::default() }).listen().await;
    let mut client = listening.connect().await;
    let stalling = messages(json!({"stream": true, "sealog": told(json!({"stall_after": 0}))}));
    let json = "content-type: application/json\r\n";
    client.send(super::node::request("POST", MESSAGES, json, &stalling.to_string())).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(client.chunk().await.unwrap(), crate::SSE_HEARTBEAT);
    let id = head.header("sealog-execution-id").unwrap().to_owned();
    let cancel = format!("/v1/executions/{id}/cancel");
    assert_eq!(listening.node.ask(&cancel, &json!({}), None).await.status, 202);
    let rest = client.chunks().await.unwrap();
    let error = rest.split_terminator("\n\n").find(|frame| !frame.starts_with(':')).unwrap();
    assert!(error.starts_with("event: error\ndata: ") && error.contains("invalid_request_error"), "{error}");
}

#[tokio::test]
async fn a_model_is_found_by_every_name_of_the_list_however_its_slashes_come() {
    let node = Node::new(Setup::default());
    let listed = node.look("/v1/models").await.json();
    for entry in listed["data"].as_array().unwrap() {
        let name = entry["id"].as_str().unwrap();
        for path in [name.to_owned(), name.replace('/', "%2F"), name.replace('/', "%2f").replace('m', "%6D")]
        {
            let got = node.look(&format!("/v1/models/{path}")).await;
            assert_eq!((got.status, &got.json()), (200, entry), "{path}");
        }
    }
    for unknown in ["nobody", "nobody/model-alpha", "model-alpha/", "provider-mock%2", "%FF", "a//b"] {
        let got = node.look(&format!("/v1/models/{unknown}")).await;
        assert_eq!((got.status, got.header("x-should-retry")), (404, Some("false")), "{unknown}");
        assert_eq!(got.json()["error"]["code"], "model_not_found", "{unknown}");
        let versioned =
            http::Request::get(format!("/v1/models/{unknown}")).header("anthropic-version", "2023-06-01");
        let (status, _, body) = node.call(versioned.body(axum::body::Body::empty()).unwrap()).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status.as_u16(), &body["error"]["type"]), (404, &json!("not_found_error")), "{unknown}");
    }
}

#[tokio::test]
async fn what_a_dialect_has_and_a_node_does_not_is_refused_in_that_dialect() {
    let node = Node::new(Setup::default());
    let kept = node.ask(RESPONSES, &responses(json!({})), None).await.json();
    let response = format!("{RESPONSES}/{}", kept["id"].as_str().unwrap());
    for (method, path) in [
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/images/generations"),
        ("POST", "/v1/responses/input_tokens"),
        ("GET", "/v1/responses"),
        ("GET", &format!("{response}/input_items")),
        ("DELETE", &response),
        ("GET", CHAT),
        ("GET", "/v1/chat/completions/c"),
        ("DELETE", "/v1/models/model-alpha"),
        ("GET", "/v1/models/"),
        ("GET", "/v1/files"),
    ] {
        let request =
            http::Request::builder().method(method).uri(path).body(axum::body::Body::empty()).unwrap();
        let (status, headers, body) = node.call(request).await;
        assert_eq!(
            (status.as_u16(), &headers["x-should-retry"]),
            (404, &http::HeaderValue::from_static("false"))
        );
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&body["error"]["code"], &body["error"]["message"]),
            (&json!("endpoint_not_served"), &json!("This node does not serve this endpoint")),
            "{method} {path}"
        );
    }
    for (method, path) in [
        ("POST", "/v1/messages/count_tokens"),
        ("GET", "/v1/messages/batches"),
        ("GET", MESSAGES),
        ("POST", "/v1/complete"),
    ] {
        let (status, _, body) = match method {
            "GET" => node.get(path).await,
            _ => node.post(path, &[JSON], "{}").await,
        };
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status.as_u16(), &body["type"]), (404, &json!("error")), "{method} {path}");
        assert_eq!(body["error"]["type"], "not_found_error", "{method} {path}");
    }
    // It is still there.
    assert_eq!(node.look(&response).await.json()["id"], kept["id"]);
}
