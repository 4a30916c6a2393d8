//! The Sealog binary: a sealed execution journal, its engine and its tools.

fn main() {}
