//! The simulated file against a naive model: a vector for what is visible, a list of versions per sector for what
//! a crash may leave.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Choice, SimDisk};
use crate::io::{read_to_vec, write_all_at, write_all_durable_at};
use crate::{Disk, Folder, LogFile, Name};

const SECTOR: usize = 512;
const LENGTH_MAX: usize = 5 * 4096;

#[derive(Clone, Debug)]
enum Step {
    Write {
        offset: usize,
        bytes: Vec<u8>,
        durable: bool,
    },
    Length(usize),
    Sync,
    /// The machine stops, keeps what the seed says, and starts again.
    Crash(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let fill = (0..LENGTH_MAX - 2000, 0..2000_usize, 0..4_u8, any::<bool>());
    prop_oneof![
        6 => fill.prop_map(|(offset, len, byte, durable)| Step::Write { offset, bytes: vec![byte; len], durable }),
        1 => (0..LENGTH_MAX).prop_map(Step::Length),
        1 => Just(Step::Sync),
        1 => any::<u64>().prop_map(Step::Crash),
    ]
}

/// Everything a sector may hold after a crash: every version since the last sync, the oldest being the durable one.
#[derive(Clone, Debug)]
struct Model {
    visible: Vec<u8>,
    lengths: Vec<usize>,
    versions: Vec<Vec<[u8; SECTOR]>>,
}

impl Model {
    fn settled(visible: Vec<u8>) -> Model {
        let mut model =
            Model { visible, lengths: Vec::new(), versions: vec![Vec::new(); LENGTH_MAX / SECTOR] };
        model.note();
        model
    }

    fn sector(&self, index: usize) -> [u8; SECTOR] {
        let mut found = [0; SECTOR];
        let start = (index * SECTOR).min(self.visible.len());
        let end = (start + SECTOR).min(self.visible.len());
        found[..end - start].copy_from_slice(&self.visible[start..end]);
        found
    }

    /// Adds what is visible now to what a crash may leave.
    fn note(&mut self) {
        self.lengths.push(self.visible.len());
        for index in 0..self.versions.len() {
            let now = self.sector(index);
            self.versions[index].push(now);
        }
    }

    /// Whether every sector of a crash image is one of its versions, cut at the image's length.
    fn allows(&self, image: &[u8]) -> bool {
        // A kept cut zeroes part of a version whose later rewrite was lost; then only single bytes are judged.
        let shrunk = self.lengths.windows(2).any(|pair| pair[1] < pair[0]);
        let fits = |index: usize, found: &[u8]| {
            let versions = &self.versions[index];
            let whole = versions.iter().any(|version| version[..found.len()] == *found);
            let known = |at: usize, byte: u8| byte == 0 || versions.iter().any(|version| version[at] == byte);
            whole || (shrunk && found.iter().enumerate().all(|(at, byte)| known(at, *byte)))
        };
        self.lengths.contains(&image.len())
            && image.chunks(SECTOR).enumerate().all(|(index, found)| fits(index, found))
    }
}

fn open(disk: &SimDisk, name: &Name) -> Arc<dyn LogFile> {
    disk.open_for_write(name).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_model(steps in prop::collection::vec(step(), 1..25)) {
        let name = Name::new(Folder::Root, "f").unwrap();
        let mut disk = SimDisk::new();
        disk.put(&name, b"");
        let mut file = open(&disk, &name);
        let mut model = Model::settled(Vec::new());
        for step in steps {
            match step {
                Step::Write { offset, bytes, durable } => {
                    if !bytes.is_empty() && model.visible.len() < offset + bytes.len() {
                        model.visible.resize(offset + bytes.len(), 0);
                    }
                    if !bytes.is_empty() {
                        model.visible[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    }
                    model.note();
                    if durable {
                        write_all_durable_at(&*file, &bytes, offset as u64).unwrap();
                        let kept = disk.crash_image(Choice::Nothing).bytes(&name).unwrap();
                        prop_assert!(bytes.is_empty() || kept[offset..offset + bytes.len()] == bytes);
                    } else {
                        write_all_at(&*file, &bytes, offset as u64).unwrap();
                    }
                }
                Step::Length(length) => {
                    model.visible.resize(length, 0);
                    model.note();
                    file.set_length(length as u64).unwrap();
                }
                Step::Sync => {
                    file.sync_all().unwrap();
                    model = Model::settled(model.visible);
                    prop_assert_eq!(disk.dirty(), 0);
                    prop_assert!(disk.crash_image(Choice::Nothing).bytes(&name).unwrap() == model.visible);
                }
                Step::Crash(seed) => {
                    let everything = disk.crash_image(Choice::Everything).bytes(&name).unwrap();
                    prop_assert!(everything == model.visible);
                    disk = disk.crash_image(Choice::Seeded(seed));
                    file = open(&disk, &name);
                    let found = read_to_vec(&*file, LENGTH_MAX).unwrap();
                    prop_assert!(model.allows(&found), "an image that no crash can leave");
                    model = Model::settled(found);
                }
            }
            prop_assert!(read_to_vec(&*file, LENGTH_MAX).unwrap() == model.visible);
        }
    }
}
