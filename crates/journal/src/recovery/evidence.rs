//! What proves that places of the last segment were once durable (JR-1), collected also from behind damage.

use std::sync::Arc;

use sealog_journal_format::frame::{self, FrameHeader, FrameKind};
use sealog_journal_format::head::HeadSlot;
use sealog_journal_format::limits;

use crate::error::Result;
use crate::segment::Segment;
use crate::window::Window;

/// Evidence about one segment. Places below `frames` are proven; `end_chain` proves all of it up to that value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub frames: u64,
    pub end_chain: Option<[u8; 16]>,
    /// The segment was searched to its end.
    searched: bool,
}

impl Evidence {
    /// What the head proves about segment `number`, whose follower (published, without a valid frame) is `follower`.
    pub fn from_head(head: &HeadSlot, number: u64, follower: Option<u64>) -> Evidence {
        // With count 0 the head proves nothing about the segment it names, and all of the predecessor.
        if head.segment == number {
            return Evidence { frames: head.frames, ..Evidence::default() };
        }
        match follower {
            Some(next) if head.segment == next && head.frames == 0 => {
                Evidence { end_chain: Some(head.chain), ..Evidence::default() }
            }
            _ => Evidence::default(),
        }
    }

    /// An authentic header of frame `index` proves the places before it.
    pub fn header(&mut self, header: &FrameHeader) {
        self.frames = self.frames.max(u64::from(header.index));
    }

    /// Whether place `index`, reached with chain value `chain`, was once durable.
    pub fn covers(&self, index: u64, chain: &[u8; 16]) -> bool {
        index < self.frames || self.end_chain.is_some_and(|end| end != *chain)
    }
}

/// The header in these bytes, if its CRC and its tag are right and it keeps the rules of its fields.
pub(crate) fn authentic(segment: &Segment, bytes: &[u8; limits::FRAME_HEADER_BYTES]) -> Option<FrameHeader> {
    if !frame::looks_like_header(bytes) {
        return None;
    }
    let tag = frame::header_tag(bytes);
    segment.keys.header.verify(frame::tagged_part(bytes), &tag).ok()?;
    FrameHeader::decode(bytes).ok()
}

/// The first authentic frame header at or behind `from`, at 8-byte steps.
pub(crate) fn next_header(
    segment: &Segment,
    window: &mut Window,
    from: u64,
) -> Result<Option<(u64, FrameHeader)>> {
    let mut offset = from.next_multiple_of(limits::RESYNC_ALIGN);
    while offset + limits::FRAME_HEADER_BYTES as u64 <= window.length() {
        let Some(bytes) = window.slice(offset, limits::FRAME_HEADER_BYTES)? else {
            return Ok(None);
        };
        let bytes: &[u8; limits::FRAME_HEADER_BYTES] =
            bytes.try_into().expect("slice returns the length asked for");
        if let Some(header) = authentic(segment, bytes) {
            return Ok(Some((offset, header)));
        }
        offset += limits::RESYNC_ALIGN;
    }
    Ok(None)
}

/// Every authentic header from `from` to the end of the segment, folded into `evidence`; once a segment, since what is
/// behind a later hole was seen from the first.
pub(crate) fn collect(
    segment: &Segment,
    window: &mut Window,
    from: u64,
    evidence: &mut Evidence,
) -> Result<()> {
    if std::mem::replace(&mut evidence.searched, true) {
        return Ok(());
    }
    let mut from = from;
    while let Some((offset, header)) = next_header(segment, window, from)? {
        evidence.header(&header);
        from = offset + limits::RESYNC_ALIGN;
    }
    Ok(())
}

/// What a published segment without a valid frame proves about the one before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FollowerEvidence {
    pub number: Option<u64>,
    /// From an authentic link header whose body does not open: it was written after the predecessor ended there.
    pub link_chain: Option<[u8; 16]>,
}

/// What the segment behind the one at place `at` proves about it.
pub(crate) fn follower(chain: &[Option<Arc<Segment>>], at: usize) -> Result<FollowerEvidence> {
    let (Some(before), Some(Some(segment))) = (&chain[at], chain.get(at + 1)) else {
        return Ok(FollowerEvidence::default());
    };
    if before.last() + 1 != segment.number || segment.is_compacted() {
        return Ok(FollowerEvidence::default());
    }
    let mut window = Window::new(segment.file()?, segment.length, false);
    let first = next_header(segment, &mut window, limits::DATA_START)?;
    let link_chain = first
        .filter(|(_, header)| header.kind == FrameKind::Link && header.index == 0)
        .map(|(_, header)| header.previous_chain);
    segment.release();
    Ok(FollowerEvidence { number: Some(segment.number), link_chain })
}
