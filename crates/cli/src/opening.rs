//! From a directory and a key to a journal that can be opened: what is there, what may be made, with which key.
//!
//! Owns the store-id rules: an empty directory never becomes a new journal beside a key that belongs to another one.
//! The decision ([`plan`]) is a pure table; only [`for_writing`] and [`create`] write.

mod plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealog_disk::real::{RealClock, RealDisk, RealEntropy, remove_emptied};
use sealog_disk::{Disk, DiskError, Entropy, ErrorKind, Folder, Name, io};
use sealog_engine::store::journal::EngineCodec;
use sealog_journal::{BackupDisk, Config, Contents, Create, JournalError, discard_built, look, salvage_view};
use sealog_seal::{
    KEYRING_BYTES_MAX, KeyFile, Outline, RandomUnavailable, Secret, SlotKind, SlotParams, StoreId, choose,
};

use crate::again::{same_key, same_place};
use crate::args::{ExpectArgs, KeyArgs, PlaceArgs};
use crate::building::stands;
use crate::exit::{self, Exit};
use crate::failure::{Failure, Result, shown};
use crate::keys::{self, Given};
use crate::places;
use crate::render::Render;

use plan::{Found, KeyKind, NewKey, Plan, Refusal, plan};

/// A journal ready to be opened.
#[derive(Debug)]
pub struct Ready {
    pub config: Config,
    pub store_id: StoreId,
    /// Set if this call made the journal.
    pub made: Option<Made>,
}

/// What was made.
#[derive(Debug)]
pub struct Made {
    /// The key file that was written, if one was.
    pub key_file: Option<PathBuf>,
    /// `key` or `passphrase`.
    pub slot: &'static str,
}

/// What a read-only verb opens. Nothing is written, also not the lock's note.
///
/// # Errors
/// Exit 10 where there is no journal, 2 without a usable key.
pub fn for_reading(dir: &Path, place: PlaceArgs, key: &KeyArgs, render: Render) -> Result<Config> {
    copy_for_reading(dir, place, key, render).map(|copy| copy.config)
}

/// A journal or a backup of one.
#[derive(Debug)]
pub struct Copied {
    pub config: Config,
    /// The backup behind the configuration's disk, if it is one. Its manifest is authentic.
    pub backup: Option<Arc<BackupDisk>>,
}

/// As [`for_reading`], for who must know whether it is a backup.
///
/// # Errors
/// As [`for_reading`]; 13 for a manifest that is not what the holder of the key wrote.
pub fn copy_for_reading(dir: &Path, place: PlaceArgs, key: &KeyArgs, render: Render) -> Result<Copied> {
    let given = Given::read(key, render)?;
    let journal = |error| Failure::journal(error, dir);
    let mut disk: Arc<dyn Disk> = Arc::new(places::open_existing(dir, place, render)?);
    let backup = BackupDisk::open(&disk).map_err(journal)?.map(Arc::new);
    if let Some(backup) = &backup {
        disk = Arc::clone(backup) as Arc<dyn Disk>;
    }
    match look(&*disk).map_err(journal)? {
        Contents::Journal { store_id } => {
            let secrets = given.secrets(store_id, takes_passphrase(&*disk))?;
            if let Some(backup) = &backup {
                backup.authenticate(&secrets).map_err(journal)?;
            }
            Ok(Copied { config: config(disk, secrets), backup })
        }
        Contents::Empty | Contents::Leftovers { .. } => Err(journal(match claimed(&given) {
            Some(_) => JournalError::JournalElsewhere,
            None => JournalError::NoJournal,
        })),
    }
}

/// What puts a keyring back opens: `store` is there, the keyring may not be. `given_keyring` is the one that the secrets
/// are for.
///
/// # Errors
/// As [`for_reading`].
pub fn for_keyring(
    dir: &Path,
    place: PlaceArgs,
    key: &KeyArgs,
    given_keyring: &Outline,
    render: Render,
) -> Result<Config> {
    let given = Given::read(key, render)?;
    let disk = places::open_existing(dir, place, render)?;
    no_backup(&disk, dir)?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    match look(&*disk).map_err(|error| Failure::journal(error, dir))? {
        Contents::Journal { store_id } => {
            let secrets = given.secrets(store_id, outline_takes_passphrase(given_keyring))?;
            Ok(config(disk, secrets))
        }
        Contents::Empty | Contents::Leftovers { .. } => Err(Failure::journal(JournalError::NoJournal, dir)),
    }
}

/// What a repair reads: a journal in any state that its keyring still opens.
///
/// # Errors
/// As [`for_reading`].
pub fn for_salvage(dir: &Path, place: PlaceArgs, key: &KeyArgs, render: Render) -> Result<Config> {
    let journal = |error| Failure::journal(error, dir);
    let disk: Arc<dyn Disk> = Arc::new(places::open_existing(dir, place, render)?);
    if BackupDisk::open(&disk).map_err(journal)?.is_some() {
        return for_reading(dir, place, key, render);
    }
    let given = Given::read(key, render)?;
    let disk = salvage_view(&disk).map_err(journal)?;
    match look(&*disk).map_err(journal)? {
        Contents::Journal { store_id } => {
            let secrets = given.secrets(store_id, takes_passphrase(&*disk))?;
            Ok(config(disk, secrets))
        }
        Contents::Empty | Contents::Leftovers { .. } => Err(journal(JournalError::NoJournal)),
    }
}

/// What a writer opens: the journal that is there, or a new one where that is allowed.
///
/// # Errors
/// Exit 10 where nothing may be made, 2 without a usable key, otherwise as the journal says.
pub fn for_writing(
    dir: &Path,
    place: PlaceArgs,
    expect: ExpectArgs,
    key: &KeyArgs,
    render: Render,
) -> Result<Ready> {
    let Sought { disk, found, given, kind } = seek(dir, place, key, render)?;
    match plan(found, &kind, expect.store_id, expect.no_create) {
        Plan::Open(store_id) => {
            let disk: Arc<dyn Disk> = Arc::new(disk.ok_or_else(|| refuse(Refusal::NoJournal, dir))?);
            let secrets = given.secrets(store_id, takes_passphrase(&*disk))?;
            Ok(Ready { config: config(disk, secrets), store_id, made: None })
        }
        Plan::Create { store_id, key } => {
            create(dir, disk.map(shared), place, CreateFrom { found, store_id, key, given }, render)
        }
        Plan::Refuse(refusal) => Err(match (refusal, found) {
            (Refusal::Elsewhere, Found::Journal(id)) => other_than_named(id, dir),
            _ => refuse(refusal, dir),
        }),
    }
}

fn other_than_named(id: StoreId, dir: &Path) -> Failure {
    let what = format!("this is journal {id}, and --store-id names another one");
    Failure::new(Exit::NoJournal, "journal_elsewhere", what)
        .next(format!("mount or restore the volume that belongs at {}, or correct --store-id", shown(dir)))
}

/// Makes a journal where there is none.
///
/// # Errors
/// Exit 1 if there is one, 10 beside a key that belongs to another one.
pub fn init(dir: &Path, place: PlaceArgs, key: &KeyArgs, render: Render) -> Result<Ready> {
    let Sought { disk, found, given, kind } = seek(dir, place, key, render)?;
    make(dir, disk.map(shared), place, found, (given, kind), render)
}

/// Makes a journal on an empty disk beside its place `dir`. `leftover`: the store id of an attempt that was interrupted,
/// whose key file may be there.
///
/// # Errors
/// As [`init`].
pub fn init_beside(
    dir: &Path,
    disk: Arc<dyn Disk>,
    leftover: Option<StoreId>,
    place: PlaceArgs,
    key: &KeyArgs,
    render: Render,
) -> Result<Ready> {
    let found = leftover.map_or(Found::Nothing, |id| Found::Leftovers(Some(id)));
    let key = with_leftover_key(Given::read(key, render)?, found)?;
    make(dir, Some(disk), place, found, key, render)
}

/// A new journal and nothing else.
fn make(
    dir: &Path,
    disk: Option<Arc<dyn Disk>>,
    place: PlaceArgs,
    found: Found,
    (given, kind): (Given, KeyKind),
    render: Render,
) -> Result<Ready> {
    match plan(found, &kind, None, false) {
        Plan::Create { store_id, key } => {
            create(dir, disk, place, CreateFrom { found, store_id, key, given }, render)
        }
        Plan::Open(_) => Err(Failure::journal(JournalError::AlreadyExists, dir)),
        // A key file that does not exist is looked for only where a journal is, and opens none.
        Plan::Refuse(Refusal::NoSuchKeyFile) => {
            let inspect = format!("sealog journal inspect {}{} --key-file FILE", shown(dir), same_place());
            Err(Failure::journal(JournalError::AlreadyExists, dir).next(inspect))
        }
        Plan::Refuse(Refusal::Elsewhere) => Err(refuse(Refusal::Elsewhere, dir)
            .safe("nothing was created: the key of one journal never makes another one")
            .next("name a key file that does not exist yet: --key-file FILE")),
        Plan::Refuse(refusal) => Err(refuse(refusal, dir)),
    }
}

/// What stands at a place, and the key for it.
struct Sought {
    disk: Option<RealDisk>,
    found: Found,
    given: Given,
    kind: KeyKind,
}

fn seek(dir: &Path, place: PlaceArgs, key: &KeyArgs, render: Render) -> Result<Sought> {
    let given = Given::read(key, render)?;
    keys::sweep(key);
    let disk = places::open_if_there(dir, place, render)?;
    let found = found(disk.as_ref(), dir)?;
    let (given, kind) = with_leftover_key(given, found)?;
    Ok(Sought { disk, found, given, kind })
}

fn config(disk: Arc<dyn Disk>, secrets: Vec<Secret>) -> Config {
    let config = Config::new(disk, Arc::new(RealClock::new()), Arc::new(RealEntropy), secrets);
    Config { codec: Arc::new(EngineCodec), ..config }
}

/// A backup where a writer was asked for.
pub fn is_backup(dir: &Path) -> Failure {
    let what = "this is a backup, not a journal that may be written";
    Failure::new(Exit::NoJournal, "is_backup", what).next(format!(
        "make a journal of it: sealog journal restore {0} NEWDIR{1}; or serve it as it is: sealog serve --read-only \
         --data-dir {0}{1}",
        shown(dir),
        same_key()
    ))
}

fn no_backup(disk: &RealDisk, dir: &Path) -> Result<()> {
    let manifest = Name::new(Folder::Root, "manifest").map(|name| disk.open(&name));
    if manifest.is_some_and(|opened| opened.is_ok()) { Err(is_backup(dir)) } else { Ok(()) }
}

fn found(disk: Option<&RealDisk>, dir: &Path) -> Result<Found> {
    let Some(disk) = disk else { return Ok(Found::Nothing) };
    no_backup(disk, dir)?;
    match look(disk).map_err(|error| Failure::journal(error, dir))? {
        Contents::Journal { store_id } => Ok(Found::Journal(store_id)),
        _ if places::holds_other_files(disk).map_err(|error| Failure::directory(error, dir))? => {
            Ok(Found::OtherFiles)
        }
        Contents::Empty => Ok(Found::Nothing),
        Contents::Leftovers { store_id } => Ok(Found::Leftovers(store_id)),
    }
}

/// An interrupted creation may have left its key file in the configuration directory: then that is the key.
fn with_leftover_key(given: Given, found: Found) -> Result<(Given, KeyKind)> {
    let given = match (given, found) {
        (Given::Nothing, Found::Leftovers(Some(id))) => {
            let key = places::key_path(id).as_deref().map(keys::key_file).transpose()?.flatten();
            key.map_or(Given::Nothing, |key| Given::Keys(vec![key]))
        }
        (given, _) => given,
    };
    let kind = match &given {
        Given::Nothing => KeyKind::None,
        Given::Absent(_) => KeyKind::Absent,
        Given::Keys(keys) => KeyKind::Given { store_id: claimed(&given), count: keys.len() },
    };
    Ok((given, kind))
}

fn shared(disk: RealDisk) -> Arc<dyn Disk> {
    Arc::new(disk)
}

fn claimed(given: &Given) -> Option<StoreId> {
    match given {
        Given::Keys(keys) => keys.iter().find_map(|key| key.store_id),
        Given::Nothing | Given::Absent(_) => None,
    }
}

fn refuse(refusal: Refusal, dir: &Path) -> Failure {
    match refusal {
        Refusal::NoJournal => Failure::journal(JournalError::NoJournal, dir),
        Refusal::Elsewhere => Failure::journal(JournalError::JournalElsewhere, dir),
        Refusal::OtherFiles => {
            let what = "the directory is not empty and holds no journal";
            Failure::new(Exit::NoJournal, "not_empty", what).next("name an absent or empty directory")
        }
        Refusal::NoSuchKeyFile => Failure::usage("no_such_key_file", "the key file does not exist")
            .next("name the key file that this journal was made with"),
        Refusal::TwoKeys => Failure::usage("two_keys", "a new journal is made with one key")
            .next("give one of --key-file, --key-fd and --passphrase-file"),
    }
}

struct CreateFrom {
    found: Found,
    store_id: Option<StoreId>,
    key: NewKey,
    given: Given,
}

fn create(
    dir: &Path,
    disk: Option<Arc<dyn Disk>>,
    place: PlaceArgs,
    from: CreateFrom,
    render: Render,
) -> Result<Ready> {
    let store_id = match from.store_id {
        Some(id) => id,
        None => fresh_store_id()?,
    };
    let (secret, key_file) = new_secret(from.key, from.given, store_id)?;
    key_file.iter().try_for_each(|(path, _)| places::outside(dir, path))?;
    let made_directory = disk.is_none();
    let disk: Arc<dyn Disk> = match disk {
        Some(disk) => disk,
        None => Arc::new(places::make(dir, place, render)?),
    };
    let config = config(disk, vec![secret]);
    let slot = match &config.secrets[0] {
        Secret::Raw(_) => "key",
        Secret::Passphrase(_) => "passphrase",
    };
    let create = Create {
        disk: Arc::clone(&config.disk),
        clock: Arc::clone(&config.clock),
        entropy: Arc::clone(&config.entropy),
        store_id,
        slot_name: slot,
        secret: &config.secrets[0],
        params: SlotParams::DEFAULT,
    };
    let (mut key_written, mut key_failed) = (None, None);
    let made = create.run(&mut || match &key_file {
        Some((path, key)) => match keys::write(path, key) {
            Ok(()) => {
                key_written = Some(path.as_path());
                Ok(())
            }
            Err(error) => {
                key_failed = Some(key_file_failed(path, &error));
                Err(JournalError::Disk(error))
            }
        },
        None => Ok(()),
    });
    if let Err(error) = made {
        let taken_back = matches!(from.found, Found::Nothing)
            && !matches!(error, JournalError::Locked { .. })
            && take_back(&*config.disk, key_written);
        if taken_back && made_directory {
            remove_emptied(dir);
        }
        let ours = !matches!(error, JournalError::AlreadyExists | JournalError::Locked { .. });
        let failure = key_failed.unwrap_or_else(|| Failure::journal(error, dir));
        if ours && matches!(look(&*config.disk), Ok(Contents::Journal { .. })) {
            return Err(stands(failure, dir));
        }
        return Err(match (taken_back, failure.exit) {
            (true, _) => failure.safe("no journal was made, and nothing is left of it"),
            (false, Exit::TryAgain) => failure.safe(COUNTS_FOR_NOTHING),
            (false, _) => failure,
        });
    }
    let key_file = key_file.map(|(path, _)| path);
    Ok(Ready { config, store_id, made: Some(Made { key_file, slot }) })
}

/// Takes back what a creation that failed has begun at a place that held nothing. `false` where that cannot be, or the
/// journal is there.
fn take_back(disk: &dyn Disk, key_file: Option<&Path>) -> bool {
    let Ok(_held) = disk.lock() else { return false };
    if !matches!(look(disk), Ok(Contents::Empty | Contents::Leftovers { .. })) {
        return false;
    }
    // Before the key goes it must last that there is no journal: one without its key is good for nothing.
    if disk.sync_folder(Folder::Root).is_err() {
        return false;
    }
    // The key goes first: beside an empty directory it would stand for a journal that is missing.
    if key_file.is_some_and(|path| rustix::fs::unlink(path).is_err()) {
        return false;
    }
    discard_built(disk);
    true
}

const COUNTS_FOR_NOTHING: &str = "no journal was made; what stands in the directory counts for nothing";

/// The secret of a new journal, and the key file to be written with it.
fn new_secret(key: NewKey, given: Given, store_id: StoreId) -> Result<(Secret, Option<(PathBuf, KeyFile)>)> {
    let path = match (key, given) {
        (NewKey::Given, Given::Keys(mut keys)) if !keys.is_empty() => {
            return Ok((keys.swap_remove(0).for_new_journal()?, None));
        }
        (NewKey::Given | NewKey::Named, Given::Absent(path)) => path,
        (NewKey::Given | NewKey::Named | NewKey::Default, _) => {
            places::key_path(store_id).ok_or_else(|| {
                Failure::usage("no_key_place", "neither XDG_CONFIG_HOME nor HOME says where a key file goes")
                    .next("run the same command with --key-file FILE")
            })?
        }
    };
    let key = KeyFile::generate(store_id, &mut random).map_err(|_| no_randomness())?;
    Ok((key.secret(), Some((path, key))))
}

pub fn random(buf: &mut [u8]) -> std::result::Result<(), RandomUnavailable> {
    RealEntropy.fill(buf).map_err(|_| RandomUnavailable)
}

fn fresh_store_id() -> Result<StoreId> {
    let mut id = [0; 16];
    random(&mut id).map_err(|_| no_randomness())?;
    Ok(StoreId(id))
}

pub fn no_randomness() -> Failure {
    Failure::new(Exit::TryAgain, "no_randomness", "the system gave no randomness")
        .next("run the same command again")
}

/// On a full disk another place for the key is no help, since the journal goes to the same disk as often as not: one round
/// of making room does for both.
fn key_file_failed(path: &Path, error: &DiskError) -> Failure {
    let (exit, code) = exit::of_outside(error, "key_file_not_written");
    let (what, next) = match (exit, error.kind) {
        (_, ErrorKind::Full) => {
            ("there is no room for the key file", "free space, then run the same command again")
        }
        (Exit::TryAgain, _) => (
            "the key file cannot be written now",
            "free descriptors, check the disk, then run the same command again",
        ),
        _ => (
            "the key file cannot be written",
            "name a place for the key that can be written: --key-file FILE",
        ),
    };
    Failure::new(exit, code, format!("{}: {what}", shown(path)))
        .safe(COUNTS_FOR_NOTHING)
        .next(next)
        .because(error.clone())
}

/// Whether some slot takes a passphrase, as far as that can be read without a key.
fn takes_passphrase(disk: &dyn Disk) -> bool {
    let copy = |file: &str| {
        let file = disk.open(&Name::new(Folder::Root, file)?).ok()?;
        io::read_to_vec(&*file, KEYRING_BYTES_MAX).ok()
    };
    let (first, second) = (copy("keyring.0"), copy("keyring.1"));
    choose([first.as_deref(), second.as_deref()], None)
        .is_ok_and(|choice| outline_takes_passphrase(&choice.outline))
}

fn outline_takes_passphrase(outline: &Outline) -> bool {
    outline.slots.iter().any(|slot| matches!(slot.kind, SlotKind::Passphrase(_)))
}

#[cfg(test)]
mod tests {
    use sealog_disk::Operation;

    use super::*;

    #[test]
    fn a_key_without_room_is_tried_again_and_one_without_a_place_is_moved() {
        let failed = |kind| key_file_failed(Path::new("k"), &DiskError::new(Operation::Create, kind, None));
        let full = failed(ErrorKind::Full);
        assert_eq!((full.exit.code(), full.code), (75, "disk_full"));
        assert!(full.next.contains("free space") && !full.next.contains("--key-file"), "{}", full.next);
        let busy = failed(ErrorKind::Descriptors);
        assert_eq!((busy.exit.code(), busy.code), (75, "too_many_files"));
        let denied = failed(ErrorKind::PermissionDenied);
        assert_eq!((denied.exit.code(), denied.code), (1, "key_file_not_written"));
        assert!(denied.next.contains("--key-file"), "{}", denied.next);
    }
}
