//! `sealog journal unfence DIR`: lifts the fence of a restored, repaired or imported journal.

use sealog_journal::unfence;
use serde::Serialize;

use crate::args::{ExpectArgs, Unfence};
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::opening;
use crate::render::Render;

#[derive(Serialize)]
struct Answer {
    store_id: String,
    was_fenced: bool,
    last_sequence: u64,
}

pub fn run(args: &Unfence, render: Render) -> Result<Exit> {
    // A verb that looks for a fence never makes a journal.
    let expect = ExpectArgs { no_create: true, store_id: None };
    let ready = opening::for_writing(&args.dir, args.place, expect, &args.key, render)?;
    let done = unfence(&ready.config).map_err(|error| {
        let failure = Failure::journal(error, &args.dir);
        match failure.code {
            // Whether there is a fence was seen beside the node: with none there is nothing to stop it for.
            "locked" => failure
                .safe("the fence stands; nothing was changed")
                .next("stop that node, then run the same command again"),
            _ => failure,
        }
    })?;
    let answer = Answer {
        store_id: ready.store_id.to_string(),
        was_fenced: done.was_fenced,
        last_sequence: done.sequence,
    };
    if render.json {
        render.object(&answer)?;
        return Ok(Exit::Success);
    }
    let word = if done.was_fenced { "lifted the fence" } else { "there was no fence; nothing was written" };
    render.data(&format!("{}: {word}\n", shown(&args.dir)))?;
    Ok(Exit::Success)
}
