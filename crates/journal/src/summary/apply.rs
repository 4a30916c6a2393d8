//! What a start takes from a summary instead of the records: the index, the marks, and the owner's replay.

use sealog_journal_format::summary::{OwnRecord, Piece, SummaryReader};

use crate::index::{FrameRef, StreamFacts};
use crate::record::{Record, Replay, StreamDigest, StreamId};
use crate::shared::{Catalog, Mark};

/// Applies the summary of a segment: each piece before the first of the journal's own records that speaks of its stream.
pub(crate) fn apply(
    catalog: &mut Catalog,
    replay: &mut dyn Replay,
    segment: u64,
    summary: &SummaryReader<'_>,
    newest_before_ms: u64,
) {
    for mark in &summary.marks {
        catalog.mark(Mark { sequence: mark.sequence, segment, offset: mark.offset });
    }
    let mut own = summary.own.iter();
    let mut done = 0;
    for piece in summary.pieces() {
        while done < piece.behind {
            own.next().into_iter().for_each(|record| take_own(catalog, replay, segment, record));
            done += 1;
        }
        take_piece(catalog, replay, segment, &piece, newest_before_ms);
    }
    own.for_each(|record| take_own(catalog, replay, segment, record));
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

fn take_piece(
    catalog: &mut Catalog,
    replay: &mut dyn Replay,
    segment: u64,
    piece: &Piece<'_>,
    newest_before_ms: u64,
) {
    let facts = StreamFacts {
        last_event: piece.last_event,
        closed: piece.closes,
        epoch: piece.epoch,
        logical_bytes: piece.logical_bytes,
        last_time_ms: piece.last_time_ms,
        last_sequence: piece.last_sequence,
    };
    let stream = StreamId(piece.stream);
    catalog.index.add_run(stream, piece.first_sequence, &facts, segment, piece.offsets.iter());
    replay.digest(&StreamDigest {
        stream,
        first_sequence: piece.first_sequence,
        last_sequence: piece.last_sequence,
        last_time_ms: piece.last_time_ms,
        newest_before_ms,
        bytes: piece.digest,
    });
}
