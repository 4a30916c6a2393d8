//! What the service manager hears, on a socket of the test, and what stands in the log.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;

use crate::bench::{Bench, Node, Ran, id_in};

/// Reads until a message says `line`; every message on the way.
#[track_caller]
fn heard(manager: &UnixDatagram, line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = manager.recv(&mut buffer).unwrap();
        let text = String::from_utf8(buffer[..count].to_vec()).unwrap();
        let is_it = text.lines().any(|found| found == line);
        all.push(text);
        if is_it {
            return all;
        }
    }
}

#[test]
fn the_manager_hears_of_start_readiness_life_and_stop_in_order() {
    let bench = Bench::new();
    let manager = UnixDatagram::bind(bench.path("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command =
        bench.command(&["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", bench.path("notify")).env("WATCHDOG_USEC", "300000");
    let mut node = Node::start(command);
    let start = heard(&manager, "READY=1");
    assert!(start[0].contains("EXTEND_TIMEOUT_USEC=90000000\n"), "{start:?}");
    assert!(start.iter().all(|text| !text.contains("WATCHDOG=1")), "{start:?}");
    assert!(start[start.len() - 1].contains(&format!("STATUS=listening on {}", node.url())), "{start:?}");
    // More than once: it is fed as long as the writer lives.
    heard(&manager, "WATCHDOG=1");
    heard(&manager, "WATCHDOG=1");
    node.signal(Signal::TERM);
    heard(&manager, "STOPPING=1");
    assert_eq!(node.end().0, Some(0));
}

#[test]
fn a_start_that_is_refused_is_never_called_ready() {
    let bench = Bench::new();
    let manager = UnixDatagram::bind(bench.path("notify")).unwrap();
    manager.set_nonblocking(true).unwrap();
    bench.init();
    bench.write("other", &[1; 32], 0o600);
    let mut command =
        bench.command(&["serve", "--data-dir", "data", "--key-file", "other", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", bench.path("notify"));
    assert_eq!(command.output().unwrap().status.code(), Some(12));
    let mut buffer = [0; 4096];
    while let Ok(count) = manager.recv(&mut buffer) {
        assert!(!String::from_utf8_lossy(&buffer[..count]).contains("READY=1"));
    }
}

/// A request's whole answer, with these headers.
fn ask(node: &Node, headers: &str, body: &str) -> String {
    let address = node.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let text = format!(
        "POST /v1/executions?q=canary-1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn id_of(answer: &str) -> &str {
    let line = answer.lines().find_map(|line| line.strip_prefix("x-request-id: "));
    line.unwrap_or_else(|| panic!("no id in {answer}"))
}

/// Every line, of which each is one JSON object.
#[track_caller]
fn objects(stderr: &str) -> Vec<serde_json::Value> {
    let object = |line: &str| match serde_json::from_str(line) {
        Ok(value @ serde_json::Value::Object(_)) => value,
        _ => panic!("{line:?} in: {stderr}"),
    };
    stderr.lines().map(object).collect()
}

/// Notes, log lines and errors in one stream that a program reads line by line: of a start that makes a journal, of a
/// hangup, of a stop that takes too long, and of starts that are refused.
#[test]
fn json_log_lines_stand_among_nothing_else() {
    let bench = Bench::new();
    let json = ["--listen", "127.0.0.1:0", "--log-format", "json"];
    let serve = [&["serve", "--data-dir", "data", "--key-file", "key"], &json[..]].concat();
    bench.run(&["token", "new", "--scope", "write", "--file", "tokens"]).expect(0);
    let told = |ran: Ran| objects(&ran.stderr).last().unwrap()["error"].clone();

    assert_eq!(told(bench.run(&[&serve[..], &["--no-create"]].concat()).expect(10))["code"], "no_journal");
    let remote = [&serve[..3], &["--log-format=json", "--listen", "0.0.0.0:0"]].concat();
    assert_eq!(told(bench.run(&remote).expect(2))["code"], "not_loopback");
    bench.write("sealog.toml", b"max_active = 3\n", 0o644);
    let wrong = [&serve[..], &["--config", "sealog.toml"]].concat();
    assert_eq!(told(bench.run(&wrong).expect(1))["code"], "config");
    let ran: Ran = bench.command(&serve).env("SEALOG_LOG", "much").output().unwrap().into();
    assert_eq!(told(ran.expect(2))["code"], "bad_log_level");

    let mut command = bench.command(&[&serve[..], &["--token-file", "tokens"]].concat());
    command.env("SEALOG_LOG", "info");
    let mut node = Node::start(command);
    assert!(node.http("GET /v1/runtime", "").starts_with("HTTP/1.1 401 "));
    node.signal(Signal::HUP);
    let mut stderr = String::new();
    node.read_until("was read again", &mut stderr);
    let (code, rest) = node.stop();
    stderr += &rest;
    assert_eq!(code, Some(0));
    let lines = objects(&stderr);
    for what in ["created journal", "the mock provider", "the journal may take", "was read again: 1 token"] {
        let noted = |line: &serde_json::Value| line["note"].as_str().is_some_and(|note| note.contains(what));
        assert_eq!(lines.iter().filter(|line| noted(line)).count(), 1, "{what}: {stderr}");
    }
    assert!(lines.iter().any(|line| line["fields"]["message"].is_string()), "no log line: {stderr}");

    let node = Node::start(bench.command(&[&serve[..], &["--grace-ms", "200"]].concat()));
    let body = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}],"extensions":{"mock":{"chunks":1000,"delay_ms":1000,"ignore_cancel":true}}}"#;
    let id = id_in(&node.http("POST /v1/executions", body));
    let _stream = node.streaming(&id);
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(1));
    assert_eq!(objects(&stderr).last().unwrap()["error"]["code"], "grace_expired", "{stderr}");
}

#[test]
fn every_request_has_an_id_and_one_line_without_content() {
    let bench = Bench::new();
    let serve = [
        "serve",
        "--data-dir",
        "data",
        "--key-file",
        "key",
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
    ];
    let mut command = bench.command(&serve);
    command.env("SEALOG_LOG", "info");
    let node = Node::start(command);
    let body = r#"{"ability":"text-generation","input":[{"type":"text","text":"canary-2"}]}"#;
    let given = ask(&node, "x-request-id: trace-7.a_B\r\n", body);
    assert_eq!(id_of(&given), "trace-7.a_B");
    let (first, second) = (ask(&node, "", body), ask(&node, "x-request-id: canary 3\r\n", "{"));
    let long = ask(&node, &format!("x-request-id: {}\r\n", "canary".repeat(40)), body);
    assert!(second.starts_with("HTTP/1.1 400 "), "{second}");
    let ours = [id_of(&first), id_of(&second), id_of(&long)];
    let server = ours[0].split_once('-').unwrap().0;
    assert!(server.len() == 12 && ours.iter().all(|id| id.starts_with(server)), "{ours:?}");
    assert!(ours[0] != ours[1] && ours[1] != ours[2], "{ours:?}");
    let refused = node.http("GET /v1/runtime HTTP/1.1\r\nhost: canary-4\r\nx: ", "");
    assert!(refused.starts_with("HTTP/1.1 403 ") && !id_of(&refused).is_empty());
    let unknown = node.http("BREW /canary-5", "");
    assert!(unknown.starts_with("HTTP/1.1 404 ") && !id_of(&unknown).is_empty());
    let ids: Vec<String> = ours.iter().map(|id| (*id).to_owned()).collect();
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(0));
    assert!(!stderr.contains("canary"), "{stderr}");
    let lines = objects(&stderr);
    let line = |id: &str| {
        let found: Vec<_> = lines.iter().filter(|line| line["fields"]["request_id"] == id).collect();
        assert_eq!(found.len(), 1, "{id}: {stderr}");
        found[0]["fields"].clone()
    };
    let fields = line("trace-7.a_B");
    assert_eq!(
        (&fields["method"], &fields["route"], &fields["status"]),
        (&"POST".into(), &"/v1/executions".into(), &202.into())
    );
    assert!(fields["ms"].is_u64(), "{fields}");
    assert_eq!(line(&ids[1])["status"], 400);
    let others = lines.iter().filter(|line| line["fields"]["route"] == "none");
    assert_eq!(others.filter(|line| line["fields"]["method"] == "other").count(), 1, "{stderr}");
}

/// What a restart cannot help is not restarted; what may pass by itself is: a port that is taken (1), a lock (11), a disk (75).
#[test]
fn the_unit_gives_up_where_starting_again_changes_nothing() {
    const UNIT: &str = include_str!("../../../../tools/packaging/sealog.service");
    let codes = UNIT.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).unwrap();
    assert_eq!(codes, "2 10 12 13 14");
    assert!(UNIT.lines().any(|line| line == "Restart=on-failure"));
}
