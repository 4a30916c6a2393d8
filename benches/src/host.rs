//! What a reader needs to know of the machine to make sense of a number.

use std::fs;
use std::path::Path;

/// One line: kernel, CPUs, file system and device of `folder`, load.
pub fn describe(folder: &Path) -> String {
    let kernel = read("/proc/sys/kernel/osrelease");
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let (device, kind) = mount(folder);
    format!("Linux {}, {cpus} CPUs, {kind} on {device}, load {}", kernel.trim(), load())
}

/// The load of the last minute, as the kernel counts it.
pub fn load() -> String {
    read("/proc/loadavg").split(' ').next().unwrap_or("?").to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Device and type of the file system with the longest mount point above `folder`.
fn mount(folder: &Path) -> (String, String) {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let mounts = read("/proc/mounts");
    let above = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
        folder.starts_with(point).then_some((point.len(), device, kind))
    });
    let longest = above.max_by_key(|(length, ..)| *length);
    longest.map_or_else(Default::default, |(_, device, kind)| (device.to_owned(), kind.to_owned()))
}
