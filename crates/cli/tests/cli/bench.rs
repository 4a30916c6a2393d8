//! One folder per case, the binary with a clean environment, nodes as child processes, and files that are tampered
//! with from outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A folder of its own, gone at the end of the case.
pub struct Bench {
    folder: tempfile::TempDir,
}

/// What a verb came to.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn expect(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The stable word of the error on standard error.
    #[track_caller]
    pub fn word(&self) -> &str {
        let line = self.stderr.lines().rev().find(|line| {
            let word = line.strip_prefix("sealog: ").and_then(|rest| rest.split_once(": "));
            word.is_some_and(|(word, _)| word.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        });
        let line = line.unwrap_or_else(|| panic!("no error in: {}", self.stderr));
        line.split(": ").nth(1).unwrap()
    }

    /// The one JSON object on standard error that is the error.
    #[track_caller]
    pub fn error(&self) -> serde_json::Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        let value: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{self:?}"));
        value["error"].clone()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.stdout.lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sealog"));
        command
            .env_clear()
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .current_dir(self.folder.path())
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// With a standard output that has no room.
    #[expect(clippy::disallowed_methods, reason = "the device is no file of the journal's")]
    pub fn run_into_full(&self, arguments: &[&str]) -> Ran {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        self.command(arguments).stdout(full).output().unwrap().into()
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// A journal in `data` with its key in `key`.
    pub fn init(&self) {
        self.run(&["journal", "init", "data", "--key-file", "key"]).expect(0);
    }

    /// As [`Bench::init`], with one finished execution. Returns its id.
    pub fn finished(&self) -> String {
        self.init();
        let ran =
            self.run(&["run", "hi", "--data-dir", "data", "--key-file", "key", "--idempotency-key", "k"]);
        id_in(&ran.expect(0).stderr)
    }

    /// A command whose execution says `hello` and then waits, once it has said so.
    pub fn saying_hello(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut word = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut word).unwrap();
        assert_eq!(&word, b"hello");
        child
    }

    pub fn node(&self, more: &[&str]) -> Node {
        let mut arguments =
            vec!["serve", "--data-dir", "data", "--key-file", "key", "--listen", "127.0.0.1:0"];
        arguments.extend(more);
        Node::start(self.command(&arguments))
    }

    #[expect(clippy::disallowed_methods, reason = "a test tampers with files from outside")]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "a test tampers with files from outside")]
    pub fn write(&self, name: &str, bytes: &[u8], mode: u32) {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "a test tampers with files from outside")]
    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "a test tampers with files from outside")]
    pub fn remove_dir(&self, name: &str) {
        std::fs::remove_dir_all(self.path(name)).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "a test tampers with files from outside")]
    pub fn make_dir(&self, name: &str, mode: u32) {
        std::fs::create_dir(self.path(name)).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Every file below a folder with its bytes, by name.
    #[expect(clippy::disallowed_methods, reason = "a test looks at files from outside")]
    pub fn files(&self, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
        fn below(path: &Path, out: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(path).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    below(&path, out);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    out.push((path, bytes));
                }
            }
        }
        let mut out = Vec::new();
        below(&self.path(name), &mut out);
        out.sort();
        out
    }

    /// Changes one byte.
    pub fn flip(&self, name: &str, offset: usize) {
        let mut bytes = self.read(name);
        bytes[offset] ^= 1;
        self.write(name, &bytes, 0o600);
    }
}

/// The text without the lines about the file system that temporary files happen to be on.
pub fn without_ground(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.contains("warning: the data directory is on ")).collect()
}

/// The first execution id in a text.
#[track_caller]
pub fn id_in(text: &str) -> String {
    let word = text
        .split(|c: char| !c.is_ascii_hexdigit() && c != '-')
        .find(|word| word.len() == 36 && word.bytes().filter(|byte| *byte == b'-').count() == 4);
    word.unwrap_or_else(|| panic!("no execution id in: {text}")).to_owned()
}

/// A port of this machine that nobody listens on, and that nobody else is given as long as this is held.
pub struct Unheard {
    /// Its own port is the one: it belongs to a connection.
    taken: TcpStream,
    _other_end: TcpListener,
}

impl Unheard {
    pub fn new() -> Unheard {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Unheard { taken: TcpStream::connect(listener.local_addr().unwrap()).unwrap(), _other_end: listener }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.taken.local_addr().unwrap())
    }
}

/// A node as a child process; killed when dropped.
pub struct Node {
    child: Child,
    stderr: Option<ChildStderr>,
    pub first_line: String,
}

impl Node {
    pub fn start(mut command: Command) -> Node {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take();
        let mut first_line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
        let mut node = Node { child, stderr, first_line };
        if node.first_line.is_empty() {
            let (code, stderr) = node.end();
            panic!("the node ended with {code:?}: {stderr}");
        }
        node
    }

    pub fn url(&self) -> &str {
        self.first_line.trim_end().strip_prefix("sealog listening on ").unwrap()
    }

    /// The process's limits as the kernel shows them.
    #[expect(clippy::disallowed_methods, reason = "the kernel shows limits in a file")]
    pub fn limits(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/limits", self.child.id())).unwrap()
    }

    /// SIGTERM; the exit code and everything said on standard error.
    pub fn stop(mut self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        self.end()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Asks it to stop once a subscriber of the execution has seen output; the subscriber must see it end as cancelled.
    /// The exit code.
    pub fn stop_while_it_streams(mut self, id: &str) -> Option<i32> {
        let mut stream = self.streaming(id);
        self.signal(Signal::TERM);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(
            rest.contains("event: execution.failed") && rest.contains("\"status\":\"cancelled\""),
            "{rest}"
        );
        self.end().0
    }

    /// The events of an execution behind its first output.
    pub fn streaming(&self, id: &str) -> BufReader<TcpStream> {
        let mut stream = BufReader::new(self.http_open(&format!("GET /v1/executions/{id}/events"), ""));
        let mut line = String::new();
        while !line.starts_with("event: output.delta") {
            line.clear();
            assert_ne!(stream.read_line(&mut line).unwrap(), 0);
        }
        stream
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Reads what the node says on standard error until `words` are among it.
    pub fn read_until(&mut self, words: &str, told: &mut String) {
        let stderr = self.stderr.as_mut().unwrap();
        let mut byte = [0];
        while !told.contains(words) {
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{told}");
            told.push(char::from(byte[0]));
        }
    }

    pub fn end(&mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        if let Some(mut stderr) = self.stderr.take() {
            stderr.read_to_string(&mut text).unwrap();
        }
        (self.child.wait().unwrap().code(), text)
    }

    /// One HTTP exchange; the raw answer until the server closes.
    pub fn http(&self, head: &str, body: &str) -> String {
        let mut answer = String::new();
        self.http_open(head, body).read_to_string(&mut answer).unwrap();
        answer
    }

    /// One HTTP exchange whose answer is still coming.
    pub fn http_open(&self, head: &str, body: &str) -> TcpStream {
        let address = self.url().strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Offset of the body of the first group in a segment: header copies, link frame, frame header.
pub const FIRST_GROUP_BODY: usize = 8192 + 160 + 96;
