//! The bodies that only compacted segments have (section 5.3, JF-14): `sources` and folded groups. What a folded
//! stream's bytes mean is for the journal's codec.

use crate::cursor::{Cursor, push_varint};
use crate::end::EndRecord;
use crate::error::{FormatError, Why};
use crate::limits::{BODY_ALIGN, BODY_BYTES_MAX, END_RECORD_BYTES, RECORDS_MAX, SEQUENCE_MAX, padded};
use crate::record::StreamTable;

const LINEAGE_BYTES: usize = 16;
const SOURCE_BYTES: usize = END_RECORD_BYTES + LINEAGE_BYTES;
/// Two one-byte varints.
const RUN_BYTES_MIN: usize = 2;
/// An id, two sequences and a length.
const FOLDED_BYTES_MIN: usize = 16 + 3;

/// One log segment that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    pub end: EndRecord,
    /// Lineage id of its writer.
    pub lineage: [u8; 16],
}

/// Sequences that were dropped, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub first: u64,
    pub last: u64,
}

/// The body of `sources`. Sources stand in the order of their segment numbers; runs ascend and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    pub sources: Vec<Source>,
    pub dropped: Vec<Run>,
}

impl Sources {
    /// The body, padded.
    ///
    /// # Errors
    /// Order or form as in [`Self::decode`]; `TooLong` when it does not fit a frame.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        self.check()?;
        let mut out = Vec::new();
        push_varint(&mut out, self.sources.len() as u64);
        for source in &self.sources {
            out.extend_from_slice(&source.end.encode());
            out.extend_from_slice(&source.lineage);
        }
        push_varint(&mut out, self.dropped.len() as u64);
        for run in &self.dropped {
            push_varint(&mut out, run.first);
            push_varint(&mut out, run.last);
        }
        pad(out)
    }

    /// Reads the opened body of a `sources` frame.
    ///
    /// # Errors
    /// Counts above what is there, no source, sources or runs out of order, runs that touch, anything behind.
    pub fn decode(body: &[u8]) -> Result<Self, FormatError> {
        check_body(body)?;
        let mut cursor = Cursor::new(body);
        let count = cursor.count(SOURCE_BYTES, "source count")?;
        let mut sources = Vec::with_capacity(count);
        for _ in 0..count {
            let at = cursor.position();
            let end = EndRecord::decode(cursor.take(END_RECORD_BYTES, "source")?);
            let end = end.map_err(|error| error.shifted(at))?;
            sources.push(Source { end, lineage: cursor.array("source lineage")? });
        }
        let count = cursor.count(RUN_BYTES_MIN, "run count")?;
        let mut dropped = Vec::with_capacity(count);
        for _ in 0..count {
            dropped.push(Run { first: cursor.varint("run first")?, last: cursor.varint("run last")? });
        }
        cursor.padding(BODY_ALIGN)?;
        let decoded = Self { sources, dropped };
        decoded.check()?;
        Ok(decoded)
    }

    fn check(&self) -> Result<(), FormatError> {
        if self.sources.is_empty() {
            return Err(Why::OutOfRange.of("source count", 0));
        }
        let mut newest = 0;
        for source in &self.sources {
            source.end.check()?;
            if source.end.segment <= newest {
                return Err(Why::OutOfRange.of("source", 0));
            }
            newest = source.end.segment;
        }
        // Sequences start at 1, so the first run may start there although nothing is dropped below it.
        let mut least = 1;
        for run in &self.dropped {
            if run.first < least || run.last < run.first || run.last > SEQUENCE_MAX {
                return Err(Why::OutOfRange.of("dropped run", 0));
            }
            // A run that touched this one would have been written as one with it.
            least = run.last.saturating_add(2);
        }
        Ok(())
    }
}

/// One finished stream of a folded group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedStream<'a> {
    pub stream: [u8; 16],
    pub smallest_sequence: u64,
    pub largest_sequence: u64,
    /// What the journal's codec reads.
    pub bytes: &'a [u8],
}

/// Builds and reads the body of a folded group: each stream at most once.
#[derive(Debug)]
pub struct FoldedGroup;

impl FoldedGroup {
    /// The body, padded.
    ///
    /// # Errors
    /// No stream, a stream twice, sequences out of order; `TooLong` when it does not fit a frame.
    pub fn encode(streams: &[FoldedStream<'_>]) -> Result<Vec<u8>, FormatError> {
        if streams.is_empty() {
            return Err(Why::OutOfRange.of("folded count", 0));
        }
        let mut seen = StreamTable::default();
        let mut out = Vec::new();
        push_varint(&mut out, streams.len() as u64);
        for folded in streams {
            folded.check(&mut seen, 0)?;
            if folded.bytes.len() > BODY_BYTES_MAX - out.len().min(BODY_BYTES_MAX) {
                return Err(Why::TooLong.of("body length", 0));
            }
            out.extend_from_slice(&folded.stream);
            push_varint(&mut out, folded.smallest_sequence);
            push_varint(&mut out, folded.largest_sequence);
            push_varint(&mut out, folded.bytes.len() as u64);
            out.extend_from_slice(folded.bytes);
        }
        pad(out)
    }

    /// Reads the opened body of a folded group. The streams borrow from it.
    ///
    /// # Errors
    /// A count above what is there or none, a stream twice, sequences out of order, anything behind.
    pub fn decode(body: &[u8]) -> Result<Vec<FoldedStream<'_>>, FormatError> {
        check_body(body)?;
        let mut cursor = Cursor::new(body);
        let count = cursor.count(FOLDED_BYTES_MIN, "folded count")?;
        if count == 0 {
            return Err(Why::OutOfRange.of("folded count", 0));
        }
        let mut seen = StreamTable::default();
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            let at = cursor.position();
            let folded = FoldedStream {
                stream: cursor.array("folded stream")?,
                smallest_sequence: cursor.varint("smallest sequence")?,
                largest_sequence: cursor.varint("largest sequence")?,
                bytes: cursor.sized(BODY_BYTES_MAX, "folded length")?,
            };
            folded.check(&mut seen, at)?;
            streams.push(folded);
        }
        cursor.padding(BODY_ALIGN)?;
        Ok(streams)
    }
}

impl FoldedStream<'_> {
    fn check(&self, seen: &mut StreamTable, offset: usize) -> Result<(), FormatError> {
        if seen.len() >= RECORDS_MAX as usize {
            return Err(Why::TooLong.of("folded count", 0));
        }
        if seen.find_or_insert(&self.stream).is_some() {
            return Err(Why::NotMinimal.of("folded stream", offset));
        }
        let range = self.smallest_sequence..=self.largest_sequence;
        if range.is_empty() || *range.start() == 0 || *range.end() > SEQUENCE_MAX {
            return Err(Why::OutOfRange.of("folded sequences", offset));
        }
        Ok(())
    }
}

fn check_body(body: &[u8]) -> Result<(), FormatError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Why::TooLong.of("body length", 0));
    }
    if body.is_empty() || !body.len().is_multiple_of(BODY_ALIGN) {
        return Err(Why::OutOfRange.of("body length", 0));
    }
    Ok(())
}

fn pad(mut body: Vec<u8>) -> Result<Vec<u8>, FormatError> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Why::TooLong.of("body length", 0));
    }
    body.resize(padded(body.len()), 0);
    Ok(body)
}

#[cfg(test)]
mod tests;
