//! Builds the plaintext of a group. The hot path of every commit: one pass, no allocation per record beyond the
//! growth of the buffer. Never yields a plaintext that the reader refuses.

use super::{RecordRef, StreamTable};
use crate::cursor::{push_varint, put_varint};
use crate::error::{FormatError, Why};
use crate::limits::{
    BODY_BYTES_MAX, ENVELOPE_BYTES_MAX, RECORDS_MAX, TIME_MS_MAX, UNIT_BYTES_MAX, VARINT_BYTES_MAX, padded,
};

/// Room for an envelope with each field at its longest.
const ENVELOPE_ROOM: usize = 64;
const _: () = assert!(ENVELOPE_ROOM >= ENVELOPE_BYTES_MAX);

/// The plaintext of one group as it grows.
#[derive(Clone, Debug)]
pub struct GroupEncoder {
    base_time_ms: u64,
    bytes: Vec<u8>,
    records: u32,
    streams: StreamTable,
}

/// A state of one encoder to which it can return.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    bytes: usize,
    records: u32,
    streams: usize,
}

impl GroupEncoder {
    /// An empty group. `base_time_ms` is only what times are written relative to; the time of the first record
    /// makes the shortest plaintext.
    pub fn new(base_time_ms: u64) -> Self {
        Self::with_room(base_time_ms, 4096)
    }

    /// As [`Self::new`], with memory for `bytes` of plaintext at once; it takes more when it needs more. Who keeps
    /// the plaintext keeps that memory, so the room should fit.
    pub fn with_room(base_time_ms: u64, bytes: usize) -> Self {
        let base_time_ms = base_time_ms.min(TIME_MS_MAX);
        // An envelope is copied at its longest and then cut.
        let mut bytes = Vec::with_capacity(padded(bytes.min(BODY_BYTES_MAX)) + ENVELOPE_ROOM);
        push_varint(&mut bytes, base_time_ms);
        Self { base_time_ms, bytes, records: 0, streams: StreamTable::default() }
    }

    /// Adds one record. After an error the group is as it was before the call.
    ///
    /// # Errors
    /// A record that breaks a rule; `TooLong` of `record count` or `body length` when the frame is full.
    #[inline]
    pub fn push(&mut self, record: &RecordRef<'_>) -> Result<(), FormatError> {
        let before = self.checkpoint();
        self.push_envelope(record)?;
        if padded(self.bytes.len() + record.body.len()) > BODY_BYTES_MAX {
            self.rollback(before);
            return Err(Why::TooLong.of("body length", 0));
        }
        self.bytes.extend_from_slice(record.body);
        Ok(())
    }

    /// Length of what [`Self::finish`] would return now.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a length in bytes; record_count says whether it is empty"
    )]
    pub fn len(&self) -> usize {
        padded(self.bytes.len())
    }

    pub fn record_count(&self) -> u32 {
        self.records
    }

    /// Length of what [`Self::finish`] would return after these records too. Copies no body and changes nothing.
    ///
    /// # Errors
    /// As [`Self::push`] of each of them.
    pub fn would_be_len(&mut self, records: &[RecordRef<'_>]) -> Result<usize, FormatError> {
        let before = self.checkpoint();
        let mut bodies = 0;
        let result = records.iter().try_for_each(|record| {
            bodies += record.body.len();
            self.push_envelope(record)
        });
        let length = padded(self.bytes.len() + bodies);
        self.rollback(before);
        result?;
        if length > BODY_BYTES_MAX { Err(Why::TooLong.of("body length", 0)) } else { Ok(length) }
    }

    /// The present state: taken before a unit, so that a unit that does not fit leaves whole.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { bytes: self.bytes.len(), records: self.records, streams: self.streams.len() }
    }

    /// Back to a checkpoint that this encoder gave and that no rollback has passed.
    pub fn rollback(&mut self, to: Checkpoint) {
        self.bytes.truncate(to.bytes);
        self.records = to.records;
        self.streams.truncate(to.streams);
    }

    /// The plaintext, padded. A group without a record is not a frame.
    pub fn finish(mut self) -> Vec<u8> {
        debug_assert!(self.records > 0);
        self.bytes.resize(padded(self.bytes.len()), 0);
        self.bytes
    }

    #[inline]
    fn push_envelope(&mut self, record: &RecordRef<'_>) -> Result<(), FormatError> {
        record.check()?;
        if self.records == RECORDS_MAX {
            return Err(Why::TooLong.of("record count", 0));
        }
        let mut out = [0_u8; ENVELOPE_ROOM];
        let mut at = put_varint(&mut out, u64::from(record.kind));
        out[at] = record.class.bits();
        at += 1;
        match &record.stream {
            None => at += 1,
            Some(id) => match self.streams.find_or_insert(id) {
                Some(number) => at += put_varint(&mut out[at..], number as u64 + 2),
                None => {
                    out[at] = 1;
                    out[at + 1..at + 17].copy_from_slice(id);
                    at += 17;
                }
            },
        }
        at += put_varint(&mut out[at..], record.event_number);
        // Both are at most i64::MAX, so the difference fits.
        let delta = record.time_ms as i64 - self.base_time_ms as i64;
        at += put_varint(&mut out[at..], zigzag(delta));
        at += put_varint(&mut out[at..], record.logical_size);
        at += put_varint(&mut out[at..], record.body.len() as u64);
        // A copy of constant length and a cut are cheaper than a copy of the length it happens to be.
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&out);
        self.bytes.truncate(start + at);
        self.records += 1;
        Ok(())
    }
}

/// Encoded size of a commit unit in a group of its own, without padding: what its limit is measured by (JF-11). A
/// unit that passes fits `GroupEncoder::new(time of its first record)`.
///
/// # Errors
/// No record, a record that breaks a rule, too many records, or more than `UNIT_BYTES_MAX`.
pub fn unit_bytes(records: &[RecordRef<'_>]) -> Result<usize, FormatError> {
    let Some(first) = records.first() else { return Err(Why::OutOfRange.of("record count", 0)) };
    let mut group = GroupEncoder::new(first.time_ms);
    let mut bytes = group.bytes.len();
    for record in records {
        let before = group.bytes.len();
        group.push_envelope(record)?;
        bytes += group.bytes.len() - before + record.body.len();
    }
    if bytes > UNIT_BYTES_MAX { Err(Why::TooLong.of("unit", 0)) } else { Ok(bytes) }
}

/// Whether these records make a commit unit: the verdict of [`unit_bytes`], which measures only a unit that comes near
/// its limit. Every record of a journal passes here once, before it waits for its group.
///
/// # Errors
/// As [`unit_bytes`]; of several faults it may name another one.
pub fn check_unit<'a>(
    records: impl ExactSizeIterator<Item = RecordRef<'a>> + Clone,
) -> Result<(), FormatError> {
    if records.len() == 0 {
        return Err(Why::OutOfRange.of("record count", 0));
    }
    if records.len() > RECORDS_MAX as usize {
        return Err(Why::TooLong.of("record count", 0));
    }
    let mut bytes_max = VARINT_BYTES_MAX;
    for record in records.clone() {
        record.check()?;
        bytes_max += ENVELOPE_BYTES_MAX + record.body.len();
    }
    if bytes_max <= UNIT_BYTES_MAX {
        return Ok(());
    }
    let records: Vec<RecordRef<'a>> = records.collect();
    unit_bytes(&records).map(drop)
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}
