//! The target `segment_header`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("segment_header");
