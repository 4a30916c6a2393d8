//! The bodies as they are encoded: one plain struct per record kind, fields in their order on disk.
//!
//! Allowed field types: `u8` to `u64`, `bool`, `[u8; N]`, text, and `Option`, `Vec` or plain structs of these. No enum
//! (the derive numbers variants by their place), no float, no map, nothing recursive. A field is never added, removed
//! or moved: another layout is another record kind.

use bincode::{BorrowDecode, Encode};

#[derive(Encode, BorrowDecode)]
pub(super) struct Created {
    pub created_at_ms: u64,
    pub identity: Option<Identity>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Identity {
    pub key_hash: [u8; 32],
    pub fingerprint: [u8; 32],
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Origin<'a> {
    pub dialect: u8,
    pub model: &'a str,
    pub max_tokens: Option<u64>,
    pub background: bool,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Labels<'a> {
    pub ability: &'a str,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct MaterializedResult<'a> {
    pub rule_version: u16,
    pub status: u8,
    pub bytes: u64,
    pub sha256: [u8; 32],
    pub text: Option<&'a str>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct AttemptEvidence<'a> {
    pub attempt: u32,
    pub reached: u8,
    pub request_id: Option<&'a str>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Accepted {}

#[derive(Encode, BorrowDecode)]
pub(super) struct RouteSelected<'a> {
    pub target: Target<'a>,
    pub attempt: u32,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct RouteAttemptFailed<'a> {
    pub target: Target<'a>,
    pub attempt: u32,
    pub error: ErrorFact<'a>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct OutputDelta<'a> {
    pub output_index: u32,
    pub delta: &'a str,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct ToolCallStarted<'a> {
    pub call_id: &'a str,
    pub name: &'a str,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct ToolCallArgumentsDelta<'a> {
    pub call_id: &'a str,
    pub delta: &'a str,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Progress {
    pub phase: u8,
    pub progress_bits: Option<u64>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct OutputResult<'a> {
    pub result: &'a str,
    pub artifacts: Option<Vec<Artifact<'a>>>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct UsageReported<'a> {
    pub facts: Vec<UsageFact<'a>>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Completed<'a> {
    pub target: Target<'a>,
}

/// [`Completed`] with the reason that the provider gave for stopping.
#[derive(Encode, BorrowDecode)]
pub(super) struct CompletedFor<'a> {
    pub target: Target<'a>,
    pub stop_reason: u8,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Failed<'a> {
    /// Failed or cancelled, no other.
    pub status: u8,
    pub error: ErrorFact<'a>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Target<'a> {
    pub provider: &'a str,
    pub model: &'a str,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct ErrorFact<'a> {
    pub code: u8,
    pub message: &'a str,
    pub retryable: bool,
    pub provider_code: Option<&'a str>,
    pub outcome: Option<u8>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct Artifact<'a> {
    pub uri: &'a str,
    pub media_type: Option<&'a str>,
    pub name: Option<&'a str>,
    pub expires_at: Option<&'a str>,
}

#[derive(Encode, BorrowDecode)]
pub(super) struct UsageFact<'a> {
    pub unit: &'a str,
    pub quantity_bits: u64,
    pub source: u8,
    pub complete: Option<bool>,
}
