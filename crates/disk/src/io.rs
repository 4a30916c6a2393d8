//! The loops over single storage calls: whole writes, exact reads, publication of a small file.
//!
//! Owns how a short call is continued and in which order a file becomes visible. Must never retry a failed
//! write or sync: after such an error the caller decides (poison, or discard a file nobody relies on).

use crate::{DIRECT_ALIGN, Disk, DiskError, ErrorKind, LogFile, Name, Operation};

type Result<T> = std::result::Result<T, DiskError>;

/// How often one whole transfer may be interrupted by a signal before that counts as a failure.
pub const INTERRUPTIONS_MAX: u32 = 100;

/// Writes all of `bytes` at `offset`; a short write is continued with the remaining bytes at their place.
///
/// # Errors
/// Whatever the write said; `Interrupted` after [`INTERRUPTIONS_MAX`] interruptions; `Io` if a write took no
/// byte without an error. Any prefix of `bytes` may have been written then.
pub fn write_all_at(file: &dyn LogFile, bytes: &[u8], offset: u64) -> Result<()> {
    let mut done = 0;
    let mut interruptions = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(no_progress(Operation::Write)),
            Ok(count) => done += count,
            Err(error) => interrupted(error, &mut interruptions)?,
        }
    }
    Ok(())
}

/// Writes all of `bytes` at `offset`, durable on return. The write is the sync, so every error is final, EINTR
/// included; only a short count is continued.
///
/// With aligned bytes at an aligned offset the continuation starts at a block boundary as well, which writes
/// some bytes a second time with equal content.
pub fn write_all_durable_at(file: &dyn LogFile, bytes: &[u8], offset: u64) -> Result<()> {
    let aligned = bytes.len().is_multiple_of(DIRECT_ALIGN) && offset.is_multiple_of(DIRECT_ALIGN as u64);
    let mut done = 0;
    while done < bytes.len() {
        let count = file.write_durable_at(&bytes[done..], offset + done as u64)?;
        done += match count {
            0 => return Err(no_progress(Operation::Write)),
            // Beyond one block a count that ends inside a block is taken back to its boundary.
            more if aligned && more >= DIRECT_ALIGN && done.is_multiple_of(DIRECT_ALIGN) => {
                more - more % DIRECT_ALIGN
            }
            less => less,
        };
    }
    Ok(())
}

/// Fills `buf` from `offset` on.
///
/// # Errors
/// `ShortRead` if the file ends before `buf` is full; otherwise as [`read_up_to`].
pub fn read_exact_at(file: &dyn LogFile, buf: &mut [u8], offset: u64) -> Result<()> {
    if read_up_to(file, buf, offset)? < buf.len() {
        return Err(DiskError::new(Operation::Read, ErrorKind::ShortRead, None));
    }
    Ok(())
}

/// Fills `buf` from `offset` on as far as the file goes and returns the number of bytes read.
///
/// # Errors
/// Whatever the read said; `Interrupted` after [`INTERRUPTIONS_MAX`] interruptions.
pub fn read_up_to(file: &dyn LogFile, buf: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    let mut interruptions = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) => interrupted(error, &mut interruptions)?,
        }
    }
    Ok(done)
}

/// The whole file, if it is not longer than `max_len` bytes. Nothing larger is allocated.
///
/// # Errors
/// `Unsupported` with a detail if the file is longer.
pub fn read_to_vec(file: &dyn LogFile, max_len: usize) -> Result<Vec<u8>> {
    let length = file.length()?;
    let too_long = || DiskError {
        detail: Some("the file is longer than its kind may be"),
        ..DiskError::new(Operation::Read, ErrorKind::Unsupported, None)
    };
    let length = usize::try_from(length).ok().filter(|length| *length <= max_len).ok_or_else(too_long)?;
    let mut bytes = vec![0; length];
    let count = read_up_to(file, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

/// Makes `last` a file with exactly `bytes`, or leaves it as it was, whatever happens on the way; durable on
/// return. `temporary` must be a name of the same folder that nothing else uses.
///
/// The order is the point: the bytes are synced before the rename, so that the new name never leads to a file
/// whose content a crash may still take away; the folder is synced last, so that the name itself stays. A stale
/// temporary of an earlier crash goes first, since a created file must be new.
///
/// # Errors
/// Whatever a step said. Until the rename `last` is untouched; after a failed folder sync either content may be
/// found after a crash.
pub fn publish(disk: &dyn Disk, temporary: &Name, last: &Name, bytes: &[u8]) -> Result<()> {
    match disk.remove(temporary) {
        Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let file = disk.create(temporary)?;
    write_all_at(&*file, bytes, 0)?;
    file.sync_all()?;
    file.close()?;
    disk.rename(temporary, last)?;
    disk.sync_folder(last.folder())
}

fn no_progress(op: Operation) -> DiskError {
    DiskError { detail: Some("the call took no byte"), ..DiskError::new(op, ErrorKind::Io, None) }
}

fn interrupted(error: DiskError, count: &mut u32) -> Result<()> {
    *count += 1;
    match error.kind {
        ErrorKind::Interrupted if *count <= INTERRUPTIONS_MAX => Ok(()),
        _ => Err(error),
    }
}
