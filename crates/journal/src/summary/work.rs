//! Writes the summaries that are missing, one ended segment a step, and removes those of segments that are gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealog_disk::{FileKind, Folder, Name};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::segment::SegmentKind;

use crate::background::{Halt, Pace, Step, Work};
use crate::codec::Codec;
use crate::error::JournalError;
use crate::folding;
use crate::recovery::scan::peek_link;
use crate::recovery::table::Found;
use crate::recovery::walk::{Step as Walked, Walker};
use crate::segment::Segment;
use crate::shared::Shared;
use crate::store;
use crate::summary::file::{self, discard};
use crate::summary::gather::Gather;
use crate::writer::prepare;

/// Bytes read between two looks at the pace.
const PIECE_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(crate) struct Summarise {
    codec: Arc<dyn Codec>,
    /// Log segments that have a good summary, or can have none.
    settled: BTreeSet<u64>,
    /// How often files had been replaced when the folder was tidied.
    tidied: Option<u64>,
}

impl Summarise {
    /// `good` are the segments whose summary this start has used.
    pub fn new(codec: Arc<dyn Codec>, good: BTreeSet<u64>) -> Summarise {
        Summarise { codec, settled: good, tidied: None }
    }

    /// The oldest ended log segment that is not settled, and its successor, whose link says how it ends.
    fn next(&self, shared: &Shared) -> Option<(Arc<Segment>, Arc<Segment>)> {
        let catalog = shared.read();
        let ended = catalog.segments.range(..catalog.durable.end.segment);
        let mut wanted = ended.filter(|(number, segment)| {
            segment.header.kind == SegmentKind::Log && !self.settled.contains(number)
        });
        wanted.find_map(|(_, segment)| {
            let next = catalog.segments.get(&(segment.last() + 1))?;
            Some((Arc::clone(segment), Arc::clone(next)))
        })
    }

    fn summarise(
        &self,
        shared: &Shared,
        pace: &mut Pace<'_>,
        segment: &Segment,
        successor: &Segment,
    ) -> Result<(), Halt> {
        let linked = peek_link(successor, false, &*self.codec)?.filter(|link| link.segment == segment.number);
        let Some(end) = linked else {
            return Err(Halt::Failed(JournalError::Misuse("an ended segment without a successor's link")));
        };
        let version = self.codec.digest_version();
        let disk = &*shared.store.disk;
        if file::load(disk, segment, &end, version).is_some() {
            return Ok(());
        }
        let Some(body) = self.gather(pace, segment, &end)? else { return Ok(()) };
        let mut random = [0; 32];
        shared.entropy.fill(&mut random).map_err(|_| JournalError::NoRandomness)?;
        let salt = sealog_seal::sha256(&[&random, &prepare::hedge(shared, &segment.header)]);
        let bytes = body.len() as u64;
        file::save(disk, segment, end, version, salt, body)?;
        tracing::debug!(segment = segment.number, bytes, "summary written");
        pace.spend(bytes)
    }

    /// The body of the summary; `None` if there can be none.
    fn gather(
        &self,
        pace: &mut Pace<'_>,
        segment: &Segment,
        end: &sealog_journal_format::EndRecord,
    ) -> Result<Option<Vec<u8>>, Halt> {
        let Some(start) = peek_link(segment, false, &*self.codec)? else { return Ok(None) };
        let mut walker = Walker::new(segment, &start, false, &*self.codec)?;
        let mut gather = Gather::new(&*self.codec);
        let mut paid = walker.next.offset;
        while walker.next.index < end.frames {
            let frame = match walker.step()? {
                Walked::Frame(frame) => frame,
                // Damage is not this one's to judge: the scrub comes here, too.
                Walked::Stop(
                    Found::Nothing | Found::Bad | Found::Foreign | Found::NamedEnd | Found::HeaderCopy,
                ) => {
                    return Ok(None);
                }
            };
            if frame.header.record_count > 0 {
                gather.frame(frame.offset, frame.header.first_sequence);
            }
            let epoch = segment.header.epoch;
            let records = folding::records(&*self.codec, &frame.header, walker.plaintext(), epoch, None);
            for record in records.unwrap_or_default() {
                if gather.record(frame.offset, record).is_err() {
                    return Ok(None);
                }
            }
            if walker.next.offset - paid >= PIECE_BYTES {
                pace.spend(walker.next.offset - paid)?;
                paid = walker.next.offset;
            }
        }
        segment.release();
        if walker.end() != *end {
            return Ok(None);
        }
        Ok(gather.finish(start.last_sequence + 1).ok())
    }
}

impl Work for Summarise {
    fn step(&mut self, shared: &Shared, pace: &mut Pace<'_>) -> Result<Step, Halt> {
        let switches = shared.read().switches;
        if self.tidied.replace(switches) != Some(switches) {
            remove_orphans(shared)?;
        }
        let Some((segment, successor)) = self.next(shared) else { return Ok(Step::Idle) };
        let done = self.summarise(shared, pace, &segment, &successor);
        if !matches!(done, Err(Halt::Stopped)) {
            // One try for each open: a failure here may cost what others need, and is worth nothing.
            self.settled.insert(segment.number);
        }
        done.map(|()| Step::Done)
    }
}

/// Summaries of segments that are no more.
fn remove_orphans(shared: &Shared) -> Result<(), JournalError> {
    for entry in store::list(&*shared.store.disk, Folder::Segments)? {
        let Some(of) = SegmentName::parse_summary(&entry.file) else { continue };
        let orphan = {
            let catalog = shared.read();
            catalog.segments.get(&of.first()).is_none_or(|segment| segment.name.file() != of.file_name())
        };
        if let Some(name) = Name::new(Folder::Segments, &entry.file)
            && orphan
            && entry.kind == FileKind::File
        {
            discard(&*shared.store.disk, &name);
        }
    }
    Ok(())
}
