//! `serve`: the first line, refusals before the port is bound, stopping, and that no content leaks.

use std::net::TcpListener;

use rustix::process::Signal;

use crate::bench::{Bench, Node, Ran, id_in};

#[test]
fn the_first_line_names_the_port_and_the_node_answers() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    assert!(node.first_line.starts_with("sealog listening on http://127.0.0.1:"), "{}", node.first_line);
    assert!(node.first_line.ends_with('\n'));
    assert!(node.http("GET /v1/runtime", "").contains("\"state\":\"ready\""));
    node.signal(Signal::INT);
    let mut node = node;
    assert_eq!(node.end().0, Some(0));
}

#[test]
fn facts_54_a_stop_lets_subscribers_see_the_terminal_event() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let body = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"stall_after":1}}}"#;
    let id = id_in(&node.http("POST /v1/executions", body));
    assert_eq!(node.stop_while_it_streams(&id), Some(0));
}

#[test]
fn work_that_does_not_stop_uses_up_the_grace() {
    let bench = Bench::new();
    let node = bench.node(&["--grace-ms", "200"]);
    let body = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"chunks":1000,"delay_ms":1000,"ignore_cancel":true}}}"#;
    let id = id_in(&node.http("POST /v1/executions", body));
    let _stream = node.streaming(&id);
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("grace period expired"), "{stderr}");
    bench.run(&["journal", "verify", "data", "--key-file", "key"]).expect(0);
}

#[test]
fn only_loopback_unless_asked_for() {
    let bench = Bench::new();
    bench.init();
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", "0.0.0.0:0"];
    assert_eq!(bench.run(&serve).expect(2).word(), "not_loopback");
    let node = Node::start(bench.command(&[&serve[..], &["--allow-remote"]].concat()));
    assert!(node.first_line.starts_with("sealog listening on http://0.0.0.0:"), "{}", node.first_line);
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn a_taken_port_is_said_and_the_journal_closed() {
    let bench = Bench::new();
    bench.init();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", &address];
    assert_eq!(bench.run(&serve).expect(1).word(), "listen_failed");
    let inspect = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).json();
    assert_eq!(inspect["head"]["closed"], true);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a device that takes nothing is a file")]
fn a_start_that_nobody_can_be_told_of_closes_the_journal() {
    let bench = Bench::new();
    bench.init();
    for listen in ["127.0.0.1:0", "unix:node.sock"] {
        let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", listen];
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran: Ran = bench.command(&serve).stdout(full).output().unwrap().into();
        assert_eq!(ran.expect(1).word(), "output_failed");
        let inspect = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).json();
        assert_eq!(inspect["head"]["closed"], true);
        assert!(!bench.path("node.sock").exists());
    }
}

#[test]
fn a_refused_start_never_binds_the_port() {
    let bench = Bench::new();
    bench.finished();
    bench.write("other", &[1; 32], 0o600);
    // Whoever bound it first would say that it is taken.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let ran =
        bench.run(&["serve", "--data-dir", "data", "--key-file", "other", "--listen", &listen]).expect(12);
    assert_eq!((ran.stdout.as_str(), ran.word()), ("", "wrong_key"));
}

#[test]
fn facts_56_a_configuration_is_refused_by_file_line_and_key_but_never_by_value() {
    let bench = Bench::new();
    let refused = |text: &str, place: &str| {
        bench.write("sealog.toml", text.as_bytes(), 0o644);
        let serve = ["serve", "--data-dir", "data", "--listen", "127.0.0.1:0", "--config", "sealog.toml"];
        for json in [&[][..], &["--json"]] {
            let ran = bench.run(&[&serve[..], json].concat()).expect(1);
            assert!(ran.stderr.contains("unsupported or unsafe field"), "{}", ran.stderr);
            assert!(ran.stderr.contains(place), "{}", ran.stderr);
            assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        }
        assert!(!bench.path("data").exists());
    };
    refused("max_active = 3\n", "sealog.toml:1: max_active");
    let chat = "[[providers]]\ntype = \"openai-chat\"\nmodel = \"m\"\nbase_url = \"https://h/v1\"\n";
    refused(&format!("{chat}api_key = \"sk-hunter2\"\n"), "sealog.toml:5: providers.api_key");
    let remote = chat.replace("https://h/v1", "http://hunter2.example.com/v1");
    refused(&remote, "sealog.toml:4: providers.base_url");
}

#[test]
fn a_provider_key_that_is_not_there_is_said_at_the_start_but_never_its_name() {
    let bench = Bench::new();
    let chat = |id: &str, key: &str| {
        format!(
            "[[providers]]\ntype = \"openai-chat\"\nid = \"{id}\"\nmodel = \"m\"\nbase_url = \"https://h/v1\"\n{key}\n"
        )
    };
    let file = bench.text("hunter2.key");
    let text = chat("a", "api_key_env = \"HUNTER2\"")
        + &chat("b", "api_key_env = \"XDG_STATE_HOME\"")
        + &chat("c", &format!("api_key_file = \"{file}\""));
    bench.write("sealog.toml", text.as_bytes(), 0o644);
    let notes = |bench: &Bench| bench.node(&["--config", "sealog.toml"]).stop().1;
    let said = notes(&bench);
    assert!(said.contains("sealog.toml:6: providers.api_key_env names a variable that is not set"), "{said}");
    assert!(said.contains("sealog.toml:18: providers.api_key_file names a file that is not there"), "{said}");
    assert!(!said.to_ascii_lowercase().contains("hunter2") && !said.contains("toml:12:"), "{said}");
    bench.write("hunter2.key", b"k", 0o600);
    assert!(!notes(&bench).contains("toml:18:"));
}

#[test]
fn the_configured_limit_and_providers_count() {
    let bench = Bench::new();
    let text =
        "max_active_executions = 1\n[[providers]]\ntype = \"mock\"\nid = \"only\"\nabilities = [\"chat\"]\n";
    bench.write("sealog.toml", text.as_bytes(), 0o644);
    let node = bench.node(&["--config", "sealog.toml"]);
    assert!(node.http("GET /v1/providers", "").contains("\"provider\":\"only\""));
    let body =
        r#"{"ability":"chat","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"stall_after":0}}}"#;
    assert!(node.http("POST /v1/executions", body).starts_with("HTTP/1.1 202"));
    let full = node.http("POST /v1/executions", body);
    assert!(full.starts_with("HTTP/1.1 503") && full.contains("queue_full"), "{full}");
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn no_file_and_no_log_holds_content() {
    const CANARY: &str = "canary-7f3a";
    let bench = Bench::new();
    let mut command =
        bench.command(&["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"]);
    command.env("SEALOG_LOG", "trace");
    let node = Node::start(command);
    let body = format!(
        r#"{{"ability":"text-generation","input":[{{"type":"text","text":"{CANARY}"}}],"metadata":{{"m":"{CANARY}"}},"extensions":{{"mock":{{"tool_calls":[{{"call_id":"{CANARY}","name":"{CANARY}","arguments":"{CANARY}"}}],"usage":[{{"unit":"{CANARY}","quantity":1}}]}}}}}}"#
    );
    let id = id_in(&node.http("POST /v1/executions", &body));
    let stream = node.http(&format!("GET /v1/executions/{id}/events"), "");
    assert!(stream.contains(CANARY) && stream.contains("execution.completed"), "{stream}");
    let refused = node.http("POST /v1/executions", &format!("{{\"{CANARY}\":1}}"));
    assert!(refused.starts_with("HTTP/1.1 400") && !refused.contains(CANARY), "{refused}");
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(0));
    let key = bench.read("key");
    for (path, bytes) in bench.files("data") {
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!holds(CANARY.as_bytes()) && !holds(&key[28..60]), "{}", path.display());
    }
    assert!(!stderr.contains(CANARY), "{stderr}");
}

/// RM-33: in the runtime's own API and in a dialect's, before and after a node that was killed.
#[test]
fn why_an_answer_ended_is_the_same_after_a_restart() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let told = r#"{"extensions":{"mock":{"stop_reason":"content_filter"}}}"#;
    let body = format!(r#"{{"model":"model-alpha","input":"x","stream":true,"sealog":{told}}}"#);
    let answer = node.http("POST /v1/responses", &body);
    let id = id_in(&answer);
    let response = format!("/v1/responses/resp_{}", id.replace('-', ""));
    let look = |node: &Node| {
        let paths = [
            format!("GET {response}?stream=true"),
            format!("GET {response}"),
            format!("GET /v1/executions/{id}"),
            format!("GET /v1/executions/{id}/events"),
        ];
        paths.map(|path| node.http(&path, "").split_once("\r\n\r\n").unwrap().1.to_owned())
    };
    let before = look(&node);
    let [stream, object, snapshot, events] = &before;
    assert!(answer.contains("event: response.incomplete") && stream.contains("event: response.incomplete"));
    assert!(object.contains(r#""incomplete_details":{"reason":"content_filter"}"#), "{object}");
    for text in [snapshot, events] {
        assert!(text.contains(r#""stop_reason":"content_filter""#), "{text}");
    }
    node.kill();
    assert_eq!(look(&bench.node(&[])), before);
}

#[test]
fn the_process_leaves_no_core_and_may_open_many_files() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let limits = node.limits();
    let row = |name: &str| {
        let row = limits.lines().find(|line| line.starts_with(name)).unwrap();
        row[name.len()..].split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("Max core file size")[..2], ["0", "0"]);
    let files = row("Max open files");
    assert_eq!(files[0], files[1]);
    assert_eq!(node.stop().0, Some(0));
}
