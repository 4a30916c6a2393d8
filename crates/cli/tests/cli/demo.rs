//! `demo`: ends well, says only what it saw, leaves nothing behind.

use crate::bench::Bench;

#[test]
fn the_demonstration_ends_well_and_leaves_nothing() {
    let bench = Bench::new();
    bench.make_dir("tmp", 0o700);
    let mut command = bench.command(&["demo"]);
    let ran = crate::bench::Ran::from(command.env("TMPDIR", bench.path("tmp")).output().unwrap()).expect(0);
    assert_eq!(ran.stderr, "");
    let steps: Vec<&str> = ran.stdout.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    let told: Vec<&str> = steps.iter().copied().filter(|step| *step != "event").collect();
    assert_eq!(
        told,
        [
            "started",
            "accepted",
            "killed",
            "restarted",
            "kept",
            "unknown",
            "once",
            "asked",
            "stopped",
            "replayed",
            "verified",
            "sealed",
            "done"
        ]
    );
    assert!(bench.path("tmp").read_dir().unwrap().next().is_none());
    assert!(!bench.path("config").exists() && !bench.path("state").exists());
}

#[test]
fn a_demonstration_that_cannot_start_fails() {
    let bench = Bench::new();
    let mut command = bench.command(&["demo"]);
    let ran =
        crate::bench::Ran::from(command.env("TMPDIR", bench.path("absent")).output().unwrap()).expect(1);
    assert_eq!(ran.word(), "demo_failed");
}
