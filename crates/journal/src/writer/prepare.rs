//! The next segment, written as `segments/next` before anybody needs it (JC-1). An error here costs the file, never
//! the writer (JC-7): nothing relies on it before it is published.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::{AlignedBuf, DIRECT_ALIGN, Disk, DiskError, ErrorKind, Folder, LogFile, Name, io};
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

/// What the header of the next segment must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub number: u64,
    pub lineage: [u8; 16],
    pub predecessor_lineage: [u8; 16],
    pub epoch: u64,
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
}

#[derive(Debug, Default)]
pub(crate) struct Preparation {
    state: State,
    /// After a failure nothing is tried before this time (monotonic).
    not_before: Option<Duration>,
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

    /// Bytes of a ready segment; 0 if there is none.
    pub fn ready_bytes(&self) -> u64 {
        match &self.state {
            State::Ready(segment) => segment.length,
            State::Nothing | State::Wanted { .. } | State::Filling { .. } => 0,
        }
    }

    /// Whether a step would do something now.
    pub fn pending(&self, now: Duration) -> bool {
        matches!(self.state, State::Wanted { .. } | State::Filling { .. }) && !self.resting(now)
    }

    /// Whether the last try failed so recently that another one would only cost time.
    pub fn resting(&self, now: Duration) -> bool {
        self.not_before.is_some_and(|t| now < t)
    }

    /// One bounded piece of work. Errors discard the file and are tried again later.
    pub fn step(&mut self, shared: &Shared) -> Result<()> {
        let state = std::mem::take(&mut self.state);
        let result = match state {
            State::Wanted { identity, target } => {
                create(shared, identity).map(|segment| State::Filling { segment: Box::new(segment), target })
            }
            State::Filling { mut segment, target } => fill(&mut segment, target).and_then(|()| {
                if segment.length < target {
                    return Ok(State::Filling { segment, target });
                }
                segment.file.sync_all()?;
                Ok(State::Ready(segment))
            }),
            other @ (State::Nothing | State::Ready(_)) => Ok(other),
        };
        self.settle(shared, result)
    }

    /// Makes a segment of at least `need` bytes ready at once: what is filled is taken if it is enough, otherwise
    /// filling goes on only as far as needed. A ready one that is too small is given up.
    pub fn finish(&mut self, shared: &Shared, identity: Identity, need: u64, target: u64) -> Result<()> {
        let state = std::mem::take(&mut self.state);
        let result = finish(shared, state, identity, need, target).map(|s| State::Ready(Box::new(s)));
        self.settle(shared, result)
    }

    /// Hands the ready segment over for publication.
    pub fn take_ready(&mut self) -> Option<Prepared> {
        match std::mem::take(&mut self.state) {
            State::Ready(segment) => Some(*segment),
            other @ (State::Nothing | State::Wanted { .. } | State::Filling { .. }) => {
                self.state = other;
                None
            }
        }
    }

    /// Drops whatever is under way and its file.
    pub fn discard(&mut self, shared: &Shared) {
        if !matches!(std::mem::take(&mut self.state), State::Nothing) {
            remove_file(&*shared.store.disk);
        }
    }

    fn settle(&mut self, shared: &Shared, result: Result<State>) -> Result<()> {
        match result {
            Ok(state) => {
                self.state = state;
                self.not_before = None;
                Ok(())
            }
            Err(e) => {
                remove_file(&*shared.store.disk);
                self.not_before = Some(shared.clock.monotonic() + shared.tuning.prepare_retry);
                Err(e)
            }
        }
    }
}

fn finish(shared: &Shared, state: State, identity: Identity, need: u64, target: u64) -> Result<Prepared> {
    let mut segment = match state {
        State::Ready(segment) if segment.length >= need => return Ok(*segment),
        State::Filling { segment, .. } => *segment,
        State::Nothing | State::Wanted { .. } => create(shared, identity)?,
        State::Ready(segment) => {
            drop(segment);
            create(shared, identity)?
        }
    };
    // A fresh first segment is filled to its target at once; one that the filler had begun only as far as needed.
    let enough = if segment.length > limits::DATA_START { need } else { need.max(target) };
    while segment.length < enough {
        fill(&mut segment, enough)?;
    }
    segment.file.sync_all()?;
    Ok(segment)
}

/// Creates the file with both header copies. The data key is fresh and hedged (JF-5).
fn create(shared: &Shared, identity: Identity) -> Result<Prepared> {
    let disk = &*shared.store.disk;
    remove_file(disk);
    let mut random = [0; 64];
    shared.entropy.fill(&mut random).map_err(|_| JournalError::NoRandomness)?;
    let (key_part, salt_part) = random.split_at(32);
    let root = shared.store.keyring.active_root();
    let mut header = SegmentHeader {
        store_id: shared.store.id().0,
        number: identity.number,
        suite: SUITE,
        codec: RECORD_CODEC,
        kind: SegmentKind::Log,
        lineage: identity.lineage,
        predecessor_lineage: identity.predecessor_lineage,
        epoch: identity.epoch,
        created_ms: shared.clock.wall_ms(),
        key_id: root.id().0,
        wrap: WrapFields::default(),
        range_last: identity.number,
        generation: 0,
        link_in: EndRecord::NONE,
        link_out: EndRecord::NONE,
    };
    let data_key = DataKey::generate(array(key_part), &hedge(shared, &header));
    let salt = array(salt_part);
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
    let file = disk.create(&next_name())?;
    io::write_all_at(&*file, &bytes, 0)?;
    io::write_all_at(&*file, &bytes, limits::HEADER_BYTES as u64)?;
    let writing = WritingKeys { body: SealOnce::new(own.body), header: own.header };
    Ok(Prepared { file, header, writing, reading, length: limits::DATA_START })
}

fn array(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().expect("half of 64 bytes")
}

/// What keeps two segments apart even if the random numbers repeat.
fn hedge(shared: &Shared, header: &SegmentHeader) -> Vec<u8> {
    let mut hedge = header.fixed_fields().to_vec();
    hedge.extend_from_slice(&shared.clock.wall_ms().to_le_bytes());
    hedge.extend_from_slice(&shared.clock.boot_id());
    hedge.extend_from_slice(&shared.clock.process_id().to_le_bytes());
    hedge
}

/// Zero-fills one more step, never past `target`.
fn fill(segment: &mut Prepared, target: u64) -> Result<()> {
    let len = STEP_BYTES.min(target.saturating_sub(segment.length));
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

/// Whether the direct path works on this file: its first header block is written again with equal bytes.
pub(crate) fn probe_direct(
    disk: &dyn Disk,
    name: &Name,
    header: &SegmentHeader,
) -> std::result::Result<Option<Arc<dyn LogFile>>, DiskError> {
    let Some(file) = disk.open_direct(name)? else { return Ok(None) };
    let mut block = AlignedBuf::zeroed(DIRECT_ALIGN);
    block.copy_from_slice(&header.encode());
    match io::write_all_durable_at(&*file, &block, 0) {
        Ok(()) => Ok(Some(file)),
        Err(e) if e.kind == ErrorKind::Unsupported => Ok(None),
        Err(e) => Err(e),
    }
}
