//! Where a node listens, from outside: a socket in the file system, TLS, and what is needed beyond this machine.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

use crate::bench::{Bench, Node};

const SUBMIT: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"x"}]}"#;

fn serve<'a>(listen: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["serve", "--data-dir", "data", "--key-file", "key", "--listen", listen], more].concat()
}

fn get_text(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n")
}

fn over_unix(bench: &Bench, text: &str) -> String {
    let mut stream = UnixStream::connect(bench.path("node.sock")).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_path_that_no_socket_can_have_is_refused_before_anything_is_opened() {
    let bench = Bench::new();
    for path in ["unix:".to_owned(), format!("unix:{}", "s".repeat(108))] {
        let ran =
            bench.run(&["serve", "--data-dir", "data", "--key-file", "key", "--listen", &path]).expect(2);
        assert!(ran.stderr.contains("path"), "{}", ran.stderr);
    }
    assert!(!bench.path("data").exists());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test looks at files from outside")]
fn a_socket_is_private_and_its_name_goes_with_the_node() {
    let bench = Bench::new();
    let node = Node::start(bench.command(&serve("unix:node.sock", &[])));
    assert_eq!(node.first_line, "sealog listening on unix:node.sock\n");
    assert_eq!(std::fs::symlink_metadata(bench.path("node.sock")).unwrap().mode() & 0o777, 0o600);
    assert!(over_unix(&bench, &get_text("/v1/runtime", "")).starts_with("HTTP/1.1 200 "));
    let post = format!(
        "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{SUBMIT}",
        SUBMIT.len()
    );
    assert!(over_unix(&bench, &post).contains("event: execution.completed"));
    let other = get_text("/v1/runtime", "").replace("localhost", "evil.example");
    assert!(over_unix(&bench, &other).starts_with("HTTP/1.1 403 "));
    let second = ["serve", "--data-dir", "other", "--key-file", "second", "--listen", "unix:node.sock"];
    let ran = bench.run(&second).expect(1);
    assert_eq!(ran.word(), "listen_failed");
    assert!(ran.stderr.contains("another process serves it"), "{}", ran.stderr);
    assert!(over_unix(&bench, &get_text("/v1/runtime", "")).starts_with("HTTP/1.1 200 "));
    assert_eq!(node.stop().0, Some(0));
    assert!(std::fs::symlink_metadata(bench.path("node.sock")).is_err());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test looks at files from outside")]
fn a_name_that_a_killed_node_left_is_taken_over_and_other_files_are_not() {
    let bench = Bench::new();
    Node::start(bench.command(&serve("unix:node.sock", &[]))).kill();
    assert!(std::fs::symlink_metadata(bench.path("node.sock")).is_ok());
    let node = Node::start(bench.command(&serve("unix:node.sock", &[])));
    assert!(over_unix(&bench, &get_text("/v1/runtime", "")).starts_with("HTTP/1.1 200 "));
    // Somebody else's socket under the name stays.
    bench.remove("node.sock");
    let foreign = UnixListener::bind(bench.path("node.sock")).unwrap();
    assert_eq!(node.stop().0, Some(0));
    assert!(std::fs::symlink_metadata(bench.path("node.sock")).is_ok());
    drop(foreign);
    bench.remove("node.sock");
    bench.write("node.sock", b"precious", 0o600);
    let ran = bench.run(&serve("unix:node.sock", &[])).expect(1);
    assert!(ran.stderr.contains("there is something that is no socket"), "{}", ran.stderr);
    assert_eq!(bench.read("node.sock"), b"precious");
    let inspect = bench.run(&["journal", "inspect", "data", "--key-file", "key", "--json"]).json();
    assert_eq!(inspect["head"]["closed"], true);
}

/// Writes a new certificate and its key; returns the certificate.
fn certificate(bench: &Bench) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    bench.write("cert.pem", made.cert.pem().as_bytes(), 0o644);
    bench.write("key.pem", made.signing_key.serialize_pem().as_bytes(), 0o600);
    made.cert.der().clone()
}

/// One exchange with a client that trusts nothing but `root`.
fn over_tls(node: &Node, root: &CertificateDer<'static>, text: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut session =
        ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
    let mut socket = TcpStream::connect(node.url().strip_prefix("https://").unwrap())?;
    let mut stream = Stream::new(&mut session, &mut socket);
    stream.write_all(text.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

const TLS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

#[test]
fn tls_is_spoken_and_nothing_else_and_a_hangup_brings_the_new_certificate() {
    let bench = Bench::new();
    let first = certificate(&bench);
    let node = Node::start(bench.command(&serve("127.0.0.1:0", &TLS)));
    assert!(node.first_line.starts_with("sealog listening on https://127.0.0.1:"), "{}", node.first_line);
    assert!(over_tls(&node, &first, &get_text("/v1/runtime", "")).unwrap().starts_with("HTTP/1.1 200 "));
    let post = format!(
        "POST /v1/executions HTTP/1.1\r\nhost: localhost\r\norigin: https://localhost\r\nconnection: close\r\n\
         accept: text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{SUBMIT}",
        SUBMIT.len()
    );
    assert!(over_tls(&node, &first, &post).unwrap().contains("event: execution.completed"));
    let mut plain = TcpStream::connect(node.url().strip_prefix("https://").unwrap()).unwrap();
    plain.write_all(get_text("/v1/runtime", "").as_bytes()).unwrap();
    let mut answer = Vec::new();
    // However the connection ends.
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    let second = certificate(&bench);
    assert!(over_tls(&node, &second, &get_text("/v1/runtime", "")).is_err());
    node.signal(Signal::HUP);
    let end = Instant::now() + Duration::from_secs(60);
    while over_tls(&node, &second, &get_text("/v1/runtime", "")).is_err() {
        assert!(Instant::now() < end);
    }
    assert!(over_tls(&node, &first, &get_text("/v1/runtime", "")).is_err());
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn beyond_this_machine_needs_tokens_and_tls() {
    let bench = Bench::new();
    let root = certificate(&bench);
    let token = bench.run(&["token", "new", "--scope", "read", "--file", "tokens"]).expect(0).stdout;
    let tokens = ["--token-file", "tokens"];
    for more in [&[][..], &tokens, &TLS] {
        let ran = bench.run(&serve("0.0.0.0:0", more)).expect(2);
        assert_eq!(ran.word(), "not_loopback", "{more:?}");
    }
    assert!(!bench.path("data").exists());
    let mut node = Node::start(bench.command(&serve("0.0.0.0:0", &[&tokens[..], &TLS].concat())));
    node.first_line = node.first_line.replace("0.0.0.0", "127.0.0.1");
    assert!(over_tls(&node, &root, &get_text("/v1/runtime", "")).unwrap().starts_with("HTTP/1.1 401 "));
    let bearer = format!("authorization: Bearer {}\r\n", token.trim_end());
    assert!(over_tls(&node, &root, &get_text("/v1/runtime", &bearer)).unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(node.stop().0, Some(0));
}

#[test]
fn certificate_and_key_are_judged_before_anything_is_opened() {
    let bench = Bench::new();
    certificate(&bench);
    let key = bench.read("key.pem");
    let refused = |more: &[&str]| {
        let ran = bench.run(&serve("127.0.0.1:0", more)).expect(if more[0] == "--config" { 1 } else { 2 });
        assert!(!ran.stderr.contains("BEGIN") && !bench.path("data").exists(), "{}", ran.stderr);
        ran.stderr
    };
    bench.write("key.pem", &key, 0o644);
    assert!(refused(&TLS).contains("bad_tls: key.pem: others have access to it"));
    bench.write("key.pem", b"no key", 0o600);
    assert!(refused(&TLS).contains("bad_tls: key.pem: it holds no PEM private key"));
    certificate(&bench);
    bench.write("key.pem", &key, 0o600);
    assert!(refused(&TLS).contains("bad_tls: key.pem: certificate and key do not fit"));
    bench.write("cert.pem", b"", 0o600);
    assert!(refused(&TLS).contains("bad_tls: cert.pem: it holds no PEM certificate"));
    let unix = ["serve", "--data-dir", "data", "--listen", "unix:node.sock"];
    certificate(&bench);
    assert_eq!(bench.run(&[&unix[..], &TLS].concat()).expect(2).word(), "bad_tls");
    let text = format!("[tls]\ncert_file = \"{}\"\n", bench.text("cert.pem"));
    bench.write("sealog.toml", text.as_bytes(), 0o644);
    assert!(
        refused(&["--config", "sealog.toml"])
            .contains("sealog.toml:1: tls: cert_file and key_file must both")
    );
    bench.write("sealog.toml", b"[tls]\nkey = \"hunter2\"\n", 0o644);
    assert!(
        refused(&["--config", "sealog.toml"]).contains("sealog.toml:2: tls.key: unsupported or unsafe field")
    );
    let text = format!(
        "[tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n",
        bench.text("cert.pem"),
        bench.text("key.pem")
    );
    bench.write("sealog.toml", text.as_bytes(), 0o644);
    let node = Node::start(bench.command(&serve("127.0.0.1:0", &["--config", "sealog.toml"])));
    assert!(node.first_line.starts_with("sealog listening on https://"), "{}", node.first_line);
    assert_eq!(node.stop().0, Some(0));
}
