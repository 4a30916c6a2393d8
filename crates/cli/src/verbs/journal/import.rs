//! `sealog journal import FILE DIR`: a new journal from an export. All of it is made beside its place and checked there;
//! one rename makes it the journal in DIR.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealog_disk::real::{Sibling, open_regular};
use sealog_disk::{Disk, ErrorKind};
use sealog_engine::store::journal::transfer::{
    Broken, Checked, ImportError, Imported, check, import, lines::LineError,
};
use sealog_journal::{Config, Contents, JournalError, audit, discard_built, look};
use sealog_seal::StoreId;
use serde::Serialize;

use crate::again::same_key;
use crate::args::Import;
use crate::building::{at_place, not_committed};
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::opening::{self, Ready};
use crate::places;
use crate::render::Render;
use crate::report::counted;
use crate::survey::Survey;

#[derive(Serialize)]
struct Answer {
    store_id: String,
    directory: String,
    key_file: Option<String>,
    from_store_id: String,
    executions: u64,
    events: u64,
    fenced: bool,
    /// Executions of which the export lacks something.
    skipped: Vec<String>,
}

pub fn run(args: &Import, render: Render) -> Result<Exit> {
    let mut input = Input::open(&args.file)?;
    let checked = input.check()?;
    if (checked.gaps > 0 || !checked.incomplete.is_empty()) && !args.skip_incomplete {
        let lacks = match checked.incomplete.len() as u64 {
            0 => "executions may be missing in it".to_owned(),
            count => format!("{} in it may lack events", counted(count, "execution")),
        };
        let what = format!("the export was made of a damaged journal: {lacks}");
        return Err(Failure::new(Exit::Damaged, "incomplete_export", what)
            .safe("nothing was made")
            .next("leave them out: run the same command with --skip-incomplete"));
    }
    let dir = &args.dir;
    vacant(args, render)?;
    let (sibling, disk) =
        Sibling::open(dir, args.place.allow_network_fs).map_err(|error| at_place(error, dir))?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let leftover = clear(&*disk);
    let ready = match opening::init_beside(dir, Arc::clone(&disk), leftover, args.place, &args.key, render) {
        Ok(ready) => ready,
        Err(failure) => {
            // What was begun stays: its key file may be there, and then the same command completes it.
            sibling.discard();
            return Err(failure);
        }
    };
    let key_file = ready.made.as_ref().and_then(|made| made.key_file.clone());
    match make(&ready, &mut input, &checked, dir) {
        Ok(done) => {
            sibling.commit().map_err(|failed| not_committed(failed, dir))?;
            tell(args, &ready, &checked, done, key_file, render)
        }
        Err(failure) => {
            discard_built(&*disk);
            sibling.discard();
            // A key that was made for nothing.
            if let Some(path) = &key_file
                && let Err(errno) = rustix::fs::unlink(path)
            {
                render.note(&format!("{} was not removed: {errno}", shown(path)));
            }
            Err(failure)
        }
    }
}

struct Input<'a> {
    path: &'a Path,
    file: File,
}

impl Input<'_> {
    fn open(path: &Path) -> Result<Input<'_>> {
        let file = open_regular(path).map_err(|error| match error.kind {
            // It is read twice, so that nothing is made of half an export.
            ErrorKind::Unsupported => bad_export(path, "it is no regular file")
                .next("write what comes from a pipe into a file first"),
            _ => bad_export(path, "it is no regular file that can be read").unread(error),
        })?;
        Ok(Input { path, file })
    }

    fn reader(&mut self) -> Result<BufReader<&File>> {
        self.file.rewind().map_err(|error| bad_export(self.path, "it cannot be read").because(error))?;
        Ok(BufReader::with_capacity(256 << 10, &self.file))
    }

    fn check(&mut self) -> Result<Checked> {
        let checked = check(&mut self.reader()?);
        checked.map_err(|broken| refused(self.path, broken))
    }
}

fn bad_export(path: &Path, why: &str) -> Failure {
    Failure::usage("bad_export", format!("{}: {why}", shown(path)))
        .safe("nothing was made")
        .next("name a file that sealog journal export wrote, whole and unchanged")
}

fn refused(path: &Path, broken: Broken) -> Failure {
    let newer = matches!(broken, Broken::Line { why: LineError::Newer, .. });
    let failure = bad_export(path, &broken.to_string());
    match (newer, broken) {
        (true, _) => Failure::new(Exit::NewerFormat, "newer_format", failure.what)
            .next("use the release of sealog that wrote this export"),
        (false, Broken::Input(error)) => failure.because(error),
        (false, Broken::Line { .. } | Broken::Order { .. } | Broken::CutShort) => failure,
    }
}

/// A journal at the place is named as one; what else stands there is found when the directory beside it is made.
fn vacant(args: &Import, render: Render) -> Result<()> {
    let dir = &args.dir;
    let Some(disk) = places::open_if_there(dir, args.place, render)? else { return Ok(()) };
    match look(&disk).map_err(|error| Failure::journal(error, dir))? {
        Contents::Journal { .. } => Err(Failure::journal(JournalError::AlreadyExists, dir)),
        Contents::Leftovers { .. } | Contents::Empty => Ok(()),
    }
}

/// Clears away what an interrupted import left beside the place; its store id, so that the key file it may have written
/// fits again.
fn clear(disk: &dyn Disk) -> Option<StoreId> {
    let left = match look(disk) {
        Ok(Contents::Journal { store_id }) => Some(store_id),
        Ok(Contents::Leftovers { store_id }) => store_id,
        Ok(Contents::Empty) | Err(_) => None,
    };
    discard_built(disk);
    left
}

fn make(ready: &Ready, input: &mut Input<'_>, checked: &Checked, dir: &Path) -> Result<Imported> {
    let path = input.path;
    let done = import(&ready.config, &mut input.reader()?, checked).map_err(|error| match error {
        ImportError::Broken(broken) => refused(path, broken),
        ImportError::Changed => bad_export(path, "it changed while it was read"),
        ImportError::Journal(error) => Failure::journal(error, dir).safe("nothing was made"),
    })?;
    verify(&ready.config, done, dir)?;
    Ok(done)
}

/// What was written is read back, every tag and every result, before it gets its place.
fn verify(config: &Config, done: Imported, dir: &Path) -> Result<()> {
    let (audit, survey) =
        audit(config, &mut Survey::checking).map_err(|error| Failure::journal(error, dir))?;
    let there = survey.executions.len() as u64 + survey.forgotten;
    if audit.is_sound() && survey.findings.is_empty() && there == done.executions {
        return Ok(());
    }
    Err(Failure::new(Exit::Failed, "internal", "what was written does not read back as it should")
        .safe("nothing was made"))
}

fn tell(
    args: &Import,
    ready: &Ready,
    checked: &Checked,
    done: Imported,
    key_file: Option<PathBuf>,
    render: Render,
) -> Result<Exit> {
    let mut skipped: Vec<String> = checked.incomplete.iter().map(ToString::to_string).collect();
    skipped.sort();
    if render.json {
        render.object(&Answer {
            store_id: ready.store_id.to_string(),
            directory: args.dir.to_string_lossy().into_owned(),
            key_file: key_file.as_ref().map(|path| path.to_string_lossy().into_owned()),
            from_store_id: StoreId(checked.store_id).to_string(),
            executions: done.executions,
            events: done.events,
            fenced: done.fenced,
            skipped,
        })?;
    } else {
        let counts = format!("{}, {}", counted(done.executions, "execution"), counted(done.events, "event"));
        let mut text = format!("created journal {} in {}: {counts}\n", ready.store_id, shown(&args.dir));
        if let Some(path) = &key_file {
            text += &format!("key file: {}\n", shown(path));
        }
        for id in &skipped {
            text += &format!("left out: {id}\n");
        }
        render.data(&text)?;
    }
    if let Some(path) = &key_file {
        render
            .note(&format!("keep a copy of {} elsewhere: without it nothing can be read again", shown(path)));
    }
    if done.fenced {
        render.note(&format!(
            "the new journal is fenced: work that it does not know may have been done elsewhere; once that is out of the \
             question: sealog journal unfence {}{}",
            shown(&args.dir),
            same_key()
        ));
    }
    Ok(Exit::Success)
}
