//! The `[store]` section: how much a node keeps, for how long, on how much disk.
//!
//! Owns the names and bounds of its members. Must never repeat a value.

use std::ops::Range;

use sealog_engine::store::StoreLimits;
use toml::Spanned;
use toml::de::DeValue;

use super::{Refused, integer, near};

/// Numbers that any JSON reader keeps.
const INTEGER_MAX: i64 = (1 << 53) - 1;
/// Clients read no more of one execution.
const EXECUTION_BYTES_MAX: i64 = StoreLimits::EXECUTION_BYTES_MAX as i64;
const READER_STALL_MS: u64 = 300_000;
const BOOT_CHECK_BYTES: u64 = 4 << 30;

/// In place of a number of bytes: no bound.
const FULL: &str = "full";

/// What a node keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// What it takes of the disk is less where the disk has not twice as much.
    pub limits: StoreLimits,
    /// A connection that takes no byte for so long is closed, so that no reader keeps an execution for ever.
    pub reader_stall_ms: u64,
    /// Bytes of ended segments that a start reads before it is ready; `u64::MAX` is all of them.
    pub boot_check_bytes: u64,
}

pub(super) const MEMBERS: [&str; 9] = [
    "max_executions",
    "max_bytes",
    "max_execution_bytes",
    "max_events",
    "retention_ms",
    "min_key_age_ms",
    "max_disk_bytes",
    "reader_stall_ms",
    "boot_check_bytes",
];

impl Default for StoreConfig {
    fn default() -> StoreConfig {
        StoreConfig {
            limits: StoreLimits::NODE,
            reader_stall_ms: READER_STALL_MS,
            boot_check_bytes: BOOT_CHECK_BYTES,
        }
    }
}

pub(super) fn store(
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> std::result::Result<StoreConfig, Refused> {
    let table = value
        .get_ref()
        .as_table()
        .ok_or_else(|| Refused::new(span, "store", "a table, opened by [store]"))?;
    let mut config = StoreConfig::default();
    let mut max_executions = None;
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let shown = format!("store.{name}");
        if name == "boot_check_bytes" && value.get_ref().as_str() == Some(FULL) {
            config.boot_check_bytes = u64::MAX;
            continue;
        }
        let least = i64::from(!["min_key_age_ms", "boot_check_bytes"].contains(&name));
        // What would be lowered is refused instead: nobody should take a limit for set that is not.
        let most = if name == "max_execution_bytes" { EXECUTION_BYTES_MAX } else { INTEGER_MAX };
        let number = integer(value.get_ref()).filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| u64::try_from(number).ok());
        let limits = &mut config.limits;
        let member = match name {
            "max_executions" => max_executions.insert(1),
            "max_bytes" => &mut limits.max_bytes,
            "max_execution_bytes" => &mut limits.max_execution_bytes,
            "max_events" => &mut limits.max_events,
            "retention_ms" => &mut limits.retention_ms,
            "min_key_age_ms" => &mut limits.min_key_age_ms,
            "max_disk_bytes" => &mut limits.max_disk_bytes,
            "reader_stall_ms" => &mut config.reader_stall_ms,
            "boot_check_bytes" => &mut config.boot_check_bytes,
            _ => return Err(Refused::new(key.span(), &shown, near::unsupported(name, MEMBERS))),
        };
        *member = number.ok_or_else(|| {
            let or_full = if name == "boot_check_bytes" { ", or \"full\"" } else { "" };
            Refused::new(key.span(), &shown, format!("an integer from {least} to {most}{or_full}"))
        })?;
    }
    if let Some(most) = max_executions {
        config.limits.max_executions = usize::try_from(most).unwrap_or(usize::MAX);
    }
    Ok(config)
}
