//! Host-neutral execution primitives: what a caller may ask, what a provider may emit, ask and declare, and the
//! bookkeeping around one attempt (registry, emitter, lease, typed failures, conformance).
//!
//! Nothing here routes, stores, opens a connection or knows a vendor.

pub mod command;
pub mod conformance;
pub mod conversation;
pub mod emitter;
pub mod failure;
pub mod lease;
pub mod manifest;
pub mod provider;
pub mod registry;
pub mod request;
pub mod strict;

pub use conversation::Conversation;
pub use failure::{Failure, FailureClass};
pub use manifest::{ModelManifest, ProviderLimits, ProviderManifest};
pub use provider::{AbortSignal, ModelCall, ModelProvider, ProviderEvent, ProviderStream, ReportedUsage};
pub use registry::Registry;
pub use request::{ExecutionRequest, Modality, Part, Requirements, Routing, Strategy};
