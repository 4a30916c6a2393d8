//! One suite for every event store: what [`EventStore`] promises, as tests.
//!
//! A store joins with [`event_store_contract!`]. Nothing here knows an implementation; the clock stands still unless
//! a case moves it.

mod evidence;
mod limits;
mod reading;
mod writing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sealog_disk::testing::ManualClock;
use sealog_events::{ErrorFact, Event, EventBody, ExecutionId, Identity, PortableCode, Target, Timestamp};

use super::{Claim, EventStore, NewExecution, StoreError, StoreLimits, StoredEvent, Watch};

pub use evidence::*;
pub use limits::*;
pub use reading::*;
pub use writing::*;

/// When every case begins, in milliseconds since 1970.
const START_MS: u64 = 1_767_225_600_000;

/// A store under test and the clock it goes by.
pub struct Subject {
    pub store: Arc<dyn EventStore>,
    pub clock: ManualClock,
}

impl Subject {
    /// Opens an empty store.
    pub fn with(
        limits: StoreLimits,
        open: impl FnOnce(StoreLimits, ManualClock) -> Arc<dyn EventStore>,
    ) -> Subject {
        let clock = ManualClock::new(START_MS);
        Subject { store: open(limits, clock.clone()), clock }
    }

    fn now(&self) -> Timestamp {
        Timestamp(sealog_disk::Clock::wall_ms(&self.clock))
    }

    fn advance_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    fn new_execution(&self, number: u8, identity: Option<Identity>) -> NewExecution {
        let now = self.now();
        let accepted = Event { sequence: 1, time: now, body: EventBody::Accepted };
        NewExecution { id: id(number), created_at: now, identity, origin: None, labels: None, accepted }
    }

    async fn create(&self, number: u8) {
        self.create_as(number, None).await;
    }

    async fn create_as(&self, number: u8, identity: Option<Identity>) {
        assert_eq!(self.store.create(self.new_execution(number, identity)).await, Ok(Claim::New));
    }

    async fn append(&self, number: u8, sequence: u64, body: EventBody) -> Result<(), StoreError> {
        self.store.append(id(number), Event { sequence, time: self.now(), body }).await
    }

    /// Creates an execution and ends it with its second event.
    async fn finished(&self, number: u8) {
        self.create(number).await;
        assert_eq!(self.append(number, 2, failed("m")).await, Ok(()));
    }

    async fn exists(&self, number: u8) -> bool {
        matches!(self.store.brief(id(number)).await, Ok(Some(_)))
    }

    async fn watch(&self, number: u8, after: u64) -> Box<dyn Watch> {
        self.store.watch(id(number), after).await.expect("the store works").expect("the execution is there")
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

fn id(number: u8) -> ExecutionId {
    ExecutionId::from_random([number; 16])
}

fn identity(key: u8, request: u8) -> Identity {
    Identity { key_hash: [key; 32], fingerprint: [request; 32] }
}

fn target() -> Target {
    Target { provider: "p".to_owned(), model: "m".to_owned() }
}

fn selected() -> EventBody {
    EventBody::RouteSelected { target: target(), attempt: 1 }
}

fn delta(text: &str) -> EventBody {
    EventBody::OutputDelta { output_index: 0, delta: text.to_owned() }
}

fn completed() -> EventBody {
    EventBody::Completed { target: target(), stop_reason: None }
}

fn failed(message: &str) -> EventBody {
    let error = ErrorFact::new(PortableCode::InternalError, message, false);
    EventBody::Failed { error, cancelled: false }
}

/// What a watch has ready: events, its end, or nothing yet.
#[derive(Debug, PartialEq)]
enum Pulled {
    Event(Arc<StoredEvent>),
    Error(StoreError),
    End,
    Waiting,
}

fn poll(watch: &mut Box<dyn Watch>) -> Pulled {
    match watch.next().now_or_never() {
        None => Pulled::Waiting,
        Some(None) => Pulled::End,
        Some(Some(Ok(event))) => Pulled::Event(event),
        Some(Some(Err(error))) => Pulled::Error(error),
    }
}

/// Waits for the rest of the stream and returns its sequence numbers.
async fn rest(watch: &mut Box<dyn Watch>) -> Vec<u64> {
    let mut sequences = Vec::new();
    while let Some(event) = watch.next().await {
        sequences.push(event.expect("the store works").sequence);
    }
    sequences
}

/// Makes one `#[tokio::test]` per promise. `$make` turns [`StoreLimits`] into a [`Subject`] with an empty store.
#[macro_export]
macro_rules! event_store_contract {
    ($make:expr) => {
        $crate::event_store_contract!(@cases $make;
            create_replays_and_conflicts
            concurrent_creates_agree_on_one_execution
            facts_01_order_is_enforced_and_nothing_follows_a_terminal
            unknown_executions_are_absent
            unstorable_events_are_refused
            origins_are_kept_with_their_execution
            snapshots_are_the_fold_of_the_events
            evidence_of_attempts_is_shown
            watches_replay_and_follow_to_the_terminal
            watches_start_behind_their_cursor
            dropped_pulls_lose_nothing
            watched_text_is_the_events_json
            lists_page_in_creation_order
            pages_show_the_youngest_first_and_go_on_behind_their_place
            pages_take_what_the_filter_names
            a_page_ends_before_too_much_was_read_for_it
            outlines_are_the_snapshots_without_results_as_far_as_they_fit
            closing_wakes_readers_and_refuses_calls
            facts_04_a_reader_pins_a_terminal_record
            facts_05_retention_takes_record_and_identity
            an_expired_execution_is_served_to_its_reader_only
            facts_06_one_executions_bytes_are_limited
            pa_32_no_snapshot_outgrows_what_clients_read
            one_executions_events_are_limited
            all_bytes_are_limited_and_the_oldest_terminal_goes
            a_young_key_is_refused_for_and_not_evicted
            what_expired_is_gone_whatever_the_clock_says_later
            a_key_is_free_while_its_expired_execution_is_still_read
            a_sweep_takes_only_what_expired
            facts_20_a_terminal_event_has_its_own_limit_only
        );
    };
    (@cases $make:expr; $($case:ident)+) => {$(
        #[tokio::test(start_paused = true)]
        async fn $case() {
            $crate::store::contract::$case(&$make).await;
        }
    )+};
}

pub use event_store_contract;
