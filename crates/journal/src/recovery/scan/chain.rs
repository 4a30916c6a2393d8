//! The order in which a scan goes through the segments: one after the other.

use std::sync::Arc;

use sealog_journal_format::end::EndRecord;
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::{HeadSlot, HeadState as SlotState};

use super::{Scanner, ranges};
use crate::codec::Codec;
use crate::error::Result;
use crate::recovery::evidence::{FollowerEvidence, follower};
use crate::recovery::steps::Steps;
use crate::recovery::sweep::{self, Ahead, Sweep, Swept};
use crate::segment::Segment;
use crate::store::Store;

/// What a failed sync may have left in the page cache and not on the device: never more than these.
pub(crate) const NEWEST: usize = 2;

/// All published segments in order, with what the first frame of each names.
struct Chain {
    names: Vec<SegmentName>,
    segments: Vec<Option<Arc<Segment>>>,
    links: Vec<Option<EndRecord>>,
    /// The newest with a valid link (JR-2).
    last: Option<usize>,
    follower: FollowerEvidence,
}

impl Chain {
    fn new(
        names: Vec<SegmentName>,
        segments: Vec<Option<Arc<Segment>>>,
        uncached: bool,
        codec: &dyn Codec,
    ) -> Result<Chain> {
        let newest = segments.len().saturating_sub(NEWEST);
        let mut links = Vec::with_capacity(segments.len());
        for (at, segment) in segments.iter().enumerate() {
            links.push(match segment {
                Some(segment) => ranges::peek_link(segment, uncached && at >= newest, codec)?,
                None => None,
            });
        }
        let last = links.iter().rposition(Option::is_some);
        let follower = match last {
            Some(last) => follower(&segments, last)?,
            None => FollowerEvidence::default(),
        };
        Ok(Chain { names, segments, links, last, follower })
    }

    fn last_segment(&self) -> Option<&Segment> {
        self.segments.get(self.last?)?.as_deref()
    }

    /// The end that the next segment's link names for the one at this place.
    fn named(&self, at: usize) -> Option<EndRecord> {
        let neighbour = self.names.get(at + 1)?.first() == self.names[at].last() + 1;
        self.links.get(at + 1).copied().flatten().filter(|_| neighbour)
    }
}

/// Between two segments.
struct Walking {
    /// How the last one ended, and its number.
    previous: EndRecord,
    before: u64,
    /// The first of those missing since.
    lost: Option<u64>,
}

impl Scanner<'_> {
    pub(super) fn chain(
        &mut self,
        store: &Store,
        names: Vec<SegmentName>,
        segments: Vec<Option<Arc<Segment>>>,
        sweep: Option<Sweep>,
    ) -> Result<()> {
        let chain = Chain::new(names, segments, self.options.uncached_last, self.codec)?;
        self.last_is_log(chain.last_segment());
        let named = self.head.slot.as_ref().map_or(0, |slot| slot.segment);
        let mut jobs = sweep::jobs(named, &chain.names, &chain.segments, &chain.links);
        // What replaced files that are still there is read to the last byte before they may go (JR-15).
        let replaced = self.out.superseded.iter().filter_map(|name| SegmentName::parse(name.file()));
        let replaced: Vec<u64> = replaced.map(|segment| segment.first()).collect();
        jobs.retain(|job| {
            let range = job.segment.number..=job.segment.last();
            !replaced.iter().any(|first| range.contains(first))
        });
        // The device comes first: it is the slowest, and needs no processor.
        let mut last = self.steps_of_last(&chain)?;
        let helper = last.as_ref().and_then(Steps::helper);
        let ahead = Ahead::new(store, jobs, sweep, self.options.threads);
        ahead.with_workers(helper.as_ref().map(|helper| || helper.work()), || {
            // Dropped when this ends, however: whoever helps waits for nothing then.
            let mut last = last.take();
            let mut walking = Walking { previous: EndRecord::NONE, before: 0, lost: None };
            for at in 0..chain.segments.len() {
                let read_on = &mut || last.as_ref().is_some_and(Steps::read_on);
                let swept = ahead.take(at, read_on);
                let last = last.take_if(|_| chain.last == Some(at));
                self.walk(&chain, at, &mut walking, swept, last)?;
            }
            self.behind_chain(&walking);
            Ok(())
        })
    }

    /// The last segment is what takes longest: it is read while the ended ones are gone through.
    fn steps_of_last<'s>(&self, chain: &'s Chain) -> Result<Option<Steps<'s>>>
    where
        Self: 's,
    {
        let last = chain.last_segment().filter(|segment| !segment.is_compacted());
        let (Some(segment), Some(start)) = (last, chain.last.and_then(|at| chain.links[at])) else {
            return Ok(None);
        };
        let walker = self.walker(segment, &start, true)?;
        // Beside a live writer the end of what may be shown moves while it is read.
        let threads = if self.options.live { 1 } else { self.options.threads };
        Ok(Some(Steps::new(walker, threads, u64::MAX)))
    }

    fn walk(
        &mut self,
        chain: &Chain,
        at: usize,
        walking: &mut Walking,
        swept: Swept,
        last: Option<Steps<'_>>,
    ) -> Result<()> {
        let number = chain.names[at].first();
        if number != walking.before + 1 {
            walking.lost = walking.lost.or(Some(walking.before + 1));
        }
        walking.before = chain.names[at].last();
        let Some(segment) = &chain.segments[at] else {
            walking.lost = walking.lost.or(Some(number));
            return Ok(());
        };
        let previous = walking.previous;
        if let Some(first) = walking.lost.take() {
            self.lost(first, &previous, chain.links[at].map(|link| link.last_sequence));
        }
        self.lineage(segment);
        let start = chain.links[at].unwrap_or(previous);
        let named = chain.named(at);
        let swept = named.filter(|end| self.swept(segment, &start, end, swept));
        walking.previous = match (chain.last, last) {
            _ if swept.is_some() => swept.unwrap_or(start),
            _ if segment.is_compacted() => self.compacted(segment, &start, named)?,
            (Some(last), _) if at < last => self.ended(segment, &start, named)?,
            (_, Some(steps)) => self.last(segment, steps, &chain.follower)?,
            (last, None) => {
                let first = at == last.map_or(0, |last| last + 1);
                self.behind_last(segment, &previous, first)?
            }
        };
        segment.release();
        self.out.opened.push(Arc::clone(segment));
        Ok(())
    }

    fn behind_chain(&mut self, walking: &Walking) {
        let head = self.head.slot.as_ref().filter(|slot| slot.segment > walking.before);
        let lost = walking.lost.or(head.map(|_| walking.before + 1));
        if let Some(first) = lost {
            // An open head says how far it came at least; where that was the end only a closed one knows.
            let closed = |slot: &&HeadSlot| slot.segment >= first && slot.state == SlotState::Closed;
            let end = self.head.slot.as_ref().filter(closed).map(|slot| slot.last_sequence);
            self.lost(first, &walking.previous, end);
        }
    }
}
