//! Opening: the state is rebuilt from every durable record; what an earlier process left unfinished is
//! `interrupted`'s.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use sealog_disk::ErrorKind;
use sealog_events::{ExecutionId, Materializer, Status, Timestamp};
use sealog_journal::{
    Config, Fence, Journal, JournalError, Record as JournalRecord, RecoveryReport, Replay, StreamDigest,
    Ticket,
};
use sealog_journal_format::journal_records::{Forget, KIND_FORGET, KIND_JOURNAL_MAX, KIND_RESTORED};

use super::digest::{CreatedAt, Digest, LastEvent};
use super::error::failed;
use super::finish::Finish;
use super::interrupted::{self, Endings, Interrupted};
use super::live::{Live, Recent};
use super::{Blocking, JournalStore, Record, Shared, State, records};
use crate::StoreError;
use crate::store::ledger::{Kept, Ledger};
use crate::store::{StoreFuture, StoreLimits};

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An authentic record that this program cannot interpret.
    #[error("the record with sequence {sequence} is not one this program knows")]
    UnknownRecord { sequence: u64 },
    /// The terminal events of interrupted executions could not be made.
    #[error("an interrupted execution could not be ended")]
    NotEnded(#[source] StoreError),
}

/// What opening found and did.
#[derive(Debug)]
pub struct Opened {
    pub recovery: RecoveryReport,
    /// The executions that got their terminal event now.
    pub interrupted: Vec<Interrupted>,
    /// Executions that there was no room to end. Nothing new is taken before they are.
    pub unended: usize,
    pub clock: ClockFound,
}

/// How the host's clock stands to the times in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockFound {
    /// So far ahead of the newest record that everything there was has expired.
    pub ahead_ms: Option<u64>,
    /// Behind the newest record by more than clocks are apart that are kept in order.
    pub behind_ms: Option<u64>,
    /// Executions that had expired when the journal was opened.
    pub expired: u64,
}

impl JournalStore {
    /// Opens the journal for writing, ends what was interrupted, and keeps what the journal's tickets need running
    /// on the current tokio runtime. Blocks until the journal is recovered.
    ///
    /// # Errors
    /// The journal's; a record that is not known. Nothing can be served then. Want of room for the terminal events
    /// is no error: what is durable is served, and the rest follows when there is room.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(config: &Config, limits: StoreLimits) -> Result<(JournalStore, Opened), OpenError> {
        let mut rebuild = Rebuild::new(limits);
        let (journal, recovery) = Journal::open(config, &mut rebuild)?;
        let wait = |_: &Journal, ticket: Ticket| ticket.wait();
        let (store, opened) = start(config, journal, Blocking::Threads, recovery, rebuild, wait)?;
        // Not before the waits above: from here on this task alone is woken.
        tokio::spawn(store.dispatch());
        if opened.unended > 0 {
            tokio::spawn(interrupted::end_later(Arc::downgrade(&store.shared)));
        }
        Ok((store, opened))
    }

    /// Why the journal takes nothing new, if that is so.
    pub fn shortage(&self) -> Option<ErrorKind> {
        self.shared.journal.shortage()
    }

    /// Ends what the start had no room to end; `true` if nothing is left to be ended. A store that was opened by
    /// [`JournalStore::open`] does so by itself.
    pub fn end_interrupted(&self) -> StoreFuture<'_, bool> {
        Box::pin(Finish::new(Arc::clone(&self.shared).end_unended()))
    }

    /// Opens a stopped journal, or a backup, for reading alone: nothing is ended, nothing expires, no byte is written.
    ///
    /// # Errors
    /// The journal's; a record that is not known.
    pub fn open_reading(config: &Config) -> Result<JournalStore, OpenError> {
        JournalStore::reading(config, Blocking::Threads)
    }

    /// As [`JournalStore::open_reading`] without threads.
    ///
    /// # Errors
    /// As there.
    #[cfg(any(test, feature = "testing"))]
    pub fn open_reading_manual(config: &Config) -> Result<JournalStore, OpenError> {
        JournalStore::reading(config, Blocking::InPlace)
    }

    fn reading(config: &Config, blocking: Blocking) -> Result<JournalStore, OpenError> {
        // What an old copy holds is not looked at with today's limits.
        let limits = StoreLimits { retention_ms: u64::MAX, ..StoreLimits::NODE };
        let mut rebuild = Rebuild::new(limits);
        let journal = Journal::open_reading(config, &mut rebuild)?;
        if let Some(sequence) = rebuild.unknown() {
            return Err(OpenError::UnknownRecord { sequence });
        }
        let mut state = State {
            ledger: rebuild.ledger,
            records: HashMap::new(),
            recent: Recent::default(),
            unforgotten: Vec::new(),
            copied: rebuild.copied,
            newest: rebuild.newest,
            unended: Vec::new(),
            over: Some(StoreError::ReadOnly),
        };
        fill(&mut state, rebuild.open);
        let clock = Arc::clone(&config.clock);
        let state = Mutex::new(state);
        let ending = tokio::sync::Mutex::default();
        let looked_ms = AtomicU64::default();
        let shared = Shared { journal, clock, blocking, fenced: false, state, ending, looked_ms };
        Ok(JournalStore { shared: Arc::new(shared) })
    }

    /// What the journal's tickets need running, until the journal ends; tells the store then.
    fn dispatch(&self) -> impl Future<Output = ()> + Send + use<> {
        let dispatcher = self.shared.journal.dispatcher();
        let shared = Arc::downgrade(&self.shared);
        async move {
            dispatcher.await;
            if let Some(shared) = shared.upgrade() {
                shared.end(StoreError::Failed);
            }
        }
    }

    /// As [`JournalStore::open_manual`], and keeps what the tickets need running on the current tokio runtime.
    ///
    /// # Errors
    /// As [`JournalStore::open`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[cfg(any(test, feature = "testing"))]
    pub fn open_turned(
        config: &Config,
        limits: StoreLimits,
    ) -> Result<(JournalStore, Journal, Opened), OpenError> {
        let (store, journal, opened) = JournalStore::open_manual(config, limits)?;
        tokio::spawn(store.dispatch());
        Ok((store, journal, opened))
    }

    /// As [`JournalStore::open`] without threads and tasks: the owner of the returned journal turns it.
    ///
    /// # Errors
    /// As [`JournalStore::open`].
    #[cfg(any(test, feature = "testing"))]
    pub fn open_manual(
        config: &Config,
        limits: StoreLimits,
    ) -> Result<(JournalStore, Journal, Opened), OpenError> {
        let mut rebuild = Rebuild::new(limits);
        let (journal, recovery) = Journal::open_manual(config, &mut rebuild)?;
        let turn = |journal: &Journal, mut ticket: Ticket| loop {
            if let Some(result) = ticket.try_result() {
                return result;
            }
            journal.turn();
        };
        let (store, opened) = start(config, journal.clone(), Blocking::InPlace, recovery, rebuild, turn)?;
        Ok((store, journal, opened))
    }
}

fn start(
    config: &Config,
    journal: Journal,
    blocking: Blocking,
    recovery: RecoveryReport,
    rebuild: Rebuild,
    wait: impl Fn(&Journal, Ticket) -> Result<(), JournalError>,
) -> Result<(JournalStore, Opened), OpenError> {
    if let Some(sequence) = rebuild.unknown() {
        return Err(OpenError::UnknownRecord { sequence });
    }
    let (limits, mut found) = (rebuild.limits, rebuild.open);
    let wall = Timestamp(config.clock.wall_ms());
    let now = wall.max(rebuild.newest);
    let Endings { ended: interrupted, unended } =
        interrupted::end_all(&journal, &recovery, &mut found, now, wait)?;
    let mut state = State {
        ledger: rebuild.ledger,
        records: HashMap::new(),
        recent: Recent::default(),
        unforgotten: Vec::new(),
        copied: rebuild.copied,
        newest: if interrupted.is_empty() { rebuild.newest } else { now },
        unended: unended.iter().map(|(interrupted, _)| *interrupted).collect(),
        over: None,
    };
    fill(&mut state, found);
    let count = unended.len();
    for (interrupted, fold) in unended {
        if let Some(record) = state.records.get_mut(&interrupted.id) {
            record.live = Some(Box::new(Live::resumed(fold)));
        }
    }
    let expired = state.ledger.expire(now);
    let found = clock_found(wall, rebuild.newest, limits.retention_ms, expired.len() as u64);
    state.let_go(expired, now);
    let clock = Arc::clone(&config.clock);
    let state = Mutex::new(state);
    let (fenced, ending) = (rebuild.fence.is_up(), tokio::sync::Mutex::default());
    let looked_ms = AtomicU64::default();
    let shared = Shared { journal, clock, blocking, fenced, state, ending, looked_ms };
    let store = JournalStore { shared: Arc::new(shared) };
    Ok((store, Opened { recovery, interrupted, unended: count, clock: found }))
}

/// The accounts and records of what was found going on: the ledger has the others. What goes on keeps its key, so
/// nobody in the ledger is a younger owner of it.
fn fill(state: &mut State, found: HashMap<ExecutionId, Found>) {
    let mut found: Vec<(ExecutionId, Found)> = found.into_iter().collect();
    found.sort_by_key(|(_, found)| found.opened_by);
    for (id, found) in found {
        let kept = found.kept;
        state.ledger.restore(id, kept);
        if kept.ended.is_none() {
            let record = Record { status: kept.status, last_sequence: kept.sequence, live: None };
            state.records.insert(id, record);
        }
    }
}

fn clock_found(wall: Timestamp, newest: Timestamp, retention_ms: u64, expired: u64) -> ClockFound {
    const APART_MS_MAX: u64 = 60_000;
    let ahead_ms = wall.0.saturating_sub(newest.0);
    let behind_ms = newest.0.saturating_sub(wall.0);
    ClockFound {
        ahead_ms: (newest > Timestamp(0) && ahead_ms > retention_ms).then_some(ahead_ms),
        behind_ms: (behind_ms > APART_MS_MAX).then_some(behind_ms),
        expired,
    }
}

/// What the records say of one execution that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) kept: Kept,
    /// Sequence of the record that opened it.
    opened_by: u64,
    pub(super) time: Timestamp,
    /// An attempt was announced: something may have been sent.
    pub(super) routed: bool,
    /// The journal was restored from a copy after this execution was created: what the original went on to do
    /// is not known.
    pub(super) restored: bool,
}

/// Takes the journal's records.
#[derive(Debug)]
struct Rebuild {
    limits: StoreLimits,
    /// The executions that ended, as they end: an account is all that is kept of them.
    ledger: Ledger,
    /// Those that have not.
    open: HashMap<ExecutionId, Found>,
    /// The number of its last event in a restored copy, of what had not ended there (JB-9).
    copied: HashMap<ExecutionId, u64>,
    newest: Timestamp,
    fence: Fence,
    /// The first record that could not be interpreted.
    unknown: Option<u64>,
    /// Executions whose creation is not there, with their first record: compaction has taken a part of what a record
    /// further on forgets, or the journal is not one of ours.
    headless: HashMap<ExecutionId, u64>,
}

impl Replay for Rebuild {
    fn record(&mut self, record: &JournalRecord) {
        self.newest = self.newest.max(Timestamp(record.time_ms));
        let taken = if record.kind <= KIND_JOURNAL_MAX { self.own(record) } else { self.ours(record) };
        if taken.is_none() {
            self.unknown.get_or_insert(record.sequence);
        }
    }

    fn takes_digests(&self) -> bool {
        true
    }

    fn digest(&mut self, of: &StreamDigest<'_>) {
        let before = Timestamp(of.newest_before_ms);
        let taken = Digest::decode(of.bytes).and_then(|mut digest| {
            digest.newest = digest.newest.max(before);
            if let Some(last) = &mut digest.last {
                last.newest = last.newest.max(before);
            }
            self.newest = self.newest.max(digest.newest);
            self.take(ExecutionId::from_bytes(of.stream.0), of.first_sequence, &digest)
        });
        if taken.is_none() {
            self.unknown.get_or_insert(of.first_sequence);
        }
    }
}

impl Rebuild {
    fn new(limits: StoreLimits) -> Rebuild {
        Rebuild {
            limits,
            ledger: Ledger::new(limits),
            open: HashMap::new(),
            copied: HashMap::new(),
            newest: Timestamp(0),
            fence: Fence::default(),
            unknown: None,
            headless: HashMap::new(),
        }
    }

    /// The first record that makes no sense, once all were taken.
    fn unknown(&self) -> Option<u64> {
        self.headless.values().copied().chain(self.unknown).min()
    }

    /// A record of the journal's own.
    fn own(&mut self, record: &JournalRecord) -> Option<()> {
        self.fence.take(record.kind, &record.body);
        match record.kind {
            KIND_FORGET => {
                for id in Forget::ids(&record.body).ok()? {
                    let id = ExecutionId::from_bytes(id);
                    self.open.remove(&id);
                    self.ledger.remove(id);
                    self.copied.remove(&id);
                    self.headless.remove(&id);
                }
            }
            KIND_RESTORED => {
                // The journal is a copy from here on.
                for (id, found) in &mut self.open {
                    found.restored = true;
                    self.copied.entry(*id).or_insert(found.kept.sequence);
                }
            }
            // The fence is no concern of the executions.
            _ => {}
        }
        Some(())
    }

    /// A record of an execution. `None` if it cannot be interpreted.
    fn ours(&mut self, record: &JournalRecord) -> Option<()> {
        let mut digest = Digest::default();
        // The newest time counts this record already.
        digest.add(record, self.newest.0, true)?;
        self.take(ExecutionId::from_bytes(record.stream?.0), record.sequence, &digest)
    }

    /// A run of records of an execution, from `first_sequence` on. `None` if it cannot be interpreted.
    fn take(&mut self, id: ExecutionId, first_sequence: u64, digest: &Digest) -> Option<()> {
        if let Some(CreatedAt { created_at, identity, opened_by }) = digest.created {
            let (status, bytes, sequence, ended) = (Status::Accepted, 0, 0, None);
            let kept = Kept { created_at, identity, bytes, sequence, status, ended };
            let mut found = Found { kept, opened_by, time: created_at, routed: false, restored: false };
            found.take(digest)?;
            if found.kept.ended.is_some() {
                self.ledger.restore(id, found.kept);
            } else {
                self.open.insert(id, found);
            }
        } else if let Some(found) = self.open.get_mut(&id) {
            found.take(digest)?;
            if found.kept.ended.is_some() {
                self.ledger.restore(id, found.kept);
                self.open.remove(&id);
            }
        } else if self.ledger.created_at(id).is_some() {
            // Nothing happens to an execution behind its end.
            return self.ledger.restore_more(id, digest.bytes).filter(|()| digest.last.is_none());
        } else {
            self.headless.entry(id).or_insert(first_sequence);
        }
        Some(())
    }
}

impl Found {
    fn take(&mut self, digest: &Digest) -> Option<()> {
        self.kept.bytes = self.kept.bytes.checked_add(digest.bytes)?;
        self.routed |= digest.routed;
        if let Some(LastEvent { status, number, time, newest }) = digest.last {
            self.time = time;
            self.kept.status = status;
            self.kept.sequence = number;
            // As it was settled then: by the newest time in the journal.
            self.kept.ended = status.is_terminal().then_some(newest);
        }
        Some(())
    }
}

/// The fold of all durable events of one execution. Blocks for reading.
pub(super) fn fold(
    journal: &Journal,
    id: ExecutionId,
    created_at: Timestamp,
) -> Result<Materializer, StoreError> {
    let mut fold = Materializer::new(id, created_at);
    for record in journal.read_stream(records::stream(id), 1) {
        let record = record.map_err(|error| failed("a stream could not be read", &error))?;
        records::take(&mut fold, &record).map_err(|_| StoreError::Failed)?;
    }
    Ok(fold)
}
