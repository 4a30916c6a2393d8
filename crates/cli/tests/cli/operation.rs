//! Health, readiness and metrics, from outside: every metric of the page moves when what it counts happens.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use crate::bench::{Bench, Node, id_in};

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[track_caller]
fn readiness(node: &Node, status: u16, reasons: &[&str]) {
    assert!(node.http("GET /healthz", "").ends_with("{\"status\":\"ok\"}"));
    let answer = node.http("GET /readyz", "");
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    let expected = serde_json::json!({"ready": status == 200, "reasons": reasons});
    assert_eq!(serde_json::from_str::<serde_json::Value>(body(&answer)).unwrap(), expected);
}

#[test]
fn readiness_says_why_not() {
    let bench = Bench::new();
    bench.finished();
    bench.run(&["journal", "backup", "data", "copy", "--key-file", "key"]).expect(0);
    bench.run(&["journal", "restore", "copy", "back", "--key-file", "key"]).expect(0);
    let node = bench.node(&[]);
    readiness(&node, 200, &[]);
    assert_eq!(node.stop().0, Some(0));
    let serve = |dir: &str, more: &[&str]| {
        let arguments = ["serve", "--data-dir", dir, "--key-file", "key", "--listen", "127.0.0.1:0"];
        Node::start(bench.command(&[&arguments[..], more].concat()))
    };
    let fenced = serve("back", &[]);
    readiness(&fenced, 503, &["fenced"]);
    assert_eq!(fenced.stop().0, Some(0));
    let reading = serve("copy", &["--read-only"]);
    readiness(&reading, 503, &["read_only"]);
    assert_eq!(reading.stop().0, Some(0));
}

/// Nobody waits for a disk that is gone: the writer gives up at its next write, and the node says so until it is restarted.
#[test]
fn a_journal_without_its_file_is_not_ready_any_more() {
    let bench = Bench::new();
    let node = bench.node(&[]);
    let id = id_in(&node.http("POST /v1/executions", &request("{}")));
    assert!(node.http(&format!("GET /v1/executions/{id}/events"), "").contains("execution.completed"));
    bench.remove("data/segments/000000000001.seg");
    assert!(node.http("POST /v1/executions", &request("{}")).starts_with("HTTP/1.1 500 "));
    readiness(&node, 503, &["poisoned"]);
    let health = metrics(&node);
    assert_eq!(at(&health, "sealog_journal_health{state=\"poisoned\"}"), 1.0, "{health:#?}");
    assert_eq!(node.stop().0, Some(75));
}

#[test]
fn a_journal_at_its_budget_is_not_ready() {
    let bench = Bench::new();
    bench.write("sealog.toml", b"[store]\nmax_disk_bytes = 2097152\n", 0o644);
    let node = bench.node(&["--config", "sealog.toml"]);
    let large = request(r#"{"chunks":8,"chunk_bytes":65536}"#);
    // Compaction makes room now and then: it is full again a moment later.
    until(|| {
        node.http("POST /v1/executions", &large);
        let answer = node.http("GET /readyz", "");
        answer.starts_with("HTTP/1.1 503 ") && body(&answer) == r#"{"ready":false,"reasons":["full"]}"#
    });
    assert_eq!(node.stop().0, Some(0));
}

fn request(mock: &str) -> String {
    format!(
        r#"{{"ability":"text-generation","input":[{{"type":"text","text":"canary-31"}}],"extensions":{{"mock":{mock}}}}}"#
    )
}

type Scrape = BTreeMap<String, f64>;

/// Every sample of the page by name and labels.
fn metrics(node: &Node) -> Scrape {
    metrics_with(node, "")
}

/// The same behind further headers, each with its end of line.
fn metrics_with(node: &Node, headers: &str) -> Scrape {
    let answer = node.http(&format!("GET /metrics HTTP/1.1\r\n{headers}x:"), "");
    assert!(answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    let text = body(&answer);
    assert!(text.ends_with("# EOF\n") && !text.contains("canary"), "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

/// Looks again until it is so.
#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < end, "not within the time");
    }
}

fn at(scrape: &Scrape, name: &str) -> f64 {
    scrape.get(name).copied().unwrap_or_default()
}

/// Executions that succeed, fail, run and are cancelled.
fn first_life(bench: &Bench, seen: &mut Vec<Scrape>) {
    let node = bench.node(&["--config", "sealog.toml"]);
    seen.push(metrics(&node));
    let events = |id: &str| node.http(&format!("GET /v1/executions/{id}/events"), "");
    let submit = |mock: &str| id_in(&node.http("POST /v1/executions", &request(mock)));
    assert!(events(&submit("{}")).contains("execution.completed"));
    assert!(events(&submit(r#"{"fail_after":0,"fail_code":"rate_limited"}"#)).contains("rate_limited"));
    let stalled = submit(r#"{"stall_after":1}"#);
    let mut stream = BufReader::new(node.http_open(&format!("GET /v1/executions/{stalled}/events"), ""));
    let mut line = String::new();
    while !line.starts_with("event: output.delta") {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0);
    }
    let running = metrics(&node);
    for (name, value) in [
        ("sealog_executions_accepted_total", 3.0),
        ("sealog_executions_active{state=\"running\"}", 1.0),
        ("sealog_executions_ended_total{status=\"succeeded\",code=\"none\"}", 1.0),
        ("sealog_executions_ended_total{status=\"failed\",code=\"rate_limited\"}", 1.0),
        ("sealog_execution_seconds_count{status=\"succeeded\"}", 1.0),
        ("sealog_provider_attempts_total{provider=\"provider-mock\"}", 3.0),
        ("sealog_provider_errors_total{provider=\"provider-mock\",code=\"rate_limited\"}", 1.0),
        ("sealog_provider_attempt_seconds_count{provider=\"provider-mock\"}", 2.0),
        ("sealog_provider_first_output_seconds_count{provider=\"provider-mock\"}", 2.0),
        ("sealog_provider_active{provider=\"provider-mock\"}", 1.0),
        ("sealog_admission_active", 1.0),
        ("sealog_journal_executions", 3.0),
        ("sealog_http_streams_open", 1.0),
        ("sealog_http_connections_open", 2.0),
    ] {
        assert_eq!(at(&running, name), value, "{name}: {running:#?}");
    }
    seen.push(running);
    // The provider takes one at a time.
    let waiting = submit("{}");
    until(|| at(&metrics(&node), "sealog_provider_queued{provider=\"provider-mock\"}") == 1.0);
    seen.push(metrics(&node));
    drop(stream);
    until(|| at(&metrics(&node), "sealog_http_streams_open") == 0.0);
    assert!(node.http(&format!("POST /v1/executions/{stalled}/cancel"), "").starts_with("HTTP/1.1 202"));
    let cancelled = "sealog_executions_ended_total{status=\"cancelled\",code=\"cancelled\"}";
    until(|| at(&metrics(&node), cancelled) == 1.0);
    assert!(events(&waiting).contains("execution.completed"));
    assert!(node.http("POST /v1/executions", "{").starts_with("HTTP/1.1 400"));
    assert!(
        node.http("GET /v1/runtime HTTP/1.1\r\nhost: evil.example\r\nx: ", "").starts_with("HTTP/1.1 403")
    );
    seen.push(metrics(&node));
    let left = submit(r#"{"stall_after":1}"#);
    let mut stream = BufReader::new(node.http_open(&format!("GET /v1/executions/{left}/events"), ""));
    line.clear();
    while !line.starts_with("event: output.delta") {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0);
    }
    node.kill();
}

/// A start behind a kill, with a torn tail; what expired is forgotten, and its segments are rewritten.
fn later_lives(bench: &Bench, seen: &mut Vec<Scrape>) {
    let node = bench.node(&["--config", "sealog.toml"]);
    let recovered = metrics(&node);
    assert_eq!(at(&recovered, "sealog_recovery_interrupted{outcome=\"unknown\"}"), 1.0);
    assert_eq!(at(&recovered, "sealog_journal_epoch"), 2.0);
    seen.push(recovered);
    assert_eq!(node.stop().0, Some(0));
    let files = bench.files("data/segments");
    let (newest, mut bytes) =
        files.into_iter().rfind(|(path, _)| path.extension().is_some_and(|e| e == "seg")).unwrap();
    bytes.extend_from_slice(&[0xa5; 512]);
    bench.write(newest.to_str().unwrap(), &bytes, 0o600);
    let text = "[store]\nretention_ms = 1\nmin_key_age_ms = 0\nmax_disk_bytes = 16777216\n";
    bench.write("sealog.toml", text.as_bytes(), 0o644);
    let node = bench.node(&["--config", "sealog.toml"]);
    seen.push(metrics(&node));
    assert!(at(&seen[seen.len() - 1], "sealog_recovery_torn_tail_bytes") > 0.0);
    // A few of them fill a segment, which is then rewritten without what was forgotten: of small ones it would take thousands.
    let large = request(r#"{"chunks":4,"chunk_bytes":65536}"#);
    until(|| {
        // What is ended now is forgotten a moment later, and rewritten with what lies beside it.
        node.http("POST /v1/executions", &large);
        seen.push(metrics(&node));
        at(&seen[seen.len() - 1], "sealog_journal_compaction_dropped_records_total") > 0.0
    });
    assert_eq!(node.stop().0, Some(0));
}

/// A start that leaves older segments to the scrub, and one that finds everything expired.
fn scrubbed(seen: &mut Vec<Scrape>) {
    let bench = Bench::new();
    bench.write("sealog.toml", b"[store]\nboot_check_bytes = 0\n", 0o644);
    let is_summarised = || {
        let files = bench.files("data/segments");
        files.iter().any(|(path, _)| path.extension().is_some_and(|extension| extension == "idx"))
    };
    // Enough that the scrub is still reading when the first look comes.
    let large = request(r#"{"chunks":60,"chunk_bytes":65536}"#);
    for _ in 0..3 {
        let node = bench.node(&[]);
        let id = id_in(&node.http("POST /v1/executions", &large));
        node.http(&format!("GET /v1/executions/{id}/events"), "");
        assert_eq!(node.stop().0, Some(0));
    }
    let node = bench.node(&[]);
    until(is_summarised);
    let busy = request(r#"{"chunks":4000,"chunk_bytes":16}"#);
    until(|| {
        node.http("POST /v1/executions", &busy);
        seen.push(metrics(&node));
        at(&seen[seen.len() - 1], "sealog_journal_queue_units") > 0.0
    });
    assert_eq!(node.stop().0, Some(0));
    let node = bench.node(&["--config", "sealog.toml"]);
    until(|| {
        seen.push(metrics(&node));
        at(&seen[seen.len() - 1], "sealog_journal_scrubbed_bytes_total") > 0.0
    });
    assert_eq!(node.stop().0, Some(0));
    bench.write("sealog.toml", b"[store]\nretention_ms = 1\n", 0o644);
    let node = bench.node(&["--config", "sealog.toml"]);
    seen.push(metrics(&node));
    assert!(at(&seen[seen.len() - 1], "sealog_recovery_expired") >= 3.0);
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn every_metric_of_the_page_is_seen_to_move_and_listed() {
    let bench = Bench::new();
    let text = "[store]\nmax_disk_bytes = 16777216\n[[providers]]\ntype = \"mock\"\nmax_concurrency = 1\n";
    bench.write("sealog.toml", text.as_bytes(), 0o644);
    let mut seen = Vec::new();
    first_life(&bench, &mut seen);
    later_lives(&bench, &mut seen);
    scrubbed(&mut seen);
    // The budget and the writer's state only move where there is no room.
    let full = Bench::new();
    full.write("sealog.toml", b"[store]\nmax_disk_bytes = 2097152\n", 0o644);
    let node = full.node(&["--config", "sealog.toml"]);
    let large = request(r#"{"chunks":8,"chunk_bytes":65536}"#);
    until(|| {
        node.http("POST /v1/executions", &large);
        seen.push(metrics(&node));
        at(&seen[seen.len() - 1], "sealog_journal_health{state=\"full\"}") == 1.0
    });
    assert_eq!(node.stop().0, Some(0));
    let mut values: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for scrape in &seen {
        for (name, value) in scrape {
            // What has labels is there from its first move on; what has none must be seen at two values.
            let before = name.contains('{').then_some(0);
            values
                .entry(name.clone())
                .or_insert_with(|| before.into_iter().collect())
                .insert(value.to_bits());
        }
    }
    let page = include_str!("../../../../docs/interface.md");
    let mut families: BTreeMap<&str, bool> = BTreeMap::new();
    for (name, values) in &values {
        let family = name.split('{').next().unwrap();
        let family = ["_total", "_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| family.strip_suffix(end))
            .unwrap_or(family);
        *families.entry(family).or_default() |= values.len() > 1;
    }
    let rows = page.lines().filter(|line| line.starts_with("| `sealog_"));
    let listed: BTreeSet<&str> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap().split('`'))
        .filter(|name| name.starts_with("sealog_"))
        .collect();
    assert_eq!(listed, families.keys().copied().collect());
    for (family, moved) in families {
        assert!(moved, "{family} never moved");
    }
}

/// The rules in the order in which a request meets them; what one refuses is counted by that one alone.
#[test]
fn every_rule_of_the_guard_counts_what_it_refuses() {
    const FAMILY: &str = "sealog_http_refused_total";
    let bench = Bench::new();
    let token = |name: &str, scope: &str| {
        let ran =
            bench.run(&["token", "new", "--file", "tokens", "--name", name, "--scope", scope]).expect(0);
        ran.stdout.trim_end().to_owned()
    };
    let (reader, operator) = (token("r", "read"), token("a", "admin"));
    let node = bench.node(&["--token-file", "tokens"]);
    let page = || metrics_with(&node, &format!("x-api-key: {operator}\r\n"));
    let counted = || {
        let rules = page().into_iter().filter_map(|(name, value)| {
            let rule = name.strip_prefix(FAMILY)?.strip_prefix("{rule=\"")?.strip_suffix("\"}")?;
            Some((rule.to_owned(), value))
        });
        rules.collect::<Scrape>()
    };
    // Behind the head come the host of this node and no origin: what a request lacks, its line can bring along.
    let known = format!("x-api-key: {reader}\r\nx: ");
    let refusals = [
        ("host", 403, "GET /v1/runtime HTTP/1.1\r\nhost: evil.example\r\nx: ".to_owned()),
        ("origin", 403, "GET /v1/runtime HTTP/1.1\r\norigin: http://evil.example\r\nx: ".to_owned()),
        ("token", 401, "GET /v1/runtime".to_owned()),
        ("scope", 403, format!("POST /v1/executions HTTP/1.1\r\n{known}")),
    ];
    let listed = include_str!("../../../../docs/interface.md");
    let row = listed.lines().find(|line| line.starts_with("| `sealog_http_refused` |")).unwrap();
    let words = row.split_once('(').unwrap().1.split_once(')').unwrap().0;
    assert_eq!(words, refusals.each_ref().map(|(rule, ..)| format!("`{rule}`")).join(", "));

    let mut expected: Scrape = refusals.iter().map(|(rule, ..)| ((*rule).to_owned(), 0.0)).collect();
    assert_eq!(counted(), expected);
    for (times, (rule, status, head)) in (1..).zip(&refusals) {
        for _ in 0..times {
            assert!(node.http(head, "").starts_with(&format!("HTTP/1.1 {status} ")), "{rule}");
            *expected.get_mut(*rule).unwrap() += 1.0;
            assert_eq!(counted(), expected);
        }
    }
    // What passes is nobody's refusal.
    assert!(node.http(&format!("GET /v1/runtime HTTP/1.1\r\n{known}"), "").starts_with("HTTP/1.1 200 "));
    assert_eq!(counted(), expected);
    assert_eq!(node.stop().0, Some(0));
}
