//! `config show`: where values come from, beyond what its golden cases hold.

use serde_json::Value;

use crate::bench::Bench;

fn settings(bench: &Bench, flags: &[&str]) -> Vec<Value> {
    let shown = bench.run(&[&["config", "show", "--origin", "--json"], flags].concat()).expect(0).json();
    shown["settings"].as_array().unwrap().clone()
}

#[track_caller]
fn check(settings: &[Value], key: &str, value: &str, origin: &str) {
    let found: Vec<_> = settings.iter().filter(|setting| setting["key"] == key).collect();
    assert_eq!(found.len(), 1, "{key}");
    assert_eq!((&found[0]["value"], &found[0]["origin"]), (&value.into(), &origin.into()), "{key}");
}

#[test]
fn flags_and_environment_are_told_apart_and_no_secret_file_is_named() {
    let bench = Bench::new();
    let state = bench.path("state/sealog");
    let state = state.to_str().unwrap();
    check(&settings(&bench, &[]), "data_dir", state, "environment, XDG_STATE_HOME");
    let files = ["--token-file", "canary", "--tls-cert", "canary", "--tls-key", "canary"];
    let flags = [&files[..], &["--listen", "unix:/run/s.sock", "--log-format", "text"]].concat();
    let shown = settings(&bench, &flags);
    check(&shown, "listen", "unix:/run/s.sock", "flag");
    check(&shown, "log_format", "text", "flag");
    for key in ["token_file", "tls_cert", "tls_key"] {
        check(&shown, key, "(not shown)", "flag");
    }
    assert!(!format!("{shown:?}").contains("canary"));
}

#[test]
fn sections_about_access_are_shown_without_their_files() {
    let bench = Bench::new();
    let text = "[http]\nhosts = [\"a.example\"]\ntoken_file = \"/canary\"\n[tls]\ncert_file = \"/canary\"\nkey_file = \"/canary\"\n";
    bench.write("sealog.toml", text.as_bytes(), 0o600);
    let shown = settings(&bench, &["--config", "sealog.toml"]);
    check(&shown, "http.hosts", "[\"a.example\"]", "sealog.toml:2");
    for (key, line) in [("http.token_file", 3), ("tls.cert_file", 5), ("tls.key_file", 6)] {
        check(&shown, key, "(not shown)", &format!("sealog.toml:{line}"));
    }
}

#[test]
fn the_file_is_named_as_serve_takes_it_or_bare() {
    let bench = Bench::new();
    bench.write("sealog.toml", b"max_active_executions = 3\n", 0o600);
    for verb in [&["config", "check"][..], &["config", "show", "--origin"]] {
        let bare = bench.run(&[verb, &["sealog.toml"]].concat()).expect(0).stdout;
        assert_eq!(bench.run(&[verb, &["--config", "sealog.toml"]].concat()).expect(0).stdout, bare);
        assert!(bare.contains("sealog.toml"), "{bare}");
        bench.run(&[verb, &["sealog.toml", "--config", "sealog.toml"]].concat()).expect(2);
    }
    bench.run(&["config", "check"]).expect(2);
}
