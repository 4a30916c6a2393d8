//! The journal that a kill left behind, as the offline tools and the directory show it.
//!
//! Reads only. It never removes, repairs or unlocks anything: that nobody has to is one of the claims.

use std::fs;
use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::finding::{Class, Wrong};
use crate::frame::{self, Frame};
use crate::history::Record;
use crate::node::Home;

/// What `quarantine/` may hold at most.
const QUARANTINE_FILES_MAX: usize = 64;
const QUARANTINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What `journal verify` says about a journal that it does not refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    pub torn_tail: bool,
    pub segments: u64,
    pub executions: u64,
    pub records: u64,
}

/// Runs `journal verify`, which must find nothing worse than a torn tail.
///
/// # Errors
/// The outer one when the binary cannot be run.
pub fn verify(home: &Home) -> Result<Result<Verified, Wrong>> {
    let output = home.journal("verify").arg("--json").output().context("journal verify cannot be run")?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let number = |name: &str| answer[name].as_u64();
    let read = || {
        Some(Verified {
            torn_tail: match answer["verdict"].as_str()? {
                "sound" => false,
                "torn_tail" => true,
                _ => return None,
            },
            segments: number("segments")?,
            executions: number("executions")?,
            records: number("records")?,
        })
    };
    let told = if output.status.success() { read() } else { None };
    Ok(told.ok_or_else(|| refused("verify", &output)))
}

fn refused(verb: &str, output: &Output) -> Wrong {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    Wrong::new(Class::Tool, format!("journal {verb}: {}; {stderr} {stdout}", output.status))
}

/// Replays an execution offline and compares it with everything that was delivered live. `ended` says that it must
/// be whole; otherwise it may end anywhere behind what was delivered.
///
/// # Errors
/// The outer one when the binary cannot be run.
pub fn replay(home: &Home, record: &Record, id: &str, ended: bool) -> Result<Result<(), Wrong>> {
    let mut command = home.journal("replay");
    let output =
        command.arg(id).args(["--format", "sse"]).output().context("journal replay cannot be run")?;
    if !output.status.success() {
        return Ok(Err(refused("replay", &output)));
    }
    let frames = match frame::cut(&output.stdout) {
        Ok(frames) => frames,
        Err(what) => return Ok(Err(Wrong::new(Class::Tool, format!("replay of {id}: {what}")))),
    };
    let gap = (1..).zip(&frames).find(|(expected, frame)| frame.sequence != *expected);
    if let Some((expected, frame)) = gap {
        let what = format!("replay of {id} has {} where {expected} was due", frame.sequence);
        return Ok(Err(Wrong::new(Class::Lost, what)));
    }
    let last = frames.last().map(Frame::event).unwrap_or_default();
    if ended && !frame::is_terminal(&last) {
        return Ok(Err(Wrong::new(Class::Lost, format!("replay of {id} ends with {last}"))));
    }
    Ok(record.compare(&frames))
}

/// Files among the segments that a node which serves prepares or is writing.
const WORKED_ON: [&str; 5] = ["next", "reserve", "reserve.tmp", "compact.tmp", "summary.tmp"];

/// Whether the directory of a node that serves holds only what a journal is made of.
///
/// # Errors
/// The outer one when the directory cannot be read.
pub fn directory(data: &Path) -> Result<Result<(), Wrong>> {
    let strange = |what: String| Ok(Err(Wrong::new(Class::Tool, what)));
    for (name, _) in entries(data)? {
        let known = ["LOCK", "store", "keyring.0", "keyring.1", "head", "segments", "quarantine"];
        if !known.contains(&name.as_str()) {
            return strange(format!("{name} is left in the data directory"));
        }
    }
    for (name, _) in entries(&data.join("segments"))? {
        let known = name.ends_with(".seg") || name.ends_with(".idx") || WORKED_ON.contains(&name.as_str());
        if !known {
            return strange(format!("{name} is left among the segments"));
        }
    }
    let quarantine = data.join("quarantine");
    let files = if quarantine.is_dir() { entries(&quarantine)? } else { Vec::new() };
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    if files.len() > QUARANTINE_FILES_MAX || bytes > QUARANTINE_BYTES_MAX {
        return strange(format!("quarantine holds {} files of {bytes} bytes", files.len()));
    }
    Ok(Ok(()))
}

/// Names and lengths in a directory; a file that goes meanwhile is passed over.
fn entries(directory: &Path) -> Result<Vec<(String, u64)>> {
    let listed =
        fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))?;
    let entry = |entry: fs::DirEntry| {
        let bytes = entry.metadata().ok()?.len();
        Some((entry.file_name().to_string_lossy().into_owned(), bytes))
    };
    Ok(listed.filter_map(Result::ok).filter_map(entry).collect())
}

/// Bytes and files of the whole directory, as `(files, bytes)`.
///
/// # Errors
/// It cannot be read.
pub fn size(data: &Path) -> Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for folder in [data.to_owned(), data.join("segments"), data.join("quarantine")] {
        if folder.is_dir() {
            let listed = entries(&folder)?;
            files += listed.len() as u64;
            bytes += listed.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
    }
    Ok((files, bytes))
}

/// Whether the node's log tells of a panic; the lines around the first one.
///
/// # Errors
/// The log cannot be read.
pub fn panic(log: &Path) -> Result<Option<String>> {
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    // The node says where and never what; the other form is that of a panic before it took care of that.
    let found = ["panicked at", "a bug at"].into_iter().filter_map(|words| text.find(words)).min();
    Ok(found.map(|at| {
        let start = text[..at].rfind('\n').map_or(0, |line| line + 1);
        text[start..].lines().take(4).collect::<Vec<_>>().join(" | ")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_belong_to_a_journal_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::write(dir.path().join(name), b"12").unwrap();
        fs::create_dir(dir.path().join("segments")).unwrap();
        fs::create_dir(dir.path().join("quarantine")).unwrap();
        for name in ["LOCK", "head", "segments/1.seg", "segments/next", "quarantine/1"] {
            make(name);
        }
        directory(dir.path()).unwrap().unwrap();
        assert_eq!(size(dir.path()).unwrap().0, 7);
        make("segments/x.tmp");
        assert!(directory(dir.path()).unwrap().unwrap_err().evidence.contains("x.tmp"));
        fs::remove_file(dir.path().join("segments/x.tmp")).unwrap();
        for number in 0..QUARANTINE_FILES_MAX {
            make(&format!("quarantine/more-{number}"));
        }
        assert!(directory(dir.path()).unwrap().unwrap_err().evidence.contains("65 files"));
    }

    #[test]
    fn a_panic_is_found_in_a_log() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "a\nthread 'x' panicked at y.rs:1:\nwhy\n").unwrap();
        assert_eq!(panic(file.path()).unwrap().unwrap(), "thread 'x' panicked at y.rs:1: | why");
        fs::write(file.path(), "a\nsealog: a bug at z.rs:2\n").unwrap();
        assert_eq!(panic(file.path()).unwrap().unwrap(), "sealog: a bug at z.rs:2");
        fs::write(file.path(), "a\n").unwrap();
        assert_eq!(panic(file.path()).unwrap(), None);
    }
}
