//! Sealog's development commands.

fn main() {}
