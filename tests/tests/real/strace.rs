//! The node's system calls: traced from the start, or made to fail while it runs.
//!
//! Owns how `strace` is started and read. It must be the only place that knows the form of its lines.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crashbox::node::Node;
use rustix::process::{Pid, Signal, kill_process};
use sealog_tests::workbench::{PATIENCE, Workbench};

/// Everything that says when something became durable, and when something left or came.
const TRACED: &str =
    "trace=pwrite64,pwritev2,fdatasync,fsync,write,writev,sendto,sendmsg,read,recvfrom,connect";

/// What happened, in the order of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A frame of a published segment is durable: the call that makes it so has returned.
    Durable,
    /// These bytes begin to leave, from the local to the remote port, as `strace` prints them.
    Leaves { from: u16, to: u16, text: String },
    /// These bytes have come.
    Comes { at: u16, text: String },
    /// A connection to this port begins.
    Connects { to: u16 },
}

/// A node that is traced from its first call.
#[derive(Debug)]
pub struct Traced {
    pub node: Node,
    file: PathBuf,
}

impl Traced {
    /// Starts it; `changes` are more expressions for `strace -e`.
    pub fn start(bench: &mut Workbench, changes: &[&str]) -> Traced {
        let file = bench.dir().join("trace");
        let mut wrapper: Vec<String> =
            ["strace", "-f", "-yy", "-s", "20000", "-e", TRACED].map(str::to_owned).to_vec();
        for change in changes {
            wrapper.extend(["-e".to_owned(), (*change).to_owned()]);
        }
        wrapper.extend(["-o".to_owned(), file.display().to_string()]);
        bench.home.wrapper = wrapper;
        let node = bench.start();
        Traced { node, file }
    }

    /// Stops the node in order and reads the trace.
    pub fn finish(self) -> Vec<Step> {
        let tracer = self.node.id();
        let children = read(Path::new(&format!("/proc/{tracer}/task/{tracer}/children")));
        let node: i32 = children.trim().parse().expect("strace has one child");
        kill_process(Pid::from_raw(node).expect("a process id"), Signal::TERM).expect("a signal");
        // strace ends behind its last line.
        assert!(self.node.ended(PATIENCE).expect("an end").success());
        steps(&read(&self.file))
    }
}

#[expect(clippy::disallowed_methods, reason = "reads a trace, no journal")]
fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned()
}

/// Makes system calls of a running node fail or hang, from now until it is dropped.
#[derive(Debug)]
pub struct Failing {
    tracer: Child,
}

impl Failing {
    /// `calls` such as `fdatasync,pwritev2`, `error` such as `EIO`.
    pub fn attach(node: &Node, calls: &str, error: &str) -> Failing {
        Failing::inject(node, calls, &format!("error={error}"))
    }

    /// Each of the calls begins so much later.
    pub fn slow(node: &Node, calls: &str, delay_us: u32) -> Failing {
        Failing::inject(node, calls, &format!("delay_enter={delay_us}"))
    }

    fn inject(node: &Node, calls: &str, what: &str) -> Failing {
        let mut tracer = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e", &format!("trace={calls}")])
            .args(["-e", &format!("inject={calls}:{what}")])
            .args(["-p", &node.id().to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .expect("strace");
        let mut said = BufReader::new(tracer.stderr.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        assert!(line.contains("attached"), "{line}");
        // Threads that come later are told about on the same pipe, which must not fill up.
        std::thread::spawn(move || said.lines().map_while(Result::ok).for_each(drop));
        Failing { tracer }
    }
}

/// The command under `strace`, which fails every one of these calls from its beginning on.
pub fn from_the_start(command: &Command, calls: &str, error: &str) -> Command {
    injected(command, &[&format!("{calls}:error={error}")])
}

/// The command under `strace`, with all of this: calls, what becomes of them and of which of them, as in
/// `fsync,fdatasync:error=EIO:when=3`. Each call is counted by its own name.
pub fn injected(command: &Command, what: &[&str]) -> Command {
    let calls: Vec<&str> = what.iter().filter_map(|what| what.split(':').next()).collect();
    let mut traced = Command::new("strace");
    traced.args(["-f", "-o", "/dev/null", "-e", &format!("trace={}", calls.join(","))]);
    for what in what {
        traced.args(["-e", &format!("inject={what}")]);
    }
    if let Some(folder) = command.get_current_dir() {
        traced.current_dir(folder);
    }
    traced.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    traced
}

impl Drop for Failing {
    fn drop(&mut self) {
        let tracer = i32::try_from(self.tracer.id()).ok().and_then(Pid::from_raw).expect("a process id");
        // It detaches and ends; the node goes on with its own calls.
        kill_process(tracer, Signal::TERM).expect("a signal");
        self.tracer.wait().expect("an end");
    }
}

/// Reads a trace. A call that was interrupted by another thread's line is put together again: what leaves counts from
/// its beginning, what becomes durable counts from its end.
pub fn steps(trace: &str) -> Vec<Step> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut steps = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(beginning) = call.strip_suffix(" <unfinished ...>") {
            steps.extend(on_begin(beginning));
            begun.insert(thread, beginning);
        } else if let Some((_, rest)) =
            call.strip_prefix("<... ").and_then(|call| call.split_once(" resumed>"))
        {
            let beginning = begun.remove(thread).unwrap_or_default();
            steps.extend(on_end(&format!("{beginning}{rest}")));
        } else {
            steps.extend(on_begin(call));
            steps.extend(on_end(call));
        }
    }
    steps
}

fn on_begin(call: &str) -> Option<Step> {
    let (name, rest) = call.split_once('(')?;
    match name {
        "connect" => Some(Step::Connects { to: between(rest, "htons(", ")")?.parse().ok()? }),
        "write" | "writev" | "sendto" | "sendmsg" => {
            let (from, to) = ports(rest)?;
            Some(Step::Leaves { from, to, text: rest.to_owned() })
        }
        _ => None,
    }
}

fn on_end(call: &str) -> Option<Step> {
    let (name, rest) = call.split_once('(')?;
    let result: i64 = rest.rsplit_once(" = ")?.1.split(' ').next()?.parse().ok()?;
    let in_segment = rest.split_once(">").is_some_and(|(file, _)| file.ends_with(".seg"));
    match name {
        "pwritev2" if in_segment && rest.contains("RWF_DSYNC") && result > 0 => Some(Step::Durable),
        "fdatasync" if in_segment && result == 0 => Some(Step::Durable),
        "read" | "recvfrom" => {
            let (at, _) = ports(rest)?;
            Some(Step::Comes { at, text: rest.to_owned() })
        }
        _ => None,
    }
}

/// Local and remote port of the call's first argument, if that is a TCP connection.
fn ports(rest: &str) -> Option<(u16, u16)> {
    let (_, ends) = rest.split_once(',')?.0.split_once("<TCP:[")?;
    let (from, to) = ends.split_once("->")?;
    let port = |end: &str| end.trim_end_matches("]>").rsplit_once(':')?.1.parse().ok();
    Some((port(from)?, port(to)?))
}

fn between<'a>(text: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(behind).map(|(inner, _)| inner)
}

/// The sequences of the events in bytes as `strace` prints them.
pub fn sequences(text: &str) -> Vec<u64> {
    let numbers = text.split("id: ").skip(1).filter_map(|rest| rest.split_once("\\nevent: "));
    numbers.filter_map(|(number, _)| number.parse().ok()).collect()
}

#[test]
fn a_trace_is_read_in_the_order_of_what_it_proves() {
    let trace = "7 recvfrom(9<TCP:[127.0.0.1:40->127.0.0.1:50]>, \"POST /v1\", 99, 0, NULL, NULL) = 8\n\
        8 pwritev2(5</d/segments/1.seg>, [{iov_base=\"\", iov_len=9}], 1, 0, RWF_DSYNC <unfinished ...>\n\
        7 writev(9<TCP:[127.0.0.1:40->127.0.0.1:50]>, [{iov_base=\"id: 3\\nevent: x\"}], 1 <unfinished ...>\n\
        8 <... pwritev2 resumed>) = 9\n\
        7 <... writev resumed>) = 20\n\
        8 pwritev2(5</d/segments/1.seg>, [{iov_base=\"\", iov_len=9}], 1, 0, RWF_DSYNC) = -1 EIO (Input/output error)\n\
        8 fdatasync(5</d/segments/1.seg>) = 0\n\
        8 fdatasync(6</d/head>) = 0\n\
        7 connect(11<TCP:[99]>, {sa_family=AF_INET, sin_port=htons(60), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = -1 EINPROGRESS (x)\n";
    let steps = steps(trace);
    let Step::Comes { at: 40, .. } = &steps[0] else { panic!("{steps:?}") };
    let Step::Leaves { from: 40, to: 50, text } = &steps[1] else { panic!("{steps:?}") };
    assert_eq!(sequences(text), [3]);
    assert_eq!(steps[2..], [Step::Durable, Step::Durable, Step::Connects { to: 60 }]);
}
