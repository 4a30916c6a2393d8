//! The read-only verbs: torn tails, running nodes, read-only media, and that they never write.

use crate::bench::{Bench, FIRST_GROUP_BODY, id_in};

const SEGMENT: &str = "data/segments/000000000001.seg";

#[test]
fn garbage_behind_the_end_is_a_torn_tail_to_everyone() {
    let bench = Bench::new();
    let id = bench.finished();
    let mut bytes = bench.read(SEGMENT);
    let end = bytes.len();
    bytes.extend_from_slice(&[0xa5; 700]);
    bytes.extend_from_slice(&[0; 836]);
    bench.write(SEGMENT, &bytes, 0o600);
    let before = bench.files("data");
    let verify = bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
    let words = "it cannot be told apart from damage to what was written within the last 250 ms";
    assert!(
        verify.stdout.contains(&format!("torn tail: segment 1, offset {end}, 1536 bytes")),
        "{}",
        verify.stdout
    );
    assert!(
        verify.stdout.contains("sectors still zero") && verify.stdout.contains(words),
        "{}",
        verify.stdout
    );
    let json = bench.run(&["journal", "verify", "data", "--key-file", "key", "--json"]).expect(0).json();
    assert_eq!((&json["verdict"], &json["tail"]["segment"]), (&"torn_tail".into(), &1.into()));
    assert_eq!((&json["tail"]["offset"], &json["tail"]["bytes"]), (&end.into(), &1536.into()));
    assert!(json["tail"]["zero_sectors"].as_u64().unwrap() >= 1);
    let inspect = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).expect(0).json();
    assert_eq!(inspect["tail"], json["tail"]);
    bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(0);
    assert!(bench.files("data") == before, "a read-only verb wrote");
    let node = bench.node(&[]);
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(0));
    assert!(stderr.contains(&format!("torn tail: segment 1, offset {end}")), "{stderr}");
    assert!(stderr.contains("cut, with a copy in quarantine/") && stderr.contains(words), "{stderr}");
    let sound = bench.run(&["journal", "verify", "data", "--key-file", "key", "--json"]).expect(0).json();
    assert_eq!(sound["verdict"], "sound");
}

#[test]
fn a_replay_beside_a_running_node_is_the_live_stream() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let body = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"chunks":20,"tool_calls":[{"call_id":"c","name":"n","arguments":"{}"}]}}}"#;
    let id = id_in(&node.http("POST /v1/executions", body));
    let live = event_stream(&node.http(&format!("GET /v1/executions/{id}/events"), ""));
    let replay = |bench: &Bench| {
        bench
            .run(&["journal", "replay", "data", &id, "--format", "sse", "--key-file", "key"])
            .expect(0)
            .stdout
    };
    assert_eq!(replay(&bench), live);
    assert!(live.contains("event: execution.completed"));
    let inspect = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).expect(0).json();
    assert_eq!((&inspect["live"], &inspect["executions"]["succeeded"]), (&true.into(), &1.into()));
    assert_eq!(node.stop().0, Some(0));
    assert_eq!(replay(&bench), live);
}

/// The body of a chunked answer, heartbeats left out.
fn event_stream(answer: &str) -> String {
    let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{head}");
    let mut body = String::new();
    loop {
        let (size, chunk) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body.replace(": heartbeat\n\n", "");
        }
        body += &chunk[..size];
        rest = &chunk[size + 2..];
    }
}

#[test]
fn read_only_verbs_write_nothing_at_all() {
    let bench = Bench::new();
    let id = bench.finished();
    let mode = |mode: u32| {
        for name in ["data", "data/segments", "data/quarantine"] {
            rustix::fs::chmod(bench.path(name), rustix::fs::Mode::from_raw_mode(mode)).unwrap();
        }
    };
    let stamps = || -> Vec<_> {
        let files = bench.files("data");
        files.iter().map(|(path, _)| path.metadata().unwrap().modified().unwrap()).collect()
    };
    let (before, times) = (bench.files("data"), stamps());
    // As on read-only media, for everybody but root.
    mode(0o500);
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
    bench.run(&["journal", "inspect", "data", "--frames", "--execution", &id, "--key-file", "key"]).expect(0);
    bench.run(&["journal", "replay", "data", &id, "--key-file", "key"]).expect(0);
    mode(0o700);
    assert!(bench.files("data") == before && stamps() == times);
}

#[test]
fn a_lost_id_is_found_again() {
    let bench = Bench::new();
    let first = bench.finished();
    let second = bench.run(&["run", "hi", "--data-dir", "data", "--key-file", "key"]).expect(0);
    let second = id_in(second.stderr.split("sealog: execution ").nth(1).unwrap());
    let arguments = ["journal", "inspect", "data", "--executions", "--key-file", "key", "--json"];
    let json = bench.run(&arguments).expect(0).json();
    let list = json["execution_list"].as_array().unwrap();
    let ids: Vec<&str> = list.iter().map(|one| one["execution_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&first, &second]);
    assert!(list.iter().all(|one| one["status"] == "succeeded" && one["last_sequence"] == 7), "{list:?}");
    let text = bench.run(&arguments[..arguments.len() - 1]).expect(0).stdout;
    let at = |id: &str| text.find(&format!("\nexecution {id}: succeeded, created ")).unwrap();
    assert!(at(&first) < at(&second), "{text}");
    let unknown = bench.run(&["journal", "replay", "data", "nonsense", "--key-file", "key"]).expect(4);
    assert!(unknown.stderr.contains("sealog journal inspect data --executions"), "{}", unknown.stderr);
    // Nobody asked: no list.
    let json = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).expect(0).json();
    assert!(json.get("execution_list").is_none());
    // Damage took a creation: what is left of that execution can still be asked for.
    bench.flip(SEGMENT, FIRST_GROUP_BODY);
    let json = bench.run(&arguments).expect(13).json();
    let list = json["execution_list"].as_array().unwrap();
    assert_eq!(list[0]["execution_id"].as_str(), Some(second.as_str()));
    assert_eq!(list[1], serde_json::json!({"execution_id": first}));
    let replay = bench.run(&["journal", "replay", "data", &first, "--key-file", "key"]).expect(13);
    assert!(replay.stdout.contains("event: execution.completed"), "{}", replay.stdout);
}

#[test]
fn inspect_shows_places_and_no_content() {
    let bench = Bench::new();
    let id = bench.finished();
    let arguments =
        ["journal", "inspect", "data", "--frames", "--execution", &id, "--key-file", "key", "--json"];
    let ran = bench.run(&arguments).expect(0);
    let json = ran.json();
    let events = json["execution"]["events"].as_array().unwrap();
    assert_eq!(events.len(), 7);
    assert_eq!((&events[6]["type"], &events[6]["sequence"]), (&"execution.completed".into(), &7.into()));
    assert_eq!(json["frames"][0]["kind"], "link");
    let text = bench.run(&arguments[..arguments.len() - 1]).expect(0);
    for output in [&ran.stdout, &text.stdout] {
        assert!(!output.contains("hello") && !output.contains("mock"), "{output}");
    }
}

/// JR-3, row 11: with the whole folder gone the head, or a backup's manifest, still names a segment. Nobody takes that
/// for a place without a journal.
#[test]
fn a_lost_folder_of_segments_is_data_loss_to_everyone() {
    let bench = Bench::new();
    let id = bench.finished();
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    for place in ["data", "copy"] {
        bench.remove_dir(&format!("{place}/segments"));
        let with = |words: &[&str]| bench.run(&[words, &["--key-file", "key"]].concat()).expect(13);
        for words in [
            &["journal", "verify", place][..],
            &["journal", "inspect", place],
            &["journal", "replay", place, &id],
            &["journal", "export", place],
            &["journal", "compact", place, "--dry-run"],
            &["journal", "restore", place, "new"],
            &["ps", "--data-dir", place],
            &["serve", "--read-only", "--data-dir", place, "--listen", "127.0.0.1:0"],
        ] {
            with(words);
        }
        let found = with(&["journal", "verify", place, "--json"]).json();
        assert_eq!((&found["problems"][0]["row"], &found["problems"][0]["segment"]), (&11.into(), &1.into()));
        assert!(!bench.path("new").exists());
    }
    let start = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"];
    assert_eq!(bench.run(&start).expect(13).word(), "damaged");
}
