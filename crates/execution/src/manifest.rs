//! What a provider declares about its configured models. Declarations are neither certification nor a union of
//! what a vendor supports, and nothing is inferred from a provider's name.

use serde::Serialize;

use crate::request::Modality;

/// The protocol version every manifest and the runtime itself name.
pub const PROTOCOL_VERSION: &str = "0.1.0";

/// One registered provider, serialised as `GET /v1/providers` shows it.
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProviderManifest {
    /// Equal to the identity the provider is registered under.
    pub provider: String,
    pub protocol_version: String,
    pub models: Vec<ModelManifest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "contract"), schemars(default, with = "ProviderLimits"))]
    pub limits: Option<ProviderLimits>,
}

/// One configured model. Every member is required.
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelManifest {
    pub model: String,
    pub abilities: Vec<String>,
    pub input_modalities: Vec<Modality>,
    pub output_modalities: Vec<Modality>,
    pub stream: bool,
    pub tools: bool,
    pub structured_output: bool,
    #[serde(rename = "async")]
    pub asynchronous: bool,
    pub cancel: bool,
}

/// How much a provider is asked at once. Set by whoever registers it and kept by the runtime's gates; what a provider
/// itself puts into its manifest has no effect.
#[cfg_attr(any(test, feature = "contract"), derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ProviderLimits {
    /// Attempts at the same time, at least 1.
    #[cfg_attr(any(test, feature = "contract"), schemars(range(min = 1)))]
    pub max_concurrency: u32,
    /// Attempts waiting for one of them to end.
    pub max_queue_depth: u32,
}

impl Default for ProviderLimits {
    fn default() -> ProviderLimits {
        ProviderLimits { max_concurrency: 16, max_queue_depth: 64 }
    }
}
