//! `sealog journal restore SRC DEST`: a journal made from a backup or a stopped copy, in a new lineage and fenced.

use sealog_events::Timestamp;
use sealog_journal::{JournalError, restore};
use serde::Serialize;

use crate::again::same_key;
use crate::args::Restore;
use crate::building;
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
    /// Where the copy ended.
    from: From,
    last_sequence: u64,
    segments: u64,
    bytes: u64,
    interrupted: u64,
    fenced: bool,
    /// When the backup was taken; `null` for a copy of a directory.
    taken_at: Option<String>,
    tail: Option<TailBody>,
}

#[derive(Serialize)]
struct From {
    segment: u64,
    last_sequence: u64,
    chain: String,
}

pub fn run(args: &Restore, render: Render) -> Result<Exit> {
    places::outside(&args.src, &args.dest)?;
    let copy = opening::copy_for_reading(&args.src, args.place, &args.key, render)?;
    let backup = copy.backup.as_deref();
    let done = building::build(
        &args.dest,
        args.place,
        |target| restore(&copy.config, backup, target),
        |error| failed(error, args),
    )?;
    let answer = Answer {
        store_id: hex(&done.store_id),
        lineage: hex(&done.lineage),
        epoch: done.epoch,
        from: From {
            segment: done.from.segment,
            last_sequence: done.from.last_sequence,
            chain: hex(&done.from.chain),
        },
        last_sequence: done.last_sequence,
        segments: done.segments,
        bytes: done.bytes,
        interrupted: done.interrupted,
        fenced: true,
        taken_at: backup.map(|backup| Timestamp(backup.taken_ms()).to_string()),
        tail: done.tail.as_ref().map(TailBody::new),
    };
    if render.json {
        render.object(&answer)?;
    } else {
        render.data(&text(&answer, args))?;
    }
    render.note(
        "the copy is fenced: it takes no work that it does not know, because the original may have done it",
    );
    render.note(&format!(
        "once the original is gone for good: sealog journal unfence {}{}",
        shown(&args.dest),
        same_key()
    ));
    Ok(Exit::Success)
}

fn failed(error: JournalError, args: &Restore) -> Failure {
    let failure = Failure::making(error, &args.src, &args.dest);
    let safe = "the copy was not touched, and nothing was made at the target";
    match failure.code {
        "locked" => failure.safe(safe).next(format!(
            "stop the node in {0}, or take a backup beside it: sealog journal backup {0} DEST{1}",
            shown(&args.src),
            same_key()
        )),
        "damaged" => failure.safe(safe).next(format!(
            "restore another copy, or save what reads of this one: sealog journal repair {} DEST{}",
            shown(&args.src),
            same_key()
        )),
        _ => failure.safe(safe),
    }
}

fn text(answer: &Answer, args: &Restore) -> String {
    let Answer { store_id, from, segments, bytes, interrupted, .. } = answer;
    format!(
        "restored journal {store_id} into {} up to sequence {}: {}, {bytes} bytes, {}\n",
        shown(&args.dest),
        from.last_sequence,
        counted(*segments, "segment"),
        counted(*interrupted, "open execution"),
    )
}
