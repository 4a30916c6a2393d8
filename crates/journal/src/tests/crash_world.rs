//! A workload's world: one journal on a simulated disk, and the history that an oracle judges crash images by. Every
//! unit carries the number of disk operations that were done when it was submitted, acknowledged or given up.

use std::collections::BTreeSet;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use sealog_disk::Clock;
use sealog_disk::scramble::ScrambleDisk;
use sealog_disk::sim::{SimDisk, TraceEntry};

use super::setup::{Bench, Opened};
use crate::{Admission, JournalError, NewRecord, Record, RecoveryReport, Ticket, Turn, Unit};

/// A unit that was handed to the journal.
#[derive(Clone, Debug)]
struct Asked {
    records: Arc<[NewRecord]>,
    submitted: u64,
    acknowledged: Option<u64>,
    /// Refused, or seen to be lost by a later start: it must not come back.
    gone: Option<u64>,
}

/// A compaction and the units that it drops.
#[derive(Clone, Debug)]
struct Compacted {
    began: u64,
    /// Absent: it was not seen to come to its end.
    ended: Option<u64>,
    units: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    units: Vec<Asked>,
    compacted: Vec<Compacted>,
}

impl History {
    /// The three values at a crash before operation `op`: the first `must` of `units` are acknowledged, the others
    /// may be there as a whole, and nothing else may.
    pub fn at(&self, op: u64) -> Expected {
        let there = |unit: &&Asked| unit.submitted <= op && unit.gone.is_none_or(|gone| gone > op);
        let places: Vec<usize> = (0..self.units.len()).filter(|at| there(&&self.units[*at])).collect();
        let units: Vec<&Asked> = self.units.iter().filter(there).collect();
        let acknowledged = |unit: &&Asked| unit.acknowledged.is_some_and(|at| at <= op);
        let must = units.iter().rposition(acknowledged).map_or(0, |last| last + 1);
        // JC-5: acknowledgement order is journal order, so no hole is possible below `must`.
        assert!(units[..must].iter().all(acknowledged), "acknowledged out of order");
        let dropped = |ended: bool| -> BTreeSet<usize> {
            let by = |one: &&Compacted| one.began <= op && one.ended.is_some_and(|at| at <= op) == ended;
            let units = self.compacted.iter().filter(by).flat_map(|one| &one.units);
            units.filter_map(|unit| places.binary_search(unit).ok()).collect()
        };
        let (dropped, going) = (dropped(true), dropped(false));
        let units = units.into_iter().map(|unit| Arc::clone(&unit.records)).collect();
        Expected { units, must, dropped, going }
    }

    /// Everything that was acknowledged and everything that still may be there.
    pub fn now(&self) -> Expected {
        self.at(u64::MAX)
    }
}

/// What a start must and may find, in order.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub units: Vec<Arc<[NewRecord]>>,
    pub must: usize,
    /// Compacted away.
    dropped: BTreeSet<usize>,
    /// Being compacted away: all there or none (R23).
    going: BTreeSet<usize>,
}

impl Expected {
    /// Exactly these units.
    pub fn exactly(&self, count: usize) -> Expected {
        Expected { units: self.units[..count].to_vec(), must: count, ..self.clone() }
    }

    /// What a compaction that was under way came to, as these records show it.
    pub fn settled(&self, records: &[Record]) -> Expected {
        let old = Expected { going: BTreeSet::new(), ..self.clone() };
        if self.going.is_empty() || old.check_one(records).is_ok() {
            return old;
        }
        let dropped = self.dropped.union(&self.going).copied().collect();
        Expected { dropped, ..old }
    }

    /// Which units these records have no part of, of those that must or may be there.
    fn missing(&self, records: &[Record]) -> BTreeSet<usize> {
        let mut sequence = 1;
        let mut missing = BTreeSet::new();
        for (at, unit) in self.units.iter().enumerate() {
            if records.binary_search_by_key(&sequence, |record| record.sequence).is_err() {
                missing.insert(at);
            }
            sequence += unit.len() as u64;
        }
        missing
    }

    /// Equal for what expects the same records, whichever workload it comes from.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.must, &self.dropped, &self.going, self.units.len()).hash(&mut hasher);
        for record in self.units.iter().flat_map(|unit| unit.iter()) {
            (record.kind, record.stream, record.event_number, record.time_ms, &record.body).hash(&mut hasher);
        }
        hasher.finish()
    }

    pub fn and(&self, unit: &Unit) -> Expected {
        let mut units = self.units.clone();
        units.push(unit.records.clone().into());
        Expected { must: units.len(), units, ..self.clone() }
    }

    /// How many units the records are, if they are whole units in order, byte for byte, with dense sequences, and
    /// none that must be there is missing (R02, R07, JC-5, JF-13, JR-11).
    pub fn check(&self, records: &[Record]) -> Result<usize, String> {
        self.settled(records).check_one(records)
    }

    fn check_one(&self, records: &[Record]) -> Result<usize, String> {
        let mut rest = records;
        let (mut found, mut sequence) = (0, 1);
        for (at, unit) in self.units.iter().enumerate() {
            if self.dropped.contains(&at) {
                (found, sequence) = (found + 1, sequence + unit.len() as u64);
                continue;
            }
            if rest.is_empty() {
                break;
            }
            if rest.len() < unit.len() {
                return Err(format!("unit {found} is there in part: {} of {}", rest.len(), unit.len()));
            }
            let (here, behind) = rest.split_at(unit.len());
            if let Some(at) = here.iter().zip(unit.iter()).position(|(there, asked)| !same(there, asked)) {
                return Err(format!("record {at} of unit {found} is not what was submitted"));
            }
            let dense = here.iter().zip(sequence..).all(|(record, sequence)| record.sequence == sequence);
            if !dense {
                return Err(format!("unit {found} does not stand at sequence {sequence}"));
            }
            (rest, found, sequence) = (behind, found + 1, sequence + unit.len() as u64);
        }
        if !rest.is_empty() {
            return Err(format!("{} records that nobody submitted", rest.len()));
        }
        if found < self.must {
            return Err(format!("acknowledged units are lost: {found} of {} are there", self.must));
        }
        Ok(found)
    }
}

fn same(record: &Record, asked: &NewRecord) -> bool {
    record.kind == asked.kind
        && record.stream == asked.stream
        && record.class == asked.class
        && record.event_number == asked.event_number
        && record.time_ms == asked.time_ms
        && record.logical_size == asked.logical_size
        && record.body == asked.body
}

/// Why a workload did not go on.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    /// A start was refused or failed.
    Open(JournalError),
    /// The writer does not write any more.
    Ended,
    Close(JournalError),
}

pub(crate) type Step = Result<(), Stop>;

/// Notes how far the disk was when a ticket was woken: an answer that comes too early is not hidden by a late look.
#[derive(Debug)]
struct Woken {
    disk: SimDisk,
    /// Operations and calls by then, plus one; 0: not yet.
    operations: AtomicU64,
    calls: AtomicU64,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.operations.store(self.disk.op_count() + 1, Ordering::Relaxed);
        self.calls.store(self.disk.call_count() + 1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Pending {
    ticket: Ticket,
    unit: usize,
    woken: Arc<Woken>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub bench: Bench,
    pub history: History,
    pub live: Option<Opened>,
    pending: Vec<Pending>,
    /// Runs of compaction that came to their end.
    pub compactions: usize,
    /// The seed of the scrambling disk that stands before `bench.disk`, if one does.
    pub mask: Option<u64>,
    /// Units refused for want of room.
    pub refused: usize,
    /// What the disk traced, if it traces, up to the last look.
    pub trace: Vec<TraceEntry>,
    /// Lengths of `trace` at which tickets were acknowledged.
    pub acknowledged_at: Vec<usize>,
    /// Calls before the trace began.
    untraced: u64,
}

impl World {
    pub fn on(disk: SimDisk, direct: bool, seed: u64) -> World {
        disk.set_direct(direct);
        let mut bench = Bench::on(disk, seed);
        bench.config.tuning.first_segment_bytes = 12 << 10;
        bench.config.tuning.segment_bytes_min = 12 << 10;
        bench.config.tuning.segment_bytes_max = 20 << 10;
        World {
            bench,
            history: History::default(),
            live: None,
            pending: Vec::new(),
            compactions: 0,
            mask: None,
            refused: 0,
            trace: Vec::new(),
            acknowledged_at: Vec::new(),
            untraced: 0,
        }
    }

    /// On a disk that somebody left: what `expected` says must be there is, the rest is undecided until a start.
    pub fn resume(disk: SimDisk, direct: bool, seed: u64, expected: &Expected) -> World {
        let mut world = World::on(disk, direct, seed);
        let asked = |(at, records): (usize, &Arc<[NewRecord]>)| Asked {
            records: Arc::clone(records),
            submitted: 0,
            acknowledged: (at < expected.must).then_some(0),
            gone: None,
        };
        world.history.units = expected.units.iter().enumerate().map(asked).collect();
        let compacted = [(expected.dropped.clone(), Some(0)), (expected.going.clone(), None)];
        world.history.compacted = compacted.map(|(units, ended)| Compacted { began: 0, ended, units }).into();
        world
    }

    pub fn create(&mut self) -> Step {
        self.bench.try_create().map_err(Stop::Open)
    }

    fn now(&self) -> u64 {
        self.bench.disk.op_count()
    }

    fn opened(&self) -> &Opened {
        self.live.as_ref().expect("the workload has opened the journal")
    }

    pub fn report(&self) -> &RecoveryReport {
        &self.opened().report
    }

    /// Opens, and holds what is shown against the history: from here on exactly that is acknowledged.
    pub fn open(&mut self) -> Step {
        let opened = self.bench.open().map_err(Stop::Open)?;
        let now = self.now();
        let expected = self.history.now();
        let found = expected.check(&opened.records).expect("the start shows the history");
        let settled = expected.settled(&opened.records);
        for one in self.history.compacted.iter_mut().filter(|one| one.ended.is_none()) {
            match settled.dropped.is_superset(&one.units) {
                true => one.ended = Some(now),
                false => one.units.clear(),
            }
        }
        let there = self.history.units.iter_mut().filter(|unit| unit.gone.is_none());
        for (at, unit) in there.enumerate() {
            match at < found {
                true => unit.acknowledged = unit.acknowledged.or(Some(now)),
                false => unit.gone = Some(now),
            }
        }
        self.live = Some(opened);
        Ok(())
    }

    pub fn start_trace(&mut self) {
        self.bench.disk.start_trace();
        self.untraced = self.bench.disk.call_count();
    }

    pub fn submit(&mut self, unit: Unit) {
        self.submit_as(unit, Admission::Reserved);
    }

    pub fn submit_as(&mut self, unit: Unit, admission: Admission) {
        let records = unit.records.clone().into();
        let Ok(mut ticket) = self.opened().journal.submit(unit, admission) else { return };
        let submitted = self.now();
        let disk = self.bench.disk.clone();
        let woken = Arc::new(Woken { disk, operations: AtomicU64::new(0), calls: AtomicU64::new(0) });
        let waker = Waker::from(Arc::clone(&woken));
        let early = Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker));
        assert!(early.is_pending(), "a ticket that is answered before anybody wrote");
        self.pending.push(Pending { ticket, unit: self.history.units.len(), woken });
        self.history.units.push(Asked { records, submitted, acknowledged: None, gone: None });
    }

    /// One turn of the writer; notes what it decided.
    pub fn turn(&mut self) -> Turn {
        let turn = self.opened().journal.turn();
        self.settle();
        turn
    }

    fn settle(&mut self) {
        let now = self.bench.disk.op_count();
        self.trace.extend(self.bench.disk.take_trace());
        for mut pending in std::mem::take(&mut self.pending) {
            // Looked at again with its own waker, which stays registered while there is no answer.
            let waker = Waker::from(Arc::clone(&pending.woken));
            let answer = Pin::new(&mut pending.ticket).poll(&mut Context::from_waker(&waker));
            let unit = &mut self.history.units[pending.unit];
            let Poll::Ready(answer) = answer else {
                self.pending.push(pending);
                continue;
            };
            match answer {
                Ok(()) => {
                    let [operations, calls] = [&pending.woken.operations, &pending.woken.calls]
                        .map(|at| at.load(Ordering::Relaxed).checked_sub(1).expect("an answer wakes"));
                    unit.acknowledged = Some(operations);
                    self.acknowledged_at.push(calls.saturating_sub(self.untraced) as usize);
                }
                Err(JournalError::Full) => {
                    unit.gone = Some(now);
                    self.refused += 1;
                }
                Err(_) => {}
            }
        }
    }

    /// Turns until nothing is queued.
    pub fn drain(&mut self) -> Step {
        loop {
            match self.turn() {
                Turn::Decided(_) => {}
                Turn::Idle => return Ok(()),
                Turn::Ended => return Err(Stop::Ended),
            }
        }
    }

    pub fn commit(&mut self, unit: Unit) -> Step {
        self.submit(unit);
        self.drain()
    }

    /// Time passes, and the helper does what is due.
    pub fn pause(&mut self, ms: u64) -> Step {
        self.bench.clock.advance(Duration::from_millis(ms));
        while self.opened().journal.maintain() {}
        match self.opened().journal.health() {
            crate::Health::Poisoned { .. } => Err(Stop::Ended),
            crate::Health::Ready | crate::Health::Full | crate::Health::Stalled | crate::Health::Closed => {
                Ok(())
            }
        }
    }

    /// Compacts whatever is due, a run at a time. What a run drops is learnt from a copy of the journal.
    ///
    /// With summaries a step may also be one of theirs, which drops nothing; what it was shows afterwards.
    pub fn compact(&mut self) -> Step {
        let summarise = self.bench.config.tuning.summarise;
        loop {
            let Some(units) = self.foreseen().or(summarise.then(BTreeSet::new)) else { return Ok(()) };
            let began = self.now();
            self.history.compacted.push(Compacted { began, ended: None, units });
            let segments = self.segments();
            let done = self.opened().journal.tend();
            if self.opened().journal.health() != crate::Health::Ready {
                return Err(Stop::Ended);
            }
            if !done {
                return Ok(());
            }
            let now = self.now();
            self.history.compacted.last_mut().expect("pushed above").ended = Some(now);
            // A summary leaves every segment where it is.
            match segments == self.segments() {
                true => self.history.compacted.last_mut().expect("as above").units.clear(),
                false => self.compactions += 1,
            }
        }
    }

    /// Their names. No call that a fault may hit.
    fn segments(&self) -> Vec<String> {
        self.bench.disk.files().into_keys().filter(|name| name.ends_with(".seg")).collect()
    }

    /// What the next run will drop; `None`: there is none.
    fn foreseen(&self) -> Option<BTreeSet<usize>> {
        let mut copy = Bench::on(self.bench.disk.fork(), 99);
        // A process of its own each time: what it seals is no repetition.
        copy.clock.set_process_id(1_000_000 + self.history.compacted.len() as u32);
        if let Some(seed) = self.mask {
            copy.config.disk = Arc::new(ScrambleDisk::new(Arc::new(copy.disk.clone()), seed));
        }
        copy.config.tuning = self.bench.config.tuning.clone();
        copy.config.tuning.summarise = false;
        let passed = self.bench.clock.monotonic();
        copy.clock.advance(passed);
        let opened = copy.open().ok()?;
        opened.journal.tend().then(|| {
            let left: Vec<Record> =
                opened.journal.read_from(1).map(|record| record.expect("no fault")).collect();
            let expected = self.history.now();
            let missing = expected.missing(&left);
            missing.into_iter().filter(|at| *at < expected.must && !expected.dropped.contains(at)).collect()
        })
    }

    /// Everything that waits in the background.
    pub fn tend(&mut self) -> Step {
        while self.opened().journal.tend() {}
        match self.opened().journal.health() {
            crate::Health::Poisoned { .. } => Err(Stop::Ended),
            crate::Health::Ready | crate::Health::Full | crate::Health::Stalled | crate::Health::Closed => {
                Ok(())
            }
        }
    }

    pub fn close(&mut self) -> Step {
        let closed = self.opened().journal.close();
        self.settle();
        self.live = None;
        self.pending.clear();
        closed.map_err(Stop::Close)
    }

    /// The process ends without a word.
    pub fn kill(&mut self) {
        self.live = None;
        self.pending.clear();
    }
}
