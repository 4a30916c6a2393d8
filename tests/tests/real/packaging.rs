//! The files of `tools/packaging/`: the unit is one that systemd takes, the container file one that its linter takes,
//! completions are what their shells complete by, and man pages print without a complaint.
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

/// What a program says on standard output; it must say nothing else.
#[track_caller]
fn said(program: &str, arguments: &[&str], file: &Path) -> String {
    let run = Command::new(program).args(arguments).arg(file).output();
    let run = run.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(run.status.success() && run.stderr.is_empty(), "{program} {arguments:?} {run:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// Beginnings of lines and what must be among the proposals for them.
const BEGUN: [(&str, &[&str]); 4] = [
    ("sealog jo", &["journal"]),
    ("sealog serve --tls", &["--tls-cert", "--tls-key"]),
    ("sealog journal rekey d a", &["add-slot"]),
    ("sealog config s", &["show"]),
];

#[test]
fn bash_and_fish_complete_verbs_and_flags_by_the_files() {
    const BASH: &str = "source $0
        of=$(complete -p sealog | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        $of sealog \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    for (line, proposals) in BEGUN {
        let bash = format!("COMP_WORDS=({line}); {BASH}");
        let bash = said("bash", &["--norc", "--noprofile", "-c", &bash], &file("completions/sealog.bash"));
        assert_eq!(bash.lines().collect::<Vec<_>>(), proposals, "{line}");
        let fish = format!("source $argv[1]; complete --do-complete '{line}'");
        let fish = said("fish", &["--no-config", "-c", &fish], &file("completions/sealog.fish"));
        let fish: Vec<&str> = fish.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(fish, proposals, "{line}");
    }
}

#[test]
fn zsh_takes_the_file_and_knows_whom_it_completes() {
    const ZSH: &str = "autoload -U compinit; compinit -u -D; source $0; print $_comps[sealog]";
    assert_eq!(said("zsh", &["-f", "-c", ZSH], &file("completions/_sealog")), "_sealog\n");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the pages are files")]
fn every_man_page_prints_without_a_complaint() {
    let pages: Vec<PathBuf> =
        std::fs::read_dir(file("man")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(pages.len() > 30, "{pages:?}");
    for page in pages {
        let printed = said("groff", &["-man", "-Tutf8", "-ww", "-P-cbou"], &page);
        let name = page.file_stem().unwrap().to_str().unwrap();
        // Lines are filled with blanks.
        let words: Vec<&str> = printed.split_whitespace().collect();
        let begins = ["NAME", name, "-"];
        assert!(words.windows(3).any(|found| found == begins), "{name}: {printed}");
    }
}
