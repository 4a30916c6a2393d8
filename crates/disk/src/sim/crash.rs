//! What a crash may leave: every undecided change, kept or lost, each on its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::SimDisk;
use super::folder::{EntryChange, Folders, InodeId};
use super::inode::{Change, Inode, apply};
use super::pages::{Image, SECTOR};
use super::state::{Content, State};
use crate::{Folder, Name};

/// Longest list of undecided changes that [`CrashPoint::choices`] enumerates completely.
pub const EXHAUSTIVE_MAX: usize = 10;

/// A frozen disk whose unsynced changes are not decided yet. Cheap to keep and to clone.
#[derive(Clone)]
pub struct CrashPoint {
    content: Content,
    order: OnceLock<Vec<Item>>,
}

/// Where an undecided change sits.
#[derive(Clone, Copy, Debug)]
enum Item {
    Data { at: u64, inode: InodeId, index: usize },
    Entry { at: u64, folder: Folder, index: usize },
}

impl Item {
    fn at(self) -> u64 {
        match self {
            Item::Data { at, .. } | Item::Entry { at, .. } => at,
        }
    }
}

/// One undecided change, for tests that choose by meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// Number of the write or directory operation it belongs to; sectors of one write share it.
    pub at: u64,
    pub what: UndecidedWhat,
}

/// What would be kept or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndecidedWhat {
    /// 512 bytes at `offset`. `file` is the file's newest name.
    Sector {
        file: Option<Name>,
        offset: u64,
    },
    Length {
        file: Option<Name>,
        length: u64,
    },
    Insert {
        folder: Folder,
        file: String,
    },
    Rename {
        folder: Folder,
        from: String,
        to: String,
    },
    Remove {
        folder: Folder,
        file: String,
    },
    MakeFolder {
        folder: Folder,
    },
}

/// Which undecided changes survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The power went before anything was written back.
    Nothing,
    /// Only the process died, or everything was written back.
    Everything,
    /// Bit `i` keeps change `i`; changes above 63 are lost.
    Mask(u64),
    /// The first so many, as a device without reordering leaves them.
    Prefix(usize),
    /// A subset drawn from the seed, in a manner also drawn from it: even, sparse, dense, torn prefix, all but
    /// one, whole operations, or names and lengths in their order (as a journaling file system keeps them) with any
    /// of the data.
    Seeded(u64),
}

impl CrashPoint {
    pub(super) fn of(content: &Content) -> CrashPoint {
        CrashPoint { content: content.clone(), order: OnceLock::new() }
    }

    /// Number of undecided changes.
    pub fn len(&self) -> usize {
        self.order().len()
    }

    /// Nothing is undecided: every choice gives the same image.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The undecided changes, oldest first.
    pub fn undecided(&self) -> Vec<Undecided> {
        self.order().iter().map(|item| self.describe(*item)).collect()
    }

    /// All subsets if there are at most [`EXHAUSTIVE_MAX`] changes, otherwise nothing, everything, and `samples`
    /// others drawn from `seed`: a quarter of them prefixes, the rest of every manner.
    pub fn choices(&self, samples: usize, seed: u64) -> Vec<Choice> {
        let count = self.len();
        if count <= EXHAUSTIVE_MAX {
            return (0..1_u64 << count).map(Choice::Mask).collect();
        }
        let mut random = Random(seed);
        let sampled = (0..samples).map(|sample| match sample % 4 {
            0 => Choice::Prefix(random.below(count as u64) as usize),
            _ => Choice::Seeded(random.next()),
        });
        [Choice::Nothing, Choice::Everything].into_iter().chain(sampled).collect()
    }

    /// The disk as the next start finds it.
    pub fn image(&self, choice: Choice) -> SimDisk {
        match choice {
            Choice::Nothing => self.build(|_| false),
            Choice::Everything => self.build(|_| true),
            Choice::Mask(mask) => self.build(|index| index < 64 && mask >> index & 1 == 1),
            Choice::Prefix(count) => self.build(|index| index < count),
            Choice::Seeded(seed) => {
                let kept = self.draw(seed);
                self.build(|index| kept[index])
            }
        }
    }

    /// The disk with exactly those changes that `keep` keeps.
    pub fn image_with(&self, mut keep: impl FnMut(&Undecided) -> bool) -> SimDisk {
        let order = self.order();
        self.build(|index| keep(&self.describe(order[index])))
    }

    fn order(&self) -> &[Item] {
        self.order.get_or_init(|| {
            let mut order = Vec::new();
            for (inode, file) in &self.content.inodes {
                let items = file.pending.iter().enumerate();
                order.extend(items.map(|(index, one)| Item::Data { at: one.at, inode: *inode, index }));
            }
            for folder in Folder::ALL {
                let items = self.content.folders.of(folder).pending.iter().enumerate();
                order.extend(items.map(|(index, one)| Item::Entry { at: one.at, folder, index }));
            }
            // Stable: sectors of one write stay in their order.
            order.sort_by_key(|item| item.at());
            order
        })
    }

    fn describe(&self, item: Item) -> Undecided {
        let what = match item {
            Item::Data { inode, index, .. } => {
                let inode = &self.content.inodes[&inode];
                let file = inode.name.clone();
                match &inode.pending[index].change {
                    Change::Sector { sector, .. } => {
                        UndecidedWhat::Sector { file, offset: sector * SECTOR as u64 }
                    }
                    Change::Length { length, .. } => UndecidedWhat::Length { file, length: *length },
                }
            }
            Item::Entry { folder, index, .. } => {
                match self.content.folders.of(folder).pending[index].change.clone() {
                    EntryChange::Insert { file, .. } => UndecidedWhat::Insert { folder, file },
                    EntryChange::Rename { from, to, .. } => UndecidedWhat::Rename { folder, from, to },
                    EntryChange::Remove { file } => UndecidedWhat::Remove { folder, file },
                    EntryChange::MakeFolder { folder } => UndecidedWhat::MakeFolder { folder },
                }
            }
        };
        Undecided { at: item.at(), what }
    }

    fn is_metadata(&self, item: Item) -> bool {
        match item {
            Item::Entry { .. } => true,
            Item::Data { inode, index, .. } => match self.content.inodes[&inode].pending[index].change {
                Change::Length { .. } => true,
                Change::Sector { .. } => false,
            },
        }
    }

    fn build(&self, mut keep: impl FnMut(usize) -> bool) -> SimDisk {
        let mut images: BTreeMap<InodeId, Image> = BTreeMap::new();
        let mut folders: Folders = self.content.folders.clone();
        for (index, item) in self.order().iter().enumerate() {
            if !keep(index) {
                continue;
            }
            match *item {
                Item::Data { inode, index, .. } => {
                    let file = &self.content.inodes[&inode];
                    let image = images.entry(inode).or_insert_with(|| file.durable.clone());
                    apply(image, &file.pending[index].change);
                }
                Item::Entry { folder, index, .. } => {
                    let change = self.content.folders.of(folder).pending[index].change.clone();
                    folders.settle(folder, &change);
                }
            }
        }
        folders.restart();
        let mut inodes = BTreeMap::new();
        for folder in Folder::ALL {
            for (file, id) in folders.of(folder).durable.files.iter() {
                let Some(old) = self.content.inodes.get(id) else { continue };
                let name = Name::new(folder, file);
                let settled = match images.remove(id) {
                    None if old.is_settled() && old.name == name => Arc::clone(old),
                    None => Arc::new(Inode::settled(name, old.durable.clone())),
                    Some(image) => Arc::new(Inode::settled(name, image)),
                };
                // A rename that was kept without the loss of the old name leaves two names of one file.
                inodes.entry(*id).or_insert(settled);
            }
        }
        SimDisk::from_state(State::new(Content { inodes, folders, ..self.content.clone() }))
    }

    fn draw(&self, seed: u64) -> Vec<bool> {
        let order = self.order();
        let mut random = Random(seed);
        let manner = random.below(7);
        let point = random.below(order.len().max(1) as u64) as usize;
        let torn = order.get(point).map(|item| item.at());
        let whole_salt = random.next();
        let kept = |(index, item): (usize, &Item)| match manner {
            0 => random.below(2) == 0,
            1 => random.below(8) == 0,
            2 => random.below(8) != 0,
            // The operations before one, and any part of that one.
            3 => torn.is_some_and(|torn| item.at() < torn || (item.at() == torn && random.below(2) == 0)),
            4 => index != point,
            5 if self.is_metadata(*item) => index < point,
            5 => random.below(2) == 0,
            _ => Random(whole_salt ^ item.at()).below(2) == 0,
        };
        order.iter().enumerate().map(kept).collect()
    }
}

impl fmt::Debug for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrashPoint").field("undecided", &self.len()).finish_non_exhaustive()
    }
}

/// Small, seedable, good enough to pick subsets.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        crate::testing::step(&mut self.0)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}
