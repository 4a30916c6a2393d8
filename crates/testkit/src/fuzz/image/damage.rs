//! What a fuzzer's bytes do to a journal's files: everything that needs no key.

use sealog_disk::sim::SimDisk;
use sealog_disk::{FileKind, Folder, Name};

use super::base::Base;
use crate::fuzz::input::Input;

/// Steps of damage in one run.
const STEPS_MAX: usize = 12;
/// How far a file is made longer at most.
const GROWTH_BYTES_MAX: u64 = 4096;

/// Names that are put where none stood: prepared, temporary, later, compacted, foreign.
const OTHERS: &[(Folder, &str)] = &[
    (Folder::Segments, "next"),
    (Folder::Segments, "000000000001.seg"),
    (Folder::Segments, "000000000002.seg"),
    (Folder::Segments, "000000000007.seg"),
    (Folder::Segments, "000000000001-000000000002.000000000001.seg"),
    (Folder::Segments, "000000000001.idx"),
    (Folder::Segments, "reserve"),
    (Folder::Segments, "compact.tmp"),
    (Folder::Segments, "notes.txt"),
    (Folder::Root, "store"),
    (Folder::Root, "head"),
    (Folder::Root, "keyring.0"),
    (Folder::Root, "keyring.tmp"),
    (Folder::Quarantine, "000000000001-000000000002.tail"),
];

/// Whether something that is no file now stands at the name of a file.
pub(super) fn damage(input: &mut Input<'_>, disk: &SimDisk, base: &Base) -> bool {
    let mut foreign = Vec::new();
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        step(input, disk, base, &mut foreign);
    }
    !foreign.is_empty()
}

fn step(input: &mut Input<'_>, disk: &SimDisk, base: &Base, foreign: &mut Vec<Name>) {
    let choice = input.byte() % 11;
    let name = &base.names[usize::from(input.byte()) % base.names.len()];
    let bytes = disk.bytes(name);
    let length = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
    match choice {
        0 if length > 0 => disk.flip_bit(name, input.up_to(length - 1), input.byte() % 8),
        1 if bytes.is_some() => disk.truncate(name, input.up_to(length)),
        2 if bytes.is_some() => {
            let grown = vec![input.byte(); input.up_to(GROWTH_BYTES_MAX) as usize];
            disk.overwrite(name, length, &grown);
        }
        3 if length > 0 => {
            let at = input.up_to(length - 1);
            let run = input.up_to((length - at).min(GROWTH_BYTES_MAX)) as usize;
            disk.overwrite(name, at, &vec![input.byte(); run]);
        }
        4 if length > 0 => {
            let at = input.up_to(length - 1);
            let count = usize::from(input.byte() % 64);
            let written = input.take(count.min((length - at) as usize));
            disk.overwrite(name, at, written);
        }
        5 if bytes.is_some() => disk.delete(name),
        6 if bytes.is_some() => {
            let to = &base.names[usize::from(input.byte()) % base.names.len()];
            if !foreign.contains(to) {
                disk.copy(name, to);
            }
        }
        7 if length > 0 => splice(input, disk, base, name, length),
        8 => {
            let (folder, file) = OTHERS[usize::from(input.byte()) % OTHERS.len()];
            // No name leads to two things.
            let Some(other) = Name::new(folder, file).filter(|name| !foreign.contains(name)) else { return };
            match bytes {
                Some(bytes) if input.byte().is_multiple_of(2) => disk.put(&other, &bytes),
                _ => disk.put(&other, input.take(64)),
            }
        }
        9 => {
            let (folder, file) = OTHERS[usize::from(input.byte()) % OTHERS.len()];
            let Some(free) = Name::new(folder, file).filter(|name| disk.bytes(name).is_none()) else {
                return;
            };
            disk.put_foreign(folder, file, FileKind::Other);
            foreign.push(free);
        }
        // An authentic head of an earlier moment: what it does not prove is no longer proven.
        10 if !base.older_head.is_empty() => {
            if let Some(head) = Name::new(Folder::Root, "head").filter(|name| !foreign.contains(name)) {
                disk.put(&head, &base.older_head);
            }
        }
        _ => {}
    }
}

/// Bytes of one file over those of another, most often at frame places (multiples of 32).
fn splice(input: &mut Input<'_>, disk: &SimDisk, base: &Base, from: &Name, length: u64) {
    let to = &base.names[usize::from(input.byte()) % base.names.len()];
    let (Some(source), Some(target)) = (disk.bytes(from), disk.bytes(to)) else { return };
    let aligned = input.byte().is_multiple_of(2);
    let place = |at: u64| if aligned { at - at % 32 } else { at };
    let start = place(input.up_to(length - 1)) as usize;
    let run = (input.up_to(GROWTH_BYTES_MAX) as usize).min(source.len() - start);
    let at = place(input.up_to(target.len() as u64));
    disk.overwrite(to, at, &source[start..start + run]);
}
