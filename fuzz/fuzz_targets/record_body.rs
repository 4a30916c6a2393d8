//! The target `record_body`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("record_body");
