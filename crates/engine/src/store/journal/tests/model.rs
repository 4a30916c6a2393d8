//! Long random histories: memory store, journal store and a model that is nothing but the rules answer alike, also across
//! restarts of the journal.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::testing::SeededEntropy;
use sealog_events::{Event, EventBody, ExecutionId, Identity, Timestamp, json};

use super::setup::*;
use crate::store::journal::JournalStore;
use crate::store::memory::MemoryStore;
use crate::store::{Brief, Claim, EventStore, NewExecution, StoreError, StoreLimits, Watch};

const LIMITS: StoreLimits = StoreLimits {
    max_executions: 6,
    max_bytes: 6_000,
    max_execution_bytes: 1_600,
    max_events: 5,
    retention_ms: 60,
    min_key_age_ms: 25,
    max_disk_bytes: u64::MAX,
};

#[derive(Debug)]
struct Kept {
    id: ExecutionId,
    identity: Option<Identity>,
    bytes: u64,
    sequence: u64,
    ended: Option<u64>,
    hidden: bool,
    readers: u32,
}

/// The rules, without any order of their own.
#[derive(Debug, Default)]
struct Model {
    kept: Vec<Kept>,
    newest: u64,
}

impl Model {
    fn now(&self, wall: u64) -> u64 {
        wall.max(self.newest)
    }

    fn expire(&mut self, wall: u64) {
        let now = self.now(wall);
        for kept in &mut self.kept {
            kept.hidden |= kept.ended.is_some_and(|ended| now >= ended + LIMITS.retention_ms);
        }
        let before = self.kept.len();
        self.kept.retain(|kept| !kept.hidden || kept.readers > 0);
        if self.kept.len() < before {
            self.newest = now;
        }
    }

    fn make_room(&mut self, executions: usize, bytes: u64, now: u64) -> Result<(), StoreError> {
        let mut candidates: Vec<(u64, ExecutionId, u64)> = self
            .kept
            .iter()
            .filter(|kept| !kept.hidden && kept.readers == 0)
            .filter_map(|kept| Some((kept.ended?, kept.id, kept.bytes, kept.identity.is_some())))
            .filter(|(ended, _, _, keyed)| !keyed || *ended + LIMITS.min_key_age_ms <= now)
            .map(|(ended, id, bytes, _)| (ended, id, bytes))
            .collect();
        candidates.sort();
        let mut count = self.kept.len() + executions;
        let mut total = self.kept.iter().map(|kept| kept.bytes).sum::<u64>() + bytes;
        let mut gone = Vec::new();
        for (_, id, bytes) in candidates {
            if count <= LIMITS.max_executions && total <= LIMITS.max_bytes {
                break;
            }
            (count, total) = (count - 1, total - bytes);
            gone.push(id);
        }
        if count > LIMITS.max_executions || total > LIMITS.max_bytes {
            return Err(StoreError::Full);
        }
        self.kept.retain(|kept| !gone.contains(&kept.id));
        if !gone.is_empty() {
            self.newest = now;
        }
        Ok(())
    }

    fn owner(&self, identity: &Identity) -> Option<&Kept> {
        let owns = |kept: &&Kept| kept.identity.is_some_and(|own| own.key_hash == identity.key_hash);
        self.kept.iter().filter(|kept| !kept.hidden).find(owns)
    }

    fn create(&mut self, new: &NewExecution, wall: u64) -> Result<Answer, StoreError> {
        self.expire(wall);
        if let Some(identity) = &new.identity
            && let Some(kept) = self.owner(identity)
        {
            let same = kept.identity.is_some_and(|own| own.fingerprint == identity.fingerprint);
            return Ok(if same { Answer::Replay(kept.id, kept.sequence) } else { Answer::Conflict });
        }
        let bytes = 256 + json::event_json(new.id, &new.accepted).len() as u64;
        self.make_room(1, bytes, self.now(wall))?;
        self.newest = self.newest.max(new.accepted.time.0);
        let (id, identity) = (new.id, new.identity);
        self.kept.push(Kept { id, identity, bytes, sequence: 1, ended: None, hidden: false, readers: 0 });
        Ok(Answer::New)
    }

    fn append(&mut self, id: ExecutionId, event: &Event, wall: u64) -> Result<(), StoreError> {
        self.expire(wall);
        let bytes = json::event_json(id, event).len() as u64;
        let kept = self.kept.iter().find(|kept| kept.id == id).ok_or(StoreError::Unknown)?;
        if kept.ended.is_some() {
            return Err(StoreError::Ended);
        }
        if event.sequence != kept.sequence + 1 {
            return Err(StoreError::OutOfOrder);
        }
        let terminal = event.body.is_terminal();
        if !terminal {
            if kept.sequence >= LIMITS.max_events || kept.bytes + bytes > LIMITS.max_execution_bytes {
                return Err(StoreError::ExecutionFull);
            }
            self.make_room(0, bytes, self.now(wall))?;
        }
        self.newest = self.newest.max(event.time.0);
        let newest = self.newest;
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.id == id) {
            kept.bytes += bytes;
            kept.sequence += 1;
            kept.ended = terminal.then_some(newest);
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    New,
    Replay(ExecutionId, u64),
    Conflict,
}

impl From<Claim> for Answer {
    fn from(claim: Claim) -> Answer {
        match claim {
            Claim::New => Answer::New,
            Claim::Replay(brief) => Answer::Replay(brief.id, brief.last_sequence),
            Claim::Conflict => Answer::Conflict,
        }
    }
}

/// A reader of one execution in both stores.
struct Reader {
    id: ExecutionId,
    watches: [Box<dyn Watch>; 2],
}

struct Run {
    host: Host,
    /// Whether the journal compacts beside the history; if not, the clock is set back now and then. Both at once have more
    /// than one answer: once compaction has dropped the record that held the store's clock up, retention counts from an
    /// event's own time, and when the background gets to it is not the history's to say.
    compacts: bool,
    draws: SeededEntropy,
    memory: Arc<dyn EventStore>,
    journal: JournalStore,
    model: Model,
    readers: Vec<Reader>,
    made: u8,
    refused: u32,
    restarts: u32,
}

fn opened(host: &Host, compacts: bool) -> JournalStore {
    let mut config = host.config();
    config.tuning.compact = compacts;
    JournalStore::open(&config, LIMITS).unwrap().0
}

impl Run {
    fn new(seed: u64) -> Run {
        let host = Host::new();
        let compacts = seed.is_multiple_of(2);
        let memory = Arc::new(MemoryStore::new(LIMITS, Arc::new(host.clock.clone())));
        let journal = opened(&host, compacts);
        let (draws, model) = (SeededEntropy::new(seed), Model::default());
        let (readers, made, refused, restarts) = (Vec::new(), 0, 0, 0);
        Run { host, compacts, draws, memory, journal, model, readers, made, refused, restarts }
    }

    fn below(&self, bound: usize) -> usize {
        (self.draws.draw() % bound as u64) as usize
    }

    fn wall(&self) -> u64 {
        self.host.now().0
    }

    async fn create(&mut self) {
        self.made += 1;
        let key = self.below(8) as u8;
        let identity = (key < 6)
            .then_some(Identity { key_hash: [key; 32], fingerprint: [u8::from(self.below(4) == 0); 32] });
        let created_at = self.host.now();
        let accepted = Event { sequence: 1, time: created_at, body: EventBody::Accepted };
        let new =
            NewExecution { id: id(self.made), created_at, identity, origin: None, labels: None, accepted };
        let expected = self.model.create(&new, self.wall());
        assert_eq!(self.memory.create(new.clone()).await.map(Answer::from), expected);
        assert_eq!(self.journal.create(new).await.map(Answer::from), expected);
        self.refused += u32::from(expected.is_err());
    }

    async fn append(&mut self, id: ExecutionId, body: EventBody, ahead: u64) {
        let kept = self.model.kept.iter().find(|kept| kept.id == id);
        let sequence = kept.map_or(2, |kept| kept.sequence + 1) + ahead;
        let event = Event { sequence, time: Timestamp(self.wall()), body };
        let expected = self.model.append(id, &event, self.wall());
        assert_eq!(self.memory.append(id, event.clone()).await, expected);
        assert_eq!(self.journal.append(id, event).await, expected);
        self.refused += u32::from(expected.is_err());
    }

    fn any(&self) -> ExecutionId {
        id(1 + self.below(usize::from(self.made.max(1))) as u8)
    }

    async fn read(&mut self, id: ExecutionId) {
        self.model.expire(self.wall());
        let visible = self.model.kept.iter_mut().find(|kept| kept.id == id && !kept.hidden);
        let watches = [self.memory.watch(id, 0).await.unwrap(), self.journal.watch(id, 0).await.unwrap()];
        match (visible, watches) {
            (Some(kept), [Some(memory), Some(journal)]) => {
                kept.readers += 1;
                self.readers.push(Reader { id, watches: [memory, journal] });
            }
            (None, [None, None]) => {}
            (visible, _) => panic!("{visible:?}: one store has it and the other does not"),
        }
    }

    /// Closes a reader; one of an ended execution reads it all first, expired or not.
    async fn stop_reading(&mut self) {
        if self.readers.is_empty() {
            return;
        }
        let mut reader = self.readers.swap_remove(self.below(self.readers.len()));
        let kept = self.model.kept.iter_mut().find(|kept| kept.id == reader.id).expect("it is read");
        kept.readers -= 1;
        if kept.ended.is_some() {
            for watch in &mut reader.watches {
                let mut count = 0;
                while let Some(event) = watch.next().await {
                    count += 1;
                    assert_eq!(event.unwrap().sequence, count);
                }
                assert_eq!(count, kept.sequence);
            }
        }
    }

    /// Nothing that a restart would end, and nobody who reads.
    async fn restart(&mut self) {
        let open: Vec<_> =
            self.model.kept.iter().filter(|kept| kept.ended.is_none()).map(|kept| kept.id).collect();
        for id in open {
            self.append(id, completed(), 0).await;
        }
        while !self.readers.is_empty() {
            self.stop_reading().await;
        }
        self.model.expire(self.wall());
        self.memory.sweep().await.unwrap();
        if self.below(2) == 0 {
            self.journal.close().await.unwrap();
        } else {
            // Killed, once what had expired is forgotten.
            self.journal.sweep().await.unwrap();
        }
        let elsewhere = Host::new();
        drop(std::mem::replace(&mut self.journal, opened(&elsewhere, self.compacts)));
        self.host = self.host.after_crash(self.host.disk.clone());
        self.journal = opened(&self.host, self.compacts);
        self.restarts += 1;
    }

    /// Everything that can be asked.
    async fn compare(&mut self) {
        self.model.expire(self.wall());
        for number in 1..=self.made {
            let kept = self.model.kept.iter().find(|kept| kept.id == id(number) && !kept.hidden);
            let expected = kept.map(|kept| (kept.sequence, kept.ended.is_some()));
            let facts = |brief: Option<Brief>| brief.map(|b| (b.last_sequence, b.status.is_terminal()));
            assert_eq!(facts(self.memory.brief(id(number)).await.unwrap()), expected);
            assert_eq!(facts(self.journal.brief(id(number)).await.unwrap()), expected);
        }
        let list = self.memory.list(None, 100).await.unwrap();
        assert_eq!(self.journal.list(None, 100).await.unwrap(), list);
        assert_eq!(list.len(), self.model.kept.iter().filter(|kept| !kept.hidden).count());
        for key in 0..6 {
            let identity = Identity { key_hash: [key; 32], fingerprint: [0; 32] };
            let found = self.memory.find(identity).await.unwrap();
            assert_eq!(self.journal.find(identity).await.unwrap(), found);
            assert_eq!(found.is_some(), self.model.owner(&identity).is_some());
        }
    }

    async fn step(&mut self) {
        let (draw, any) = (self.below(100), self.any());
        match draw {
            0..30 if self.made < 250 => self.create().await,
            0..55 => self.append(any, delta(&"x".repeat(self.below(900))), 0).await,
            55..70 => self.append(any, completed(), 0).await,
            70..73 => self.append(any, selected(), 1).await,
            73..80 => self.read(any).await,
            80..86 => self.stop_reading().await,
            86..95 => self.host.clock.advance(Duration::from_millis(self.below(30) as u64)),
            95..97 if self.compacts => {}
            95..97 => self.host.clock.jump_wall_ms(-(self.below(50) as i64)),
            97..99 => {
                self.model.expire(self.wall());
                self.memory.sweep().await.unwrap();
                self.journal.sweep().await.unwrap();
            }
            _ => self.restart().await,
        }
        self.compare().await;
    }
}

#[tokio::test]
async fn r24_r42_random_histories_have_one_answer() {
    let (mut refused, mut restarts, mut made) = (0, 0, 0);
    for seed in 0..8 {
        let mut run = Run::new(seed);
        for _ in 0..500 {
            run.step().await;
        }
        refused += run.refused;
        restarts += run.restarts;
        made += u32::from(run.made);
    }
    assert!(refused > 300 && restarts > 20 && made > 800, "{refused} refused, {restarts}, {made} made");
}
