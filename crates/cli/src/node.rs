//! The composition root: the journal store on the real disk, the providers, and the engine over both.
//!
//! Owns the order of opening and closing, and what a start reports. Must never bind a port.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sealog_disk::real::{RealClock, RealEntropy};
use sealog_disk::{DiskError, ErrorKind, Folder};
use sealog_engine::store::journal::{JournalStore, OpenError, Opened};
use sealog_engine::store::{EventStore, StoreError, sweep};
use sealog_engine::{Engine, EngineOptions, Observer};
use sealog_events::{Outcome, Reached};
use sealog_http::ServerStats;
use sealog_journal::Config;

use crate::again::same_key;
use crate::config::NodeConfig;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::metrics::{Executions, NodeOperation, Recovered};
use crate::observers::Observers;
use crate::opening::Ready;
use crate::render::Render;
use crate::report::{TailBody, counted, hex};
use crate::service;

/// An engine over an open journal.
#[derive(Debug)]
pub struct Node {
    pub engine: Engine,
    /// Absent where nothing is written.
    pub budget: Option<DiskBudget>,
    executions: Executions,
    /// Absent where nothing is written.
    recovered: Option<Recovered>,
    store: Arc<JournalStore>,
    dir: PathBuf,
}

impl Node {
    /// Recovers the journal and starts the engine on it; blocks until that is done. Inside a tokio runtime. `observers`
    /// are told of executions, beside the node's own counters.
    ///
    /// # Errors
    /// What the journal says; nothing runs then.
    pub fn open(
        ready: &Ready,
        config: NodeConfig,
        dir: &Path,
        grace_ms: u64,
        mut observers: Vec<Arc<dyn Observer>>,
        render: Render,
    ) -> Result<Node> {
        tell_made(ready, dir, render);
        let mut journal = ready.config.clone();
        let budget = DiskBudget::of(&journal, config.store.limits.max_disk_bytes)
            .map_err(|error| Failure::directory(error, dir))?;
        journal.tuning.disk_bytes_max = budget.bytes;
        journal.tuning.boot_check_bytes = config.store.boot_check_bytes;
        journal.tuning.quarantine_keep = Duration::from_millis(config.store.limits.retention_ms);
        let (store, opened) =
            JournalStore::open(&journal, config.store.limits).map_err(|error| open_failure(error, dir))?;
        tell_recovery(&opened, render);
        tell_clock(&opened, render);
        tell_unended(&opened, &store, render);
        if config.mock_only {
            render.note("no provider is configured: the mock provider answers");
        }
        for absent in &config.absent_keys {
            render.note(&absent.words());
        }
        let defaults = EngineOptions::default();
        let options = EngineOptions {
            max_active_executions: config.max_active_executions.unwrap_or(defaults.max_active_executions),
            shutdown_ms: grace_ms,
            ..defaults
        };
        let store = Arc::new(store);
        let events: Arc<dyn EventStore> = Arc::clone(&store) as Arc<dyn EventStore>;
        tokio::spawn(sweep::sweep(Arc::downgrade(&events)));
        let clock = Arc::new(RealClock::new());
        let executions = Executions::default();
        observers.push(Arc::new(executions.clone()));
        let observer: Arc<dyn Observer> = Arc::new(Observers(observers));
        let entropy = Arc::new(RealEntropy);
        let engine =
            Engine::start_observed(options, config.providers, events, clock, entropy, Some(observer));
        if engine.fenced() {
            let (dir, key) = (shown(dir), same_key());
            render.note(&format!(
                "this journal is fenced, as restore, repair and import leave one: what it does not know is refused; once \
                 the original is gone for good: sealog journal unfence {dir}{key}"
            ));
        }
        let recovered = Some(Recovered::of(&opened));
        Ok(Node { engine, budget: Some(budget), executions, recovered, store, dir: dir.to_owned() })
    }

    /// An engine over a stopped journal or a backup that it only reads. Inside a tokio runtime.
    ///
    /// # Errors
    /// What the journal says.
    pub fn open_reading(
        journal: &Config,
        config: NodeConfig,
        dir: &Path,
        grace_ms: u64,
        render: Render,
    ) -> Result<Node> {
        let store = JournalStore::open_reading(journal).map_err(|error| open_failure(error, dir))?;
        let store = Arc::new(store);
        let events: Arc<dyn EventStore> = Arc::clone(&store) as Arc<dyn EventStore>;
        let options = EngineOptions { shutdown_ms: grace_ms, ..EngineOptions::default() };
        let clock = Arc::new(RealClock::new());
        let engine = Engine::start(options, config.providers, events, clock, Arc::new(RealEntropy));
        render.note("read-only: nothing is written, and whatever would have to be is answered 503");
        let executions = Executions::default();
        Ok(Node { engine, budget: None, executions, recovered: None, store, dir: dir.to_owned() })
    }

    /// What the server answers `/readyz` and `/metrics` from.
    pub fn operation(&self, server: Arc<ServerStats>) -> NodeOperation {
        let (engine, store) = (self.engine.clone(), Arc::clone(&self.store));
        NodeOperation::new(engine, store, self.recovered, &self.executions, server)
    }

    /// Tells the service manager as long as the writer lives.
    pub fn watch(&self) {
        service::watch(Arc::clone(&self.store));
    }

    /// Does `work` and closes the journal behind it, whatever came of it. This is the one way out of an open node: between
    /// its opening and this nothing may give up. What `work` came to counts, and only then how the journal closed.
    ///
    /// # Errors
    /// As `work`, else as [`Node::close`].
    pub async fn closing<T>(&self, work: impl Future<Output = Result<T>>, render: Render) -> Result<T> {
        let ended = work.await;
        match (ended, self.close().await) {
            (Ok(value), closed) => closed.map(|()| value),
            (Err(failure), Ok(())) => Err(failure),
            // Two things went wrong, and what is safe is what the second one says.
            (Err(failure), Err(not_closed)) => {
                render.note(&not_closed.what);
                Err(failure.safe(not_closed.safe))
            }
        }
    }

    /// Seals and closes the journal. Nobody may wait for an event any more.
    ///
    /// # Errors
    /// Exit 75: the journal's writer had stopped; the next start recovers. Exit 13: damage had stopped it; the next
    /// start refuses.
    async fn close(&self) -> Result<()> {
        let closed = self.store.close().await;
        match self.store.damage() {
            Some(damage) => Err(Failure::journal(damage, &self.dir)),
            None => closed.map_err(|error| closing_failed(&error)),
        }
    }
}

/// Most bytes of frames that the journal may write: as configured, but never more than half of what is free at the
/// start beside what it has.
#[derive(Clone, Copy, Debug)]
pub struct DiskBudget {
    bytes: u64,
    configured: u64,
}

impl DiskBudget {
    /// # Errors
    /// The directory cannot be listed, or says nothing about its space.
    fn of(journal: &Config, configured: u64) -> std::result::Result<DiskBudget, DiskError> {
        let free = journal.disk.space()?.available;
        let segments: u64 = match journal.disk.list(Folder::Segments) {
            Ok(entries) => entries.iter().filter(|e| e.file.ends_with(".seg")).map(|e| e.length).sum(),
            Err(error) if error.kind == ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(DiskBudget { bytes: configured.min(segments + free / 2), configured })
    }

    pub fn line(&self) -> String {
        let bytes = mebibytes(self.bytes);
        match self.bytes < self.configured {
            false => format!("the journal may take {bytes} of this disk (max_disk_bytes)"),
            true => format!(
                "the journal may take {bytes} of this disk, which is what it has and half of what is free, not the \
                 {} of max_disk_bytes; when that is used up new work is refused, and nothing is let go for it: that \
                 takes a max_disk_bytes of no more than this",
                mebibytes(self.configured)
            ),
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1 << 20;
    if bytes < 10 * MEBIBYTE { format!("{bytes} bytes") } else { format!("{} MiB", bytes / MEBIBYTE) }
}

/// What is not ready yet.
fn tell_unended(opened: &Opened, store: &JournalStore, render: Render) {
    if opened.unended == 0 {
        return;
    }
    let why = match store.shortage() {
        Some(ErrorKind::Full) => "the disk is full",
        Some(ErrorKind::Descriptors) => "too many files are open",
        Some(ErrorKind::ReadOnly) => "the file system is read-only",
        Some(
            ErrorKind::Io
            | ErrorKind::Interrupted
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::PermissionDenied
            | ErrorKind::Contended
            | ErrorKind::Unsafe
            | ErrorKind::Unsupported
            | ErrorKind::ShortRead,
        ) => "a segment could not be written",
        None => "there is no room",
    };
    render.note(&format!(
        "warning: {why}: {} cannot be ended yet. What is durable is served, new work is refused; this changes by \
         itself when there is room",
        counted(opened.unended as u64, "interrupted execution")
    ));
}

/// A clock that does not go with the journal's times; by it executions expire.
fn tell_clock(opened: &Opened, render: Render) {
    let days = |ms: u64| counted(ms / 86_400_000, "day");
    if let Some(ahead_ms) = opened.clock.ahead_ms {
        render.note(&format!(
            "warning: the clock is {} ahead of the newest record, longer than executions are kept: {} expired. If \
             the clock is wrong, stop the node and correct it",
            days(ahead_ms),
            counted(opened.clock.expired, "execution"),
        ));
    }
    if let Some(behind_ms) = opened.clock.behind_ms {
        render.note(&format!(
            "warning: the clock is {} s behind the newest record: until it has caught up, what ends is kept by the \
             time of that record",
            behind_ms / 1000
        ));
    }
}

fn closing_failed(error: &StoreError) -> Failure {
    Failure::new(Exit::TryAgain, "writer_stopped", "the journal was not closed in order")
        .safe("everything acknowledged before is durable")
        .next("check the disk, then start again: the next start recovers")
        .because(*error)
}

pub fn open_failure(error: OpenError, dir: &Path) -> Failure {
    match error {
        OpenError::Journal(error) => Failure::journal(error, dir),
        OpenError::UnknownRecord { .. } => Failure::new(Exit::Damaged, "unknown_record", error.to_string())
            .next(format!("sealog journal verify {}{}", shown(dir), same_key())),
        OpenError::NotEnded(_) => Failure::new(Exit::TryAgain, "recovery_stopped", error.to_string())
            .safe("everything acknowledged before is durable; nothing was sent again")
            .next("free space, then start again"),
    }
}

fn tell_made(ready: &Ready, dir: &Path, render: Render) {
    let Some(made) = &ready.made else { return };
    render.note(&format!("created journal {} in {}", ready.store_id, shown(dir)));
    if let Some(path) = &made.key_file {
        let path = shown(path);
        render
            .note(&format!("its key file is {path}; keep a copy elsewhere: without it nothing can be read"));
    }
}

/// Less than this is read before anybody has looked.
const UNCHECKED_TOLD_BYTES: u64 = 64 << 20;

/// What was found, cut and marked.
fn tell_recovery(opened: &Opened, render: Render) {
    let found = &opened.recovery;
    let records: u64 = found.segments.iter().map(|segment| segment.records).sum();
    render.note(&format!(
        "journal {}: epoch {}, {}, {}, last sequence {}",
        hex(&found.store_id),
        found.epoch,
        counted(found.segments.len() as u64, "segment"),
        counted(records, "record"),
        found.last_sequence
    ));
    let unchecked: u64 = found.unchecked.iter().map(|segment| segment.bytes).sum();
    let unread: u64 = found.unchecked.iter().filter(|s| !s.read).map(|segment| segment.bytes).sum();
    if unchecked >= UNCHECKED_TOLD_BYTES || unread > 0 {
        render.note(&format!(
            "not yet checked: the tags of {}; of these {} were not read at all (boot_check_bytes). They are read in the \
             background",
            mebibytes(unchecked),
            mebibytes(unread)
        ));
    }
    if let Some(tail) = &found.tail {
        let kept = match found.repairs.tail_quarantined {
            true => "cut, with a copy in quarantine/",
            false => "cut; there was no room for a copy in quarantine/",
        };
        render.note(&format!("{}; {kept}", TailBody::new(tail).line()));
    }
    if found.repairs.keyring_levelled {
        render.note("one copy of the keyring was rewritten from the other");
    }
    if found.repairs.root_keys_dropped > 0 {
        let keys = counted(found.repairs.root_keys_dropped as u64, "retired root key");
        render.note(&format!("{keys} that no file names any more dropped; export the keyring again"));
    }
    if let Some(segment) = found.repairs.empty_segment_removed {
        render.note(&format!("segment {segment} held nothing and was removed"));
    }
    if !found.device_read {
        render.note(
            "the newest segment was judged from the page cache: this file system reads in no other way",
        );
    }
    let not_dispatched =
        opened.interrupted.iter().filter(|one| one.outcome == Outcome::NotDispatched).count();
    if !opened.interrupted.is_empty() {
        let unknown = opened.interrupted.len() - not_dispatched;
        render.note(&format!(
            "{} ended as failed: {unknown} with unknown outcome, {not_dispatched} never dispatched; nothing was \
             sent again",
            counted(opened.interrupted.len() as u64, "interrupted execution")
        ));
        for reached in Reached::ALL {
            let so_far = opened.interrupted.iter().filter(|one| one.reached == Some(*reached)).count();
            if so_far > 0 {
                render.note(&format!("{so_far} of these: {}", reached.words()));
            }
        }
    }
}
