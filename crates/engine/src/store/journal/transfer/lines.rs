//! One line of an export: bytes to a value and back. A line has exactly one spelling; whatever else parses is refused.
//! Nothing here relates lines to each other.

use std::borrow::Cow;
use std::fmt::Write as _;

use sealog_events::json::{event_json, string_json};
use sealog_events::{
    AttemptEvidence, Created, Dialect, Event, ExecutionId, Identity, Labels, Mark, MaterializedResult,
    Origin, Timestamp, body, limits,
};
use sealog_journal_format::journal_records::{Forget, Restored};
use sealog_journal_format::limits::SEQUENCE_MAX;
use sealog_seal::sha256;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Longest line without its end, in bytes: an event's JSON text, its body as hexadecimal digits, and the names.
pub const LINE_BYTES_MAX: usize = limits::EVENT_JSON_BYTES_MAX + 2 * limits::BODY_BYTES_MAX + 4096;

const FORMAT: &str = "sealog-export";
const VERSION: u32 = 1;
/// No stored time is later.
const TIME_MS_MAX: u64 = i64::MAX as u64;

/// A line is not one of the format. Says why, never what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("it is longer than a line may be")]
    TooLong,
    #[error("it is not a line of an export")]
    Malformed,
    #[error("it is of a newer version of the format")]
    Newer,
    #[error("a record's body is not one that this program writes")]
    Body,
    #[error("it is not spelled as an export spells it, or its JSON is not what its body says")]
    Spelling,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Header {
        store_id: [u8; 16],
        created_ms: u64,
        last_sequence: u64,
    },
    Execution {
        id: ExecutionId,
        created: Created,
    },
    /// Directly behind the execution's own line.
    Origin {
        id: ExecutionId,
        origin: Origin,
    },
    /// Before the execution's first event.
    Labels {
        id: ExecutionId,
        labels: Labels,
    },
    Event {
        id: ExecutionId,
        event: Event,
    },
    Result {
        id: ExecutionId,
        time_ms: u64,
        result: MaterializedResult,
    },
    Evidence {
        id: ExecutionId,
        time_ms: u64,
        evidence: AttemptEvidence,
    },
    Forget {
        time_ms: u64,
        ids: Vec<ExecutionId>,
    },
    /// The journal was restored from a copy here; from here on it may be fenced.
    Restored {
        time_ms: u64,
        restored: Restored,
    },
    /// The fence is gone from here on.
    Unfenced {
        time_ms: u64,
    },
    /// Events of an execution that could not be read; number 0 is its creation.
    Missing {
        id: ExecutionId,
        first: u64,
        last: u64,
    },
    /// Records that could not be read, by journal sequence.
    Gap {
        segment: u64,
        offset: u64,
        first_sequence: u64,
        last_sequence: Option<u64>,
    },
    End {
        counts: Counts,
        digest: [u8; 32],
    },
}

/// What the last line says of the lines before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub executions: u64,
    pub events: u64,
    pub forgotten: u64,
    /// There may be executions that the lines do not tell of.
    pub partial: bool,
}

impl Line {
    /// The last line, behind lines whose digest is `before`.
    #[must_use]
    pub fn end(counts: Counts, before: &[u8; 32]) -> Line {
        Line::End { counts, digest: link(before, spell_counts(counts).as_bytes()) }
    }

    /// The line without its end.
    ///
    /// # Panics
    /// Never for a value that [`Line::parse`] gave or that holds records of a journal: their bodies encode.
    #[must_use]
    pub fn spell(&self) -> String {
        match self {
            Line::Header { store_id, created_ms, last_sequence } => format!(
                "{{\"header\":{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\"store_id\":\"{}\",\"created_ms\":{created_ms},\
                 \"created_at\":\"{}\",\"last_sequence\":{last_sequence}}}}}",
                hex(store_id),
                Timestamp(*created_ms)
            ),
            Line::Execution { id, created: Created { created_at, identity } } => {
                let identity = identity.as_ref().map_or("null".to_owned(), |identity| {
                    let (key, request) = (hex(&identity.key_hash), hex(&identity.fingerprint));
                    format!("{{\"key_sha256\":\"{key}\",\"request_sha256\":\"{request}\"}}")
                });
                format!(
                    "{{\"execution\":{{\"execution_id\":\"{id}\",\"created_ms\":{},\"created_at\":\"{created_at}\",\
                     \"identity\":{identity}}}}}",
                    created_at.0
                )
            }
            Line::Origin { id, origin: Origin { dialect, model, max_tokens, background } } => {
                let model = Value::from(model.as_str());
                let tokens = max_tokens.map_or("null".to_owned(), |tokens| tokens.to_string());
                format!(
                    "{{\"origin\":{{\"execution_id\":\"{id}\",\"dialect\":\"{dialect}\",\"model\":{model},\
                     \"max_tokens\":{tokens},\"background\":{background}}}}}"
                )
            }
            Line::Labels { id, labels: Labels { ability } } => {
                let ability = string_json(ability);
                format!("{{\"labels\":{{\"execution_id\":\"{id}\",\"ability\":{ability}}}}}")
            }
            Line::Event { id, event } => format!(
                "{{\"event\":{{\"execution_id\":\"{id}\",\"sequence\":{},\"time_ms\":{},\"kind\":{},\"body\":\"{}\",\
                 \"event\":{}}}}}",
                event.sequence,
                event.time.0,
                event.body.kind(),
                hex(&body::encode(&event.body).unwrap_or_default()),
                event_json(*id, event)
            ),
            Line::Result { id, time_ms, result } => format!(
                "{{\"result\":{{\"execution_id\":\"{id}\",\"time_ms\":{time_ms},\"status\":\"{}\",\"bytes\":{},\
                 \"sha256\":\"{}\",\"body\":\"{}\"}}}}",
                result.status.as_str(),
                result.bytes,
                hex(&result.sha256),
                hex(&body::encode_result(result).unwrap_or_default())
            ),
            Line::Evidence { id, time_ms, evidence } => spell_evidence(*id, *time_ms, evidence),
            Line::Forget { time_ms, ids } => {
                let ids: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
                format!("{{\"forget\":{{\"time_ms\":{time_ms},\"execution_ids\":[{}]}}}}", ids.join(","))
            }
            Line::Restored { time_ms, restored } => spell_restored(*time_ms, restored),
            Line::Unfenced { time_ms } => format!("{{\"unfenced\":{{\"time_ms\":{time_ms}}}}}"),
            Line::Missing { id, first, last } => format!(
                "{{\"missing\":{{\"execution_id\":\"{id}\",\"first_event\":{first},\"last_event\":{last}}}}}"
            ),
            Line::Gap { segment, offset, first_sequence, last_sequence } => {
                let last = last_sequence.map_or("null".to_owned(), |last| last.to_string());
                format!(
                    "{{\"gap\":{{\"kind\":\"corrupt\",\"segment\":{segment},\"offset\":{offset},\
                     \"first_sequence\":{first_sequence},\"last_sequence\":{last}}}}}"
                )
            }
            Line::End { counts, digest } => {
                format!("{},\"digest\":\"{}\"}}}}", spell_counts(*counts), hex(digest))
            }
        }
    }

    /// Reads a line without its end.
    ///
    /// # Errors
    /// [`LineError`] for anything but what [`Line::spell`] gives.
    pub fn parse(bytes: &[u8]) -> Result<Line, LineError> {
        if bytes.len() > LINE_BYTES_MAX {
            return Err(LineError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| LineError::Malformed)?;
        let wire: Wire<'_> = serde_json::from_str(text).map_err(|_| LineError::Malformed)?;
        let line = wire.value()?;
        match line.spell() == text {
            true => Ok(line),
            false => Err(LineError::Spelling),
        }
    }
}

fn spell_evidence(id: ExecutionId, time_ms: u64, evidence: &AttemptEvidence) -> String {
    let request_id = match &evidence.mark {
        Mark::RequestSent => None,
        Mark::ResponseHeaders { request_id } => request_id.as_ref(),
    };
    // Printable ASCII: quotes and backslashes are all that JSON escapes in it.
    let escaped = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    format!(
        "{{\"evidence\":{{\"execution_id\":\"{id}\",\"time_ms\":{time_ms},\"attempt\":{},\"reached\":\"{}\",\
         \"request_id\":{},\"body\":\"{}\"}}}}",
        evidence.attempt,
        evidence.mark.reached(),
        request_id.map_or("null".to_owned(), |id| escaped(id.as_str())),
        hex(&body::encode_evidence(evidence).unwrap_or_default())
    )
}

fn spell_restored(time_ms: u64, restored: &Restored) -> String {
    format!(
        "{{\"restored\":{{\"time_ms\":{time_ms},\"last_sequence\":{},\"restored_ms\":{},\"fenced\":{},\"body\":\"{}\"}}}}",
        restored.from.last_sequence,
        restored.restored_ms,
        restored.fenced,
        hex(&restored.encode())
    )
}

/// The digest over lines: each link is over the one before and the next line.
#[must_use]
pub fn link(before: &[u8; 32], line: &[u8]) -> [u8; 32] {
    sha256(&[before, line])
}

/// The last line up to its digest.
fn spell_counts(Counts { executions, events, forgotten, partial }: Counts) -> String {
    format!(
        "{{\"end\":{{\"executions\":{executions},\"events\":{events},\"forgotten\":{forgotten},\"partial\":{partial}"
    )
}

type Text<'a> = Cow<'a, str>;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wire<'a> {
    #[serde(borrow)]
    Header(HeaderWire<'a>),
    #[serde(borrow)]
    Execution(ExecutionWire<'a>),
    #[serde(borrow)]
    Origin(OriginWire<'a>),
    #[serde(borrow)]
    Labels(LabelsWire<'a>),
    #[serde(borrow)]
    Event(EventWire<'a>),
    #[serde(borrow)]
    Result(ResultWire<'a>),
    #[serde(borrow)]
    Evidence(EvidenceWire<'a>),
    #[serde(borrow)]
    Forget(ForgetWire<'a>),
    #[serde(borrow)]
    Restored(RestoredWire<'a>),
    Unfenced(UnfencedWire),
    #[serde(borrow)]
    Missing(MissingWire<'a>),
    #[serde(borrow)]
    Gap(GapWire<'a>),
    #[serde(borrow)]
    End(EndWire<'a>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderWire<'a> {
    #[serde(borrow)]
    format: Text<'a>,
    version: u32,
    store_id: Text<'a>,
    created_ms: u64,
    #[serde(rename = "created_at")]
    _created_at: Text<'a>,
    last_sequence: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutionWire<'a> {
    #[serde(borrow)]
    execution_id: Text<'a>,
    created_ms: u64,
    #[serde(rename = "created_at")]
    _created_at: Text<'a>,
    identity: Option<IdentityWire<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentityWire<'a> {
    #[serde(borrow)]
    key_sha256: Text<'a>,
    request_sha256: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginWire<'a> {
    #[serde(borrow)]
    execution_id: Text<'a>,
    dialect: Text<'a>,
    model: Text<'a>,
    max_tokens: Option<u64>,
    background: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelsWire<'a> {
    #[serde(borrow)]
    execution_id: Text<'a>,
    ability: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventWire<'a> {
    #[serde(borrow)]
    execution_id: Text<'a>,
    sequence: u64,
    time_ms: u64,
    kind: u16,
    body: Text<'a>,
    #[serde(rename = "event")]
    _event: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultWire<'a> {
    #[serde(borrow)]
    execution_id: Text<'a>,
    time_ms: u64,
    #[serde(rename = "status")]
    _status: Text<'a>,
    #[serde(rename = "bytes")]
    _bytes: u64,
    #[serde(rename = "sha256")]
    _sha256: Text<'a>,
    body: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EvidenceWire<'a> {
    #[serde(borrow)]
    execution_id: Text<'a>,
    time_ms: u64,
    #[serde(rename = "attempt")]
    _attempt: u32,
    #[serde(rename = "reached")]
    _reached: Text<'a>,
    #[serde(rename = "request_id")]
    _request_id: Option<Text<'a>>,
    body: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForgetWire<'a> {
    time_ms: u64,
    #[serde(borrow)]
    execution_ids: Vec<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RestoredWire<'a> {
    time_ms: u64,
    #[serde(rename = "last_sequence")]
    _last_sequence: u64,
    #[serde(rename = "restored_ms")]
    _restored_ms: u64,
    #[serde(rename = "fenced")]
    _fenced: bool,
    #[serde(borrow)]
    body: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UnfencedWire {
    time_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MissingWire<'a> {
    #[serde(borrow)]
    execution_id: Text<'a>,
    first_event: u64,
    last_event: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GapWire<'a> {
    #[serde(borrow, rename = "kind")]
    _kind: Text<'a>,
    segment: u64,
    offset: u64,
    first_sequence: u64,
    last_sequence: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndWire<'a> {
    executions: u64,
    events: u64,
    forgotten: u64,
    partial: bool,
    #[serde(borrow)]
    digest: Text<'a>,
}

impl HeaderWire<'_> {
    fn value(self) -> Result<Line, LineError> {
        let HeaderWire { format, version, store_id, created_ms, last_sequence, .. } = self;
        if format != FORMAT {
            return Err(LineError::Malformed);
        }
        match version {
            VERSION => {}
            0 => return Err(LineError::Malformed),
            _ => return Err(LineError::Newer),
        }
        Ok(Line::Header { store_id: fixed(&store_id)?, created_ms: time(created_ms)?, last_sequence })
    }
}

impl LabelsWire<'_> {
    fn value(self) -> Result<Line, LineError> {
        let labels = Labels { ability: self.ability.into_owned() };
        if !labels.is_storable() {
            return Err(LineError::Body);
        }
        Ok(Line::Labels { id: id(&self.execution_id)?, labels })
    }
}

impl Wire<'_> {
    fn value(self) -> Result<Line, LineError> {
        Ok(match self {
            Wire::Header(header) => header.value()?,
            Wire::Execution(ExecutionWire { execution_id, created_ms, identity, .. }) => {
                let identity = identity.map(|identity| {
                    let key_hash = fixed(&identity.key_sha256)?;
                    Ok(Identity { key_hash, fingerprint: fixed(&identity.request_sha256)? })
                });
                let created_at = Timestamp(time(created_ms)?);
                let created = Created { created_at, identity: identity.transpose()? };
                Line::Execution { id: id(&execution_id)?, created }
            }
            Wire::Origin(OriginWire { execution_id, dialect, model, max_tokens, background }) => {
                let dialect = Dialect::from_name(&dialect).ok_or(LineError::Malformed)?;
                let origin = Origin { dialect, model: model.into_owned(), max_tokens, background };
                if !origin.is_storable() {
                    return Err(LineError::Body);
                }
                Line::Origin { id: id(&execution_id)?, origin }
            }
            Wire::Labels(labels) => labels.value()?,
            Wire::Event(EventWire { execution_id, sequence, time_ms, kind, body, .. }) => {
                if sequence == 0 || sequence > SEQUENCE_MAX {
                    return Err(LineError::Malformed);
                }
                let body = body::decode(kind, &bytes(&body)?).map_err(|_| LineError::Body)?;
                let event = Event { sequence, time: Timestamp(time(time_ms)?), body };
                Line::Event { id: id(&execution_id)?, event }
            }
            Wire::Result(ResultWire { execution_id, time_ms, body, .. }) => {
                let result = body::decode_result(&bytes(&body)?).map_err(|_| LineError::Body)?;
                Line::Result { id: id(&execution_id)?, time_ms: time(time_ms)?, result }
            }
            Wire::Evidence(EvidenceWire { execution_id, time_ms, body, .. }) => {
                let evidence = body::decode_evidence(&bytes(&body)?).map_err(|_| LineError::Body)?;
                Line::Evidence { id: id(&execution_id)?, time_ms: time(time_ms)?, evidence }
            }
            Wire::Forget(ForgetWire { time_ms, execution_ids }) => {
                if execution_ids.is_empty() || execution_ids.len() > Forget::STREAMS_MAX {
                    return Err(LineError::Malformed);
                }
                let ids = execution_ids.iter().map(|text| id(text)).collect::<Result<_, _>>()?;
                Line::Forget { time_ms: time(time_ms)?, ids }
            }
            Wire::Restored(RestoredWire { time_ms, body, .. }) => {
                let restored = Restored::decode(&bytes(&body)?).map_err(|_| LineError::Body)?;
                Line::Restored { time_ms: time(time_ms)?, restored }
            }
            Wire::Unfenced(UnfencedWire { time_ms }) => Line::Unfenced { time_ms: time(time_ms)? },
            Wire::Missing(MissingWire { execution_id, first_event: first, last_event: last }) => {
                if last < first || last > SEQUENCE_MAX {
                    return Err(LineError::Malformed);
                }
                Line::Missing { id: id(&execution_id)?, first, last }
            }
            Wire::Gap(GapWire { segment, offset, first_sequence, last_sequence, .. }) => {
                Line::Gap { segment, offset, first_sequence, last_sequence }
            }
            Wire::End(EndWire { executions, events, forgotten, partial, digest }) => {
                let counts = Counts { executions, events, forgotten, partial };
                Line::End { counts, digest: fixed(&digest)? }
            }
        })
    }
}

fn time(ms: u64) -> Result<u64, LineError> {
    if ms <= TIME_MS_MAX { Ok(ms) } else { Err(LineError::Malformed) }
}

fn id(text: &str) -> Result<ExecutionId, LineError> {
    ExecutionId::parse(text).ok_or(LineError::Malformed)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The line is no longer than it may be, and so is what this allocates.
fn bytes(digits: &str) -> Result<Vec<u8>, LineError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * limits::BODY_BYTES_MAX {
        return Err(LineError::Malformed);
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect::<Option<_>>()
        .ok_or(LineError::Malformed)
}

fn fixed<const N: usize>(digits: &str) -> Result<[u8; N], LineError> {
    if digits.len() != 2 * N {
        return Err(LineError::Malformed);
    }
    bytes(digits)?.try_into().map_err(|_| LineError::Malformed)
}
