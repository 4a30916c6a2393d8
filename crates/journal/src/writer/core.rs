//! The writer as a state machine: `turn` takes what is queued, writes one frame, syncs it, and publishes. A thread
//! calls it in a loop; a simulation calls it itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sealog_disk::Folder;
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::journal_records::KIND_FORGET;
use sealog_journal_format::record::{GroupEncoder, RecordRef};
use sealog_journal_format::{FrameKind, limits};

use crate::cache::{CacheKey, OpenedFrame, Plaintext};
use crate::error::JournalError;
use crate::head::HeadContent;
use crate::index::FrameRef;
use crate::record::{Class, NewRecord, Record};
use crate::shared::{Mark, Shared, lock};
use crate::writer::budget::Budget;
use crate::writer::frames::{Active, Lost, SEAL_BYTES, cause, segment_name};
use crate::writer::maintain::{self, NOT_IN_PLACE};
use crate::writer::prepare::{Identity, is_full, next_name};
use crate::writer::queue::{Admission, Queued};

/// What the reserve keeps for each open stream, and once (JC-7).
const RESERVE_STREAM_BYTES: u64 = 2304;
const RESERVE_BYTES: u64 = 4096;
/// A segment that will be used up so soon does not last, ms.
const HURRIED_MS: u128 = 1000;
/// What a frame takes beside its units: header, base time, padding.
const FRAME_OVERHEAD_BYTES: u64 =
    (limits::FRAME_HEADER_BYTES + limits::VARINT_BYTES_MAX + limits::BODY_ALIGN) as u64;

#[derive(Debug)]
pub(crate) struct Core {
    shared: Arc<Shared>,
    lineage: [u8; 16],
    predecessor_lineage: [u8; 16],
    epoch: u64,
    /// Where the chain stands: the active segment's end, or the end of what recovery left.
    end: EndRecord,
    active: Option<Active>,
    segment_bytes: u64,
    /// When the active segment was published.
    rolled: Duration,
    clocks: Clocks,
    open_streams: u64,
    budget: Budget,
}

/// What must not change under a running writer (JC-9).
#[derive(Debug)]
struct Clocks {
    boot_id: [u8; 16],
    wall_ms: u64,
    monotonic: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing was queued.
    Idle,
    /// This many units were decided.
    Decided(usize),
    /// The writer does not write any more.
    Ended,
}

/// What became of a group, once it is durable.
struct Decision {
    refused: Vec<(u64, JournalError)>,
    /// The units that were written. Nothing reads them any more.
    spent: Vec<Queued>,
}

enum Roll {
    Full,
    Lost(Lost),
}

impl From<Lost> for Roll {
    fn from(lost: Lost) -> Roll {
        Roll::Lost(lost)
    }
}

impl Core {
    pub fn new(shared: Arc<Shared>, lineage: [u8; 16], predecessor_lineage: [u8; 16], epoch: u64) -> Core {
        let (end, open_streams, budget) = {
            let catalog = shared.read();
            let open = catalog.index.open_streams().iter().map(|(_, facts)| facts.logical_bytes).sum();
            let budget = Budget::new(shared.tuning.disk_bytes_max, catalog.frame_bytes(), open);
            (catalog.durable.end, catalog.index.open_count(), budget)
        };
        let clocks = Clocks::now(&shared);
        let segment_bytes = shared.tuning.first_segment_bytes;
        Core {
            shared,
            lineage,
            predecessor_lineage,
            epoch,
            end,
            active: None,
            segment_bytes,
            rolled: Duration::ZERO,
            clocks,
            open_streams,
            budget,
        }
    }

    /// One group: drain, encode, make room, write, sync, publish. Returns without waiting if nothing is queued.
    pub fn turn(&mut self) -> Turn {
        if self.shared.poisoned().is_some() {
            return Turn::Ended;
        }
        let queued = self.shared.queue.take(limits::GROUP_BYTES_SOFT, limits::RECORDS_MAX as usize);
        let Some(last) = queued.last().map(|queued| queued.number) else {
            return Turn::Idle;
        };
        let decided = queued.len();
        match self.commit(queued) {
            Ok(Decision { refused, spent }) => {
                self.shared.completion.decide(last, refused, spent);
                Turn::Decided(decided)
            }
            Err(Lost(cause)) => {
                self.shared.poison(cause);
                Turn::Ended
            }
        }
    }

    fn commit(&mut self, queued: Vec<Queued>) -> Result<Decision, Lost> {
        let mut refused = Vec::new();
        let mut units = self.admit(queued, &mut refused)?;
        if units.is_empty() {
            return Ok(Decision { refused, spent: units });
        }
        let Some(group) = encode(&units) else {
            // What is not written is not acknowledged.
            let unencodable = || JournalError::Misuse("a unit could not be encoded");
            refused.extend(units.iter().map(|queued| (queued.number, unencodable())));
            return Ok(Decision { refused, spent: units });
        };
        let plaintext = Plaintext::new(group.finish());
        let need = limits::FRAME_HEADER_BYTES as u64 + plaintext.len() as u64;
        match self.make_room(need) {
            Ok(()) => {}
            Err(Roll::Lost(lost)) => return Err(lost),
            Err(Roll::Full) => {
                refused.extend(units.iter().map(|queued| (queued.number, JournalError::Full)));
                return Ok(Decision { refused, spent: units });
            }
        }
        self.write_group(&mut units, plaintext)?;
        self.prepare_ahead();
        Ok(Decision { refused, spent: units })
    }

    /// JC-7: what is not reserved is admitted only while the reserve stays whole; a larger `next` is tried first. Where
    /// it cannot be had, creations are given up before events, and events before what is forgotten. At the budget so
    /// are they, and creations ahead of it (JC-10).
    fn admit(
        &mut self,
        mut queued: Vec<Queued>,
        refused: &mut Vec<(u64, JournalError)>,
    ) -> Result<Vec<Queued>, Lost> {
        let demand = Demand::of(&queued, self.open_streams);
        let resting = self.shared.preparation.lock().resting(self.shared.clock.monotonic());
        let room = self.has_room(demand.frame, demand.whole_reserve, !resting);
        // Whether a creation would be taken, be there one in this group or not.
        let wanting = demand.frame.saturating_add(self.budget.margin(demand.beside_newest));
        let beyond_budget = if self.within_budget(wanting) { 0 } else { wanting };
        lock(&self.shared.status).lacking(!room, beyond_budget);
        if room && beyond_budget == 0 {
            return Ok(queued);
        }
        let wanted = file_bytes(demand.frame + demand.whole_reserve);
        'lacking: for refusable in [Admission::Create, Admission::Ordinary, Admission::Forget] {
            let mut there = queued.iter().filter(|queued| queued.admission == refusable).count();
            while there > 0 {
                let demand = Demand::of(&queued, self.open_streams);
                let affordable = !demand.budgeted || self.within_budget(self.budgeted(&demand));
                if affordable && self.has_room(demand.frame, demand.reserve, !resting) {
                    break 'lacking;
                }
                // The budget has room for some of them where it has none for all. Segments are not prepared by trial.
                there = if affordable { 0 } else { there / 2 };
                let dropped = drop_behind(&mut queued, refusable, there);
                if refusable == Admission::Ordinary && !affordable {
                    self.note_cut(&dropped);
                }
                refused.extend(dropped.into_iter().map(|queued| (queued.number, JournalError::Full)));
            }
        }
        if !room {
            // The helper goes on trying. Told last: a failed try of this thread takes the wish away.
            self.shared.preparation.lock().want_more(self.next_identity(), wanted);
        }
        Ok(queued)
    }

    /// What of the budget must be left for a group: its frame, and behind a creation what the others are expected to take.
    fn budgeted(&self, demand: &Demand) -> u64 {
        let behind = if demand.creates { self.budget.margin(demand.beside_newest) } else { 0 };
        demand.frame.saturating_add(behind)
    }

    /// Streams that go on no further for want of budget, though they had more to say.
    fn note_cut(&mut self, dropped: &[Queued]) {
        let catalog = self.shared.read();
        for stream in
            dropped.iter().flat_map(|queued| &queued.unit.records).filter_map(|record| record.stream)
        {
            if let Some(facts) = catalog.index.facts(&stream).filter(|facts| !facts.closed) {
                self.budget.cut(stream, facts.logical_bytes);
            }
        }
    }

    /// Whether a frame has room with so much behind it, be it in a segment that is prepared now.
    fn has_room(&mut self, frame: u64, reserve: u64, prepare: bool) -> bool {
        self.usable_behind(frame).is_some_and(|usable| usable >= reserve)
            || (prepare && self.prepare_now(frame + reserve))
    }

    /// Whether the frames on disk and so much more are within the budget (JC-10).
    fn within_budget(&mut self, bytes: u64) -> bool {
        self.budget.takes(bytes, || self.shared.read().frame_bytes())
    }

    /// Bytes that later frames may take in the active segment and the one that is ready, once a frame of this length
    /// is written; `None` if it fits neither. A rest that a roll leaves behind, or that no terminal unit fits, is
    /// not usable.
    fn usable_behind(&self, frame: u64) -> Option<u64> {
        let active = self.active.as_ref().map_or(0, Active::usable);
        let ready = self.shared.preparation.ready_bytes();
        let ready = ready.saturating_sub(limits::DATA_START + 2 * SEAL_BYTES);
        match active.checked_sub(frame) {
            Some(rest) if rest >= RESERVE_STREAM_BYTES => Some(rest + ready),
            Some(_) => Some(ready),
            None => ready.checked_sub(frame),
        }
    }

    /// Prepares a segment on this thread. `false`: it could not be had. What is not for want of space is tried twice,
    /// since units wait for it that must not be refused for one bad call.
    fn prepare_now(&mut self, usable: u64) -> bool {
        let need = file_bytes(usable);
        let identity = self.next_identity();
        let target = self.target().max(need);
        let shared = Arc::clone(&self.shared);
        for _try in 0..2 {
            match shared.preparation.lock().finish(&shared, identity, need, target) {
                Ok(()) => return true,
                Err(e) if is_full(&e) => return false,
                Err(_) => {}
            }
        }
        false
    }

    fn next_identity(&self) -> Identity {
        Identity {
            number: self.end.segment + 1,
            lineage: self.lineage,
            predecessor_lineage: self.predecessor_lineage,
            epoch: self.epoch,
        }
    }

    /// Sizes are geometric, bounded by a sixteenth of the free space and of the budget.
    fn target(&self) -> u64 {
        let tuning = &self.shared.tuning;
        let available = self.shared.store.disk.space().map_or(0, |space| space.available);
        let largest = tuning.segment_bytes_largest(available);
        self.segment_bytes.min(largest).max(tuning.segment_bytes_min).next_multiple_of(4096)
    }

    /// An active segment with room for a frame of `need` bytes.
    fn make_room(&mut self, need: u64) -> Result<(), Roll> {
        let moved = self.clocks.jumped(&self.shared);
        let aged = self.active.is_some() && self.shared.roll_wanted.swap(false, Ordering::AcqRel);
        let fits = |active: &Active| active.usable() >= need && !active.worn() && !aged;
        if !moved && self.active.as_ref().is_some_and(fits) {
            return Ok(());
        }
        if moved {
            // This process may be one of two that continue the same memory: what was prepared has a twin (JC-9).
            self.shared.preparation.lock().discard(&self.shared);
        }
        for _try in 0..2 {
            let ready = self.shared.preparation.ready_bytes();
            if ready < file_bytes(need) && !self.prepare_now(need) {
                return Err(Roll::Full);
            }
            match self.roll(moved) {
                // The prepared file was given up; another one may do.
                Err(Roll::Full) => {}
                other => return other,
            }
        }
        Err(Roll::Full)
    }

    /// JC-1: the old segment is sealed, the ready one published, the head names it, its link is written. After the
    /// clocks `moved` nothing is sealed under the old segment's key any more, so it ends without a seal (JC-9).
    fn roll(&mut self, moved: bool) -> Result<(), Roll> {
        let Some(prepared) = self.shared.preparation.lock().take_ready() else {
            return Err(Roll::Full);
        };
        let shared = Arc::clone(&self.shared);
        let disk = &shared.store.disk;
        if let Some(active) = &mut self.active {
            active.end_orderly(moved)?;
            self.end = active.end;
        }
        if let Some(old) = self.active.take() {
            old.close()?;
        }
        let direct = shared.tuning.direct;
        let opened = Active::new(disk, prepared, &next_name(), direct, &self.end);
        let (mut active, segment) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                tracing::warn!(kind = ?e.kind, "the prepared segment was given up");
                return Err(Roll::Full);
            }
        };
        // A failed rename may have taken effect, so it is as final as a failed sync.
        disk.rename_new(&next_name(), &segment_name(active.end.segment)).map_err(|e| Lost(cause(&e)))?;
        disk.sync_folder(Folder::Segments).map_err(|e| Lost(cause(&e)))?;
        let link = self.end;
        self.publish_head(&HeadContent {
            segment: active.end.segment,
            frames: 0,
            ..self.head_content(&link)
        })?;
        active.write(FrameKind::Link, &link.encode(), 0)?;
        let id = active.identity()?;
        self.end = active.end;
        tracing::debug!(segment = self.end.segment, direct = active.is_direct(), "segment published");
        self.active = Some(active);
        self.segment_bytes = self.segment_bytes.saturating_mul(2);
        self.rolled = shared.clock.monotonic();
        let mut catalog = shared.write();
        catalog.ends.insert(link.segment, link.end_offset);
        catalog.segments.insert(self.end.segment, Arc::new(segment));
        catalog.active = Some((segment_name(self.end.segment), id));
        self.move_durable(&mut catalog);
        drop(catalog);
        shared.counting.rolls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn head_content(&self, end: &EndRecord) -> HeadContent {
        HeadContent::naming(end, self.lineage, self.epoch, false)
    }

    fn publish_head(&self, content: &HeadContent) -> Result<(), Lost> {
        let mut head = lock(&self.shared.head);
        head.rewritten = self.shared.clock.monotonic();
        self.shared.counting.head_rewrites.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        head.writer.rewrite(content).map_err(|_| Lost("the head was not written"))
    }

    fn move_durable(&self, catalog: &mut crate::shared::Catalog) {
        catalog.durable.end = self.end;
        catalog.durable.lineage = self.lineage;
        catalog.durable.epoch = self.epoch;
        catalog.durable.moved = self.shared.clock.monotonic();
    }

    fn write_group(&mut self, units: &mut [Queued], plaintext: Plaintext) -> Result<(), Lost> {
        let Some(active) = &mut self.active else {
            return Err(Lost("no active segment"));
        };
        let records: usize = units.iter().map(|queued| queued.unit.records.len()).sum();
        let started = self.shared.clock.monotonic();
        lock(&self.shared.status).sync_since = Some(started);
        let written = active.write(FrameKind::Group, &plaintext, records as u32);
        lock(&self.shared.status).sync_since = None;
        let written = written?;
        let first_sequence = self.end.last_sequence + 1;
        self.end = active.end;
        let sync = self.shared.clock.monotonic().saturating_sub(started);
        let frame_bytes = written.header.frame_bytes();
        self.shared.counting.group(records as u64, frame_bytes, sync);
        let at = FrameRef { segment: self.end.segment, offset: written.offset };
        // Before anybody can look for it there: a miss would read what is being written from the disk.
        let frame = OpenedFrame { header: written.header, epoch: self.epoch, plaintext };
        self.shared.cache.put(CacheKey { generation: 0, at }, frame);
        let mut catalog = self.shared.write();
        let records = units.iter_mut().flat_map(|queued| &mut queued.unit.records);
        for (record, sequence) in records.zip(first_sequence..) {
            let size_of = |stream: &_| catalog.index.facts(stream).map_or(0, |facts| facts.logical_bytes);
            self.budget.takes_in(record, size_of);
            catalog.index.add(at, &durable_record(record, sequence, self.epoch));
        }
        catalog.mark(Mark { sequence: first_sequence, segment: at.segment, offset: at.offset });
        self.move_durable(&mut catalog);
        self.open_streams = catalog.index.open_count();
        drop(catalog);
        self.budget.wrote(frame_bytes);
        self.shared.expected_bytes.store(self.budget.expected(self.open_streams), Ordering::Relaxed);
        self.shared.publish_sequence(self.end.last_sequence);
        Ok(())
    }

    /// Asks the helper for the next segment once half of this one is used, or sooner if this one will not last: only
    /// then are as many zeros there in time as will be wanted.
    fn prepare_ahead(&mut self) {
        let Some(active) = &self.active else { return };
        if self.shared.preparation.is_under_way() {
            return;
        }
        let [used, all] = [active.end.end_offset, active.length].map(|offset| offset - limits::DATA_START);
        let age = self.shared.clock.monotonic().saturating_sub(self.rolled);
        let hurried = used * 16 >= all && age.as_millis() * u128::from(all) < HURRIED_MS * u128::from(used);
        if used * 2 >= all || hurried {
            let (identity, target) = (self.next_identity(), self.target());
            self.shared.preparation.lock().want(identity, target);
            if let Some(helper) = self.shared.helper.get() {
                helper.unpark();
            }
        }
    }

    /// A clean end: everything queued is written, the segment sealed and trimmed, the head closed, `next` removed.
    pub fn close(&mut self) -> Result<(), JournalError> {
        while let Turn::Decided(_) = self.turn() {}
        let shared = Arc::clone(&self.shared);
        if let Some(cause) = shared.poisoned() {
            return Err(JournalError::Poisoned { cause });
        }
        if lock(&shared.status).closed {
            return Ok(());
        }
        let closed = self.close_files();
        match closed {
            Ok(()) => {
                lock(&shared.status).closed = true;
                shared.queue.end(JournalError::Closed);
                shared.completion.end(JournalError::Closed);
                shared.moved.notify_all();
                Ok(())
            }
            Err(Lost(cause)) => {
                shared.poison(cause);
                Err(JournalError::Poisoned { cause })
            }
        }
    }

    fn close_files(&mut self) -> Result<(), Lost> {
        // A head that says closed would speak for files that the next start does not find.
        if !self.shared.in_place() {
            return Err(Lost(NOT_IN_PLACE));
        }
        if let Some(mut active) = self.active.take() {
            active.end_orderly(self.clocks.jumped(&self.shared))?;
            self.end = active.end;
            active.close()?;
            self.move_durable(&mut self.shared.write());
        }
        self.shared.preparation.lock().discard(&self.shared);
        maintain::tidy(&self.shared);
        let durable = self.shared.read().durable;
        let content = HeadContent::naming(&durable.end, durable.lineage, durable.epoch, true);
        self.publish_head(&content)?;
        lock(&self.shared.head).writer.close().map_err(|_| Lost("the head was not closed"))
    }
}

/// What a group asks of the disk.
struct Demand {
    /// Its frame, at most.
    frame: u64,
    /// What must be left behind it for the group to be written, which depends on who is in it.
    reserve: u64,
    /// What must be left behind it for new work to be taken again.
    whole_reserve: u64,
    /// Something in it goes by the budget.
    budgeted: bool,
    creates: bool,
    /// Streams that are open with it, but for one that it opens.
    beside_newest: u64,
}

impl Demand {
    fn of(queued: &[Queued], open_streams: u64) -> Demand {
        let frame = queued.iter().map(|queued| queued.bytes as u64).sum::<u64>() + FRAME_OVERHEAD_BYTES;
        let records = || queued.iter().flat_map(|queued| &queued.unit.records);
        let count = |class| records().filter(|record| record.class.contains(class)).count() as u64;
        let has = |admission| queued.iter().any(|queued| queued.admission == admission);
        let creates = has(Admission::Create);
        let budgeted = creates || has(Admission::Ordinary);
        let opening = count(Class::OPENS);
        let open = open_streams + opening;
        // A group that opens nothing says nothing of a creation unless room for one is asked for.
        let whole_reserve = (open + u64::from(opening == 0)) * RESERVE_STREAM_BYTES + RESERVE_BYTES;
        let reserve = match (budgeted, has(Admission::Forget)) {
            (true, _) => open * RESERVE_STREAM_BYTES + RESERVE_BYTES,
            (false, true) => open.saturating_sub(count(Class::CLOSES)) * RESERVE_STREAM_BYTES,
            // The ends themselves: the reserve is theirs.
            (false, false) => 0,
        };
        let beside_newest = open_streams + opening.saturating_sub(1);
        Demand { frame, reserve, whole_reserve, budgeted, creates, beside_newest }
    }
}

/// Takes the units of one admission out of a group, but for the first `kept` of them.
fn drop_behind(queued: &mut Vec<Queued>, admission: Admission, kept: usize) -> Vec<Queued> {
    let mut seen = 0;
    let behind = |queued: &mut Queued| {
        seen += usize::from(queued.admission == admission);
        queued.admission == admission && seen > kept
    };
    queued.extract_if(.., behind).collect()
}

/// Length of a segment file whose frames may take `usable` bytes beside its link and its seal.
fn file_bytes(usable: u64) -> u64 {
    (limits::DATA_START + 2 * SEAL_BYTES + usable).next_multiple_of(4096)
}

fn encode(units: &[Queued]) -> Option<GroupEncoder> {
    let first = units.first()?.unit.records.first()?;
    // Envelopes of a group are shorter than the bound that `bytes` counts: most name a stream that was named before.
    const ENVELOPE_BYTES: usize = 40;
    let records = units.iter().flat_map(|queued| &queued.unit.records);
    let room = records.map(|record| record.body.len() + ENVELOPE_BYTES).sum();
    let mut group = GroupEncoder::with_room(first.time_ms, room);
    for queued in units {
        for record in &queued.unit.records {
            // Units are checked when they are submitted, against the same limits.
            group.push(&as_ref(record)).ok()?;
        }
    }
    Some(group)
}

pub(crate) fn as_ref(record: &NewRecord) -> RecordRef<'_> {
    RecordRef {
        kind: record.kind,
        class: record.class,
        stream: record.stream.map(|stream| stream.0),
        event_number: record.event_number,
        time_ms: record.time_ms,
        logical_size: record.logical_size,
        body: &record.body,
    }
}

/// As the index wants it: only the journal's own kinds are looked into.
fn durable_record(record: &mut NewRecord, sequence: u64, epoch: u64) -> Record {
    Record {
        sequence,
        kind: record.kind,
        stream: record.stream,
        class: record.class,
        event_number: record.event_number,
        time_ms: record.time_ms,
        logical_size: record.logical_size,
        body: if record.kind == KIND_FORGET { std::mem::take(&mut record.body) } else { Vec::new() },
        epoch,
    }
}

impl Clocks {
    fn now(shared: &Shared) -> Clocks {
        Clocks {
            boot_id: shared.clock.boot_id(),
            wall_ms: shared.clock.wall_ms(),
            monotonic: shared.clock.monotonic(),
        }
    }

    /// Whether the boot changed or wall and monotonic time went apart by more than a minute since the last look.
    fn jumped(&mut self, shared: &Shared) -> bool {
        const APART_MS: u64 = 60_000;
        let now = Clocks::now(shared);
        let passed = now.monotonic.saturating_sub(self.monotonic).as_millis() as u64;
        let apart = (self.wall_ms + passed).abs_diff(now.wall_ms);
        let jumped = now.boot_id != self.boot_id || apart > APART_MS;
        *self = now;
        jumped
    }
}
