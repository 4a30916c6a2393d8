//! Where a key comes from: the same sources for every verb that opens a journal.
//!
//! Owns their order and the rules for key files. A key never comes from a flag's value and never leaves in a text.

pub mod new;
mod prompt;

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, stat};
use sealog_disk::real::{FileContent, create_secret_file, read_fd, read_file, sweep_unnamed};
use sealog_disk::{DiskError, ErrorKind};
use sealog_seal::{KEY_FILE_LENGTH, KeyFile, Secret, StoreId};
use zeroize::Zeroizing;

use crate::args::KeyArgs;
use crate::failure::{Failure, Result, shown};
use crate::places;
use crate::render::Render;

/// Longest passphrase file, in bytes.
const PASSPHRASE_BYTES_MAX: usize = 64 * 1024;

/// A secret, and the store that its file names.
pub struct Key {
    pub secret: Secret,
    pub store_id: Option<StoreId>,
    /// What was typed at the terminal for it, if it was.
    typed: Option<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never what was typed.
        f.debug_struct("Key")
            .field("secret", &self.secret)
            .field("store_id", &self.store_id)
            .finish_non_exhaustive()
    }
}

impl Key {
    /// The secret of a journal that is about to be made. What was typed is asked for once more: nothing opens a journal
    /// that was made with a slip.
    ///
    /// # Errors
    /// The two are not the same, or nothing was typed.
    pub fn for_new_journal(self) -> Result<Secret> {
        self.typed.as_ref().map_or(Ok(()), |typed| prompt::once_more(typed, "--passphrase-file FILE"))?;
        Ok(self.secret)
    }
}

/// What the command line and the service manager give.
#[derive(Debug)]
pub enum Given {
    /// Nothing is named.
    Nothing,
    /// A key file is named that does not exist: a new journal may write it.
    Absent(PathBuf),
    /// At least one.
    Keys(Vec<Key>),
}

impl Given {
    /// Reads everything that is named; without a name, the service manager's credential if there is one.
    ///
    /// # Errors
    /// Exit 2 for a source that is not what it must be.
    pub fn read(args: &KeyArgs, render: Render) -> Result<Given> {
        let mut keys = Vec::new();
        let mut absent = None;
        for path in &args.key_file {
            match key_file(path)? {
                Some(key) => keys.push(key),
                // One name is a file that may be made; of several, each must be there.
                None if args.key_file.len() == 1 => absent = Some(path.clone()),
                None => return Err(no_such_key_file(path)),
            }
        }
        if let Some(descriptor) = args.key_fd {
            keys.push(key_fd(descriptor)?);
        }
        for path in &args.passphrase_file {
            keys.push(passphrase_file(path, render)?);
        }
        if args.prompt {
            let (secret, typed) = prompt::passphrase()?;
            keys.push(Key { secret, store_id: None, typed: Some(typed) });
        }
        match (absent, keys.is_empty()) {
            (Some(path), true) => Ok(Given::Absent(path)),
            (Some(path), false) => Err(no_such_key_file(&path)),
            (None, false) => Ok(Given::Keys(keys)),
            (None, true) => Ok(credential()?.map_or(Given::Nothing, |key| Given::Keys(vec![key]))),
        }
    }

    /// The secrets for a journal that is there. Where nothing is named: the key file of this store, else a
    /// passphrase from the terminal if a slot takes one.
    ///
    /// # Errors
    /// Exit 2: there is no key to try.
    pub fn secrets(self, store_id: StoreId, takes_passphrase: bool) -> Result<Vec<Secret>> {
        match self {
            Given::Keys(keys) => Ok(keys.into_iter().map(|key| key.secret).collect()),
            Given::Absent(path) => Err(no_such_key_file(&path)),
            Given::Nothing => {
                let path = places::key_path(store_id);
                if let Some(key) = path.as_deref().map(key_file).transpose()?.flatten() {
                    return Ok(vec![key.secret]);
                }
                if takes_passphrase && prompt::possible() {
                    return Ok(vec![prompt::passphrase()?.0]);
                }
                Err(no_key(path.as_deref(), takes_passphrase))
            }
        }
    }
}

/// Reads a key file; `None` if there is nothing under that name.
///
/// # Errors
/// Exit 2 for anything but a regular file without group or other bits that holds a key.
pub fn key_file(path: &Path) -> Result<Option<Key>> {
    let bad = |why: &str| {
        Failure::usage("bad_key_file", format!("{}: {why}", shown(path)))
            .next("name the file that serve or init wrote, or one of exactly 32 bytes")
    };
    // Asked first, because opening a pipe that nobody writes to would wait for ever.
    match stat(path) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile => {
            return Err(bad("not a regular file"));
        }
        Ok(_) => {}
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(bad("cannot be read").because(std::io::Error::from(errno))),
    }
    let content = match read_file(path, KEY_FILE_LENGTH) {
        Ok(content) => content,
        Err(error) => return Err(unreadable(error, &bad)),
    };
    if !content.regular {
        return Err(bad("not a regular file"));
    }
    if content.open_to_others() {
        let next = format!("close it to others: chmod 600 {}", shown(path));
        return Err(bad("its group or others have access to it").next(next));
    }
    parse(content).map(Some).map_err(|why| bad(&why))
}

fn key_fd(descriptor: u32) -> Result<Key> {
    let bad = |why: &str| {
        Failure::usage("bad_key_fd", format!("descriptor {descriptor}: {why}"))
            .next("hand the key over on an open descriptor, as in: --key-fd 3 3<FILE")
    };
    let content = read_fd(descriptor, KEY_FILE_LENGTH).map_err(|error| unreadable(error, &bad))?;
    parse(content).map_err(|why| bad(&why))
}

fn unreadable(error: DiskError, bad: &dyn Fn(&str) -> Failure) -> Failure {
    match (error.kind, error.errno) {
        (ErrorKind::Unsupported, None) => bad("there are more bytes than a key has"),
        _ => bad("cannot be read").unread(error),
    }
}

fn parse(content: FileContent) -> std::result::Result<Key, String> {
    let bytes = Zeroizing::new(content.bytes);
    let (store_id, secret) = KeyFile::parse(&bytes).map_err(|error| error.to_string())?;
    Ok(Key { secret, store_id, typed: None })
}

fn passphrase_file(path: &Path, render: Render) -> Result<Key> {
    let bad = |why: String| {
        Failure::usage("bad_passphrase_file", format!("{}: {why}", shown(path)))
            .next("name a file whose text is the passphrase")
    };
    let content = read_file(path, PASSPHRASE_BYTES_MAX)
        .map_err(|error| bad("cannot be read, or is too long".into()).unread(error))?;
    if content.regular && content.open_to_others() {
        render.note(&format!("{} can be read by its group or others", shown(path)));
    }
    let bytes = Zeroizing::new(content.bytes);
    let secret = Secret::passphrase(&bytes).map_err(|error| bad(error.to_string()))?;
    Ok(Key { secret, store_id: None, typed: None })
}

/// `$CREDENTIALS_DIRECTORY/sealog.key`. Its permission bits are the service manager's affair.
fn credential() -> Result<Option<Key>> {
    let Some(path) = places::credential_path() else { return Ok(None) };
    let bad = |why: &str| {
        Failure::usage("bad_credential", format!("{}: {why}", shown(&path)))
            .next("give the service a credential sealog.key that is a key file")
    };
    match read_file(&path, KEY_FILE_LENGTH) {
        Ok(content) if !content.regular => Err(bad("not a regular file")),
        Ok(content) => parse(content).map(Some).map_err(|why| bad(&why)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error, &bad)),
    }
}

/// Removes what a killed process left of a key file that it was writing, where key files stand and where this one is named.
pub fn sweep(args: &KeyArgs) {
    args.key_file.iter().for_each(|path| sweep_beside(path));
    let default = places::key_path(StoreId([0; 16])).and_then(|path| path.parent().map(Path::to_owned));
    if let Some(folder) = default {
        sweep_unnamed(&folder);
    }
}

/// Removes what a killed process left of a new file where this one is to stand.
pub fn sweep_beside(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sweep_unnamed(folder.unwrap_or(Path::new(".")));
}

/// Writes a new key file: 0600, complete, durable, and never over another file.
///
/// # Errors
/// As the storage call says.
pub fn write(path: &Path, key: &KeyFile) -> std::result::Result<(), DiskError> {
    create_secret_file(path, key.encode().as_slice())
}

fn no_such_key_file(path: &Path) -> Failure {
    Failure::usage("no_such_key_file", format!("{}: there is no such file", shown(path)))
        .next("name the key file that this journal was made with")
}

fn no_key(looked_at: Option<&Path>, takes_passphrase: bool) -> Failure {
    let what = match looked_at {
        Some(path) => format!("no key was given, and there is none at {}", shown(path)),
        None => "no key was given, and neither XDG_CONFIG_HOME nor HOME says where one would be".into(),
    };
    let flags = if takes_passphrase { "--passphrase-file FILE or --prompt" } else { "--key-file FILE" };
    Failure::usage("no_key", what).next(format!("run the same command with {flags}"))
}

#[cfg(test)]
mod tests;
