//! The two keyring copies on disk: levelling them and putting new bytes in their place (`spec/keys.md`, JK-47, JK-50,
//! JK-55). Decides nothing about keys; must never write a copy whose bytes differ from the keyring that counts next.

use sealog_disk::{Disk, ErrorKind, io};

use crate::error::{JournalError, Result};
use crate::store::{self, KeyringCopy, Store, keyring_name, root_name};

/// Puts `bytes` in the place of one copy.
pub(crate) fn write_copy(disk: &dyn Disk, copy: usize, bytes: &[u8]) -> Result<()> {
    match io::publish(disk, &root_name("keyring.tmp"), &keyring_name(copy), bytes) {
        Ok(()) => Ok(()),
        Err(e) => {
            if e.kind == ErrorKind::Full
                && let Err(e) = disk.remove(&root_name("keyring.tmp"))
            {
                tracing::debug!(kind = ?e.kind, "an unfinished keyring copy was not removed");
            }
            Err(e.into())
        }
    }
}

/// Both copies, one after the other, then read back: only now the change counts.
pub(crate) fn write_both(disk: &dyn Disk, bytes: &[u8]) -> Result<()> {
    for copy in [0, 1] {
        write_copy(disk, copy, bytes)?;
    }
    for copy in [0, 1] {
        let name = keyring_name(copy);
        if store::read_optional(disk, &name)?.as_deref() != Some(bytes) {
            let what = "it does not read back as it was written";
            return Err(JournalError::CorruptFile { file: name.to_string(), what });
        }
    }
    Ok(())
}

/// Makes both copies those of the keyring that counts. Whether anything was written.
///
/// An older copy means that a change was cut between the two: then it is not known whether the name of the newer one is
/// durable either, so both are written, the older one first, and a key that only the newer one holds is not used before
/// (JK-55). A copy that is damaged or missing held nothing that the other does not hold: a full disk may leave it to a
/// later start.
pub(crate) fn level(store: &Store) -> Result<bool> {
    let bytes = store.keyring.encode();
    let stale = store.copies.iter().position(|copy| *copy == KeyringCopy::Stale);
    if let Some(older) = stale {
        write_copy(&*store.disk, older, &bytes)?;
        write_copy(&*store.disk, 1 - older, &bytes)?;
        return Ok(true);
    }
    let mut levelled = false;
    for (copy, state) in store.copies.iter().enumerate() {
        match state {
            KeyringCopy::Good | KeyringCopy::Stale => continue,
            KeyringCopy::Damaged | KeyringCopy::Missing => {}
        }
        match write_copy(&*store.disk, copy, &bytes) {
            Ok(()) => levelled = true,
            Err(JournalError::Disk(e)) if e.kind == ErrorKind::Full => {
                tracing::warn!("no room for the second keyring copy");
            }
            Err(e) => return Err(e),
        }
    }
    Ok(levelled)
}
