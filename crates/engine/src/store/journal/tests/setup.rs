//! A machine with a simulated disk and a journal on it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sealog_disk::Clock;
use sealog_disk::sim::SimDisk;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_events::{Event, EventBody, ExecutionId, Identity, Labels, StopReason, Target, Timestamp};
use sealog_journal::{Config, Create, Journal, Turn};
use sealog_seal::{Secret, SlotParams, StoreId};

use crate::store::journal::{EngineCodec, JournalStore, OpenError, Opened};
use crate::store::{Claim, EventStore, NewExecution, StoreError, StoreLimits, StoredEvent};

pub const START_MS: u64 = 1_767_225_600_000;

#[derive(Clone, Debug)]
pub struct Host {
    pub disk: SimDisk,
    pub clock: ManualClock,
    seed: u64,
}

impl Host {
    /// A fresh journal.
    pub fn new() -> Host {
        Host::with(ManualClock::new(START_MS))
    }

    pub fn with(clock: ManualClock) -> Host {
        let host = Host { disk: SimDisk::new(), clock, seed: 1 };
        let config = host.config();
        let create = Create {
            disk: Arc::clone(&config.disk),
            clock: Arc::clone(&config.clock),
            entropy: Arc::clone(&config.entropy),
            store_id: StoreId([3; 16]),
            slot_name: "key",
            secret: &Secret::raw([9; 32]),
            params: SlotParams::DEFAULT,
        };
        create.run(&mut || Ok(())).unwrap();
        host
    }

    /// The same machine after a crash that left this disk; another process draws other random numbers.
    pub fn after_crash(&self, disk: SimDisk) -> Host {
        Host { disk, clock: self.clock.clone(), seed: self.seed + 1 }
    }

    pub fn config(&self) -> Config {
        let entropy = Arc::new(SeededEntropy::new(self.seed));
        let secrets = vec![Secret::raw([9; 32])];
        let mut config =
            Config::new(Arc::new(self.disk.clone()), Arc::new(self.clock.clone()), entropy, secrets);
        config.codec = Arc::new(EngineCodec);
        config.tuning.first_segment_bytes = 64 << 10;
        config.tuning.segment_bytes_min = 64 << 10;
        config.tuning.segment_bytes_max = 256 << 10;
        config.tuning.lock_wait = Duration::ZERO;
        config
    }

    /// Opens with threads, inside a runtime.
    pub fn open(&self, limits: StoreLimits) -> (JournalStore, Opened) {
        self.try_open(limits).unwrap()
    }

    pub fn try_open(&self, limits: StoreLimits) -> Result<(JournalStore, Opened), OpenError> {
        JournalStore::open(&self.config(), limits)
    }

    pub fn open_manual(&self) -> Result<(JournalStore, Journal, Opened), OpenError> {
        JournalStore::open_manual(&self.config(), StoreLimits::default())
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(self.clock.wall_ms())
    }
}

/// Turns without work after which a future counts as stuck. Reads of the journal run on another thread, which a
/// busy machine may keep waiting.
const IDLE_MAX: u32 = 50_000_000;

/// Polls a future and turns the journal in between: the journal's work is done in the same order every time.
pub fn drive<F: Future>(journal: &Journal, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut idle = 0;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
        idle = if journal.turn() == Turn::Idle { idle + 1 } else { 0 };
        journal.maintain();
        if idle > 1 {
            std::thread::yield_now();
        }
        assert!(idle < IDLE_MAX, "the future waits for something the journal does not do");
    }
}

pub fn id(number: u8) -> ExecutionId {
    ExecutionId::from_random([number; 16])
}

pub fn identity(number: u8) -> Identity {
    Identity { key_hash: [number; 32], fingerprint: [number; 32] }
}

pub fn selected() -> EventBody {
    EventBody::RouteSelected {
        target: Target { provider: "p".to_owned(), model: "m".to_owned() },
        attempt: 1,
    }
}

pub fn delta(text: &str) -> EventBody {
    EventBody::OutputDelta { output_index: 0, delta: text.to_owned() }
}

pub fn completed_for(reason: StopReason) -> EventBody {
    let target = Target { provider: "p".to_owned(), model: "m".to_owned() };
    EventBody::Completed { target, stop_reason: Some(reason) }
}

pub fn completed() -> EventBody {
    EventBody::Completed {
        target: Target { provider: "p".to_owned(), model: "m".to_owned() },
        stop_reason: None,
    }
}

pub fn labels() -> Labels {
    Labels { ability: "text-generation".to_owned() }
}

pub async fn create(store: &JournalStore, now: Timestamp, number: u8) -> Result<(), StoreError> {
    let accepted = Event { sequence: 1, time: now, body: EventBody::Accepted };
    let new = NewExecution {
        id: id(number),
        created_at: now,
        identity: Some(identity(number)),
        origin: None,
        labels: Some(labels()),
        accepted,
    };
    assert_eq!(store.create(new).await?, Claim::New);
    Ok(())
}

/// Appends bodies as the events from `first` on.
pub async fn append(
    store: &JournalStore,
    now: Timestamp,
    number: u8,
    first: u64,
    bodies: Vec<EventBody>,
) -> Result<(), StoreError> {
    for (body, sequence) in bodies.into_iter().zip(first..) {
        store.append(id(number), Event { sequence, time: now, body }).await?;
    }
    Ok(())
}

/// All events of a finished execution behind `after`.
pub async fn events(store: &JournalStore, id: ExecutionId, after: u64) -> Vec<Arc<StoredEvent>> {
    let mut watch = store.watch(id, after).await.unwrap().unwrap();
    let mut events = Vec::new();
    while let Some(event) = watch.next().await {
        events.push(event.unwrap());
    }
    events
}
