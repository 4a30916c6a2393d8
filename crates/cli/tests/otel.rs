//! Traces out, against a collector of the test: GenAI names, usage, and nothing of what was said.
//!
//! The collector speaks HTTP/1.1 and reads protobuf by the field numbers of OTLP; the node is built with `otel`.

#![expect(clippy::unwrap_used, reason = "what a test prepares must work, in its helpers too")]

#[path = "cli/bench.rs"]
#[expect(dead_code, reason = "shared with the other tests of the binary")]
mod bench;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bench::{Bench, Node, Unheard, id_in};

/// What a peer of the node was sent: heads and bodies.
type Sent = Receiver<(String, Vec<u8>)>;

/// Takes every export.
fn collector() -> (String, Sent) {
    peer("HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
}

/// Answers every request with the same text and hands over what was sent.
fn peer(answer: &'static str) -> (String, Sent) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                loop {
                    let (mut head, mut length) = (String::new(), 0);
                    while !head.ends_with("\r\n\r\n") {
                        let mut line = String::new();
                        if reader.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                        head += &line;
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    stream.write_all(answer.as_bytes()).unwrap();
                    if sender.send((head, body)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, receiver)
}

/// A field of a protobuf message.
#[derive(Clone, Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                Field::Bytes(take(&mut bytes, length))
            }
            5 => Field::Number(u64::from(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()))),
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, field));
    }
    all
}

fn messages(bytes: &[u8], number: u64) -> Vec<&[u8]> {
    let found = fields(bytes).into_iter().filter(|(found, _)| *found == number);
    found
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => panic!("field {number} is a number"),
        })
        .collect()
}

fn text(bytes: &[u8], number: u64) -> String {
    String::from_utf8(messages(bytes, number).first().unwrap_or(&&b""[..]).to_vec()).unwrap()
}

/// Key and value of each attribute, as text.
fn attributes(message: &[u8], number: u64) -> BTreeMap<String, String> {
    let pairs = messages(message, number).into_iter();
    pairs
        .map(|pair| {
            let value = messages(pair, 2)[0];
            let shown = match fields(value).first() {
                Some((1, Field::Bytes(text))) => String::from_utf8(text.to_vec()).unwrap(),
                Some((2 | 3, Field::Number(number))) => number.to_string(),
                other => panic!("{other:?}"),
            };
            (text(pair, 1), shown)
        })
        .collect()
}

#[derive(Debug)]
struct Span {
    name: String,
    attributes: BTreeMap<String, String>,
    events: Vec<(String, BTreeMap<String, String>)>,
    status: u64,
}

fn spans(request: &[u8]) -> Vec<Span> {
    let mut all = Vec::new();
    for resource in messages(request, 1) {
        assert_eq!(attributes(messages(resource, 1)[0], 1)["service.name"], "sealog");
        for span in messages(resource, 2).into_iter().flat_map(|scope| messages(scope, 2)) {
            let status = messages(span, 15).first().map_or(0, |status| {
                let code = fields(status).into_iter().find(|(number, _)| *number == 3);
                match code {
                    Some((_, Field::Number(code))) => code,
                    _ => 0,
                }
            });
            let events = messages(span, 11).into_iter();
            all.push(Span {
                name: text(span, 5),
                attributes: attributes(span, 9),
                events: events.map(|event| (text(event, 2), attributes(event, 3))).collect(),
                status,
            });
        }
    }
    all
}

fn request(mock: &str) -> String {
    format!(
        r#"{{"ability":"text-generation","input":[{{"type":"text","text":"canary-1"}}],"metadata":{{"m":"canary-2"}},"extensions":{{"mock":{mock}}}}}"#
    )
}

/// So many executions' spans, by their ids; nothing exported with them is content or a secret.
#[track_caller]
fn exported(exports: &Sent, count: usize) -> BTreeMap<String, Span> {
    let mut found = BTreeMap::new();
    while found.len() < count {
        let (head, body) = exports.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(!has_canary(head.as_bytes()) && !has_canary(&body));
        for span in spans(&body) {
            let id = span.events[0].1["gen_ai.response.id"].clone();
            found.insert(id, span);
        }
    }
    found
}

fn has_canary(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|window| window == b"canary")
}

fn names(span: &Span) -> Vec<&str> {
    span.events.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn executions_become_spans_without_content() {
    let (address, exports) = collector();
    let bench = Bench::new();
    let mut command =
        bench.command(&["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
    let node = Node::start(command);
    let ended = |mock: &str| {
        let id = id_in(&node.http("POST /v1/executions", &request(mock)));
        node.http(&format!("GET /v1/executions/{id}/events"), "");
        id
    };
    let good = ended(
        r#"{"usage":[{"unit":"input_token","quantity":7},{"unit":"input_token","quantity":3},{"unit":"canary-3","quantity":1}],"tool_calls":[{"call_id":"canary-4","name":"canary-5","arguments":"canary-6"}]}"#,
    );
    let bad = ended(r#"{"fail_after":1,"fail_code":"rate_limited","fail_retryable":true}"#);
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(0), "{stderr}");
    let found = exported(&exports, 2);
    let span = &found[&good];
    assert_eq!((span.name.as_str(), span.status), ("chat model-alpha", 1), "{span:#?}");
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("model_runtime.ability", "text-generation"),
        ("gen_ai.provider.name", "provider-mock"),
        ("gen_ai.request.model", "model-alpha"),
        ("gen_ai.usage.input_tokens", "10"),
    ] {
        assert_eq!(span.attributes.get(name).map(String::as_str), Some(value), "{name}: {span:#?}");
    }
    assert!(!span.attributes.contains_key("gen_ai.usage.output_tokens"), "{span:#?}");
    assert_eq!(
        names(span),
        ["execution.accepted", "route.selected", "output", "usage.reported", "execution.completed"]
    );
    assert_eq!(span.events[1].1["gen_ai.response.model"], "model-alpha");
    assert_eq!(span.events[0].1["model_runtime.event.sequence"], "1");
    assert_eq!(span.events[4].1["model_runtime.execution.status"], "succeeded");
    let span = &found[&bad];
    assert_eq!((span.status, span.attributes["error.type"].as_str()), (2, "rate_limited"), "{span:#?}");
    let (name, attributes) = &span.events[span.events.len() - 1];
    // Output was exposed, so it may no longer be retried.
    assert_eq!(
        (
            name.as_str(),
            attributes["error.type"].as_str(),
            attributes["model_runtime.error.retryable"].as_str()
        ),
        ("execution.failed", "rate_limited", "0")
    );
}

/// An upstream that refuses and says content with it, in front of a provider that does not.
#[test]
fn a_failed_attempt_and_what_it_fell_back_to_are_events_of_one_span_without_content() {
    let (upstream, asked) = peer(
        "HTTP/1.1 503 canary-7\r\nx-request-id: canary-8\r\ncontent-type: application/json\r\n\
         content-length: 51\r\n\r\n{\"error\":{\"code\":\"canary-9\",\"message\":\"canary-10\"}}",
    );
    let (address, exports) = collector();
    let bench = Bench::new();
    let config = format!(
        "[[providers]]\ntype = \"openai-chat\"\nid = \"refusing\"\nmodel = \"m\"\napi_key_env = \"UPSTREAM_KEY\"\n\
         base_url = \"http://{upstream}/v1\"\n[[providers]]\ntype = \"mock\"\nid = \"second\"\n"
    );
    bench.write("sealog.toml", config.as_bytes(), 0o600);
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"];
    let mut command = bench.command(&[&serve[..], &["--config", "sealog.toml"]].concat());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
    command.env("UPSTREAM_KEY", "canary-11");
    let node = Node::start(command);
    let ended = |allow_fallback: bool| {
        let routing = format!(r#"{{"routing":{{"allow_fallback":{allow_fallback}}},"#);
        let id = id_in(&node.http("POST /v1/executions", &request("{}").replacen('{', &routing, 1)));
        node.http(&format!("GET /v1/executions/{id}/events"), "");
        let (head, body) = asked.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(has_canary(head.as_bytes()) && has_canary(&body), "{head}");
        id
    };
    let (followed, final_one) = (ended(true), ended(false));
    assert_eq!(node.stop().0, Some(0));
    let found = exported(&exports, 2);

    let span = &found[&followed];
    let told = [
        "execution.accepted",
        "route.selected",
        "route.attempt_failed",
        "route.selected",
        "output",
        "usage.reported",
        "execution.completed",
    ];
    assert_eq!(names(span), told);
    let of = |event: usize, name: &str| span.events[event].1.get(name).map(String::as_str);
    for (event, provider, model) in [(1, "refusing", "m"), (3, "second", "model-alpha")] {
        assert_eq!(of(event, "gen_ai.provider.name"), Some(provider));
        assert_eq!(of(event, "gen_ai.response.model"), Some(model));
    }
    assert_eq!(of(2, "error.type"), Some("provider_unavailable"));
    assert_eq!(of(2, "model_runtime.error.retryable"), Some("1"));
    assert_eq!(of(2, "model_runtime.execution.status"), Some("routing"));
    for (event, sequence) in [(1, "2"), (2, "3"), (3, "4")] {
        assert_eq!(of(event, "model_runtime.event.sequence"), Some(sequence));
        assert_eq!(of(event, "gen_ai.response.id"), Some(followed.as_str()));
    }
    // The span is that of the attempt that counted: a failure that was followed is none of the execution.
    let whole = |span: &Span, name: &str| span.attributes.get(name).cloned();
    assert_eq!((span.name.as_str(), span.status), ("chat model-alpha", 1), "{span:#?}");
    assert_eq!(whole(span, "gen_ai.provider.name").as_deref(), Some("second"));
    assert_eq!(whole(span, "error.type"), None);

    let span = &found[&final_one];
    assert_eq!(names(span), ["execution.accepted", "route.selected", "execution.failed"]);
    assert_eq!((span.name.as_str(), span.status), ("chat m", 2), "{span:#?}");
    assert_eq!(whole(span, "gen_ai.provider.name").as_deref(), Some("refusing"));
    assert_eq!(whole(span, "error.type").as_deref(), Some("provider_unavailable"));
}

#[test]
fn a_collector_that_is_gone_costs_nothing_but_spans() {
    let gone = Unheard::new();
    let bench = Bench::new();
    let mut command =
        bench.command(&["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", gone.url());
    let node = Node::start(command);
    let id = id_in(&node.http("POST /v1/executions", &request("{}")));
    assert!(node.http(&format!("GET /v1/executions/{id}/events"), "").contains("execution.completed"));
    assert_eq!(node.stop().0, Some(0));
}
