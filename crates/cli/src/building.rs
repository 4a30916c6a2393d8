//! A journal that is built beside its place: the hidden directory, its clearing when something fails, its name at the
//! end. Owns no byte of what is built.

use std::path::Path;
use std::sync::Arc;

use sealog_disk::real::Sibling;
use sealog_disk::{Disk, ErrorKind};
use sealog_journal::{JournalError, discard_built};

use crate::args::PlaceArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// Runs `build` on an empty directory beside `place` and gives that directory the name when it is done. On an error
/// nothing stands at `place`.
///
/// # Errors
/// Exit 10 if something stands at `place`; what `build` says; what the storage calls say.
pub fn build<T>(
    place: &Path,
    args: PlaceArgs,
    build: impl FnOnce(&Arc<dyn Disk>) -> std::result::Result<T, JournalError>,
    failed: impl Fn(JournalError) -> Failure,
) -> Result<T> {
    let at_place = |error: sealog_disk::DiskError| match error.kind {
        ErrorKind::AlreadyExists => {
            Failure::new(Exit::NoJournal, "not_empty", "something stands there already")
                .next("name an absent or empty directory")
        }
        _ => Failure::directory(error, place),
    };
    let (sibling, disk) = Sibling::open(place, args.allow_network_fs).map_err(at_place)?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    match build(&disk) {
        Ok(built) => {
            drop(disk);
            sibling.commit().map_err(at_place)?;
            Ok(built)
        }
        Err(error) => {
            // Another process that builds the same keeps what is its own.
            if !matches!(error, JournalError::Locked { .. }) {
                discard_built(&*disk);
                sibling.discard();
            }
            Err(failed(error))
        }
    }
}
