//! `sealog journal rekey DIR ...`: who can open a journal, and with which keys it goes on. Stopped journals only, but for
//! looking and exporting.

use std::fmt::Write as _;
use std::path::Path;

use sealog_disk::real::{create_secret_file, read_file};
use sealog_journal::{
    Config, JournalError, KeyringRefusal, Rekey, Rekeyed, export_keyring, import_keyring, key_facts,
};
use sealog_seal::{
    ChangeError, KEYRING_BYTES_MAX, KeyringError, NewSlot, Outline, Secret, SlotParams, StoreId,
};
use serde::Serialize;

use crate::again::same_key;
use crate::args::{AddSlot, ExportKeyring, ImportKeyring, Operation, Rekey as Args, RemoveSlot, Rotate};
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::keys::new::{self, NewSecret, Recovery};
use crate::opening;
use crate::places;
use crate::render::Render;
use crate::report::hex;
use crate::report::keys::KeysBody;

const RECOVERY_SLOT: &str = "recovery";

pub fn run(args: &Args, render: Render) -> Result<Exit> {
    match &args.operation {
        Operation::List => list(args, render),
        Operation::AddSlot(add) => add_slot(args, add, render),
        Operation::RemoveSlot(remove) => remove_slot(args, remove, render),
        Operation::Rotate(rotate) => rotate_keys(args, rotate, render),
        Operation::ExportKeyring(file) => export(args, file, render),
        Operation::ImportKeyring(import) => put_back(args, import, render),
    }
}

fn list(args: &Args, render: Render) -> Result<Exit> {
    let config = config(args, render)?;
    let facts = key_facts(&config).map_err(|error| failed(error, &args.dir))?;
    let body = KeysBody::new(&facts);
    match render.json {
        true => render.object(&body)?,
        false => render.data(&body.text())?,
    }
    Ok(Exit::Success)
}

fn config(args: &Args, render: Render) -> Result<Config> {
    opening::for_reading(&args.dir, args.place, &args.key, render)
}

/// `made`: a file that the change may make.
fn begin(args: &Args, made: Option<&Path>, render: Render) -> Result<Rekey> {
    made.map_or(Ok(()), |path| places::outside(&args.dir, path))?;
    let copy = opening::copy_for_reading(&args.dir, args.place, &args.key, render)?;
    if copy.backup.is_some() {
        return Err(opening::is_backup(&args.dir));
    }
    Rekey::open(&copy.config).map_err(|error| failed(error, &args.dir))
}

/// What a change came to.
#[derive(Serialize)]
struct Answer {
    operation: &'static str,
    /// The slot that was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<String>,
    removed_slots: Vec<String>,
    dropped_root_keys: Vec<String>,
    /// The file that was made for the new slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    keyring: KeysBody,
}

fn tell(
    operation: &'static str,
    slot: Option<&str>,
    file: Option<&Path>,
    done: &Rekeyed,
    render: Render,
) -> Result<Exit> {
    let keyring = KeysBody::new(&done.facts);
    if render.json {
        render.object(&Answer {
            operation,
            slot: slot.map(ToOwned::to_owned),
            removed_slots: done.removed_slots.clone(),
            dropped_root_keys: done.dropped_roots.iter().map(|id| hex(id)).collect(),
            file: file.map(|file| file.to_string_lossy().into_owned()),
            keyring,
        })?;
        return Ok(Exit::Success);
    }
    let mut text = String::new();
    if operation == "rotate" {
        text += "new root key for everything that is written from now on\n";
    }
    let exchanged = slot.filter(|slot| done.removed_slots.iter().any(|gone| gone == slot));
    match (slot, exchanged) {
        (_, Some(slot)) => {
            let _ = writeln!(
                text,
                "slot {slot} opens the journal with its new secret, and no longer with the old one"
            );
        }
        (Some(slot), None) => {
            let _ = writeln!(text, "slot {slot} opens the journal");
        }
        (None, None) => {}
    }
    for slot in done.removed_slots.iter().filter(|gone| exchanged != Some(gone.as_str())) {
        let _ = writeln!(text, "slot {slot} is gone");
    }
    if let Some(file) = file {
        let _ = writeln!(text, "file: {}", shown(file));
    }
    for id in &done.dropped_roots {
        let _ = writeln!(text, "root key {} is gone: nothing named it any more", hex(id));
    }
    render.data(&(text + &keyring.text()))?;
    Ok(Exit::Success)
}

fn add_slot(args: &Args, add: &AddSlot, render: Render) -> Result<Exit> {
    let rekey = begin(args, add.new_key_file.as_deref(), render)?;
    let replacing = add.replacing.as_deref();
    // Tried in memory first: no file is made and nobody is asked for a slot that is refused.
    let trial = Secret::raw([0; 32]);
    let trial = NewSlot { name: &add.name, secret: &trial, params: add.stretch };
    let allowed = match replacing {
        Some(old) => rekey.keyring().replace_slot(old, &trial, &mut opening::random),
        None => rekey.keyring().add_slot(&trial, &mut opening::random),
    };
    allowed.map_err(|error| failed(JournalError::Slots(error), &args.dir))?;
    let NewSecret { secret, made } = new::secret(add, rekey.keyring().store_id(), render)?;
    let uncovered = rekey
        .keyring()
        .uncovered_slots(std::slice::from_ref(&secret))
        .map_err(|error| failed(JournalError::Slots(error), &args.dir))?;
    let stays = |name: &String| Some(name.as_str()) != replacing && !uncovered.contains(name);
    let doubled: Vec<String> =
        rekey.keyring().slots().iter().map(|slot| slot.name.clone()).filter(stays).collect();
    let slot = NewSlot { name: &add.name, secret: &secret, params: add.stretch };
    let done = rekey.add_slot(&slot, replacing).map_err(|error| not_changed(error, &args.dir))?;
    if let Some(path) = &made {
        render.note(&format!("{} opens the journal: keep it where only you read it", shown(path)));
    }
    for name in &doubled {
        render.note(&format!(
            "the slot {name} has the same secret: with one of the two removed it still opens"
        ));
    }
    tell("add-slot", Some(&add.name), made.as_deref(), &done, render)
}

fn remove_slot(args: &Args, remove: &RemoveSlot, render: Render) -> Result<Exit> {
    let done = begin(args, None, render)?
        .remove_slot(&remove.name)
        .map_err(|error| not_changed(error, &args.dir))?;
    render.note(
        "older copies of the keyring still open with it: to shut it out, rotate, compact everything, and destroy \
         earlier backups",
    );
    tell("remove-slot", None, None, &done, render)
}

fn rotate_keys(args: &Args, rotate: &Rotate, render: Render) -> Result<Exit> {
    let rekey = begin(args, rotate.recovery_file.as_deref(), render)?;
    let drop: Vec<&str> = rotate.drop_slot.iter().map(String::as_str).collect();
    // Before a file is made or a secret is shown.
    let here = |name: &&str| rekey.keyring().slots().iter().any(|slot| slot.name == **name);
    if !drop.iter().all(here) {
        return Err(failed(JournalError::Slots(ChangeError::UnknownSlot), &args.dir));
    }
    let recovery = match rotate.new_recovery {
        true => Some(Recovery::make(rotate.recovery_file.as_deref())?),
        false => None,
    };
    let slot = recovery.as_ref().map(|recovery| NewSlot {
        name: RECOVERY_SLOT,
        secret: &recovery.secret,
        params: SlotParams::DEFAULT,
    });
    let done = rekey.rotate(&drop, slot.as_ref()).map_err(|error| match &error {
        JournalError::Slots(ChangeError::SlotNotCovered { names }) => {
            let (what, next) = not_covered(names, &drop, &args.dir);
            Failure { what, ..failed(error, &args.dir) }.next(next)
        }
        _ => not_changed(error, &args.dir),
    })?;
    if let Some(recovery) = &recovery {
        recovery.show()?;
    }
    render.note("what was written before stays under the old key until it is compacted");
    let added = recovery.as_ref().map(|_| RECOVERY_SLOT);
    tell("rotate", added, rotate.recovery_file.as_deref(), &done, render)
}

#[derive(Serialize)]
struct Exported {
    operation: &'static str,
    file: String,
    store_id: String,
    generation: u64,
    bytes: usize,
}

fn export(args: &Args, export: &ExportKeyring, render: Render) -> Result<Exit> {
    places::outside(&args.dir, &export.file)?;
    let (bytes, facts) = export_keyring(&config(args, render)?).map_err(|error| failed(error, &args.dir))?;
    create_secret_file(&export.file, &bytes).map_err(|error| new::not_written(&export.file, error))?;
    if render.json {
        render.object(&Exported {
            operation: "export-keyring",
            file: export.file.to_string_lossy().into_owned(),
            store_id: StoreId(facts.store_id).to_string(),
            generation: facts.generation,
            bytes: bytes.len(),
        })?;
    } else {
        let text = format!(
            "keyring generation {}, {} bytes: {}\n",
            facts.generation,
            bytes.len(),
            shown(&export.file)
        );
        render.data(&text)?;
    }
    render.note("export again after each change of the keyring; the file needs one of its keys to be of use");
    Ok(Exit::Success)
}

#[derive(Serialize)]
struct PutBack {
    operation: &'static str,
    unchanged: bool,
    reissued: bool,
    keyring: KeysBody,
}

fn put_back(args: &Args, import: &ImportKeyring, render: Render) -> Result<Exit> {
    let bad = |why: &str| {
        Failure::usage("bad_keyring_file", format!("{}: {why}", shown(&import.file)))
            .next("name a file that export-keyring wrote")
    };
    let content = read_file(&import.file, KEYRING_BYTES_MAX)
        .map_err(|error| bad("it cannot be read, or is too long").unread(error))?;
    let outline = match Outline::read(&content.bytes, None) {
        Ok(outline) => outline,
        Err(KeyringError::UnsupportedVersion(version)) => {
            let error = JournalError::NewerFormat { file: "the keyring given".into(), version };
            return Err(failed(error, &args.dir));
        }
        Err(error) => return Err(bad(&error.to_string())),
    };
    let config = opening::for_keyring(&args.dir, args.place, &args.key, &outline, render)?;
    let done = import_keyring(&config, &content.bytes, import.replace)
        .map_err(|error| not_changed(error, &args.dir))?;
    let keyring = KeysBody::new(&done.facts);
    if render.json {
        let (unchanged, reissued) = (done.unchanged, done.reissued);
        render.object(&PutBack { operation: "import-keyring", unchanged, reissued, keyring })?;
    } else {
        let words = match done.unchanged {
            true => "the keyring is the one that is here\n",
            false => "the keyring was put back\n",
        };
        render.data(&(words.to_owned() + &keyring.text()))?;
    }
    render.note(&format!(
        "check that everything opens: sealog journal verify {}{}",
        shown(&args.dir),
        same_key()
    ));
    Ok(Exit::Success)
}

/// A change that a storage call stopped may have been made, in one copy of the keyring or in both.
fn not_changed(error: JournalError, dir: &Path) -> Failure {
    let written = matches!(error, JournalError::Disk(_));
    let failure = failed(error, dir);
    if !written || failure.exit != Exit::TryAgain {
        return failure;
    }
    let list = format!("sealog journal rekey {} list{}", shown(dir), same_key());
    failure
        .safe("each copy of the keyring is the old one or the new one, whole, and the journal opens with either")
        .next(format!("free space or check the disk, then see whether it was changed before changing it again: {list}"))
}

/// What is to become of the slots `names`. Those of `dropped` were said to go, and go in what is suggested, too.
fn not_covered(names: &[String], dropped: &[&str], dir: &Path) -> (String, String) {
    let (slots, their, them) = match names.len() {
        1 => ("slot", "its key or passphrase", "it"),
        _ => ("slots", "their keys or passphrases", "them"),
    };
    let all = dropped.iter().copied().chain(names.iter().map(String::as_str));
    let drop: String = all.map(|name| format!(" --drop-slot {}", shown(Path::new(name)))).collect();
    let (dir, key) = (shown(dir), same_key());
    (
        format!("the {slots} {} would not open what is written from now on", names.join(", ")),
        format!("give {their} as well, or drop {them}: sealog journal rekey {dir} rotate{drop}{key}"),
    )
}

fn failed(error: JournalError, dir: &Path) -> Failure {
    let (rekey, key) = (format!("sealog journal rekey {}", shown(dir)), same_key());
    let (what, next) = match &error {
        JournalError::Slots(change) => (change.to_string(), format!("{rekey} list{key}")),
        JournalError::KeyringRefused(refusal @ KeyringRefusal::NotNewer { .. }) => (
            format!("the keyring is not put back: {refusal}"),
            "where the keyring that is here opens, go on with it; where it is damaged, look for a later export. \
             --replace puts the one given over it"
                .into(),
        ),
        JournalError::KeyringRefused(refusal @ KeyringRefusal::LacksKeys) => (
            format!("the keyring is not put back: {refusal}"),
            "look for a later export or a backup; with --replace what the keyring has keys for opens again"
                .into(),
        ),
        _ => return Failure::journal(error, dir),
    };
    Failure { what, ..Failure::journal(error, dir) }.next(next).safe("the keyring is as it was")
}
