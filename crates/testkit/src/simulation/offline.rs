//! What an operator does with a stopped node, and backups: rekey, restore, unfence, each of which the power may cut
//! short. Owns the second disk that backups go to.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use sealog_disk::Disk;
use sealog_disk::sim::{Choice, SimDisk};
use sealog_journal::{
    BackupDisk, Config, Ignore, Journal, JournalError, Record, Rekey, audit, backup, key_facts, restore,
    unfence,
};
use sealog_seal::{NewSlot, Secret, SlotParams};

use super::aside;
use super::host::{Host, Records};
use super::world::World;

/// A cut: the power goes at so many operations from the beginning, and this is kept.
pub type Cut = Option<(u64, Choice)>;

/// How the keyring is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The second slot comes, or goes if it is there.
    Slot,
    /// The first slot is replaced by itself.
    Replace,
    Rotate,
}

/// Work on a stopped node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offline {
    Rekey {
        change: Change,
        cut: Cut,
    },
    /// From the backup, or from a copy of the stopped directory.
    Restore {
        from_backup: bool,
        cut: Cut,
    },
    Unfence {
        cut: Cut,
    },
    /// Everything that can be folded or dropped.
    Compact {
        cut: Cut,
    },
    /// Into a new journal, which takes the old one's place if it is told to.
    Transfer {
        replace: bool,
        cut: Cut,
    },
    /// Of a copy, damaged as the number draws.
    Repair {
        damage: u64,
        cut: Cut,
    },
    /// A node that only reads, asked for executions that the number draws.
    Read {
        looks: u64,
    },
}

/// What offline work came to.
#[derive(Debug)]
pub(super) enum Done {
    Well,
    /// The power went; what the disk holds now is to be judged as ever.
    Cut,
    /// There is another journal now, which begins with these records.
    Restored(Vec<Record>),
    /// There is another journal now, with records and sequences of its own.
    Imported(Vec<Record>),
    /// There was nothing to do it with.
    Nothing,
}

impl Done {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Done::Well => "done",
            Done::Cut => "cut short",
            Done::Restored(_) => "restored",
            Done::Imported(_) => "imported",
            Done::Nothing => "nothing to do it with",
        }
    }
}

/// The directory that backups go to.
#[derive(Debug)]
pub(super) struct Vault {
    disk: SimDisk,
    /// What the manifest there promises; `None` before the first.
    held: Option<Vec<Record>>,
    /// The journal was restored since: it may have left the line of what is here.
    strange: bool,
}

impl Default for Vault {
    fn default() -> Vault {
        Vault { disk: SimDisk::new(), held: None, strange: false }
    }
}

impl Vault {
    /// Takes a backup beside whatever runs. `Ok(None)`: it was cut short, and the earlier one is still whole.
    ///
    /// # Errors
    /// What it violates, or why it failed.
    pub(super) fn take(&mut self, host: &Host, cut: Cut) -> Result<Option<bool>, String> {
        if let Some((after, _)) = cut {
            self.disk.cut_at(self.disk.op_count() + after);
        }
        let target: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let taken = backup(&host.config(&host.disk), &target);
        if self.disk.is_off() {
            self.disk = self.disk.crash_point().image(cut.map_or(Choice::Nothing, |cut| cut.1));
            let now = self.read(host)?;
            // Either the earlier one or the one that was being taken, and the host says later which may be.
            let last = |held: &Option<Vec<Record>>| {
                held.as_ref().map(|records| records.last().map_or(0, |record| record.sequence))
            };
            if last(&now) < last(&self.held) {
                return Err("LOST a backup that was there before the one that was cut short".to_owned());
            }
            self.held = now;
            return Ok(None);
        }
        self.disk.cut_at(u64::MAX);
        match taken {
            Ok(taken) => {
                self.strange = false;
                self.held = self.read(host)?;
                Ok(Some(taken.live))
            }
            Err(JournalError::OtherHistory(_)) if self.strange => {
                *self = Vault::default();
                Ok(None)
            }
            Err(error) => Err(format!("a backup failed: {error}")),
        }
    }

    /// The records of what stands there, which must be sound in every respect.
    fn read(&self, host: &Host) -> Result<Option<Vec<Record>>, String> {
        let Some((view, config)) = self.view(host)? else { return Ok(None) };
        let told = |e: JournalError| format!("a backup does not read back: {e}");
        let problems = view.check_files().map_err(told)?;
        let (audit, records) = audit(&config, &mut Records::default).map_err(told)?;
        if !problems.is_empty() || !audit.is_sound() || audit.tail.is_some() {
            return Err("a backup is not sound".to_owned());
        }
        Ok(Some(records.0))
    }

    fn view(&self, host: &Host) -> Result<Option<(Arc<BackupDisk>, Config)>, String> {
        let told = |e: JournalError| format!("a backup does not open: {e}");
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        let Some(view) = BackupDisk::open(&disk).map_err(told)? else { return Ok(None) };
        let mut config = host.config(&self.disk);
        view.authenticate(&config.secrets).map_err(told)?;
        let view = Arc::new(view);
        config.disk = view.clone();
        Ok(Some((view, config)))
    }

    pub(super) fn held(&self) -> Option<&[Record]> {
        self.held.as_deref()
    }
}

/// Does the work on the host's stopped journal.
///
/// # Errors
/// What it violates.
pub(super) fn work(
    host: &mut Host,
    vault: &mut Vault,
    world: &Rc<RefCell<World>>,
    work: Offline,
) -> Result<Done, String> {
    // An operator who works on a stopped node sees to its disk first.
    host.disk.set_capacity(None);
    match work {
        Offline::Rekey { change, cut } => in_place(host, cut, |config| rekey(config, change)),
        Offline::Unfence { cut } => in_place(host, cut, |config| {
            unfence(config).map(|_| ()).map_err(|e| format!("an unfence failed: {e}"))
        }),
        Offline::Compact { cut } => {
            in_place(host, cut, |config| compact(config).map_err(|e| format!("a compaction failed: {e}")))
        }
        Offline::Restore { from_backup, cut } => restored(host, vault, from_backup, cut),
        Offline::Repair { damage, cut } => aside::repaired(host, damage, cut).map(|()| Done::Well),
        Offline::Read { looks } => aside::reading(host, world, looks).map(|()| Done::Well),
        Offline::Transfer { replace, cut } => {
            let (target, records) = aside::transfer(host, cut)?;
            if !replace {
                return Ok(Done::Well);
            }
            host.replace_disk(target);
            // Another journal has other backups.
            *vault = Vault::default();
            Ok(Done::Imported(records))
        }
    }
}

fn in_place(
    host: &mut Host,
    cut: Cut,
    act: impl FnOnce(&Config) -> Result<(), String>,
) -> Result<Done, String> {
    if let Some((after, _)) = cut {
        host.disk.cut_at(host.disk.op_count() + after);
    }
    let done = act(&host.config(&host.disk));
    if host.disk.is_off() {
        host.lose_power(cut.map_or(Choice::Nothing, |cut| cut.1));
        return Ok(Done::Cut);
    }
    host.disk.cut_at(u64::MAX);
    done.map(|()| Done::Well)
}

fn rekey(config: &Config, change: Change) -> Result<(), String> {
    const SECOND: &str = "second";
    let told = |e: JournalError| format!("a change of the keyring failed: {e}");
    let there = key_facts(config).map_err(told)?.slots.iter().any(|slot| slot.name == SECOND);
    let rekey = Rekey::open(config).map_err(told)?;
    let [first, second] = [Secret::raw(super::host::KEY), Secret::raw(super::host::SECOND_KEY)];
    let slot = |name, secret| NewSlot { name, secret, params: SlotParams::FLOOR };
    let (done, second_after) = match change {
        Change::Slot if there => (rekey.remove_slot(SECOND), false),
        Change::Slot => (rekey.add_slot(&slot(SECOND, &second), None), true),
        Change::Replace => (rekey.add_slot(&slot("key", &first), Some("key")), there),
        Change::Rotate => (rekey.rotate(&[], None), there),
    };
    done.map_err(told)?;
    let opens = |secret: &Secret| {
        let config = Config { secrets: vec![secret.clone()], ..config.clone() };
        key_facts(&config).is_ok()
    };
    match (opens(&first), opens(&second) == second_after) {
        (true, true) => Ok(()),
        (true, false) | (false, _) => Err(format!("after {change:?} not exactly its slots open")),
    }
}

fn compact(config: &Config) -> Result<(), JournalError> {
    let (journal, _) = Journal::open_manual(config, &mut Ignore)?;
    let compacted = journal.compact_all(&mut |_| {});
    let closed = journal.close();
    compacted.and(closed)
}

/// A restore into a directory of its own, which then takes the journal's place. What is cut short is done again.
fn restored(host: &mut Host, vault: &mut Vault, from_backup: bool, cut: Cut) -> Result<Done, String> {
    let (view, source, expected) = match from_backup {
        true => {
            let Some((view, config)) = vault.view(host)? else { return Ok(Done::Nothing) };
            (Some(view), config, vault.held.clone().unwrap_or_default())
        }
        false => {
            let copy = host.disk.fork();
            let (_, records) = host.audit().map_err(|e| e.to_string())?;
            (None, host.config(&copy), records.0)
        }
    };
    let mut target = SimDisk::new();
    if let Some((after, keep)) = cut {
        target.cut_at(after);
        let disk: Arc<dyn Disk> = Arc::new(target.clone());
        // It may also come to its end before the power goes.
        let _ = restore(&source, view.as_deref(), &disk);
        target = target.crash_point().image(keep);
    }
    let disk: Arc<dyn Disk> = Arc::new(target.clone());
    restore(&source, view.as_deref(), &disk).map_err(|e| format!("a restore failed: {e}"))?;
    host.replace_disk(target);
    vault.strange = true;
    Ok(Done::Restored(expected))
}
