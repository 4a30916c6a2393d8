//! The tools themselves answer, and the binaries under test are built.

use std::process::Command;

use sealog_tests::binary;

#[track_caller]
fn check(program: &str, argument: &str) {
    let output = Command::new(program).arg(argument).output();
    assert!(output.is_ok_and(|output| output.status.success()), "`{program} {argument}` does not answer");
}

#[test]
fn strace_answers() {
    check("strace", "--version");
}

#[test]
fn the_browser_and_its_driver_answer() {
    check("chromium", "--version");
    check("chromedriver", "--version");
}

#[test]
fn the_judges_of_the_packaging_answer() {
    check("systemd-analyze", "--version");
    check("hadolint", "--version");
    for program in ["bash", "fish", "zsh", "groff"] {
        check(program, "--version");
    }
}

#[test]
fn python_can_make_environments() {
    check("python3", "--version");
    let output = Command::new("python3").args(["-c", "import ensurepip, venv"]).output();
    assert!(output.is_ok_and(|output| output.status.success()), "python3 lacks its module venv");
}

#[test]
fn the_binaries_under_test_are_built() {
    for name in ["sealog", "crashbox"] {
        assert!(binary(name).is_file(), "{name}");
    }
}
