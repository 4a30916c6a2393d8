//! One node of a test with everything around it: a directory, a key, a configuration, a counting upstream.
//!
//! Owns the set-up only. What a test claims stands in the test.
#![expect(clippy::disallowed_methods, reason = "prepares a node's files from outside")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crashbox::http::{Client, Reply, Request};
use crashbox::node::{Home, Node};
use crashbox::upstream::Upstream;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary;

/// Longest wait for anything a node does. Reaching it is a failure, never a measurement.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The ability that the counting upstream serves; `text-generation` is the mock's.
pub const COUNTED: &str = "counted-text";
/// The variable that holds the upstream's key.
pub const UPSTREAM_KEY_ENV: &str = "TEST_UPSTREAM_KEY";

/// A node's surroundings; gone when dropped.
#[derive(Debug)]
pub struct Workbench {
    dir: TempDir,
    pub home: Home,
    pub upstream: Upstream,
}

impl Workbench {
    /// Writes key and configuration; nothing is started.
    ///
    /// # Panics
    /// When the host refuses.
    pub fn new() -> Workbench {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let upstream = Upstream::start().expect("a port on loopback");
        let mut home = Home::inside(dir.path(), &binary("sealog"));
        let config = dir.path().join("sealog.toml");
        let text = format!(
            "max_active_executions = 1000\n[[providers]]\ntype = \"mock\"\nmax_concurrency = 1000\n\
             [[providers]]\ntype = \"openai-chat\"\nid = \"counted\"\nmodel = \"scripted\"\n\
             abilities = [\"{COUNTED}\"]\nbase_url = \"{}\"\napi_key_env = \"{UPSTREAM_KEY_ENV}\"\nmax_concurrency = 1000\n",
            upstream.base_url()
        );
        fs::write(&config, text).expect("a configuration");
        home.config = Some(config);
        home.environment.push((UPSTREAM_KEY_ENV.to_owned(), "no-secret".to_owned()));
        Workbench { dir, home, upstream }
    }

    /// The directory around the node's own.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Adds lines to the configuration.
    ///
    /// # Panics
    /// When the host refuses.
    pub fn configure(&self, more: &str) {
        let config = self.home.config.as_ref().expect("a configuration");
        let text = fs::read_to_string(config).expect("a configuration") + more;
        fs::write(config, text).expect("a configuration");
    }

    /// Uses these raw bytes as the key.
    ///
    /// # Panics
    /// When the host refuses.
    pub fn use_key(&self, key: &[u8; 32]) {
        fs::write(&self.home.key_file, key).expect("a key file");
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&self.home.key_file, private).expect("a private key file");
    }

    /// Starts and waits until it serves.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn start(&self) -> Node {
        match self.home.start().and_then(|starting| starting.ready(PATIENCE)) {
            Ok(node) => node,
            Err(error) => panic!("{error:#}\n{}", self.log()),
        }
    }

    /// Everything its nodes have said on standard error.
    ///
    /// # Panics
    /// When there is no log.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.home.log).expect("a log")).into_owned()
    }

    /// A client of this node.
    pub fn client(node: &Node) -> Client {
        Client::new(node.address(), PATIENCE)
    }
}

impl Default for Workbench {
    fn default() -> Self {
        Workbench::new()
    }
}

/// The body of a request with one text and steps for the mock.
pub fn mock(text: &str, steps: &Value) -> Value {
    json!({"ability": "text-generation", "input": [{"type": "text", "text": text}], "extensions": {"mock": steps}})
}

/// The body of a request for the counting upstream.
pub fn counted(prompt: &str) -> Value {
    json!({"ability": COUNTED, "input": [{"type": "text", "text": prompt}]})
}

/// Submits, and returns the whole answer.
///
/// # Errors
/// The transport.
pub fn submit(client: &mut Client, body: &Value, key: Option<&str>) -> std::io::Result<Reply> {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(key.map(|key| ("idempotency-key", key)));
    client.ask(&Request::post("/v1/executions", &headers, body.to_string().as_bytes()))
}

/// Submits, and returns the execution's id.
///
/// # Panics
/// When the answer is not 202.
#[track_caller]
pub fn accepted(client: &mut Client, body: &Value, key: Option<&str>) -> String {
    let reply = submit(client, body, key).expect("an answer");
    assert_eq!(reply.status, 202, "{}", reply.text());
    text(&reply.body, "execution_id")
}

/// Reads all events of an execution that ends, as the bytes that were sent.
///
/// # Panics
/// When the answer is not 200.
#[track_caller]
pub fn events(client: &mut Client, id: &str) -> String {
    let reply = client.ask(&Request::get(&format!("/v1/executions/{id}/events"))).expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    String::from_utf8(reply.body).expect("UTF-8")
}

/// `GET` as JSON, with its status.
///
/// # Panics
/// When there is no answer.
#[track_caller]
pub fn get(client: &mut Client, path: &str) -> (u16, Value) {
    let reply = client.ask(&Request::get(path)).expect("an answer");
    (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
}

/// A text member of a JSON object.
///
/// # Panics
/// When it is not there.
#[track_caller]
pub fn text(body: &[u8], name: &str) -> String {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    body[name].as_str().unwrap_or_else(|| panic!("no {name} in {body}")).to_owned()
}
