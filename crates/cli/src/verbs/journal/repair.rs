//! `sealog journal repair DIR DEST`: a sound journal out of a damaged one, elsewhere, with a list of every loss.

use std::fmt::Write as _;
use std::sync::Arc;

use sealog_disk::Disk;
use sealog_events::ExecutionId;
use sealog_journal::{JournalError, Loss, Repaired, StreamId, repair};
use serde::Serialize;

use crate::again::same_key;
use crate::args::Repair;
use crate::building;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::opening;
use crate::places;
use crate::render::Render;
use crate::report::{self, GapBody, ProblemBody, TailBody, counted, hex};

#[derive(Serialize)]
struct Answer {
    store_id: String,
    directory: String,
    records: u64,
    executions: u64,
    last_sequence: u64,
    fenced: bool,
    /// They end with outcome unknown at the next start.
    interrupted: Vec<String>,
    losses: Vec<LossBody>,
    gaps: Vec<GapBody>,
    problems: Vec<ProblemBody>,
    tail: Option<TailBody>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum LossBody {
    /// Its creation does not read; nothing of it is kept.
    Execution { execution_id: String, events_read: u64 },
    /// From the first hole on. `events_read` of them were read and have lost their place.
    Events { execution_id: String, first_event: u64, last_event: u64, events_read: u64 },
}

impl LossBody {
    fn new(loss: &Loss) -> LossBody {
        match *loss {
            Loss::Stream { stream, events } => {
                LossBody::Execution { execution_id: id(stream), events_read: events }
            }
            Loss::Events { stream, first_event, last_event, readable } => {
                LossBody::Events { execution_id: id(stream), first_event, last_event, events_read: readable }
            }
        }
    }

    fn line(&self) -> String {
        match self {
            LossBody::Execution { execution_id, events_read } => {
                format!(
                    "execution {execution_id}: its creation does not read; {} without it",
                    counted(*events_read, "event")
                )
            }
            LossBody::Events { execution_id, first_event, last_event, events_read } => format!(
                "execution {execution_id}: events {first_event} to {last_event}, {events_read} of them read and without \
                 their place"
            ),
        }
    }
}

fn id(stream: StreamId) -> String {
    ExecutionId::from_bytes(stream.0).to_string()
}

pub fn run(args: &Repair, render: Render) -> Result<Exit> {
    places::outside(&args.dir, &args.dest)?;
    let config = opening::for_salvage(&args.dir, args.place, &args.key, render)?;
    let build = |target: &Arc<dyn Disk>| repair(&config, target);
    let done = building::build(&args.dest, args.place, build, |error| failed(error, args))?;
    let answer = answer(&done, args);
    if render.json {
        render.object(&answer)?;
    } else {
        render.data(&text(&answer))?;
    }
    let all_reads = answer.gaps.is_empty() && answer.losses.is_empty() && answer.problems.is_empty();
    render.note(match (done.lacks_work, done.copied && all_reads) {
        (false, _) => {
            "every record of it reads: the new one is the same journal once more, and only one of the two may go on"
        }
        (true, true) => "every record of the backup reads",
        (true, false) => "the damaged journal was not touched; keep it until nothing of it is missed",
    });
    if done.fenced {
        let (dest, key) = (shown(&args.dest), same_key());
        let (why, when) = match (done.lacks_work, done.copied) {
            (true, false) => ("what it does not know may have been lost", "to let it take new work"),
            (true, true) => (
                "the journal that the backup is of may have done what it does not know",
                "once that is out of the question",
            ),
            (false, _) => ("so was the one that it was made from", "to let it take new work"),
        };
        render.note(&format!("the new one is fenced: {why}; {when}: sealog journal unfence {dest}{key}"));
    }
    Ok(Exit::Success)
}

fn failed(error: JournalError, args: &Repair) -> Failure {
    let failure = Failure::making(error, &args.dir, &args.dest);
    failure.safe("the damaged journal was not touched, and nothing was made at the target")
}

fn answer(done: &Repaired, args: &Repair) -> Answer {
    Answer {
        store_id: hex(&done.store_id),
        directory: args.dest.to_string_lossy().into_owned(),
        records: done.records,
        executions: done.streams,
        last_sequence: done.last_sequence,
        fenced: done.fenced,
        interrupted: done.interrupted.iter().map(|stream| id(*stream)).collect(),
        losses: done.losses.iter().map(LossBody::new).collect(),
        gaps: report::gap_bodies(&done.gaps),
        problems: report::problem_bodies(&done.problems, &[]),
        tail: done.tail.as_ref().map(TailBody::new),
    }
}

fn text(answer: &Answer) -> String {
    let Answer { store_id, records, executions, interrupted, .. } = answer;
    let mut text = format!(
        "repaired journal {store_id}: kept {}, {}; {} will end as unknown\n",
        counted(*records, "record"),
        counted(*executions, "execution"),
        counted(interrupted.len() as u64, "execution"),
    );
    for problem in &answer.problems {
        let _ = writeln!(text, "damaged: {}", problem.line());
    }
    for gap in &answer.gaps {
        let _ = writeln!(text, "gap: {}", gap.line());
    }
    for loss in &answer.losses {
        let _ = writeln!(text, "lost: {}", loss.line());
    }
    if let Some(tail) = &answer.tail {
        let _ = writeln!(text, "left behind: {}", tail.line());
    }
    text
}
