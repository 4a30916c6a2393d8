//! The node itself.

use serde_json::json;

use super::schemas::object;
use super::{Operation, Shared, schema};

pub(super) fn operations() -> Vec<Operation> {
    let manifests =
        object(&["data"], json!({ "data": { "type": "array", "items": schema("ProviderManifest") } }));
    vec![
        Operation::get("/healthz", "getHealth", "Whether the node answers at all. Needs no token.")
            .without_token()
            .json(200, "It does.", object(&["status"], json!({ "status": { "type": "string", "const": "ok" } }))),
        Operation::get("/readyz", "getReadiness", "Whether the node takes new work, with the reasons why not. Needs no token.")
            .without_token()
            .json(200, "It does.", schema("Readiness"))
            .json(503, "It does not.", schema("Readiness")),
        Operation::get("/metrics", "getMetrics", "What the node counts; docs/interface.md lists every name.")
            .content(200, "OpenMetrics text.", "application/openmetrics-text", json!({ "type": "string" }))
            .shared(&[Shared::NotFound]),
        Operation::get("/v1/runtime", "getRuntime", "What the node is and whether it takes new work.")
            .json(200, "The state is `ready`.", schema("RuntimeInfo"))
            .json(
                503,
                "The state is `stopping` or `unavailable` (the store failed, the node is read-only, or it is fenced, since \
                 its journal was made by `restore`, `repair` or `import`); the same body.",
                schema("RuntimeInfo"),
            ),
        Operation::get("/v1/providers", "listProviders", "What every registered provider declares, in registration order.")
            .json(200, "The manifests.", manifests)
            .shared(&[Shared::Failed]),
    ]
}
