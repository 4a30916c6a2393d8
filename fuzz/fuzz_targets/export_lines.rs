//! The target `export_lines`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("export_lines");
