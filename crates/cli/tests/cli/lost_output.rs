//! What a verb has to say goes to a standard output that takes nothing: full, closed, or open for reading only. A result
//! that nobody can get is no success, whatever the runtime puts in the place of a missing descriptor.

use std::process::Command;

use crate::bench::{Bench, Ran};

const WAYS: [&str; 3] = [">/dev/full", ">&-", "1</dev/null"];

/// The command, from a shell that gives it such a standard output.
fn redirected(bench: &Bench, arguments: &[&str], way: &str) -> Ran {
    let command = bench.command(arguments);
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("exec \"$0\" \"$@\" {way}")).arg(command.get_program());
    shell.args(command.get_args()).current_dir(command.get_current_dir().unwrap()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(std::process::Stdio::null()).output().unwrap().into()
}

#[track_caller]
fn lost(bench: &Bench, arguments: &[&str], way: &str) {
    let ran = redirected(bench, arguments, way);
    assert_eq!(ran.code, Some(1), "{arguments:?} {way}: {ran:?}");
    assert_eq!(ran.word(), "output_failed", "{arguments:?} {way}");
}

/// Verbs that only read, with what they read; `ID` is the finished execution.
const READING: [&str; 24] = [
    "--help",
    "--version",
    "help tail",
    "journal inspect data --key-file key",
    "journal inspect data --key-file key --head",
    "journal inspect data --key-file key --execution ID",
    "journal verify data --key-file key",
    "journal replay data ID --key-file key",
    "journal replay data ID --key-file key --format text",
    "journal export data --key-file key",
    "journal compact data --key-file key --dry-run",
    "journal rekey data list --key-file key",
    "ps --data-dir data --key-file key",
    "show ID --data-dir data --key-file key",
    "tail ID --data-dir data --key-file key",
    "config check sealog.toml",
    "config show",
    "doctor --data-dir data",
    "serve --data-dir data --key-file key --listen 127.0.0.1:0",
    "ps --url URL",
    "show ID --url URL",
    "tail ID --url URL",
    "run hello --url URL",
    "demo",
];

/// Verbs that make something, `N` in its name.
const MAKING: [&str; 15] = [
    "journal init newN --key-file newN.key",
    "journal backup data copyN --key-file key",
    "journal restore data restoredN --key-file key",
    "journal unfence restoredN --key-file key",
    "journal repair data repairedN --key-file key",
    "journal export data --key-file key --output outN.jsonl",
    "journal import export.jsonl importedN --key-file importedN.key",
    "journal rekey data add-slot slotN --new-key-file slotN.key --key-file key",
    "journal rekey data remove-slot slotN --key-file key",
    "journal rekey data rotate --key-file key",
    "journal rekey data export-keyring ringN --key-file key",
    "journal rekey data import-keyring ringN --key-file key",
    "journal compact data --key-file key",
    "token new --scope read --file tokensN",
    "run hello --data-dir data --key-file key --idempotency-key N",
];

#[test]
fn no_verb_calls_a_lost_result_a_success() {
    let bench = Bench::new();
    let id = bench.finished();
    bench.write("sealog.toml", b"max_active_executions = 3\n", 0o644);
    bench.run(&["journal", "export", "data", "--key-file", "key", "--output", "export.jsonl"]).expect(0);
    for (number, way) in WAYS.into_iter().enumerate() {
        let node = bench.node(&[]);
        let fill = |text: &str| text.replace("ID", &id).replace("URL", node.url());
        let filled: Vec<String> =
            READING.iter().filter(|verb| verb.contains("URL")).map(|verb| fill(verb)).collect();
        for verb in &filled {
            lost(&bench, &verb.split(' ').collect::<Vec<_>>(), way);
        }
        node.stop();
        for verb in READING.iter().filter(|verb| !verb.contains("URL")) {
            let verb = verb.replace("ID", &id);
            lost(&bench, &verb.split(' ').collect::<Vec<_>>(), way);
        }
        for verb in MAKING {
            let verb = verb.replace('N', &number.to_string());
            lost(&bench, &verb.split(' ').collect::<Vec<_>>(), way);
        }
    }
    // What they did stands.
    for made in ["new1", "restored1", "repaired1", "imported1"] {
        assert!(bench.path(made).join("store").exists(), "{made}");
    }
}

/// `/dev/null` is where the runtime would send it too; whoever names it wants that.
#[test]
fn what_is_thrown_away_on_purpose_is_no_failure() {
    let bench = Bench::new();
    bench.init();
    for way in [">/dev/null", "1<>/dev/null"] {
        for verb in [&["--version"][..], &["journal", "verify", "data", "--key-file", "key"]] {
            redirected(&bench, verb, way).expect(0);
        }
    }
}
