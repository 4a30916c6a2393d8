//! The write path without a disk, and the scan of a 64 MiB journal on a real one.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use sealog_benches::memory::{InMemory, commit, producers_of};
use sealog_benches::sealed;
use sealog_journal::{FrameView, Ignore, Journal, Record, Sink, audit};

/// Written frames of the journal that is scanned.
const IMAGE_BYTES: u64 = 64 << 20;
const PRODUCERS: u64 = 64;

/// What a turn costs when nothing waits for a disk: hand-over, encoding, sealing, index, acknowledgement.
fn write_path(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write path in memory");
    // Everything that is written stays in memory.
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(20);
    for count in [1, 64, 256] {
        let mut journal = InMemory::new(count);
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("{count} records"), |b| b.iter(|| journal.commit()));
    }
    group.finish();
}

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn record(&mut self, _: &FrameView, record: &Record) {
        self.0 += black_box(record).body.len() as u64;
    }
}

/// The whole check of a stopped journal, page cache warm, and an open for writing.
fn scan(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder for the journal");
    let config = sealed::config(&folder.path().join("journal"), true).expect("the folder can be used");
    sealed::create(&config).expect("the folder is empty");
    let (journal, _) = Journal::open_manual(&config, &mut Ignore).expect("it is sound");
    let (mut producers, mut tickets) = (producers_of(PRODUCERS), Vec::new());
    while journal.counters().bytes < IMAGE_BYTES {
        commit(&journal, &mut producers, &mut tickets);
    }
    let records = journal.counters().records;
    journal.close().expect("a healthy disk takes the end");
    drop(journal);
    let mut group = criterion.benchmark_group(format!("scan of 64 MiB, {records} records"));
    group.throughput(Throughput::Bytes(IMAGE_BYTES)).sample_size(10).sampling_mode(SamplingMode::Flat);
    group.bench_function("audit", |b| {
        b.iter(|| {
            let (audit, count) = audit(&config, &mut Count::default).expect("it can be read");
            assert!(audit.is_sound() && count.0 > 0);
        });
    });
    group.bench_function("open", |b| {
        b.iter(|| {
            let (journal, report) = Journal::open_manual(&config, &mut Ignore).expect("it is sound");
            assert_eq!(report.last_sequence, records);
            drop(journal);
        });
    });
    group.finish();
}

criterion_group!(benches, write_path, scan);
criterion_main!(benches);
