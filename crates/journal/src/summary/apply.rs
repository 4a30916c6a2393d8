//! What a start takes from a summary instead of the records: the index, the marks, and the owner's replay.

use sealog_journal_format::summary::{OwnRecord, Piece};

use crate::index::{FrameRef, Packer, Run, StreamFacts};
use crate::record::{Record, Replay, StreamDigest, StreamId};
use crate::shared::{Catalog, Mark};
use crate::summary::file::Summary;

/// A piece, made ready for the index while that is busy with another summary. Its last three numbers stand in the run as
/// well; to unpack that would cost the one thread that everything else waits for.
#[derive(Debug)]
pub(super) struct Prepared {
    run: Run,
    behind: u32,
    /// Of the digest, in the summary's body.
    digest_at: u32,
    digest_bytes: u32,
    first_sequence: u64,
    last_sequence: u64,
    last_time_ms: u64,
}

impl Prepared {
    pub fn new(segment: u64, body: &[u8], piece: &Piece<'_>, packer: &mut Packer) -> Prepared {
        let facts = StreamFacts {
            last_event: piece.last_event,
            closed: piece.closes,
            epoch: piece.epoch,
            logical_bytes: piece.logical_bytes,
            last_time_ms: piece.last_time_ms,
            last_sequence: piece.last_sequence,
        };
        let frames = piece.offsets.iter().map(|offset| FrameRef { segment, offset });
        Prepared {
            run: packer.run(StreamId(piece.stream), piece.first_sequence, &facts, frames),
            behind: piece.behind as u32,
            digest_at: (piece.digest.as_ptr().addr() - body.as_ptr().addr()) as u32,
            digest_bytes: piece.digest.len() as u32,
            first_sequence: piece.first_sequence,
            last_sequence: piece.last_sequence,
            last_time_ms: piece.last_time_ms,
        }
    }
}

impl Summary {
    /// Each piece before the first of the journal's own records that speaks of its stream. `newest_before_ms` is the highest
    /// time of all segments before; the answer is the same with this one.
    pub fn apply(mut self, catalog: &mut Catalog, replay: &mut dyn Replay, newest_before_ms: u64) -> u64 {
        let pieces = std::mem::take(&mut self.pieces);
        let Some(summary) = self.read() else { return newest_before_ms };
        let segment = self.segment;
        for mark in &summary.marks {
            catalog.mark(Mark { sequence: mark.sequence, segment, offset: mark.offset });
        }
        catalog.index.reserve(pieces.len());
        let mut own = summary.own.iter();
        let mut done = 0;
        for piece in pieces {
            while done < piece.behind {
                own.next().into_iter().for_each(|record| take_own(catalog, replay, segment, record));
                done += 1;
            }
            let (from, stream) = (piece.digest_at as usize, piece.run.stream());
            catalog.index.add_packed(segment, piece.run);
            replay.digest(&StreamDigest {
                stream,
                first_sequence: piece.first_sequence,
                last_sequence: piece.last_sequence,
                last_time_ms: piece.last_time_ms,
                newest_before_ms,
                bytes: &self.body[from..from + piece.digest_bytes as usize],
            });
        }
        own.for_each(|record| take_own(catalog, replay, segment, record));
        newest_before_ms.max(summary.newest_time_ms())
    }
}

fn take_own(catalog: &mut Catalog, replay: &mut dyn Replay, segment: u64, own: &OwnRecord<'_>) {
    let plain = own.as_record();
    let record = Record {
        sequence: own.sequence,
        kind: own.kind,
        stream: None,
        class: plain.class,
        event_number: 0,
        time_ms: own.time_ms,
        logical_size: 0,
        body: own.body.to_vec(),
        epoch: own.epoch,
    };
    // It belongs to no stream, so its place is not looked at.
    catalog.index.add(FrameRef { segment, offset: 0 }, &record);
    replay.record(&record);
}
