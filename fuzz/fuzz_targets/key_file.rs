//! The target `key_file`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("key_file");
