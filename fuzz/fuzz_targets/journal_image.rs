//! The target `journal_image`; its body is in `sealog-testkit`.
#![no_main]

sealog_fuzz::target!("journal_image");
