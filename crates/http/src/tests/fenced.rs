//! A node over a fenced store (JB-9): what is not known is answered 503, never 404, and nothing is created.

use std::sync::atomic::Ordering;

use super::node::{Node, PLAIN, Setup};

const REFUSED: &str = r#"{"error":{"code":"provider_unavailable","message":"Runtime is fenced: its journal was made from another one","retryable":true}}"#;
const UNKNOWN: &str = "/v1/executions/11111111-2222-4333-8444-555555555555";
const JSON: (&str, &str) = ("content-type", "application/json");

/// PA-23.
#[tokio::test]
async fn jb_9_unknown_keys_and_ids_are_answered_503_and_known_ones_as_ever() {
    let node = Node::new(Setup::default());
    let (status, _, first) = node.post("/v1/executions", &[JSON, ("idempotency-key", "known")], PLAIN).await;
    assert_eq!(status, 202);
    let known = super::node::id_in(&first);
    node.finished(sealog_events::ExecutionId::parse(&known).unwrap()).await;
    node.store.fenced.store(true, Ordering::SeqCst);

    let (status, _, body) = node.post("/v1/executions", &[JSON, ("idempotency-key", "known")], PLAIN).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(node.get(&format!("/v1/executions/{known}")).await.0, 200);
    assert_eq!(node.get(&format!("/v1/executions/{known}/events")).await.0, 200);
    assert_eq!(node.get(&format!("/v1/executions/{known}/result")).await.0, 200);
    let (status, _, body) = node.post(&format!("/v1/executions/{known}/cancel"), &[], "").await;
    assert_eq!((status.as_u16(), body.as_str()), (404, r#"{"status":"not_found"}"#));

    for headers in [&[JSON, ("idempotency-key", "other")][..], &[JSON][..]] {
        let (status, headers, body) = node.post("/v1/executions", headers, PLAIN).await;
        assert_eq!((status.as_u16(), body.as_str()), (503, REFUSED));
        assert_eq!(headers["retry-after"], "1");
    }
    for path in [
        UNKNOWN.to_owned(),
        format!("{UNKNOWN}/events"),
        format!("{UNKNOWN}/events?after=x"),
        format!("{UNKNOWN}/result"),
    ] {
        let (status, _, body) = node.get(&path).await;
        assert_eq!((status.as_u16(), body.as_str()), (503, REFUSED), "{path}");
    }
    let (status, _, body) = node.post(&format!("{UNKNOWN}/cancel"), &[], "").await;
    assert_eq!((status.as_u16(), body.as_str()), (503, REFUSED));
    let (status, _, body) = node.get("/v1/runtime").await;
    assert!(status == 503 && body.contains(r#""state":"unavailable""#), "{body}");
    assert_eq!(node.get("/v1/providers").await.0, 200);

    node.store.fenced.store(false, Ordering::SeqCst);
    assert_eq!(node.get(UNKNOWN).await.0, 404);
    assert_eq!(node.post("/v1/executions", &[JSON], PLAIN).await.0, 202);
}
