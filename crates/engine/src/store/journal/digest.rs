//! What a start keeps of an execution's records, one after the other or all at once out of a summary: the same value
//! either way, so that a summary can change no answer.

use sealog_events::body::{self, BodyError};
use sealog_events::{Identity, RecordKind, Status, Timestamp};
use sealog_journal::Record;

/// Changes with the bytes below.
pub(super) const VERSION: u32 = 1;

const CREATED: u8 = 1;
const IDENTITY: u8 = 2;
const EVENT: u8 = 4;
const ROUTED: u8 = 8;

/// A run of records of one execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    /// The run begins with the execution's creation.
    pub created: Option<CreatedAt>,
    pub last: Option<LastEvent>,
    /// An attempt was announced.
    pub routed: bool,
    /// Logical bytes of creation and events.
    pub bytes: u64,
    /// The newest time among all records up to the last one of the run.
    pub newest: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreatedAt {
    pub created_at: Timestamp,
    pub identity: Option<Identity>,
    /// Sequence of the record.
    pub opened_by: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastEvent {
    pub status: Status,
    pub number: u64,
    pub time: Timestamp,
    /// The newest time among all records up to this one.
    pub newest: Timestamp,
}

impl Digest {
    /// Takes one more record. `None`: it is not one that this program knows, or not one that may stand here.
    pub fn add(&mut self, record: &Record, newest_ms: u64, first: bool) -> Option<()> {
        let kind = RecordKind::from_number(record.kind)?;
        let newest = Timestamp(newest_ms);
        self.newest = newest;
        if kind == RecordKind::Created {
            if !first {
                return None;
            }
            let created = body::decode_created(&record.body).ok()?;
            let (created_at, identity) = (created.created_at, created.identity);
            self.created = Some(CreatedAt { created_at, identity, opened_by: record.sequence });
            self.bytes = record.logical_size;
            return Some(());
        }
        if !kind.is_event() {
            return Some(());
        }
        let status = status(kind, &record.body).ok()?;
        let (number, time) = (record.event_number, Timestamp(record.time_ms));
        self.last = Some(LastEvent { status, number, time, newest });
        self.routed |= kind == RecordKind::RouteSelected;
        self.bytes = self.bytes.checked_add(record.logical_size)?;
        Some(())
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0];
        let mut flags = if self.routed { ROUTED } else { 0 };
        put(&mut out, self.bytes);
        put(&mut out, self.newest.0);
        if let Some(created) = &self.created {
            flags |= CREATED;
            put(&mut out, created.created_at.0);
            put(&mut out, created.opened_by);
            if let Some(identity) = &created.identity {
                flags |= IDENTITY;
                out.extend_from_slice(&identity.key_hash);
                out.extend_from_slice(&identity.fingerprint);
            }
        }
        if let Some(last) = &self.last {
            flags |= EVENT;
            out.push(last.status.number());
            put(&mut out, last.number);
            put(&mut out, last.time.0);
            put(&mut out, last.newest.0);
        }
        out[0] = flags;
        out
    }

    /// What [`Digest::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Option<Digest> {
        let (flags, mut rest) = bytes.split_first()?;
        let has = |flag: u8| flags & flag != 0;
        let mut digest = Digest {
            routed: has(ROUTED),
            bytes: number(&mut rest)?,
            newest: Timestamp(number(&mut rest)?),
            ..Digest::default()
        };
        if has(CREATED) {
            let (created_at, opened_by) = (Timestamp(number(&mut rest)?), number(&mut rest)?);
            let identity = if has(IDENTITY) {
                Some(Identity { key_hash: take(&mut rest)?, fingerprint: take(&mut rest)? })
            } else {
                None
            };
            digest.created = Some(CreatedAt { created_at, identity, opened_by });
        }
        if has(EVENT) {
            let [status] = take(&mut rest)?;
            digest.last = Some(LastEvent {
                status: Status::from_number(status)?,
                number: number(&mut rest)?,
                time: Timestamp(number(&mut rest)?),
                newest: Timestamp(number(&mut rest)?),
            });
        }
        let known = flags & !(CREATED | IDENTITY | EVENT | ROUTED) == 0;
        (known && rest.is_empty()).then_some(digest)
    }
}

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_le_bytes)
}

/// The status that an event of this kind gives; only a failure's body has to be asked.
fn status(kind: RecordKind, bytes: &[u8]) -> Result<Status, BodyError> {
    Ok(match kind {
        RecordKind::Created
        | RecordKind::MaterializedResult
        | RecordKind::Origin
        | RecordKind::Labels
        | RecordKind::AttemptEvidence => {
            return Err(BodyError::UnknownKind);
        }
        RecordKind::Accepted => Status::Accepted,
        RecordKind::RouteSelected | RecordKind::RouteAttemptFailed => Status::Routing,
        RecordKind::OutputDelta
        | RecordKind::ToolCallStarted
        | RecordKind::ToolCallArgumentsDelta
        | RecordKind::Progress
        | RecordKind::OutputResult
        | RecordKind::UsageReported => Status::Running,
        RecordKind::Completed | RecordKind::CompletedFor => Status::Succeeded,
        RecordKind::Failed => body::decode(kind.number(), bytes)?.status(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_reads_back_and_nothing_else_does() {
        let identity = Some(Identity { key_hash: [1; 32], fingerprint: [2; 32] });
        let created = |identity| Some(CreatedAt { created_at: Timestamp(5), identity, opened_by: 9 });
        let last = |status| Some(LastEvent { status, number: 7, time: Timestamp(70), newest: Timestamp(71) });
        let digests = [
            Digest::default(),
            Digest { created: created(identity), bytes: 256, newest: Timestamp(9), ..Digest::default() },
            Digest { created: created(None), last: last(Status::Failed), routed: true, ..Digest::default() },
            Digest { last: last(Status::Running), bytes: u64::MAX, ..Digest::default() },
        ];
        for digest in digests {
            let bytes = digest.encode();
            assert_eq!(Digest::decode(&bytes), Some(digest));
            assert!(bytes.len() <= sealog_journal::DIGEST_BYTES_MAX);
            for cut in 0..bytes.len() {
                assert_eq!(Digest::decode(&bytes[..cut]), None);
            }
            assert_eq!(Digest::decode(&[bytes.as_slice(), &[0]].concat()), None);
            assert_eq!(Digest::decode(&[&[bytes[0] | 16], &bytes[1..]].concat()), None);
        }
    }
}
