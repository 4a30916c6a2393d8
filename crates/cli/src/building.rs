//! A journal that is built beside its place: the hidden directory, its clearing when something fails, its name at the
//! end. Owns no byte of what is built.

use std::path::Path;
use std::sync::Arc;

use sealog_disk::real::{NotCommitted, Sibling};
use sealog_disk::{Disk, DiskError, ErrorKind};
use sealog_journal::{JournalError, discard_built};

use crate::again::same_key;
use crate::args::PlaceArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};

/// Runs `build` on an empty directory beside `place` and gives that directory the name when it is done. On an error
/// nothing stands at `place`.
///
/// # Errors
/// Exit 10 if something stands at `place`, 11 while another process builds there; what `build` says; what the storage
/// calls say.
pub fn build<T>(
    place: &Path,
    args: PlaceArgs,
    build: impl FnOnce(&Arc<dyn Disk>) -> std::result::Result<T, JournalError>,
    failed: impl Fn(JournalError) -> Failure,
) -> Result<T> {
    let at_place = |error| at_place(error, place);
    let (sibling, disk) = Sibling::open(place, args.allow_network_fs).map_err(at_place)?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    match build(&disk) {
        Ok(built) => {
            drop(disk);
            sibling.commit().map_err(|failed| not_committed(failed, place))?;
            Ok(built)
        }
        Err(error) => {
            discard_built(&*disk);
            sibling.discard();
            Err(failed(error))
        }
    }
}

/// What giving a journal its place said.
pub fn not_committed(failed: NotCommitted, place: &Path) -> Failure {
    let failure = at_place(failed.error, place);
    match (failed.stands, failure.exit) {
        (true, _) => stands(failure, place),
        (false, Exit::TryAgain) => {
            failure.safe("nothing stands there; what was built beside it goes with the next try")
        }
        (false, _) => failure,
    }
}

/// The last step failed and could not be taken back: the same command would find its own work in the way.
pub fn stands(failure: Failure, place: &Path) -> Failure {
    let what = format!("{}; the journal stands in {} all the same", failure.what, shown(place));
    let verify = format!(
        "check the disk, then what stands there: sealog journal verify {}{}",
        shown(place),
        same_key()
    );
    Failure { what, ..failure }
        .safe(
            "what stands there is a whole journal; whether it still does after a loss of power is not known",
        )
        .next(verify)
}

/// What beginning or ending a journal at its place said.
pub fn at_place(error: DiskError, place: &Path) -> Failure {
    match error.kind {
        ErrorKind::AlreadyExists => {
            Failure::new(Exit::NoJournal, "not_empty", "something stands there already")
                .next("name an absent or empty directory")
        }
        ErrorKind::Contended => {
            Failure::new(Exit::Locked, "locked", "another process is making a journal there")
                .next("wait for that process, or name another directory")
        }
        _ => Failure::directory(error, place),
    }
}
