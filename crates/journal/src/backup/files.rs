//! Copying bytes between two directories and clearing one that is being built. Owns the order of the syncs of a copy.

use sealog_disk::{Disk, DiskError, ErrorKind, FileKind, Folder, LogFile, Name, Operation, io};
use sealog_seal::RunningSha256;

use crate::error::Result;
use crate::store::list;

const PIECE_BYTES: u64 = 256 << 10;

/// The first `length` bytes of `from` as the new file `to`, durable but for its entry; their SHA-256. A file that was
/// begun and not finished stays under that name: it must be a temporary one.
pub(crate) fn copy_exactly(from: &dyn LogFile, length: u64, disk: &dyn Disk, to: &Name) -> Result<[u8; 32]> {
    match disk.remove(to) {
        Err(e) if e.kind != ErrorKind::NotFound => return Err(e.into()),
        Ok(()) | Err(_) => {}
    }
    let file = disk.create(to)?;
    let hash = pieces(from, length, |bytes, offset| io::write_all_at(&*file, bytes, offset))?;
    file.sync_all()?;
    file.close()?;
    Ok(hash)
}

/// The SHA-256 of the first `length` bytes.
pub(crate) fn hash_of(file: &dyn LogFile, length: u64) -> Result<[u8; 32]> {
    pieces(file, length, |_, _| Ok(()))
}

fn pieces(
    from: &dyn LogFile,
    length: u64,
    mut each: impl FnMut(&[u8], u64) -> std::result::Result<(), DiskError>,
) -> Result<[u8; 32]> {
    let mut hash = RunningSha256::default();
    let mut piece = vec![0; PIECE_BYTES.min(length) as usize];
    let mut done = 0;
    while done < length {
        let len = PIECE_BYTES.min(length - done) as usize;
        io::read_exact_at(from, &mut piece[..len], done)?;
        hash.update(&piece[..len]);
        each(&piece[..len], done)?;
        done += len as u64;
    }
    Ok(hash.finish())
}

/// Removes every file of a directory that an earlier try left half built.
///
/// # Errors
/// `Unsafe` if there is anything that no journal puts there.
pub(crate) fn wipe(disk: &dyn Disk) -> Result<()> {
    for folder in [Folder::Segments, Folder::Quarantine, Folder::Root] {
        for entry in list(disk, folder)? {
            let known = Folder::ALL.iter().any(|known| known.as_str() == entry.file);
            if folder == Folder::Root && known && entry.kind == FileKind::Directory {
                continue;
            }
            let name = Name::new(folder, &entry.file).filter(|_| entry.kind == FileKind::File);
            let name = name.ok_or(DiskError::new(Operation::Remove, ErrorKind::Unsafe, None))?;
            disk.remove(&name)?;
        }
    }
    Ok(())
}

/// Removes what was built and must not be used. What cannot be removed is cleared by the next try.
pub fn discard_built(disk: &dyn Disk) {
    if let Err(e) = wipe(disk) {
        tracing::debug!(error = %e, "what was built was not removed");
    }
}
