//! What a scan hands out and what it found, in words that name no byte of a record. Types only: the reading is
//! `scan`'s, the verdicts are `table`'s.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use sealog_disk::{Name, io};
use sealog_journal_format::compacted::Sources;
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::frame::FrameHeader;
use sealog_journal_format::limits;

use crate::error::{Place, Result};
use crate::record::Record;
use crate::recovery::evidence;
use crate::segment::Segment;

/// Where a frame stands and what its header says.
#[derive(Clone, Debug)]
pub struct FrameView {
    pub segment: u64,
    pub offset: u64,
    pub epoch: u64,
    pub header: FrameHeader,
}

/// What a scan hands out, in journal order.
pub trait Sink {
    /// Whether anything of what a segment holds is wanted. `false` for a verdict alone: ended segments are judged on all
    /// cores then, and nothing of a sound one is handed out.
    fn wants_contents(&self) -> bool {
        true
    }

    /// What makes sinks for one ended segment each, which other threads fill while this one waits for their turn. `None`:
    /// everything comes to this one, in order.
    fn parts(&self) -> Option<Parts> {
        None
    }

    /// Takes what came to a part, as if it had come here. In journal order: everything before it was taken, and what
    /// comes behind it was not. Only what of a segment was sound to the last byte comes in a part. To a start that takes
    /// digests comes what a summary says, instead of frames and records.
    fn absorb(&mut self, _part: Box<dyn Any>) {}

    fn frame(&mut self, _frame: &FrameView) {}
    fn record(&mut self, _frame: &FrameView, _record: &Record) {}
    /// What a compacted segment replaces, once it was read.
    fn sources(&mut self, _sources: &Sources) {}
}

/// A sink that another thread fills, from the first frame of a segment to its last.
pub trait Part: Sink + Any + Send + fmt::Debug {}

impl<T: Sink + Any + Send + fmt::Debug> Part for T {}

impl Sink for Box<dyn Part> {
    fn frame(&mut self, frame: &FrameView) {
        (**self).frame(frame);
    }

    fn record(&mut self, frame: &FrameView, record: &Record) {
        (**self).record(frame, record);
    }

    fn sources(&mut self, sources: &Sources) {
        (**self).sources(sources);
    }
}

/// Makes parts, on any thread.
#[derive(Clone)]
pub struct Parts(Arc<dyn Fn() -> Box<dyn Part> + Send + Sync>);

impl Parts {
    pub fn new<P: Part>(make: impl Fn() -> P + Send + Sync + 'static) -> Parts {
        Parts(Arc::new(move || Box::new(make())))
    }

    pub fn make(&self) -> Box<dyn Part> {
        (self.0)()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parts(..)")
    }
}

/// An ended segment of which a start has not read everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unchecked {
    pub segment: u64,
    /// Of its frames.
    pub bytes: u64,
    /// Every header and the CRC of every body were checked, only the tags of the bodies were not. Otherwise only its
    /// segment header, link and seal were.
    pub read: bool,
}

/// Two sinks at once.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn wants_contents(&self) -> bool {
        self.0.wants_contents() || self.1.wants_contents()
    }

    fn parts(&self) -> Option<Parts> {
        let (first, second) = (self.0.parts()?, self.1.parts()?);
        Some(Parts::new(move || (first.make(), second.make())))
    }

    fn absorb(&mut self, part: Box<dyn Any>) {
        if let Ok(both) = part.downcast::<(Box<dyn Part>, Box<dyn Part>)>() {
            let (first, second) = *both;
            self.0.absorb(first);
            self.1.absorb(second);
        }
    }

    fn frame(&mut self, frame: &FrameView) {
        self.0.frame(frame);
        self.1.frame(frame);
    }

    fn record(&mut self, frame: &FrameView, record: &Record) {
        self.0.record(frame, record);
        self.1.record(frame, record);
    }

    fn sources(&mut self, sources: &Sources) {
        self.0.sources(sources);
        self.1.sources(sources);
    }
}

/// Something that is not as it must be. `row` is the row of the decision table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub place: Place,
    pub row: u8,
    pub what: &'static str,
}

/// Records that cannot be shown: from `first_sequence` up to `last_sequence`, or an unknown end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub segment: u64,
    pub offset: u64,
    pub first_sequence: u64,
    pub last_sequence: Option<u64>,
}

/// A write that never finished, at the end of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    pub place: Place,
    /// From the place to the end of the file.
    pub bytes: u64,
    /// 512-byte sectors of it that are still all zero, and all of them.
    pub zero_sectors: u64,
    pub sectors: u64,
}

/// One segment as the scan found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Of a compacted segment the first of its range.
    pub number: u64,
    /// The last of its range; of a log segment its own number.
    pub last_number: u64,
    /// 0: a log segment.
    pub generation: u64,
    pub file: String,
    pub length: u64,
    pub epoch: u64,
    pub lineage: [u8; 16],
    pub key_id: [u8; 16],
    pub created_ms: u64,
    pub frames: u64,
    pub records: u64,
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub end_offset: u64,
    pub sealed: bool,
}

/// A published segment behind the last one, without a valid frame.
#[derive(Debug)]
pub(crate) struct Follower {
    pub number: u64,
    pub name: Name,
}

/// What a scan found; the verdict is in `problems` and `tail`.
#[derive(Debug)]
pub(crate) struct Scan {
    pub segments: Vec<SegmentFacts>,
    pub opened: Vec<Arc<Segment>>,
    pub problems: Vec<Problem>,
    pub gaps: Vec<Gap>,
    /// Of the last segment, and of a follower's place 0; no crash alone leaves both.
    pub tails: Vec<TornTail>,
    pub follower: Option<Follower>,
    /// Files that a sound compacted segment has replaced.
    pub superseded: Vec<Name>,
    /// Where the next frame would stand; `EndRecord::NONE` without a segment.
    pub end: EndRecord,
    /// Sequence and valid frames of the last segment, evidence or not (a live writer's newest frame counts).
    pub standing_frames: u64,
    /// Places of the last segment that evidence covers.
    pub proven_frames: u64,
    /// Behind the last segment's end the page cache shows what the device never got.
    pub stale: bool,
    /// By number; empty but for a start.
    pub unchecked: Vec<Unchecked>,
}

impl Scan {
    pub fn nothing() -> Scan {
        Scan {
            segments: Vec::new(),
            opened: Vec::new(),
            problems: Vec::new(),
            gaps: Vec::new(),
            tails: Vec::new(),
            follower: None,
            superseded: Vec::new(),
            end: EndRecord::NONE,
            standing_frames: 0,
            proven_frames: 0,
            stale: false,
            unchecked: Vec::new(),
        }
    }

    /// The segment behind which the journal goes on.
    pub fn last_segment(&self) -> Option<&Arc<Segment>> {
        self.opened.iter().find(|segment| segment.number == self.end.segment)
    }

    /// Whether an authentic header has come to stand behind the last frame that was seen: it proves that frame.
    pub fn has_grown(&self) -> Result<bool> {
        let Some(last) = self.last_segment() else { return Ok(false) };
        let mut bytes = [0; limits::FRAME_HEADER_BYTES];
        let read = io::read_up_to(&*last.file()?, &mut bytes, self.end.end_offset)?;
        last.release();
        Ok(read == bytes.len() && evidence::authentic(last, &bytes).is_some())
    }

    /// The newest epoch that any segment here was written in.
    pub fn epoch(&self) -> u64 {
        self.opened.iter().map(|segment| segment.header.epoch).max().unwrap_or(0)
    }
}
