//! Who may reach a node, from outside: names, pages, tokens and their scopes, and reading them again.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, Node, Ran, id_in};

const SUBMIT: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}]}"#;

/// One exchange in which every header but the length is given; the whole answer.
fn ask(node: &Node, start: &str, headers: &[&str], body: &str) -> String {
    let address = node.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let mut text = format!("{start} HTTP/1.1\r\nconnection: close\r\n");
    for header in headers {
        text += &format!("{header}\r\n");
    }
    text += &format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[track_caller]
fn status(answer: &str) -> u16 {
    assert!(answer.contains("x-content-type-options: nosniff\r\n"), "{answer}");
    answer.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap()
}

const DOCUMENT: &str = include_str!("../../../../spec/openapi.yaml");

/// Method and path of every route of the document, with an execution in it that nobody knows, and one that is no route.
fn routes() -> Vec<String> {
    let mut found = Vec::new();
    let mut path = "";
    let (_, paths) = DOCUMENT.split_once("\npaths:\n").unwrap();
    for line in paths.lines().take_while(|line| line.starts_with(' ')) {
        let indent = line.len() - line.trim_start().len();
        match (indent, line.trim().strip_suffix(':')) {
            (2, Some(key)) => path = key,
            (4, Some(method @ ("get" | "post" | "delete" | "put" | "patch"))) => {
                let path = path.replace("{id}", "11111111-2222-4333-8444-555555555555");
                assert!(!path.contains('{'), "{path}");
                found.push(format!("{} {path}", method.to_uppercase()));
            }
            _ => {}
        }
    }
    assert!(found.len() >= 17 && found.iter().any(|route| route == "POST /v1/messages"), "{found:?}");
    found.push("GET /nowhere".to_owned());
    found
}

/// What says whether the node lives: no token is needed for it.
fn is_open(route: &str) -> bool {
    ["GET /healthz", "GET /readyz"].contains(&route)
}

#[test]
fn another_name_and_a_page_of_another_origin_are_refused_on_every_route() {
    let bench = Bench::new();
    let node = bench.node(&["--allow-host", "node.example.com", "--allow-origin", "https://app.example.com"]);
    let host = node.url().strip_prefix("http://").unwrap().to_owned();
    let port = host.rsplit(':').next().unwrap().to_owned();
    for start in &routes() {
        for headers in [
            &["host: evil.example"][..],
            &["host: evil.example", "origin: http://evil.example"],
            &[&format!("host: {host}"), "origin: http://evil.example"],
            &[&format!("host: {host}"), "origin: http://localhost:1"],
            &[&format!("host: {host}"), "origin: null"],
            &[],
        ] {
            let answer = ask(&node, start, headers, "");
            assert_eq!(status(&answer), 403, "{start} {headers:?}: {answer}");
            assert!(!answer.contains("evil") && !answer.contains("access-control"), "{answer}");
        }
    }
    let own = format!("origin: http://{host}");
    for headers in [
        &[&*format!("host: {host}")][..],
        &[&format!("host: {host}"), &own],
        &[&format!("host: localhost:{port}"), &format!("origin: http://localhost:{port}")],
        &[&format!("host: {host}"), "origin: https://app.example.com"],
        &["host: node.example.com", "origin: https://node.example.com"],
    ] {
        assert_eq!(status(&ask(&node, "GET /v1/runtime", headers, "")), 200, "{headers:?}");
        assert_eq!(status(&ask(&node, "POST /v1/executions", headers, SUBMIT)), 202, "{headers:?}");
    }
    let answer = ask(&node, "GET /v1/runtime", &["host: evil.example"], "");
    assert!(answer.ends_with(r#"{"error":{"code":"forbidden","message":"Host is not one of this node's names","retryable":false}}"#), "{answer}");
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn configured_names_count_like_those_of_flags() {
    let bench = Bench::new();
    let text = "[http]\nhosts = [\"node.example.com\"]\norigins = [\"https://app.example.com\"]\n";
    bench.write("sealog.toml", text.as_bytes(), 0o644);
    let node = bench.node(&["--config", "sealog.toml"]);
    let headers = ["host: node.example.com", "origin: https://app.example.com"];
    assert_eq!(status(&ask(&node, "GET /v1/runtime", &headers, "")), 200);
    assert_eq!(node.stop().0, Some(0));
    for (text, place) in [
        ("[http]\nhosts = [\"http://hunter2\"]\n", "sealog.toml:2: http.hosts: "),
        ("[http]\norigins = [\"hunter2\"]\n", "sealog.toml:2: http.origins: "),
        ("[http]\ntoken_file = \"hunter2\"\n", "sealog.toml:2: http.token_file: an absolute path"),
        ("[http]\ntoken = \"hunter2\"\n", "sealog.toml:2: http.token: unsupported or unsafe field"),
    ] {
        bench.write("sealog.toml", text.as_bytes(), 0o644);
        let ran = bench.run(&["serve", "--data-dir", "data", "--config", "sealog.toml"]).expect(1);
        assert!(ran.stderr.contains(place) && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
}

fn token(bench: &Bench, name: &str, scopes: &[&str]) -> String {
    let mut arguments = vec!["token", "new", "--file", "tokens", "--name", name];
    for scope in scopes {
        arguments.extend(["--scope", scope]);
    }
    let ran = bench.run(&arguments).expect(0);
    ran.stdout.trim_end().to_owned()
}

#[test]
fn tokens_made_at_the_same_time_all_count() {
    let bench = Bench::new();
    let made: Vec<String> = std::thread::scope(|scope| {
        let bench = &bench;
        let making: Vec<_> = (0..8)
            .map(|number| scope.spawn(move || token(bench, &format!("n{number}"), &["read"])))
            .collect();
        making.into_iter().map(|made| made.join().unwrap()).collect()
    });
    let node = bench.node(&["--token-file", "tokens"]);
    for token in made {
        let bearer = format!("authorization: Bearer {token}");
        assert_eq!(status(&ask(&node, "GET /v1/runtime", &["host: localhost", &bearer], "")), 200);
    }
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_never_waited_for() {
    let bench = Bench::new();
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(bench.path(name)).status().unwrap();
        assert!(made.success());
    };
    pipe("pipe");
    let start = ["serve", "--data-dir", "data", "--token-file", "pipe"];
    assert!(bench.run(&start).expect(2).stderr.contains("bad_token_file: pipe: not a regular file"));
    let start = ["serve", "--data-dir", "data", "--tls-cert", "pipe", "--tls-key", "pipe"];
    assert!(bench.run(&start).expect(2).stderr.contains("bad_tls: pipe: not a regular file"));
    bench.run(&["token", "new", "--scope", "read", "--file", "pipe"]).expect(2);

    let token = token(&bench, "r", &["read"]);
    let mut node = bench.node(&["--token-file", "tokens"]);
    bench.remove("tokens");
    pipe("tokens");
    node.signal(Signal::HUP);
    node.read_until("tokens: not a regular file; the tokens read before still count", &mut String::new());
    let bearer = format!("authorization: Bearer {token}");
    assert_eq!(status(&ask(&node, "GET /v1/runtime", &["host: localhost", &bearer], "")), 200);
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn each_scope_opens_its_routes_and_no_others() {
    let bench = Bench::new();
    let (read, write) = (token(&bench, "r", &["read"]), token(&bench, "w", &["write"]));
    let (admin, all) = (token(&bench, "a", &["admin"]), token(&bench, "all", &["write", "admin"]));
    let file = String::from_utf8(bench.read("tokens")).unwrap();
    for made in [&read, &write, &admin, &all] {
        assert!(made.len() == 71 && made.starts_with("sealog_") && !file.contains(&made[7..]), "{made}");
    }
    let node = bench.node(&["--token-file", "tokens"]);
    let asked = |start: &str, token: &str, body: &str| {
        let bearer = ask(&node, start, &["host: localhost", &format!("authorization: Bearer {token}")], body);
        let key = ask(&node, start, &["host: localhost", &format!("x-api-key: {token}")], body);
        assert_eq!(status(&bearer), status(&key), "{start}");
        bearer
    };
    for start in &routes() {
        for headers in [&["host: localhost"][..], &["host: localhost", "authorization: Bearer sealog_0"]] {
            let answer = ask(&node, start, headers, "");
            assert_eq!(status(&answer), if is_open(start) { 200 } else { 401 }, "{start}");
            assert_eq!(answer.contains("www-authenticate: Bearer\r\n"), !is_open(start), "{answer}");
        }
        for (token, scopes) in [
            (&read, &["read"][..]),
            (&write, &["read", "write"]),
            (&admin, &["admin"]),
            (&all, &["read", "write", "admin"]),
        ] {
            let needed = match start.as_str() {
                "GET /metrics" => "admin",
                start if start.starts_with("GET ") => "read",
                _ => "write",
            };
            let opens = is_open(start) || scopes.contains(&needed);
            let code = status(&asked(start, token, ""));
            assert_eq!(code != 401 && code != 403, opens, "{start} with {scopes:?}: {code}");
        }
    }
    let id = id_in(&asked("POST /v1/executions", &write, SUBMIT));
    for (token, reads, writes, operates) in [
        (&read, true, false, false),
        (&write, true, true, false),
        (&admin, false, false, true),
        (&all, true, true, true),
    ] {
        let code = |start: &str, body: &str| status(&asked(start, token, body));
        assert_eq!(code(&format!("GET /v1/executions/{id}"), ""), if reads { 200 } else { 403 });
        assert_eq!(code(&format!("GET /v1/executions/{id}/events"), ""), if reads { 200 } else { 403 });
        assert_eq!(code("POST /v1/executions", SUBMIT), if writes { 202 } else { 403 });
        assert_eq!(code("POST /v1/executions/x/cancel", ""), if writes { 404 } else { 403 });
        assert_eq!(code("GET /metrics", "") != 403, operates);
    }
    let (code, stderr) = node.stop();
    assert_eq!(code, Some(0));
    for made in [&read, &write, &admin, &all] {
        assert!(!stderr.contains(&made[7..]), "{stderr}");
    }
}

#[test]
fn a_front_door_refuses_in_its_own_dialect() {
    let bench = Bench::new();
    let read = token(&bench, "r", &["read"]);
    let node = bench.node(&["--token-file", "tokens"]);
    let body = |start: &str, headers: &[&str]| {
        let headers = [&["host: localhost"], headers].concat();
        let answer = ask(&node, start, &headers, "{}");
        let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        (status(&answer), serde_json::from_str::<serde_json::Value>(&body).unwrap())
    };
    let (code, answer) = body("POST /v1/chat/completions", &[]);
    assert_eq!((code, &answer["error"]["code"]), (401, &"invalid_api_key".into()));
    let (code, answer) = body("GET /v1/responses/resp_1", &[]);
    assert_eq!((code, &answer["error"]["code"]), (401, &"invalid_api_key".into()));
    let (code, answer) = body("POST /v1/messages", &[&format!("x-api-key: {read}")]);
    assert_eq!((code, &answer["error"]["type"]), (403, &"permission_error".into()));
    let (code, answer) = body("GET /v1/models", &["anthropic-version: 2023-06-01"]);
    assert_eq!((code, &answer["error"]["type"]), (401, &"authentication_error".into()));
    assert_eq!(node.stop().0, Some(0));
}

/// Asks until the answer is `expected`: the node reads the file some moment after the signal.
#[track_caller]
fn until(node: &Node, token: &str, expected: u16) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let answer =
            ask(node, "GET /v1/runtime", &["host: localhost", &format!("authorization: Bearer {token}")], "");
        if status(&answer) == expected {
            return;
        }
        assert!(Instant::now() < end, "{answer}");
    }
}

#[test]
fn a_hangup_reads_the_tokens_again_and_a_bad_file_changes_nothing() {
    let bench = Bench::new();
    let first = token(&bench, "first", &["read"]);
    let mut node = bench.node(&["--token-file", "tokens"]);
    let second = token(&bench, "second", &["read"]);
    until(&node, &second, 401);
    node.signal(Signal::HUP);
    until(&node, &second, 200);
    until(&node, &first, 200);
    let text = String::from_utf8(bench.read("tokens")).unwrap();
    let kept: String =
        text.lines().filter(|line| !line.starts_with("first ")).map(|line| format!("{line}\n")).collect();
    bench.write("tokens", kept.as_bytes(), 0o600);
    node.signal(Signal::HUP);
    until(&node, &first, 401);
    until(&node, &second, 200);
    bench.write("tokens", b"nonsense\n", 0o600);
    node.signal(Signal::HUP);
    let mut told = String::new();
    node.read_until("the tokens read before still count", &mut told);
    assert!(told.contains("tokens was read again: 2 tokens"), "{told}");
    until(&node, &second, 200);
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn run_shows_the_token_of_a_file() {
    let bench = Bench::new();
    let write = token(&bench, "w", &["write"]);
    let node = bench.node(&["--token-file", "tokens"]);
    let run = ["run", "hi", "--url", node.url()];
    assert_eq!(bench.run(&run).expect(2).word(), "not_allowed");
    bench.write("token", format!("{write}\n").as_bytes(), 0o600);
    let ran = bench.run(&[&run[..], &["--token-file", "token"]].concat()).expect(0);
    assert_eq!(ran.stdout, "hello from mock\n");
    let mut named = bench.command(&run);
    named.env("SEALOG_TOKEN_FILE", bench.path("token"));
    assert_eq!(named.output().unwrap().status.code(), Some(0));
    bench.write("token", write.as_bytes(), 0o644);
    assert_eq!(bench.run(&[&run[..], &["--token-file", "token"]].concat()).expect(2).word(), "bad_token");
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn a_token_file_that_is_not_one_stops_the_start() {
    let bench = Bench::new();
    let serve = ["serve", "--data-dir", "data", "--key-file", "key", "--token-file", "tokens"];
    assert_eq!(bench.run(&serve).expect(2).word(), "bad_token_file");
    bench.write("tokens", b"sealog_hunter2\n", 0o600);
    let ran = bench.run(&serve).expect(2);
    assert_eq!(ran.word(), "bad_token_file");
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    bench.write("tokens", b"", 0o666);
    assert_eq!(bench.run(&serve).expect(2).word(), "bad_token_file");
    assert!(!bench.path("data").exists());
    let name = bench.run(&["token", "new", "--scope", "read", "--file", "other", "--name", "a b"]).expect(2);
    assert_eq!(name.word(), "bad_token_name");
    bench.write("tokens", b"", 0o600);
    token(&bench, "again", &["read"]);
    let twice =
        bench.run(&["token", "new", "--scope", "read", "--file", "tokens", "--name", "again"]).expect(2);
    assert_eq!(twice.word(), "bad_token_name");
    let bad = bench.run(&["serve", "--data-dir", "data", "--allow-host", "a:1"]).expect(2);
    assert_eq!(bad.word(), "bad_name");
}

/// Whether the process catches SIGHUP, as the kernel shows it; `None` once it is gone.
#[expect(clippy::disallowed_methods, reason = "the kernel shows signals in a file")]
fn catches_hangups(process: u32) -> Option<bool> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
    Some(u64::from_str_radix(caught.trim(), 16).ok()? & 1 == 1)
}

#[test]
fn a_hangup_during_the_start_does_not_end_it() {
    let bench = Bench::new();
    token(&bench, "r", &["read"]);
    let node = bench.node(&[]);
    // It waits a while for the lock: whoever has it may be letting go.
    let start = [
        "serve",
        "--data-dir",
        "data",
        "--key-file",
        "key",
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        "tokens",
    ];
    let mut second = bench.command(&start).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while catches_hangups(second.id()) == Some(false) && second.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(i32::try_from(second.id()).unwrap()).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    Ran::from(second.wait_with_output().unwrap()).expect(11);
    assert_eq!(node.stop().0, Some(0));
}
