//! Restored copies from outside: the fence over HTTP, its removal, and what `restore` and `unfence` refuse.

use std::process::Stdio;

use crate::backup::backup;
use crate::bench::{Bench, Node, id_in};

const STALLING: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"stall_after":2}}}"#;
const PLAIN: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}]}"#;

fn restore(bench: &Bench, dest: &str) -> crate::bench::Ran {
    bench.run(&["journal", "restore", "copy", dest, "--key-file", "key", "--json"])
}

fn unfence(bench: &Bench, dir: &str) -> crate::bench::Ran {
    bench.run(&["journal", "unfence", dir, "--key-file", "key", "--json"])
}

fn node_in(bench: &Bench, dir: &str) -> Node {
    let arguments = ["serve", "--data-dir", dir, "--key-file", "key", "--listen", "127.0.0.1:0"];
    Node::start(bench.command(&arguments))
}

fn status(answer: &str) -> u16 {
    answer.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap()
}

#[test]
fn a_restored_node_refuses_what_it_does_not_know_until_it_is_unfenced() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let finished = id_in(&node.http("POST /v1/executions", PLAIN));
    node.http(&format!("GET /v1/executions/{finished}/events"), "");
    let open = id_in(&node.http("POST /v1/executions", STALLING));
    // Until both deltas are durable the stream has not shown them.
    let mut stream = node.http_open(&format!("GET /v1/executions/{open}/events"), "");
    let mut seen = String::new();
    while !seen.contains("id: 4") {
        let mut piece = [0; 256];
        let count = std::io::Read::read(&mut stream, &mut piece).unwrap();
        assert!(count > 0);
        seen.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    drop(stream);
    backup(&bench).expect(0);
    let unknown = id_in(&node.http("POST /v1/executions", PLAIN));
    node.kill();

    let done = restore(&bench, "back").expect(0).json();
    assert_eq!((&done["fenced"], &done["interrupted"]), (&true.into(), &1.into()));
    assert!(done["taken_at"].is_string());
    bench.run(&["journal", "verify", "back", "--key-file", "key"]).expect(0);
    let node = node_in(&bench, "back");
    assert_eq!(status(&node.http("GET /v1/runtime", "")), 503);
    let refused = node.http("POST /v1/executions", PLAIN);
    assert!(status(&refused) == 503 && refused.contains("provider_unavailable"), "{refused}");
    assert_eq!(status(&node.http(&format!("GET /v1/executions/{unknown}"), "")), 503);
    assert_eq!(status(&node.http(&format!("GET /v1/executions/{finished}/result"), "")), 200);
    let ended = node.http(&format!("GET /v1/executions/{open}"), "");
    assert!(ended.contains(r#""outcome":"unknown""#), "{ended}");
    let behind = |node: &Node| status(&node.http(&format!("GET /v1/executions/{open}/events?after=9"), ""));
    assert_eq!(behind(&node), 400);
    assert_eq!(status(&node.http(&format!("GET /v1/executions/{open}/events?after=4"), "")), 200);
    unfence(&bench, "back").expect(11);
    assert_eq!(node.stop().0, Some(0));

    let looked =
        |dir: &str| bench.run(&["journal", "inspect", dir, "--key-file", "key", "--json"]).expect(0).json();
    let (original, copy, back) = (looked("data"), looked("copy"), looked("back"));
    assert_eq!([&original["fenced"], &copy["fenced"], &back["fenced"]], [false, false, true]);
    assert_eq!([&original["backup"], &copy["backup"], &back["backup"]], [false, true, false]);
    let text = |dir: &str| bench.run(&["journal", "inspect", dir, "--key-file", "key"]).expect(0).stdout;
    assert!(text("back").contains("\nfenced: what it does not know is refused"), "{}", text("back"));
    assert!(text("copy").starts_with("backup of journal ") && !text("copy").contains("fenced"));
    assert_eq!(unfence(&bench, "back").expect(0).json()["was_fenced"], true);
    assert_eq!(looked("back")["fenced"], false);
    assert_eq!(unfence(&bench, "back").expect(0).json()["was_fenced"], false);
    let node = node_in(&bench, "back");
    assert_eq!(status(&node.http("GET /v1/runtime", "")), 200);
    assert_eq!(status(&node.http(&format!("GET /v1/executions/{unknown}"), "")), 404);
    assert_eq!(status(&node.http("POST /v1/executions", PLAIN)), 202);
    assert_eq!(behind(&node), 400);
    assert_eq!(node.stop().0, Some(0));
    // A backup of the original does not go on with the copy's history, nor the other way round.
    let ran = bench.run(&["journal", "backup", "back", "copy", "--key-file", "key"]).expect(0);
    assert!(ran.stdout.starts_with("backup of journal"), "a restored copy continues what the backup holds");
    assert_eq!(backup(&bench).expect(13).error()["code"], "diverged");
}

#[test]
fn restore_leaves_nothing_or_all() {
    let bench = Bench::new();
    bench.finished();
    backup(&bench).expect(0);
    let ran = restore(&bench, "data").expect(10);
    assert_eq!(ran.error()["code"], "not_empty");
    // Into a directory that is there and empty, also beside what an earlier try left.
    bench.make_dir("back", 0o755);
    bench.make_dir(".back.building", 0o700);
    bench.write(".back.building/head", b"half", 0o600);
    restore(&bench, "back").expect(0);
    assert!(!bench.path(".back.building").exists());
    bench.run(&["journal", "verify", "back", "--key-file", "key"]).expect(0);
    let name = bench.files("copy").into_iter().find(|(path, _)| path.extension().is_some()).unwrap().0;
    let name = name.to_str().unwrap().strip_prefix(&bench.text("")).unwrap().to_owned();
    bench.flip(&name, 9000);
    assert_eq!(restore(&bench, "other").expect(13).error()["code"], "damaged");
    assert!(!bench.path("other").exists() && !bench.path(".other.building").exists());
    bench.write("wrong", &[7; 32], 0o600);
    bench.run(&["journal", "restore", "copy", "other", "--key-file", "wrong"]).expect(12);
    bench.run(&["journal", "restore", "nowhere", "other", "--key-file", "key"]).expect(10);
    bench.run(&["journal", "unfence", "nowhere", "--key-file", "key"]).expect(10);
}

/// A fence is lifted on a stopped journal. Where there is none there is nothing to do, and nothing to stop a node for.
#[test]
fn unfence_says_whether_there_was_anything_to_lift() {
    let bench = Bench::new();
    bench.finished();
    backup(&bench).expect(0);
    restore(&bench, "back").expect(0);
    let unfence = |dir: &str| bench.run(&["journal", "unfence", dir, "--key-file", "key"]);
    let said = |dir: &str| format!("{dir}: there was no fence; nothing was written\n");
    for running in [true, false] {
        let node = running.then(|| bench.node(&[]));
        let before = bench.files("data/segments");
        assert_eq!(unfence("data").expect(0).stdout, said("data"));
        assert!(bench.files("data/segments") == before);
        assert!(node.is_none_or(|node| node.stop().0 == Some(0)));
    }
    let serve = ["serve", "--data-dir", "back", "--key-file", "key", "--listen", "127.0.0.1:0"];
    let node = Node::start(bench.command(&serve));
    let refused = unfence("back").expect(11);
    assert_eq!(refused.word(), "locked");
    assert!(
        refused.stderr.contains("safe: the fence stands") && refused.stderr.contains("next: stop that node")
    );
    assert_eq!(node.stop().0, Some(0));
    assert_eq!(unfence("back").expect(0).stdout, "back: lifted the fence\n");
    assert_eq!(unfence("back").expect(0).stdout, said("back"));
}

/// All of them build in the same hidden directory: who comes second must not clear what the first one has finished.
#[test]
fn journals_made_at_one_place_at_the_same_time_are_made_once() {
    let bench = Bench::new();
    bench.finished();
    backup(&bench).expect(0);
    bench.run(&["journal", "export", "data", "--output", "export", "--key-file", "key"]).expect(0);
    let restoring = &["journal", "restore", "copy", "made", "--key-file", "key"][..];
    let repairing = &["journal", "repair", "data", "made", "--key-file", "key"][..];
    let importing = &["journal", "import", "export", "made", "--key-file", "made-key"][..];
    for verbs in [[restoring; 4], [repairing; 4], [restoring, repairing, restoring, importing]] {
        let mut made = 0;
        let running: Vec<_> = verbs
            .iter()
            .map(|verb| bench.command(verb).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
            .collect();
        for child in running {
            let ran = crate::bench::Ran::from(child.wait_with_output().unwrap());
            match ran.code {
                Some(0) => made += 1,
                Some(10) => assert_eq!(ran.word(), "not_empty"),
                // What an import finds before it begins to build.
                Some(1) => assert_eq!(ran.word(), "already_exists"),
                Some(11) => assert_eq!(ran.word(), "locked"),
                _ => panic!("{ran:?}"),
            }
        }
        assert_eq!(made, 1);
        // An import makes a key of its own, and takes it away again when it made no journal.
        let key = if bench.path("made-key").exists() { "made-key" } else { "key" };
        let verified =
            bench.run(&["journal", "verify", "made", "--key-file", key, "--json"]).expect(0).json();
        assert_eq!((&verified["verdict"], &verified["executions"]), (&"sound".into(), &1.into()));
        bench.remove_dir("made");
    }
}
