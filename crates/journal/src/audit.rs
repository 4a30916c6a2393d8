//! The read-only side: `verify`, `inspect` and `replay` beside a running node, on a stopped journal and on read-only
//! media. It takes no lock, maps nothing and changes nothing.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::{ErrorKind, Folder, Name, Shows};
use sealog_journal_format::names::SegmentName;

use crate::config::Config;
use crate::error::{JournalError, Place, Result};
use crate::head::{self, HeadState};
use crate::recovery::findings::{Gap, Problem, Scan, SegmentFacts, Sink, TornTail};
use crate::recovery::scan::{self, ScanOptions};
use crate::segment::Segment;
use crate::store::{self, KeyringCopy, SegmentFiles, Store};

/// The state of the head as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadFacts {
    pub good_slots: u8,
    pub counter: u64,
    pub epoch: u64,
    pub lineage: [u8; 16],
    pub segment: u64,
    pub frames: u64,
    pub last_sequence: u64,
    pub chain: [u8; 16],
    /// Whether the last writer closed in order.
    pub closed: bool,
}

/// One key slot, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotFacts {
    pub name: String,
    /// `raw` or `passphrase`.
    pub kind: &'static str,
}

/// What a read-only scan found.
#[derive(Clone, Debug)]
pub struct Audit {
    pub store_id: [u8; 16],
    pub created_ms: u64,
    pub keyring_generation: u64,
    pub keyring_copies: [KeyringCopy; 2],
    /// Id of the root key that new files are written under.
    pub active_root: [u8; 16],
    pub slots: Vec<SlotFacts>,
    pub head: Option<HeadFacts>,
    /// A writer held the lock: only what evidence covers was read.
    pub live: bool,
    /// It is a backup: its journal may have gone on since.
    pub copied: bool,
    pub segments: Vec<SegmentFacts>,
    pub last_sequence: u64,
    pub tail: Option<TornTail>,
    /// A published segment without a frame; the next writer removes it.
    pub empty_segment: Option<u64>,
    pub problems: Vec<Problem>,
    pub gaps: Vec<Gap>,
    /// What was read; beside a writer with its files still open.
    pub(crate) opened: Vec<Arc<Segment>>,
}

impl Audit {
    /// No damage; a torn tail is none.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// The journal may know of work that was not read: of what it lost, or of what came behind the copy. A header copy
    /// that its twin replaces is the only damage that costs nothing for certain.
    pub fn may_lack_work(&self) -> bool {
        const HEADER_COPY: u8 = 1;
        let damaged = || self.problems.iter().any(|problem| problem.row != HEADER_COPY);
        self.copied || !self.gaps.is_empty() || damaged()
    }
}

/// Passes over a journal whose segments come and go meanwhile.
const PASSES_MAX: usize = 8;
/// Segment files that stay open while they are read beside a writer, from the oldest on: what compaction takes is among them.
const HELD_FILES: usize = 256;

/// Reads everything and hands it to a sink made by `make`. A bad read, and a read during which a writer came, is tried
/// once more, with a new sink, after reading head, keyring and directory again; and again for as long as segments came
/// or went meanwhile, since a compaction that removes what was listed looks like damage (JR-13).
///
/// # Errors
/// What keeps the scan from starting (no journal, wrong key, newer format) or a storage error; `Moved` if files went in
/// every pass. Damage is no error here; it is in the answer.
pub fn audit<S: Sink>(config: &Config, make: &mut dyn FnMut() -> S) -> Result<(Audit, S)> {
    let mut listed: Option<Vec<String>> = None;
    let mut held = HELD_FILES;
    let (mut known, mut last): (Vec<Place>, _) = (Vec::new(), None);
    for _ in 0..PASSES_MAX {
        let found = pass(config, make(), held);
        let again = match &found {
            Ok((audit, _)) => !audit.problems.is_empty() || (!audit.live && config.disk.is_locked()?),
            // A file went between the listing and the look into it: a writer removes what it has judged to be empty.
            Err(JournalError::Disk(e)) if held > 0 && e.kind == ErrorKind::Descriptors => {
                held = 0;
                continue;
            }
            Err(JournalError::Disk(e)) => matches!(e.kind, ErrorKind::NotFound | ErrorKind::ShortRead),
            Err(_) => false,
        };
        if !again {
            return found;
        }
        let before = listed.replace(segments(config)?);
        // Damage is where it is; what only a change looked like is elsewhere the next time.
        let problems = found.as_ref().map_or(&[][..], |(audit, _)| audit.problems.as_slice());
        let stays = problems.iter().any(|problem| known.contains(&problem.place));
        let settled = stays || !found.as_ref().is_ok_and(|(audit, _)| audit.live);
        if before.is_some() && before == listed && settled {
            return found;
        }
        known = problems.iter().map(|problem| problem.place).collect();
        last = stays.then_some(found);
    }
    last.unwrap_or(Err(JournalError::Moved))
}

/// The names of all segments.
fn segments(config: &Config) -> Result<Vec<String>> {
    let entries = store::list(&*config.disk, Folder::Segments)?;
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.file).collect();
    names.retain(|name| name.ends_with(".seg"));
    names.sort_unstable();
    Ok(names)
}

/// One pass without a second try: for a sink that cannot be made anew.
pub(crate) fn once<S: Sink>(config: &Config, sink: S) -> Result<(Audit, S)> {
    pass(config, sink, HELD_FILES)
}

fn pass<S: Sink>(config: &Config, mut sink: S, held_files: usize) -> Result<(Audit, S)> {
    let live = config.disk.is_locked()?;
    let held_files = if live { held_files } else { 0 };
    let store = Store::open(config)?;
    let (head, files) = horizon(config, &store, live, held_files)?;
    // On a stopped journal the device is asked, as a start would: after a failed sync the cache may show frames that
    // were never written (JR-4).
    let options =
        ScanOptions { uncached_last: !live, live, held_files, threads: config.tuning.check_threads };
    let scan = scan::scan_files(&store, &head, files, options, &mut sink)?;
    let shows = config.disk.shows();
    let mut audit = Audit { copied: shows == Shows::Copy, ..facts(&store, &head, scan, live) };
    if shows == Shows::MadeUp {
        // Who lost one file may have lost others, of which nothing tells.
        let what = "`store` is missing or does not read back: data loss";
        audit.problems.insert(0, Problem { place: Place::default(), row: 11, what });
    }
    Ok((audit, sink))
}

/// The head, and files of which each compacted one stood there before that head was read: evidence then reaches every
/// forget record that it was written by (JD-9).
fn horizon(
    config: &Config,
    store: &Store,
    live: bool,
    held_files: usize,
) -> Result<(HeadState, SegmentFiles)> {
    let mut before = store.segment_files()?;
    let mut head =
        if live { settle(config, store, held_files)? } else { head::read(&*store.disk, &store.keyring)? };
    loop {
        let files = store.segment_files()?;
        let known = |named: &(SegmentName, Name)| before.compacted().any(|before| before == named);
        if !live || files.compacted().all(known) {
            return Ok((head, files));
        }
        // A compaction takes far longer than this round.
        before = files;
        head = head::read(&*store.disk, &store.keyring)?;
    }
}

/// Waits until evidence covers the frames that stood there when the reader began, at most `reader_wait`.
fn settle(config: &Config, store: &Store, held_files: usize) -> Result<HeadState> {
    const PAUSE: Duration = Duration::from_millis(10);
    struct Nothing;
    impl Sink for Nothing {}
    let options = ScanOptions { live: true, held_files, ..ScanOptions::default() };
    let start = config.clock.monotonic();
    let head = head::read(&*store.disk, &store.keyring)?;
    let seen = scan::scan(store, &head, options, &mut Nothing)?;
    let wanted = (seen.end.segment, seen.standing_frames);
    loop {
        let head = head::read(&*store.disk, &store.keyring)?;
        let named = head.slot.as_ref().map_or((0, 0), |slot| (slot.segment, slot.frames));
        let waited = config.clock.monotonic().saturating_sub(start);
        if named >= wanted || seen.has_grown()? || waited >= config.tuning.reader_wait {
            return Ok(head);
        }
        std::thread::sleep(PAUSE);
    }
}

fn facts(store: &Store, head: &HeadState, scan: Scan, live: bool) -> Audit {
    let slots = store.keyring.slots().iter().map(|slot| SlotFacts {
        name: slot.name.clone(),
        kind: match slot.kind {
            sealog_seal::SlotKind::Raw => "raw",
            sealog_seal::SlotKind::Passphrase(_) => "passphrase",
        },
    });
    Audit {
        store_id: store.id().0,
        created_ms: store.created_ms,
        keyring_generation: store.keyring.generation(),
        keyring_copies: store.copies,
        active_root: store.keyring.active_root().id().0,
        slots: slots.collect(),
        head: head.slot.as_ref().map(|slot| HeadFacts {
            good_slots: head.good_slots,
            counter: slot.counter,
            epoch: slot.epoch,
            lineage: slot.lineage,
            segment: slot.segment,
            frames: slot.frames,
            last_sequence: slot.last_sequence,
            chain: slot.chain,
            closed: slot.state == sealog_journal_format::HeadState::Closed,
        }),
        live,
        copied: false,
        last_sequence: scan.segments.iter().map(|s| s.last_sequence).max().unwrap_or(0),
        segments: scan.segments,
        tail: scan.tails.into_iter().next(),
        empty_segment: scan.follower.map(|follower| follower.number),
        problems: scan.problems,
        gaps: scan.gaps,
        opened: scan.opened,
    }
}
