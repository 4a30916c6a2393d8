//! Durability seen from below: the order of the node's system calls, and what it does when one of them fails.

use std::process::Command;
use std::time::Instant;
use std::{io, thread};

use crashbox::frame::{Frames, Next};
use crashbox::http::{Client, Request};
use crashbox::node::Node;
use crashbox::offline;
use crashbox::upstream::{Ending, Script};
use sealog_tests::workbench::{PATIENCE, Workbench, accepted, counted, events, get, mock, submit, text};
use serde_json::json;

use crate::strace::{Failing, Step, Traced, from_the_start, injected, sequences};

/// Streams a submission to its end, so that nothing but its own events is written meanwhile.
fn stream(client: &mut Client, body: &serde_json::Value) -> usize {
    let headers = [("content-type", "application/json"), ("accept", "text/event-stream")];
    let body = body.to_string();
    let reply = client.ask(&Request::post("/v1/executions", &headers, body.as_bytes())).unwrap();
    assert_eq!(reply.status, 200);
    crashbox::frame::cut(&reply.body).unwrap().len()
}

/// R11: an event leaves only when as many groups are durable as there are events up to it. Every event waits for the
/// one before it and for the provider's pause, so no two of them share a group.
fn proof(changes: &[&str]) {
    let mut bench = Workbench::new();
    let traced = Traced::start(&mut bench, changes);
    let mut client = Workbench::client(&traced.node);
    let local = traced.node.address().port();
    let upstream = bench.upstream.address().port();
    // The first execution publishes a segment, which is a durable group of its own.
    stream(&mut client, &mock("first", &json!({})));
    let paused = stream(&mut client, &mock("paused", &json!({"chunks": 4, "delay_ms": 60})));
    let script = Script { name: "traced".to_owned(), ending: Ending::Whole, deltas: 4, delay_ms: 60 };
    let called = stream(&mut client, &counted(&script.prompt()));
    let id = accepted(&mut client, &mock("accepted", &json!({})), None);
    events(&mut client, &id);
    drop(client);
    let steps = traced.finish();

    let mut checked = Vec::new();
    for request in split(&steps, local) {
        checked.push(order(request, local, upstream).unwrap());
    }
    let seen: Vec<u64> = checked.iter().map(|order| order.last_event).collect();
    assert_eq!(seen[1..3], [paused as u64, called as u64]);
    assert!(seen[3] >= 4, "{seen:?}");
    let calls: Vec<u64> = checked.iter().map(|order| order.calls).collect();
    assert_eq!(calls, [0, 0, 1, 0]);
}

/// The steps behind each request.
fn split(steps: &[Step], local: u16) -> Vec<&[Step]> {
    let begins = |step: &Step| matches!(step, Step::Comes { at, text } if *at == local && text.contains("POST /v1/executions "));
    let starts: Vec<usize> = (0..steps.len()).filter(|at| begins(&steps[*at])).collect();
    let ends = starts.iter().skip(1).copied().chain([steps.len()]);
    starts.iter().zip(ends).map(|(start, end)| &steps[*start..end]).collect()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Order {
    last_event: u64,
    /// Connections and requests to the upstream, each once.
    calls: u64,
}

fn order(steps: &[Step], local: u16, upstream: u16) -> Result<Order, String> {
    let mut durable = 0;
    let mut order = Order::default();
    for step in steps {
        match step {
            Step::Durable => durable += 1,
            Step::Leaves { from, text, .. } if *from == local => {
                for sequence in sequences(text) {
                    if durable < sequence {
                        return Err(format!("event {sequence} left when {durable} groups were durable"));
                    }
                    order.last_event = order.last_event.max(sequence);
                }
                if text.contains("HTTP/1.1 202") && durable == 0 {
                    return Err("202 left before anything was durable".to_owned());
                }
            }
            Step::Leaves { to, text, .. } if *to == upstream => {
                order.calls += u64::from(text.contains("POST /v1/chat/completions"));
                if durable < 2 {
                    return Err("a prompt left before its route was durable".to_owned());
                }
            }
            Step::Connects { to } if *to == upstream && durable < 2 => {
                return Err("the provider was called before its route was durable".to_owned());
            }
            Step::Leaves { .. } | Step::Comes { .. } | Step::Connects { .. } => {}
        }
    }
    Ok(order)
}

#[test]
fn an_event_that_leaves_too_early_is_noticed() {
    let sends = |from, to, text: &str| Step::Leaves { from, to, text: text.to_owned() };
    let event = sends(1, 9, "id: 1\\nevent: x");
    assert_eq!(order(&[Step::Durable, event.clone()], 1, 2), Ok(Order { last_event: 1, calls: 0 }));
    assert!(order(&[event, Step::Durable], 1, 2).is_err());
    assert!(order(&[sends(1, 9, "HTTP/1.1 202 Accepted"), Step::Durable], 1, 2).is_err());
    assert!(order(&[Step::Durable, Step::Connects { to: 2 }, Step::Durable], 1, 2).is_err());
    let called = [Step::Durable, Step::Durable, sends(8, 2, "POST /v1/chat/completions")];
    assert_eq!(order(&called, 1, 2), Ok(Order { last_event: 0, calls: 1 }));
    assert!(order(&called[1..], 1, 2).is_err());
}

#[test]
fn nothing_leaves_before_its_direct_write_returned() {
    // Slow writes: whoever does not wait for them is far ahead.
    proof(&["inject=pwritev2:delay_enter=15000"]);
}

#[test]
fn nothing_leaves_before_its_fdatasync_returned() {
    proof(&["inject=pwritev2:error=EOPNOTSUPP", "inject=fdatasync:delay_enter=15000"]);
}

/// A reader of a running execution, behind its first frames.
fn reader(node: &Node, id: &str) -> Frames {
    let mut client = Workbench::client(node);
    let opened = client.open(&Request::get(&format!("/v1/executions/{id}/events"))).unwrap();
    let mut frames = Frames::new(opened.body);
    for sequence in 1..=4 {
        let Next::Frame(frame) = frames.read_next().unwrap().unwrap() else { panic!("an end") };
        assert_eq!(frame.sequence, sequence);
    }
    frames
}

/// F2: after one failed call nothing is promised any more, everything durable can be read, and a restart recovers.
fn failure_is_final(calls: &str, error: &str) {
    let bench = Workbench::new();
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let body = mock("done", &json!({}));
    let done = accepted(&mut client, &body, Some("done"));
    let known = events(&mut client, &done);
    let script = Script { name: "running".to_owned(), ending: Ending::Silent, deltas: 2, delay_ms: 0 };
    let running = accepted(&mut client, &counted(&script.prompt()), Some("running"));
    let mut frames = reader(&node, &running);

    let failing = Failing::attach(&node, calls, error);
    let new = mock("new", &json!({}));
    let reply = submit(&mut client, &new, Some("new")).unwrap();
    assert_eq!(reply.status, 500, "{}", reply.text());
    assert!(reply.text().contains("internal_error"), "{}", reply.text());
    drop(failing);

    // The stream breaks: it does not look like an end.
    let broken = frames.read_next().expect_err("a broken transfer");
    assert_eq!(broken.kind(), io::ErrorKind::UnexpectedEof);
    // The disk works again, and still nothing is promised.
    assert_eq!(submit(&mut client, &new, Some("newer")).unwrap().status, 500);
    let (status, runtime) = get(&mut client, "/v1/runtime");
    assert_eq!((status, runtime["state"].as_str()), (503, Some("unavailable")));
    assert_eq!(get(&mut client, "/readyz"), (503, json!({"ready": false, "reasons": ["poisoned"]})));
    assert_eq!(events(&mut client, &done), known);
    assert_eq!(submit(&mut client, &body, Some("done")).unwrap().status, 200);
    offline::verify(&bench.home).unwrap().unwrap();
    drop(client);
    node.kill().unwrap();

    let node = bench.start();
    let mut client = Workbench::client(&node);
    assert_eq!(events(&mut client, &done), known);
    let interrupted = events(&mut client, &running);
    assert!(interrupted.contains("\"outcome\":\"unknown\""), "{interrupted}");
    for key in ["new", "newer"] {
        let reply = submit(&mut client, &new, Some(key)).unwrap();
        assert!(matches!(reply.status, 200 | 202), "{key}: {} {}", reply.status, reply.text());
    }
    assert_eq!(bench.upstream.count("running"), 1);
    assert_eq!(get(&mut client, "/v1/runtime").0, 200);
    assert_eq!(offline::panic(&bench.home.log).unwrap(), None);
}

/// The verbs that make a journal, each in a place of its own: `{}` is the case's name.
const MAKING: [&str; 4] = [
    "init {} --key-file {}.key",
    "import export.jsonl {} --key-file {}.key",
    "restore data {} --key-file key",
    "repair data {} --key-file key",
];
/// More syncs than any of them does.
const SYNCS_MAX: usize = 24;

struct Maker {
    bench: Workbench,
}

impl Maker {
    fn new() -> Maker {
        let maker = Maker { bench: Workbench::new() };
        for verb in ["init data --key-file key", "export data --key-file key --output export.jsonl"] {
            let made = maker.command(verb, "").output().unwrap();
            assert!(made.status.success(), "{made:?}");
        }
        maker
    }

    fn command(&self, verb: &str, name: &str) -> Command {
        let mut command = Command::new(&self.bench.home.binary);
        command.arg("journal").current_dir(self.bench.dir());
        command.args(verb.split(' ').map(|word| word.replace("{}", name)));
        command
    }
}

/// Whichever sync fails, nothing is left in the way of the same command.
#[test]
fn a_journal_is_made_after_every_failed_sync() {
    let maker = Maker::new();
    for (at, verb) in MAKING.into_iter().enumerate() {
        let mut failures = 0;
        for (call, number) in
            ["fsync", "fdatasync"].into_iter().flat_map(|call| (1..=SYNCS_MAX).map(move |n| (call, n)))
        {
            let name = format!("{at}-{call}-{number}");
            let mut command = maker.command(verb, &name);
            let failed = injected(&command, &[&format!("{call}:error=EIO:when={number}")]).output().unwrap();
            // None of that number, or one that only prepares what may come.
            if failed.status.success() {
                continue;
            }
            failures += 1;
            assert_eq!(failed.status.code(), Some(75), "{verb}, {name}: {failed:?}");
            assert!(!maker.bench.dir().join(&name).join("store").exists(), "{verb}, {name}: {failed:?}");
            let again = command.output().unwrap();
            assert!(again.status.success(), "{verb}, {name}: {failed:?}, then {again:?}");
        }
        assert!(failures >= 12, "{verb}: {failures}");
    }
}

/// What cannot be taken back is said to stand, and the command that is suggested finds it whole.
#[test]
fn a_journal_that_stands_after_a_failure_is_said_to() {
    let maker = Maker::new();
    for (at, verb) in MAKING.into_iter().enumerate() {
        let mut stood = 0;
        for number in 8..=SYNCS_MAX {
            let name = format!("{at}-{number}");
            let mut command = maker.command(verb, &name);
            let sync = format!("fsync:error=EIO:when={number}");
            // The names it takes on the way stay possible; those that it would take back are refused.
            let names = ["renameat:error=EIO:when=6", "unlinkat:error=EIO:when=5"];
            let names = if at == 0 { &names[1..] } else { &names[..1] };
            let failed = injected(&command, &[&[sync.as_str()], names].concat()).output().unwrap();
            let said = String::from_utf8_lossy(&failed.stderr).into_owned();
            if !said.contains("the journal stands in") {
                continue;
            }
            stood += 1;
            assert_eq!(failed.status.code(), Some(75), "{verb}, {name}: {said}");
            assert!(said.contains("safe: what stands there is a whole journal;"), "{verb}: {said}");
            let key = if at < 2 { format!("{name}.key") } else { "key".to_owned() };
            let verify = format!("verify {name} --key-file {key}");
            assert!(said.contains(&format!(": sealog journal {verify}\n")), "{verb}: {said}");
            let found = maker.command(&verify, "").output().unwrap();
            assert!(found.status.success(), "{verb}: {said}, then {found:?}");
            let again = command.output().unwrap();
            assert!(matches!(again.status.code(), Some(1 | 10)), "{verb}: {again:?}");
        }
        assert_eq!(stood, 1, "{verb}: the last sync alone leaves a journal");
    }
}

/// A change of the keyring that a sync stopped may have been made: whoever is told so can look.
#[test]
fn a_change_of_keys_that_may_have_been_made_is_said_to() {
    for number in 3..=6 {
        let maker = Maker::new();
        let add = maker.command("rekey data add-slot new --new-key-file new.key --key-file key", "");
        let failed = injected(&add, &[&format!("fsync:error=EIO:when={number}")]).output().unwrap();
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(75), "{said}");
        let list = "rekey data list --key-file key";
        assert!(said.contains(&format!("sealog journal {list}\n")), "{said}");
        let slots = maker.command(list, "").output().unwrap();
        assert!(slots.status.success(), "{slots:?}");
        let made = String::from_utf8_lossy(&slots.stdout).contains("new");
        assert_eq!(made, number > 3, "{number}: {slots:?}");
    }
}

/// Reading a journal goes on where the system gives no thread, and comes to the same; what cannot do without one says
/// that it may be tried again.
#[test]
fn a_system_without_threads_makes_reading_slow_and_nothing_else() {
    let bench = Workbench::new();
    bench.configure("[store]\nmax_disk_bytes = 16777216\n");
    let node = bench.start();
    let mut client = Workbench::client(&node);
    for _ in 0..3 {
        stream(&mut client, &mock("large", &json!({"chunks": 7, "chunk_bytes": 400_000})));
    }
    drop(client);
    node.kill().unwrap();
    let told = |verb: &str, more: &[&str]| {
        let mut command = bench.home.journal(verb);
        command.args(more);
        let without = from_the_start(&command, "clone,clone3", "EAGAIN").output().unwrap();
        (command.output().unwrap(), without)
    };
    for (verb, more) in [("verify", &["--json"][..]), ("inspect", &["--executions"]), ("export", &[])] {
        let (with, without) = told(verb, more);
        assert!(with.status.success(), "{verb}: {with:?}");
        assert_eq!((without.status.code(), without.stdout), (with.status.code(), with.stdout), "{verb}");
    }
    let other = bench.dir().join("other");
    let (_, without) = told("restore", &[other.to_str().unwrap()]);
    assert!(without.status.success(), "{}", String::from_utf8_lossy(&without.stderr));
}

/// The system gives a node no thread any more: whatever it is asked it answers, if slowly. One that would begin without says
/// that it may be tried again.
#[test]
fn a_node_that_gets_no_more_threads_answers_and_none_begins_without() {
    let bench = Workbench::new();
    let node = bench.start();
    let failing = Failing::attach(&node, "clone,clone3", "EAGAIN");
    let mut client = Workbench::client(&node);
    let id = accepted(&mut client, &mock("short", &json!({})), None);
    assert!(events(&mut client, &id).contains("event: execution.completed"));
    for path in ["/v1/executions?limit=5", &format!("/v1/executions/{id}/result"), "/readyz"] {
        assert_eq!(get(&mut client, path).0, 200, "{path}");
    }
    drop((client, failing));
    node.kill().unwrap();

    let mut serve = Command::new(&bench.home.binary);
    serve.arg("serve").arg("--data-dir").arg(&bench.home.data).arg("--key-file").arg(&bench.home.key_file);
    serve.args(["--listen", "127.0.0.1:0"]);
    let refused = from_the_start(&serve, "clone,clone3", "EAGAIN").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(75), "{said}");
    assert!(said.starts_with("sealog: no_threads: "), "{said}");
}

/// A disk that does not answer for long: whoever asks hears of it, and with the answer everything goes on.
#[test]
fn a_sync_that_hangs_is_told_and_passes() {
    let bench = Workbench::new();
    let node = bench.start();
    let mut client = Workbench::client(&node);
    let first = accepted(&mut client, &mock("first", &json!({})), None);
    let known = events(&mut client, &first);
    assert_eq!(get(&mut client, "/readyz"), (200, json!({"ready": true, "reasons": []})));

    let slow = Failing::slow(&node, "fdatasync,pwritev2", 30_000_000);
    let mut other = Workbench::client(&node);
    let submitting = thread::spawn(move || submit(&mut other, &mock("new", &json!({})), None));
    let end = Instant::now() + PATIENCE;
    let told = loop {
        let told = get(&mut client, "/readyz");
        if told.0 != 200 {
            break told;
        }
        assert!(Instant::now() < end, "never told");
    };
    assert_eq!(told, (503, json!({"ready": false, "reasons": ["stalled"]})));
    let metrics = String::from_utf8(client.ask(&Request::get("/metrics")).unwrap().body).unwrap();
    assert!(metrics.contains("sealog_journal_health{state=\"stalled\"} 1\n"), "{metrics}");
    assert_eq!(events(&mut client, &first), known, "what is durable is served meanwhile");
    drop(slow);
    let waiting = submitting.join().unwrap().unwrap();
    assert_eq!(waiting.status, 202, "{}", waiting.text());
    let new = text(&waiting.body, "execution_id");
    assert!(events(&mut client, &new).contains("event: execution.completed"));
    assert_eq!(get(&mut client, "/readyz").0, 200);
}

#[test]
fn a_failed_sync_is_final() {
    failure_is_final("fdatasync,pwritev2", "EIO");
}

#[test]
fn no_space_under_a_frame_is_final() {
    failure_is_final("pwrite64,pwritev2", "ENOSPC");
}
