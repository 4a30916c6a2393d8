//! The target `canonical_json`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("canonical_json");
