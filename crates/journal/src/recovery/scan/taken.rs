//! What a scan takes from a sweep instead of walking a segment.

use sealog_journal_format::end::{EndRecord, How};

use super::Scanner;
use crate::recovery::findings::{SegmentFacts, Unchecked};
use crate::recovery::sweep::{self, Sound, Sweep, Swept};
use crate::segment::Segment;

impl Scanner<'_, '_> {
    /// Takes what the sweep found of an ended segment. `false`: it has to be walked.
    pub(super) fn swept(
        &mut self,
        segment: &Segment,
        start: &EndRecord,
        end: &EndRecord,
        swept: Swept,
    ) -> bool {
        let facts = SegmentFacts {
            frames: end.frames,
            records: end.last_sequence - start.last_sequence,
            first_sequence: start.last_sequence + 1,
            last_sequence: end.last_sequence,
            end_offset: end.end_offset,
            sealed: end.how == How::Sealed,
            ..self.begin(segment)
        };
        let read = match swept {
            Swept::Unknown => return false,
            Swept::Sound { read } => read,
            Swept::Summarised { read, summary } => {
                let Some(summary) = summary.read() else { return false };
                self.sink.summary(&facts, &summary);
                read
            }
        };
        if let Some(Sweep::Judge { judged, .. }) = self.sweep.as_deref_mut() {
            judged.insert(segment.number, Sound { start: *start, end: *end, read });
        }
        let bytes = sweep::data_bytes(end);
        self.out.unchecked.push(Unchecked { segment: segment.number, bytes, read });
        self.out.segments.push(facts);
        true
    }
}
