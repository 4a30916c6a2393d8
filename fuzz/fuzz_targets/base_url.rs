//! The target `base_url`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("base_url");
