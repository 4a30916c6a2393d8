//! Writes the summaries that are missing, one ended segment a step, and removes those of segments that are gone. Where
//! none is missing it goes along with the segment that is being written.

use std::collections::BTreeSet;
use std::sync::Arc;

use sealog_disk::{FileKind, Folder, Name};
use sealog_journal_format::names::SegmentName;

use crate::background::{Halt, Pace, Step, Work};
use crate::codec::Codec;
use crate::error::JournalError;
use crate::recovery::scan::peek_link;
use crate::recovery::sweep;
use crate::segment::Segment;
use crate::shared::{Catalog, Shared};
use crate::store;
use crate::summary::file::{self, discard};
use crate::summary::taken::Taken;
use crate::writer::prepare;

#[derive(Debug)]
pub(crate) struct Summarise {
    codec: Arc<dyn Codec>,
    /// Segments that have a good summary, or can have none: number and generation.
    settled: BTreeSet<(u64, u64)>,
    /// The segment that is being written, as far as it was taken up.
    following: Option<((u64, u64), Taken)>,
    /// How often files had been replaced when the folder was tidied.
    tidied: Option<u64>,
}

impl Summarise {
    /// `good` are the segments whose summary this start has used.
    pub fn new(codec: Arc<dyn Codec>, good: BTreeSet<(u64, u64)>) -> Summarise {
        Summarise { codec, settled: good, following: None, tidied: None }
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

    fn next(&self, shared: &Shared) -> Option<(Arc<Segment>, Arc<Segment>)> {
        let catalog = shared.read();
        let (segment, successor) = self.waiting(&catalog).next()?;
        Some((Arc::clone(segment), Arc::clone(successor)))
    }

    /// What was taken up of this segment; nobody else's is kept.
    fn followed(&mut self, segment: &Segment) -> Option<Taken> {
        let followed = self.following.take().filter(|(followed, _)| *followed == identity(segment));
        followed.map(|(_, taken)| taken)
    }

    /// Takes up what was written since the last look. It has to be done once, and now it is still in memory: once the
    /// segment has ended, its summary is soon there.
    fn follow(&mut self, shared: &Shared, pace: &mut Pace<'_>) -> Result<Step, Halt> {
        let Some((segment, frames)) = being_written(shared) else { return Ok(Step::Idle) };
        let identity = identity(&segment);
        if self.settled.contains(&identity) {
            return Ok(Step::Idle);
        }
        let mut taken = match self.followed(&segment) {
            Some(taken) => taken,
            None => {
                let Some(start) = peek_link(&segment, false, &*self.codec)? else { return Ok(Step::Idle) };
                Taken::nothing(&start, Arc::clone(&self.codec))
            }
        };
        if taken.frames() == frames {
            self.following = Some((identity, taken));
            return Ok(Step::Idle);
        }
        if taken.go_on(shared, pace, &segment, frames)? {
            self.following = Some((identity, taken));
        } else {
            self.settled.insert(identity);
        }
        Ok(Step::Soon)
    }

    fn summarise(
        &mut self,
        shared: &Shared,
        pace: &mut Pace<'_>,
        segment: &Segment,
        successor: &Segment,
    ) -> Result<(), Halt> {
        let codec = &*shared.store.codec;
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
        let followed = self.followed(segment);
        let mut taken = followed.unwrap_or_else(|| Taken::nothing(&start, Arc::clone(&self.codec)));
        // Damage is not this one's to judge: the scrub comes here, too.
        let whole = taken.go_on(shared, pace, segment, end.frames)? && taken.ends_at(&end);
        segment.release();
        let body = if whole { taken.finish(start.last_sequence + 1) } else { None };
        let Some(body) = body else { return Ok(()) };
        let mut random = [0; 32];
        shared.entropy.fill(&mut random).map_err(|_| JournalError::NoRandomness)?;
        let salt = sealog_seal::sha256(&[&random, &prepare::hedge(shared, &segment.header)]);
        let bytes = body.len() as u64;
        file::save(disk, segment, end, version, salt, body)?;
        tracing::debug!(segment = segment.number, bytes, "summary written");
        pace.spend(bytes)
    }
}

/// The segment that this writer writes, and how many of its frames are durable.
fn being_written(shared: &Shared) -> Option<(Arc<Segment>, u64)> {
    let catalog = shared.read();
    let end = &catalog.durable.end;
    let (active, _) = catalog.active.as_ref()?;
    let segment = catalog.segments.get(&end.segment).filter(|segment| segment.name == *active)?;
    Some((Arc::clone(segment), end.frames))
}

fn identity(segment: &Segment) -> (u64, u64) {
    (segment.number, segment.header.generation)
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
        // What has no summary costs every start, and what is not taken up while it is in memory costs the disk more than
        // it would have: this work must not fall behind for the sake of commits that are uneven just now.
        pace.urgent();
        let Some((segment, successor)) = self.next(shared) else { return self.follow(shared, pace) };
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
