//! What is durable, record by record, over all lives, and what every record must agree with when it appears. A record
//! that is here must be in every later state of the journal, byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use sealog_events::body;
use sealog_events::json::{event_json, snapshot_json};
use sealog_events::{
    AttemptEvidence, Event, EventBody, ExecutionId, Identity, MaterializedResult, Materializer, RecordKind,
    Snapshot, Target, Timestamp,
};
use sealog_http::sse_frame;
use sealog_journal::Record;
use sealog_journal_format::journal_records::{
    Forget, KIND_FORGET, KIND_JOURNAL_MAX, KIND_RESTORED, KIND_UNFENCED,
};

use super::script::{ABILITY, Call, Made, PROVIDERS, TRANSIENT, attempts_allowed};

/// One execution as its durable records tell it.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) created_at: Timestamp,
    pub(super) identity: Option<Identity>,
    pub(super) events: Vec<Event>,
    pub(super) evidence: Vec<AttemptEvidence>,
    pub(super) frames: Vec<String>,
    /// Each attempt's provider and the sequence of its `route.selected`.
    pub(super) routed: Vec<(usize, u64)>,
    /// The newest attempt goes on.
    attempting: bool,
    /// An attempt showed output.
    exposed: bool,
    pub(super) ended: Option<Timestamp>,
    /// The time when its end was seen to be durable: a store that goes on counts from a time up to here.
    settled: Timestamp,
    /// It was open in a copy that the journal was restored from, which held so many of its events.
    pub(super) copied: Option<u64>,
    /// The result record that stands before the terminal event.
    result: Option<MaterializedResult>,
    /// Events of the attempt's provider so far.
    reported: usize,
    /// Marks of the attempt so far.
    marked: usize,
}

impl Execution {
    pub(super) fn snapshot(&self, id: ExecutionId) -> Snapshot {
        let mut fold = Materializer::new(id, self.created_at);
        self.events.iter().for_each(|event| fold.push(event));
        self.evidence.iter().for_each(|evidence| fold.push_evidence(evidence));
        fold.into_snapshot()
    }

    /// What a list says of it.
    pub(super) fn entry(&self, id: ExecutionId) -> String {
        let mut snapshot = self.snapshot(id);
        (snapshot.result, snapshot.artifacts) = (None, None);
        let mut entry = snapshot_json(&snapshot);
        entry.truncate(entry.len() - 1);
        entry + &format!(",\"ability\":\"{ABILITY}\"}}")
    }

    pub(super) fn last_sequence(&self) -> u64 {
        self.events.len() as u64
    }

    /// What the newest attempt asked of its provider.
    fn call<'a>(&self, id: ExecutionId, calls: &'a Made) -> Option<&'a Call> {
        calls.get(&(id, self.routed.last()?.0))
    }

    /// The attempt that an event names is the newest one.
    fn is_newest(&self, target: &Target, attempt: u32) -> bool {
        let newest = self.routed.last().map(|(provider, _)| PROVIDERS[*provider]);
        self.attempting && newest == Some(target.provider.as_str()) && self.routed.len() == attempt as usize
    }
}

impl Execution {
    /// Whether this may be the next event. Answers whether it announces that another provider is asked.
    fn judge(
        &mut self,
        id: ExecutionId,
        event: &Event,
        sequence: u64,
        context: &Context<'_>,
    ) -> Result<bool, String> {
        let call = self.call(id, context.calls);
        match &event.body {
            EventBody::Accepted if event.sequence == 1 => {}
            EventBody::Accepted => return Err(format!("{id} was accepted twice")),
            EventBody::RouteSelected { target, attempt } => {
                let provider = PROVIDERS.iter().position(|name| *name == target.provider);
                let provider = provider.ok_or(format!("{id} was routed to nobody"))?;
                let again = self.routed.iter().any(|(asked, _)| *asked == provider);
                if self.attempting || again || self.routed.len() + 1 != *attempt as usize {
                    return Err(format!("{id} was routed to {} out of turn", target.provider));
                }
                self.routed.push((provider, sequence));
                (self.attempting, self.reported, self.marked) = (true, 0, 0);
            }
            EventBody::RouteAttemptFailed { target, attempt, error } => {
                // Without a call its provider had no place for it.
                let allowed = call.map(|call| attempts_allowed(context.seed, call.request).0);
                let asked_in_vain = call.is_none_or(|call| call.transient);
                let last = allowed.is_some_and(|most| *attempt >= most);
                if !self.is_newest(target, *attempt)
                    || !error.retryable
                    || self.exposed
                    || !asked_in_vain
                    || last
                {
                    return Err(format!("{id} gave attempt {attempt} up and had no right to"));
                }
                self.attempting = false;
                return Ok(true);
            }
            EventBody::OutputDelta { .. }
            | EventBody::ToolCallStarted { .. }
            | EventBody::ToolCallArgumentsDelta { .. }
            | EventBody::Progress { .. }
            | EventBody::OutputResult { .. }
            | EventBody::UsageReported { .. } => {
                let sent = call.and_then(|call| call.sent.get(self.reported));
                if !self.attempting || sent != Some(&event.body) {
                    return Err(format!("{id} has event {} that no provider sent", event.sequence));
                }
                self.reported += 1;
                self.exposed |=
                    !matches!(event.body, EventBody::Progress { .. } | EventBody::UsageReported { .. });
            }
            EventBody::Completed { target, stop_reason } => {
                let attempt = self.routed.len() as u32;
                let so = call.is_some_and(|call| call.completed && call.stopped == *stop_reason);
                if !self.is_newest(target, attempt) || !so {
                    return Err(format!("{id} completed and its provider did not, or not for that reason"));
                }
            }
            EventBody::Failed { error, cancelled } => {
                // The provider's own failure, and another one was to be asked.
                let (most, hurried) =
                    call.map_or((0, true), |call| attempts_allowed(context.seed, call.request));
                let own = !cancelled && error.retryable && error.message == TRANSIENT;
                if own && !self.exposed && !hurried && self.routed.len() < most as usize {
                    return Err(format!("{id} failed and another provider was not asked"));
                }
            }
        }
        Ok(false)
    }

    /// Evidence is of the attempt that goes on, each step in order, and nothing that its provider did not say.
    fn evidence(
        &mut self,
        id: ExecutionId,
        evidence: AttemptEvidence,
        context: &Context<'_>,
    ) -> Result<(), String> {
        let said = self.call(id, context.calls).map_or(&[][..], |call| &call.marks);
        let place = said.iter().skip(self.marked).position(|mark| *mark == evidence.mark);
        let now = self.attempting && self.routed.len() == evidence.attempt as usize;
        match place.filter(|_| now) {
            // One that the store did not take is not there.
            Some(at) => self.marked += at + 1,
            None => return Err(format!("{id} has evidence of what its provider did not say")),
        }
        self.evidence.push(evidence);
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// All there ever were, dropped ones too.
    records: BTreeMap<u64, Record>,
    /// Sequences that compaction has dropped: they must never be seen again.
    dropped: BTreeSet<u64>,
    /// Not forgotten, by id.
    pub(super) executions: BTreeMap<ExecutionId, Execution>,
    pub(super) forgotten: BTreeSet<ExecutionId>,
    /// The youngest execution of each key, not forgotten.
    owners: BTreeMap<[u8; 32], ExecutionId>,
    /// In the order of their creation, forgotten ones too.
    pub(super) ids: Vec<ExecutionId>,
    /// Dense up to here.
    pub(super) through: u64,
    pub(super) newest: Timestamp,
    /// Attempts that another one followed.
    pub(super) fallbacks: u64,
    /// Restored from a copy and not unfenced.
    pub(super) fenced: bool,
    /// A creation whose first event must come next.
    half: Option<ExecutionId>,
    /// Records of an import are taken: it tells of no execution that was forgotten, and names them all.
    importing: bool,
}

/// What a record is judged with.
pub(super) struct Context<'a> {
    pub(super) seed: u64,
    pub(super) calls: &'a Made,
    pub(super) retention_ms: u64,
    /// The latest time that the store has seen.
    pub(super) latest: Timestamp,
    /// Executions that somebody is reading now.
    pub(super) read: &'a BTreeSet<ExecutionId>,
}

impl Log {
    /// Before the first record of an imported journal.
    pub(super) fn imported() -> Log {
        Log { importing: true, ..Log::default() }
    }

    /// The last record of an imported journal was taken.
    pub(super) fn is_complete(&mut self) {
        self.importing = false;
    }

    /// Holds what was read of a journal or a copy against what is durable: everything up to the last one that was
    /// read must be there, byte for byte, but for what may have been dropped. Names what was, and what lies behind.
    pub(super) fn compare<'a>(&self, found: &'a [Record]) -> Result<(Vec<u64>, &'a [Record]), String> {
        let mut rest = found;
        let mut gone = Vec::new();
        for (sequence, known) in self.records.iter().filter(|(sequence, _)| !self.dropped.contains(sequence))
        {
            match rest.split_first() {
                Some((first, behind)) if first == known => rest = behind,
                Some((first, _)) if first.sequence == *sequence => {
                    return Err(format!("ALTERED record {sequence}"));
                }
                Some((first, _)) if first.sequence < *sequence => {
                    return Err(format!("PHANTOM record {}, which was dropped", first.sequence));
                }
                Some(_) | None if self.may_be_dropped(known, found) => gone.push(*sequence),
                Some(_) | None => {
                    return Err(format!("LOST record {sequence} of kind {}, which was durable", known.kind));
                }
            }
        }
        match rest.first() {
            Some(first) if first.sequence <= self.through => {
                Err(format!("PHANTOM record {}, which was dropped", first.sequence))
            }
            Some(_) | None => Ok((gone, rest)),
        }
    }

    /// JD-6: what a durable forget record names; the record itself once nothing of it is left.
    fn may_be_dropped(&self, record: &Record, found: &[Record]) -> bool {
        match record.stream {
            Some(stream) => self.forgotten.contains(&ExecutionId::from_bytes(stream.0)),
            None if record.kind == KIND_FORGET => {
                let mut named = Forget::ids(&record.body).into_iter().flatten();
                !named.any(|id| found.iter().any(|one| one.stream.is_some_and(|stream| stream.0 == id)))
            }
            None => false,
        }
    }

    pub(super) fn drop_records(&mut self, gone: &[u64]) {
        self.dropped.extend(gone);
    }

    /// The records up to a sequence, in order: what a copy that ends there grew from.
    pub(super) fn history(&self, through: u64) -> Vec<Record> {
        self.records.range(..=through).map(|(_, record)| record.clone()).collect()
    }

    /// A copy that holds no more than this: what ends there may have been dropped from it.
    pub(super) fn up_to(&self, through: u64) -> Log {
        let mut log = self.clone();
        log.records.split_off(&(through + 1));
        log.dropped.clear();
        log.through = through;
        log
    }

    /// The unit that the last record belongs to must be whole.
    pub(super) fn whole(&self) -> Result<(), String> {
        match self.half {
            Some(id) => Err(format!("a creation without its first event: {id}")),
            None => Ok(()),
        }
    }

    /// Takes the next record. What it names wrong is a violation.
    pub(super) fn take(&mut self, record: &Record, context: &Context<'_>) -> Result<(), String> {
        if record.sequence != self.through + 1 {
            return Err(format!("sequence {} follows {}", record.sequence, self.through));
        }
        self.through = record.sequence;
        self.newest = self.newest.max(Timestamp(record.time_ms));
        self.records.insert(record.sequence, record.clone());
        if let Some(half) = self.half.take() {
            self.half = second(record, half)?;
        }
        if record.kind <= KIND_JOURNAL_MAX {
            return match record.kind {
                KIND_FORGET => self.forget(record, context),
                KIND_RESTORED => {
                    self.restored();
                    Ok(())
                }
                KIND_UNFENCED => {
                    self.fenced = false;
                    Ok(())
                }
                other => Err(format!("a record of the journal's own of kind {other}")),
            };
        }
        let stream = record.stream.ok_or("a record of no execution")?;
        let id = ExecutionId::from_bytes(stream.0);
        let kind = RecordKind::from_number(record.kind).ok_or("a record of an unknown kind")?;
        match kind {
            RecordKind::Created => self.create(id, record, context),
            RecordKind::Origin => match body::decode_origin(&record.body) {
                Ok(_) => self.open(id).map(drop),
                Err(error) => Err(error.to_string()),
            },
            RecordKind::MaterializedResult => {
                let result = body::decode_result(&record.body).map_err(|e| e.to_string())?;
                let execution = self.open(id)?;
                if execution.result.replace(result).is_some() {
                    return Err(format!("{id} has two results"));
                }
                Ok(())
            }
            RecordKind::AttemptEvidence => {
                let evidence = body::decode_evidence(&record.body).map_err(|e| e.to_string())?;
                self.open(id)?.evidence(id, evidence, context)
            }
            RecordKind::Labels => {
                body::decode_labels(&record.body).map_err(|e| e.to_string())?;
                self.open(id).map(drop)
            }
            _event => self.event(id, record, context),
        }
    }

    fn open(&mut self, id: ExecutionId) -> Result<&mut Execution, String> {
        let execution =
            self.executions.get_mut(&id).ok_or(format!("a record of {id}, which is not there"))?;
        match execution.ended {
            Some(_) => Err(format!("{id} goes on behind its terminal event")),
            None => Ok(execution),
        }
    }

    fn restored(&mut self) {
        self.fenced = true;
        for execution in self.executions.values_mut().filter(|execution| execution.ended.is_none()) {
            execution.copied.get_or_insert(execution.events.len() as u64);
        }
    }

    fn create(&mut self, id: ExecutionId, record: &Record, context: &Context<'_>) -> Result<(), String> {
        let created = body::decode_created(&record.body).map_err(|e| e.to_string())?;
        if self.executions.contains_key(&id) || self.forgotten.contains(&id) {
            return Err(format!("{id} was created twice"));
        }
        if self.fenced {
            return Err(format!("{id} was created behind a fence"));
        }
        if let Some(identity) = created.identity {
            if let Some(owner) = self.owners.get(&identity.key_hash) {
                let ended = self.executions.get(owner).and_then(|owner| self.counted_from(owner));
                let now = context.latest.max(self.newest).0;
                // An expired one that is still read loses its key before it is forgotten.
                if ended.is_none_or(|ended| ended.0.saturating_add(context.retention_ms) > now) {
                    return Err(format!("{id} took the key of {owner}, which is still there"));
                }
            }
            self.owners.insert(identity.key_hash, id);
        }
        let execution = Execution {
            created_at: created.created_at,
            identity: created.identity,
            events: Vec::new(),
            evidence: Vec::new(),
            frames: Vec::new(),
            routed: Vec::new(),
            attempting: false,
            exposed: false,
            ended: None,
            settled: Timestamp(0),
            copied: None,
            result: None,
            reported: 0,
            marked: 0,
        };
        self.executions.insert(id, execution);
        self.ids.push(id);
        self.half = Some(id);
        Ok(())
    }

    fn event(&mut self, id: ExecutionId, record: &Record, context: &Context<'_>) -> Result<(), String> {
        let decoded = body::decode(record.kind, &record.body).map_err(|e| e.to_string())?;
        let event = Event { sequence: record.event_number, time: Timestamp(record.time_ms), body: decoded };
        let newest = self.newest;
        let sequence = record.sequence;
        let execution =
            self.executions.get_mut(&id).ok_or(format!("a record of {id}, which is not there"))?;
        if execution.ended.is_some() {
            return Err(format!("{id} goes on behind its terminal event"));
        }
        if event.sequence != execution.last_sequence() + 1 {
            return Err(format!("{id} has event {} behind {}", event.sequence, execution.last_sequence()));
        }
        self.fallbacks += u64::from(execution.judge(id, &event, sequence, context)?);
        let data = event_json(id, &event);
        execution.frames.push(sse_frame(event.sequence, event.body.type_name(), &data));
        let terminal = event.body.is_terminal();
        execution.events.push(event);
        if terminal {
            // Retention counts by the store's clock, which never goes back behind a record.
            execution.ended = Some(newest);
            execution.settled = newest.max(context.latest);
            let result = execution.result.clone().ok_or(format!("{id} ended without its result"))?;
            let snapshot = execution.snapshot(id);
            let expected = [256 << 10, 0].map(|bytes| MaterializedResult::of(&snapshot, bytes));
            if !expected.contains(&Some(result)) {
                return Err(format!("{id} has a result that is not the fold of its events"));
            }
        }
        Ok(())
    }

    fn forget(&mut self, record: &Record, context: &Context<'_>) -> Result<(), String> {
        for id in Forget::ids(&record.body).map_err(|e| e.to_string())? {
            let id = ExecutionId::from_bytes(id);
            let Some(gone) = self.executions.remove(&id) else {
                if self.importing && self.forgotten.insert(id) {
                    continue;
                }
                return Err(format!("{id} was forgotten and is not there"));
            };
            if gone.ended.is_none() || context.read.contains(&id) {
                return Err(format!("{id} was forgotten while it was active or read"));
            }
            self.owners.retain(|_, owner| *owner != id);
            self.forgotten.insert(id);
        }
        Ok(())
    }

    /// The earliest that retention may count from, of an execution that has ended. Where compaction has dropped
    /// records, the times that held the store's clock up when it ended may have gone with them; its own stay.
    pub(super) fn counted_from(&self, execution: &Execution) -> Option<Timestamp> {
        let ended = execution.ended?;
        match execution.events.last() {
            Some(last) if !self.dropped.is_empty() => Some(ended.min(last.time)),
            Some(_) | None => Some(ended),
        }
    }

    /// Whether an execution was over at a time, for certain.
    pub(super) fn is_over(&self, id: ExecutionId, now: Timestamp, retention_ms: u64) -> bool {
        let ended = self.executions.get(&id).filter(|execution| execution.ended.is_some());
        let is_over = |ended: &Execution| now.0 >= ended.settled.0.saturating_add(retention_ms);
        self.dropped.is_empty() && ended.is_some_and(is_over)
    }

    /// Whether a list is what a store must show at this time; without the times that compaction has dropped, only the
    /// sure part is judged.
    pub(super) fn is_shown(&self, listed: &[ExecutionId], wall: Timestamp, retention_ms: u64) -> bool {
        let now = wall.max(self.newest).0;
        let is_over = |ended: Timestamp| now >= ended.0.saturating_add(retention_ms);
        let mut exact: Vec<(Timestamp, ExecutionId)> = Vec::new();
        let mut sure = BTreeSet::new();
        for (id, execution) in &self.executions {
            let ended = execution.ended;
            if ended.is_none_or(|ended| !is_over(ended)) {
                exact.push((execution.created_at, *id));
            }
            if self.counted_from(execution).is_none_or(|counted| !is_over(counted)) {
                sure.insert(*id);
            }
        }
        exact.sort_unstable();
        if self.dropped.is_empty() {
            return exact.iter().map(|(_, id)| id).eq(listed);
        }
        sure.iter().all(|id| listed.contains(id)) && listed.iter().all(|id| self.executions.contains_key(id))
    }
}

/// Behind a creation stand what is kept of the request, if anything, and then the first event, all in one unit. What
/// is returned waits for that event.
fn second(record: &Record, half: ExecutionId) -> Result<Option<ExecutionId>, String> {
    if record.stream.map(|stream| stream.0) == Some(*half.as_bytes()) {
        match RecordKind::from_number(record.kind) {
            Some(RecordKind::Origin | RecordKind::Labels) => return Ok(Some(half)),
            Some(RecordKind::Accepted) => return Ok(None),
            _ => {}
        }
    }
    Err(format!("{half} was created without its first event"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 2006043 once: the clock was set back, an execution ended, and compaction dropped the older one whose times
    /// had held the store's clock up.
    #[test]
    fn retention_counts_from_an_events_own_time_once_others_were_dropped() {
        let last = Event { sequence: 1, time: Timestamp(1_000), body: EventBody::Accepted };
        let execution = Execution {
            created_at: Timestamp(900),
            identity: None,
            events: vec![last],
            frames: Vec::new(),
            routed: Vec::new(),
            attempting: false,
            exposed: false,
            ended: Some(Timestamp(62_000)),
            settled: Timestamp(62_000),
            copied: None,
            result: None,
            reported: 0,
            marked: 0,
            evidence: Vec::new(),
        };
        let mut log = Log::default();
        assert_eq!(log.counted_from(&execution), Some(Timestamp(62_000)));
        log.drop_records(&[1]);
        assert_eq!(log.counted_from(&execution), Some(Timestamp(1_000)));
        let running = Execution { ended: None, ..execution };
        assert_eq!(log.counted_from(&running), None);
    }
}
