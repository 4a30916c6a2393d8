//! The entries of one folder: as the running system sees them, as the device holds them, and the changes between.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Folder;

/// Number of a file; never reused.
pub(super) type InodeId = u64;

/// A change of entries that a crash may keep or lose, each on its own.
#[derive(Clone, Debug)]
pub(super) enum EntryChange {
    Insert {
        file: String,
        inode: InodeId,
    },
    /// Old or new, never both and never none.
    Rename {
        from: String,
        to: String,
        inode: InodeId,
    },
    Remove {
        file: String,
    },
    /// Only in the root folder.
    MakeFolder {
        folder: Folder,
    },
}

#[derive(Clone, Debug)]
pub(super) struct PendingEntry {
    pub(super) at: u64,
    pub(super) change: EntryChange,
}

/// One side, cached or durable.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    pub(super) exists: bool,
    pub(super) files: Arc<BTreeMap<String, InodeId>>,
}

impl Entries {
    pub(super) fn apply(&mut self, change: &EntryChange) {
        let files = Arc::make_mut(&mut self.files);
        match change {
            EntryChange::Insert { file, inode } => {
                files.insert(file.clone(), *inode);
            }
            EntryChange::Rename { from, to, inode } => {
                // The old name may meanwhile, or without a lost change, lead elsewhere.
                if files.get(from) == Some(inode) {
                    files.remove(from);
                }
                files.insert(to.clone(), *inode);
            }
            EntryChange::Remove { file } => {
                files.remove(file);
            }
            EntryChange::MakeFolder { .. } => {}
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct FolderState {
    pub(super) cached: Entries,
    pub(super) durable: Entries,
    pub(super) pending: Vec<PendingEntry>,
}

/// All folders; index by [`Folders::of`].
#[derive(Clone, Debug, Default)]
pub(super) struct Folders([FolderState; 3]);

impl Folders {
    /// An empty data directory without folders.
    pub(super) fn new() -> Folders {
        let mut folders = Folders::default();
        let root = folders.of_mut(Folder::Root);
        root.cached.exists = true;
        root.durable.exists = true;
        folders
    }

    pub(super) fn of(&self, folder: Folder) -> &FolderState {
        &self.0[slot(folder)]
    }

    pub(super) fn of_mut(&mut self, folder: Folder) -> &mut FolderState {
        &mut self.0[slot(folder)]
    }

    /// Makes a change visible, undecided until the folder is synced.
    pub(super) fn change(&mut self, at: u64, folder: Folder, change: EntryChange) {
        if let EntryChange::MakeFolder { folder: made } = &change {
            self.of_mut(*made).cached.exists = true;
        }
        let state = self.of_mut(folder);
        state.cached.apply(&change);
        state.pending.push(PendingEntry { at, change });
    }

    /// Lets a change reach the device.
    pub(super) fn settle(&mut self, folder: Folder, change: &EntryChange) {
        if let EntryChange::MakeFolder { folder: made } = change {
            self.of_mut(*made).durable.exists = true;
        }
        self.of_mut(folder).durable.apply(change);
    }

    /// fsync of a folder. Applies the changes instead of copying the cache: after a lie the two differ.
    pub(super) fn sync(&mut self, folder: Folder) {
        let pending = std::mem::take(&mut self.of_mut(folder).pending);
        pending.iter().for_each(|one| self.settle(folder, &one.change));
    }

    /// How many visible entries lead to the file.
    pub(super) fn links(&self, inode: InodeId) -> u64 {
        let leads =
            |state: &FolderState| state.cached.files.values().filter(|one| **one == inode).count() as u64;
        self.0.iter().map(leads).sum()
    }

    /// Every file that an entry leads to or may lead to after a crash.
    pub(super) fn reachable(&self) -> Vec<InodeId> {
        let mut found = Vec::new();
        for state in &self.0 {
            found.extend(state.cached.files.values().chain(state.durable.files.values()));
            for one in &state.pending {
                match &one.change {
                    EntryChange::Insert { inode, .. } | EntryChange::Rename { inode, .. } => {
                        found.push(*inode)
                    }
                    EntryChange::Remove { .. } | EntryChange::MakeFolder { .. } => {}
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// After a crash: the device's entries are the visible ones, and a lost folder took its files along.
    pub(super) fn restart(&mut self) {
        for state in &mut self.0 {
            state.pending.clear();
            if !state.durable.exists {
                state.durable.files = Arc::default();
            }
            state.cached = state.durable.clone();
        }
    }
}

fn slot(folder: Folder) -> usize {
    match folder {
        Folder::Root => 0,
        Folder::Segments => 1,
        Folder::Quarantine => 2,
    }
}
