//! A codec and an owner for tests of summaries: what the owner ends up with must be the same whether it saw records or
//! digests.

use std::collections::BTreeMap;

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::journal_records::{Forget, KIND_FORGET, KIND_JOURNAL_MAX, KIND_RESTORED};

use super::fold_codec::Rows;
use super::setup::Bench;
use crate::{
    Codec, Journal, JournalError, NotFolded, Record, RecoveryReport, Replay, StreamDigest, StreamFacts,
    StreamId,
};

/// Four bytes for each record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    pub version: u32,
}

fn sum(record: &Record) -> [u8; 4] {
    let head = [record.sequence, record.event_number, record.time_ms, u64::from(record.kind), record.epoch];
    let head = head.map(u64::to_le_bytes).concat();
    crc32(&[head.as_slice(), &record.body].concat()).to_le_bytes()
}

impl Codec for Sums {
    fn fold(&self, stream: StreamId, records: &[Record]) -> Option<Vec<u8>> {
        Rows.fold(stream, records)
    }

    fn unfold(&self, stream: StreamId, first: u64, bytes: &[u8]) -> Result<Vec<Record>, NotFolded> {
        Rows.unfold(stream, first, bytes)
    }

    fn digest(&self, earlier: &[u8], record: &Record, newest_ms: u64) -> Option<Vec<u8>> {
        let digest = [earlier, &sum(record), &newest_ms.to_le_bytes()].concat();
        (digest.len() <= 1000).then_some(digest)
    }

    fn digest_version(&self) -> u32 {
        self.version
    }
}

type Seen = ([u8; 4], u64);

/// What an owner knows at the end of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// A sum of each record with the newest time so far; how often the journal was restored since the stream began.
    streams: BTreeMap<StreamId, (Vec<Seen>, u32)>,
    own: Vec<Record>,
    pub last_sequence: u64,
    pub last_time_ms: u64,
}

/// Takes digests where it can get them.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    pub known: Known,
    pub digests: usize,
    pub records: usize,
    refuses_digests: bool,
}

impl Replay for Owner {
    fn record(&mut self, record: &Record) {
        self.records += 1;
        let known = &mut self.known;
        known.last_sequence = known.last_sequence.max(record.sequence);
        known.last_time_ms = known.last_time_ms.max(record.time_ms);
        let newest = known.last_time_ms;
        match record.kind {
            KIND_FORGET => {
                for id in Forget::ids(&record.body).unwrap() {
                    known.streams.remove(&StreamId(id));
                }
            }
            KIND_RESTORED => known.streams.values_mut().for_each(|(_, restored)| *restored += 1),
            _ => {}
        }
        if record.kind <= KIND_JOURNAL_MAX {
            known.own.push(record.clone());
        } else if let Some(stream) = record.stream {
            let known = &mut known.streams.entry(stream).or_default().0;
            known.push((sum(record), newest));
        }
    }

    fn takes_digests(&self) -> bool {
        !self.refuses_digests
    }

    fn digest(&mut self, digest: &StreamDigest<'_>) {
        self.digests += 1;
        let known = &mut self.known;
        known.last_sequence = known.last_sequence.max(digest.last_sequence);
        let each = digest.bytes.chunks(12).map(|chunk| {
            let (sum, newest) = chunk.split_first_chunk().unwrap();
            let newest = u64::from_le_bytes(newest.try_into().unwrap()).max(digest.newest_before_ms);
            (*sum, newest)
        });
        let each: Vec<_> = each.collect();
        known.last_time_ms = each.iter().map(|(_, newest)| *newest).fold(known.last_time_ms, u64::max);
        known.streams.entry(digest.stream).or_default().0.extend(each);
    }
}

/// An open journal and what its owner knows.
#[derive(Debug)]
pub(crate) struct Start {
    pub journal: Journal,
    pub report: RecoveryReport,
    pub owner: Owner,
}

/// A start with digests, or by records alone.
pub(crate) fn start(bench: &Bench, digests: bool) -> Result<Start, JournalError> {
    let mut owner = Owner { refuses_digests: !digests, ..Owner::default() };
    let (journal, report) = Journal::open_manual(&bench.config, &mut owner)?;
    Ok(Start { journal, report, owner })
}

/// Everything that a journal answers, by which two starts are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    known: Known,
    facts: Vec<(StreamId, StreamFacts)>,
    by_stream: Vec<Vec<Record>>,
    by_sequence: Vec<Vec<Record>>,
    interrupted: Vec<(StreamId, StreamFacts)>,
    end: (u64, u64, usize, u64),
}

impl Start {
    pub fn answers(&self) -> Answers {
        let ids: Vec<StreamId> = self.owner.known.streams.keys().copied().collect();
        let read = |records: Box<dyn Iterator<Item = Result<Record, JournalError>>>| -> Vec<Record> {
            records.collect::<Result<_, _>>().unwrap()
        };
        let last = self.report.last_sequence;
        let report = &self.report;
        Answers {
            known: self.owner.known.clone(),
            facts: ids.iter().map(|id| (*id, self.journal.stream(*id).unwrap())).collect(),
            by_stream: ids.iter().map(|id| read(Box::new(self.journal.read_stream(*id, 0)))).collect(),
            by_sequence: [1, 2, last / 3, last]
                .map(|from| read(Box::new(self.journal.read_from(from.max(1)))))
                .to_vec(),
            interrupted: report.interrupted.clone(),
            end: (report.epoch, report.last_sequence, self.journal.streams(), report.segments.len() as u64),
        }
    }
}
