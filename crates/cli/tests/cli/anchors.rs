//! Anchors from outside: what `inspect --head` prints, `verify --anchor` judges, with its exit codes.

use crate::bench::{Bench, Ran};

fn head(bench: &Bench) -> String {
    bench.run(&["journal", "inspect", "data", "--head", "--key-file", "key"]).expect(0).stdout
}

fn verify(bench: &Bench, dir: &str, anchor: &str) -> Ran {
    bench.run(&["journal", "verify", dir, "--anchor", anchor, "--key-file", "key", "--json"])
}

fn more(bench: &Bench, dir: &str) {
    bench.run(&["run", "more", "--data-dir", dir, "--key-file", "key"]).expect(0);
}

#[track_caller]
fn copy(bench: &Bench, to: &str) {
    for folder in ["", "/segments", "/quarantine"] {
        bench.make_dir(&format!("{to}{folder}"), 0o700);
    }
    for (path, bytes) in bench.files("data") {
        let name = path.to_str().unwrap().strip_prefix(&bench.text("data")).unwrap().to_owned();
        bench.write(&format!("{to}{name}"), &bytes, 0o600);
    }
}

#[test]
fn an_anchor_tells_what_goes_on_from_what_was_set_back_or_went_apart() {
    let bench = Bench::new();
    bench.finished();
    let old = head(&bench);
    assert!(old.starts_with("sealog-anchor-1 store ") && old.lines().count() == 1, "{old}");
    let json = bench.run(&["journal", "inspect", "data", "--head", "--key-file", "key", "--json"]).expect(0);
    assert_eq!(verify(&bench, "data", &old).expect(0).json()["anchor"], "matches");
    copy(&bench, "older");
    more(&bench, "data");
    let new = head(&bench);
    bench.write("new.txt", new.as_bytes(), 0o644);
    bench.write("old.json", json.stdout.as_bytes(), 0o644);
    for (anchor, word) in [(old.as_str(), "contained"), ("old.json", "contained"), ("new.txt", "matches")] {
        assert_eq!(verify(&bench, "data", anchor).expect(0).json()["anchor"], word);
    }
    let behind = verify(&bench, "older", "new.txt").expect(13);
    assert_eq!(
        (&behind.json()["anchor"], &behind.error()["code"]),
        (&"behind".into(), &"rolled_back".into())
    );
    // A backup is older than its journal by nature: nobody replaced it.
    bench.run(&["journal", "backup", "older", "backup", "--key-file", "key"]).expect(0);
    let taken_before = verify(&bench, "backup", "new.txt").expect(13);
    assert_eq!(taken_before.error()["code"], "rolled_back");
    assert!(behind.stderr.contains("who replaced older") && !taken_before.stderr.contains("who replaced"));
    more(&bench, "older");
    let apart = verify(&bench, "older", "new.txt").expect(13);
    assert_eq!((&apart.json()["anchor"], &apart.error()["code"]), (&"diverged".into(), &"diverged".into()));
    let store = new.split(' ').nth(2).unwrap();
    let other = verify(&bench, "data", &new.replace(store, &"0".repeat(32))).expect(13);
    assert_eq!(other.error()["code"], "wrong_store");
    for bad in ["nowhere", "data/store", "sealog-anchor-1 store 00"] {
        assert_eq!(verify(&bench, "data", bad).expect(2).error()["code"], "bad_anchor");
    }
}

/// JR-3, row 4: a newest segment without its frames, and a head from before them, are what a crash leaves as well.
#[test]
fn a_newest_segment_cut_to_its_header_is_told_by_an_anchor_alone() {
    const HEADERS_BYTES: usize = 8192;
    let bench = Bench::new();
    bench.finished();
    let earlier = bench.read("data/head");
    more(&bench, "data");
    let anchor = head(&bench);
    let newest = "data/segments/000000000002.seg";
    let segment = bench.read(newest);
    bench.write(newest, &segment[..HEADERS_BYTES], 0o600);
    let named = bench.run(&["journal", "verify", "data", "--key-file", "key", "--json"]).expect(13);
    assert_eq!(named.error()["place"]["row"], 5, "the head that named its frames tells");
    bench.write("data/head", &earlier, 0o600);
    let alone = bench.run(&["journal", "verify", "data", "--key-file", "key", "--json"]).expect(0);
    assert_eq!(alone.json()["verdict"], "sound");
    assert_eq!(verify(&bench, "data", &anchor).expect(13).error()["code"], "rolled_back");
}
