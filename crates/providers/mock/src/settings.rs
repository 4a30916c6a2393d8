//! The `mock` extension, read strictly.

use sealog_events::{Artifact, PortableCode, StopReason, UsageSource};
use sealog_execution::ReportedUsage;
use sealog_execution::strict::{self, Members, Refused};

/// Most deltas, and the largest count any member may name.
pub(crate) const COUNT_MAX: u64 = 1_000_000;
/// Largest delta, in bytes.
pub(crate) const CHUNK_BYTES_MAX: u64 = 8_388_608;
/// Longest wait before a delta, in milliseconds.
pub(crate) const DELAY_MS_MAX: u64 = 86_400_000;
/// Most tool calls, most artifacts and most usage facts.
const LIST_MAX: usize = 1024;
/// Longest text member, in code points.
const TEXT_MAX: usize = 1_048_576;

/// What the provider is told to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) chunks: u64,
    pub(crate) chunk_bytes: Option<usize>,
    pub(crate) delay_ms: u64,
    pub(crate) tool_calls: Vec<ToolCall>,
    /// JSON text.
    pub(crate) result: Option<String>,
    pub(crate) artifacts: Option<Vec<Artifact>>,
    pub(crate) usage: Option<Vec<ReportedUsage>>,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) fail_after: Option<u64>,
    pub(crate) fail_code: PortableCode,
    pub(crate) fail_retryable: bool,
    pub(crate) stall_after: Option<u64>,
    pub(crate) never_complete: bool,
    pub(crate) ignore_cancel: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) call_id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            chunks: 3,
            chunk_bytes: None,
            delay_ms: 0,
            tool_calls: Vec::new(),
            result: None,
            artifacts: None,
            usage: None,
            stop_reason: None,
            fail_after: None,
            fail_code: PortableCode::ProviderUnavailable,
            fail_retryable: false,
            stall_after: None,
            never_complete: false,
            ignore_cancel: false,
        }
    }
}

impl Settings {
    /// The settings of an extension's JSON text.
    ///
    /// # Errors
    /// Not an object, an unknown member, or a member of the wrong type or size.
    pub(crate) fn parse(json: &str) -> Result<Settings, Refused> {
        let default = Settings::default();
        let mut members = Members::of(json)?;
        let count = |json: &str| strict::integer(json, 0, COUNT_MAX);
        let chunk_bytes = |json: &str| strict::integer(json, 0, CHUNK_BYTES_MAX).map(|bytes| bytes as usize);
        let delay = |json: &str| strict::integer(json, 0, DELAY_MS_MAX);
        let settings = Settings {
            chunks: members.optional("chunks", count)?.unwrap_or(default.chunks),
            chunk_bytes: members.optional("chunk_bytes", chunk_bytes)?,
            delay_ms: members.optional("delay_ms", delay)?.unwrap_or(default.delay_ms),
            tool_calls: members.optional("tool_calls", |json| list(json, tool_call))?.unwrap_or_default(),
            result: members.optional("result", |json| Ok(json.to_owned()))?,
            artifacts: members.optional("artifacts", |json| list(json, artifact))?,
            usage: members.optional("usage", |json| list(json, usage))?,
            stop_reason: members.optional("stop_reason", stop_reason)?,
            fail_after: members.optional("fail_after", count)?,
            fail_code: members.optional("fail_code", code)?.unwrap_or(default.fail_code),
            fail_retryable: members
                .optional("fail_retryable", strict::boolean)?
                .unwrap_or(default.fail_retryable),
            stall_after: members.optional("stall_after", count)?,
            never_complete: members
                .optional("never_complete", strict::boolean)?
                .unwrap_or(default.never_complete),
            ignore_cancel: members
                .optional("ignore_cancel", strict::boolean)?
                .unwrap_or(default.ignore_cancel),
        };
        members.finish()?;
        // Artifacts are a result's.
        if settings.artifacts.is_some() && settings.result.is_none() {
            return Err(Refused);
        }
        Ok(settings)
    }
}

fn list<T>(json: &str, read: impl Fn(&str) -> Result<T, Refused>) -> Result<Vec<T>, Refused> {
    let items = strict::items(json)?;
    if items.len() > LIST_MAX {
        return Err(Refused);
    }
    items.into_iter().map(|item| read(item.get())).collect()
}

fn tool_call(json: &str) -> Result<ToolCall, Refused> {
    let mut members = Members::of(json)?;
    let call = ToolCall {
        call_id: strict::text(members.require("call_id")?, 0, TEXT_MAX)?,
        name: strict::text(members.require("name")?, 0, TEXT_MAX)?,
        arguments: strict::text(members.require("arguments")?, 0, TEXT_MAX)?,
    };
    members.finish()?;
    Ok(call)
}

fn artifact(json: &str) -> Result<Artifact, Refused> {
    let mut members = Members::of(json)?;
    let text = |json: &str| strict::text(json, 0, TEXT_MAX);
    let artifact = Artifact {
        uri: text(members.require("uri")?)?,
        media_type: members.optional("media_type", text)?,
        name: members.optional("name", text)?,
        expires_at: members.optional("expires_at", text)?,
    };
    members.finish()?;
    Ok(artifact)
}

fn usage(json: &str) -> Result<ReportedUsage, Refused> {
    let mut members = Members::of(json)?;
    let fact = ReportedUsage {
        unit: strict::text(members.require("unit")?, 0, TEXT_MAX)?,
        quantity: strict::number(members.require("quantity")?)?,
        source: members.optional("source", source)?.unwrap_or(UsageSource::Runtime),
        complete: members.optional("complete", strict::boolean)?,
    };
    members.finish()?;
    Ok(fact)
}

fn source(json: &str) -> Result<UsageSource, Refused> {
    UsageSource::from_name(&strict::text(json, 1, 32)?).ok_or(Refused)
}

fn stop_reason(json: &str) -> Result<StopReason, Refused> {
    StopReason::from_name(&strict::text(json, 1, 64)?).ok_or(Refused)
}

fn code(json: &str) -> Result<PortableCode, Refused> {
    PortableCode::from_name(&strict::text(json, 1, 64)?).ok_or(Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(json: &str) {
        assert_eq!(Settings::parse(json), Err(Refused), "{json}");
    }

    #[test]
    fn absent_members_have_their_defaults() {
        assert_eq!(Settings::parse("{}"), Ok(Settings::default()));
        assert_eq!(Settings::default().chunks, 3);
        assert_eq!(Settings::default().fail_code, PortableCode::ProviderUnavailable);
    }

    #[test]
    fn every_member_is_read() {
        let settings = Settings::parse(
            r#"{"chunks":2.0,"chunk_bytes":7,"delay_ms":5,"tool_calls":[{"call_id":"c","name":"n","arguments":"{}"}],
            "usage":[{"unit":"u","quantity":-1.5,"source":"provider","complete":false},{"unit":"","quantity":2}],
            "fail_after":1,"fail_code":"rate_limited","fail_retryable":true,"stall_after":0,"never_complete":true,
            "ignore_cancel":true,"result":[1.50],"stop_reason":"length","artifacts":[{"uri":"u","media_type":"m","name":"n","expires_at":"e"}]}"#,
        )
        .unwrap();
        assert_eq!((settings.chunks, settings.chunk_bytes, settings.delay_ms), (2, Some(7), 5));
        assert_eq!(settings.tool_calls[0].arguments, "{}");
        let usage = settings.usage.unwrap();
        assert_eq!(
            (usage[0].quantity, usage[0].source, usage[0].complete),
            (-1.5, UsageSource::Provider, Some(false))
        );
        assert_eq!((usage[1].source, usage[1].complete), (UsageSource::Runtime, None));
        assert_eq!((settings.fail_after, settings.stall_after), (Some(1), Some(0)));
        assert_eq!((settings.fail_code, settings.fail_retryable), (PortableCode::RateLimited, true));
        assert!(settings.never_complete && settings.ignore_cancel);
        assert_eq!(settings.stop_reason, Some(StopReason::Length));
        assert_eq!(settings.result.as_deref(), Some("[1.50]"));
        let text = |text: &str| Some(text.to_owned());
        let (media_type, name, expires_at) = (text("m"), text("n"), text("e"));
        let artifact = Artifact { uri: "u".to_owned(), media_type, name, expires_at };
        assert_eq!(settings.artifacts, Some(vec![artifact]));
    }

    #[test]
    fn anything_else_is_refused() {
        for json in ["null", "[]", "3", r#"{"chunk":1}"#, r#"{"tool_calls":{}}"#, r#"{"usage":null}"#] {
            refused(json);
        }
        for value in ["-1", "1.5", "null", "\"3\"", "1000001", "true"] {
            for member in ["chunks", "fail_after", "stall_after"] {
                refused(&format!(r#"{{"{member}":{value}}}"#));
            }
        }
        for value in ["0", "\"true\"", "null"] {
            for member in ["fail_retryable", "never_complete", "ignore_cancel"] {
                refused(&format!(r#"{{"{member}":{value}}}"#));
            }
        }
        refused(r#"{"fail_code":"teapot"}"#);
        refused(r#"{"stop_reason":"teapot"}"#);
        refused(r#"{"tool_calls":[{"call_id":"c","name":"n","arguments":{}}]}"#);
        refused(r#"{"tool_calls":[{"call_id":"c","name":"n"}]}"#);
        refused(r#"{"tool_calls":[{"call_id":"c","name":"n","arguments":"","x":1}]}"#);
        refused(r#"{"artifacts":[{"uri":"https://h/a"}]}"#);
        refused(r#"{"result":1,"artifacts":[{"name":"a"}]}"#);
        refused(r#"{"result":1,"artifacts":[{"uri":"https://h/a","x":1}]}"#);
        refused(r#"{"usage":[{"unit":"u"}]}"#);
        refused(r#"{"usage":[{"unit":"u","quantity":"1"}]}"#);
        refused(r#"{"usage":[{"unit":"u","quantity":1,"source":"guess"}]}"#);
        refused(r#"{"chunk_bytes":8388609}"#);
        refused(r#"{"delay_ms":86400001}"#);
    }
}
