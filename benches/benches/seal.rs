//! Sealing and opening bodies of the sizes that groups have, and what a frame costs besides.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sealog_journal_format::checksum::crc32;
use sealog_seal::DataKey;
use sealog_seal::testing::seal_forged;

/// One record, 64, 256, and the largest ordinary group.
const SIZES: [usize; 4] = [192, 9024, 35_968, 256 << 10];

fn bodies(criterion: &mut Criterion) {
    let keys = DataKey::generate([1; 32], b"bench").segment_keys(&[2; 4096]);
    let mut group = criterion.benchmark_group("body");
    for size in SIZES {
        group.throughput(Throughput::Bytes(size as u64));
        let mut buffer = vec![7; size];
        // The same index again and again: allowed here, where nothing is kept.
        group.bench_function(format!("seal/{size}"), |b| {
            b.iter(|| seal_forged(&keys.body, 1, &[3; 46], black_box(&mut buffer)));
        });
        let mut sealed = vec![7; size];
        let tag = seal_forged(&keys.body, 1, &[3; 46], &mut sealed);
        let mut buffer = sealed.clone();
        group.bench_function(format!("open/{size}"), |b| {
            b.iter(|| {
                buffer.copy_from_slice(&sealed);
                keys.body.open(1, &[3; 46], black_box(&mut buffer), &tag)
            });
        });
        group.bench_function(format!("crc/{size}"), |b| b.iter(|| crc32(black_box(&sealed))));
    }
    group.finish();
    criterion.bench_function("header tag", |b| b.iter(|| keys.header.tag(black_box(&[9; 72]))));
    criterion.bench_function("chain", |b| b.iter(|| sealog_seal::chain(&[1; 16], black_box(&[2; 96]))));
}

criterion_group!(benches, bodies);
criterion_main!(benches);
