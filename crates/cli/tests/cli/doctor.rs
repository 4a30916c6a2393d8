//! `sealog doctor`: what it says of a healthy place and of others, and that it touches nothing.

use crate::bench::{Bench, Node};

const DOCTOR: [&str; 4] = ["doctor", "--data-dir", "data", "--json"];

fn state(answer: &serde_json::Value, name: &str) -> String {
    let checks = answer["checks"].as_array().unwrap();
    let check =
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {answer}"));
    check["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_healthy_place_is_measured_and_left_as_it_was() {
    let bench = Bench::new();
    bench.finished();
    let before = bench.files("data");
    let answer = bench.run(&DOCTOR).expect(0).json();
    assert!(bench.files("data") == before);
    assert_eq!(answer["healthy"], true);
    for name in ["directory", "journal", "lock", "clock"] {
        assert_eq!(state(&answer, name), "fine", "{answer}");
    }
    let disk = &answer["disk"];
    assert!(disk["sync_p50_us"].as_u64().unwrap() <= disk["sync_p99_us"].as_u64().unwrap());
    assert!(disk["single_per_s"].as_u64().unwrap() > 0 && disk["grouped_per_s"].as_u64().unwrap() > 0);
    assert_eq!(answer["expect"].as_array().unwrap().len(), 3);
    let text = bench.run(&["doctor", "--data-dir", "data"]).expect(0).stdout;
    assert!(
        text.contains("fine     lock: free\n") && text.contains("expect   one client at a time"),
        "{text}"
    );
}

/// What it measures on has no name: killed while it does, it leaves nothing.
#[test]
fn a_killed_one_leaves_nothing() {
    let bench = Bench::new();
    bench.finished();
    let before = bench.files("data");
    let measures = |process: u32| {
        let open_files = format!("/proc/{process}/fd");
        let Ok(entries) = std::path::Path::new(&open_files).read_dir() else { return false };
        let targets = entries.filter_map(|entry| entry.ok()?.path().read_link().ok());
        let data = bench.path("data");
        targets.into_iter().any(|to| to.starts_with(&data) && to.to_string_lossy().ends_with(" (deleted)"))
    };
    let killed_while_it_measures = || {
        let mut command = bench.command(&DOCTOR);
        let mut child =
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        while !measures(child.id()) {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap().code().is_none()
    };
    // Where a sync costs nothing it may be over before anybody looked.
    assert!((0..200).any(|_| killed_while_it_measures()), "it was never seen to measure");
    assert!(bench.files("data") == before);
}

#[test]
fn it_works_beside_a_node_and_before_the_first_start() {
    let bench = Bench::new();
    let absent = bench.run(&DOCTOR).expect(0).json();
    assert_eq!(state(&absent, "directory"), "warning");
    assert!(absent["disk"].is_object() && !bench.path("data").exists());
    bench.init();
    let node: Node = bench.node(&[]);
    let answer = bench.run(&["doctor", "--data-dir", "data"]).expect(0);
    assert!(answer.stdout.contains("lock: held: a node is running"), "{}", answer.stdout);
    assert!(node.http("GET /v1/runtime", "").contains("200"));
    node.kill();
}

#[test]
fn what_is_wrong_is_said_and_exits_with_1() {
    let bench = Bench::new();
    bench.finished();
    rustix::fs::chmod(bench.path("data"), rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
    let open = bench.run(&DOCTOR).expect(1);
    assert_eq!(
        (state(&open.json(), "directory").as_str(), &open.error()["code"]),
        ("wrong", &"unfit".into())
    );
    rustix::fs::chmod(bench.path("data"), rustix::fs::Mode::from_raw_mode(0o700)).unwrap();
    // One copy of the keyring is enough.
    bench.remove("data/keyring.0");
    assert_eq!(state(&bench.run(&DOCTOR).expect(0).json(), "journal"), "fine");
    for (file, what) in [("keyring.1", "keyring"), ("head", "head"), ("store", "store")] {
        let bytes = bench.read(&format!("data/{file}"));
        bench.remove(&format!("data/{file}"));
        let lost = bench.run(&DOCTOR).expect(1);
        assert_eq!(state(&lost.json(), "journal"), "wrong", "{file}");
        assert!(lost.stdout.contains(&format!("{what} is missing beside journal data")), "{}", lost.stdout);
        bench.write(&format!("data/{file}"), &bytes, 0o600);
    }
    bench.flip("data/keyring.1", 70);
    assert_eq!(state(&bench.run(&DOCTOR).expect(1).json(), "journal"), "wrong");
    bench.remove("data/keyring.1");
}

/// What it says of a directory is what a start makes of it.
#[test]
fn it_agrees_with_a_start() {
    let bench = Bench::new();
    let examined =
        |dir: &str, code: i32| bench.run(&["doctor", "--data-dir", dir, "--json"]).expect(code).json();
    let started = |dir: &str| {
        let json = ["serve", "--data-dir", dir, "--key-file", "key", "--listen", "127.0.0.1:0", "--json"];
        bench.run(&json).expect(10)
    };
    // Something else stands there.
    bench.make_dir("other", 0o700);
    bench.write("other/notes", b"mine", 0o600);
    assert_eq!(state(&examined("other", 1), "journal"), "wrong");
    assert_eq!(started("other").error()["code"], "not_empty");
    // A backup is no place for a node, and no mistake.
    bench.finished();
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    assert_eq!(state(&examined("copy", 0), "journal"), "warning");
    assert_eq!(started("copy").error()["code"], "is_backup");
    bench.flip("copy/manifest", 20);
    assert_eq!(state(&examined("copy", 1), "journal"), "wrong");
    // Empty and open to others: the first start closes it. Absent: the place above it counts.
    bench.make_dir("open", 0o755);
    for dir in ["open", "absent/below"] {
        let answer = examined(dir, 0);
        assert_eq!(state(&answer, "directory"), "warning");
        assert!(answer["disk"].is_object());
        for name in ["file system", "free space"] {
            let found = state(&answer, name);
            assert!(found == "fine" || found == "warning", "{dir}: {answer}");
        }
    }
    bench.run(&["journal", "init", "open", "--key-file", "new"]).expect(0);
    assert_eq!(state(&examined("open", 0), "directory"), "fine");
}
