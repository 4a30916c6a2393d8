//! A command that is suggested runs as it is printed: with the key, the place and the node of the call that it follows.

use std::process::{Command, Stdio};

use crate::bench::{Bench, Ran};

/// The commands in what was said, in order. Each ends with its clause.
fn suggested(ran: &Ran) -> Vec<String> {
    let lines = ran.stderr.lines().filter(|line| line.contains("next: ") || line.starts_with("sealog: "));
    let tails = lines.flat_map(|line| line.match_indices("sealog ").map(|(at, _)| line[at..].to_owned()));
    tails.map(|tail| tail[..tail.find([';', ')']).unwrap_or(tail.len())].to_owned()).collect()
}

/// The one that begins so.
#[track_caller]
fn one(ran: &Ran, beginning: &str) -> String {
    let found = suggested(ran).into_iter().find(|command| command.starts_with(beginning));
    found.unwrap_or_else(|| panic!("no `{beginning}` in: {}", ran.stderr))
}

/// A shell runs it, as somebody who pastes it would.
fn paste(bench: &Bench, command: &str) -> Ran {
    let like = bench.command(&[]);
    let words = command.strip_prefix("sealog ").unwrap();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("exec \"$0\" {words}")).arg(like.get_program());
    shell.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(like.get_current_dir().unwrap()).stdin(Stdio::null()).output().unwrap().into()
}

#[test]
fn a_journals_key_goes_with_what_is_suggested() {
    let bench = Bench::new();
    bench.write("pass phrase", b"correct horse", 0o600);
    let key = ["--passphrase-file", "pass phrase", "--allow-network-fs"];
    let run = |arguments: &[&str], code: i32| bench.run(&[arguments, &key].concat()).expect(code);
    // Nothing there yet.
    let init = one(&run(&["journal", "verify", "data"], 10), "sealog journal init data ");
    assert_eq!(init, "sealog journal init data --passphrase-file 'pass phrase' --allow-network-fs");
    paste(&bench, &init).expect(0);
    run(&["run", "hi", "--data-dir", "data"], 0);
    let unknown = "0b9f1a52-3f0a-4d0e-9a3e-111111111111";

    let list = run(&["journal", "inspect", "data", "--execution", unknown], 4);
    paste(&bench, &one(&list, "sealog journal inspect ")).expect(0);
    let ps = one(&run(&["show", unknown, "--data-dir", "data"], 4), "sealog ps ");
    assert_eq!(ps, "sealog ps --data-dir data --passphrase-file 'pass phrase' --allow-network-fs");
    paste(&bench, &ps).expect(0);
    let slots = run(&["journal", "rekey", "data", "remove-slot", "nobody"], 4);
    paste(&bench, &one(&slots, "sealog journal rekey ")).expect(0);
    paste(&bench, &one(&run(&["journal", "init", "data"], 1), "sealog journal inspect ")).expect(0);
    let lost = bench.run_into_full(&[&["run", "again", "--data-dir", "data"], &key[..]].concat()).expect(1);
    // It ended with the process; what it said stands.
    let seen = paste(&bench, &one(&lost, "sealog tail "));
    assert!(seen.stdout.contains("hello"), "{seen:?}");

    run(&["journal", "backup", "data", "copy"], 0);
    let served = run(&["run", "hi", "--data-dir", "copy"], 10);
    let restored = paste(&bench, &one(&served, "sealog journal restore copy ")).expect(0);
    assert!(bench.path("NEWDIR").exists());
    paste(&bench, &one(&restored, "sealog journal unfence ")).expect(0);

    bench.flip("data/segments/000000000001.seg", 8500);
    let damaged = run(&["journal", "verify", "data"], 13);
    bench.remove_dir("NEWDIR");
    let repaired = paste(&bench, &one(&damaged, "sealog journal repair ")).expect(0);
    paste(&bench, &one(&repaired, "sealog journal unfence ")).expect(0);
}

#[test]
fn a_key_that_did_not_fit_is_not_suggested_again() {
    let bench = Bench::new();
    bench.finished();
    bench.write("other", &[1; 32], 0o600);
    let wrong = bench.run(&["journal", "verify", "data", "--key-file", "other"]).expect(12);
    assert_eq!(
        one(&wrong, "sealog journal inspect "),
        "sealog journal inspect data --key-file FILE, or --passphrase-file FILE"
    );
    let absent = bench.run(&["journal", "init", "data", "--key-file", "new"]).expect(1);
    assert_eq!(one(&absent, "sealog journal inspect "), "sealog journal inspect data --key-file FILE");
}

#[test]
fn a_descriptor_is_opened_again_by_whoever_repeats_the_call() {
    let bench = Bench::new();
    bench.finished();
    let no_slot = paste(&bench, "sealog journal rekey data remove-slot nobody --key-fd 3 3<key").expect(4);
    let list = one(&no_slot, "sealog journal rekey ");
    assert_eq!(list, "sealog journal rekey data list --key-fd 3 3<KEY");
    paste(&bench, &list.replace("KEY", "key")).expect(0);
}

#[test]
fn a_node_goes_with_what_is_suggested() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let url = node.url();
    let unknown = "0b9f1a52-3f0a-4d0e-9a3e-111111111111";
    for verb in ["show", "tail"] {
        let ps = one(&bench.run(&[verb, unknown, "--url", url]).expect(4), "sealog ps ");
        assert_eq!(ps, format!("sealog ps --url {url}"));
        paste(&bench, &ps).expect(0);
    }
    let lost = bench.run_into_full(&["run", "hi", "--url", url]).expect(1);
    let seen = paste(&bench, &one(&lost, "sealog tail -f ")).expect(0);
    assert!(seen.stdout.contains("hello"), "{seen:?}");
    let ended = one(&lost, "sealog tail -f ").replace("sealog tail -f ", "");
    let ended = ended.split(' ').next().unwrap();
    let cancelled = bench.run(&["cancel", ended, "--url", url]).expect(4);
    paste(&bench, &one(&cancelled, "sealog show ")).expect(0);
    // The node's own: its key is not the node's that asks.
    let inspect = bench.run(&["journal", "compact", "data", "--key-file", "key"]).expect(11);
    paste(&bench, &one(&inspect, "sealog journal inspect ")).expect(0);
    node.stop();
}
