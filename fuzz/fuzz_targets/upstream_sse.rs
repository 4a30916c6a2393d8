//! The target `upstream_sse`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("upstream_sse");
