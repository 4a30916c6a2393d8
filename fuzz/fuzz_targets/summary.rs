//! The target `summary`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("summary");
