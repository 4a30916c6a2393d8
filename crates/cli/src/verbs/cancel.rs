//! `sealog cancel ID`: asks a node to stop an execution.

use std::path::Path;

use sealog_client::{Client, ClientError};
use serde::Serialize;

use crate::again::same_asked;
use crate::args::asking::Cancel;
use crate::asked::{by_reason, not_answered, not_found, refused};
use crate::asking;
use crate::exit::Exit;
use crate::failure::{Failure, NOTHING_CHANGED, Result, shown};
use crate::render::Render;
use crate::runtime::runtime;

#[derive(Serialize)]
struct Answer<'a> {
    execution_id: &'a str,
    status: &'static str,
}

pub fn run(args: &Cancel, render: Render) -> Result<Exit> {
    let client = asking::client(&args.node)?;
    runtime()?.block_on(ask(args, &client))?;
    if render.json {
        render.object(&Answer { execution_id: &args.execution, status: "cancellation_requested" })?;
    } else {
        render.note("asked it to stop; its last event says what came of that");
    }
    Ok(Exit::Success)
}

async fn ask(args: &Cancel, client: &Client) -> Result<()> {
    match client.cancel(&args.execution).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(nothing_to_cancel(args, client).await),
        Err(error) => Err(by_reason(not_cancelled(error, args), client).await),
    }
}

/// The node answers the same for what it does not know and for what has ended; its state tells them apart.
async fn nothing_to_cancel(args: &Cancel, client: &Client) -> Failure {
    let what = match client.snapshot(&args.execution).await {
        Ok(None) => return not_found(),
        Ok(Some(snapshot)) => format!("the execution has ended: {}", snapshot.status),
        Err(_) => "the execution is not known, or it has ended".to_owned(),
    };
    Failure::new(Exit::NotFound, "nothing_to_cancel", what).next(look(args))
}

fn look(args: &Cancel) -> String {
    format!("see what became of it: sealog show {}{}", shown(Path::new(&args.execution)), same_asked())
}

/// A node that says no has stopped nothing; whether one that said nothing did, the execution tells.
fn not_cancelled(error: ClientError, args: &Cancel) -> Failure {
    if matches!(&error, ClientError::Api(api) if api.status == 503) {
        return refused(error.to_string()).safe(NOTHING_CHANGED).because(error);
    }
    let failure = not_answered(error, Exit::OutcomeUnknown);
    match failure.exit {
        Exit::OutcomeUnknown => failure.safe("whether it was asked to stop is not known").next(look(args)),
        _ => failure,
    }
}
