//! A damaged compacted segment beside everything that it replaced: it goes to quarantine, so that the next start finds
//! what was there before the compaction (JR-15). Must never touch a file that nothing else here stands for.

use sealog_disk::{Disk, ErrorKind, Folder, Name, io};
use sealog_journal_format::names::SegmentName;

use crate::backup::copy_exactly;
use crate::error::{JournalError, Result};
use crate::head::HeadState;
use crate::recovery::apply;
use crate::recovery::findings::{Scan, Sink};
use crate::recovery::scan::{self, ScanOptions};
use crate::store::{SegmentFiles, Store};

/// Sets aside what can be, given the scan of a start that is being refused. Whether anything was.
///
/// # Errors
/// Storage errors; the files are as they were or set aside then.
pub(crate) fn bad_replacements(store: &Store, head: &HeadState, scan: &Scan, now_ms: u64) -> Result<bool> {
    struct Nothing;
    impl Sink for Nothing {}
    let files = store.segment_files()?;
    let bad: Vec<&(SegmentName, Name)> = damaged(&files, scan).collect();
    if bad.is_empty() {
        return Ok(false);
    }
    let names: Vec<&Name> = bad.iter().map(|(_, name)| name).collect();
    let before = store.segment_files_without(&names)?;
    let old = scan::scan_files(store, head, before, ScanOptions::default(), &mut Nothing)?;
    if !old.problems.is_empty() {
        return Ok(false);
    }
    for (segment, name) in bad {
        set_aside(&*store.disk, segment, name, now_ms)?;
        tracing::warn!(file = %name, "a damaged compacted segment was set aside");
    }
    Ok(true)
}

/// Compacted files with damage in them, beside files that they replaced. One that was compacted behind it may have
/// dropped a forget record because of it, and without it that would be missed: then it stays.
fn damaged<'a>(files: &'a SegmentFiles, scan: &'a Scan) -> impl Iterator<Item = &'a (SegmentName, Name)> {
    let inside = |name: &Name| SegmentName::parse(name.file());
    let replaced: Vec<SegmentName> = files.superseded.iter().filter_map(inside).collect();
    let made = |first: u64| scan.opened.iter().find(|s| s.number == first).map_or(0, |s| s.header.created_ms);
    files.compacted().filter(move |(range, _)| {
        let holds = |first: u64, last: u64| range.first() <= first && last <= range.last();
        let replaces = replaced.iter().any(|old| holds(old.first(), old.last()));
        let damaged = scan.problems.iter().any(|problem| holds(problem.place.segment, problem.place.segment));
        let newest = made(range.first());
        let later = files.compacted().any(|(other, _)| other != range && made(other.first()) > newest);
        replaces && damaged && !later
    })
}

/// Copy, sync, name, report, sync; only then it goes where it was.
fn set_aside(disk: &dyn Disk, segment: &SegmentName, name: &Name, now_ms: u64) -> Result<()> {
    let quarantined = |file: &str| {
        let name = Name::new(Folder::Quarantine, file);
        name.ok_or(JournalError::Misuse("a segment's name is too long for quarantine"))
    };
    let to = quarantined(name.file())?;
    let report = quarantined(&format!("{segment}.txt"))?;
    disk.make_folder(Folder::Quarantine)?;
    disk.sync_folder(Folder::Root)?;
    let file = disk.open(name)?;
    let length = file.length()?;
    apply::prune(disk, length)?;
    let temporary = apply::temporary_tail();
    if let Err(e) = copy_exactly(&*file, length, disk, &temporary) {
        // What was copied until then takes room that somebody needs.
        if let Err(e) = disk.remove(&temporary) {
            tracing::debug!(kind = ?e.kind, "the unfinished copy of a segment was not removed");
        }
        return Err(e);
    }
    disk.rename(&temporary, &to)?;
    disk.sync_folder(Folder::Quarantine)?;
    let text = format!("bytes {length}\n{}{now_ms}\n", apply::TIME);
    io::publish(disk, &temporary, &report, text.as_bytes())?;
    disk.remove(name)?;
    if let Some(summary) = Name::new(Folder::Segments, &segment.summary_name()) {
        match disk.remove(&summary) {
            Err(e) if e.kind != ErrorKind::NotFound => return Err(e.into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(disk.sync_folder(Folder::Segments)?)
}
