//! The part of recovery that writes, after the verdict: quarantine and cut, clean up, level the keyring (JR-7).
//! Every step may be repeated by the next start.

use sealog_disk::{Disk, DiskError, ErrorKind, FileKind, Folder, LogFile, Name, io};
use sealog_journal_format::limits;
use sealog_journal_format::names::{self, QuarantineName, SegmentName};
use sealog_seal::StoreId;

use crate::error::Result;
use crate::head::{HeadContent, HeadState, HeadWriter};
use crate::keyring_files;
use crate::recovery::findings::{Scan, TornTail};
use crate::store::{self, KeyringCopy, Store, root_name};

const QUARANTINE_FILES_MAX: usize = 64;
const QUARANTINE_BYTES_MAX: u64 = 64 << 20;

/// What was done, for the recovery report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// The cut tail was copied to quarantine first (`false`: there was no room for the copy).
    pub tail_quarantined: bool,
    /// A copy of the keyring was rewritten from the other one.
    pub keyring_levelled: bool,
    /// An empty published segment was removed.
    pub empty_segment_removed: Option<u64>,
    /// Segment files that went because a compacted one had taken their place.
    pub superseded_removed: usize,
    /// Retired root keys that no file named any more.
    pub root_keys_dropped: usize,
}

/// How long copies of torn tails are kept, ms; `now_ms` is the wall clock's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    pub now_ms: u64,
    pub keep_ms: u64,
}

/// What only takes room: the journal may be opened before it goes. What it took may be long to take away, and where
/// something else has to be written first, it goes before that.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// `segments/next` of another writer.
    next: bool,
    /// Zeros that were prepared behind this offset of a segment and not used.
    zeros: Option<(Name, u64)>,
}

impl Leftovers {
    /// What stands under `segments/next` is nobody's as long as this says so.
    pub fn take_next(&mut self) -> bool {
        std::mem::take(&mut self.next)
    }

    pub fn cut_zeros(&mut self, disk: &dyn Disk) -> std::result::Result<(), DiskError> {
        let Some((name, end)) = self.zeros.take() else { return Ok(()) };
        match cut_at(disk, &name, end) {
            // Compaction has replaced it.
            Err(e) if e.kind == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Brings the files to the state that the scan judged them to be in. `scan` has no problems.
pub(crate) fn apply(
    store: &Store,
    head: &HeadState,
    scan: &Scan,
    keeping: Keeping,
) -> Result<(Repairs, Leftovers)> {
    let disk = &*store.disk;
    let mut repairs = Repairs::default();
    let unused = scan.tails.is_empty()
        && scan.follower.is_none()
        && scan.superseded.is_empty()
        && !scan.stale
        && store.copies.iter().all(|copy| *copy == KeyringCopy::Good);
    let mut leftovers = Leftovers { next: remove_leftovers(disk, unused)?, zeros: None };
    remove_aged(disk, keeping)?;
    // Before the head or a segment is written under a key that the other copy may not hold.
    repairs.keyring_levelled = keyring_files::level(store)?;
    if !scan.superseded.is_empty() {
        remove_superseded(disk, scan)?;
        repairs.superseded_removed = scan.superseded.len();
    }
    for (at, tail) in scan.tails.iter().enumerate() {
        let copied = quarantine(store, scan, tail, keeping.now_ms)?;
        repairs.tail_quarantined = copied && (at == 0 || repairs.tail_quarantined);
    }
    let last = scan.last_segment().filter(|_| scan.end.segment != 0);
    match last {
        Some(last) if unused && last.length > scan.end.end_offset => {
            leftovers.zeros = Some((last.name.clone(), scan.end.end_offset));
        }
        // Also where the length is right already: an earlier start may have failed between its cut and the sync of it.
        Some(last) => cut_at(disk, &last.name, scan.end.end_offset)?,
        None => {}
    }
    if let Some(follower) = &scan.follower {
        let mut writer = HeadWriter::open(disk, &store.keyring, head)?;
        let lineage = scan.last_segment().map_or([0; 16], |last| last.header.lineage);
        // The epoch of the removed segment stays used.
        let epoch = scan.epoch();
        writer.rewrite_both(&HeadContent::naming(&scan.end, lineage, epoch, false))?;
        disk.remove(&follower.name)?;
        disk.sync_folder(Folder::Segments)?;
        repairs.empty_segment_removed = Some(follower.number);
    }
    Ok((repairs, leftovers))
}

/// Files whose replacement was read completely and has no problem, or this would not run (JR-15). The sync that was to
/// make the replacement's name durable may have failed and left it marked as if it were, so it is named anew first;
/// between the two names the replaced files still count.
fn remove_superseded(disk: &dyn Disk, scan: &Scan) -> Result<()> {
    let inside = |name: &Name| SegmentName::parse(name.file()).map(|inside| inside.first());
    for segment in scan.opened.iter().filter(|segment| segment.is_compacted()) {
        let range = segment.number..=segment.last();
        let replaces = scan.superseded.iter().filter_map(inside).any(|first| range.contains(&first));
        if replaces {
            let temporary = Name::new(Folder::Segments, "compact.tmp").expect("a constant name is valid");
            disk.rename(&segment.name, &temporary)?;
            disk.rename_new(&temporary, &segment.name)?;
        }
    }
    disk.sync_folder(Folder::Segments)?;
    for name in &scan.superseded {
        disk.remove(name)?;
    }
    disk.sync_folder(Folder::Segments)?;
    Ok(())
}

/// Temporaries and, unless it may stay for now, `next`: nothing relies on them, so they go first (they may be all the room
/// there is). `true`: `next` is there and stays.
fn remove_leftovers(disk: &dyn Disk, next_stays: bool) -> Result<bool> {
    let (mut removed, mut stays) = (false, false);
    for entry in store::list(disk, Folder::Segments)? {
        if next_stays && entry.file == names::NEXT && entry.kind == FileKind::File {
            stays = true;
            continue;
        }
        let leftover = entry.file == names::NEXT || entry.file.ends_with(".tmp");
        if let Some(name) = Name::new(Folder::Segments, &entry.file).filter(|_| leftover) {
            disk.remove(&name)?;
            removed = true;
        }
    }
    for file in ["keyring.tmp", "head.tmp", "store.tmp"] {
        match disk.remove(&root_name(file)) {
            Ok(()) => {}
            Err(e) if e.kind == ErrorKind::NotFound => {}
            Err(e) => return Err(e.into()),
        }
    }
    if removed {
        disk.sync_folder(Folder::Segments)?;
    }
    Ok(stays)
}

/// Cuts a segment at its end: a torn tail, or zeros that were prepared and not used.
fn cut_at(disk: &dyn Disk, name: &Name, end: u64) -> std::result::Result<(), DiskError> {
    let file = disk.open_for_write(name)?;
    file.set_length(end)?;
    file.sync_all()?;
    file.close()
}

/// Copies the tail; a second try writes the same file. `false` if there was no room: the cut goes on, it says so.
fn quarantine(store: &Store, scan: &Scan, tail: &TornTail, now_ms: u64) -> Result<bool> {
    let disk = &*store.disk;
    let Some(segment) = scan.opened.iter().find(|s| s.number == tail.place.segment) else {
        return Ok(false);
    };
    let bytes = tail.bytes.min(QUARANTINE_BYTES_MAX - limits::HEADER_BYTES as u64);
    prune(disk, limits::HEADER_BYTES as u64 + bytes)?;
    let file = segment.file()?;
    match copy_tail(disk, store.id(), &*file, tail, bytes, now_ms) {
        Ok(()) => Ok(true),
        Err(e) if matches!(e.kind, ErrorKind::Full | ErrorKind::ReadOnly) => {
            // What was copied until then takes room that somebody needs.
            if let Err(e) = disk.remove(&temporary_tail()) {
                tracing::debug!(kind = ?e.kind, "the unfinished copy of a tail was not removed");
            }
            Ok(false)
        }
        Err(e) => Err(e.into()),
    }
}

pub(super) fn temporary_tail() -> Name {
    Name::new(Folder::Quarantine, "tail.tmp").expect("a constant name is valid")
}

fn copy_tail(
    disk: &dyn Disk,
    store_id: StoreId,
    from: &dyn LogFile,
    tail: &TornTail,
    bytes: u64,
    now_ms: u64,
) -> std::result::Result<(), sealog_disk::DiskError> {
    let quarantined = QuarantineName { segment: tail.place.segment, frame: tail.place.frame };
    let name = |file: &str| Name::new(Folder::Quarantine, file).expect("digits, a dash and a known suffix");
    let temporary = temporary_tail();
    disk.make_folder(Folder::Quarantine)?;
    disk.sync_folder(Folder::Root)?;
    match disk.remove(&temporary) {
        Err(e) if e.kind != ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let copy = disk.create(&temporary)?;
    let header_bytes = limits::HEADER_BYTES as u64;
    copy_range(from, 0, &*copy, 0, header_bytes)?;
    copy_range(from, tail.place.offset, &*copy, header_bytes, bytes)?;
    copy.sync_all()?;
    copy.close()?;
    disk.rename(&temporary, &name(&quarantined.tail_name()))?;
    disk.sync_folder(Folder::Quarantine)?;
    let report = format!(
        "store {store_id}\nsegment {}\nframe {}\noffset {}\nbytes {}\nsectors {}\nzero sectors {}\n{TIME}{now_ms}\n",
        tail.place.segment, tail.place.frame, tail.place.offset, tail.bytes, tail.sectors, tail.zero_sectors
    );
    io::publish(disk, &temporary, &name(&quarantined.report_name()), report.as_bytes())
}

/// In pieces: a tail may be as long as a segment.
fn copy_range(
    from: &dyn LogFile,
    from_offset: u64,
    to: &dyn LogFile,
    to_offset: u64,
    bytes: u64,
) -> std::result::Result<(), sealog_disk::DiskError> {
    const PIECE_BYTES: u64 = 256 << 10;
    let mut piece = vec![0; PIECE_BYTES.min(bytes) as usize];
    let mut done = 0;
    while done < bytes {
        let len = PIECE_BYTES.min(bytes - done) as usize;
        io::read_exact_at(from, &mut piece[..len], from_offset + done)?;
        io::write_all_at(to, &piece[..len], to_offset + done)?;
        done += len as u64;
    }
    Ok(())
}

/// Begins the line of a report that says when the tail was cut, ms since the epoch.
pub(super) const TIME: &str = "time ";

/// Beside a report stands a tail, or a whole segment that was set aside.
const COPIES: [&str; 2] = [".tail", ".seg"];

/// JR-9: copies go with their reports once nobody has asked for them for long enough. A copy without a report stays
/// until `prune` needs its room.
fn remove_aged(disk: &dyn Disk, keeping: Keeping) -> Result<()> {
    for entry in store::list(disk, Folder::Quarantine)? {
        let Some(stem) = entry.file.strip_suffix(".txt") else { continue };
        let Some(report) = Name::new(Folder::Quarantine, &entry.file) else { continue };
        let text = store::read_optional(disk, &report)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let cut_ms = text.lines().find_map(|line| line.strip_prefix(TIME)?.parse::<u64>().ok());
        if cut_ms.is_none_or(|cut_ms| keeping.now_ms < cut_ms.saturating_add(keeping.keep_ms)) {
            continue;
        }
        // The report last: it is what brings the next start back to a copy that is still there.
        let copies = COPIES.map(|end| Name::new(Folder::Quarantine, &format!("{stem}{end}")));
        for name in copies.into_iter().flatten().chain([report]) {
            match disk.remove(&name) {
                Err(e) if e.kind != ErrorKind::NotFound => return Err(e.into()),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Keeps the quarantine bounded, a new file of `more` bytes included: the lowest names (the oldest segments) go first.
pub(super) fn prune(disk: &dyn Disk, more: u64) -> Result<()> {
    let mut entries = store::list(disk, Folder::Quarantine)?;
    entries.retain(|e| COPIES.iter().any(|end| e.file.ends_with(end)));
    let mut bytes: u64 = more + entries.iter().map(|e| e.length).sum::<u64>();
    let mut files = entries.len();
    for entry in entries {
        if files < QUARANTINE_FILES_MAX && bytes <= QUARANTINE_BYTES_MAX {
            break;
        }
        let stem = entry.file.rsplit_once('.').map_or(entry.file.as_str(), |(stem, _)| stem);
        for file in [entry.file.clone(), format!("{stem}.txt")] {
            if let Some(name) = Name::new(Folder::Quarantine, &file) {
                match disk.remove(&name) {
                    Err(e) if e.kind != ErrorKind::NotFound => return Err(e.into()),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        files -= 1;
        bytes -= entry.length;
    }
    Ok(())
}
