//! What the rows need of the machine.

use std::path::Path;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

/// The server's kind of runtime: with the I/O driver, a wake from another thread costs a system call.
pub fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Bytes of all files below a folder.
pub fn size_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => size_bytes(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

/// Bytes of this process in memory now.
pub fn resident_bytes() -> Result<u64> {
    status("VmRSS:")
}

/// The most it ever was.
pub fn peak_bytes() -> Result<u64> {
    status("VmHWM:")
}

fn status(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
