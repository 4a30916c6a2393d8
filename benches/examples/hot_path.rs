//! A fixed amount of the write path in memory, for tools that count instead of timing:
//! `valgrind --tool=callgrind target/release/examples/hot_path 64 200` commits 200 groups of 64 records.

use sealog_benches::memory::InMemory;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse().expect("two numbers"));
    let (producers, groups) = (args.next().unwrap_or(64), args.next().unwrap_or(200));
    let mut journal = InMemory::new(producers);
    for _ in 0..groups {
        journal.commit();
    }
    println!("{} records", journal.records());
}
