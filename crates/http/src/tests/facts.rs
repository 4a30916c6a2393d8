//! The public protocol's testable statements about HTTP, by their numbers.

use std::sync::atomic::Ordering;

use super::node::{Node, PLAIN, STALLING, Setup, check_error, get, id_in, post_json, request};
use crate::sse_frame;

/// Frames of a stream's text, without its comments.
fn frames(text: &str) -> Vec<(u64, String, serde_json::Value)> {
    assert!(text.ends_with("\n\n") || text.is_empty());
    let blocks = text.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    blocks
        .map(|block| {
            let lines: Vec<&str> = block.split('\n').collect();
            let [id, event, data] = lines.as_slice() else { panic!("not three lines: {block:?}") };
            let sequence = id.strip_prefix("id: ").unwrap().parse().unwrap();
            let type_name = event.strip_prefix("event: ").unwrap();
            let data = data.strip_prefix("data: ").unwrap();
            assert_eq!(format!("{block}\n\n"), sse_frame(sequence, type_name, data));
            (sequence, type_name.to_owned(), serde_json::from_str(data).unwrap())
        })
        .collect()
}

/// PA-20, PA-24, PA-25.
#[tokio::test]
async fn facts_43_the_mock_run_over_sse() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    let (head, body) = client.ask(post_json(PLAIN)).await;
    assert_eq!(head.status, 202);
    let submission: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(submission["status"], "accepted");
    assert_eq!(submission["idempotent_replay"], false);
    assert_eq!(submission["created_at"], "2026-01-01T00:00:00.000Z");
    let id = id_in(&body);

    client.send(get(&format!("/v1/executions/{id}/events"))).await;
    let head = client.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(head.header("connection"), Some("keep-alive"));
    head.check_fixed_headers();
    let events = frames(&client.chunks().await.unwrap());
    assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), (1..=7).collect::<Vec<u64>>());
    assert_eq!(events[0].1, "execution.accepted");
    assert_eq!(events[6].1, "execution.completed");
    for (sequence, type_name, data) in &events {
        assert_eq!(data["sequence"], *sequence);
        assert_eq!(data["type"], type_name.as_str());
        assert_eq!(data["execution_id"], id.as_str());
    }

    let (head, body) = client.ask(get(&format!("/v1/executions/{id}"))).await;
    assert_eq!(head.status, 200);
    let snapshot: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&snapshot["last_sequence"], &snapshot["status"]), (&7.into(), &"succeeded".into()));
    let (head, body) = client.ask(get(&format!("/v1/executions/{id}/result"))).await;
    assert_eq!(head.status, 200);
    let result: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(result["result"]["outputs"][0]["text"], "hello from mock");
    assert_eq!(result["artifacts"], serde_json::json!([]));
    assert_eq!(result["target"]["provider"], "provider-mock");

    let (head, body) = client.ask(request("POST", &format!("/v1/executions/{id}/cancel"), "", "")).await;
    assert_eq!((head.status, body.as_str()), (404, r#"{"status":"not_found"}"#), "it has ended");
}

/// PA-15.
#[tokio::test]
async fn facts_43_the_same_stream_as_the_answer_to_a_submission() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    let headers = "content-type: application/json\r\naccept: application/json, Text/Event-Stream\r\nidempotency-key: k\r\n";
    let mut streams = Vec::new();
    for _new_then_replay in 0..2 {
        client.send(request("POST", "/v1/executions", headers, PLAIN)).await;
        let head = client.head().await;
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), Some("text/event-stream; charset=utf-8"));
        streams.push(client.chunks().await.unwrap());
    }
    assert_eq!(frames(&streams[0]).len(), 7);
    assert_eq!(streams[0], streams[1]);
    client.send(request("POST", "/v1/executions", &format!("{headers}connection: close\r\n"), PLAIN)).await;
    assert_eq!(client.head().await.header("connection"), Some("close"));
}

/// PA-7, PA-18.
#[tokio::test]
async fn facts_44_requests_that_are_at_fault() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    let plain_text = request("POST", "/v1/executions", "content-type: text/plain\r\n", PLAIN);
    let (head, body) = client.ask(plain_text).await;
    check_error(&head, &body, 400, "invalid_request");
    for path in ["/v1/executions/%ZZ", "/v1/executions/%ZZ/events", "/v1/executions/%ZZ/result"] {
        let (head, body) = client.ask(get(path)).await;
        check_error(&head, &body, 400, "invalid_request");
    }
    let (head, body) = client.ask(request("POST", "/v1/executions/%ZZ/cancel", "", "")).await;
    check_error(&head, &body, 400, "invalid_request");
    let too_large = format!("{PLAIN}{}", " ".repeat(1_048_577 - PLAIN.len()));
    let (head, body) = client.ask(post_json(&too_large)).await;
    check_error(&head, &body, 400, "invalid_request");
    let just_fits = format!("{PLAIN}{}", " ".repeat(1_048_576 - PLAIN.len()));
    assert_eq!(client.ask(post_json(&just_fits)).await.0.status, 202);
}

/// PA-6, PA-22.
#[tokio::test]
async fn facts_46_a_failing_store_is_reported_without_its_cause() {
    let node = Node::new(Setup::default());
    let id = node.submit(PLAIN).await;
    node.finished(id).await;
    node.store.broken.store(true, Ordering::SeqCst);
    for path in [
        format!("/v1/executions/{id}"),
        format!("/v1/executions/{id}/events"),
        format!("/v1/executions/{id}/result"),
    ] {
        let (status, headers, body) = node.get(&path).await;
        assert_eq!(status, 500, "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let error: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(error["error"]["code"], "internal_error");
        assert_eq!(error["error"]["retryable"], false);
        assert!(!body.contains("has failed"), "the store's own words: {body}");
    }
    let (status, _, body) = node.get("/v1/runtime").await;
    assert_eq!(status, 503);
    let info: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(info["state"], "unavailable");
    assert_eq!(info["provider_count"], 1);
    let (status, _, body) = node.get("/readyz").await;
    assert_eq!((status.as_u16(), body.as_str()), (503, r#"{"ready":false,"reasons":["store_unavailable"]}"#));
    let json = [("content-type", "application/json")];
    let (status, headers, body) = node.post("/v1/executions", &json, PLAIN).await;
    assert_eq!(status, 500, "{body}");
    assert!(!headers.contains_key("retry-after"));
}

/// PA-27.
#[tokio::test]
async fn facts_47_a_store_that_fails_under_a_stream_breaks_it_and_nothing_else() {
    let listening = Node::new(Setup::default()).listen().await;
    let id = listening.node.submit(PLAIN).await;
    listening.node.store.watch_events_max.store(2, Ordering::SeqCst);
    let mut client = listening.connect().await;
    client.send(get(&format!("/v1/executions/{id}/events"))).await;
    assert_eq!(client.head().await.status, 200);
    assert!(client.chunks().await.is_err(), "the body must not end cleanly");
    let (head, _) = listening.connect().await.ask(get("/v1/runtime")).await;
    assert_eq!(head.status, 200);
}

/// PA-21, PA-29.
#[tokio::test]
async fn facts_48_a_disconnect_ends_the_watch_and_not_the_execution() {
    let mut listening = Node::new(Setup::default()).listen().await;
    let id = listening.node.submit(STALLING).await;
    let mut client = listening.connect().await;
    client.send(get(&format!("/v1/executions/{id}/events"))).await;
    client.head().await;
    for _accepted_routed_and_two_deltas in 0..4 {
        client.chunk().await.unwrap();
    }
    drop(client);
    listening.node.watch_dropped.recv().await.unwrap();
    let snapshot = listening.node.engine.snapshot(id).await.unwrap().unwrap();
    assert_eq!(snapshot.status.as_str(), "running");
    let mut client = listening.connect().await;
    let (head, body) = client.ask(request("POST", &format!("/v1/executions/{id}/cancel"), "", "")).await;
    assert_eq!((head.status, body.as_str()), (202, r#"{"status":"cancellation_requested"}"#));
    listening.node.finished(id).await;
    let (head, body) = client.ask(get(&format!("/v1/executions/{id}/result"))).await;
    assert_eq!(head.status, 409);
    let refused: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&refused["status"], &refused["error"]["code"]), (&"cancelled".into(), &"cancelled".into()));
    assert_eq!(refused.as_object().unwrap().len(), 2);
}

/// PA-2, PA-3.
#[tokio::test]
async fn facts_51_every_answer_has_the_two_headers() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    let unknown = "/v1/executions/11111111-2222-4333-8444-555555555555";
    for (asked, status) in [
        (get("/v1/runtime"), 200),
        (get("/v1/providers"), 200),
        (get("/nowhere"), 404),
        (get(unknown), 404),
        (get(&format!("{unknown}/events")), 404),
        (get(&format!("{unknown}/result")), 404),
        (request("POST", &format!("{unknown}/cancel"), "", "{}"), 404),
        (request("DELETE", unknown, "", ""), 404),
        (request("OPTIONS", "*", "", ""), 404),
        (request("POST", "/v1/executions", "", "{}"), 400),
        (post_json("{"), 400),
        (post_json(PLAIN), 202),
    ] {
        let (head, body) = client.ask(&asked).await;
        assert_eq!(head.status, status, "{asked}{body}");
        head.check_fixed_headers();
        assert_eq!(head.header("content-type"), Some("application/json; charset=utf-8"));
    }
    client.send(request("HEAD", "/v1/runtime", "", "")).await;
    let head = client.head().await;
    assert_eq!(head.status, 404);
    head.check_fixed_headers();
    assert_eq!(client.ask(get("/v1/runtime")).await.0.status, 200, "a HEAD answer has no body");
}
