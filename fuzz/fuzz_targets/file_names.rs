//! The target `file_names`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("file_names");
