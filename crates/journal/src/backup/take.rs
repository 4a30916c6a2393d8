//! Taking a backup. It reads as every read-only verb does, so the writer never waits for it; the manifest's rename is
//! the commit point: before it the target holds the old backup, from it on the new one (JB-4).

use std::collections::BTreeMap;
use std::sync::Arc;

use sealog_disk::{Disk, ErrorKind, FileKind as EntryKind, Folder, Name, io};
use sealog_journal_format::HeadSlot;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::manifest::{BackupFile, FileKind, Manifest};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::store::StoreFile;

use super::ends::Ends;
use super::files::{copy_exactly, hash_of};
use super::view::{BackupDisk, manifest_name};
use crate::audit::{Audit, audit};
use crate::config::Config;
use crate::error::{JournalError, Result};
use crate::head::{self, HeadContent};
use crate::lock;
use crate::recovery::findings::{SegmentFacts, TornTail};
use crate::segment::Segment;
use crate::store::{Store, list, root_name};

/// What a backup came to.
#[derive(Clone, Debug)]
pub struct Backup {
    pub store_id: [u8; 16],
    pub lineage: [u8; 16],
    pub epoch: u64,
    /// Where the copy ends.
    pub end: EndRecord,
    /// Files that the manifest lists.
    pub files: u64,
    pub bytes: u64,
    pub copied_files: u64,
    pub copied_bytes: u64,
    /// Files that no manifest names any more.
    pub removed_files: u64,
    /// A writer held the lock: the copy ends where evidence did.
    pub live: bool,
    /// A torn tail that was left out.
    pub tail: Option<TornTail>,
}

/// Copies what is proven durable of the journal into `target`: an empty directory, or an earlier backup of it.
///
/// # Errors
/// `Corrupt` where the source is damaged, `NotEmpty` and `OtherHistory` where the target holds something else,
/// `Locked` while another backup is taken there; storage errors. The earlier backup stands then.
pub fn backup(config: &Config, target: &Arc<dyn Disk>) -> Result<Backup> {
    // Compaction may remove a file between the listing and the copy.
    const TRIES: u32 = 8;
    let disk = &**target;
    let _held = lock::take(disk, &*config.clock, config.tuning.lock_wait)?;
    refuse_others(disk)?;
    let mut tries = 1;
    loop {
        match once(config, target) {
            Err(JournalError::Disk(e))
                if tries < TRIES && matches!(e.kind, ErrorKind::NotFound | ErrorKind::ShortRead) =>
            {
                tries += 1;
            }
            Err(error) => {
                // Where it failed for want of room, that is room again. Whole copies stay, for the next try.
                discard(disk, "copy.tmp", Folder::Segments);
                discard(disk, "manifest.tmp", Folder::Root);
                return Err(match error {
                    // The last try met a file that went as well.
                    JournalError::Disk(e) if e.kind == ErrorKind::NotFound => JournalError::Moved,
                    error => error,
                });
            }
            done => return done,
        }
    }
}

/// Removes what counts for nothing, if it can be removed.
fn discard(disk: &dyn Disk, file: &str, folder: Folder) {
    if let Some(Err(e)) = Name::new(folder, file).map(|name| disk.remove(&name))
        && e.kind != ErrorKind::NotFound
    {
        tracing::debug!(error = %e, "a copy that was begun was not removed");
    }
}

/// Only what a backup puts there may be there.
fn refuse_others(disk: &dyn Disk) -> Result<()> {
    const OURS: [&str; 4] = ["manifest", "manifest.tmp", "segments", "lost+found"];
    let others = list(disk, Folder::Root)?.into_iter().any(|entry| !OURS.contains(&entry.file.as_str()));
    if others { Err(JournalError::NotEmpty) } else { Ok(()) }
}

fn once(config: &Config, target: &Arc<dyn Disk>) -> Result<Backup> {
    let store = Store::open(config)?;
    let known = earlier(config, &store, target)?;
    let old_head = known.as_ref().map(BackupDisk::head).transpose()?;
    let ends = || match &old_head {
        Some(head) => Ends::asking(head.segment, head.frames),
        None => Ends::default(),
    };
    let (audit, ends) = audit(config, &mut || ends())?;
    refuse_damage(&audit)?;
    if let Some(head) = &old_head {
        continues(&audit, &ends, head)?;
    }
    let horizon = ends.horizon().map_or(EndRecord::NONE, |reached| reached.end);
    let mut taking =
        Taking { store: &store, target: &**target, known: listed(known.as_ref()), copied: (0, 0) };
    taking.target.make_folder(Folder::Segments)?;
    taking.target.sync_folder(Folder::Root)?;
    let mut files = Vec::new();
    for facts in covered(&audit, &horizon) {
        // A compaction may have removed it since; what was read is still open.
        let opened = audit.opened.iter().find(|opened| opened.number == facts.number);
        files.push(taking.file(facts, opened.map(|opened| &**opened), &ends, &horizon)?);
        if let Some(opened) = opened {
            opened.release();
        }
    }
    taking.target.sync_folder(Folder::Segments)?;
    let (lineage, epoch) = writer_of(&audit, &horizon);
    let content = HeadContent::naming(&horizon, lineage, epoch, false);
    let (copied_files, copied_bytes) = taking.copied;
    publish(config, &store, &**target, &content, files.clone())?;
    let removed_files = remove_unnamed(&**target, &files)?;
    Ok(Backup {
        store_id: store.id().0,
        lineage,
        epoch,
        end: horizon,
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.length).sum(),
        copied_files,
        copied_bytes,
        removed_files,
        live: audit.live,
        tail: audit.tail,
    })
}

/// The backup that is there, if it is one of this journal.
fn earlier(config: &Config, store: &Store, target: &Arc<dyn Disk>) -> Result<Option<BackupDisk>> {
    let Some(known) = BackupDisk::open(target)? else { return Ok(None) };
    let file = StoreFile::decode(&known.manifest.store, |part| sealog_seal::sha256(&[part]));
    if !file.is_ok_and(|file| file.store_id == store.id().0) {
        return Err(JournalError::OtherHistory("the backup is one of another journal"));
    }
    // A root key may have been dropped since; then the keyring of that time has to open.
    match known.authenticate_with(&store.keyring) {
        Ok(()) => {}
        Err(_) => known.authenticate(&config.secrets)?,
    }
    Ok(Some(known))
}

/// Damage is never copied: the backup that is there is worth more.
pub(crate) fn refuse_damage(audit: &Audit) -> Result<()> {
    match audit.problems.first() {
        None => Ok(()),
        Some(problem) => {
            Err(JournalError::Corrupt { place: problem.place, row: problem.row, what: problem.what })
        }
    }
}

/// JB-5: the journal holds the place where the backup ends, written by the same writer.
fn continues(audit: &Audit, ends: &Ends, head: &HeadSlot) -> Result<()> {
    const FURTHER: JournalError = JournalError::OtherHistory("the backup reaches further than this journal");
    const APART: JournalError =
        JournalError::OtherHistory("this journal does not continue what the backup holds");
    if head.segment == 0 {
        return Ok(());
    }
    let holder = audit.segments.iter().find(|facts| {
        name_of(facts).is_some_and(|name| (name.first()..=name.last()).contains(&head.segment))
    });
    match holder.map(|facts| (name_of(facts), facts)) {
        None => Err(FURTHER),
        Some((Some(SegmentName::Log { .. }), facts)) => {
            if facts.lineage != head.lineage {
                return Err(APART);
            }
            match ends.answer {
                Some(chain) if chain == head.chain => Ok(()),
                Some(_) => Err(APART),
                None => Err(FURTHER),
            }
        }
        // Its frames were folded; a lineage id names one writer, whose segments only grow.
        Some((_, _)) => match ends.source(head.segment) {
            Some((end, lineage)) if lineage == head.lineage && end.frames >= head.frames => Ok(()),
            _ => Err(APART),
        },
    }
}

/// Which segments a file holds, by its name.
pub(crate) fn name_of(facts: &SegmentFacts) -> Option<SegmentName> {
    SegmentName::parse(facts.file.rsplit('/').next()?)
}

/// The segments up to the horizon, in order.
pub(crate) fn covered<'a>(
    audit: &'a Audit,
    horizon: &'a EndRecord,
) -> impl Iterator<Item = &'a SegmentFacts> + 'a {
    audit.segments.iter().filter(|facts| facts.number <= horizon.segment)
}

/// Lineage and epoch of whoever wrote the horizon's segment.
pub(crate) fn writer_of(audit: &Audit, horizon: &EndRecord) -> ([u8; 16], u64) {
    let last = audit.segments.iter().find(|facts| facts.number == horizon.segment);
    last.map_or(([0; 16], 0), |facts| (facts.lineage, facts.epoch))
}

/// How much of a segment's file belongs to the journal: up to its end; what was prepared behind it does not.
pub(crate) fn length_of(facts: &SegmentFacts, segment: &SegmentName, ends: &Ends) -> u64 {
    match segment {
        SegmentName::Log { number } => ends.of(*number).map_or(0, |reached| reached.end.end_offset),
        SegmentName::Compacted { .. } => facts.length,
    }
}

fn listed(known: Option<&BackupDisk>) -> BTreeMap<String, BackupFile> {
    let files = known.map_or(&[][..], |known| &known.manifest.files);
    files.iter().map(|file| (file.file_name(), *file)).collect()
}

fn in_segments(file: &str) -> Result<Name> {
    Name::new(Folder::Segments, file).ok_or(JournalError::Misuse("a segment's number is too long for a name"))
}

struct Taking<'a> {
    store: &'a Store,
    target: &'a dyn Disk,
    known: BTreeMap<String, BackupFile>,
    copied: (u64, u64),
}

impl Taking<'_> {
    /// The entry of one segment; its file stands in the target when this returns.
    fn file(
        &mut self,
        facts: &SegmentFacts,
        opened: Option<&Segment>,
        ends: &Ends,
        horizon: &EndRecord,
    ) -> Result<BackupFile> {
        let unnamed = JournalError::Misuse("a segment without a name");
        let segment = name_of(facts).ok_or(unnamed)?;
        // A compacted segment never grows, however its last source ended.
        let log = matches!(segment, SegmentName::Log { .. });
        let grows = log && facts.number == horizon.segment && horizon.how != How::Sealed;
        let mut file = BackupFile {
            segment,
            kind: if grows { FileKind::Tail } else { FileKind::Ended },
            length: length_of(facts, &segment, ends),
            chain: ends.of(facts.number).map_or([0; 16], |reached| reached.end.chain),
            sha256: [0; 32],
        };
        let name = in_segments(&file.file_name())?;
        let stored = match self.target.open(&name) {
            Ok(stored) => Some(stored).filter(|stored| stored.length().is_ok_and(|len| len == file.length)),
            Err(e) if e.kind == ErrorKind::NotFound => None,
            Err(e) => return Err(e.into()),
        };
        let known = self.known.get(name.file()).filter(|known| known.length == file.length);
        if let (Some(_), Some(known)) = (&stored, known) {
            return Ok(*known);
        }
        let source = match opened {
            Some(opened) => opened.file()?,
            None => self.store.disk.open(&in_segments(&segment.file_name())?)?,
        };
        if let Some(stored) = stored {
            // Left by a backup that did not come to its manifest.
            file.sha256 = hash_of(&*stored, file.length)?;
            if file.sha256 == hash_of(&*source, file.length)? {
                return Ok(file);
            }
        }
        let temporary = in_segments("copy.tmp")?;
        file.sha256 = copy_exactly(&*source, file.length, self.target, &temporary)?;
        // In place of one that no manifest names, or that is not what the manifest says.
        self.target.rename(&temporary, &name)?;
        self.copied = (self.copied.0 + 1, self.copied.1 + file.length);
        Ok(file)
    }
}

fn publish(
    config: &Config,
    store: &Store,
    target: &dyn Disk,
    content: &HeadContent,
    files: Vec<BackupFile>,
) -> Result<()> {
    let root = store.keyring.active_root();
    let file = StoreFile { store_id: store.id().0, created_ms: store.created_ms };
    let manifest = Manifest {
        store: file.encode(|part| sealog_seal::sha256(&[part])),
        slots: head::slots(&store.keyring, content),
        taken_ms: config.clock.wall_ms(),
        key_id: root.id().0,
        keyring: store.keyring.encode(),
        files,
    };
    let key = root.mac_key(b"manifest", &store.id());
    let bytes = manifest
        .encode(|part| key.mac(part))
        .map_err(|_| JournalError::Misuse("the backup has no manifest of this format"))?;
    Ok(io::publish(target, &root_name("manifest.tmp"), &manifest_name(), &bytes)?)
}

/// What the manifest does not name goes, now that it counts.
fn remove_unnamed(target: &dyn Disk, files: &[BackupFile]) -> Result<u64> {
    let named: std::collections::BTreeSet<String> = files.iter().map(BackupFile::file_name).collect();
    let mut removed = 0;
    for entry in list(target, Folder::Segments)? {
        let ours = [".seg", ".tail", ".tmp"].iter().any(|end| entry.file.ends_with(end));
        if !ours || named.contains(&entry.file) || entry.kind != EntryKind::File {
            continue;
        }
        if let Some(name) = Name::new(Folder::Segments, &entry.file) {
            target.remove(&name)?;
            removed += 1;
        }
    }
    if removed > 0 {
        target.sync_folder(Folder::Segments)?;
    }
    Ok(removed)
}
