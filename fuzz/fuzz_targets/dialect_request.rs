//! The target `dialect_request`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("dialect_request");
