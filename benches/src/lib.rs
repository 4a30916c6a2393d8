//! Micro-benchmarks of the journal; `cargo bench -p sealog-benches`.
