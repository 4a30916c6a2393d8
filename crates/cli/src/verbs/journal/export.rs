//! `sealog journal export DIR`: every execution as JSON lines, as far as the journal reads.

use std::io::BufWriter;
use std::path::Path;

use sealog_disk::real::{NewFile, write_failed};
use sealog_engine::store::journal::transfer::{ExportError, Exported, export};
use sealog_events::ExecutionId;
use sealog_journal::Config;
use serde::Serialize;

use super::inspect::not_found;
use crate::args::Export;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::keys::new::not_written;
use crate::keys::sweep_beside;
use crate::opening;
use crate::output::output;
use crate::places;
use crate::render::{Render, output_failed};
use crate::report::{self, GapBody, Verdict, counted};

#[derive(Serialize)]
struct Answer {
    verdict: Verdict,
    file: String,
    executions: u64,
    events: u64,
    forgotten: u64,
    missing: u64,
    partial: bool,
    gaps: Vec<GapBody>,
}

pub fn run(args: &Export, render: Render) -> Result<Exit> {
    args.output.iter().try_for_each(|path| places::outside(&args.dir, path))?;
    let config = opening::for_reading(&args.dir, args.place, &args.key, render)?;
    let only = match args.execution.as_deref().map(ExecutionId::parse) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => return Err(not_found(&args.dir)),
    };
    let done = match &args.output {
        Some(path) => to_file(&config, only, path, &args.dir)?,
        None => {
            let mut output = BufWriter::new(output().map_err(output_failed)?);
            export(&config, only, &mut output).map_err(|error| failed(error, &args.dir))?
        }
    };
    if done.executions == 0 && done.missing == 0 && only.is_some() && done.audit.is_sound() {
        return Err(not_found(&args.dir));
    }
    tell(&done, args, render)?;
    match done.audit.is_sound() {
        true => Ok(Exit::Success),
        false => Err(report::damaged(&done.audit, &[], &args.dir)),
    }
}

/// Nothing stands under the name before all of it does.
fn to_file(config: &Config, only: Option<ExecutionId>, path: &Path, dir: &Path) -> Result<Exported> {
    sweep_beside(path);
    let file = NewFile::create(path).map_err(|error| not_written(path, error))?;
    let mut output = BufWriter::with_capacity(256 << 10, file);
    let to_file = |error: &std::io::Error| not_written(path, write_failed(error));
    let done = export(config, only, &mut output).map_err(|error| match error {
        ExportError::Output(error) => to_file(&error),
        other => failed(other, dir),
    })?;
    let found = done.executions > 0 || done.missing > 0 || only.is_none();
    if found {
        let file = output.into_inner().map_err(|error| to_file(error.error()))?;
        file.publish().map_err(|error| not_written(path, error))?;
    }
    Ok(done)
}

fn tell(done: &Exported, args: &Export, render: Render) -> Result<()> {
    let gaps = report::gap_bodies(&done.audit.gaps);
    let summary = format!(
        "{}, {}, {} forgotten and left out",
        counted(done.executions, "execution"),
        counted(done.events, "event"),
        done.forgotten
    );
    match (&args.output, render.json) {
        (Some(path), true) => render.object(&Answer {
            verdict: Verdict::of(&done.audit, &[]),
            file: path.to_string_lossy().into_owned(),
            executions: done.executions,
            events: done.events,
            forgotten: done.forgotten,
            missing: done.missing,
            partial: done.partial,
            gaps,
        })?,
        (Some(path), false) => render.data(&format!("{}: {summary}\n", shown(path)))?,
        (None, _) => render.note(&summary),
    }
    for gap in &report::gap_bodies(&done.audit.gaps) {
        render.note(&format!("gap: {}", gap.line()));
    }
    if done.partial {
        render.note("there may be executions that are not in it: an import of it is fenced");
    }
    for remark in report::remarks(&done.audit) {
        render.note(&remark);
    }
    Ok(())
}

fn failed(error: ExportError, dir: &Path) -> Failure {
    match error {
        ExportError::Journal(error) => Failure::journal(error, dir),
        ExportError::Output(error) => output_failed(error),
        ExportError::UnknownRecord { .. } => Failure::new(Exit::Damaged, "unknown_record", error.to_string())
            .next("use the release of sealog that wrote this journal"),
        ExportError::Moved => {
            Failure::new(Exit::TryAgain, "journal_moved", "the journal changed while it was read")
                .next("run the same command again")
        }
    }
}
