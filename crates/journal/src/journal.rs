//! The journal opened for writing: recovery first, then one writer, any number of readers in this process.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sealog_disk::{DiskLock, ErrorKind, FileId, Folder, Name};
use sealog_journal_format::FrameKind;
use sealog_journal_format::record::check_unit;

use crate::background::{Background, Step, Work};
use crate::cache::FrameCache;
use crate::compact::Compaction;
use crate::completion::{Completion, Dispatcher, Ticket};
use crate::config::Config;
use crate::counters::{Counters, Counting};
use crate::error::{JournalError, Place, Result};
use crate::head::{self, HeadState, HeadWriter, head_name};
use crate::index::{FrameRef, StreamFacts};
use crate::lock;
use crate::reader::{SequenceReader, StreamReader};
use crate::record::{Record, Replay, StreamId, Unit};
use crate::recovery::apply::{self, Keeping, Repairs};
use crate::recovery::findings::{FrameView, Scan, SegmentFacts, Sink, TornTail, Unchecked};
use crate::recovery::scan;
use crate::recovery::set_aside;
use crate::recovery::sweep::Sweep;
use crate::rekey;
use crate::scrub::Scrub;
use crate::shared::{self, Catalog, Durable, Head, Health, Mark, Shared, Status};
use crate::store::{SegmentFiles, Store, store_name};
use crate::summary::{Summarise, Summary};
use crate::writer::core::{Core, Turn};
use crate::writer::maintain::Maintenance;
use crate::writer::prepare::Preparing;
use crate::writer::queue::{Admission, NotQueued, Queue};
use crate::writer::threads::Threads;

mod reading;
mod usage;

pub use usage::Usage;

/// What a start found and did.
#[derive(Clone, Debug)]
pub struct RecoveryReport {
    pub store_id: [u8; 16],
    /// The epoch that this open writes in.
    pub epoch: u64,
    pub last_sequence: u64,
    pub segments: Vec<SegmentFacts>,
    /// A write that never finished and was cut.
    pub tail: Option<TornTail>,
    pub repairs: Repairs,
    /// Whether the last segment was read from the device itself (`false`: the page cache was judged).
    pub device_read: bool,
    /// Ended segments that a summary stood for: not yet checked to the last byte.
    pub unchecked: Vec<Unchecked>,
    /// Streams without a closing record: work of earlier epochs that was interrupted (JR-12).
    pub interrupted: Vec<(StreamId, StreamFacts)>,
}

impl RecoveryReport {
    /// Whether this start cut bytes that were not zero: something had been written there.
    pub fn cut_written_bytes(&self) -> bool {
        self.tail.is_some()
    }
}

/// Why a unit was not taken.
#[derive(Debug)]
pub enum Refusal {
    /// The queue is full; the unit comes back. Try again when [`Journal::poll_room`] says so.
    Busy(Unit),
    /// A unit or record above the limits of JF-11, or without a record.
    TooLarge,
    Ended(JournalError),
}

/// A journal opened for writing. Clones share it; [`Journal::close`] ends it for all.
#[derive(Clone, Debug)]
pub struct Journal {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    core: Arc<Mutex<Core>>,
    maintenance: Mutex<Maintenance>,
    background: Arc<Mutex<Background>>,
    threads: Mutex<Option<Threads>>,
    lock: Mutex<Option<Box<dyn DiskLock>>>,
}

impl Journal {
    /// Opens for writing with a writer thread and its helper. Every record is handed to `replay` in order.
    ///
    /// # Errors
    /// See [`JournalError`]; nothing on disk is changed by a refusal but the text in `LOCK`.
    pub fn open(config: &Config, replay: &mut dyn Replay) -> Result<(Journal, RecoveryReport)> {
        let (journal, report) = Journal::open_manual(config, replay)?;
        let threads = Threads::start(&journal.inner.shared, &journal.inner.core, &journal.inner.background)?;
        *shared::lock(&journal.inner.threads) = Some(threads);
        Ok((journal, report))
    }

    /// As [`Journal::open`], without threads: [`Journal::turn`] and [`Journal::maintain`] are called by the owner.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_manual(config: &Config, replay: &mut dyn Replay) -> Result<(Journal, RecoveryReport)> {
        let held = lock::take(&*config.disk, &*config.clock, config.tuning.lock_wait)?;
        let mut store = Store::open(config)?;
        let now_ms = config.clock.wall_ms();
        lock::note(&*config.disk, &*config.clock);
        let head = head::read(&*store.disk, &store.keyring)?;
        let (digest_version, bytes_max) = (config.codec.digest_version(), config.tuning.boot_check_bytes);
        let sweep = replay.takes_digests().then_some(Sweep::Summaries { digest_version, bytes_max });
        let mut build = Build::new(replay);
        let threads = config.tuning.check_threads;
        let files = store.segment_files()?;
        let device_read = make_durable(&store, &files)?;
        let scan = scan::scan_at_start(&store, &head, files, threads, sweep, &mut build)?;
        refuse_problems(&store, &scan, &head, now_ms)?;
        let mut catalog = build.catalog;
        let keep_ms = u64::try_from(config.tuning.quarantine_keep.as_millis()).unwrap_or(u64::MAX);
        let keeping = Keeping { now_ms, keep_ms };
        let (mut repairs, leftovers) = apply::apply(&store, &head, &scan, keeping)?;
        repairs.root_keys_dropped = rekey::drop_unused_roots(config, &mut store)?;
        // `apply` may have moved the head on.
        let head = if repairs.empty_segment_removed.is_some() {
            head::read(&*store.disk, &store.keyring)?
        } else {
            head
        };
        let epoch = head.slot.as_ref().map_or(0, |slot| slot.epoch).max(scan.epoch()) + 1;
        let report = RecoveryReport {
            store_id: store.id().0,
            epoch,
            last_sequence: scan.end.last_sequence,
            segments: scan.segments.clone(),
            tail: scan.tails.first().cloned(),
            repairs,
            device_read,
            unchecked: scan.unchecked.clone(),
            interrupted: catalog.index.open_streams(),
        };
        fill_catalog(&mut catalog, &scan, epoch - 1, config.clock.monotonic());
        let writer = HeadWriter::open(&*store.disk, &store.keyring, &head)?;
        let journal = assemble(config, store, writer, &scan, catalog, epoch, Some(held))?;
        *shared::lock(&journal.inner.shared.leftovers) = leftovers;
        Ok((journal, report))
    }

    /// Takes a unit. The ticket resolves when it is durable; what is dropped before is still written.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn submit(&self, unit: Unit, admission: Admission) -> std::result::Result<Ticket, Refusal> {
        self.submit_waking(unit, admission, None)
    }

    /// As [`Journal::submit`]; when it answers `Busy`, `waker` is woken once there may be room.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn submit_waking(
        &self,
        unit: Unit,
        admission: Admission,
        waker: Option<&Waker>,
    ) -> std::result::Result<Ticket, Refusal> {
        if check_unit(unit.records.iter().map(crate::writer::core::as_ref)).is_err() {
            return Err(Refusal::TooLarge);
        }
        match self.inner.shared.queue.push(unit, admission, waker) {
            Ok(number) => Ok(Ticket::new(Arc::clone(&self.inner.shared.completion), number)),
            Err(NotQueued::Busy(unit)) => Err(Refusal::Busy(unit)),
            Err(NotQueued::Ended(error)) => Err(Refusal::Ended(error)),
        }
    }

    /// Submits an ordinary unit as soon as the queue has room, and waits until it is durable.
    ///
    /// # Errors
    /// `TooLarge` as `Misuse`; whatever the ticket says.
    pub async fn append(&self, unit: Unit, admission: Admission) -> Result<()> {
        let mut unit = Some(unit);
        let ticket = std::future::poll_fn(|cx: &mut Context<'_>| {
            let Some(offered) = unit.take() else { return Poll::Pending };
            match self.submit_waking(offered, admission, Some(cx.waker())) {
                Ok(ticket) => Poll::Ready(Ok(ticket)),
                Err(Refusal::Busy(_)) if admission == Admission::Create => {
                    Poll::Ready(Err(JournalError::Busy))
                }
                Err(Refusal::Busy(back)) => {
                    unit = Some(back);
                    Poll::Pending
                }
                Err(Refusal::TooLarge) => Poll::Ready(Err(JournalError::Misuse("the unit is too large"))),
                Err(Refusal::Ended(e)) => Poll::Ready(Err(e)),
            }
        })
        .await?;
        ticket.await
    }

    /// A future that wakes due tickets in the runtime that runs it: one wake a group instead of one a ticket.
    pub fn dispatcher(&self) -> Dispatcher {
        Dispatcher::new(Arc::clone(&self.inner.shared.completion))
    }

    /// The newest durable sequence; 0 before the first record.
    pub fn durable_sequence(&self) -> u64 {
        self.inner.shared.durable_sequence.load(Ordering::Acquire)
    }

    /// Blocks until `sequence` is durable. `false`: the time is over, or it will never be.
    pub fn wait_durable(&self, sequence: u64, timeout: Duration) -> bool {
        let shared = &self.inner.shared;
        let mut status = shared::lock(&shared.status);
        status.waiting_for_sequence += 1;
        let waiting = |status: &mut Status| {
            self.durable_sequence() < sequence && status.poisoned.is_none() && !status.closed
        };
        let waited = shared.moved.wait_timeout_while(status, timeout, waiting);
        let (mut status, _) = waited.unwrap_or_else(PoisonError::into_inner);
        status.waiting_for_sequence -= 1;
        drop(status);
        self.durable_sequence() >= sequence
    }

    /// The durable records of a stream from an event number on; records that are no events come with them.
    pub fn read_stream(&self, stream: StreamId, from_event: u64) -> StreamReader {
        StreamReader::new(Arc::clone(&self.inner.shared), stream, from_event)
    }

    /// All durable records from a sequence on.
    pub fn read_from(&self, sequence: u64) -> SequenceReader {
        SequenceReader::new(Arc::clone(&self.inner.shared), sequence)
    }

    pub fn stream(&self, stream: StreamId) -> Option<StreamFacts> {
        self.inner.shared.read().index.facts(&stream)
    }

    /// Streams that are known.
    pub fn streams(&self) -> usize {
        self.inner.shared.read().index.len()
    }

    pub fn counters(&self) -> Counters {
        self.inner.shared.counting.view(self.inner.shared.queue.depth())
    }

    pub fn health(&self) -> Health {
        self.inner.shared.health()
    }

    /// Why new work is refused, if that is so: ENOSPC, EMFILE, EROFS and EIO are told apart. `None`: it is not, or for
    /// the budget's sake.
    pub fn shortage(&self) -> Option<ErrorKind> {
        let status = shared::lock(&self.inner.shared.status);
        status.shortage.filter(|_| status.full)
    }

    /// The damage that stopped the writer while it ran; `None` if there was none, or it stopped for another reason. A
    /// later start refuses with the same.
    pub fn damage(&self) -> Option<JournalError> {
        shared::lock(&self.inner.shared.status).damage.clone()
    }

    /// One turn of the writer; only for a journal opened without threads.
    pub fn turn(&self) -> Turn {
        shared::lock(&self.inner.core).turn()
    }

    /// One round of what the helper does; only for a journal opened without threads. Returns whether more filling
    /// waits.
    pub fn maintain(&self) -> bool {
        shared::lock(&self.inner.maintenance).tick(&self.inner.shared)
    }

    /// One step of what may take its time; only for a journal opened without threads. Returns whether more may wait.
    pub fn tend(&self) -> bool {
        shared::lock(&self.inner.background).step(&self.inner.shared, false) == Step::Done
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    #[cfg(test)]
    pub(crate) fn shared_for_tests(&self) -> Arc<Shared> {
        Arc::clone(&self.inner.shared)
    }

    /// Writes what is queued, seals, trims, closes the head, gives up the lock. Reading goes on to work.
    ///
    /// # Errors
    /// `Poisoned` if anything was not durable.
    pub fn close(&self) -> Result<()> {
        let inner = &self.inner;
        inner.stop_threads(false);
        let closed = shared::lock(&inner.core).close();
        *shared::lock(&inner.lock) = None;
        closed
    }
}

impl Inner {
    fn stop_threads(&self, abandon: bool) {
        if abandon {
            self.shared.queue.end(JournalError::Closed);
            self.shared.completion.end(JournalError::Closed);
        } else {
            self.shared.queue.close();
        }
        self.shared.stop_helper.store(true, Ordering::Release);
        if let Some(mut threads) = shared::lock(&self.threads).take() {
            threads.join();
        }
    }
}

impl Drop for Inner {
    /// A journal that is dropped without `close` stands as after a crash: nothing more is written.
    fn drop(&mut self) {
        self.stop_threads(true);
    }
}

/// F2: what an earlier writer left in the page cache after a failed sync must not be taken for durable. A sync error
/// stops the start before anything is read; the scan reads the last segment from the device. `false`: it will come from
/// the cache.
fn make_durable(store: &Store, files: &SegmentFiles) -> Result<bool> {
    // Names that a killed process made may be visible and not durable; from here on they are relied upon.
    for folder in [Folder::Root, Folder::Segments] {
        match store.disk.sync_folder(folder) {
            Err(e) if e.kind != ErrorKind::NotFound => return Err(e.into()),
            Ok(()) | Err(_) => {}
        }
    }
    let mut device_read = true;
    for (_, name) in files.chain.iter().rev().take(scan::NEWEST) {
        let writable = store.disk.open_for_write(name)?;
        writable.sync_data()?;
        let mut byte = [0];
        device_read &= match writable.read_uncached(&mut byte, 0) {
            // An empty file is for the scan to judge.
            Err(e) if e.kind == ErrorKind::ShortRead => true,
            other => other?,
        };
        writable.close()?;
    }
    Ok(device_read)
}

/// What a start says of damage that the next one does not find any more (JR-15).
pub const SET_ASIDE: &str =
    "a compacted segment is damaged; it was moved to quarantine, and the next start uses what it replaced";

/// JR-5: the first problem stops the start. What JR-15 sets aside is for the next one.
fn refuse_problems(store: &Store, scan: &Scan, head: &HeadState, now_ms: u64) -> Result<()> {
    let Err(refused) = verdict(scan, head) else { return Ok(()) };
    let aside = set_aside::bad_replacements(store, head, scan, now_ms).unwrap_or_else(|e| {
        tracing::warn!(error = %e, "a damaged compacted segment could not be set aside");
        false
    });
    match refused {
        JournalError::Corrupt { place, row, .. } if aside => {
            Err(JournalError::Corrupt { place, row, what: SET_ASIDE })
        }
        refused => Err(refused),
    }
}

fn verdict(scan: &Scan, head: &HeadState) -> Result<()> {
    match scan.problems.first() {
        Some(_) if !head.present => Err(JournalError::Missing { file: "head".into() }),
        None => Ok(()),
        Some(problem) if problem.place == Place::default() => {
            Err(JournalError::CorruptFile { file: "head".into(), what: problem.what })
        }
        Some(problem) => {
            Err(JournalError::Corrupt { place: problem.place, row: problem.row, what: problem.what })
        }
    }
}

fn nothing_durable() -> Durable {
    Durable { end: sealog_journal_format::EndRecord::NONE, lineage: [0; 16], epoch: 0, moved: Duration::ZERO }
}

/// The boot's sink: the index, the marks, and the owner's replay.
struct Build<'a> {
    catalog: Catalog,
    replay: &'a mut dyn Replay,
    newest_ms: u64,
}

impl<'a> Build<'a> {
    fn new(replay: &'a mut dyn Replay) -> Build<'a> {
        Build { catalog: Catalog::new(nothing_durable()), replay, newest_ms: 0 }
    }
}

impl Sink for Build<'_> {
    fn frame(&mut self, frame: &FrameView) {
        // A compacted segment is read from its beginning: any of its frames may hold an early record.
        let starts = match frame.header.kind {
            FrameKind::Group | FrameKind::Sources => true,
            FrameKind::Link | FrameKind::Seal | FrameKind::Folded => false,
        };
        if starts {
            let sequence = frame.header.first_sequence;
            self.catalog.mark(Mark { sequence, segment: frame.segment, offset: frame.offset });
        }
    }

    fn record(&mut self, frame: &FrameView, record: &Record) {
        let at = FrameRef { segment: frame.segment, offset: frame.offset };
        self.catalog.index.add(at, record);
        self.newest_ms = self.newest_ms.max(record.time_ms);
        self.replay.record(record);
    }

    fn absorb(&mut self, part: Box<dyn Any>) {
        if let Ok(summary) = part.downcast::<Summary>() {
            self.newest_ms = summary.apply(&mut self.catalog, self.replay, self.newest_ms);
        }
    }
}

/// `epoch_used` may be that of a segment which was removed; the head goes on to say so.
fn fill_catalog(catalog: &mut Catalog, scan: &Scan, epoch_used: u64, now: Duration) {
    // Not of a removed segment: the writer uses its number again.
    for facts in scan.segments.iter().filter(|facts| facts.number <= scan.end.segment) {
        catalog.ends.insert(facts.number, facts.end_offset);
    }
    for segment in scan.opened.iter().filter(|segment| segment.number <= scan.end.segment) {
        catalog.segments.insert(segment.number, Arc::clone(segment));
    }
    let lineage = scan.last_segment().map_or([0; 16], |last| last.header.lineage);
    catalog.durable = Durable { end: scan.end, lineage, epoch: epoch_used, moved: now };
}

fn assemble(
    config: &Config,
    store: Store,
    writer: HeadWriter,
    scan: &Scan,
    catalog: Catalog,
    epoch: u64,
    held: Option<Box<dyn DiskLock>>,
) -> Result<Journal> {
    let tuning = config.tuning.clone();
    let name = |name: Name| -> Result<(Name, FileId)> {
        let id = store.disk.open(&name)?.identity()?;
        Ok((name, id))
    };
    let named = vec![name(store_name())?, name(head_name())?];
    let predecessor_lineage = catalog.durable.lineage;
    let mut lineage = [0; 16];
    config.entropy.fill(&mut lineage).map_err(|_| JournalError::NoRandomness)?;
    let shared = Arc::new(Shared {
        store,
        clock: Arc::clone(&config.clock),
        entropy: Arc::clone(&config.entropy),
        catalog: RwLock::new(catalog),
        cache: FrameCache::new(tuning.cache_bytes_max),
        queue: Queue::new(tuning.queue_bytes_max, tuning.queue_units_max),
        completion: Arc::new(Completion::default()),
        counting: Counting::default(),
        preparation: Preparing::default(),
        named,
        leftovers: Mutex::default(),
        head: Mutex::new(Head { writer, rewritten: config.clock.monotonic() }),
        status: Mutex::new(Status::default()),
        durable_sequence: AtomicU64::new(scan.end.last_sequence),
        moved: Condvar::new(),
        stop_helper: AtomicBool::new(false),
        helper: OnceLock::new(),
        roll_wanted: AtomicBool::new(false),
        expected_bytes: AtomicU64::new(0),
        tuning,
    });
    let generation = |number: u64| {
        let segment = scan.opened.iter().find(|segment| segment.number == number);
        segment.map_or(0, |segment| segment.header.generation)
    };
    let summarised = scan.unchecked.iter().map(|one| (one.segment, generation(one.segment))).collect();
    let summarise = Summarise::new(Arc::clone(&config.codec), summarised);
    let rate = shared.tuning.background_bytes_per_second;
    let unchecked = scan.unchecked.iter().map(|unchecked| unchecked.bytes).sum();
    shared.counting.unchecked_bytes.store(unchecked, Ordering::Relaxed);
    let scrub = Scrub::new(&scan.unchecked);
    let mut kinds: Vec<Box<dyn Work>> = vec![Box::new(Compaction::default())];
    if shared.tuning.summarise {
        // Before what takes long: a short summary makes the next start short.
        kinds.insert(0, Box::new(scrub));
        kinds.insert(0, Box::new(summarise));
    }
    let background = Background::new(rate, kinds);
    let core = Core::new(Arc::clone(&shared), lineage, predecessor_lineage, epoch);
    let inner = Inner {
        shared,
        core: Arc::new(Mutex::new(core)),
        maintenance: Mutex::new(Maintenance::default()),
        background: Arc::new(Mutex::new(background)),
        threads: Mutex::new(None),
        lock: Mutex::new(held),
    };
    Ok(Journal { inner: Arc::new(inner) })
}
