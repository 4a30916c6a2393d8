//! `sealog journal replay DIR EXECUTION_ID`: one execution's events, offline.

use sealog_events::ExecutionId;
use sealog_journal::audit;
use serde::Serialize;

use super::inspect::not_found;
use crate::args::{Replay, ReplayFormat};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::opening;
use crate::render::Render;
use crate::report;
use crate::transcript::{Missing, Transcript};

pub fn run(args: &Replay, render: Render) -> Result<Exit> {
    let format = args.format.unwrap_or(if render.json { ReplayFormat::Jsonl } else { ReplayFormat::Sse });
    let config = opening::for_reading(&args.dir, args.place, &args.key, render)?;
    let Some(id) = ExecutionId::parse(&args.execution) else { return Err(not_found(&args.dir)) };
    let (audit, transcript) =
        audit(&config, &mut || Transcript::of(id)).map_err(|error| Failure::journal(error, &args.dir))?;
    if transcript.is_empty() {
        // In a damaged journal the execution may stand where nothing reads.
        return Err(match audit.is_sound() {
            true => not_found(&args.dir),
            false => report::damaged(&audit, &[], &args.dir),
        });
    }
    let text = transcript.print(format);
    match format {
        ReplayFormat::Text => render.foreign(&text)?,
        ReplayFormat::Sse | ReplayFormat::Jsonl | ReplayFormat::Snapshot => render.data(&text)?,
    }
    for missing in transcript.missing() {
        tell_missing(*missing, render);
    }
    if audit.is_sound() && transcript.missing().is_empty() {
        return Ok(Exit::Success);
    }
    for gap in report::gap_bodies(&audit.gaps) {
        match render.json {
            true => render.talk_object(&GapLine { gap }),
            false => render.note(&format!("gap: {}", gap.line())),
        }
    }
    Err(report::damaged(&audit, &[], &args.dir))
}

#[derive(Serialize)]
struct GapLine<T> {
    gap: T,
}

#[derive(Serialize)]
struct MissingBody {
    kind: &'static str,
    first_event: u64,
    last_event: u64,
}

fn tell_missing(missing: Missing, render: Render) {
    let Missing { first, last, why } = missing;
    match render.json {
        true => render
            .talk_object(&GapLine { gap: MissingBody { kind: why, first_event: first, last_event: last } }),
        false => render.note(&format!("gap: {why}: events {first} to {last} of this execution")),
    }
}
