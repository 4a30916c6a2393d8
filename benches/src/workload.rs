//! The events that every system commits: `output.delta`, 118 bytes of text, 289 bytes as JSON, a new execution every
//! twelve events.

use sealog_events::{Event, EventBody, ExecutionId, Timestamp, body, json};
use sealog_journal::{Class, NewRecord, StreamId};

/// Bytes of text in an event.
pub const TEXT_BYTES: usize = 118;
const WORD_BYTES_MIN: usize = 2;
/// Bytes of an event as JSON.
pub const JSON_BYTES: usize = 289;
/// Events of one execution.
pub const EVENTS_EACH: u64 = 12;

const START_MS: u64 = 1_800_000_000_000;
const PROSE: &str = "The ledger keeps what was promised, in the order in which it was promised, and nothing that \
    was not; a reader who comes late reads the same lines as one who was there from the beginning of it all. ";

/// An event as JSON under the key that a store of keys and values would give it.
#[derive(Clone, Debug)]
pub struct Keyed {
    /// The execution's id, then the event's number, big-endian: an execution's events stand together.
    pub key: [u8; 24],
    pub json: Vec<u8>,
}

/// One producer's endless stream of events.
#[derive(Clone, Debug)]
pub struct Deltas {
    random: u64,
    execution: ExecutionId,
    /// Of the next event, from 1.
    number: u64,
    count: u64,
    /// The text of the present execution's first event.
    json: Vec<u8>,
    /// Texts of 2 to 8 bytes, as a model's tokens are.
    words: bool,
}

impl Deltas {
    /// Producers of one run need different seeds: the ids of executions come from them.
    pub fn new(seed: u64) -> Deltas {
        let execution = ExecutionId::from_random([0; 16]);
        let mut deltas =
            Deltas { random: seed, execution, number: 1, count: 0, json: Vec::new(), words: false };
        deltas.execution = deltas.fresh_id();
        deltas
    }

    /// Its events say a word each.
    #[must_use]
    pub fn with_words(mut self) -> Deltas {
        self.words = true;
        self
    }

    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn fresh_id(&mut self) -> ExecutionId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.draw().to_le_bytes());
        id[8..].copy_from_slice(&self.draw().to_le_bytes());
        ExecutionId::from_random(id)
    }

    /// The next event and its execution.
    pub fn next_event(&mut self) -> (ExecutionId, Event) {
        if self.number > EVENTS_EACH {
            self.number = 1;
            self.execution = self.fresh_id();
        }
        let length = if self.words { WORD_BYTES_MIN + (self.draw() % 7) as usize } else { TEXT_BYTES };
        let at = (self.count as usize * 31) % (PROSE.len() - TEXT_BYTES);
        let delta = PROSE[at..at + length].to_owned();
        // One digit, so that every text has one length.
        let event = Event {
            sequence: self.number.min(9),
            time: Timestamp(START_MS + self.count),
            body: EventBody::OutputDelta { output_index: 0, delta },
        };
        self.number += 1;
        self.count += 1;
        (self.execution, event)
    }

    /// The next event as JSON text with its key.
    pub fn next_keyed(&mut self) -> Keyed {
        let json = self.next_json();
        let mut key = [0; 24];
        key[..16].copy_from_slice(self.execution.as_bytes());
        // Lexicographic order is the order of the numbers only this way round.
        for (at, byte) in key[16..].iter_mut().enumerate() {
            *byte = ((self.number - 1) >> (8 * (7 - at))) as u8;
        }
        Keyed { key, json }
    }

    /// The next event as JSON text, as a store without a format of its own would keep it. The text is made for the
    /// first event of an execution and copied for the others: what is compared is committing, not formatting.
    pub fn next_json(&mut self) -> Vec<u8> {
        if self.number > EVENTS_EACH || self.json.is_empty() {
            let (execution, event) = self.next_event();
            self.json = json::event_json(execution, &event).into_bytes();
        } else {
            self.number += 1;
            self.count += 1;
        }
        self.json.clone()
    }

    /// The next event as a record of the journal.
    ///
    /// # Errors
    /// An event that cannot be encoded; there is none.
    pub fn next_record(&mut self) -> Result<NewRecord, body::BodyError> {
        let (execution, event) = self.next_event();
        let number = self.number - 1;
        let class = match number {
            1 => Class::OPENS,
            EVENTS_EACH => Class::CLOSES,
            _ => Class::NONE,
        };
        Ok(NewRecord {
            kind: event.body.kind(),
            stream: Some(StreamId(*execution.as_bytes())),
            class,
            event_number: number,
            time_ms: event.time.0,
            logical_size: if self.words { json::event_json(execution, &event).len() } else { JSON_BYTES }
                as u64,
            body: body::encode(&event.body)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_lengths_that_results_name() {
        let mut deltas = Deltas::new(1);
        for _ in 0..100 {
            assert_eq!(deltas.next_json().len(), JSON_BYTES);
        }
    }

    #[test]
    fn keys_ascend_within_an_execution_and_never_repeat() {
        let mut deltas = Deltas::new(1);
        let keys: Vec<_> = (0..36).map(|_| deltas.next_keyed().key).collect();
        assert!(
            keys.chunks(12)
                .all(|execution| execution.is_sorted() && execution[0][..16] == execution[11][..16])
        );
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), 36);
    }

    #[test]
    fn an_execution_has_twelve_events() {
        let mut deltas = Deltas::new(1);
        let records: Vec<_> = (0..24).map(|_| deltas.next_record().unwrap()).collect();
        assert!(records[..12].iter().all(|record| record.stream == records[0].stream));
        assert_ne!(records[12].stream, records[0].stream);
        assert_eq!((records[0].class, records[11].class), (Class::OPENS, Class::CLOSES));
    }
}
