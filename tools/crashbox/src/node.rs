//! The real binary as a child process: started, awaited, killed.
//!
//! Owns the process and what it printed. It never touches the data directory: everything a node leaves there is
//! the node's own doing.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// What the first line of a node that serves begins with.
const LISTENING: &str = "sealog listening on http://";

/// Where a node lives, and how it is started.
#[derive(Debug, Clone)]
pub struct Home {
    /// The binary under test.
    pub binary: PathBuf,
    /// Its journal.
    pub data: PathBuf,
    pub key_file: PathBuf,
    pub config: Option<PathBuf>,
    /// Everything the node says on standard error, of all its lives.
    pub log: PathBuf,
    /// Set besides the environment of this process.
    pub environment: Vec<(String, String)>,
    /// A program that runs the binary, with its arguments; it must replace itself by it or stay out of the way.
    pub wrapper: Vec<String>,
    /// More arguments of `serve`.
    pub arguments: Vec<String>,
}

impl Home {
    /// A node that lives in `dir`, with its key, log and journal there.
    pub fn inside(dir: &Path, binary: &Path) -> Home {
        Home {
            binary: binary.to_owned(),
            data: dir.join("data"),
            key_file: dir.join("key"),
            config: None,
            log: dir.join("node.log"),
            // A node that looked for a home of its own would leave files outside of `dir`.
            environment: ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"]
                .map(|name| (name.to_owned(), dir.display().to_string()))
                .to_vec(),
            wrapper: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Starts a node and does not wait.
    ///
    /// # Errors
    /// The binary or the log cannot be opened.
    pub fn start(&self) -> Result<Starting> {
        let mut command = self.wrapped();
        command.arg("serve").arg("--data-dir").arg(&self.data).arg("--key-file").arg(&self.key_file);
        command.args(["--listen", "127.0.0.1:0"]).args(&self.arguments);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.log()?);
        let mut child =
            command.spawn().with_context(|| format!("{} cannot be started", self.binary.display()))?;
        let (send, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            // Ends with the node: the pipe has no other writer.
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Starting { process: Process { child }, lines })
    }

    /// A verb of the binary on this journal, its streams to be captured. The directory and the key file are given
    /// already: `journal <verb> DIR --key-file FILE`.
    pub fn journal(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["journal", verb]).arg(&self.data).arg("--key-file").arg(&self.key_file);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    fn wrapped(&self) -> Command {
        let mut words = self.wrapper.iter();
        let mut command = match words.next() {
            Some(program) => {
                let mut command = Command::new(program);
                command.args(words).arg(&self.binary);
                command
            }
            None => Command::new(&self.binary),
        };
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn log(&self) -> Result<File> {
        let open = OpenOptions::new().create(true).append(true).open(&self.log);
        open.with_context(|| format!("{} cannot be written", self.log.display()))
    }
}

/// A child that is killed when it is forgotten.
#[derive(Debug)]
struct Process {
    child: Child,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Either may fail only because it has ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// A node that may not serve yet.
#[derive(Debug)]
pub struct Starting {
    process: Process,
    lines: Receiver<String>,
}

impl Starting {
    /// Waits for the line that says where it listens.
    ///
    /// # Errors
    /// It ended first, said something else, or was silent for longer than `patience`.
    pub fn ready(mut self, patience: Duration) -> Result<Node> {
        let line = match self.lines.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the node ended before it served: {}", self.process.child.wait()?)
            }
            Err(RecvTimeoutError::Timeout) => bail!("the node did not serve within {patience:?}"),
        };
        let address = line.strip_prefix(LISTENING).and_then(|address| address.parse().ok());
        let address = address.with_context(|| format!("the node's first line was {line:?}"))?;
        Ok(Node { process: self.process, address, lines: self.lines })
    }

    /// Waits for a start that is expected to fail.
    ///
    /// # Errors
    /// It served instead.
    pub fn refused(mut self) -> Result<ExitStatus> {
        match self.lines.recv() {
            Ok(line) => bail!("the node served: {line:?}"),
            Err(_closed) => Ok(self.process.child.wait()?),
        }
    }

    /// SIGKILL, and waits until it is gone.
    ///
    /// # Errors
    /// The host refuses.
    pub fn kill(mut self) -> Result<()> {
        self.process.child.kill()?;
        self.process.child.wait()?;
        Ok(())
    }
}

/// A node that serves.
#[derive(Debug)]
pub struct Node {
    process: Process,
    address: SocketAddr,
    lines: Receiver<String>,
}

impl Node {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.child.id()
    }

    /// SIGKILL, and waits until it is gone.
    ///
    /// # Errors
    /// It had ended by itself, or the host refuses.
    pub fn kill(mut self) -> Result<()> {
        if let Some(status) = self.process.child.try_wait()? {
            bail!("the node had ended by itself: {status}");
        }
        self.process.child.kill()?;
        self.process.child.wait()?;
        Ok(())
    }

    /// SIGTERM, and SIGKILL so much later. False when it had ended in order by then.
    ///
    /// # Errors
    /// It ended by itself in another way, or the host refuses.
    pub fn stop_and_kill(mut self, after: Duration) -> Result<bool> {
        self.signal(Signal::TERM)?;
        std::thread::sleep(after);
        match self.process.child.try_wait()? {
            Some(status) if status.success() => return Ok(false),
            Some(status) => bail!("the node had ended by itself: {status}"),
            None => self.process.child.kill()?,
        }
        // It may have come to its end in the last moment.
        Ok(self.process.child.wait()?.code().is_none())
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The host refuses.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw).context("a child has an id")?;
        Ok(kill_process(id, signal)?)
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// It does not within `patience`.
    pub fn ended(mut self, patience: Duration) -> Result<ExitStatus> {
        loop {
            match self.lines.recv_timeout(patience) {
                Ok(_line) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(self.process.child.wait()?),
                Err(RecvTimeoutError::Timeout) => bail!("the node did not end within {patience:?}"),
            }
        }
    }
}
