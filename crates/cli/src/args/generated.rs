//! Shell completions and man pages, made of the command line itself and kept in `tools/packaging/`.
//!
//! A file that no longer follows the command line fails the test; `SEALOG_UPDATE_GOLDEN=1` writes them anew. Nothing of
//! it is in the binary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/packaging")
}

/// Every page of a command and of those below it.
fn pages(command: &Command, name: &str, out: &mut BTreeMap<String, Vec<u8>>) {
    let spoken = name.replace('-', " ");
    // A page names its command in full; the version of a build is no part of it.
    let titled = command.clone().display_name(name.to_owned()).bin_name(spoken);
    let man = Man::new(titled).source("Sealog").manual("Sealog").date("");
    let mut page = Vec::new();
    man.render(&mut page).unwrap();
    out.insert(format!("man/{name}.1"), page);
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        pages(below, &format!("{name}-{}", below.get_name()), out);
    }
}

fn generated() -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    for (shell, file) in [(Shell::Bash, "sealog.bash"), (Shell::Zsh, "_sealog"), (Shell::Fish, "sealog.fish")]
    {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "sealog", &mut text);
        out.insert(format!("completions/{file}"), text);
    }
    let mut command = Cli::command();
    command.build();
    pages(&command, "sealog", &mut out);
    out
}

/// Trailing blanks are no part of a tracked file.
fn tidied(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "generated files are files")]
fn completions_and_man_pages_follow_the_command_line() {
    let update = std::env::var_os("SEALOG_UPDATE_GOLDEN").is_some();
    let expected = generated();
    let mut wrong = Vec::new();
    for (name, text) in &expected {
        let (path, text) = (folder().join(name), tidied(text));
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if update {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        } else {
            wrong.push(name.clone());
        }
    }
    for below in ["completions", "man"] {
        for entry in std::fs::read_dir(folder().join(below)).unwrap() {
            let name = format!("{below}/{}", entry.unwrap().file_name().to_str().unwrap());
            if !expected.contains_key(&name) {
                if update {
                    std::fs::remove_file(folder().join(&name)).unwrap();
                } else {
                    wrong.push(name);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "SEALOG_UPDATE_GOLDEN=1 cargo test -p sealog generated: {wrong:?}");
}
