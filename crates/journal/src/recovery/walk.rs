//! Reads one segment frame by frame and stops at the first place where the valid prefix ends, naming what stands
//! there in the words of the decision table. It never decides what that means.

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::compacted::Sources;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::frame::{self, FrameHeader, FrameKind};
use sealog_journal_format::limits;

use crate::codec::Codec;
use crate::error::{Place, Result};
use crate::folding;
use crate::recovery::findings::TornTail;
use crate::recovery::group::{self, Entry, Group};
use crate::recovery::merge::{Merge, Placed};
use crate::recovery::table::Found;
use crate::segment::Segment;
use crate::window::{Window, is_zero};

/// What the next frame must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expect {
    pub index: u64,
    pub offset: u64,
    pub sequence: u64,
    pub chain: [u8; 16],
}

impl Expect {
    /// At the beginning of a segment whose predecessor ends so.
    pub fn behind(previous: &EndRecord) -> Expect {
        Expect {
            index: 0,
            offset: limits::DATA_START,
            sequence: previous.last_sequence + 1,
            chain: previous.chain,
        }
    }

    /// Behind this frame, which is in its place.
    pub fn over(&self, header: &FrameHeader) -> Expect {
        self.over_bytes(header, &header.encode())
    }

    fn over_bytes(&self, header: &FrameHeader, bytes: &[u8; limits::FRAME_HEADER_BYTES]) -> Expect {
        Expect {
            index: self.index + 1,
            offset: self.offset + header.frame_bytes(),
            sequence: match header.kind {
                FrameKind::Group => self.sequence + u64::from(header.record_count),
                FrameKind::Link | FrameKind::Seal | FrameKind::Folded | FrameKind::Sources => {
                    header.first_sequence
                }
            },
            chain: sealog_seal::chain(&self.chain, bytes),
        }
    }
}

/// A frame that is whole, authentic and in its place. What it holds stays in the walker's memory.
#[derive(Clone, Debug)]
pub(crate) struct Walked {
    pub header: FrameHeader,
    pub offset: u64,
}

#[derive(Debug)]
pub(crate) enum Step {
    Frame(Walked),
    Stop(Found),
}

/// How far a walk looks into the bodies of groups. Links, sources and seals are always opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bodies {
    /// Opened, authenticated, and every record checked.
    Opened,
    /// Held against their CRC only (JR-20).
    Summed,
}

pub(crate) struct Walker<'s> {
    segment: &'s Segment,
    bodies: Bodies,
    pub window: Window,
    pub next: Expect,
    pub sealed: bool,
    /// The link of frame 0, once read.
    pub link: Option<EndRecord>,
    /// What frame 0 of a compacted segment says, once read.
    pub sources: Option<Sources>,
    /// Of a compacted segment: its records in order.
    merge: Option<Merge>,
    ready: Vec<Placed>,
    codec: &'s dyn Codec,
    plaintext: Vec<u8>,
    /// The records in it, if it is a group's.
    entries: Vec<Entry>,
}

impl<'s> Walker<'s> {
    /// `previous` is the end of the predecessor: frame 0 must continue it.
    pub fn new(
        segment: &'s Segment,
        previous: &EndRecord,
        uncached: bool,
        codec: &'s dyn Codec,
    ) -> Result<Walker<'s>> {
        let next = Expect::behind(previous);
        let window = Window::new(segment.file()?, segment.length, uncached);
        Ok(Walker {
            segment,
            bodies: Bodies::Opened,
            window,
            next,
            sealed: false,
            link: None,
            sources: None,
            merge: None,
            ready: Vec::new(),
            codec,
            plaintext: Vec::new(),
            entries: Vec::new(),
        })
    }

    /// Leaves the bodies of groups closed: such a walk gives no records.
    pub fn summed(mut self) -> Walker<'s> {
        self.bodies = Bodies::Summed;
        self
    }

    /// Opens the bodies of groups, those to come.
    pub fn opening(mut self) -> Walker<'s> {
        self.bodies = Bodies::Opened;
        self
    }

    pub fn opens(&self) -> bool {
        self.bodies == Bodies::Opened
    }

    pub fn segment(&self) -> &'s Segment {
        self.segment
    }

    /// Takes index 0's own word for what it continues, for a first look at a link before its neighbour was read.
    pub fn take_start_from_link(&mut self) -> Result<()> {
        let Some(bytes) = self.window.slice(limits::DATA_START, limits::FRAME_HEADER_BYTES)? else {
            return Ok(());
        };
        if let Ok(header) = FrameHeader::decode(bytes) {
            self.next.sequence = header.first_sequence;
            self.next.chain = header.previous_chain;
        }
        Ok(())
    }

    /// The plaintext of the frame that `step` returned last.
    pub fn plaintext(&self) -> &[u8] {
        &self.plaintext
    }

    /// What the frame that `step` returned last holds.
    pub fn group(&self) -> Group<'_> {
        Group { plaintext: &self.plaintext, entries: &self.entries }
    }

    /// The body of the frame that `step` returned last, as it is stored; empty unless the walk leaves such bodies closed.
    pub fn closed_body(&mut self, walked: &Walked) -> Result<&[u8]> {
        if !self.unopened(&walked.header) {
            return Ok(&[]);
        }
        let (offset, len) = (walked.offset + limits::FRAME_HEADER_BYTES as u64, walked.header.body_length);
        Ok(self.window.slice(offset, len as usize)?.unwrap_or_default())
    }

    /// Back to a place of a log segment where this walk was before.
    pub fn go_back(&mut self, place: Expect) {
        (self.next, self.sealed) = (place, false);
    }

    /// The records of a compacted segment that the steps so far have put in order.
    pub fn take_ready(&mut self) -> Vec<Placed> {
        std::mem::take(&mut self.ready)
    }

    /// Of a compacted segment the first sequence that was not handed out yet.
    pub fn expected_sequence(&self) -> u64 {
        self.merge.as_ref().map_or(self.next.sequence, Merge::expected)
    }

    /// How the segment stands now, as a link to it would say; of a compacted one, as its own seal would.
    pub fn end(&self) -> EndRecord {
        EndRecord {
            segment: self.segment.number,
            frames: self.next.index,
            end_offset: self.next.offset,
            last_sequence: self.next.sequence - 1,
            chain: self.next.chain,
            how: if self.sealed { How::Sealed } else { How::CutAtRecovery },
        }
    }

    pub fn step(&mut self) -> Result<Step> {
        let offset = self.next.offset;
        let Some(bytes) = self.window.slice(offset, limits::FRAME_HEADER_BYTES)? else {
            return Ok(Step::Stop(self.rest(offset)?));
        };
        let bytes: [u8; limits::FRAME_HEADER_BYTES] =
            bytes.try_into().expect("slice returns the length asked for");
        if self.sealed || !frame::looks_like_header(&bytes) {
            return Ok(Step::Stop(self.rest(offset)?));
        }
        let Some(header) = self.authentic(&bytes) else {
            return Ok(Step::Stop(Found::Foreign));
        };
        if let Err(found) = self.open_body(&header, offset)? {
            return Ok(Step::Stop(found));
        }
        if !self.unopened(&header) && !self.content_fits(&header, offset) {
            return Ok(Step::Stop(Found::Foreign));
        }
        self.advance(&header, &bytes);
        Ok(Step::Frame(Walked { header, offset }))
    }

    /// Continues behind damage at an authentic header that the evidence search found. Its own word is taken for
    /// index, sequence and chain: the hole before it is reported by the caller.
    pub fn resume_at(&mut self, offset: u64, header: &FrameHeader) {
        self.next = Expect {
            index: u64::from(header.index),
            offset,
            sequence: header.first_sequence,
            chain: header.previous_chain,
        };
        self.sealed = false;
        if self.segment.is_compacted() {
            let merge = self.merge.take();
            let merge = merge.unwrap_or_else(|| Merge::without_sources(&self.segment.header));
            self.merge.insert(merge).be_lenient();
        }
    }

    /// What is left of a compacted segment that has no further frame to read.
    pub fn give_up_merging(&mut self) {
        if let Some(merge) = &mut self.merge {
            merge.be_lenient();
            self.ready.extend(merge.finish().unwrap_or_default());
        }
    }

    fn rest(&mut self, offset: u64) -> Result<Found> {
        Ok(if self.window.zero_from(offset)? { Found::Nothing } else { Found::Bad })
    }

    /// The header behind a right CRC: tag, fields, and that it continues what came before.
    fn authentic(&self, bytes: &[u8; limits::FRAME_HEADER_BYTES]) -> Option<FrameHeader> {
        let tag = frame::header_tag(bytes);
        self.segment.keys.header.verify(frame::tagged_part(bytes), &tag).ok()?;
        let header = FrameHeader::decode(bytes).ok()?;
        let in_place = u64::from(header.index) == self.next.index
            && header.previous_chain == self.next.chain
            && header.synced_through == header.first_sequence - 1;
        let in_order = match self.segment.is_compacted() {
            true => self.in_order(&header),
            false => {
                header.first_sequence == self.next.sequence
                    && (header.kind == FrameKind::Link) == (header.index == 0)
            }
        };
        (in_place && in_order).then_some(header)
    }

    /// JF-14: sources, folded groups by their smallest sequence, a seal.
    fn in_order(&self, header: &FrameHeader) -> bool {
        let (first, end) = {
            let own = &self.segment.header;
            (own.link_in.last_sequence + 1, own.link_out.last_sequence + 1)
        };
        match header.kind {
            FrameKind::Sources => header.index == 0 && header.first_sequence == first,
            FrameKind::Folded => {
                header.index > 0 && (self.next.sequence..end).contains(&header.first_sequence)
            }
            FrameKind::Seal => header.index > 0 && header.first_sequence == end,
            FrameKind::Group | FrameKind::Link => false,
        }
    }

    fn open_body(&mut self, header: &FrameHeader, offset: u64) -> Result<std::result::Result<(), Found>> {
        let (len, unopened) = (header.body_length as usize, self.unopened(header));
        let Some(body) = self.window.slice(offset + limits::FRAME_HEADER_BYTES as u64, len)? else {
            return Ok(Err(Found::Bad));
        };
        if crc32(body) != header.body_crc {
            return Ok(Err(Found::Bad));
        }
        self.plaintext.clear();
        self.entries.clear();
        if unopened {
            return Ok(Ok(()));
        }
        self.plaintext.extend_from_slice(body);
        let opened = self.segment.open_body(header, &mut self.plaintext);
        Ok(if opened { Ok(()) } else { Err(Found::Foreign) })
    }

    fn unopened(&self, header: &FrameHeader) -> bool {
        self.bodies == Bodies::Summed && matches!(header.kind, FrameKind::Group | FrameKind::Folded)
    }

    /// What an authentic body must say for its kind: whole records, a link, or an end that is this one.
    fn content_fits(&mut self, header: &FrameHeader, offset: u64) -> bool {
        match header.kind {
            FrameKind::Group => group::decode(&self.plaintext, header.record_count, &mut self.entries),
            FrameKind::Link => match self.end_body(header) {
                // A link continues exactly what it names.
                Some(end) if end.chain == self.next.chain && end.last_sequence + 1 == self.next.sequence => {
                    self.link = Some(end);
                    true
                }
                Some(_) | None => false,
            },
            FrameKind::Seal => {
                let mut here = self.end();
                here.how = How::Sealed;
                here.last_sequence = header.first_sequence - 1;
                let merge = self.merge.as_mut().filter(|_| self.bodies == Bodies::Opened);
                let rest = merge.map_or_else(|| Some(Vec::new()), Merge::finish);
                self.end_body(header) == Some(here) && self.took(rest)
            }
            FrameKind::Sources => {
                self.sources = Sources::decode(&self.plaintext).ok().filter(|_| header.record_count == 0);
                let sources = self.sources.as_ref();
                self.merge = sources.and_then(|sources| Merge::new(&self.segment.header, sources));
                self.merge.is_some()
            }
            FrameKind::Folded => {
                let epoch = self.segment.header.epoch;
                let records = folding::records(self.codec, header, &self.plaintext, epoch, None);
                let merged = match (&mut self.merge, records) {
                    (Some(merge), Some(records)) => merge.frame(header, offset, records),
                    (None, _) | (_, None) => None,
                };
                self.took(merged)
            }
        }
    }

    fn took(&mut self, ready: Option<Vec<Placed>>) -> bool {
        let fits = ready.is_some();
        self.ready.extend(ready.unwrap_or_default());
        fits
    }

    fn end_body(&self, header: &FrameHeader) -> Option<EndRecord> {
        (header.record_count == 0).then_some(())?;
        (self.plaintext.len() == limits::END_RECORD_BYTES).then_some(())?;
        EndRecord::decode(&self.plaintext).ok()
    }

    fn advance(&mut self, header: &FrameHeader, bytes: &[u8; limits::FRAME_HEADER_BYTES]) {
        self.next = self.next.over_bytes(header, bytes);
        self.sealed = header.kind == FrameKind::Seal;
    }
}

pub(crate) fn torn_tail(place: Place, walker: &mut Walker<'_>) -> Result<TornTail> {
    const SECTOR: u64 = 512;
    let length = walker.window.length();
    let (mut at, mut sectors, mut zero_sectors) = (place.offset, 0, 0);
    while at < length {
        let end = ((at / SECTOR + 1) * SECTOR).min(length);
        let zero = match walker.window.slice(at, (end - at) as usize)? {
            Some(bytes) => is_zero(bytes),
            None => false,
        };
        sectors += 1;
        zero_sectors += u64::from(zero);
        at = end;
    }
    Ok(TornTail { place, bytes: length.saturating_sub(place.offset), zero_sectors, sectors })
}
