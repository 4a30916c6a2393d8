//! A node of this same binary as a child process, for `demo`.
//!
//! Owns the child and the temporary directory it works in; both are gone when their owner is, however that ends.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use crate::exit::Exit;
use crate::failure::{Failure, Result};

/// What stands in the first line on standard output of a node that is ready.
const READY: &str = "sealog listening on ";

/// The folder of one demonstration.
#[derive(Debug)]
pub struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    /// # Errors
    /// No temporary directory can be made.
    pub fn new() -> Result<Stage> {
        let folder = tempfile::Builder::new()
            .prefix("sealog-demo-")
            .tempdir()
            .map_err(|error| went_wrong("no temporary directory can be made").because(error))?;
        Ok(Stage { folder })
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("journal.key")
    }

    /// A node on the journal, once it says that it is ready.
    ///
    /// # Errors
    /// It cannot be started, or ended before it was ready.
    pub fn start_node(&self) -> Result<ChildNode> {
        let (data, key) = (self.data_dir(), self.key_file());
        let arguments: [&OsStr; 7] = [
            "serve".as_ref(),
            "--data-dir".as_ref(),
            data.as_ref(),
            "--key-file".as_ref(),
            key.as_ref(),
            "--listen".as_ref(),
            "127.0.0.1:0".as_ref(),
        ];
        ChildNode::start(&arguments)
    }

    /// Runs a verb of this binary on the journal to its end.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn offline(&self, verb: &[&str]) -> Result<Output> {
        own_binary()?
            .args(verb)
            .arg("--key-file")
            .arg(self.key_file())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| went_wrong("this binary cannot be started").because(error))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

pub fn went_wrong(what: impl Into<String>) -> Failure {
    Failure::new(Exit::Failed, "demo_failed", what)
        .safe("everything was in a temporary directory that is gone")
        .next("run it again; if it fails again, report what it printed")
}

fn own_binary() -> Result<Command> {
    let path = std::env::current_exe()
        .map_err(|error| went_wrong("this binary does not know where it is").because(error))?;
    Ok(Command::new(path))
}

/// A running node. Killed when dropped.
#[derive(Debug)]
pub struct ChildNode {
    child: Child,
    url: String,
    /// Collects what the node says on standard error.
    talk: Option<JoinHandle<String>>,
}

impl ChildNode {
    fn start(arguments: &[&OsStr]) -> Result<ChildNode> {
        let mut child = own_binary()?
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| went_wrong("this binary cannot be started").because(error))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let talk = err.map(|mut err| {
            std::thread::spawn(move || {
                let mut text = String::new();
                // Ends with the child; whatever could not be read is missing in a message at most.
                let _ = err.read_to_string(&mut text);
                text
            })
        });
        let mut node = ChildNode { child, url: String::new(), talk };
        let mut line = String::new();
        let read = out.map(|out| BufReader::new(out).read_line(&mut line));
        match (read, line.trim_end().strip_prefix(READY)) {
            (Some(Ok(_)), Some(url)) => {
                node.url = url.to_owned();
                Ok(node)
            }
            _ => Err(went_wrong(format!("the node did not get ready; it said: {}", node.end().1))),
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL. Returns the signal that ended the process, as the system reports it.
    ///
    /// # Errors
    /// The process cannot be signalled or waited for.
    pub fn kill(mut self) -> Result<Option<i32>> {
        let failed = |error| went_wrong("the node cannot be killed").because(anyhow::Error::from(error));
        self.child.kill().map_err(failed)?;
        let status = self.child.wait().map_err(failed)?;
        Ok(status.signal())
    }

    /// SIGTERM. Returns the exit code, and what the node said on standard error.
    ///
    /// # Errors
    /// The process cannot be signalled or waited for.
    pub fn stop(mut self) -> Result<(Option<i32>, String)> {
        let failed = || went_wrong("the node cannot be stopped");
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or_else(failed)?;
        kill_process(pid, Signal::TERM).map_err(|errno| failed().because(std::io::Error::from(errno)))?;
        let status = self.child.wait().map_err(|error| failed().because(error))?;
        Ok((status.code(), self.end().1))
    }

    /// The end of the process and its last words.
    fn end(&mut self) -> (Option<i32>, String) {
        let _ = self.child.kill();
        let code = self.child.wait().ok().and_then(|status| status.code());
        let talk = self.talk.take().and_then(|talk| talk.join().ok()).unwrap_or_default();
        (code, talk)
    }
}

impl Drop for ChildNode {
    fn drop(&mut self) {
        self.end();
    }
}
