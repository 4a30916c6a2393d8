//! What tests do to a disk behind the back of the code under test: damage, inspection, comparison.
//!
//! Damage changes the cached and the durable bytes alike, as if the device had rotted and the cache was cold.
//! Meant for a quiet disk; undecided changes stay as they are.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Arc;

use super::SimDisk;
use super::crash::{Choice, CrashPoint};
use super::folder::{Entries, InodeId};
use super::inode::Inode;
use super::pages::Image;
use super::state::{Content, State};
use crate::{FileKind, Folder, Name};

impl SimDisk {
    /// Flips bit `bit` (0 to 7) of the byte at `offset`. Panics if there is no such byte.
    #[track_caller]
    pub fn flip_bit(&self, name: &Name, offset: u64, bit: u8) {
        self.damage(name, |image| {
            let mut byte = [0];
            assert_eq!(image.read(&mut byte, offset), 1, "{name} has no byte {offset}");
            image.write(offset, &[byte[0] ^ 1 << bit]);
        });
    }

    /// Sets the length of a file.
    #[track_caller]
    pub fn truncate(&self, name: &Name, length: u64) {
        self.damage(name, |image| image.set_length(length, false));
    }

    /// Writes over a file, growing it if need be.
    #[track_caller]
    pub fn overwrite(&self, name: &Name, offset: u64, bytes: &[u8]) {
        self.damage(name, |image| image.write(offset, bytes));
    }

    /// Removes a file's entry, durably. Open handles keep the file, with no link.
    #[track_caller]
    pub fn delete(&self, name: &Name) {
        let mut state = self.shared.lock();
        assert!(state.content.lookup(name).is_some(), "{name} does not exist");
        for side in sides(&mut state.content, name.folder()) {
            Arc::make_mut(&mut side.files).remove(name.file());
        }
        state.collect();
    }

    /// Creates or replaces a file with these bytes, durably, and its folder.
    pub fn put(&self, name: &Name, bytes: &[u8]) {
        let mut image = Image::default();
        image.write(0, bytes);
        self.put_image(name, image);
    }

    /// Copies a file over another name, durably.
    #[track_caller]
    pub fn copy(&self, from: &Name, to: &Name) {
        let image = self.cached_image(from).unwrap_or_else(|| panic!("{from} does not exist"));
        self.put_image(to, image);
    }

    /// Adds an entry that is not a file, such as a link, to a folder's listing.
    pub fn put_foreign(&self, folder: Folder, entry: &str, kind: FileKind) {
        self.shared.lock().content.foreign.push((folder, entry.to_owned(), kind));
    }

    /// From now on the path leads elsewhere: `check_identity` fails.
    pub fn move_away(&self) {
        self.shared.lock().moved = true;
    }

    /// Throws clean pages out of the cache: what a lying sync lost is seen to be lost.
    pub fn drop_caches(&self) {
        let mut state = self.shared.lock();
        let ids: Vec<InodeId> = state.content.inodes.keys().copied().collect();
        for id in ids {
            if let Some(inode) = state.content.inode_mut(id)
                && inode.lied
            {
                inode.cached = inode.device();
                inode.lied = false;
            }
        }
    }

    /// The file's bytes as a reader sees them.
    pub fn bytes(&self, name: &Name) -> Option<Vec<u8>> {
        self.cached_image(name).map(|image| image.to_vec())
    }

    /// Every file with its bytes as a reader sees them, by `folder/file`.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        cached(&self.shared.lock().content).into_iter().map(|(name, image)| (name, image.to_vec())).collect()
    }

    /// Every durable file with its durable bytes.
    pub fn durable_files(&self) -> BTreeMap<String, Vec<u8>> {
        durable(&self.shared.lock().content).into_iter().map(|(name, image)| (name, image.to_vec())).collect()
    }

    /// Whether both disks hold the same durable files with the same bytes.
    pub fn same_durable(&self, other: &SimDisk) -> bool {
        self.same(other, durable)
    }

    /// Whether both disks show the same files with the same bytes, durable or not.
    pub fn same_cached(&self, other: &SimDisk) -> bool {
        self.same(other, cached)
    }

    fn same(&self, other: &SimDisk, side: impl Fn(&Content) -> BTreeMap<String, &Image>) -> bool {
        // Copies, since the two may be the same disk behind the same lock.
        let ours = self.shared.lock().content.clone();
        let theirs = other.shared.lock().content.clone();
        let (ours, theirs) = (side(&ours), side(&theirs));
        ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| a.0 == b.0 && a.1.same(b.1))
    }

    /// A number that tells durable contents apart, for counting distinct crash images.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        for (name, image) in durable(&self.shared.lock().content) {
            hasher.write(name.as_bytes());
            hasher.write_u8(0);
            image.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// An independent disk with the same cached and durable content and the same undecided changes, as a second
    /// process on the same kernel would find it. No lock, handle, fault or trace comes along; the power is on.
    pub fn fork(&self) -> SimDisk {
        let mut state = State::new(self.shared.lock().content.clone());
        state.collect();
        SimDisk::from_state(state)
    }

    /// The undecided changes of this moment, or of the moment when the power went.
    pub fn crash_point(&self) -> CrashPoint {
        CrashPoint::of(&self.shared.lock().content)
    }

    /// How many changes are undecided now.
    pub fn dirty(&self) -> usize {
        self.crash_point().len()
    }

    /// The disk as the next start finds it after a crash now.
    pub fn crash_image(&self, choice: Choice) -> SimDisk {
        self.crash_point().image(choice)
    }

    fn cached_image(&self, name: &Name) -> Option<Image> {
        let state = self.shared.lock();
        let id = state.content.lookup(name)?;
        state.content.inode(id).map(|inode| inode.cached.clone())
    }

    fn put_image(&self, name: &Name, image: Image) {
        let mut state = self.shared.lock();
        let content = &mut state.content;
        let id = content.next_inode;
        content.next_inode += 1;
        content.inodes.insert(id, Arc::new(Inode::settled(Some(name.clone()), image)));
        for side in sides(content, name.folder()) {
            side.exists = true;
            Arc::make_mut(&mut side.files).insert(name.file().to_owned(), id);
        }
        state.collect();
    }

    #[track_caller]
    fn damage(&self, name: &Name, mut change: impl FnMut(&mut Image)) {
        let mut state = self.shared.lock();
        let id = state.content.lookup(name).unwrap_or_else(|| panic!("{name} does not exist"));
        let inode = state.content.inode_mut(id).unwrap_or_else(|| panic!("{name} has no file"));
        change(&mut inode.cached);
        match inode.is_settled() {
            true => inode.durable = inode.cached.clone(),
            false => change(&mut inode.durable),
        }
    }
}

fn sides(content: &mut Content, folder: Folder) -> [&mut Entries; 2] {
    let state = content.folders.of_mut(folder);
    [&mut state.cached, &mut state.durable]
}

fn durable(content: &Content) -> BTreeMap<String, &Image> {
    listing(content, |content, folder| &content.folders.of(folder).durable, |file| &file.durable)
}

fn cached(content: &Content) -> BTreeMap<String, &Image> {
    listing(content, |content, folder| &content.folders.of(folder).cached, |file| &file.cached)
}

fn listing<'a>(
    content: &'a Content,
    side: impl Fn(&'a Content, Folder) -> &'a Entries,
    image: impl Fn(&'a Inode) -> &'a Image,
) -> BTreeMap<String, &'a Image> {
    let mut found = BTreeMap::new();
    for folder in Folder::ALL {
        for (file, id) in side(content, folder).files.iter() {
            let Some(inode) = content.inodes.get(id) else { continue };
            let name =
                if folder == Folder::Root { file.clone() } else { format!("{}/{file}", folder.as_str()) };
            found.insert(name, image(inode));
        }
    }
    found
}
