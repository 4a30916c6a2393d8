//! The ordered emitter of one execution: gives out sequence numbers, lets exactly one terminal event through and
//! nothing after it.
//!
//! Owns order and the single terminal. Must never drop, reorder or retry what the sink was given: an event counts
//! as emitted only when the sink said it is durable.

use std::future::Future;

use sealog_events::{Event, EventBody, Timestamp};

/// Where events go. `append` returns once the event is durable.
pub trait EventSink: Send {
    type Error: Send;

    fn append(&mut self, event: Event) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Why an event was not emitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError<E> {
    /// A terminal event was already emitted.
    #[error("the execution already ended")]
    AfterTerminal,
    /// An earlier append failed: only a terminal event may still follow.
    #[error("an earlier event could not be stored")]
    Broken,
    /// The sink refused this event; its sequence number is not used up.
    #[error("the event could not be stored")]
    Sink(E),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Broken,
    Ended,
}

/// Emits the events of one execution. Methods take `&mut self`: two events cannot be under way at once.
#[derive(Debug)]
pub struct Emitter<S> {
    sink: S,
    sequence: u64,
    time: Timestamp,
    phase: Phase,
    output: bool,
}

impl<S: EventSink> Emitter<S> {
    /// An emitter that continues behind `last`, the newest durable event (`sequence` and `time`).
    pub fn after(sink: S, sequence: u64, time: Timestamp) -> Emitter<S> {
        Emitter { sink, sequence, time, phase: Phase::Open, output: false }
    }

    /// Emits one event with the next sequence number, at `now` or at the newest event's time if the clock went
    /// back. Returns its sequence number once it is durable.
    ///
    /// # Errors
    /// The execution ended, an earlier append failed and this event is not terminal, or the sink refused it.
    pub async fn emit(&mut self, now: Timestamp, body: EventBody) -> Result<u64, EmitError<S::Error>> {
        match self.phase {
            Phase::Ended => return Err(EmitError::AfterTerminal),
            Phase::Broken if !body.is_terminal() => return Err(EmitError::Broken),
            Phase::Open | Phase::Broken => {}
        }
        let (terminal, output) = (body.is_terminal(), body.is_output());
        let event = Event { sequence: self.sequence + 1, time: self.time.max(now), body };
        let time = event.time;
        // Until the sink answers nothing may follow: if this future is dropped here, what became of the event
        // is not known.
        self.phase = Phase::Broken;
        self.sink.append(event).await.map_err(EmitError::Sink)?;
        self.sequence += 1;
        self.time = time;
        self.output |= output;
        self.phase = if terminal { Phase::Ended } else { Phase::Open };
        Ok(self.sequence)
    }

    /// Whether a terminal event is durable.
    pub fn ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether output of an attempt was exposed.
    pub fn output_exposed(&self) -> bool {
        self.output
    }

    /// The newest durable sequence number.
    pub fn last_sequence(&self) -> u64 {
        self.sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sealog_events::{ErrorFact, PortableCode};

    /// Keeps what it is given; refuses the appends whose number is listed.
    struct List {
        events: Vec<Event>,
        calls: u32,
        refuse: &'static [u32],
    }

    impl EventSink for &mut List {
        type Error = u32;

        async fn append(&mut self, event: Event) -> Result<(), u32> {
            self.calls += 1;
            if self.refuse.contains(&self.calls) {
                return Err(self.calls);
            }
            self.events.push(event);
            Ok(())
        }
    }

    fn list(refuse: &'static [u32]) -> List {
        List { events: Vec::new(), calls: 0, refuse }
    }

    fn delta() -> EventBody {
        EventBody::OutputDelta { output_index: 0, delta: "x".to_owned() }
    }

    fn failed() -> EventBody {
        EventBody::Failed { error: ErrorFact::new(PortableCode::InternalError, "m", false), cancelled: false }
    }

    /// RM-2.
    #[tokio::test]
    async fn sequences_are_dense_and_time_never_goes_back() {
        let mut kept = list(&[]);
        let mut emitter = Emitter::after(&mut kept, 1, Timestamp(10));
        assert!(!emitter.output_exposed());
        assert_eq!(emitter.emit(Timestamp(20), delta()).await, Ok(2));
        assert!(emitter.output_exposed());
        assert_eq!(emitter.emit(Timestamp(5), delta()).await, Ok(3));
        assert_eq!(emitter.emit(Timestamp(30), failed()).await, Ok(4));
        assert!(emitter.ended());
        let times: Vec<u64> = kept.events.iter().map(|event| event.time.0).collect();
        assert_eq!(times, [20, 20, 30]);
        assert_eq!(kept.events.iter().map(|event| event.sequence).collect::<Vec<_>>(), [2, 3, 4]);
    }

    /// RM-2.
    #[tokio::test]
    async fn nothing_follows_a_terminal_event() {
        let mut kept = list(&[]);
        let mut emitter = Emitter::after(&mut kept, 1, Timestamp(0));
        emitter.emit(Timestamp(0), failed()).await.unwrap();
        assert_eq!(emitter.emit(Timestamp(0), failed()).await, Err(EmitError::AfterTerminal));
        assert_eq!(emitter.emit(Timestamp(0), delta()).await, Err(EmitError::AfterTerminal));
        assert_eq!(kept.events.len(), 1);
    }

    #[tokio::test]
    async fn after_a_refusal_only_a_terminal_event_may_follow_with_the_same_number() {
        let mut kept = list(&[1, 2]);
        let mut emitter = Emitter::after(&mut kept, 1, Timestamp(0));
        assert_eq!(emitter.emit(Timestamp(0), delta()).await, Err(EmitError::Sink(1)));
        assert!(!emitter.output_exposed());
        assert_eq!(emitter.emit(Timestamp(0), delta()).await, Err(EmitError::Broken));
        assert_eq!(emitter.emit(Timestamp(0), failed()).await, Err(EmitError::Sink(2)));
        assert!(!emitter.ended());
        assert_eq!(emitter.emit(Timestamp(0), failed()).await, Ok(2));
        assert_eq!(kept.events.len(), 1);
    }

    #[tokio::test]
    async fn an_append_given_up_halfway_lets_only_a_terminal_event_follow() {
        struct Never;
        impl EventSink for Never {
            type Error = ();
            async fn append(&mut self, event: Event) -> Result<(), ()> {
                if !event.body.is_terminal() {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        }
        let mut emitter = Emitter::after(Never, 1, Timestamp(0));
        {
            let emit = std::pin::pin!(emitter.emit(Timestamp(0), delta()));
            assert!(futures_util::poll!(emit).is_pending());
        }
        assert_eq!(emitter.emit(Timestamp(0), delta()).await, Err(EmitError::Broken));
        assert_eq!(emitter.emit(Timestamp(0), failed()).await, Ok(2));
    }
}
