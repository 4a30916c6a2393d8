//! Events as JSON and as record bodies, canonical JSON, and the fold.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sealog_benches::workload::Deltas;
use sealog_events::json::{event_json, snapshot_json};
use sealog_events::{Event, ExecutionId, Materializer, Timestamp, body, canonical};

const ID: ExecutionId = ExecutionId::from_bytes([0x11; 16]);

const REQUEST: &str = r#"{"routing":{"strategy":"ordered","provider_order":["local","remote"],"max_attempts":3},
 "ability":"text-generation","deadline_ms":60000,"metadata":{"tenant":"a","weight":1.5},
 "input":[{"type":"text","text":"Summarise the following paragraph in one sentence, and keep the numbers."},
 {"type":"json","value":{"paragraph":"In 2024 the river rose by 3.20 m within 36 h.","tags":["flood",2024,true]}}],
 "requirements":{"stream":true,"output_modalities":["text"]}}"#;

fn events(count: usize) -> Vec<Event> {
    let mut deltas = Deltas::new(1);
    let numbered = (1..).zip(std::iter::repeat_with(|| deltas.next_event().1));
    numbered.take(count).map(|(sequence, event)| Event { sequence, ..event }).collect()
}

fn texts(criterion: &mut Criterion) {
    let event = &events(1)[0];
    let encoded = body::encode(&event.body).expect("a delta can be encoded");
    criterion.bench_function("event/json", |b| b.iter(|| event_json(ID, black_box(event))));
    criterion.bench_function("event/encode", |b| b.iter(|| body::encode(black_box(&event.body))));
    criterion.bench_function("event/decode", |b| {
        b.iter(|| body::decode(event.body.kind(), black_box(&encoded)));
    });
    criterion.bench_function("event/record to JSON", |b| {
        b.iter(|| {
            let body = body::decode(event.body.kind(), black_box(&encoded)).expect("it was encoded");
            event_json(ID, &Event { sequence: 7, time: Timestamp(9), body })
        });
    });
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request");
    group.throughput(Throughput::Bytes(REQUEST.len() as u64));
    group
        .bench_function("canonical", |b| b.iter(|| canonical::canonical_json(black_box(REQUEST.as_bytes()))));
    group.bench_function("fingerprint", |b| b.iter(|| canonical::fingerprint(black_box(REQUEST.as_bytes()))));
    group.finish();
}

fn fold(criterion: &mut Criterion) {
    let events = events(200);
    let mut group = criterion.benchmark_group("materialize");
    group.throughput(Throughput::Elements(events.len() as u64));
    group.bench_function("200 deltas", |b| {
        b.iter(|| {
            let mut fold = Materializer::new(ID, Timestamp(0));
            black_box(&events).iter().for_each(|event| fold.push(event));
            snapshot_json(&fold.into_snapshot())
        });
    });
    group.finish();
}

criterion_group!(benches, texts, requests, fold);
criterion_main!(benches);
