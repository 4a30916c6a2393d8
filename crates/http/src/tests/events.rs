//! Cursors, and what a stream does at its edges.

use axum::body::Body;
use http::Request;

use super::node::{Node, PLAIN, Setup};

const UNKNOWN: &str = "11111111-2222-4333-8444-555555555555";

async fn ids(node: &Node, path: &str, last_event_id: Option<&str>) -> Result<Vec<u64>, (u16, String)> {
    let mut request = Request::get(path);
    if let Some(id) = last_event_id {
        request = request.header("last-event-id", id);
    }
    let (status, _, body) = node.call(request.body(Body::empty()).unwrap()).await;
    if status != 200 {
        let error: serde_json::Value = serde_json::from_str(&body).unwrap();
        return Err((status.as_u16(), error["error"]["code"].as_str().unwrap().to_owned()));
    }
    Ok(body.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect())
}

/// PA-25, PA-26.
#[tokio::test]
async fn the_query_wins_over_the_header_and_empty_is_the_start() {
    let node = Node::new(Setup::default());
    let id = node.submit(PLAIN).await;
    node.finished(id).await;
    let events = format!("/v1/executions/{id}/events");
    let all: Vec<u64> = (1..=7).collect();
    assert_eq!(ids(&node, &events, None).await.unwrap(), all);
    assert_eq!(ids(&node, &events, Some("5")).await.unwrap(), [6, 7]);
    assert_eq!(ids(&node, &events, Some("")).await.unwrap(), all);
    assert_eq!(ids(&node, &format!("{events}?after=3"), Some("5")).await.unwrap(), [4, 5, 6, 7]);
    assert_eq!(ids(&node, &format!("{events}?after="), Some("5")).await.unwrap(), all);
    assert_eq!(ids(&node, &format!("{events}?after=3"), Some("nonsense")).await.unwrap(), [4, 5, 6, 7]);
    assert_eq!(ids(&node, &format!("{events}?after=7"), None).await.unwrap(), [0u64; 0]);
    assert_eq!(ids(&node, &format!("{events}?after=9007199254740991"), None).await.unwrap(), [0u64; 0]);
}

/// PA-18, PA-19, PA-26.
#[tokio::test]
async fn an_unknown_execution_comes_before_a_bad_cursor() {
    let node = Node::new(Setup::default());
    let id = node.submit(PLAIN).await;
    let bad = Err((400, "invalid_request".to_owned()));
    for after in ["-1", "1.5", "x", "9007199254740992", "%FF"] {
        assert_eq!(ids(&node, &format!("/v1/executions/{id}/events?after={after}"), None).await, bad);
    }
    for header in ["-1", "one"] {
        assert_eq!(ids(&node, &format!("/v1/executions/{id}/events"), Some(header)).await, bad);
    }
    let missing = Err((404, "not_found".to_owned()));
    for unknown in [UNKNOWN, "not-a-uuid", "..%2F..%2Fetc%2Fpasswd"] {
        assert_eq!(ids(&node, &format!("/v1/executions/{unknown}/events?after=-1"), None).await, missing);
        assert_eq!(ids(&node, &format!("/v1/executions/{unknown}/events"), None).await, missing);
    }
}

/// PA-26.
#[tokio::test]
async fn two_last_event_ids_are_none() {
    let node = Node::new(Setup::default());
    let id = node.submit(PLAIN).await;
    let request = Request::get(format!("/v1/executions/{id}/events"))
        .header("last-event-id", "1")
        .header("last-event-id", "2")
        .body(Body::empty())
        .unwrap();
    assert_eq!(node.call(request).await.0, 400);
}

/// PA-18.
#[tokio::test]
async fn an_id_of_either_case_is_the_same_execution() {
    let node = Node::new(Setup::default());
    let id = node.submit(PLAIN).await;
    node.finished(id).await;
    let lower = node.get(&format!("/v1/executions/{id}")).await;
    let upper = node.get(&format!("/v1/executions/{}", id.to_string().to_uppercase())).await;
    assert_eq!((lower.0, &lower.2), (upper.0, &upper.2));
}
