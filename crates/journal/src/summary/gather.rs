//! From the records of a segment, in order, to the body of its summary. Holds no record longer than its frame.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use sealog_journal_format::journal_records::{Forget, KIND_FORGET, KIND_JOURNAL_MAX, KIND_RESTORED};
use sealog_journal_format::limits::{DIGEST_BYTES_MAX, SUMMARY_BODY_BYTES_MAX};
use sealog_journal_format::summary::{Mark, Offsets, OwnRecord, Piece, SummaryWriter};

use crate::codec::Codec;
use crate::index::IdHasher;
use crate::record::{Class, Record, StreamId};
use crate::shared::MARK_DISTANCE_BYTES;

/// What the summary counts for each envelope beside its body.
const ENVELOPE_BYTES: u64 = 32;

/// A run of one stream's records that goes on.
#[derive(Debug)]
struct Run {
    /// Own records that come before it; set when it ends.
    behind: u64,
    stream: StreamId,
    first_sequence: u64,
    last_sequence: u64,
    records: u64,
    last_event: u64,
    closes: bool,
    epoch: u64,
    last_time_ms: u64,
    logical_bytes: u64,
    stored_bytes: u64,
    offsets: Vec<u64>,
    digest: Vec<u8>,
}

/// A segment that no summary can be made of: too many streams, or a record that a summary does not hold.
#[derive(Debug)]
pub(super) struct Unsummarised;

#[derive(Debug)]
pub(super) struct Gather {
    codec: Arc<dyn Codec>,
    open: HashMap<StreamId, usize, BuildHasherDefault<IdHasher>>,
    runs: Vec<Run>,
    own: Vec<Record>,
    marks: Vec<Mark>,
    newest_ms: u64,
    /// At least what the body will take.
    bytes: usize,
}

impl Gather {
    pub fn new(codec: Arc<dyn Codec>) -> Gather {
        let (open, runs, own, marks) = (HashMap::default(), Vec::new(), Vec::new(), Vec::new());
        Gather { codec, open, runs, own, marks, newest_ms: 0, bytes: 0 }
    }

    /// A frame that holds records, before those.
    pub fn frame(&mut self, offset: u64, first_sequence: u64) {
        let far = self.marks.last().is_none_or(|last| offset - last.offset >= MARK_DISTANCE_BYTES);
        if far {
            self.marks.push(Mark { sequence: first_sequence, offset });
        }
    }

    pub fn record(&mut self, offset: u64, record: &Record) -> Result<(), Unsummarised> {
        self.newest_ms = self.newest_ms.max(record.time_ms);
        if record.kind <= KIND_JOURNAL_MAX {
            return self.own(record.clone());
        }
        // A record of another kind without a stream is nobody's: it would be lost.
        let stream = record.stream.ok_or(Unsummarised)?;
        let at = *self.open.entry(stream).or_insert_with(|| {
            self.runs.push(Run::new(stream, record));
            self.bytes += 16;
            self.runs.len() - 1
        });
        let run = &mut self.runs[at];
        let digest = self.codec.digest(&run.digest, record, self.newest_ms).ok_or(Unsummarised)?;
        if digest.len() > DIGEST_BYTES_MAX {
            return Err(Unsummarised);
        }
        self.bytes += digest.len().saturating_sub(run.digest.len());
        run.digest = digest;
        if run.offsets.last() != Some(&offset) {
            run.offsets.push(offset);
            self.bytes += 1;
        }
        run.add(record);
        if self.bytes > SUMMARY_BODY_BYTES_MAX { Err(Unsummarised) } else { Ok(()) }
    }

    /// A record of the journal's own ends the runs of the streams it speaks of.
    fn own(&mut self, record: Record) -> Result<(), Unsummarised> {
        let plain = record.stream.is_none() && record.event_number == 0 && record.logical_size == 0;
        let class = if record.kind == KIND_FORGET { Class::FORGETS } else { Class::NONE };
        if !plain || record.class != class {
            return Err(Unsummarised);
        }
        let behind = self.own.len() as u64;
        match record.kind {
            KIND_FORGET => {
                for id in Forget::ids(&record.body).map_err(|_| Unsummarised)? {
                    if let Some(at) = self.open.remove(&StreamId(id)) {
                        self.runs[at].behind = behind;
                    }
                }
            }
            KIND_RESTORED => {
                for (_, at) in self.open.drain() {
                    self.runs[at].behind = behind;
                }
            }
            _ => {}
        }
        self.bytes += record.body.len();
        self.own.push(record);
        Ok(())
    }

    /// The body of the summary. `first_sequence` is the smallest that the segment could hold.
    pub fn finish(mut self, first_sequence: u64) -> Result<Vec<u8>, Unsummarised> {
        let all = self.own.len() as u64;
        for at in self.open.values() {
            self.runs[*at].behind = all;
        }
        self.runs.sort_by_key(|run| (run.behind, run.first_sequence));
        let mut writer = SummaryWriter::new(first_sequence, self.newest_ms);
        for Record { sequence, kind, epoch, time_ms, body, .. } in &self.own {
            let (sequence, kind, epoch, time_ms) = (*sequence, *kind, *epoch, *time_ms);
            writer.own(&OwnRecord { sequence, kind, epoch, time_ms, body });
        }
        self.marks.iter().for_each(|mark| writer.mark(*mark));
        self.runs.iter().for_each(|run| writer.piece(&run.piece(), &run.offsets));
        writer.finish().map_err(|_| Unsummarised)
    }
}

impl Run {
    fn new(stream: StreamId, first: &Record) -> Run {
        Run {
            behind: 0,
            stream,
            first_sequence: first.sequence,
            last_sequence: first.sequence,
            records: 0,
            last_event: 0,
            closes: false,
            epoch: 0,
            last_time_ms: 0,
            logical_bytes: 0,
            stored_bytes: 0,
            offsets: Vec::new(),
            digest: Vec::new(),
        }
    }

    fn add(&mut self, record: &Record) {
        self.records += 1;
        self.last_sequence = record.sequence;
        self.last_event = self.last_event.max(record.event_number);
        self.closes |= record.class.contains(Class::CLOSES);
        self.epoch = record.epoch;
        self.last_time_ms = record.time_ms;
        self.logical_bytes += record.logical_size;
        self.stored_bytes += record.body.len() as u64 + ENVELOPE_BYTES;
    }

    fn piece(&self) -> Piece<'_> {
        Piece {
            behind: self.behind,
            stream: self.stream.0,
            first_sequence: self.first_sequence,
            last_sequence: self.last_sequence,
            records: self.records,
            last_event: self.last_event,
            closes: self.closes,
            epoch: self.epoch,
            last_time_ms: self.last_time_ms,
            logical_bytes: self.logical_bytes,
            stored_bytes: self.stored_bytes,
            offsets: Offsets::NONE,
            digest: &self.digest,
        }
    }
}
