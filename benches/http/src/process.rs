//! The node as a process: started, looked at from outside, stopped.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As the node does: the soft limit on open files becomes the hard one.
pub fn raise_descriptor_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .context("the limit on open files was not raised")
}

pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

/// A running node. It ends when its standard input does, so that it never outlives this process.
#[derive(Debug)]
pub struct NodeProcess {
    child: Child,
    input: Option<ChildStdin>,
    pub address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl NodeProcess {
    /// `store` is `journal`, in a folder of its own below `dir`, or `memory`.
    pub fn start(store: &str, dir: &Path) -> Result<NodeProcess> {
        let folder = tempfile::Builder::new().prefix("http-bench-").tempdir_in(dir)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["node", store])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the node was not started")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("its output was asked for")?;
        let mut line = String::new();
        BufReader::new(output.take(100)).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("the node did not start: {line}"))?;
        Ok(NodeProcess { child, input, address, _folder: folder })
    }

    /// Bytes of the node that are in memory.
    pub fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024)
    }

    /// CPU time of all the node's threads that live, in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let mut nanoseconds = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end between the two looks.
            let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
            let first = text.split(' ').next().unwrap_or_default();
            nanoseconds += first.parse::<u64>().context("schedstat begins with a number")?;
        }
        Ok(nanoseconds as f64 / 1e9)
    }

    pub fn stop(&mut self) -> Result<()> {
        self.input = None;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the node ended with {status}");
        }
        Ok(())
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.input = None;
        // Whoever did not stop it is on the way out with an error.
        let _ = self.child.wait();
    }
}
