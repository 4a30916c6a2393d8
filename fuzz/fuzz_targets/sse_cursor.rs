//! The target `sse_cursor`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("sse_cursor");
