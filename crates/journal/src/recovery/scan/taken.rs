//! What a scan takes from a sweep instead of walking a segment.

use sealog_journal_format::end::{EndRecord, How};

use super::Scanner;
use crate::recovery::findings::{SegmentFacts, Unchecked};
use crate::recovery::sweep::{self, Swept};
use crate::segment::Segment;

impl Scanner<'_> {
    /// Takes what the sweep found of an ended segment. `false`: it has to be walked.
    pub(super) fn swept(
        &mut self,
        segment: &Segment,
        start: &EndRecord,
        end: &EndRecord,
        swept: &Swept,
    ) -> bool {
        let Swept::Summarised { read, summary } = swept else { return false };
        let Some(read_summary) = summary.read() else { return false };
        let compacted = segment.is_compacted();
        // Of a compacted one some sequences may have no record any more.
        let counted = || {
            let pieces: u64 = read_summary.pieces().map(|piece| piece.records).sum();
            pieces + read_summary.own.len() as u64
        };
        let own_end = summary.end();
        let facts = SegmentFacts {
            frames: own_end.frames,
            records: if compacted { counted() } else { end.last_sequence - start.last_sequence },
            first_sequence: start.last_sequence + 1,
            last_sequence: end.last_sequence,
            end_offset: own_end.end_offset,
            sealed: own_end.how == How::Sealed,
            ..self.begin(segment)
        };
        if !self.judging {
            self.sink.summary(&facts, &read_summary);
        }
        let bytes = sweep::data_bytes(&own_end);
        self.out.unchecked.push(Unchecked { segment: segment.number, bytes, read: *read });
        self.out.segments.push(facts);
        true
    }
}
