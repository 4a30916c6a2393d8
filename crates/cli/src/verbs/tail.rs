//! `sealog tail ID`: one execution's events as they are, and with `-f` as they come, across lost connections.

use serde::Deserialize;

use crate::again::same_asked;
use crate::args::asking::Tail;
use crate::asked::{Asked, read_snapshot};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::following::{self, EventError, Printer, Source, Target};
use crate::render::Render;
use crate::runtime::runtime;

/// What of a snapshot says how far the execution came.
#[derive(Deserialize)]
struct Head {
    status: String,
    last_sequence: u64,
    target: Option<Target>,
    error: Option<EventError>,
}

pub fn run(args: &Tail, render: Render) -> Result<Exit> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let asked = Asked::open(&args.from, render)?;
        tail(args, &asked, render).await
    })
}

async fn tail(args: &Tail, asked: &Asked, render: Render) -> Result<Exit> {
    let snapshot = asked.snapshot(&args.execution).await?;
    let mut head: Head = read_snapshot(&snapshot)?;
    let last_sequence = head.last_sequence;
    let goes_on = args.follow && matches!(asked, Asked::Node(_));
    let mut source = asked.events(&args.execution, args.after).await?;
    let mut printer = Printer::new(render);
    let (mut at, mut resumed) = (args.after, 0);
    while goes_on || at < last_sequence {
        let Some(json) = source.next().await? else { break };
        if source.resumed() > resumed {
            resumed = source.resumed();
            render.note(&format!("the connection was lost; it goes on behind event {at}"));
        }
        printer.event(json)?;
        at += 1;
    }
    if let Some(outcome) = printer.end()? {
        return outcome;
    }
    // The end may lie before the place that was asked for; whoever followed learns of it only now.
    if goes_on {
        head = read_snapshot(&asked.snapshot(&args.execution).await?)?;
    }
    if let Some(outcome) = following::outcome(head.status, head.error, head.target.as_ref()) {
        return outcome;
    }
    // Nobody writes a journal that is only read: what it holds is all there will be.
    if args.follow && matches!(source, Source::Journal(_)) {
        let what = format!(
            "the execution had not ended when the journal was last written, behind event {last_sequence}"
        );
        return Err(Failure::new(Exit::OutcomeUnknown, "not_ended", what)
            .safe("nothing is sent again; the next start of a node ends it as failed")
            .next(format!("start the node again: sealog serve{}", same_asked())));
    }
    Ok(Exit::Success)
}
