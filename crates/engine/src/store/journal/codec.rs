//! What the journal asks about the bodies of executions' records, answered by the pure functions of `sealog-events`.

use sealog_events::folded::{self, Row};
use sealog_events::{ExecutionId, RecordKind};
use sealog_journal::{Class, Codec, NotFolded, Record, StreamId};

use super::digest::{self, Digest};

/// The codec of a journal that holds executions. Every open of such a journal is given it, the read-only ones too.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineCodec;

impl Codec for EngineCodec {
    fn fold(&self, stream: StreamId, records: &[Record]) -> Option<Vec<u8>> {
        let rows = records.iter().map(|record| (record.stream == Some(stream)).then(|| row(record)));
        folded::fold(ExecutionId::from_bytes(stream.0), &rows.collect::<Option<Vec<Row>>>()?)
    }

    fn unfold(&self, stream: StreamId, first_sequence: u64, bytes: &[u8]) -> Result<Vec<Record>, NotFolded> {
        let rows = folded::unfold(ExecutionId::from_bytes(stream.0), first_sequence, bytes);
        rows.map_err(|_| NotFolded)?.into_iter().map(|row| record(stream, row)).collect()
    }

    fn digest(&self, earlier: &[u8], record: &Record, newest_ms: u64) -> Option<Vec<u8>> {
        let first = earlier.is_empty();
        let mut digest = if first { Digest::default() } else { Digest::decode(earlier)? };
        digest.add(record, newest_ms, first)?;
        Some(digest.encode())
    }

    fn stands_alone(&self, kind: u16) -> bool {
        match RecordKind::from_number(kind) {
            Some(RecordKind::AttemptEvidence) => true,
            // Beside the creation, before the terminal event, or an event itself.
            Some(_) | None => false,
        }
    }

    fn digest_version(&self) -> u32 {
        digest::VERSION
    }
}

fn row(record: &Record) -> Row {
    Row {
        sequence: record.sequence,
        epoch: record.epoch,
        kind: record.kind,
        class: record.class.bits(),
        event_number: record.event_number,
        time_ms: record.time_ms,
        logical_size: record.logical_size,
        body: record.body.clone(),
    }
}

fn record(stream: StreamId, row: Row) -> Result<Record, NotFolded> {
    Ok(Record {
        sequence: row.sequence,
        kind: row.kind,
        stream: Some(stream),
        class: Class::from_bits(row.class).ok_or(NotFolded)?,
        event_number: row.event_number,
        time_ms: row.time_ms,
        logical_size: row.logical_size,
        body: row.body,
        epoch: row.epoch,
    })
}

#[cfg(test)]
mod tests {
    use sealog_events::{Event, EventBody, Labels, Materializer, StopReason, Target, Timestamp};
    use sealog_journal::NewRecord;

    use super::super::records::{self, Text};
    use super::*;

    const ID: ExecutionId = ExecutionId::from_bytes([7; 16]);

    /// What this store writes for one execution, as the journal reads it back.
    fn written() -> Vec<Record> {
        let target = Target { provider: "mock".into(), model: "m".into() };
        let delta = |text: &str| EventBody::OutputDelta { output_index: 0, delta: text.repeat(30) };
        let bodies = [
            EventBody::Accepted,
            EventBody::RouteSelected { target: target.clone(), attempt: 1 },
            delta("one "),
            delta("two "),
            EventBody::Completed { target, stop_reason: Some(StopReason::Length) },
        ];
        let mut fold = Materializer::new(ID, Timestamp(1000));
        let labels = Labels { ability: "text-generation".into() };
        let mut all = vec![
            records::created(ID, Timestamp(1000), None),
            records::labels(ID, Timestamp(1000), &labels).unwrap(),
        ];
        for (sequence, body) in (1..).zip(bodies) {
            let event = Event { sequence, time: Timestamp(1000 + sequence), body };
            let prepared = records::prepare(ID, &event).unwrap();
            fold.push(&prepared.event);
            let terminal = prepared.weight.terminal;
            if terminal {
                all.extend(records::ending(&fold.snapshot(), &prepared.record, Text::Whole).unwrap().records);
            } else {
                all.push(prepared.record);
            }
        }
        all.into_iter().zip((50..).step_by(7)).map(|(record, sequence)| read_back(record, sequence)).collect()
    }

    fn read_back(record: NewRecord, sequence: u64) -> Record {
        let NewRecord { kind, stream, class, event_number, time_ms, logical_size, body } = record;
        Record { sequence, kind, stream, class, event_number, time_ms, logical_size, body, epoch: 4 }
    }

    /// JF-15.
    #[test]
    fn what_the_store_writes_folds_and_comes_back() {
        let records = written();
        let stream = records[0].stream.unwrap();
        let folded = EngineCodec.fold(stream, &records).unwrap();
        let bodies: usize = records.iter().map(|record| record.body.len()).sum();
        // The text stands in the deltas and in the result; once is enough.
        assert!(folded.len() < bodies * 2 / 3, "{} of {bodies}", folded.len());
        assert_eq!(EngineCodec.unfold(stream, records[0].sequence, &folded), Ok(records));
    }

    #[test]
    fn the_records_of_another_stream_are_not_folded() {
        let mut records = written();
        let stream = records[0].stream.unwrap();
        records[1].stream = Some(StreamId([9; 16]));
        assert_eq!(EngineCodec.fold(stream, &records), None);
        assert!(EngineCodec.unfold(stream, 1, b"\x01columns").is_err());
    }
}
