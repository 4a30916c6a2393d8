//! Anchors on the command line: printing one, reading one, and what a journal's standing to it means for the exit code.
//! The judgement is the journal's.

use std::path::Path;

use sealog_disk::ErrorKind;
use sealog_disk::real::read_file;
use sealog_journal::{Anchor, Anchoring, Standing, audit};
use serde::{Deserialize, Serialize};

use crate::args::{KeyArgs, PlaceArgs};
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::opening;
use crate::render::Render;
use crate::report::{self, hex};

/// An anchor is one short line.
const BYTES_MAX: usize = 1024;

#[derive(Deserialize, Serialize)]
struct Body {
    store_id: String,
    lineage: String,
    epoch: u64,
    sequence: u64,
    chain: String,
}

/// `sealog journal inspect DIR --head`.
///
/// # Errors
/// As every read-only verb; a damaged journal has no anchor.
pub fn print(dir: &Path, place: PlaceArgs, key: &KeyArgs, render: Render) -> Result<Exit> {
    let config = opening::for_reading(dir, place, key, render)?;
    let (audit, anchoring) =
        audit(&config, &mut || Anchoring::new(None)).map_err(|error| Failure::journal(error, dir))?;
    if !audit.is_sound() {
        return Err(report::damaged(&audit, &[], dir));
    }
    let anchor = anchoring.here(&audit);
    if render.json {
        let Anchor { epoch, sequence, .. } = anchor;
        let (store_id, lineage) = (hex(&anchor.store_id), hex(&anchor.lineage));
        render.object(&Body { store_id, lineage, epoch, sequence, chain: hex(&anchor.chain) })?;
    } else {
        render.data(&format!("{anchor}\n"))?;
    }
    Ok(Exit::Success)
}

/// The anchor of `verify --anchor`: its text, or a file with its text or its JSON.
///
/// # Errors
/// Exit 2 for anything else.
pub fn read(given: &str) -> Result<Anchor> {
    if let Some(anchor) = parse(given) {
        return Ok(anchor);
    }
    let unusable = |what: &str| {
        Failure::usage("bad_anchor", what)
            .next("give what `sealog journal inspect DIR --head` printed, or a file of it")
    };
    let file = read_file(Path::new(given), BYTES_MAX).map_err(|error| match error.kind {
        ErrorKind::NotFound => unusable("this is neither an anchor nor a file").because(error),
        _ => unusable("the file of the anchor cannot be read").unread(error),
    })?;
    let text = std::str::from_utf8(&file.bytes).ok();
    text.and_then(parse).ok_or_else(|| unusable("the file holds no anchor"))
}

fn parse(text: &str) -> Option<Anchor> {
    Anchor::parse(text).or_else(|| {
        let Body { store_id, lineage, epoch, sequence, chain } = serde_json::from_str(text).ok()?;
        let line = format!(
            "sealog-anchor-1 store {store_id} lineage {lineage} epoch {epoch} sequence {sequence} chain {chain}"
        );
        Anchor::parse(&line)
    })
}

pub fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Matches => "matches",
        Standing::Contained => "contained",
        Standing::Behind => "behind",
        Standing::Diverged => "diverged",
        Standing::OtherJournal => "other_journal",
    }
}

/// What is not the anchor's history is an alarm like damage.
///
/// # Errors
/// Exit 13: the journal was set back, went another way, or is another one.
pub fn judge(standing: Option<Standing>, dir: &Path, is_backup: bool) -> Result<()> {
    let (code, what, next) = match standing {
        None | Some(Standing::Matches | Standing::Contained) => return Ok(()),
        Some(Standing::Behind) if is_backup => (
            "rolled_back",
            "the backup ends before the anchor: it was taken before it, or is an older copy",
            "look for a later backup; without one, what came between is not in it".to_owned(),
        ),
        Some(Standing::Behind) => (
            "rolled_back",
            "the journal ends before the anchor: it was set back, or is an older copy",
            format!("find out who replaced {}; do not let it go on, restore the newest backup", shown(dir)),
        ),
        Some(Standing::Diverged) => (
            "diverged",
            "the journal does not contain the anchor: it went another way",
            format!("find the journal that does; {} is a copy that went on by itself", shown(dir)),
        ),
        Some(Standing::OtherJournal) => (
            "wrong_store",
            "the anchor is one of another journal",
            "name the journal whose store id stands in the anchor".to_owned(),
        ),
    };
    Err(Failure::new(Exit::Damaged, code, what)
        .safe("no byte on disk was changed; what the journal holds is sound in itself")
        .next(next))
}
