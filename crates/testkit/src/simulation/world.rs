//! The oracle: what clients were told and what they sent, held against what is durable.
//!
//! Three values: what was acknowledged or shown must be durable, what was in flight may be, nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use sealog_engine::store::StoreLimits;
use sealog_events::{ExecutionId, Identity, RecordKind, Status, Timestamp, canonical};
use sealog_execution::ExecutionRequest;
use sealog_journal::Record;

use super::class::{Class, Totals};
use super::log::{Context, Log};
use super::pages::Entry;
use super::script::{Calls, PROVIDERS, lock, request_body};

/// What came of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// None yet, or the answer was lost: it may have taken effect.
    Open,
    Acknowledged,
    /// Refused for certain: it has left no trace.
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Submission {
    key: Option<u8>,
    request: u32,
    identity: Option<Identity>,
    answer: Answer,
}

/// Something a client was told, to be held against the log as soon as that is read up to the present.
#[derive(Clone, Debug)]
enum Told {
    Event {
        id: ExecutionId,
        sequence: u64,
        frame: String,
    },
    Execution {
        id: ExecutionId,
        identity: Option<Identity>,
    },
    /// A list's entry of an execution that has ended.
    Entry {
        id: ExecutionId,
        text: String,
    },
    /// At least so many events are durable.
    Reached {
        id: ExecutionId,
        sequence: u64,
    },
}

impl Told {
    fn id(&self) -> ExecutionId {
        match self {
            Told::Event { id, .. }
            | Told::Execution { id, .. }
            | Told::Entry { id, .. }
            | Told::Reached { id, .. } => *id,
        }
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) limits: StoreLimits,
    pub(super) log: Log,
    /// The log holds all that the journal says is durable.
    pub(super) current: bool,
    pub(super) calls: Arc<Mutex<Calls>>,
    /// Who reads what now.
    pub(super) readers: BTreeMap<u64, ExecutionId>,
    /// Something was done to this life's disk: refusals and broken streams are no findings.
    pub(super) in_trouble: bool,
    pub(super) stopping: bool,
    /// The latest time that the clock showed in this life: what expired by it stays so when the clock is set back.
    pub(super) latest: Timestamp,
    pub(super) trace: Vec<String>,
    pub(super) violation: Option<String>,
    pub(super) totals: Totals,
    told: Vec<Told>,
    /// Somebody was told of these. What is durable becomes visible a moment later.
    pub(super) shown: BTreeSet<ExecutionId>,
    /// Somebody was told that these have ended.
    pub(super) ended: BTreeSet<ExecutionId>,
    submissions: Vec<Submission>,
    /// Created here and now, not replayed.
    originals: BTreeSet<ExecutionId>,
    /// Creations that were held against the submissions.
    matched: usize,
    /// Calls of the provider that were held against the log.
    called: BTreeSet<(ExecutionId, usize)>,
}

impl World {
    pub(super) fn new(seed: u64, limits: StoreLimits) -> World {
        World {
            seed,
            limits,
            log: Log::default(),
            current: true,
            calls: Arc::default(),
            readers: BTreeMap::new(),
            in_trouble: false,
            stopping: false,
            latest: Timestamp(0),
            trace: Vec::new(),
            violation: None,
            totals: Totals::default(),
            told: Vec::new(),
            shown: BTreeSet::new(),
            ended: BTreeSet::new(),
            submissions: Vec::new(),
            originals: BTreeSet::new(),
            matched: 0,
            called: BTreeSet::new(),
        }
    }

    pub(super) fn note(&mut self, line: String) {
        self.trace.push(line);
    }

    pub(super) fn met(&mut self, class: Class) {
        self.totals.met.add(class);
    }

    /// The first violation counts; what follows from it does not.
    pub(super) fn violated(&mut self, what: impl Into<String>) {
        if self.violation.is_none() {
            let what = what.into();
            self.note(format!("VIOLATED {what}"));
            self.violation = Some(what);
        }
    }

    /// Takes a record that is durable now.
    pub(super) fn durable(&mut self, record: &Record) {
        let (forgotten, fallbacks) = (self.log.forgotten.len(), self.log.fallbacks);
        let calls = lock(&self.calls);
        let read = self.readers.values().copied().collect();
        let (retention_ms, latest) = (self.limits.retention_ms, self.latest);
        let (seed, calls_made) = (self.seed, &calls.made);
        let context = Context { seed, calls: calls_made, retention_ms, latest, read: &read };
        let taken = self.log.take(record, &context);
        drop(calls);
        self.totals.records += 1;
        self.note(format!("  durable {} kind {}", record.sequence, record.kind));
        if let Err(what) = taken {
            self.violated(what);
        }
        if self.log.forgotten.len() > forgotten {
            self.met(Class::Forgotten);
        }
        if self.log.fallbacks > fallbacks {
            self.met(Class::Fallback);
        }
        if record.kind == RecordKind::AttemptEvidence.number() {
            self.met(Class::Evidence);
        }
    }

    /// A submission is on its way; its number.
    pub(super) fn submitted(&mut self, key: Option<u8>, request: u32) -> usize {
        let body = request_body(self.seed, request);
        let fingerprint =
            ExecutionRequest::parse(body.as_bytes()).map_or([0; 32], |parsed| parsed.fingerprint);
        let identity = key.map(|key| Identity { key_hash: canonical::key_hash(&key_text(key)), fingerprint });
        self.submissions.push(Submission { key, request, identity, answer: Answer::Open });
        self.submissions.len() - 1
    }

    pub(super) fn acknowledged(&mut self, submission: usize, id: ExecutionId, replay: bool) {
        let Submission { key, identity, .. } = self.submissions[submission];
        self.submissions[submission].answer = Answer::Acknowledged;
        self.totals.acknowledged_executions += 1;
        if replay {
            self.met(Class::Replay);
        }
        if (!replay && !self.originals.insert(id)) || (replay && key.is_none()) {
            self.violated(format!("{id} was acknowledged twice as new, or replayed without a key"));
        }
        self.told.push(Told::Execution { id, identity });
        self.settle_if_current();
    }

    /// As [`World::acknowledged`] for a submission that is answered with its stream, which does not say whether it is
    /// a replay.
    pub(super) fn streamed(&mut self, submission: usize, id: ExecutionId) {
        let identity = self.submissions[submission].identity;
        self.submissions[submission].answer = Answer::Acknowledged;
        self.totals.acknowledged_executions += 1;
        self.told.push(Told::Execution { id, identity });
        self.settle_if_current();
    }

    /// A stream ended cleanly without a terminal event: there was nothing behind its cursor.
    pub(super) fn ended_without_terminal(&mut self, id: ExecutionId, cursor: u64) {
        let fair = self
            .log
            .executions
            .get(&id)
            .is_none_or(|execution| execution.ended.is_some() && cursor >= execution.last_sequence());
        if self.current && !fair {
            self.violated(format!("a stream of {id} ended before its terminal event"));
        }
    }

    pub(super) fn refused(&mut self, submission: usize, status: u16, code: &str, streaming: bool) {
        let Submission { key, request, .. } = self.submissions[submission];
        let other = |one: &Submission| one.key == key && one.request != request;
        let fair = match (status, code) {
            (400, "invalid_request") => key.is_some() && self.submissions.iter().any(other),
            (503, "queue_full") => {
                self.met(Class::RefusedFull);
                true
            }
            (503, "provider_unavailable") if self.log.fenced => {
                self.met(Class::Fenced);
                true
            }
            (503, "provider_unavailable") => self.stopping,
            // It ended, and was let go, before its stream was asked for.
            (404, "not_found") => streaming,
            (500, "internal_error") => self.in_trouble || self.stopping,
            _other => false,
        };
        if !fair {
            self.violated(format!("request {request} was answered with {status} {code}"));
        }
        if status != 500 && status != 404 {
            self.submissions[submission].answer = Answer::Refused;
        }
    }

    pub(super) fn delivered(&mut self, id: ExecutionId, sequence: u64, frame: String, terminal: bool) {
        if terminal {
            self.ended.insert(id);
        }
        self.totals.delivered_events += 1;
        self.told.push(Told::Event { id, sequence, frame });
        self.settle_if_current();
    }

    pub(super) fn reached(&mut self, id: ExecutionId, sequence: u64) {
        self.told.push(Told::Reached { id, sequence });
        self.settle_if_current();
    }

    /// What every list that begins now must name unless it is let go, and a time that the store's clock has reached.
    pub(super) fn sure_to_be_listed(&self, status: Option<Status>) -> (BTreeSet<ExecutionId>, Timestamp) {
        let sure = self.log.executions.iter().filter(|(id, execution)| match status {
            // What is durable becomes visible a moment later.
            None => self.shown.contains(*id),
            Some(status) => self.ended.contains(*id) && execution.snapshot(**id).status == status,
        });
        (sure.map(|(id, _)| *id).collect(), self.log.newest)
    }

    /// A list that began at a time named this.
    pub(super) fn listed(&mut self, entry: &Entry, began: Timestamp) {
        let (id, sequence) = (entry.id, entry.last_sequence);
        if self.log.is_over(id, began, self.limits.retention_ms) {
            self.violated(format!("{id} is listed, and its time was over"));
        }
        self.told.push(Told::Reached { id, sequence });
        if entry.has_ended {
            self.told.push(Told::Entry { id, text: entry.text.clone() });
        }
        self.settle_if_current();
    }

    /// An execution that was asked for is not there. Only what has ended may go.
    pub(super) fn absent(&mut self, id: ExecutionId) {
        let now = self.latest.max(self.log.newest).0;
        let Some(execution) = self.log.executions.get(&id).filter(|_| self.current) else { return };
        let (limits, keyed) = (self.limits, execution.identity.is_some());
        // By pressure only what is old enough, if it has a key.
        let old = |ended: Timestamp| !keyed || now >= ended.0.saturating_add(limits.min_key_age_ms);
        let expired = |ended: Timestamp| now >= ended.0.saturating_add(limits.retention_ms);
        let fair = self.log.counted_from(execution).is_some_and(|ended| old(ended) || expired(ended));
        if !fair && self.shown.contains(&id) {
            self.violated(format!("{id} is answered as unknown, and nothing let it go"));
        }
    }

    /// The journal was restored: what it held then is all there is now, and what was told beyond it is void.
    pub(super) fn restored(&mut self, held: &[Record]) {
        let through = held.last().map_or(0, |record| record.sequence);
        let records = self.log.history(through);
        self.begin_again(Log::default(), &records);
        match self.log.compare(held) {
            Ok((gone, _)) => self.log.drop_records(&gone),
            Err(what) => self.violated(format!("{what}: in a copy")),
        }
    }

    /// The journal was imported from lines: these are its records, and what was forgotten before is only named.
    pub(super) fn imported(&mut self, held: &[Record]) {
        let copied = |log: &Log| -> Vec<(ExecutionId, Option<u64>)> {
            log.executions.iter().map(|(id, execution)| (*id, execution.copied)).collect()
        };
        let before = (self.log.fenced, copied(&self.log));
        self.begin_again(Log::imported(), held);
        self.log.is_complete();
        // What the old one knows of other histories the new one knows, too.
        if before != (self.log.fenced, copied(&self.log)) {
            self.violated("an import changed the fence, or what was open in a copy");
        }
    }

    fn begin_again(&mut self, log: Log, records: &[Record]) {
        self.log = log;
        self.told.clear();
        self.matched = 0;
        let called: Vec<_> = lock(&self.calls).made.keys().copied().collect();
        self.called.extend(called);
        records.iter().for_each(|record| self.durable(record));
    }

    /// Whether a cursor lies behind what a copy held of an execution.
    pub(super) fn diverged(&self, id: ExecutionId, cursor: u64) -> bool {
        let copied = self.log.executions.get(&id).and_then(|execution| execution.copied);
        copied.is_some_and(|copied| cursor > copied)
    }

    fn settle_if_current(&mut self) {
        if self.current {
            self.settle();
        }
    }

    /// Holds everything that was told, sent and called against the log, which is as far as the journal.
    pub(super) fn settle(&mut self) {
        for told in std::mem::take(&mut self.told) {
            self.shown.insert(told.id());
            if let Err(what) = self.holds(&told) {
                self.violated(what);
            }
        }
        self.match_creations();
        self.match_calls();
    }

    fn holds(&self, told: &Told) -> Result<(), String> {
        let id = told.id();
        if self.log.forgotten.contains(&id) {
            return Ok(());
        }
        let execution = self.log.executions.get(&id).ok_or(format!("LOST {id}, which was shown"))?;
        match told {
            Told::Event { sequence, frame, .. } => {
                let durable = usize::try_from(*sequence).ok().and_then(|at| execution.frames.get(at - 1));
                match durable {
                    None => Err(format!("LOST event {sequence} of {id}, which was delivered")),
                    Some(durable) if durable != frame => Err(format!("ALTERED event {sequence} of {id}")),
                    Some(_) => Ok(()),
                }
            }
            Told::Execution { identity, .. } if execution.identity != *identity => {
                Err(format!("{id} answers for a key or request that is not its own"))
            }
            Told::Execution { .. } => Ok(()),
            Told::Entry { text, .. } if *text != execution.entry(id) => {
                Err(format!("a list tells of {id} what its events do not"))
            }
            Told::Entry { .. } => Ok(()),
            Told::Reached { sequence, .. } if execution.last_sequence() < *sequence => {
                Err(format!("LOST event {sequence} of {id}, which a snapshot told"))
            }
            Told::Reached { .. } => Ok(()),
        }
    }

    /// Every creation has a submission that was not refused.
    fn match_creations(&mut self) {
        let ids: Vec<ExecutionId> = self.log.ids[self.matched..].to_vec();
        self.matched = self.log.ids.len();
        for id in ids {
            let Some(execution) = self.log.executions.get(&id) else { continue };
            let identity = execution.identity;
            let possible = self
                .submissions
                .iter()
                .filter(|one| one.identity == identity && one.answer != Answer::Refused)
                .count();
            let there = self.log.executions.values().filter(|other| other.identity == identity).count();
            if there > possible {
                self.violated(format!("PHANTOM {id}: nobody asked for it, or it was refused"));
            }
        }
    }

    /// At most one call of each provider an execution, and none before its route was durable.
    fn match_calls(&mut self) {
        let mut wrong = None;
        for (key @ (id, provider), call) in &lock(&self.calls).made {
            if call.polled > 1 {
                wrong = Some(format!("a provider was called {} times for {id}", call.polled));
            }
            if call.polled == 0 || self.called.contains(key) || self.log.forgotten.contains(id) {
                continue;
            }
            self.called.insert(*key);
            let routed = self.log.executions.get(id).map_or(&[][..], |execution| &execution.routed);
            let routed = routed.iter().find(|(asked, _)| asked == provider).map(|(_, sequence)| *sequence);
            if routed.is_none_or(|routed| routed > call.durable) {
                wrong = Some(format!("a provider was called for {id} before its route was durable"));
            }
        }
        if let Some(wrong) = wrong {
            self.violated(wrong);
        }
    }

    /// Whether any provider was ever asked for this execution.
    pub(super) fn was_called(&self, id: ExecutionId) -> bool {
        let calls = lock(&self.calls);
        (0..PROVIDERS.len())
            .any(|provider| calls.made.get(&(id, provider)).is_some_and(|call| call.polled > 0))
    }
}

pub(super) fn key_text(key: u8) -> String {
    format!("key-{key}")
}
