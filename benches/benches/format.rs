//! Group plaintexts and frame headers.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sealog_benches::workload::Deltas;
use sealog_journal::NewRecord;
use sealog_journal_format::record::check_unit;
use sealog_journal_format::{FrameHeader, FrameKind, GroupEncoder, GroupReader, RecordRef};

fn records(count: usize) -> Vec<NewRecord> {
    let mut deltas: Vec<Deltas> = (0..64).map(Deltas::new).collect();
    (0..count).map(|at| deltas[at % 64].next_record().expect("a delta can be encoded")).collect()
}

fn as_ref(record: &NewRecord) -> RecordRef<'_> {
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

fn encode(records: &[NewRecord]) -> Vec<u8> {
    let mut group = GroupEncoder::new(records[0].time_ms);
    for record in records {
        group.push(&as_ref(record)).expect("a group of this size has room");
    }
    group.finish()
}

fn groups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("group");
    for count in [1, 64, 256] {
        let records = records(count);
        let plaintext = encode(&records);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("encode/{count}"), |b| b.iter(|| encode(black_box(&records))));
        group.bench_function(format!("decode/{count}"), |b| {
            b.iter(|| {
                let reader = GroupReader::new(black_box(&plaintext), count as u32).expect("it was encoded");
                reader.map(|record| record.expect("it was encoded").body.len()).sum::<usize>()
            });
        });
    }
    let record = records(1);
    group.throughput(Throughput::Elements(1));
    group.bench_function("check_unit/1", |b| b.iter(|| check_unit(black_box(&record).iter().map(as_ref))));
    group.finish();
}

fn headers(criterion: &mut Criterion) {
    let header = FrameHeader {
        body_length: 9024,
        index: 5,
        kind: FrameKind::Group,
        first_sequence: 77,
        record_count: 64,
        synced_through: 76,
        previous_chain: [3; 16],
        body_crc: 9,
        body_tag: [4; 16],
        header_tag: [5; 16],
    };
    let encoded = header.encode();
    criterion.bench_function("frame header/encode", |b| b.iter(|| black_box(&header).encode()));
    criterion.bench_function("frame header/decode", |b| b.iter(|| FrameHeader::decode(black_box(&encoded))));
    // What a scan does at each of 8192 places of 64 KiB that hold no header.
    let noise = vec![0x5a; 64 << 10];
    criterion.bench_function("frame header/resync 64 KiB", |b| {
        b.iter_batched(
            || &noise,
            |noise| {
                let places = (0..noise.len()).step_by(8);
                places.filter(|at| sealog_journal_format::frame::looks_like_header(&noise[*at..])).count()
            },
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, groups, headers);
criterion_main!(benches);
