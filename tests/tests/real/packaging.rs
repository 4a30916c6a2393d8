//! The files of `tools/packaging/`: the unit is one that systemd takes, the container file one that its linter takes.
//!
//! The container image itself is not built here.

use std::path::{Path, PathBuf};
use std::process::Command;

use sealog_tests::binary;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/packaging").join(name)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the unit is a file")]
fn systemd_takes_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let unit = std::fs::read_to_string(file("sealog.service")).unwrap();
    let installed = "/usr/local/bin/sealog";
    assert_eq!(unit.matches(&format!("ExecStart={installed} serve ")).count(), 1);
    // The program must be there and run; the one that was built stands in for the installed one.
    let built = unit.replace(installed, binary("sealog").to_str().unwrap());
    let path = folder.path().join("sealog.service");
    std::fs::write(&path, built).unwrap();
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .output()
        .expect("systemd-analyze");
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("sealog")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
    // A unit that is wrong is noticed.
    std::fs::write(&path, "[Service]\nType=notifying\nExecStart=/nowhere\n").unwrap();
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .output()
        .expect("systemd-analyze");
    assert!(!verified.status.success() || !verified.stderr.is_empty());
}

#[test]
fn the_linter_takes_the_container_file() {
    let linted = Command::new("hadolint").arg(file("Containerfile")).output().expect("hadolint");
    assert!(linted.status.success(), "{}", String::from_utf8_lossy(&linted.stdout));
}
