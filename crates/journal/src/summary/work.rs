//! Writes the summaries that are missing, one ended segment a step, and removes those of segments that are gone.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealog_disk::{FileKind, Folder, Name};
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::frame::FrameKind;
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::record::GroupReader;

use crate::background::{Halt, Pace, Step, Work};
use crate::codec::Codec;
use crate::error::JournalError;
use crate::record::Record;
use crate::recovery::scan::peek_link;
use crate::recovery::sweep;
use crate::recovery::table::Found;
use crate::recovery::walk::{Step as Walked, Walked as Frame, Walker};
use crate::segment::Segment;
use crate::shared::{Catalog, Shared};
use crate::store;
use crate::summary::file::{self, discard};
use crate::summary::gather::{Gather, Unsummarised};
use crate::writer::prepare;

/// Bytes read between two looks at the pace.
const PIECE_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(crate) struct Summarise {
    codec: Arc<dyn Codec>,
    /// Segments that have a good summary, or can have none: number and generation.
    settled: BTreeSet<(u64, u64)>,
    /// How often files had been replaced when the folder was tidied.
    tidied: Option<u64>,
}

impl Summarise {
    /// `good` are the segments whose summary this start has used.
    pub fn new(codec: Arc<dyn Codec>, good: BTreeSet<(u64, u64)>) -> Summarise {
        Summarise { codec, settled: good, tidied: None }
    }

    /// Ended segments that are not settled, the oldest first, with the successor whose link says how each ends.
    fn waiting<'a>(
        &'a self,
        catalog: &'a Catalog,
    ) -> impl Iterator<Item = (&'a Arc<Segment>, &'a Arc<Segment>)> {
        let ended = catalog.segments.range(..catalog.durable.end.segment);
        let pairs =
            ended.filter_map(|(_, segment)| Some((segment, catalog.segments.get(&(segment.last() + 1))?)));
        pairs.filter(|(segment, _)| !self.settled.contains(&identity(segment)))
    }

    /// The next one, and whether more than one waits. What has no summary costs every start, so this work must not fall
    /// behind for the sake of commits that are never even: the rate alone holds it back then.
    fn next(&self, shared: &Shared) -> Option<(Arc<Segment>, Arc<Segment>, bool)> {
        let catalog = shared.read();
        let mut waiting = self.waiting(&catalog);
        let (segment, successor) = waiting.next()?;
        let pair = (Arc::clone(segment), Arc::clone(successor));
        Some((pair.0, pair.1, waiting.next().is_some()))
    }

    fn summarise(
        &self,
        shared: &Shared,
        pace: &mut Pace<'_>,
        segment: &Segment,
        successor: &Segment,
    ) -> Result<(), Halt> {
        let codec = &*self.codec;
        let linked = peek_link(successor, false, codec)?.filter(|link| link.segment == segment.last());
        let Some(named) = linked else {
            return Err(Halt::Failed(JournalError::Misuse("an ended segment without a successor's link")));
        };
        let Some(start) = peek_link(segment, false, codec)? else { return Ok(()) };
        let Some(end) = sweep::own_end(segment, &start, &named, codec)? else { return Ok(()) };
        let version = self.codec.digest_version();
        let disk = &*shared.store.disk;
        if file::load(disk, segment, &end, version).is_some() {
            return Ok(());
        }
        let Some(body) = self.gather(pace, segment, &start, &end)? else { return Ok(()) };
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
        start: &EndRecord,
        end: &EndRecord,
    ) -> Result<Option<Vec<u8>>, Halt> {
        let mut walker = Walker::new(segment, start, false, &*self.codec)?;
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
            if take(&mut gather, segment, &mut walker, &frame).is_err() {
                return Ok(None);
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

fn identity(segment: &Segment) -> (u64, u64) {
    (segment.number, segment.header.generation)
}

/// The records of a frame, or those that it has put in order; where reading by sequence may begin.
fn take(
    gather: &mut Gather<'_>,
    segment: &Segment,
    walker: &mut Walker<'_>,
    frame: &Frame,
) -> Result<(), Unsummarised> {
    if segment.is_compacted() {
        // Read from its beginning: any of its frames may hold an early record.
        if frame.header.kind == FrameKind::Sources {
            gather.frame(frame.offset, frame.header.first_sequence);
        }
        return walker
            .take_ready()
            .into_iter()
            .try_for_each(|placed| gather.record(placed.offset, &placed.record));
    }
    let Ok(group) = GroupReader::new(walker.plaintext(), frame.header.record_count) else { return Ok(()) };
    gather.frame(frame.offset, frame.header.first_sequence);
    let mut record = Record::blank();
    for (read, sequence) in group.zip(frame.header.first_sequence..) {
        record.take(&read.map_err(|_| Unsummarised)?, sequence, segment.header.epoch);
        gather.record(frame.offset, &record)?;
    }
    Ok(())
}

impl Work for Summarise {
    fn name(&self) -> &'static str {
        "summaries"
    }

    fn step(&mut self, shared: &Shared, pace: &mut Pace<'_>) -> Result<Step, Halt> {
        let switches = shared.read().switches;
        if self.tidied.replace(switches) != Some(switches) {
            remove_orphans(shared)?;
        }
        let Some((segment, successor, behind)) = self.next(shared) else { return Ok(Step::Idle) };
        pace.urgent(behind);
        let done = self.summarise(shared, pace, &segment, &successor);
        if !matches!(done, Err(Halt::Stopped)) {
            // One try for each open: a failure here may cost what others need, and is worth nothing.
            self.settled.insert(identity(&segment));
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
