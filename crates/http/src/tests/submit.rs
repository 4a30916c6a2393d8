//! Submissions: the order of the checks, keys, refusals, and bodies that are too much.

use sealog_engine::EngineOptions;
use sealog_engine::store::StoreLimits;
use tokio::io::AsyncWriteExt;

use super::node::{Node, PLAIN, STALLING, Setup, check_error, get, id_in, post_json, request};
use crate::ServerOptions;

const JSON: (&str, &str) = ("content-type", "application/json");

/// PA-7.
#[tokio::test]
async fn the_content_type_starts_with_json_in_any_case() {
    let node = Node::new(Setup::default());
    for (content_type, status) in [
        ("application/json", 202),
        ("Application/JSON; charset=latin1", 202),
        ("application/jsonish", 202),
        ("text/json", 400),
        ("application/jso", 400),
        ("", 400),
    ] {
        let (found, _, body) = node.post("/v1/executions", &[("content-type", content_type)], PLAIN).await;
        assert_eq!(found, status, "{content_type:?}: {body}");
    }
    assert_eq!(node.post("/v1/executions", &[], PLAIN).await.0, 400);
}

/// PA-7.
#[tokio::test]
async fn a_key_has_1_to_256_utf16_units_and_stands_once() {
    let node = Node::new(Setup::default());
    let longest = "k".repeat(256);
    let astral = "\u{1F600}".repeat(128);
    for (key, status) in [
        (longest.as_str(), 202),
        (&"k".repeat(257), 400),
        (&astral, 202),
        (&format!("{astral}k"), 400),
        ("", 400),
        ("é", 202),
    ] {
        let (found, _, body) = node.post("/v1/executions", &[JSON, ("idempotency-key", key)], PLAIN).await;
        assert_eq!(found, status, "{} units: {body}", key.encode_utf16().count());
    }
    let twice = [JSON, ("idempotency-key", "a"), ("idempotency-key", "b")];
    assert_eq!(node.post("/v1/executions", &twice, PLAIN).await.0, 400);
    let listening = node.listen().await;
    let mut client = listening.connect().await;
    let head = format!(
        "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\nidempotency-key: ",
        PLAIN.len()
    );
    client.send([head.as_bytes(), b"\xff\xfe\r\n\r\n", PLAIN.as_bytes()].concat()).await;
    let (head, body) = client.answer().await;
    check_error(&head, &body, 400, "invalid_request");
}

/// PA-7, PA-8, PA-33: the code is one, the words say which fault it is, and none of them are the caller's.
#[tokio::test]
async fn a_refused_request_is_told_what_is_at_fault() {
    let node = Node::new(Setup::default());
    let part = r#"[{"type":"text","text":"hi"}]"#;
    for (body, words) in [
        ("{\"canary\"", "is not JSON"),
        (r#"{"ability":"canary"}"#, "lacks `input`"),
        (&format!(r#"{{"ability":"a","input":{part},"canary":1}}"#), "has an unknown member"),
        (
            &format!(r#"{{"ability":"a","input":{part},"routing":{{"max_attempts":"canary"}}}}"#),
            "has a `routing.max_attempts` that is not as the schema says",
        ),
    ] {
        let (status, _, answer) = node.post("/v1/executions", &[JSON], body).await;
        let message = format!("Execution request {words}");
        let expected = serde_json::json!({
            "error": { "code": "invalid_request", "message": message, "retryable": false }
        });
        assert_eq!((status.as_u16(), serde_json::from_str(&answer).ok()), (400, Some(expected)), "{body}");
    }
}

/// PA-14.
#[tokio::test]
async fn the_same_key_gives_the_same_execution_or_a_refusal() {
    let node = Node::new(Setup::default());
    let headers = [JSON, ("idempotency-key", "k")];
    let (first_status, _, first) = node.post("/v1/executions", &headers, PLAIN).await;
    let (again_status, _, again) = node.post("/v1/executions", &headers, PLAIN).await;
    assert_eq!((first_status.as_u16(), again_status.as_u16()), (202, 200));
    assert_eq!(id_in(&first), id_in(&again));
    assert!(again.contains(r#""idempotent_replay":true"#), "{again}");
    let (status, _, body) = node.post("/v1/executions", &headers, STALLING).await;
    assert_eq!(status, 400);
    assert!(body.contains("invalid_request"), "{body}");
}

/// PA-17.
#[tokio::test]
async fn too_much_work_is_503_with_the_hint_to_come_back() {
    let engine = EngineOptions { max_active_executions: 1, ..EngineOptions::default() };
    let node = Node::new(Setup { engine, ..Setup::default() });
    node.submit(STALLING).await;
    let (status, headers, body) = node.post("/v1/executions", &[JSON], PLAIN).await;
    assert_eq!(status, 503);
    assert_eq!(headers["retry-after"], "1");
    assert_eq!(
        body,
        r#"{"error":{"code":"queue_full","message":"Provider execution queue is full","retryable":true}}"#
    );
}

/// PA-17.
#[tokio::test]
async fn a_full_store_is_503_without_the_hint() {
    let store = StoreLimits { max_executions: 1, ..StoreLimits::default() };
    let node = Node::new(Setup { store, ..Setup::default() });
    node.submit(STALLING).await;
    let (status, headers, body) = node.post("/v1/executions", &[JSON], PLAIN).await;
    assert_eq!(status, 503, "{body}");
    assert!(!headers.contains_key("retry-after"));
    assert!(body.contains(r#""code":"queue_full""#) && body.contains(r#""retryable":false"#), "{body}");
}

/// PA-17, PA-22.
#[tokio::test]
async fn a_stopping_node_says_so() {
    let node = Node::new(Setup::default());
    assert!(node.engine.shutdown().await);
    let (status, headers, body) = node.post("/v1/executions", &[JSON], PLAIN).await;
    assert_eq!(status, 503);
    assert_eq!(headers["retry-after"], "1");
    assert!(body.contains(r#""code":"provider_unavailable""#) && body.contains("shutting down"), "{body}");
    let (status, _, body) = node.get("/v1/runtime").await;
    assert_eq!(status, 503);
    assert!(body.contains(r#""state":"stopping""#), "{body}");
    let (status, _, body) = node.get("/readyz").await;
    assert_eq!((status.as_u16(), body.as_str()), (503, r#"{"ready":false,"reasons":["stopping"]}"#));
}

/// PA-6, PA-12.
#[tokio::test]
async fn errors_echo_nothing_of_the_caller() {
    let node = Node::new(Setup::default());
    let canary = "canary-7f3a";
    let unknown_member = format!(r#"{{"ability":"{canary}","input":[],"{canary}":1}}"#);
    for body in [unknown_member.as_str(), canary, &format!(r#"{{"ability":"{canary}"}}"#)] {
        let (status, headers, answer) =
            node.post("/v1/executions", &[JSON, ("idempotency-key", canary)], body).await;
        assert_eq!(status, 400);
        assert!(!answer.contains(canary) && !format!("{headers:?}").contains(canary), "{answer}");
    }
    let (_, _, answer) = node.get(&format!("/v1/executions/{canary}/events?after={canary}")).await;
    assert!(!answer.contains(canary), "{answer}");
}

/// PA-5.
#[tokio::test]
async fn a_refused_body_is_read_to_its_end_and_the_connection_goes_on() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    let big = "x".repeat(2_000_000);
    let chunked = format!("{:x}\r\n{big}\r\n0\r\n\r\n", big.len());
    let chunked_head = "content-type: application/json\r\ntransfer-encoding: chunked\r\n";
    for (asked, status) in [
        (post_json(&big), 400),
        (request("POST", "/v1/executions", "content-type: text/plain\r\n", &big), 400),
        (request("POST", "/v1/executions", chunked_head, "") + &chunked, 400),
        (request("POST", "/nowhere", "", &big), 404),
        (request("POST", "/v1/executions/11111111-2222-4333-8444-555555555555/cancel", "", &big), 404),
        (get("/v1/runtime"), 200),
    ] {
        let (head, body) = client.ask(&asked).await;
        assert_eq!(head.status, status, "{body}");
        assert_eq!(head.header("connection"), None);
        assert_eq!(body.contains("larger than 1 MiB"), asked.contains("application/json"), "{body}");
    }
}

/// PA-5.
#[tokio::test]
async fn a_refused_body_without_end_is_given_up() {
    let server = ServerOptions { discard_bytes_max: 1000, ..ServerOptions::default() };
    let listening = Node::new(Setup { server, ..Setup::default() }).listen().await;
    let mut client = listening.connect().await;
    client.send("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n").await;
    client.send("x".repeat(2000)).await;
    let (head, body) = client.answer().await;
    check_error(&head, &body, 404, "not_found");
    assert_eq!(head.header("connection"), Some("close"));
    client.closed().await;
}

#[tokio::test]
async fn a_refused_body_that_does_not_come_is_given_up() {
    let server = ServerOptions { discard_ms_max: 5, ..ServerOptions::default() };
    let listening = Node::new(Setup { server, ..Setup::default() }).listen().await;
    let mut client = listening.connect().await;
    client.send("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\nx").await;
    let (head, _) = client.answer().await;
    assert_eq!((head.status, head.header("connection")), (404, Some("close")));
    client.closed().await;
}

#[tokio::test]
async fn a_client_that_asks_first_is_not_told_to_send_what_is_refused() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    let head = "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n";
    client.send(format!("{head}content-length: 3000000\r\n\r\n")).await;
    let (refused, body) = client.answer().await;
    check_error(&refused, &body, 400, "invalid_request");
    client.closed().await;

    let mut client = listening.connect().await;
    client.send(format!("{head}content-length: {}\r\n\r\n", PLAIN.len())).await;
    assert_eq!(client.head().await.status, 100);
    assert_eq!(client.ask(PLAIN).await.0.status, 202);
}

#[tokio::test]
async fn a_body_that_trickles_in_is_refused() {
    let server = ServerOptions { body_read_timeout_ms: 20, discard_ms_max: 5, ..ServerOptions::default() };
    let listening = Node::new(Setup { server, ..Setup::default() }).listen().await;
    let mut client = listening.connect().await;
    client.send("POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{").await;
    let (head, body) = client.answer().await;
    check_error(&head, &body, 400, "invalid_request");
    client.closed().await;
}

#[tokio::test]
async fn a_half_sent_request_leaves_nothing_behind() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    client.send("POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{").await;
    client.io.shutdown().await.unwrap();
    client.closed().await;
    let (head, _) = listening.connect().await.ask(get("/v1/runtime")).await;
    assert_eq!(head.status, 200);
}

#[tokio::test]
async fn pipelined_submissions_are_answered_in_order() {
    let listening = Node::new(Setup::default()).listen().await;
    let mut client = listening.connect().await;
    client.send(post_json(PLAIN) + &get("/v1/runtime") + &post_json("{") + &get("/v1/providers")).await;
    for expected in [202, 200, 400, 200] {
        assert_eq!(client.answer().await.0.status, expected);
    }
}
