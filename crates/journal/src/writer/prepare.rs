//! The next segment, written as `segments/next` before anybody needs it (JC-1). An error here costs the file, never
//! the writer (JC-7): nothing relies on it before it is published.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sealog_disk::{
    AlignedBuf, DIRECT_ALIGN, Disk, DiskError, ErrorKind, Folder, LogFile, Name, Operation, io,
};
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::limits;
use sealog_journal_format::names;
use sealog_journal_format::segment::{SegmentHeader, SegmentKind, WrapFields};
use sealog_journal_format::version::{RECORD_CODEC, SUITE};
use sealog_seal::{DataKey, SealOnce, SegmentKeys};

use crate::error::{JournalError, Result};
use crate::shared::Shared;

/// One step of filling.
const STEP_BYTES: u64 = 256 << 10;
/// The helper syncs each time so much is filled: one sync of a whole segment would stand in the way of commits.
const SYNC_BYTES: u64 = 1 << 20;
/// How often it is told that there is still no segment: a disk may stay full for days.
const TELL: Duration = Duration::from_secs(60);

/// What the header of the next segment must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub number: u64,
    pub lineage: [u8; 16],
    pub predecessor_lineage: [u8; 16],
    pub epoch: u64,
}

impl Identity {
    fn of(header: &SegmentHeader) -> Identity {
        let SegmentHeader { number, lineage, predecessor_lineage, epoch, .. } = *header;
        Identity { number, lineage, predecessor_lineage, epoch }
    }
}

/// A segment whose header is complete; `filled` bytes of it are zero-filled or header.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub file: Arc<dyn LogFile>,
    pub header: SegmentHeader,
    pub writing: WritingKeys,
    pub reading: SegmentKeys,
    pub length: u64,
}

/// The keys that only the writer of the segment has.
#[derive(Debug)]
pub(crate) struct WritingKeys {
    pub body: SealOnce,
    pub header: sealog_seal::HeaderKey,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Nothing,
    Wanted {
        identity: Identity,
        target: u64,
    },
    Filling {
        segment: Box<Prepared>,
        target: u64,
    },
    Ready(Box<Prepared>),
    /// Ready, and to be made longer: more room is needed before new work is taken again.
    Growing {
        segment: Box<Prepared>,
        target: u64,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Preparation {
    state: State,
    /// A file was begun here: from then on no `segments/next` is an earlier writer's, also not one that was handed over
    /// and has not got its new name yet.
    begun: bool,
    /// After a failure nothing is tried before this time (monotonic).
    not_before: Option<Duration>,
    /// When it was told last that there is none (monotonic); nothing since there was one.
    told: Option<Duration>,
}

/// The preparation, shared by the writer and its helper. The helper holds the lock while it fills and syncs, which may
/// take as long as the disk likes, so what the writer asks before each group stands beside the lock.
#[derive(Debug, Default)]
pub(crate) struct Preparing {
    work: Mutex<Preparation>,
    ready_bytes: AtomicU64,
    under_way: AtomicBool,
}

/// The preparation, locked; what it has come to is published when it is let go.
pub(crate) struct Locked<'a> {
    preparing: &'a Preparing,
    work: MutexGuard<'a, Preparation>,
}

impl Preparing {
    pub fn lock(&self) -> Locked<'_> {
        Locked { preparing: self, work: crate::shared::lock(&self.work) }
    }

    /// Bytes of a ready segment, as the last holder of the lock left it; 0 if there is none.
    pub fn ready_bytes(&self) -> u64 {
        self.ready_bytes.load(Ordering::Acquire)
    }

    /// Whether a segment was asked for and is not published yet, ready or not.
    pub fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Acquire)
    }
}

impl Deref for Locked<'_> {
    type Target = Preparation;

    fn deref(&self) -> &Preparation {
        &self.work
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Preparation {
        &mut self.work
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.preparing.ready_bytes.store(self.work.ready_bytes(), Ordering::Release);
        let under_way = !matches!(self.work.state, State::Nothing);
        self.preparing.under_way.store(under_way, Ordering::Release);
    }
}

pub(crate) fn next_name() -> Name {
    Name::new(Folder::Segments, names::NEXT).expect("a constant name is valid")
}

impl Preparation {
    /// Asks the helper for a segment, unless one is under way.
    pub fn want(&mut self, identity: Identity, target: u64) {
        if matches!(self.state, State::Nothing) {
            self.state = State::Wanted { identity, target };
        }
    }

    /// Asks the helper for a segment of `target` bytes, be it by making the ready one longer.
    pub fn want_more(&mut self, identity: Identity, target: u64) {
        self.state = match std::mem::take(&mut self.state) {
            State::Ready(segment) if segment.length < target => State::Growing { segment, target },
            other => other,
        };
        self.want(identity, target);
    }

    /// Whether everything that was asked for is ready.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }

    fn ready_bytes(&self) -> u64 {
        match &self.state {
            State::Ready(segment) | State::Growing { segment, .. } => segment.length,
            State::Nothing | State::Wanted { .. } | State::Filling { .. } => 0,
        }
    }

    /// Whether a step would do something now.
    pub fn pending(&self, now: Duration) -> bool {
        let unfinished = match self.state {
            State::Wanted { .. } | State::Filling { .. } | State::Growing { .. } => true,
            State::Nothing | State::Ready(_) => false,
        };
        unfinished && !self.resting(now)
    }

    /// Whether the last try failed so recently that another one would only cost time.
    pub fn resting(&self, now: Duration) -> bool {
        self.not_before.is_some_and(|t| now < t)
    }

    /// One bounded piece of work. An error discards the file; the whole is tried again after a rest.
    pub fn step(&mut self, shared: &Shared) -> Result<()> {
        let (identity, target, result) = match std::mem::take(&mut self.state) {
            State::Wanted { identity, target } => {
                self.begun = true;
                let created = create(shared, identity);
                let filling = created.map(|segment| State::Filling { segment: Box::new(segment), target });
                (identity, target, filling)
            }
            State::Filling { mut segment, target } => {
                let identity = Identity::of(&segment.header);
                let filled = fill(&mut segment, target).and_then(|()| {
                    if segment.length < target {
                        if segment.length.is_multiple_of(SYNC_BYTES) {
                            segment.file.sync_data()?;
                        }
                        return Ok(State::Filling { segment, target });
                    }
                    segment.file.sync_all()?;
                    Ok(State::Ready(segment))
                });
                (identity, target, filled)
            }
            State::Growing { segment, target } => {
                let identity = Identity::of(&segment.header);
                let grown = self.grow(shared, segment, target);
                if grown.is_err() {
                    self.want_more(identity, target);
                }
                return grown;
            }
            other @ (State::Nothing | State::Ready(_)) => {
                self.state = other;
                return Ok(());
            }
        };
        let settled = self.settle(shared, result);
        if settled.is_err() {
            self.state = State::Wanted { identity, target };
        }
        settled
    }

    /// Makes a segment of at least `need` bytes ready at once, while units wait: what is filled is taken if it is enough,
    /// otherwise filling goes on as far as needed, or to what costs a moment and spares the next roll. A ready one that
    /// is too small is made longer.
    pub fn finish(&mut self, shared: &Shared, identity: Identity, need: u64, target: u64) -> Result<()> {
        let target = target.min(need.max(shared.tuning.first_segment_bytes));
        let result = match std::mem::take(&mut self.state) {
            State::Ready(segment) if segment.length >= need => {
                self.state = State::Ready(segment);
                return Ok(());
            }
            State::Ready(segment) | State::Growing { segment, .. } => {
                return self.grow(shared, segment, need);
            }
            State::Filling { segment, .. } => fill_at_once(*segment, need, target).map(Box::new),
            State::Nothing | State::Wanted { .. } => {
                self.begun = true;
                create(shared, identity).and_then(|segment| fill_at_once(segment, need, target)).map(Box::new)
            }
        };
        let synced = result.and_then(|segment| {
            segment.file.sync_all()?;
            Ok(State::Ready(segment))
        });
        self.settle(shared, synced)
    }

    /// More zeros behind a segment that is ready. If there is no room for them it stays as it was: it may be all
    /// that the reserved units will get.
    fn grow(&mut self, shared: &Shared, mut segment: Box<Prepared>, need: u64) -> Result<()> {
        let before = segment.length;
        match fill_to(&mut segment, need) {
            Ok(()) => {
                let synced = segment.file.sync_all().map_err(JournalError::from);
                self.settle(shared, synced.map(|()| State::Ready(segment)))
            }
            Err(e) => {
                segment.length = before;
                if is_full(&e) && segment.file.set_length(before).is_ok() {
                    self.state = State::Ready(segment);
                    crate::shared::lock(&shared.status).shortage = Some(ErrorKind::Full);
                    self.rest(shared, &e);
                    return Err(e);
                }
                self.settle(shared, Err(e))
            }
        }
    }

    /// Hands the ready segment over for publication.
    pub fn take_ready(&mut self) -> Option<Prepared> {
        match std::mem::take(&mut self.state) {
            State::Ready(segment) | State::Growing { segment, .. } => Some(*segment),
            other @ (State::Nothing | State::Wanted { .. } | State::Filling { .. }) => {
                self.state = other;
                None
            }
        }
    }

    /// Removes `segments/next` of an earlier writer, unless a preparation has begun: that has removed it already.
    pub fn discard_foreign(&self, shared: &Shared) {
        if !self.begun {
            remove_file(&*shared.store.disk);
        }
    }

    /// Drops whatever is under way and its file.
    pub fn discard(&mut self, shared: &Shared) {
        if !matches!(std::mem::take(&mut self.state), State::Nothing) {
            remove_file(&*shared.store.disk);
        }
    }

    fn settle(&mut self, shared: &Shared, result: Result<State>) -> Result<()> {
        let shortage = result.as_ref().err().map(shortage_of);
        crate::shared::lock(&shared.status).shortage = shortage;
        match result {
            Ok(state) => {
                // A file that was begun is not there yet: on a full disk it can be begun again and again.
                if matches!(state, State::Ready(_)) {
                    self.told = None;
                }
                self.state = state;
                self.not_before = None;
                Ok(())
            }
            Err(e) => {
                remove_file(&*shared.store.disk);
                self.rest(shared, &e);
                Err(e)
            }
        }
    }

    fn rest(&mut self, shared: &Shared, why: &JournalError) {
        let now = shared.clock.monotonic();
        self.not_before = Some(now + shared.tuning.prepare_retry);
        if self.tells(now) {
            tracing::warn!(error = %why, "the next segment could not be prepared");
        }
    }

    /// Whether a failure is told now: the first one, and then one in a while.
    fn tells(&mut self, now: Duration) -> bool {
        let tells = self.told.is_none_or(|told| now.saturating_sub(told) >= TELL);
        if tells {
            self.told = Some(now);
        }
        tells
    }
}

/// Fills up to `target` bytes, or as far as there is room if that is at least `need`.
fn fill_at_once(mut segment: Prepared, need: u64, target: u64) -> Result<Prepared> {
    fill_to(&mut segment, need)?;
    match fill_to(&mut segment, target) {
        Err(e) if is_full(&e) => segment.file.set_length(segment.length)?,
        other => other?,
    }
    Ok(segment)
}

fn fill_to(segment: &mut Prepared, length: u64) -> Result<()> {
    while segment.length < length {
        fill(segment, length)?;
    }
    Ok(())
}

fn shortage_of(e: &JournalError) -> ErrorKind {
    if let JournalError::Disk(e) = e { e.kind } else { ErrorKind::Io }
}

/// No room, said by the write itself: the bytes written before it are as good as ever. A failed sync is another
/// matter (JA-4).
pub(crate) fn is_full(e: &JournalError) -> bool {
    matches!(e, JournalError::Disk(e) if e.kind == ErrorKind::Full && e.op == Operation::Write)
}

/// Creates the file with both header copies. The data key is fresh and hedged (JF-5).
fn create(shared: &Shared, identity: Identity) -> Result<Prepared> {
    let disk = &*shared.store.disk;
    remove_file(disk);
    let header = SegmentHeader {
        store_id: shared.store.id().0,
        number: identity.number,
        suite: SUITE,
        codec: RECORD_CODEC,
        kind: SegmentKind::Log,
        lineage: identity.lineage,
        predecessor_lineage: identity.predecessor_lineage,
        epoch: identity.epoch,
        created_ms: shared.clock.wall_ms(),
        key_id: [0; 16],
        wrap: WrapFields::default(),
        range_last: identity.number,
        generation: 0,
        link_in: EndRecord::NONE,
        link_out: EndRecord::NONE,
    };
    let Keyed { header, writing, reading } = with_fresh_key(shared, header)?;
    let file = disk.create(&next_name())?;
    let bytes = header.encode();
    io::write_all_at(&*file, &bytes, 0)?;
    io::write_all_at(&*file, &bytes, limits::HEADER_BYTES as u64)?;
    Ok(Prepared { file, header, writing, reading, length: limits::DATA_START })
}

/// A header with a data key of its own, and that key.
pub(crate) struct Keyed {
    pub header: SegmentHeader,
    pub writing: WritingKeys,
    pub reading: SegmentKeys,
}

/// Draws and wraps the data key of one file; every file gets a fresh one (JF-5). Fills in root key and wrap.
pub(crate) fn with_fresh_key(shared: &Shared, mut header: SegmentHeader) -> Result<Keyed> {
    let mut random = [0; 64];
    shared.entropy.fill(&mut random).map_err(|_| JournalError::NoRandomness)?;
    let (key_part, salt_part) = random.split_at(32);
    let root = shared.store.keyring.active_root();
    header.key_id = root.id().0;
    let data_key = DataKey::generate(array(key_part), &hedge(shared, &header));
    // Hedged as well: repeated random numbers must not wrap two data keys under one key.
    let salt = sealog_seal::sha256(&[salt_part, &hedge(shared, &header)]);
    header.wrap.salt = salt;
    let purpose = header.wrap_purpose();
    let wrapped = root.wrap(&purpose, salt, &data_key, |check| {
        header.wrap.check = *check;
        header.wrap_context().to_vec()
    });
    header.wrap.sealed = wrapped.sealed;
    header.wrap.tag = wrapped.tag;
    let bytes = header.encode();
    let (own, reading) = (data_key.segment_keys(&bytes), data_key.segment_keys(&bytes));
    let writing = WritingKeys { body: SealOnce::new(own.body), header: own.header };
    Ok(Keyed { header, writing, reading })
}

fn array(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().expect("half of 64 bytes")
}

/// What keeps two segments apart even if the random numbers repeat.
pub(crate) fn hedge(shared: &Shared, header: &SegmentHeader) -> Vec<u8> {
    let mut hedge = header.fixed_fields().to_vec();
    hedge.extend_from_slice(&shared.clock.wall_ms().to_le_bytes());
    hedge.extend_from_slice(&shared.clock.boot_id());
    hedge.extend_from_slice(&shared.clock.process_id().to_le_bytes());
    hedge
}

/// Zero-fills up to the next whole step, never past `target`.
fn fill(segment: &mut Prepared, target: u64) -> Result<()> {
    let step = STEP_BYTES - segment.length % STEP_BYTES;
    let len = step.min(target.saturating_sub(segment.length));
    io::write_all_at(&*segment.file, &ZEROS[..len as usize], segment.length)?;
    segment.length += len;
    Ok(())
}

static ZEROS: [u8; STEP_BYTES as usize] = [0; STEP_BYTES as usize];

/// Removes `segments/next`. It is nobody's yet, so an error only means that the next start finds it.
fn remove_file(disk: &dyn Disk) {
    if let Err(e) = disk.remove(&next_name()) {
        tracing::debug!(kind = ?e.kind, "segments/next was not removed");
    }
}

/// Whether the direct path works on this file: its first header block is written again with equal bytes. Where a
/// second handle cannot be had, the portable path does.
pub(crate) fn probe_direct(
    disk: &dyn Disk,
    name: &Name,
    header: &SegmentHeader,
) -> std::result::Result<Option<Arc<dyn LogFile>>, DiskError> {
    let Ok(Some(file)) = disk.open_direct(name) else { return Ok(None) };
    let mut block = AlignedBuf::zeroed(DIRECT_ALIGN);
    block.copy_from_slice(&header.encode());
    match io::write_all_durable_at(&*file, &block, 0) {
        Ok(()) => Ok(Some(file)),
        Err(e) if e.kind == ErrorKind::Unsupported => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::setup::Bench;

    #[test]
    fn a_disk_that_stays_full_is_told_once_in_a_while() {
        let opened = Bench::new().open().unwrap();
        let shared = opened.journal.shared();
        let mut preparation = Preparation::default();
        let tells = |preparation: &mut Preparation, s| preparation.tells(Duration::from_secs(s));
        assert!(tells(&mut preparation, 100));
        // An empty file is begun on a full disk too.
        preparation.settle(shared, Ok(State::Nothing)).unwrap();
        assert!(!tells(&mut preparation, 159));
        assert!(tells(&mut preparation, 160));
        let identity = Identity { number: 9, lineage: [1; 16], predecessor_lineage: [1; 16], epoch: 1 };
        let segment = Box::new(create(shared, identity).unwrap());
        preparation.settle(shared, Ok(State::Ready(segment))).unwrap();
        assert!(tells(&mut preparation, 161));
    }
}
