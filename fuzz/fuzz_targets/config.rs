//! The target `config`; its body is in this workspace.
#![no_main]

sealog_fuzz::target!("config", sealog_fuzz::config::config);
