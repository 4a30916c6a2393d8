//! The target `manifest`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("manifest");
