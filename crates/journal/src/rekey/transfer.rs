//! A keyring out of a journal and back into one whose copies were destroyed (JK-57). The exported bytes are a keyring as
//! it stands on disk: useless without one of its secrets.

use std::fmt;

use sealog_seal::{Keyring, KeyringError, Outline, StoreId};

use super::{change_error, facts, hedged::Hedged, uses::Uses};
use crate::config::Config;
use crate::error::{JournalError, Result};
use crate::store::{self, KeyringCopy, Store, keyring_name};
use crate::{KeyFacts, keyring_files, lock};

/// The bytes of the keyring that counts, opened before. Needs no lock.
///
/// # Errors
/// As every opening.
pub fn export_keyring(config: &Config) -> Result<(Vec<u8>, KeyFacts)> {
    let store = Store::open(config)?;
    let uses = Uses::look(&*store.disk)?;
    Ok((store.keyring.encode(), facts(&store, &uses, true)))
}

/// Why a keyring is not put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyringRefusal {
    /// One of the same or a higher generation stands here.
    NotNewer { here: u64, given: u64 },
    /// Files name a root key that it does not hold: it is older than they are.
    LacksKeys,
}

impl fmt::Display for KeyringRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyringRefusal::NotNewer { here, given } => {
                write!(f, "it has generation {given}, and generation {here} is here")
            }
            KeyringRefusal::LacksKeys => {
                f.write_str("the journal has segments or a head under a key that it does not hold")
            }
        }
    }
}

/// What an import came to.
#[derive(Clone, Debug)]
pub struct Imported {
    pub facts: KeyFacts,
    /// Both copies had these bytes already.
    pub unchanged: bool,
    /// Issued anew above the generation that was here.
    pub reissued: bool,
}

/// Puts `bytes`, an exported keyring, in the place of both copies. `replace` overrules [`KeyringRefusal`].
///
/// # Errors
/// `Locked` beside a running node; `NoJournal`, `Missing` without `store`; `KeyringDamaged`, `WrongStore`, `WrongKey`,
/// `NewerFormat` of the given bytes; `KeyringRefused`; `NewerFormat` or `WrongStore` of a copy that is here; or a storage error, after
/// which either may count.
pub fn import_keyring(config: &Config, bytes: &[u8], replace: bool) -> Result<Imported> {
    let disk = &*config.disk;
    let _held = lock::take(disk, &*config.clock, config.tuning.lock_wait)?;
    let file = store::read_store(disk, store::has_data(disk)?)?;
    let store_id = StoreId(file.store_id);
    let given = Keyring::open(bytes, Some(store_id), &config.secrets).map_err(store::keyring_error)?;
    let copies = [0, 1].map(|copy| store::read_optional(disk, &keyring_name(copy)));
    let [first, second] = copies;
    let copies = [first?, second?];
    lock::note(disk, &*config.clock);
    let uses = Uses::look(disk)?;
    let unchanged = copies.iter().all(|copy| copy.as_deref() == Some(bytes));
    let here = highest(&copies, store_id, given.generation(), replace)?;
    let (keyring, reissued) = if unchanged {
        (given, false)
    } else {
        // The one good copy of exactly this keyring is no reason to refuse it.
        let same = copies.iter().flatten().any(|copy| copy == bytes);
        let later = here.filter(|here| *here >= given.generation() && !(same && *here == given.generation()));
        let refusal = match later {
            Some(here) => Some(KeyringRefusal::NotNewer { here, given: given.generation() }),
            None if uses.lacking(&given) => Some(KeyringRefusal::LacksKeys),
            None => None,
        };
        if let Some(refusal) = refusal.filter(|_| !replace) {
            return Err(JournalError::KeyringRefused(refusal));
        }
        match later {
            Some(here) => (given.reissue_above(here, &mut Hedged::new(config)).map_err(change_error)?, true),
            None => (given, false),
        }
    };
    if !unchanged {
        keyring_files::write_both(disk, &keyring.encode())?;
    }
    let reopened = Store::open(config)?;
    debug_assert_eq!(reopened.copies, [KeyringCopy::Good; 2]);
    Ok(Imported { facts: facts(&reopened, &uses, true), unchanged, reissued })
}

/// The highest generation that an intact copy has, or that the intact fixed part of a damaged one states: one above what
/// is `given`, since an export of its own generation is what replaces a damaged one.
fn highest(
    copies: &[Option<Vec<u8>>; 2],
    store_id: StoreId,
    given: u64,
    replace: bool,
) -> Result<Option<u64>> {
    let mut highest = None;
    for bytes in copies.iter().flatten() {
        let generation = match Outline::read(bytes, Some(store_id)) {
            Ok(outline) => Some(outline.generation),
            Err(e @ KeyringError::UnsupportedVersion(_)) => return Err(store::keyring_error(e)),
            // Another store's keyring opens nothing here, but it may be the only one of that store.
            Err(e @ KeyringError::WrongStore) if !replace => return Err(store::keyring_error(e)),
            Err(
                KeyringError::WrongStore
                | KeyringError::Damaged { .. }
                | KeyringError::BadParameters
                | KeyringError::TooLarge
                | KeyringError::DamagedBehindSlot
                | KeyringError::WrongKey
                | KeyringError::OutOfMemory
                | KeyringError::Missing,
            ) => Outline::stated_generation(bytes, store_id).filter(|stated| *stated > given),
        };
        highest = highest.max(generation);
    }
    Ok(highest)
}
