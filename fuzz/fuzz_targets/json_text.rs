//! The target `json_text`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("json_text");
