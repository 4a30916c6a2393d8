//! `spec/openapi.yaml` against the router, and the router against what it must not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use axum::body::Body;
use http::Request;
use sealog_events::{Phase, RecordKind};

use super::node::{Node, Setup};
use crate::{Method, ROUTES};

const SPEC: &str = include_str!("../../../../spec/openapi.yaml");
const NOT_FOUND: &str = r#"{"error":{"code":"not_found","message":"Route not found"}}"#;

type Operations = BTreeMap<(String, String), BTreeSet<u16>>;

/// The statuses of every path and method, read by the file's own indentation.
fn documented() -> Operations {
    let mut operations = Operations::new();
    let (mut path, mut method) = (String::new(), String::new());
    let paths = SPEC.split("\npaths:\n").nth(1).unwrap().split("\ncomponents:\n").next().unwrap();
    for line in paths.lines() {
        let name = line.trim().trim_end_matches(':');
        let indent = line.len() - line.trim_start().len();
        match indent {
            2 => path = name.to_owned(),
            4 if name != "parameters" => {
                method = name.to_ascii_uppercase();
                operations.insert((method.clone(), path.clone()), BTreeSet::new());
            }
            8 => {
                if let Some(status) = line.trim().strip_prefix('"') {
                    let status = status[..3].parse().unwrap();
                    operations.get_mut(&(method.clone(), path.clone())).unwrap().insert(status);
                }
            }
            _ => {}
        }
    }
    operations
}

static DOCUMENTED: LazyLock<Operations> = LazyLock::new(documented);

/// A status that a test saw must stand in the document, where the route does.
#[track_caller]
pub(super) fn check(method: &str, path: &str, status: u16) {
    let template = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["", "v1", "executions", id] if !id.is_empty() => "/v1/executions/{id}".to_owned(),
        ["", "v1", "responses", id] if !id.is_empty() => "/v1/responses/{id}".to_owned(),
        ["", "v1", "responses", id, below] if !id.is_empty() => format!("/v1/responses/{{id}}/{below}"),
        ["", "v1", "executions", id, below] if !id.is_empty() => format!("/v1/executions/{{id}}/{below}"),
        _ => path.to_owned(),
    };
    if let Some(statuses) = DOCUMENTED.get(&(method.to_owned(), template)) {
        assert!(statuses.contains(&status), "{method} {path} answered {status}, documented: {statuses:?}");
    }
}

fn method_text(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
    }
}

#[test]
fn every_route_is_documented_and_every_documented_route_exists() {
    let routed: BTreeSet<(String, String)> =
        ROUTES.iter().map(|route| (method_text(route.method).to_owned(), route.path.to_owned())).collect();
    assert_eq!(DOCUMENTED.keys().cloned().collect::<BTreeSet<_>>(), routed);
    assert!(DOCUMENTED.values().all(|statuses| !statuses.is_empty()));
}

#[test]
fn every_event_type_and_closed_set_of_events_is_documented() {
    let schema = SPEC.split("\n    Event:\n").nth(1).unwrap().split("\n    Joined:\n").next().unwrap();
    let listed: Vec<&str> = schema.lines().filter_map(|line| line.strip_prefix("            - ")).collect();
    let first_event = RecordKind::Accepted.number();
    let events = RecordKind::ALL.iter().filter(|kind| kind.number() >= first_event);
    assert_eq!(listed, events.map(|kind| kind.as_str()).collect::<Vec<_>>());
    let phases: Vec<&str> = Phase::ALL.iter().map(|phase| phase.as_str()).collect();
    assert!(schema.contains(&format!("enum: [{}]", phases.join(", "))), "{schema}");
}

#[tokio::test]
async fn every_documented_path_answers_and_no_other_method_of_it_does() {
    let node = Node::new(Setup::default());
    for (documented_method, template) in DOCUMENTED.keys() {
        let path = template.replace("{id}", "11111111-2222-4333-8444-555555555555");
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"]
        {
            let request = Request::builder().method(method).uri(&path).body(Body::empty()).unwrap();
            let (status, headers, body) = node.call(request).await;
            assert_eq!(headers["x-content-type-options"], "nosniff");
            assert_eq!(headers["cache-control"], "no-store");
            assert!(!headers.contains_key("allow"), "{method} {path}");
            if method == documented_method {
                assert_ne!(body, NOT_FOUND, "{method} {path}");
            } else {
                assert_eq!(status, 404, "{method} {path}");
                assert_eq!(body, if method == "HEAD" { "" } else { NOT_FOUND }, "{method} {path}");
                assert_eq!(headers["content-type"], "application/json; charset=utf-8");
                assert_eq!(headers["content-length"], NOT_FOUND.len().to_string());
            }
        }
    }
}

#[tokio::test]
async fn nothing_but_the_exact_paths_is_found() {
    let node = Node::new(Setup::default());
    let id = node.submit(super::node::PLAIN).await;
    for path in [
        "/".to_owned(),
        "/v1".to_owned(),
        "/v1/".to_owned(),
        "/v1/runtime/".to_owned(),
        "//v1/runtime".to_owned(),
        "/v1//runtime".to_owned(),
        "/V1/runtime".to_owned(),
        "/v1/Runtime".to_owned(),
        "/v1/%72untime".to_owned(),
        "/v1/runtime/x".to_owned(),
        "/v1/../v1/runtime".to_owned(),
        "/v1/executions".to_owned(),
        "/v1/executions/".to_owned(),
        "/v1/executions//events".to_owned(),
        format!("/v1/executions/{id}/"),
        format!("/v1/executions/{id}/events/"),
        format!("/v1/executions/{id}/Events"),
        format!("/v1/executions/{id}/events/1"),
        format!("/v1/executions/{id}/cancel"),
        format!("/v1/executions/{id}%2Fevents/x"),
    ] {
        let (status, _, body) = node.get(&path).await;
        assert_eq!((status.as_u16(), body.as_str()), (404, NOT_FOUND), "{path}");
    }
    let (status, _, body) = node.post("/v1/executions//cancel", &[], "").await;
    assert_eq!((status.as_u16(), body.as_str()), (404, NOT_FOUND));
    let known = node.get(&format!("/v1/executions/{id}?x=/v1/nowhere")).await;
    assert_eq!(known.0, 200);
}
