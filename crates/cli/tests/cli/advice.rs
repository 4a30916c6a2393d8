//! What the command line says when something small is wrong: which input, whose failure, what helps, what was left behind.

use std::net::TcpListener;

use crate::bench::{Bench, Node};

fn run(bench: &Bench, more: &[&str]) -> crate::bench::Ran {
    bench.run(&[&["run", "hi", "--data-dir", "data", "--key-file", "key"], more].concat())
}

#[test]
fn run_names_the_input_that_is_at_fault() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let url = node.url().to_owned();
    let many: Vec<String> = (0..65).map(|n| format!("\"m{n}\":1")).collect();
    let many = format!("{{{}}}", many.join(","));
    let long = "k".repeat(257);
    let cases: [(&[&str], &str); 6] = [
        (&["--ability", ""], "--ability takes"),
        (&["--provider", "a", "--provider", "a"], "--provider takes"),
        (&["--provider", "", "--allow-fallback"], "--provider takes"),
        (&["--extensions", &many], "--extensions takes"),
        (&["--extensions", r#"{"mock":{"a":1,"a":2}}"#], "--extensions takes"),
        (&["--idempotency-key", &long], "--idempotency-key takes"),
    ];
    for (flags, words) in cases {
        let ran = bench.run(&[&["run", "hi", "--url", &url], flags].concat()).expect(2);
        assert_eq!(ran.word(), "invalid_request");
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    node.stop();
    // In process the same, and only what is at fault.
    let ran = run(&bench, &["--ability", "", "--idempotency-key", "k"]).expect(2);
    assert!(ran.stderr.contains("--ability takes") && !ran.stderr.contains("--idempotency-key takes"));
    run(&bench, &["--idempotency-key", "k"]).expect(0);
    let other = run(&bench, &["--idempotency-key", "k", "--ability", "other"]).expect(2);
    assert!(!other.stderr.contains(" takes "), "each input is right by itself: {}", other.stderr);
}

#[test]
fn a_failure_names_its_provider() {
    let bench = Bench::new();
    let mock = r#"{"mock":{"fail_after":1,"fail_code":"rate_limited"}}"#;
    let failed = run(&bench, &["--extensions", mock]).expect(20);
    assert!(failed.stderr.contains("(provider provider-mock, model model-alpha)"), "{}", failed.stderr);
    let nobody = run(&bench, &["--ability", "nobody-has-it"]).expect(20);
    assert!(!nobody.stderr.contains("(provider "), "nobody was asked: {}", nobody.stderr);
}

/// What comes next is something that another verb than the one that was asked can do.
#[test]
fn a_lost_store_file_leads_to_what_reads_without_it() {
    let bench = Bench::new();
    bench.finished();
    for lost in [false, true] {
        match lost {
            false => bench.flip("data/store", 20),
            true => bench.remove("data/store"),
        }
        for verb in ["verify", "inspect", "export"] {
            let ran = bench.run(&["journal", verb, "data", "--key-file", "key"]).expect(13);
            assert!(ran.stderr.contains("sealog journal repair data NEWDIR"), "{}", ran.stderr);
            assert!(!ran.stderr.contains("verify data names"), "{}", ran.stderr);
        }
        let target = if lost { "one" } else { "two" };
        bench.run(&["journal", "repair", "data", target, "--key-file", "key"]).expect(0);
        bench.run(&["journal", "verify", target, "--key-file", "key"]).expect(0);
    }
}

#[test]
fn a_lost_keyring_leads_to_its_export() {
    let bench = Bench::new();
    bench.finished();
    bench.run(&["journal", "rekey", "data", "export-keyring", "ring", "--key-file", "key"]).expect(0);
    bench.remove("data/keyring.0");
    bench.remove("data/keyring.1");
    for verb in ["verify", "inspect"] {
        let ran = bench.run(&["journal", verb, "data", "--key-file", "key"]).expect(13);
        assert!(ran.stderr.contains("sealog journal rekey data import-keyring FILE"), "{}", ran.stderr);
    }
    bench.run(&["journal", "rekey", "data", "import-keyring", "ring", "--key-file", "key"]).expect(0);
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
}

#[test]
fn a_taken_port_leaves_no_journal_behind() {
    let bench = Bench::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", &address];
    let ran = bench.run(&serve).expect(1);
    assert_eq!(ran.word(), "listen_failed");
    assert!(!bench.path("data").exists() && !bench.path("key").exists());
    // A journal that is there is judged first: R17.
    bench.init();
    bench.write("other", &[7; 32], 0o600);
    let wrong = bench.run(&["serve", "--data-dir", "data", "--key-file", "other", "--listen", &address]);
    assert_eq!(wrong.expect(12).word(), "wrong_key");
    assert_eq!(bench.run(&serve).expect(1).word(), "listen_failed");
}

#[test]
fn what_a_killed_process_left_of_a_key_file_goes() {
    let bench = Bench::new();
    bench.init();
    bench.make_dir("config", 0o700);
    bench.make_dir("config/sealog", 0o700);
    for left in [".sealog-aB3xYz.tmp", "config/sealog/.sealog-aB3xYz.tmp"] {
        bench.write(left, &[1; 30], 0o600);
    }
    bench.write("config/sealog/.sealog-mine", b"no leftover", 0o600);
    run(&bench, &[]).expect(0);
    assert!(!bench.path(".sealog-aB3xYz.tmp").exists());
    let left = bench.files("config/sealog");
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].0.ends_with(".sealog-mine"));
}

#[test]
fn few_segments_are_listed_either_way() {
    let bench = Bench::new();
    bench.finished();
    let inspect = |more: &[&str]| {
        let arguments = [&["journal", "inspect", "data", "--key-file", "key"], more].concat();
        bench.run(&arguments).expect(0).stdout
    };
    assert_eq!(inspect(&[]), inspect(&["--segments"]));
    assert!(inspect(&[]).contains("\nsegment 1: "));
}

#[test]
fn a_taken_socket_leaves_no_journal_behind() {
    let bench = Bench::new();
    bench.write("file", b"no socket", 0o600);
    let at = format!("unix:{}", bench.path("file").display());
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", &at];
    let ran = bench.run(&serve).expect(1);
    assert_eq!(ran.word(), "listen_failed");
    assert!(ran.stderr.contains("safe: nothing was changed"), "{}", ran.stderr);
    assert!(!bench.path("data").exists() && !bench.path("key").exists());
}

#[test]
fn reading_beside_a_node_names_it_and_who_answers() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    for verb in [&["ps"] as &[&str], &["show", "x"], &["tail", "x"]] {
        let ran = bench.run(&[verb, &["--data-dir", "data", "--key-file", "key"]].concat()).expect(11);
        assert!(ran.stderr.contains("(pid ") && ran.stderr.contains("without --data-dir"), "{}", ran.stderr);
    }
    let repaired = bench.run(&["journal", "repair", "data", "new", "--key-file", "key"]).expect(11);
    assert!(repaired.stderr.contains("(pid "), "{}", repaired.stderr);
    node.stop();
}

#[test]
fn what_comes_next_is_something_that_the_verb_can_do() {
    let bench = Bench::new();
    let url = ["--url", "http://127.0.0.1:1"];
    for (verb, reads_a_journal) in [
        (&["cancel", "x"] as &[&str], false),
        (&["run", "x"], false),
        (&["ps"], true),
        (&["show", "x"], true),
    ] {
        let ran = bench.run(&[verb, &url].concat()).expect(75);
        assert_eq!(ran.word(), "no_node");
        assert!(ran.stderr.contains("because: 127.0.0.1:1: "), "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("--data-dir DIR"), reads_a_journal, "{verb:?}: {}", ran.stderr);
    }
    bench.write("token", b"sealog_x", 0o644);
    let ran = bench.run(&["ps", "--token-file", "token"]).expect(2);
    assert!(ran.stderr.contains("next: close it to others: chmod 600 token"), "{}", ran.stderr);
}

#[test]
fn a_damaged_journal_leads_to_a_backup_or_a_repair() {
    let bench = Bench::new();
    bench.finished();
    bench.flip("data/segments/000000000001.seg", 8500);
    for verb in [&["journal", "verify", "data"] as &[&str], &["serve", "--data-dir", "data"]] {
        let ran = bench.run(&[verb, &["--key-file", "key"]].concat()).expect(13);
        for words in ["sealog journal restore BACKUP NEWDIR", "sealog journal repair data NEWDIR"] {
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
    }
    // The verbs that ask say who prints what reads, and those do.
    for verb in [&["ps"][..], &["show", "x"], &["tail", "x"]] {
        let ran = bench.run(&[verb, &["--data-dir", "data", "--key-file", "key"]].concat()).expect(13);
        assert!(
            ran.stderr.contains("what reads: sealog journal inspect data --executions"),
            "{}",
            ran.stderr
        );
    }
}

/// A copy in the journal's own directory goes where the journal goes; a key there goes with every copy of it.
#[test]
fn nothing_is_made_in_the_directory_of_the_journal() {
    let bench = Bench::new();
    bench.finished();
    let before = bench.files("data");
    for verb in [
        "backup data data",
        "backup data data/copy",
        "restore data data",
        "restore data data/new",
        "repair data data/new",
        "export data --output data/all.jsonl",
        "rekey data export-keyring data/ring",
        "rekey data add-slot two --new-key-file data/segments/two",
        "rekey data rotate --new-recovery --recovery-file ./data/recovery",
    ] {
        let verb: Vec<&str> = verb.split(' ').collect();
        let ran = bench.run(&[&["journal"], &verb[..], &["--key-file", "key"]].concat()).expect(2);
        assert_eq!(ran.word(), "bad_argument", "{verb:?}");
        assert!(ran.stderr.contains("next: name a place outside of data"), "{}", ran.stderr);
    }
    assert!(bench.files("data") == before);
    bench.make_dir("empty", 0o700);
    for dir in ["new", "empty"] {
        let key = format!("{dir}/key");
        let ran = bench.run(&["journal", "init", dir, "--key-file", &key]).expect(2);
        assert_eq!(ran.word(), "bad_argument", "{dir}");
    }
    assert!(!bench.path("new").exists() && bench.files("empty").is_empty());
}

#[test]
fn a_backup_is_called_one_by_whatever_would_change_it() {
    let bench = Bench::new();
    bench.finished();
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    bench.run(&["journal", "rekey", "copy", "export-keyring", "ring", "--key-file", "key"]).expect(0);
    let before = bench.files("copy");
    for verb in [
        "journal rekey copy add-slot two --new-key-file two",
        "journal rekey copy remove-slot key",
        "journal rekey copy rotate",
        "journal rekey copy import-keyring ring",
        "journal unfence copy",
        "journal compact copy",
        "run hi --data-dir copy",
        "serve --data-dir copy --listen 127.0.0.1:0",
    ] {
        let verb: Vec<&str> = verb.split(' ').collect();
        let ran = bench.run(&[&verb[..], &["--key-file", "key"]].concat()).expect(10);
        assert_eq!(ran.word(), "is_backup", "{verb:?}");
    }
    assert!(bench.files("copy") == before && !bench.path("two").exists());
}

#[test]
fn what_is_wrong_beside_the_segments_is_placed_in_none_and_verify_does_not_lead_to_itself() {
    let bench = Bench::new();
    bench.finished();
    let verify = ["journal", "verify", "data", "--key-file", "key"];
    let head = bench.read("data/head");
    bench.remove("data/head");
    let ran = bench.run(&verify).expect(13);
    assert!(ran.stdout.contains("damaged: row 10: the head file is missing\n"), "{}", ran.stdout);
    assert!(ran.stderr.contains("the head file is missing (row 10)"), "{}", ran.stderr);
    bench.write("data/head", &head, 0o600);
    bench.remove("data/store");
    let ran = bench.run(&verify).expect(13);
    assert_eq!(ran.word(), "file_missing");
    assert!(ran.stderr.contains("sealog journal repair data NEWDIR"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("sealog journal verify"), "{}", ran.stderr);
}

/// What a node refuses it has not done: that is no unknown outcome.
#[test]
fn a_node_that_refuses_to_cancel_has_stopped_nothing() {
    let bench = Bench::new();
    let id = bench.finished();
    let serve =
        ["serve", "--read-only", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"];
    let node = Node::start(bench.command(&serve));
    let ran = bench.run(&["cancel", &id, "--url", node.url()]).expect(75);
    assert_eq!(ran.word(), "refused");
    assert!(ran.stderr.contains("safe: nothing was changed"), "{}", ran.stderr);
    // What does not pass by itself is not advised to wait for.
    let next = "next: ask the node that the work belongs to";
    assert!(ran.stderr.contains(next), "{}", ran.stderr);
    let ran = bench.run(&["run", "x", "--url", node.url()]).expect(75);
    assert_eq!(ran.word(), "refused");
    assert!(ran.stderr.contains("safe: nothing was started") && ran.stderr.contains(next), "{}", ran.stderr);
    assert_eq!(bench.run(&["ps", "--after", "x", "--url", node.url()]).expect(2).word(), "bad_place");
    assert_eq!(node.stop().0, Some(0));
}

/// A slot that is removed while another one has its secret shuts nobody out: that is said when it comes about.
#[test]
fn a_secret_that_opens_twice_is_named() {
    let bench = Bench::new();
    bench.init();
    let add = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        bench.run(&[&["journal", "rekey", "data", "add-slot"], &words[..], &["--key-file", "key"]].concat())
    };
    let same = add("again --new-key-file key").expect(0);
    assert!(same.stderr.contains("the slot key has the same secret"), "{}", same.stderr);
    let other = add("two --new-key-file two").expect(0);
    assert!(!other.stderr.contains("the same secret"), "{}", other.stderr);
    // A rotation that would lose slots names all of them, and the command that it suggests does it.
    add("three --new-key-file three").expect(0);
    let lost = bench.run(&["journal", "rekey", "data", "rotate", "--key-file", "key"]).expect(1);
    assert!(lost.stderr.contains("the slots two, three would not open"), "{}", lost.stderr);
    let suggested = "sealog journal rekey data rotate --drop-slot two --drop-slot three --key-file key";
    assert!(lost.stderr.contains(suggested), "{}", lost.stderr);
    // What was said to go stays said.
    let rotate = ["journal", "rekey", "data", "rotate", "--drop-slot", "three", "--key-file", "key"];
    let lost = bench.run(&rotate).expect(1);
    let suggested = "sealog journal rekey data rotate --drop-slot three --drop-slot two --key-file key";
    assert!(lost.stderr.contains(suggested), "{}", lost.stderr);
    // What it takes the place of is no second one.
    let replaced = add("two --replacing two --new-key-file two").expect(0);
    assert!(!replaced.stderr.contains("the same secret"), "{}", replaced.stderr);
    bench.run(&["journal", "rekey", "data", "remove-slot", "key", "--key-file", "key"]).expect(0);
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
}

#[test]
fn lost_output_is_not_called_no_work() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let ran = bench.run_into_full(&["run", "hi", "--url", node.url()]).expect(1);
    assert_eq!(ran.word(), "output_failed");
    assert!(ran.stderr.contains("sealog tail -f "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("nothing was changed"), "{}", ran.stderr);
    node.stop();
    let made = bench.run_into_full(&["token", "new", "--scope", "read", "--file", "tokens"]).expect(1);
    assert!(!made.stderr.contains("nothing was changed"), "{}", made.stderr);
}
