//! The API's description against the router, and the router against what it must not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use axum::body::Body;
use http::Request;
use sealog_events::{Phase, RecordKind, StopReason};
use serde_json::{Value, json};

use super::node::{Node, Setup};
use crate::document::{openapi, operations};
use crate::{Method, ROUTES};

const NOT_FOUND: &str = r#"{"error":{"code":"not_found","message":"Route not found"}}"#;

type Operations = BTreeMap<(String, String), BTreeSet<u16>>;

/// The statuses of every method and path.
fn documented() -> Operations {
    let mut documented = Operations::new();
    for operation in operations() {
        let name = (method_text(operation.method()).to_owned(), operation.path().to_owned());
        assert!(documented.insert(name, operation.statuses()).is_none(), "{operation:?} stands twice");
    }
    documented
}

static DOCUMENTED: LazyLock<Operations> = LazyLock::new(documented);

/// A status that a test saw must stand in the document, where the route does.
#[track_caller]
pub(super) fn check(method: &str, path: &str, status: u16) {
    let template = match path.split('/').collect::<Vec<_>>().as_slice() {
        ["", "v1", "executions", id] if !id.is_empty() => "/v1/executions/{id}".to_owned(),
        ["", "v1", "models", id, ..] if !id.is_empty() => "/v1/models/{id}".to_owned(),
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

/// PA-4.
#[test]
fn every_route_is_documented_and_every_documented_route_exists() {
    let routed: BTreeSet<(String, String)> =
        ROUTES.iter().map(|route| (method_text(route.method).to_owned(), route.path.to_owned())).collect();
    assert_eq!(DOCUMENTED.keys().cloned().collect::<BTreeSet<_>>(), routed);
    assert!(DOCUMENTED.values().all(|statuses| !statuses.is_empty()));
}

/// The written document is `tools/contract`'s to compare; here it is read as a client's generator does.
#[test]
fn every_reference_of_the_document_leads_somewhere() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = openapi();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in &found {
        let pointer = reference.strip_prefix('#').expect("every reference stays in the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let ids: Vec<&str> = document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(_, path)| path.as_object().into_iter().flatten())
        .filter_map(|(_, operation)| operation["operationId"].as_str())
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ROUTES.len(), "{ids:?}");
}

#[test]
fn every_event_type_and_closed_set_of_events_is_documented() {
    let schemas = &openapi()["components"]["schemas"];
    assert_eq!(
        schemas["Event"]["properties"]["type"]["enum"],
        json!(RecordKind::event_types().collect::<Vec<_>>())
    );
    let reasons: Vec<&str> = StopReason::ALL.iter().map(|reason| reason.as_str()).collect();
    for schema in ["Event", "Snapshot", "Entry"] {
        assert_eq!(schemas[schema]["properties"]["stop_reason"]["enum"], json!(reasons), "{schema}");
    }
    let phases: Vec<&str> = Phase::ALL.iter().map(|phase| phase.as_str()).collect();
    assert_eq!(schemas["Event"]["properties"]["phase"]["enum"], json!(phases));
}

/// What is said where nothing is: on a path of somebody else's interface, in its form.
fn not_found_on(path: &str) -> String {
    match sealog_dialects::dialect_of(path, false) {
        Some(dialect) => sealog_dialects::not_served(dialect).body,
        None => NOT_FOUND.to_owned(),
    }
}

/// PA-1, PA-2, PA-3.
#[tokio::test]
async fn every_documented_path_answers_and_no_other_method_of_it_does() {
    let node = Node::new(Setup::default());
    for template in DOCUMENTED.keys().map(|(_, template)| template).collect::<BTreeSet<_>>() {
        let path = template.replace("{id}", "11111111-2222-4333-8444-555555555555");
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"]
        {
            let request = Request::builder().method(method).uri(&path).body(Body::empty()).unwrap();
            let (status, headers, body) = node.call(request).await;
            assert_eq!(headers["x-content-type-options"], "nosniff");
            assert_eq!(headers["cache-control"], "no-store");
            assert!(!headers.contains_key("allow"), "{method} {path}");
            if DOCUMENTED.contains_key(&(method.to_owned(), template.clone())) {
                assert_ne!(body, NOT_FOUND, "{method} {path}");
            } else {
                let expected = not_found_on(&path);
                assert_eq!(status, 404, "{method} {path}");
                assert_eq!(body, if method == "HEAD" { "" } else { &expected }, "{method} {path}");
                assert_eq!(headers["content-type"], "application/json; charset=utf-8");
                assert_eq!(headers["content-length"], expected.len().to_string());
            }
        }
    }
}

/// PA-1.
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
