//! `sealog journal backup DIR DEST`: copies what is proven durable, beside a running node if there is one, and only
//! what the backup in DEST does not hold yet.

use std::sync::Arc;

use sealog_disk::Disk;
use sealog_journal::{BackupDisk, backup};
use serde::Serialize;

use crate::again::same_key;
use crate::args::Backup;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::opening;
use crate::places;
use crate::render::Render;
use crate::report::{TailBody, counted, hex};

#[derive(Serialize)]
struct Answer {
    store_id: String,
    lineage: String,
    epoch: u64,
    last_sequence: u64,
    chain: String,
    live: bool,
    files: u64,
    bytes: u64,
    copied_files: u64,
    copied_bytes: u64,
    removed_files: u64,
    tail: Option<TailBody>,
}

pub fn run(args: &Backup, render: Render) -> Result<Exit> {
    places::outside(&args.dir, &args.dest)?;
    let config = opening::for_reading(&args.dir, args.place, &args.key, render)?;
    let target = match places::open_if_there(&args.dest, args.place, render)? {
        Some(target) => target,
        None if args.no_create => return Err(no_backup(args)),
        None => places::make(&args.dest, args.place, render)?,
    };
    let target: Arc<dyn Disk> = Arc::new(target);
    if args.no_create && BackupDisk::open(&target).map_err(|error| failed(error, args))?.is_none() {
        return Err(no_backup(args));
    }
    let taken = backup(&config, &target).map_err(|error| failed(error, args))?;
    let answer = Answer {
        store_id: hex(&taken.store_id),
        lineage: hex(&taken.lineage),
        epoch: taken.epoch,
        last_sequence: taken.end.last_sequence,
        chain: hex(&taken.end.chain),
        live: taken.live,
        files: taken.files,
        bytes: taken.bytes,
        copied_files: taken.copied_files,
        copied_bytes: taken.copied_bytes,
        removed_files: taken.removed_files,
        tail: taken.tail.as_ref().map(TailBody::new),
    };
    if render.json {
        render.object(&answer)?;
    } else {
        render.data(&text(&answer))?;
    }
    if let Some(tail) = &answer.tail {
        render.note(&format!("left out: {}", tail.line()));
    }
    if answer.live {
        render.note("a node is running: what is proven durable was copied");
    }
    Ok(Exit::Success)
}

fn no_backup(args: &Backup) -> Failure {
    Failure::new(Exit::NoJournal, "no_backup", "there is no earlier backup here").next(format!(
        "check that the volume of {} is mounted; only for a first backup: the same command without --no-create",
        shown(&args.dest)
    ))
}

fn failed(error: sealog_journal::JournalError, args: &Backup) -> Failure {
    use sealog_journal::JournalError;
    // The manifest of a backup that is copied was read before.
    if matches!(&error, JournalError::CorruptFile { file, .. } if file == "manifest") {
        return Failure::journal(error, &args.dest)
            .safe("nothing was changed; the journal is not what is damaged")
            .next(format!(
                "keep that backup and take one of this journal into another directory: sealog journal backup {} \
                 NEWDIR{}",
                shown(&args.dir),
                same_key()
            ));
    }
    let at_target = matches!(
        error,
        JournalError::NotEmpty
            | JournalError::OtherHistory(_)
            | JournalError::Locked { .. }
            | JournalError::Disk(_)
    );
    let failure = Failure::journal(error, if at_target { &args.dest } else { &args.dir });
    let safe = "the journal was not touched; a backup that was there is as it was";
    match failure.code {
        "not_empty" => failure.safe(safe).next("name an absent or empty directory, or an earlier backup"),
        "diverged" => {
            failure.safe(safe).next("keep that backup and take one of this journal into another directory")
        }
        "locked" => failure.safe(safe).next("another backup is being taken there: run it again afterwards"),
        "damaged" => failure
            .safe("nothing was changed: the backup that was there is worth more than a copy of damage")
            .next(format!("sealog journal verify {}{}", shown(&args.dir), same_key())),
        "journal_moved" => failure
            .safe(safe)
            .next("run the same command again: whole files that were copied are not copied again"),
        _ if failure.exit == Exit::TryAgain => failure
            .safe("the journal was not touched; a backup that was there is as it was")
            .next("free space there, then run the same command again: whole files that were copied are not copied again"),
        _ => failure.safe(safe),
    }
}

fn text(answer: &Answer) -> String {
    let Answer { store_id, last_sequence, files, bytes, copied_files, copied_bytes, .. } = answer;
    format!(
        "backup of journal {store_id} up to sequence {last_sequence}: {}, {bytes} bytes; copied {}, {copied_bytes} \
         bytes\n",
        counted(*files, "file"),
        counted(*copied_files, "file"),
    )
}
