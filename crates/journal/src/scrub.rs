//! The scrub: reads and authenticates, after readiness and at the background's rate, what the start did not (JR-21).
//! Damage stops the writer for good; it repairs nothing and changes no file.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::background::{Halt, Pace, Step, Work};
use crate::error::{JournalError, Place};
use crate::recovery::findings::Unchecked;
use crate::recovery::scan::peek_link;
use crate::recovery::sweep;
use crate::recovery::table::{self, Found, Position};
use crate::recovery::walk::{Step as Walked, Walker};
use crate::segment::Segment;
use crate::shared::Shared;

/// Bytes read between two looks at the pace.
const PIECE_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(crate) struct Scrub {
    /// The oldest first.
    left: VecDeque<Unchecked>,
}

impl Scrub {
    pub fn new(unchecked: &[Unchecked]) -> Scrub {
        Scrub { left: unchecked.iter().copied().collect() }
    }
}

impl Work for Scrub {
    fn name(&self) -> &'static str {
        "check of older segments"
    }

    fn step(&mut self, shared: &Shared, pace: &mut Pace<'_>) -> Result<Step, Halt> {
        let Some(Unchecked { segment, bytes, .. }) = self.left.front().copied() else {
            return Ok(Step::Idle);
        };
        let pair = {
            let catalog = shared.read();
            let segment = catalog.segments.get(&segment);
            let next = segment.and_then(|segment| catalog.segments.get(&(segment.last() + 1)));
            segment.zip(next).map(|(segment, next)| (Arc::clone(segment), Arc::clone(next)))
        };
        // What is gone was replaced, and read on the way.
        if let Some((segment, successor)) = pair {
            check(shared, pace, &segment, &successor)?;
        }
        self.left.pop_front();
        shared.counting.unchecked_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Ok(Step::Done)
    }
}

/// Walks an ended segment as `verify` does.
fn check(shared: &Shared, pace: &mut Pace<'_>, segment: &Segment, successor: &Segment) -> Result<(), Halt> {
    let codec = &*shared.store.codec;
    let (Some(start), Some(named)) = (peek_link(segment, false, codec)?, peek_link(successor, false, codec)?)
    else {
        return Err(damaged(shared, segment, None, Found::Bad));
    };
    let Some(end) = sweep::own_end(segment, &start, &named, codec)? else {
        return Err(damaged(shared, segment, None, Found::Foreign));
    };
    let mut walker = Walker::new(segment, &start, false, codec)?;
    let mut paid = walker.next.offset;
    while walker.next.index != end.frames {
        match walker.step()? {
            Walked::Frame(_) => drop(walker.take_ready()),
            Walked::Stop(found) => return Err(damaged(shared, segment, Some(&walker), found)),
        }
        if walker.next.offset - paid >= PIECE_BYTES {
            pace.spend(walker.next.offset - paid)?;
            paid = walker.next.offset;
        }
    }
    if walker.end() != end {
        return Err(damaged(shared, segment, Some(&walker), Found::Foreign));
    }
    if !walker.window.zero_from(end.end_offset)? {
        return Err(damaged(shared, segment, Some(&walker), Found::Bad));
    }
    segment.release();
    pace.spend(walker.next.offset - paid)
}

/// By the same table as a start would.
fn damaged(shared: &Shared, segment: &Segment, walker: Option<&Walker<'_>>, found: Found) -> Halt {
    let decision = table::decide(Position::NotLast, found, true);
    let mut place = Place { segment: segment.number, ..Place::default() };
    if let Some(walker) = walker {
        (place.frame, place.offset) = (walker.next.index, walker.next.offset);
        place.sequence = walker.next.sequence;
    }
    shared.damaged(&JournalError::Corrupt { place, row: decision.row, what: decision.what });
    Halt::Stopped
}
