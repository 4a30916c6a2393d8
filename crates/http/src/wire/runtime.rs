//! What the node says about itself and its providers.

use sealog_engine::{RuntimeInfo, RuntimeState};
use sealog_execution::ProviderManifest;
#[cfg(any(test, feature = "contract"))]
use sealog_execution::manifest::PROTOCOL_VERSION;
use serde::Serialize;

#[derive(Serialize)]
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema), schemars(rename = "RuntimeInfo"))]
pub(crate) struct Runtime<'a> {
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("const" = "sealog")))]
    name: &'a str,
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("const" = PROTOCOL_VERSION)))]
    protocol_version: &'a str,
    provider_count: usize,
    #[cfg_attr(any(test, feature = "contract"), schemars(extend("enum" = RuntimeState::ALL.map(RuntimeState::as_str))))]
    state: &'static str,
    features: Features,
}

#[derive(Serialize)]
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema))]
pub(crate) struct Features {
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
