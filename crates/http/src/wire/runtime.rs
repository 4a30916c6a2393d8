//! What the node says about itself and its providers.

use sealog_engine::{RuntimeInfo, RuntimeState};
use sealog_execution::ProviderManifest;
use serde::Serialize;

#[derive(Serialize)]
struct Runtime<'a> {
    name: &'a str,
    protocol_version: &'a str,
    provider_count: usize,
    state: &'static str,
    features: Features,
}

#[derive(Serialize)]
struct Features {
    routing: bool,
    flow_control: bool,
    usage_facts: bool,
    billing: bool,
}

#[derive(Serialize)]
struct Providers<'a> {
    data: &'a [ProviderManifest],
}

/// Whether new work is taken.
pub(crate) fn is_ready(info: &RuntimeInfo) -> bool {
    match info.state {
        RuntimeState::Ready => true,
        RuntimeState::Stopping | RuntimeState::Unavailable => false,
    }
}

/// `{name, protocol_version, provider_count, state, features}`
pub(crate) fn runtime_json(info: &RuntimeInfo) -> String {
    let features = info.features;
    let wire = Runtime {
        name: info.name,
        protocol_version: info.protocol_version,
        provider_count: info.provider_count,
        state: info.state.as_str(),
        features: Features {
            routing: features.routing,
            flow_control: features.flow_control,
            usage_facts: features.usage_facts,
            billing: features.billing,
        },
    };
    serde_json::to_string(&wire).expect("strings, a number and booleans serialise")
}

/// `{data: [manifest...]}`
pub(crate) fn providers_json(manifests: &[ProviderManifest]) -> String {
    serde_json::to_string(&Providers { data: manifests }).expect("a manifest is strings, lists and booleans")
}
