//! The write path without a disk, and the scan of a 64 MiB journal on a real one.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use sealog_benches::sealed;
use sealog_benches::workload::Deltas;
use sealog_disk::sim::SimDisk;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_journal::{Admission, Config, FrameView, Ignore, Journal, Record, Sink, Turn, Unit, audit};
use sealog_seal::Secret;

/// Written frames of the journal that is scanned.
const IMAGE_BYTES: u64 = 64 << 20;
const PRODUCERS: u64 = 64;

/// What a turn costs when nothing waits for a disk: hand-over, encoding, sealing, index, acknowledgement.
fn write_path(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write path in memory");
    for count in [1, 64, 256] {
        let journal = in_memory();
        let mut deltas: Vec<Deltas> = (0..count).map(|seed| Deltas::new(seed << 40)).collect();
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("{count} records"), |b| b.iter(|| commit(&journal, &mut deltas)));
    }
    group.finish();
}

fn in_memory() -> Journal {
    let (clock, entropy) = (Arc::new(ManualClock::new(1)), Arc::new(SeededEntropy::new(1)));
    let disk = Arc::new(SimDisk::new());
    let config = Config::new(disk, clock, entropy, vec![Secret::raw([1; 32])]);
    sealed::create(&config).expect("an empty disk takes a journal");
    Journal::open_manual(&config, &mut Ignore).expect("it is sound").0
}

fn commit(journal: &Journal, deltas: &mut [Deltas]) {
    let mut tickets = Vec::with_capacity(deltas.len());
    for deltas in deltas.iter_mut() {
        let record = deltas.next_record().expect("a delta can be encoded");
        tickets.push(journal.submit(Unit::one(record), Admission::Ordinary).expect("there is room"));
    }
    while let Turn::Decided(_) = journal.turn() {}
    for ticket in &mut tickets {
        assert!(matches!(ticket.try_result(), Some(Ok(()))), "it is durable");
    }
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
    let config = sealed::config(folder.path(), true).expect("the folder can be used");
    sealed::create(&config).expect("the folder is empty");
    let (journal, _) = Journal::open_manual(&config, &mut Ignore).expect("it is sound");
    let mut deltas: Vec<Deltas> = (0..PRODUCERS).map(|seed| Deltas::new(seed << 40)).collect();
    while journal.counters().bytes < IMAGE_BYTES {
        commit(&journal, &mut deltas);
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
