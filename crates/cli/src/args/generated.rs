//! Shell completions and man pages, made of the command line itself and kept in `tools/packaging/`.
//!
//! A file that no longer follows the command line fails the test; `SEALOG_UPDATE_GOLDEN=1` writes them anew. Nothing of
//! it is in the binary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Cli, EXIT_CODES};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/packaging")
}

/// Every page of a command and of those below it. `above`: the names of the pages that it stands below.
fn pages(command: &Command, name: &str, above: &[&str], out: &mut BTreeMap<String, Vec<u8>>) {
    let spoken = name.replace('-', " ");
    // A page names its command in full; the version of a build is no part of it.
    let mut titled = command.clone().display_name(name.to_owned()).bin_name(spoken);
    let has_below = command.has_subcommands();
    if has_below {
        // It has no page of its own.
        titled = titled.mut_subcommand("help", |help| help.hide(true));
    }
    let man = Man::new(titled).source("Sealog").manual("Sealog").date("");
    let mut page = Vec::new();
    man.render_title(&mut page).unwrap();
    man.render_name_section(&mut page).unwrap();
    man.render_synopsis_section(&mut page).unwrap();
    man.render_description_section(&mut page).unwrap();
    man.render_options_section(&mut page).unwrap();
    if has_below {
        man.render_subcommands_section(&mut page).unwrap();
    }
    page.extend(closing(above).into_bytes());
    out.insert(format!("man/{name}.1"), page);
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        pages(below, &format!("{name}-{}", below.get_name()), &[above, &[name]].concat(), out);
    }
}

/// What every page ends with: the exit codes, and the pages above it.
fn closing(above: &[&str]) -> String {
    let codes = EXIT_CODES.trim_start_matches("Exit codes: ").trim_end_matches('.');
    let mut text = ".SH \"EXIT STATUS\"\n".to_owned();
    for code in codes.split(", ") {
        let (code, words) = code.split_once(' ').unwrap();
        text += &format!(".TP\n\\fB{code}\\fR\n{words}\n");
    }
    let named = |name: &&str| format!("\\fB{}\\fR(1)", name.replace('-', "\\-"));
    if !above.is_empty() {
        text += &format!(".SH \"SEE ALSO\"\n{}\n", above.iter().map(named).collect::<Vec<_>>().join(", "));
    }
    text
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
    pages(&command, "sealog", &[], &mut out);
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
