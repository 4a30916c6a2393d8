//! The target `folded`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("folded");
