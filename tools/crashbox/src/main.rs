//! Kills the real binary and checks what survived.

fn main() {}
