//! Verbs that make something where there is no room: they say so, leave nothing half made, and do it once there is.
#![expect(clippy::disallowed_methods, reason = "looks at files from outside")]

use std::collections::BTreeMap;
use std::fs::{read, read_dir, remove_dir_all, remove_file};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::small::Small;

/// A journal with six executions of some size, its key, an export and a keyring, on a disk with room, and a small one.
struct Desk {
    small: Small,
    folder: tempfile::TempDir,
}

#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    error: Value,
    stdout: String,
    stderr: String,
}

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let small = Small::make(&folder.path().join("small"), 4 << 20);
        let desk = Desk { small, folder };
        desk.good("journal init data --key-file key");
        for number in 0..6 {
            let arguments = format!("run text-{number} --data-dir data --key-file key --extensions");
            let mock = r#"{"mock":{"chunks":20,"chunk_bytes":3000}}"#;
            let ran = desk.ran(arguments.split(' ').chain([mock]));
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
        desk.good("journal export data --key-file key --output out.jsonl");
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn ran<'a>(&self, arguments: impl Iterator<Item = &'a str>) -> Ran {
        let mut command = Command::new(sealog_tests::binary("sealog"));
        command.env_clear().env("XDG_CONFIG_HOME", self.path("config")).current_dir(self.folder.path());
        let output = command.arg("--json").args(arguments).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let last: Value = serde_json::from_str(stderr.lines().last().unwrap_or("null")).unwrap_or_default();
        let stdout = String::from_utf8(output.stdout).unwrap();
        Ran { code: output.status.code(), error: last["error"].clone(), stdout, stderr }
    }

    fn good(&self, line: &str) -> Value {
        let ran = self.ran(line.split(' '));
        assert_eq!(ran.code, Some(0), "{line}: {ran:?}");
        serde_json::from_str(&ran.stdout).unwrap_or_default()
    }

    /// All files and folders of the small file system, but for the ballast and the text of a lock.
    fn stands(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.small.place, &mut found);
        found.retain(|path, _| !path.ends_with("ballast") && !path.ends_with("LOCK"));
        found
    }

    /// Runs a verb with less and less room until it is refused at every place where it takes some; what is done must be
    /// whole, what is refused must leave what was there. How often it was refused.
    fn squeeze(&self, line: &str, made: &[&str], keeps_copies: bool) -> u32 {
        let mut refused = 0;
        let before = self.stands();
        let outside: Vec<bool> = made.iter().map(|name| self.path(name).exists()).collect();
        for spare in [0, 4, 8, 12, 16, 24, 32, 64, 200, 600, 1200].map(|kib| kib << 10) {
            let ballast = self.small.fill_but("ballast", spare);
            let ran = self.ran(line.split(' '));
            ballast.release();
            if ran.code == Some(0) {
                self.remove(made);
                continue;
            }
            refused += 1;
            let told = format!("{line} with {spare} bytes: {ran:?}");
            assert_eq!(ran.code, Some(75), "{told}");
            let error = |member: &str| ran.error[member].as_str().unwrap_or_default().to_owned();
            assert!(matches!(error("code").as_str(), "disk_full" | "full"), "{told}");
            assert!(error("next").contains("free space"), "{told}");
            assert!(
                !ran.stderr.contains(".sealog-"),
                "the name of a temporary file is nobody's concern: {told}"
            );
            assert_eq!(ran.stdout, "", "{told}");
            let mut after = self.stands();
            if keeps_copies {
                // Whole files that the next try does not copy again, and the folders they stand in.
                after.retain(|path, _| !path.starts_with(self.path(made[0])) || path.ends_with("copy.tmp"));
            }
            assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "{told}");
            assert!(after == before, "{told}");
            let left: Vec<bool> = made.iter().map(|name| self.path(name).exists()).collect();
            if !keeps_copies {
                assert_eq!(left, outside, "{told}");
            }
        }
        // With room the same command does it.
        self.good(line);
        self.remove(made);
        refused
    }

    fn remove(&self, made: &[&str]) {
        for name in made {
            let path = self.path(name);
            if path.is_dir() { remove_dir_all(path) } else { remove_file(path) }.unwrap();
        }
    }
}

fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
            found.insert(path, Vec::new());
        } else {
            let bytes = read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
}

#[test]
fn what_makes_a_journal_or_a_copy_makes_all_of_it_or_nothing() {
    let desk = Desk::new();
    let from_key = |line: &str| format!("journal {line} --key-file key");
    assert!(desk.squeeze("journal init small/new --key-file new.key", &["small/new", "new.key"], false) > 2);
    assert!(
        desk.squeeze(
            "journal init small/new --key-file small/new.key",
            &["small/new", "small/new.key"],
            false
        ) > 2
    );
    let import = "journal import out.jsonl small/new --key-file new.key";
    assert!(desk.squeeze(import, &["small/new", "new.key"], false) > 5);
    assert!(desk.squeeze(&from_key("restore data small/new"), &["small/new"], false) > 5);
    assert!(desk.squeeze(&from_key("repair data small/new"), &["small/new"], false) > 5);
    assert!(desk.squeeze(&from_key("backup data small/copy"), &["small/copy"], true) > 5);
    assert!(desk.squeeze(&from_key("export data --output small/out.jsonl"), &["small/out.jsonl"], false) > 5);
    let keyring = from_key("rekey data export-keyring small/ring");
    assert!(desk.squeeze(&keyring, &["small/ring"], false) > 0);
}

/// The earlier backup stands, whole, and is continued once there is room.
#[test]
fn a_backup_without_room_for_more_is_the_one_it_was() {
    let desk = Desk::new();
    desk.good("journal backup data small/copy --key-file key");
    let before = desk.good("journal verify small/copy --key-file key");
    let mock = r#"{"mock":{"chunks":20,"chunk_bytes":9000}}"#;
    let more = "run more --data-dir data --key-file key --extensions".split(' ').chain([mock]);
    assert_eq!(desk.ran(more).code, Some(0));
    let ballast = desk.small.fill_but("ballast", 16 << 10);
    let ran = desk.ran("journal backup data small/copy --key-file key".split(' '));
    assert_eq!((ran.code, &ran.error["code"]), (Some(75), &"disk_full".into()), "{ran:?}");
    assert_eq!(desk.good("journal verify small/copy --key-file key"), before);
    ballast.release();
    let done = desk.good("journal backup data small/copy --key-file key");
    assert!(done["last_sequence"].as_u64() > before["last_sequence"].as_u64());
    desk.good("journal verify small/copy --key-file key");
}

/// Verbs that change a journal whose own file system is full: it is as it was, or has changed as it says.
#[test]
fn a_journal_on_a_full_file_system_keeps_its_keys_and_its_records() {
    let desk = Desk::new();
    desk.good("journal restore data small/data --key-file key");
    desk.good("journal rekey small/data export-keyring ring --key-file key");
    let whole = desk.good("journal verify small/data --key-file key");
    let keys = |desk: &Desk| desk.good("journal rekey small/data list --key-file key")["slots"].clone();
    let slots = keys(&desk);
    for line in [
        "journal rekey small/data add-slot two --key-file key --new-key-file two.key",
        "journal rekey small/data rotate --key-file key",
        "journal unfence small/data --key-file key",
    ] {
        let ballast = desk.small.fill("ballast");
        let before = desk.stands();
        let ran = desk.ran(line.split(' '));
        assert_eq!(ran.code, Some(75), "{line}: {ran:?}");
        assert!(ran.error["next"].as_str().unwrap().contains("free space"), "{ran:?}");
        assert!(desk.stands() == before, "{line}");
        // What reads needs no room.
        assert_eq!(desk.good("journal verify small/data --key-file key"), whole, "{line}");
        assert_eq!(keys(&desk), slots, "{line}");
        desk.good("journal rekey small/data import-keyring ring --key-file key");
        ballast.release();
    }
    // Once there is room, each does its work.
    desk.good("journal rekey small/data add-slot two --key-file key --new-key-file two.key");
    desk.good("journal verify small/data --key-file two.key");
    desk.good("journal rekey small/data remove-slot two --key-file key");
    desk.good("journal rekey small/data rotate --key-file key");
    assert_eq!(desk.good("journal unfence small/data --key-file key")["was_fenced"], true);
    desk.good("journal compact small/data --key-file key");
    desk.good("journal verify small/data --key-file key");
}
