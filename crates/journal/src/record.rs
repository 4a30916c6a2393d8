//! Records as the journal's users see them: an envelope the journal understands and a body it does not.

use sealog_journal_format::record::RecordRef;

pub use sealog_journal_format::record::Class;

/// The sixteen bytes that name a stream: an execution's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub [u8; 16]);

/// A record to be written. Times are milliseconds since the epoch, sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    pub kind: u16,
    pub stream: Option<StreamId>,
    pub class: Class,
    /// 0: not an event.
    pub event_number: u64,
    pub time_ms: u64,
    pub logical_size: u64,
    pub body: Vec<u8>,
}

/// Records that are committed all or nothing, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub records: Vec<NewRecord>,
}

impl Unit {
    pub fn one(record: NewRecord) -> Unit {
        Unit { records: vec![record] }
    }

    /// An upper bound of what the unit takes in a group, in bytes.
    pub(crate) fn encoded_bytes_max(&self) -> usize {
        self.records.iter().map(|r| r.body.len() + 64).sum()
    }
}

/// A durable record, read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub sequence: u64,
    pub kind: u16,
    pub stream: Option<StreamId>,
    pub class: Class,
    pub event_number: u64,
    pub time_ms: u64,
    pub logical_size: u64,
    pub body: Vec<u8>,
    /// The epoch of the writer that wrote it.
    pub epoch: u64,
}

impl Record {
    /// Memory for records that are read one after the other.
    pub(crate) fn blank() -> Record {
        Record {
            sequence: 0,
            kind: 0,
            stream: None,
            class: Class::NONE,
            event_number: 0,
            time_ms: 0,
            logical_size: 0,
            body: Vec::new(),
            epoch: 0,
        }
    }

    /// Becomes this record; the memory of the body is used again.
    pub(crate) fn take(&mut self, read: &RecordRef<'_>, sequence: u64, epoch: u64) {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        body.extend_from_slice(read.body);
        *self = Record {
            sequence,
            kind: read.kind,
            stream: read.stream.map(StreamId),
            class: read.class,
            event_number: read.event_number,
            time_ms: read.time_ms,
            logical_size: read.logical_size,
            body,
            epoch,
        };
    }
}

/// Takes every record of a journal in sequence order at a start.
///
/// With digests it takes, of a segment that has a summary, one digest for each run of a stream's records and the
/// journal's own records: in an order in which what concerns one stream, and the journal's own, stands as in the journal.
pub trait Replay {
    fn record(&mut self, record: &Record);

    /// Whether [`Replay::digest`] may stand for the records of a segment.
    fn takes_digests(&self) -> bool {
        false
    }

    /// What the codec made of a run of records of one stream.
    fn digest(&mut self, _digest: &StreamDigest<'_>) {}
}

/// A run of records of one stream, as a summary keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDigest<'a> {
    pub stream: StreamId,
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// Time of its newest record, ms since the epoch.
    pub last_time_ms: u64,
    /// The newest time among all records of the segments before, ms since the epoch.
    pub newest_before_ms: u64,
    /// The codec's.
    pub bytes: &'a [u8],
}

/// A sink that wants nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignore;

impl Replay for Ignore {
    fn record(&mut self, _record: &Record) {}

    fn takes_digests(&self) -> bool {
        true
    }
}
