//! The official `openai` and `anthropic` clients, unmodified, against a running node: in front of a scripted upstream,
//! in front of the real local model, with tokens, and over a crash of the node.
#![expect(clippy::disallowed_methods, reason = "prepares a node's configuration from outside")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use crashbox::node::Node;
use sealog_tests::workbench::Workbench;
use sealog_tests::{binary, canary};

use crate::local_model::LocalModel;

/// What stands beside this package's sources.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

/// The interpreter with the clients, installed as pinned; made once for a target directory, by the test that is there
/// first while the others wait: an installation that is begun again under another one's feet is none.
fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(install)
}

fn install() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("official-clients");
    let (python, marker) = (home.join("bin/python"), home.join("installed"));
    let pinned = fs::read_to_string(beside("requirements.txt")).unwrap();
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == pinned) {
        return python;
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home));
    run(Command::new(&python)
        .args(["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-input", "--no-deps"])
        .args(["--only-binary", ":all:", "--require-hashes", "-r"])
        .arg(beside("requirements.txt")));
    // Written last, so that half an installation is none.
    fs::write(marker, pinned).unwrap();
    python
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    output
}

/// The scripted upstream; gone when dropped.
struct Scripted {
    server: Child,
    url: String,
}

const KEY_ENV: &str = "SCRIPTED_KEY";

impl Scripted {
    fn start(key: &str) -> Scripted {
        let mut command = Command::new("python3");
        command.arg(beside("upstream.py")).arg(key).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Scripted { server, url: format!("http://127.0.0.1:{}", port.trim()) }
    }

    /// A provider that always refuses, and one that does as it is told.
    fn entries(&self) -> String {
        let entry = |id: &str, model: &str, abilities: &str| {
            format!(
                "[[providers]]\ntype = \"openai-chat\"\nid = \"{id}\"\nmodel = \"{model}\"\n\
                 abilities = [{abilities}]\nbase_url = \"{}/v1\"\napi_key_env = \"{KEY_ENV}\"\n\
                 capabilities = {{ tools = true }}\n",
                self.url
            )
        };
        let refusing = entry("refusing", "refusing", "\"either\"");
        refusing + &entry("scripted", "model-s", "\"scripted-text\", \"either\"")
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        // One that ended by itself has failed its test already.
        let _already_ended = self.server.kill();
        let _status = self.server.wait();
    }
}

/// A node in front of the scripted upstream.
fn bench(scripted: &Scripted, key: &str) -> Workbench {
    let mut bench = Workbench::new();
    fs::write(bench.home.config.as_ref().unwrap(), scripted.entries()).unwrap();
    bench.home.environment.push((KEY_ENV.to_owned(), key.to_owned()));
    bench
}

#[track_caller]
fn talk(what: &str, node: &Node, more: &[&str]) -> Output {
    let url = format!("http://{}", node.address());
    run(Command::new(python()).arg(beside("talk.py")).args([what, &url]).args(more))
}

#[test]
fn the_official_clients_talk_call_tools_fail_and_resume_and_a_crash_changes_nothing_that_was_told() {
    let key = canary::secret("provider");
    let scripted = Scripted::start(&key);
    let bench = bench(&scripted, &key);
    let node = bench.start();
    talk("openai", &node, &[&scripted.url]);
    talk("anthropic", &node, &[&scripted.url]);

    let begun = bench.dir().join("begun.json");
    fs::write(&begun, talk("begin", &node, &[]).stdout).unwrap();
    node.kill().unwrap();
    let node = bench.start();
    talk("later", &node, &[begun.to_str().unwrap()]);
}

#[test]
fn the_official_clients_talk_to_a_real_model() {
    let model = LocalModel::start();
    let bench = Workbench::new();
    fs::write(bench.home.config.as_ref().unwrap(), model.configuration().to_string()).unwrap();
    let node = bench.start();
    let entry = &model.configuration()["providers"][0];
    let name = format!("{}/{}", entry["id"].as_str().unwrap(), entry["model"].as_str().unwrap());
    talk("local", &node, &[&name]);
}

#[test]
fn the_official_clients_are_refused_without_a_token() {
    let key = canary::secret("provider");
    let scripted = Scripted::start(&key);
    let mut bench = bench(&scripted, &key);
    let file = bench.dir().join("tokens");
    let mut command = Command::new(binary("sealog"));
    command.args(["token", "new", "--scope", "read", "--scope", "write", "--file"]).arg(&file);
    let token = String::from_utf8(run(&mut command).stdout).unwrap();
    bench.home.arguments.extend(["--token-file".to_owned(), file.to_str().unwrap().to_owned()]);
    let node = bench.start();
    talk("tokens", &node, &[token.trim()]);
}
