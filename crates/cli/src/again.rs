//! The flags of this call that a command which is suggested needs as well: with another key, or of another node, it would
//! not say what it is suggested for.
//!
//! Owns their words. They are those of the one command line that a process has, so they are kept for its whole life.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::failure::shown;

/// Each as it is put behind a command: nothing, or a space and the flags.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given {
    place: String,
    key: String,
    /// Who was asked about executions: a node, or a journal in its place.
    asked: String,
}

const ASKING: [&str; 5] = ["run", "ps", "show", "tail", "cancel"];

static GIVEN: OnceLock<Given> = OnceLock::new();

/// Keeps the flags of the command line. Only the first call counts.
pub fn keep(matches: &ArgMatches) {
    let _ = GIVEN.set(Given::of(matches));
}

/// What opens the same journal: its key and what is accepted as its place.
pub fn same_key() -> String {
    GIVEN.get().map(|given| format!("{}{}", given.key, given.place)).unwrap_or_default()
}

/// The same place, whatever opens it.
pub fn same_place() -> &'static str {
    GIVEN.get().map_or("", |given| &given.place)
}

/// What asks the same node, or the journal that was read in its place, about executions.
pub fn same_asked() -> String {
    GIVEN.get().map(|given| given.asked.clone()).unwrap_or_default()
}

impl Given {
    fn of(matches: &ArgMatches) -> Given {
        let (mut verb, mut name) = (matches, "");
        while let Some((word, below)) = verb.subcommand() {
            (verb, name) = (below, word);
        }
        let flags = |names: &[&str]| names.iter().map(|name| flag(verb, name)).collect::<String>();
        let place = flags(&["allow_network_fs"]);
        let mut key = flags(&["key_file", "key_fd", "passphrase_file", "prompt"]);
        for number in values(verb, "key_fd") {
            // A descriptor is the call's own: who repeats it opens it again.
            let _ = write!(key, " {}<KEY", shown(Path::new(number)));
        }
        let asked = match flags(&["data_dir"]) {
            // `serve` has a token file too, but that is the node's.
            _ if !ASKING.contains(&name) => String::new(),
            dir if dir.is_empty() => flags(&["url", "ca_file", "token_file"]),
            dir => format!("{dir}{key}{place}"),
        };
        Given { place, key, asked }
    }
}

fn flag(verb: &ArgMatches, id: &str) -> String {
    let name = id.replace('_', "-");
    if !verb.try_contains_id(id).unwrap_or(false) || verb.value_source(id) != Some(ValueSource::CommandLine) {
        return String::new();
    }
    // A switch has its truth as its value.
    match verb.try_get_one::<bool>(id) {
        Ok(Some(false)) => String::new(),
        Ok(_) => format!(" --{name}"),
        Err(_) => values(verb, id).map(|value| format!(" --{name} {}", shown(Path::new(value)))).collect(),
    }
}

fn values<'a>(verb: &'a ArgMatches, id: &str) -> impl Iterator<Item = &'a OsStr> {
    verb.try_get_raw(id).ok().flatten().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction, Command};

    use super::*;

    fn given(line: &str) -> Given {
        let value = |(id, name)| Arg::new(id).long(name).action(ArgAction::Append);
        let switch = |(id, name)| Arg::new(id).long(name).action(ArgAction::SetTrue);
        let opens = |command: Command| {
            let files = [
                ("key_file", "key-file"),
                ("passphrase_file", "passphrase-file"),
                ("token_file", "token-file"),
            ];
            let values = [("data_dir", "data-dir"), ("key_fd", "key-fd")].map(value);
            let switches = [("prompt", "prompt"), ("allow_network_fs", "allow-network-fs")].map(switch);
            command.args(files.map(value)).args(values).args(switches)
        };
        let asks = |command: Command| opens(command).arg(value(("url", "url")).default_value("http://node"));
        let tree = Command::new("sealog").subcommands([
            opens(Command::new("serve")),
            asks(Command::new("show")),
            Command::new("journal").subcommand(opens(Command::new("verify"))),
        ]);
        Given::of(&tree.try_get_matches_from(line.split(' ')).unwrap())
    }

    fn words(key: &str, place: &str, asked: &str) -> Given {
        Given { key: key.into(), place: place.into(), asked: asked.into() }
    }

    #[test]
    fn flags_are_kept_as_they_were_given_and_defaults_are_not() {
        assert_eq!(given("sealog journal verify"), Given::default());
        assert_eq!(given("sealog show"), Given::default());
        let two = " --key-file a --key-file b";
        let all = " --key-file a --passphrase-file p --prompt";
        let place = " --allow-network-fs";
        assert_eq!(given(&format!("sealog journal verify{two}")), words(two, "", ""));
        assert_eq!(given(&format!("sealog journal verify{place}{all}")), words(all, place, ""));
        assert_eq!(given("sealog journal verify --key-fd 3"), words(" --key-fd 3 3<KEY", "", ""));
    }

    #[test]
    fn a_node_that_is_asked_is_no_node_that_is_served() {
        let node = " --url https://h --token-file t";
        assert_eq!(given(&format!("sealog show{node}")), words("", "", node));
        assert_eq!(given("sealog serve --token-file t"), Given::default());
        let journal = " --data-dir d --key-file k --allow-network-fs";
        let read = given(&format!("sealog show{journal}"));
        assert_eq!(read, words(" --key-file k", " --allow-network-fs", journal));
    }
}
