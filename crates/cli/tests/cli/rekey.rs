//! `sealog journal rekey`: exit codes, and that a journal opens with what it should open with and with nothing else.

use std::os::unix::fs::PermissionsExt;

use crate::bench::{Bench, Ran};
use crate::keys::at_a_terminal;

fn rekey(bench: &Bench, more: &[&str]) -> Ran {
    bench.run(&[&["journal", "rekey", "data"], more].concat())
}

#[track_caller]
fn opens(bench: &Bench, key: &[&str], code: i32) {
    bench.run(&[&["journal", "verify", "data"], key].concat()).expect(code);
}

fn generation(bench: &Bench, key: &[&str]) -> u64 {
    rekey(bench, &[&["list", "--json"], key].concat()).expect(0).json()["generation"].as_u64().unwrap()
}

const KEY: [&str; 2] = ["--key-file", "key"];

#[test]
fn key_files_come_and_go() {
    let bench = Bench::new();
    let id = bench.finished();
    rekey(&bench, &[&["add-slot", "spare", "--new-key-file", "made/spare"], &KEY[..]].concat()).expect(0);
    let mode = bench.path("made/spare").metadata().unwrap().permissions().mode();
    assert_eq!((mode & 0o7777, bench.read("made/spare").len()), (0o600, 64));
    opens(&bench, &["--key-file", "made/spare"], 0);
    // A key file that is there is taken as it is.
    bench.write("mine", &[7; 32], 0o600);
    let add = ["add-slot", "mine", "--new-key-file", "mine", "--key-file", "made/spare"];
    rekey(&bench, &add).expect(0);
    assert_eq!(bench.read("mine"), [7; 32]);
    rekey(&bench, &["remove-slot", "key", "--key-file", "mine"]).expect(0);
    opens(&bench, &KEY, 12);
    bench.run(&["journal", "replay", "data", &id, "--key-file", "mine"]).expect(0);
    // Refusals change nothing and leave no file.
    let before = bench.read("data/keyring.0");
    for (arguments, code, word) in [
        (&["add-slot", "mine", "--new-key-file", "never"][..], 1, "slot_exists"),
        (&["add-slot", " x", "--new-key-file", "never"], 2, "bad_slot_name"),
        (&["add-slot", "x", "--new-key-file", "never", "--replacing", "none"], 4, "no_such_slot"),
        (&["add-slot", "x", "--new-passphrase-file", "absent"], 2, "bad_passphrase_file"),
        (&["add-slot", "x"], 2, "no_terminal"),
        (&["remove-slot", "none"], 4, "no_such_slot"),
        (&["rotate", "--drop-slot", "none"], 4, "no_such_slot"),
        (&["rotate"], 1, "slot_not_covered"),
        (&["rotate", "--new-recovery"], 2, "no_terminal"),
        (&["export-keyring", "mine"], 1, "file_exists"),
        (&["import-keyring", "mine"], 2, "bad_keyring_file"),
        (&["import-keyring", "absent"], 2, "bad_keyring_file"),
    ] {
        let ran = rekey(&bench, &[arguments, &["--key-file", "mine"]].concat()).expect(code);
        assert_eq!(ran.word(), word, "{arguments:?}");
        let json = rekey(&bench, &[arguments, &["--key-file", "mine", "--json"]].concat()).expect(code);
        assert_eq!(json.error()["code"], word);
    }
    assert!(bench.read("data/keyring.0") == before && !bench.path("never").exists());
    rekey(&bench, &["add-slot", "x", "--stretch", "1/1/1", "--key-file", "mine"]).expect(2);
    assert_eq!(rekey(&bench, &["list", "--key-file", "key"]).expect(12).word(), "wrong_key");
    let elsewhere = bench.run(&["journal", "rekey", "nowhere", "list", "--key-file", "key"]);
    assert_eq!(elsewhere.expect(10).word(), "no_journal");
}

#[test]
fn a_passphrase_is_changed_in_one_command() {
    let bench = Bench::new();
    bench.write("old", b"correct horse\n", 0o600);
    bench.write("new", b"battery staple\n", 0o600);
    bench.run(&["journal", "init", "data", "--passphrase-file", "old"]).expect(0);
    let change = [
        "add-slot",
        "passphrase",
        "--replacing",
        "passphrase",
        "--new-passphrase-file",
        "new",
        "--stretch",
        "19456/2/1",
    ];
    let changed = rekey(&bench, &[&change[..], &["--passphrase-file", "old"]].concat()).expect(0).stdout;
    // The slot of that name is there: only its secret went.
    assert!(changed.contains("no longer with the old one") && !changed.contains("is gone"), "{changed}");
    opens(&bench, &["--passphrase-file", "new"], 0);
    opens(&bench, &["--passphrase-file", "old"], 12);
    // The same at a terminal, where the new one is asked for twice.
    let change = [
        "journal",
        "rekey",
        "data",
        "add-slot",
        "passphrase",
        "--replacing",
        "passphrase",
        "--prompt",
        "--stretch",
        "19456/2/1",
    ];
    let slip: [&[u8]; 3] = [b"battery staple\n", b"one thing\n", b"another\n"];
    assert_eq!(at_a_terminal(&bench, &change, &slip).1, Some(2));
    opens(&bench, &["--passphrase-file", "new"], 0);
    let typed: [&[u8]; 3] = [b"battery staple\n", b"correct horse\n", b"correct horse\n"];
    let (shown, code) = at_a_terminal(&bench, &change, &typed);
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("horse") && !shown.contains("staple"), "{shown}");
    opens(&bench, &["--passphrase-file", "old"], 0);
}

#[test]
fn rotating_keeps_what_was_written_and_shuts_out_what_was_dropped() {
    let bench = Bench::new();
    let id = bench.finished();
    rekey(&bench, &[&["add-slot", "spare", "--new-key-file", "spare"], &KEY[..]].concat()).expect(0);
    let refused = rekey(&bench, &[&["rotate"], &KEY[..]].concat()).expect(1);
    assert!(refused.stderr.contains("spare"), "{}", refused.stderr);
    rekey(&bench, &["rotate", "--key-file", "key", "--key-file", "spare"]).expect(0);
    opens(&bench, &["--key-file", "spare"], 0);
    rekey(&bench, &[&["rotate", "--drop-slot", "spare"], &KEY[..]].concat()).expect(0);
    opens(&bench, &["--key-file", "spare"], 12);
    let run = ["run", "again", "--data-dir", "data", "--key-file", "key"];
    bench.run(&run).expect(0);
    let replayed = bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(0);
    assert!(replayed.stdout.contains("execution.completed"));
    let keys =
        bench.run(&["journal", "inspect", "data", "--keys", "--json", "--key-file", "key"]).expect(0).json();
    let states: Vec<&str> = keys["keys"]["root_keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|root| root["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["retired", "active"], "the one in between was never used: {keys}");
    assert_eq!(keys["segments"].as_array().unwrap().len(), 2);
    assert_ne!(keys["segments"][0]["key_id"], keys["segments"][1]["key_id"]);
}

#[test]
fn a_recovery_secret_opens_what_everything_else_lost() {
    let bench = Bench::new();
    bench.finished();
    let rotate = ["rotate", "--new-recovery", "--recovery-file", "paper", "--key-file", "key"];
    let ran = rekey(&bench, &rotate).expect(0);
    let text = String::from_utf8(bench.read("paper")).unwrap();
    assert_eq!((text.len(), text.matches('-').count()), (40, 7));
    let mode = bench.path("paper").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert!(!ran.stdout.contains(text.trim()) && !ran.stderr.contains(text.trim()));
    opens(&bench, &["--passphrase-file", "paper"], 0);
    assert_eq!(rekey(&bench, &rotate).expect(1).word(), "file_exists");
    // On a terminal it is shown, once, and the one before it opens nothing any more.
    let arguments = ["journal", "rekey", "data", "rotate", "--new-recovery", "--key-file", "key"];
    let (shown, code) = at_a_terminal(&bench, &arguments, &[]);
    assert_eq!(code, Some(0), "{shown}");
    let secret = shown.lines().find_map(|line| line.trim_end().split_once("shown this once: ")).unwrap().1;
    opens(&bench, &["--passphrase-file", "paper"], 12);
    bench.write("typed", secret.as_bytes(), 0o600);
    opens(&bench, &["--passphrase-file", "typed"], 0);
}

#[test]
fn an_exported_keyring_restores_a_destroyed_one() {
    let bench = Bench::new();
    let id = bench.finished();
    rekey(&bench, &["export-keyring", "ring", "--key-file", "key"]).expect(0);
    let import = ["import-keyring", "ring", "--key-file", "key"];
    assert_eq!(rekey(&bench, &[&import[..], &["--json"]].concat()).expect(0).json()["unchanged"], true);
    bench.remove("data/keyring.0");
    bench.remove("data/keyring.1");
    opens(&bench, &KEY, 13);
    bench.write("other", &[3; 32], 0o600);
    assert_eq!(
        rekey(&bench, &["import-keyring", "ring", "--key-file", "other"]).expect(12).word(),
        "wrong_key"
    );
    rekey(&bench, &import).expect(0);
    bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(0);
    // Damaged copies, whichever bytes they still have, are of no generation that an export of theirs would take back.
    let intact = bench.read("data/keyring.0");
    for at in [70, 200, intact.len() - 1] {
        let mut damaged = intact.clone();
        damaged[at] ^= 1;
        bench.write("data/keyring.0", &damaged, 0o600);
        bench.write("data/keyring.1", &damaged, 0o600);
        opens(&bench, &KEY, 13);
        rekey(&bench, &import).expect(0);
        assert!(bench.read("data/keyring.0") == intact && bench.read("data/keyring.1") == intact);
    }
    // After a rotation the export is too old, unless told.
    rekey(&bench, &["rotate", "--key-file", "key"]).expect(0);
    let refused = rekey(&bench, &import).expect(1);
    assert_eq!(refused.word(), "keyring_not_newer");
    assert!(refused.stderr.contains("where it is damaged, look for a later export"), "{}", refused.stderr);
    bench.run(&["run", "more", "--data-dir", "data", "--key-file", "key"]).expect(0);
    bench.remove("data/keyring.0");
    bench.remove("data/keyring.1");
    assert_eq!(rekey(&bench, &import).expect(1).word(), "keyring_lacks_keys");
    rekey(&bench, &[&import[..], &["--replace"]].concat()).expect(0);
    bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(13);
    // Of another journal, and of a later format.
    bench.run(&["journal", "init", "second", "--key-file", "key2"]).expect(0);
    let wrong = bench.run(&["journal", "rekey", "second", "import-keyring", "ring", "--key-file", "key2"]);
    assert_eq!(wrong.expect(13).word(), "wrong_store");
    let mut newer = bench.read("ring");
    newer[8] = 2;
    let crc = crc32fast::hash(&newer[..60]).to_le_bytes();
    newer[60..64].copy_from_slice(&crc);
    bench.write("newer", &newer, 0o600);
    assert_eq!(
        rekey(&bench, &["import-keyring", "newer", "--key-file", "key"]).expect(14).word(),
        "newer_format"
    );
}

#[test]
fn beside_a_running_node_only_looking_is_possible() {
    let bench = Bench::new();
    bench.init();
    let before = generation(&bench, &KEY);
    let node = bench.node(&[]);
    rekey(&bench, &["export-keyring", "ring", "--key-file", "key"]).expect(0);
    for change in [
        &["add-slot", "x", "--new-key-file", "never"][..],
        &["remove-slot", "key"],
        &["rotate"],
        &["rotate", "--new-recovery", "--recovery-file", "never"],
        &["import-keyring", "ring"],
    ] {
        assert_eq!(rekey(&bench, &[change, &KEY].concat()).expect(11).word(), "locked", "{change:?}");
    }
    assert!(!bench.path("never").exists());
    assert_eq!(generation(&bench, &KEY), before);
    node.kill();
    rekey(&bench, &["rotate", "--key-file", "key"]).expect(0);
    opens(&bench, &KEY, 0);
}

/// The four steps of the manual: afterwards the old keyring and the revoked key open nothing that is there.
#[test]
fn revoking_takes_four_steps() {
    let bench = Bench::new();
    let id = bench.finished();
    rekey(&bench, &[&["add-slot", "spare", "--new-key-file", "spare"], &KEY[..]].concat()).expect(0);
    rekey(&bench, &["export-keyring", "stolen", "--key-file", "spare"]).expect(0);
    rekey(&bench, &[&["remove-slot", "spare"], &KEY[..]].concat()).expect(0);
    rekey(&bench, &[&["rotate"], &KEY[..]].concat()).expect(0);
    let stolen = ["import-keyring", "stolen", "--replace", "--key-file", "spare"];
    bench.run(&["journal", "compact", "data", "--key-file", "key"]).expect(0);
    let roots = |bench: &Bench| -> Vec<(String, u64)> {
        let list = rekey(bench, &["list", "--json", "--key-file", "key"]).expect(0).json();
        let root = |root: &serde_json::Value| {
            (root["state"].as_str().unwrap().to_owned(), root["segments"].as_u64().unwrap())
        };
        list["root_keys"].as_array().unwrap().iter().map(root).collect()
    };
    let found = roots(&bench);
    assert_eq!(
        (found[0].0.as_str(), found[0].1),
        ("retired", 0),
        "no segment is under the old key: {found:?}"
    );
    assert!(found[1].1 > 0);
    // The next change drops it, once the head names it no more.
    bench.run(&["run", "more", "--data-dir", "data", "--key-file", "key"]).expect(0);
    rekey(&bench, &[&["add-slot", "other", "--new-key-file", "other"], &KEY[..]].concat()).expect(0);
    assert_eq!(roots(&bench).len(), 1);
    bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(0);
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
    // Whoever has the old keyring and the revoked key.
    rekey(&bench, &stolen).expect(0);
    bench.run(&["journal", "replay", "data", &id, "--key-file", "spare"]).expect(13);
}
