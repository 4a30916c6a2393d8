//! Secrets for new slots: a key file that is made if it is not there, a passphrase, a recovery secret. Whatever is written
//! to a file is durable before the slot that needs it is made.

use std::path::{Path, PathBuf};

use sealog_disk::real::create_secret_file;
use sealog_disk::{DiskError, ErrorKind};
use sealog_seal::{KeyFile, Secret, StoreId, recovery_text};
use zeroize::Zeroizing;

use super::{key_file, passphrase_file, prompt, write};
use crate::args::AddSlot;
use crate::exit::{self, Exit};
use crate::failure::{Failure, Result, shown};
use crate::opening::{no_randomness, random};
use crate::render::Render;

/// A secret for a slot, and the file that was made for it.
#[derive(Debug)]
pub struct NewSecret {
    pub secret: Secret,
    pub made: Option<PathBuf>,
}

/// What `add-slot` names, else a passphrase from the terminal.
///
/// # Errors
/// Exit 2 for a source that is not what it must be, 1 if a new file cannot be written.
pub fn secret(args: &AddSlot, store_id: StoreId, render: Render) -> Result<NewSecret> {
    if let Some(path) = &args.new_key_file {
        return new_key_file(path, store_id);
    }
    let secret = match &args.new_passphrase_file {
        Some(path) => passphrase_file(path, render)?.secret,
        None => prompt::new_passphrase()?,
    };
    Ok(NewSecret { secret, made: None })
}

fn new_key_file(path: &Path, store_id: StoreId) -> Result<NewSecret> {
    match key_file(path)? {
        Some(key) if key.store_id.is_some_and(|id| id != store_id) => {
            Err(Failure::usage("bad_key_file", format!("{}: it belongs to another journal", shown(path)))
                .next("name a file that does not exist yet"))
        }
        Some(key) => Ok(NewSecret { secret: key.secret, made: None }),
        None => {
            let key = KeyFile::generate(store_id, &mut random).map_err(|_| no_randomness())?;
            write(path, &key).map_err(|error| not_written(path, error))?;
            Ok(NewSecret { secret: key.secret(), made: Some(path.to_owned()) })
        }
    }
}

/// A recovery secret that somebody is going to keep.
pub struct Recovery {
    pub secret: Secret,
    text: Zeroizing<String>,
    file: Option<PathBuf>,
}

impl Recovery {
    /// Draws one. With a file it stands there when this returns; without one there must be a terminal to show it on.
    ///
    /// # Errors
    /// Exit 2 without either, 1 if the file cannot be written or exists.
    pub fn make(file: Option<&Path>) -> Result<Recovery> {
        if file.is_none() {
            prompt::can_show()?;
        }
        let text = recovery_text(&mut random).map_err(|_| no_randomness())?;
        if let Some(path) = file {
            let line = Zeroizing::new(format!("{}\n", *text));
            create_secret_file(path, line.as_bytes()).map_err(|error| not_written(path, error))?;
        }
        let secret = Secret::passphrase(text.as_bytes())
            .map_err(|error| Failure::new(Exit::Failed, "internal", error.to_string()))?;
        Ok(Recovery { secret, text, file: file.map(Path::to_owned) })
    }

    /// Shows it on the terminal, if it does not stand in a file.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn show(&self) -> Result<()> {
        match &self.file {
            Some(_) => Ok(()),
            None => prompt::show_once("recovery secret, shown this once", &self.text),
        }
    }
}

/// A new file for a secret or a keyring could not be made.
pub fn not_written(path: &Path, error: DiskError) -> Failure {
    let failure = match error.kind {
        ErrorKind::AlreadyExists => Failure::new(
            Exit::Failed,
            "file_exists",
            format!("{}: there is a file of that name", shown(path)),
        )
        .next("name a file that does not exist yet"),
        ErrorKind::Full => {
            Failure::new(Exit::TryAgain, "disk_full", format!("{}: there is no room for it", shown(path)))
                .safe("no file was made")
                .next("free space, then run the same command again")
        }
        _ => {
            let (exit, code) = exit::of_outside(&error, "file_not_written");
            let next = match exit {
                Exit::TryAgain => "free descriptors, check the disk, then run the same command again",
                _ => "name a place that can be written",
            };
            Failure::new(exit, code, format!("{}: it cannot be written", shown(path))).next(next)
        }
    };
    failure.because(error)
}
