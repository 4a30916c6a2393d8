//! What is folded comes back, byte for byte, and takes the room that the specification promises.

use proptest::prelude::*;

use super::*;
use crate::arbitrary::{ID, created, stream};
use crate::{
    AttemptEvidence, Created, Identity, Mark, RequestId, Snapshot, Target, materialize::materialize,
};

/// The class bits that the journal's records of executions have.
const OPENS: u8 = 9;
const CLOSES: u8 = 2;

fn row(sequence: u64, kind: u16, event_number: u64, time_ms: u64, logical_size: u64, body: Vec<u8>) -> Row {
    Row { sequence, epoch: 3, kind, class: 0, event_number, time_ms, logical_size, body }
}

fn event_row(sequence: u64, event: &Event) -> Row {
    let body = body::encode(&event.body).unwrap();
    let size = json::event_json(ID, event).len() as u64;
    let row = row(sequence, event.body.kind(), event.sequence, event.time.0, size, body);
    Row { class: if event.body.is_terminal() { CLOSES } else { 0 }, ..row }
}

/// A stream as a store writes it: its creation, its events, a result before the terminal one.
fn rows(created: &Created, events: &[Event], text_bytes_max: usize, steps: &[u64]) -> Vec<Row> {
    let snapshot: Snapshot = materialize(ID, created.created_at, events);
    let mut rows = vec![row(0, 64, 0, created.created_at.0, 3072, body::encode_created(created))];
    rows[0].class = OPENS;
    for event in events {
        if event.body.is_terminal() {
            let result = MaterializedResult::of(&snapshot, text_bytes_max).unwrap();
            rows.push(row(0, 65, 0, event.time.0, 0, body::encode_result(&result).unwrap()));
        }
        rows.push(event_row(0, event));
    }
    number(&mut rows, steps);
    rows
}

fn number(rows: &mut [Row], steps: &[u64]) {
    let mut sequence = 900;
    for (row, step) in rows.iter_mut().zip(steps.iter().cycle()) {
        sequence += step;
        row.sequence = sequence;
    }
}

/// The stream with evidence behind each selection.
fn evidenced(rows: Vec<Row>, steps: &[u64]) -> Vec<Row> {
    let request_id = RequestId::new("req-1");
    let marks = [Mark::RequestSent, Mark::ResponseHeaders { request_id }];
    let mut with = Vec::new();
    for one in rows {
        let (selected, time_ms) = (one.kind == RecordKind::RouteSelected.number(), one.time_ms);
        with.push(one);
        for mark in marks.iter().filter(|_| selected) {
            let evidence = AttemptEvidence { attempt: 7, mark: mark.clone() };
            with.push(row(0, 66, 0, time_ms, 0, body::encode_evidence(&evidence).unwrap()));
        }
    }
    number(&mut with, steps);
    with
}

fn unfolded(rows: &[Row], bytes: &[u8]) -> Result<Vec<Row>, NotFolded> {
    unfold(ID, rows[0].sequence, bytes)
}

proptest! {
    /// JF-15.
    #[test]
    fn what_is_folded_unfolds_to_the_same_rows(
        created in created(),
        events in stream(),
        hashed in any::<bool>(),
        steps in prop::collection::vec(1..5000_u64, 1..9),
        cut in any::<prop::sample::Index>(),
        epochs in any::<[u64; 2]>(),
    ) {
        // Times of the journal fit 63 bits.
        let created = Created { created_at: Timestamp(created.created_at.0 / 2), ..created };
        let rows = rows(&created, &events, if hashed { 0 } else { RESULT_BYTES_MAX }, &steps);
        let mut rows = evidenced(rows, &steps);
        for (at, row) in rows.iter_mut().enumerate() {
            row.epoch = epochs[at / 5 % 2];
        }
        // The whole, and the part that a later segment would hold.
        for part in [&rows[..], &rows[cut.index(rows.len())..]] {
            if let Some(bytes) = fold(ID, part) {
                prop_assert_eq!(unfolded(part, &bytes), Ok(part.to_vec()));
            } else {
                prop_assert!(part.iter().all(|row| row.body.is_empty()) || part.len() > 60, "not folded");
            }
        }
    }

    #[test]
    fn columns_read_back(values in prop::collection::vec(
        prop_oneof![8 => 0..20_u64, 1 => any::<u64>(), 1 => 0..70_000_u64], 1..200,
    )) {
        let mut bytes = Vec::new();
        put_column(&mut bytes, &values);
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(reader.column(values.len()), Ok(values));
        prop_assert!(reader.end().is_ok());
    }

    /// JF-15: whatever the bytes, an answer; and what is answered is bounded by them.
    #[test]
    fn damaged_bytes_are_refused_or_bounded(
        created in created(),
        events in stream(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let whole = rows(&created, &events, 0, &[1]);
        let mut bytes = fold(ID, &whole).unwrap_or_default();
        for (at, byte) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
            }
        }
        for bytes in [bytes, noise] {
            if let Ok(rows) = unfold(ID, 1, &bytes) {
                let total: usize = rows.iter().map(|row| row.body.len()).sum();
                prop_assert!(rows.len() <= bytes.len());
                prop_assert!(total <= 2 * BODY_BYTES_FREE + 8 * BODY_BYTES_PER_BYTE * bytes.len());
            }
        }
    }
}

fn deltas(count: u64, text: impl Fn(u64) -> String, step: impl Fn(u64) -> u64) -> Vec<Row> {
    let mut sequence = 1_000_000;
    (1..=count)
        .map(|number| {
            sequence += step(number);
            let body = EventBody::OutputDelta { output_index: 0, delta: text(number) };
            event_row(
                sequence,
                &Event { sequence: number, time: Timestamp(1_800_000_000_000 + number * 3 / 2), body },
            )
        })
        .collect()
}

/// What a stream takes in a folded group beside the codec's bytes: id, first and last sequence, length.
const STREAM_BYTES: usize = 16 + 4 + 4 + 2 + 1;

/// Folded bytes per byte of the events' JSON text, in thousandths.
fn ratio(streams: &[Vec<Row>]) -> usize {
    let folded: usize = streams.iter().map(|rows| fold(ID, rows).unwrap().len() + STREAM_BYTES).sum();
    let json: usize = streams.iter().flatten().map(|row| row.logical_size as usize).sum();
    // A frame of 256 KiB costs 96 bytes and less than 64 of padding.
    (folded + folded / 1024) * 1000 / json
}

/// A multiplier that scatters small numbers.
fn scatter(n: u64, below: u64) -> u64 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % below
}

/// JF-15: short token deltas at most 0.06, text of 118 bytes at most 0.44 of their JSON text, twelve events each,
/// written among those of 63 others.
#[test]
fn jf_15_sizes() {
    let word = |n: u64| "lettersx"[..2 + scatter(n, 7) as usize].to_owned();
    let mixed = |n: u64| 40 + scatter(n + 5, 60);
    let short: Vec<_> = (0..50).map(|at| deltas(12, |n| word(n + at * 31), |n| mixed(n + at * 17))).collect();
    let long: Vec<_> = (0..50).map(|at| deltas(12, |_| "p".repeat(118), |n| mixed(n + at * 17))).collect();
    assert_eq!(long[0][0].logical_size, 289);
    assert!(ratio(&short) <= 60, "{}", ratio(&short));
    assert!(ratio(&long) <= 440, "{}", ratio(&long));
}

/// More than a record's envelope takes in columns.
const ENVELOPE_BYTES: usize = 6;

fn example() -> Vec<Row> {
    let target = Target { provider: "mock".into(), model: "m-1".into() };
    let delta = |text: &str| EventBody::OutputDelta { output_index: 0, delta: text.into() };
    let call = |text: &str| EventBody::ToolCallArgumentsDelta { call_id: "c1".into(), delta: text.into() };
    let bodies = [
        EventBody::Accepted,
        EventBody::RouteSelected { target: target.clone(), attempt: 1 },
        delta("Good"),
        delta(" morning, "),
        delta("wörld"),
        EventBody::ToolCallStarted { call_id: "c1".into(), name: "clock".into() },
        call("{\"zone\":"),
        call("\"utc\"}"),
        EventBody::Completed { target, stop_reason: None },
    ];
    let numbered = (1..).zip(bodies);
    let time = |sequence: u64| Timestamp(1_800_000_000_000 + sequence * sequence);
    let events: Vec<_> =
        numbered.map(|(sequence, body)| Event { sequence, time: time(sequence), body }).collect();
    let identity = Some(Identity { key_hash: [0x11; 32], fingerprint: [0x22; 32] });
    let created = Created { created_at: time(0), identity };
    rows(&created, &events, RESULT_BYTES_MAX, &[1, 3])
}

/// JF-15: the result that the events give is kept once.
#[test]
fn jf_15_a_result_is_not_kept_beside_its_events() {
    let rows = example();
    let whole = fold(ID, &rows).unwrap();
    let result = rows.iter().find(|row| row.kind == 65).unwrap();
    let bodies: usize = rows.iter().map(|row| row.body.len()).sum();
    assert!(whole.len() < bodies - result.body.len() + ENVELOPE_BYTES * rows.len());
    // Without the events before it the text must stand for itself.
    let tail = &rows[rows.len() - 2..];
    assert!(fold(ID, tail).unwrap().len() > result.body.len());
}

/// JF-15.
#[test]
fn jf_15_vector() {
    let text = include_str!("../../../../spec/vectors/events/v1/folded.hex");
    let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
    let folded = fold(ID, &example()).unwrap();
    let hex: String = folded.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, digits);
}

#[test]
fn what_is_no_execution_is_not_folded() {
    let rows = example();
    let altered = |change: &dyn Fn(&mut Vec<Row>)| {
        let mut rows = rows.clone();
        change(&mut rows);
        fold(ID, &rows)
    };
    assert!(altered(&|_| {}).is_some());
    assert!(altered(&|rows| rows.clear()).is_none());
    assert!(altered(&|rows| rows[3].event_number += 1).is_none());
    assert!(altered(&|rows| rows[0].event_number = 1).is_none());
    assert!(altered(&|rows| rows[3].body.push(0)).is_none());
    assert!(altered(&|rows| rows[3].kind = 70).is_none());
    assert!(altered(&|rows| rows.swap(3, 4)).is_none());
    assert!(altered(&|rows| rows[5].logical_size = 1).is_some());
    assert!(altered(&|rows| rows[5].time_ms = 0).is_some());
}

#[test]
fn a_piece_ends_where_it_ends() {
    let rows = example();
    let mut bytes = fold(ID, &rows).unwrap();
    for length in 0..bytes.len() {
        assert_eq!(unfolded(&rows, &bytes[..length]), Err(NotFolded), "{length}");
    }
    bytes.push(0);
    assert_eq!(unfolded(&rows, &bytes), Err(NotFolded));
}
