//! Making a journal: where it may be made, with which key, and what an interrupted creation leaves.

use std::os::unix::fs::PermissionsExt;

use crate::bench::Bench;

const INIT: [&str; 5] = ["journal", "init", "data", "--key-file", "key"];

#[test]
fn directory_and_key_are_private() {
    let bench = Bench::new();
    bench.run(&INIT).expect(0);
    let mode = |name: &str| bench.path(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("data"), mode("key"), mode("data/store")), (0o700, 0o600, 0o600));
    assert_eq!(bench.read("key").len(), 64);
}

#[test]
fn a_journal_is_not_made_twice() {
    let bench = Bench::new();
    let id = bench.finished();
    let before = bench.files("data");
    for key in ["key", "other.key"] {
        let again = bench.run(&["journal", "init", "data", "--key-file", key]).expect(1);
        assert_eq!(again.word(), "already_exists");
    }
    assert!(bench.files("data") == before && !bench.path("other.key").exists());
    bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(0);
}

#[test]
fn an_empty_directory_is_closed_to_others_and_a_full_one_left_alone() {
    let bench = Bench::new();
    bench.make_dir("data", 0o755);
    bench.run(&INIT).expect(0);
    let mode = bench.path("data").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let bench = Bench::new();
    bench.make_dir("data", 0o700);
    bench.write("data/letter.txt", b"dear", 0o600);
    let refused = bench.run(&INIT).expect(10);
    assert_eq!(refused.word(), "not_empty");
    assert!(!bench.path("key").exists());
    assert_eq!(bench.files("data").len(), 1);
}

#[test]
fn an_open_directory_with_a_journal_is_refused() {
    let bench = Bench::new();
    bench.init();
    rustix::fs::chmod(bench.path("data"), rustix::fs::Mode::from_raw_mode(0o750)).unwrap();
    for verb in ["verify", "inspect"] {
        let ran = bench.run(&["journal", verb, "data", "--key-file", "key"]).expect(1);
        assert_eq!(ran.word(), "unsafe_directory");
    }
}

#[test]
fn an_interrupted_creation_is_completed_with_its_key_or_made_anew() {
    let bench = Bench::new();
    bench.init();
    let store_id = |bench: &Bench| {
        let inspect = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]);
        inspect.expect(0).json()["store_id"].as_str().unwrap().to_owned()
    };
    let first = store_id(&bench);
    // The last step never happened.
    bench.remove("data/store");
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(10);
    bench.run(&INIT).expect(0);
    assert_eq!(store_id(&bench), first);
    // The key was not made either: nothing can rely on what is there.
    bench.remove("data/store");
    bench.remove("key");
    bench.run(&INIT).expect(0);
    assert_ne!(store_id(&bench), first);
    // A key file in its default place completes too.
    let bench = Bench::new();
    let made = bench.run(&["journal", "init", "data", "--json"]).json();
    bench.remove("data/store");
    assert_eq!(
        bench.run(&["journal", "init", "data", "--json"]).expect(0).json()["store_id"],
        made["store_id"]
    );
}

#[test]
fn serve_makes_a_journal_and_says_where_its_key_is() {
    let bench = Bench::new();
    let node = crate::bench::Node::start(bench.command(&["serve", "--listen", "127.0.0.1:0"]));
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(0));
    let keys = bench.files("config/sealog");
    assert_eq!(keys.len(), 1);
    assert!(stderr.contains(keys[0].0.to_str().unwrap()), "{stderr}");
    let state = bench.text("state/sealog");
    bench.run(&["journal", "verify", &state]).expect(0);
}
