//! The server that plays scripts and remembers what it was asked.
//!
//! One request per connection: the n-th request plays the n-th script, requests beyond the last one repeat it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::script::{Script, Step};

/// Largest request the server takes, in bytes; far above what a test sends.
const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// One request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Recorded {
    /// Whether `secret` stands in the header of that (lower-case) name, once, and nowhere else in the request.
    pub fn holds_only_in(&self, name: &str, secret: &str) -> bool {
        let count =
            |bytes: &[u8]| bytes.windows(secret.len()).filter(|found| *found == secret.as_bytes()).count();
        let headers =
            self.headers.iter().map(|(name, value)| count(name.as_bytes()) + count(value.as_bytes()));
        let everywhere = headers.sum::<usize>() + count(self.path.as_bytes()) + count(&self.body);
        everywhere == 1 && self.header(name).is_some_and(|value| count(value.as_bytes()) == 1)
    }

    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    connections: usize,
    requests: usize,
    /// Connections that the client closed, in order or not, before the script was done with them.
    abandoned: usize,
}

#[derive(Debug)]
struct Shared {
    scripts: Vec<Script>,
    requests: Mutex<Vec<Recorded>>,
    progress: watch::Sender<Progress>,
}

/// Runs on the test's own runtime until dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl ScriptedServer {
    /// Listens on a free loopback port. At least one script.
    pub async fn start(scripts: Vec<Script>) -> std::io::Result<ScriptedServer> {
        assert!(!scripts.is_empty(), "a scripted server needs a script");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let progress = watch::Sender::new(Progress::default());
        let shared = Arc::new(Shared { scripts, requests: Mutex::default(), progress });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(ScriptedServer { address, shared, accepting })
    }

    /// The address of a port that nobody listens on, and nobody else is given: a connection has it.
    pub async fn absent() -> std::io::Result<ScriptedServer> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let taken = TcpStream::connect(listener.local_addr()?).await?;
        let address = taken.local_addr()?;
        let (requests, progress) = (Mutex::default(), watch::Sender::new(Progress::default()));
        let shared = Arc::new(Shared { scripts: Vec::new(), requests, progress });
        let held = async move {
            std::future::pending::<()>().await;
            drop((listener, taken));
        };
        Ok(ScriptedServer { address, shared, accepting: tokio::spawn(held).abort_handle() })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT<path>`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Complete requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connections that were ever opened to it.
    pub fn connections(&self) -> usize {
        self.shared.progress.borrow().connections
    }

    /// Waits until that many complete requests arrived.
    pub async fn requested(&self, count: usize) {
        self.reached(|progress| progress.requests >= count).await;
    }

    /// Waits until the client closed that many connections before their script was done.
    pub async fn abandoned(&self, count: usize) {
        self.reached(|progress| progress.abandoned >= count).await;
    }

    async fn reached(&self, condition: impl Fn(&Progress) -> bool) {
        let mut progress = self.shared.progress.subscribe();
        let reached = progress.wait_for(|progress| condition(progress)).await;
        // The sender lives in `self.shared`.
        assert!(reached.is_ok(), "the scripted server is gone");
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        shared.progress.send_modify(|progress| progress.connections += 1);
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    // A connection that ends before a whole request (a TLS greeting, a probe) plays nothing.
    let Some(request) = read_request(&mut stream).await else { return };
    let number = {
        let mut requests = shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(request);
        requests.len() - 1
    };
    shared.progress.send_modify(|progress| progress.requests += 1);
    let script = &shared.scripts[number.min(shared.scripts.len() - 1)];
    if play(&mut stream, script).await.is_err() {
        shared.progress.send_modify(|progress| progress.abandoned += 1);
    }
}

/// The client closed before the script was done.
struct Abandoned;

async fn play(stream: &mut TcpStream, script: &Script) -> Result<(), Abandoned> {
    stream.set_nodelay(true).map_err(|_| Abandoned)?;
    for step in &script.0 {
        match step {
            Step::Send(bytes) => {
                stream.write_all(bytes).await.map_err(|_| Abandoned)?;
                stream.flush().await.map_err(|_| Abandoned)?;
            }
            Step::Wait(gate) => tokio::select! {
                () = gate.passed() => {}
                () = closed(stream) => return Err(Abandoned),
            },
            Step::Stall => {
                closed(stream).await;
                return Err(Abandoned);
            }
            Step::Reset => {
                stream.set_zero_linger().map_err(|_| Abandoned)?;
                return Ok(());
            }
        }
    }
    stream.shutdown().await.map_err(|_| Abandoned)
}

/// Returns when the client has closed; whatever else it sends is thrown away.
async fn closed(stream: &mut TcpStream) {
    let mut rest = [0; 1024];
    while matches!(stream.read(&mut rest).await, Ok(1..)) {}
}

async fn read_request(stream: &mut TcpStream) -> Option<Recorded> {
    let mut bytes = Vec::new();
    let head_length = loop {
        if let Some(position) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break position + 4;
        }
        read_more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8(bytes[..head_length].to_vec()).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Some(0), |(_, value)| value.parse::<usize>().ok())?;
    while bytes.len() < head_length + length {
        read_more(stream, &mut bytes).await?;
    }
    let body = bytes[head_length..head_length + length].to_vec();
    Some(Recorded { method, path, headers, body })
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 16 * 1024];
    match stream.read(&mut piece).await {
        Ok(read @ 1..) if bytes.len() + read <= REQUEST_BYTES_MAX => {
            bytes.extend_from_slice(&piece[..read]);
            Some(())
        }
        _ => None,
    }
}
