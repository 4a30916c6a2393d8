//! A scripted provider without a network: what it emits is said by the request's `mock` extension, so that clients
//! and tests can produce every outcome on purpose.
//!
//! The members of `extensions.mock`, all optional:
//!
//! | member | meaning | default |
//! |---|---|---|
//! | `chunks` | number of text deltas | 3 |
//! | `chunk_bytes` | exact UTF-8 bytes of each delta | `hello`, ` from`, ` mock` in turn |
//! | `delay_ms` | wait before each delta | 0 |
//! | `tool_calls` | list of `{call_id, name, arguments}`, sent after the deltas | none |
//! | `result` | any JSON, sent as a whole result after them | none |
//! | `artifacts` | list of `{uri, media_type, name, expires_at}` of that result; only `uri` must be there | none |
//! | `usage` | list of usage facts instead of the default ones | `input_token` 1, `output_token` = `chunks` |
//! | `stop_reason` | why it says that its answer ended: `stop`, `length`, `tool_calls`, `content_filter`, `refusal`, `stop_sequence`, `pause_turn`, `context_window`, `other` | none |
//! | `fail_after` | fail once this many deltas were sent; 0 fails before any output | never |
//! | `fail_code` | the portable code of that failure | `provider_unavailable` |
//! | `fail_retryable` | whether that failure may be retried | false |
//! | `stall_after` | silence until aborted once this many deltas were sent | never |
//! | `never_complete` | end without the completion signal | false |
//! | `ignore_cancel` | go on after the abort signal | false |
//!
//! An unknown or ill-typed member ends the execution with `invalid_request` before any output. Members of a usage
//! fact are `unit`, `quantity` (any number, so that the runtime's own check can be met), and optionally `source`
//! (default `runtime`) and `complete`.

mod provider;
mod script;
mod settings;

pub use provider::{MockCapabilities, MockProvider};
