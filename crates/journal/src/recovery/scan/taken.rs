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
        swept: Swept,
    ) -> bool {
        let facts = |own: &EndRecord, records: u64| SegmentFacts {
            frames: own.frames,
            records,
            first_sequence: start.last_sequence + 1,
            last_sequence: end.last_sequence,
            end_offset: own.end_offset,
            sealed: own.how == How::Sealed,
            ..self.begin(segment)
        };
        let (read, summary) = match swept {
            Swept::Unknown => return false,
            Swept::Sound { end, records, part } => {
                let facts = facts(&end, records);
                self.out.segments.push(facts);
                if let Some(part) = part {
                    self.sink.absorb(part);
                }
                return true;
            }
            Swept::Summarised { read, summary } => (read, summary),
        };
        let own = summary.end();
        // Of a compacted one some sequences may have no record any more.
        let facts = match segment.is_compacted() {
            true => facts(&own, summary.records()),
            false => facts(&own, end.last_sequence - start.last_sequence),
        };
        self.sink.absorb(Box::new(summary));
        let bytes = sweep::data_bytes(&own);
        self.out.unchecked.push(Unchecked { segment: segment.number, bytes, read });
        self.out.segments.push(facts);
        true
    }
}
