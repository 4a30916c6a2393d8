//! Closed loops: each client has one connection, asks for one execution, reads it to its end, and asks for the next.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::connection::{Connection, sequences};
use crate::process::NodeProcess;

/// The mock provider's stock run: created, started, three deltas, usage, completed, as one stream.
const EVENTS: u64 = 7;
const EXECUTION: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}]}"#;

/// Something that runs executions over HTTP.
#[derive(Debug)]
pub struct System {
    pub name: &'static str,
    target: Arc<Target>,
    node: Option<NodeProcess>,
    connections: Vec<Connection>,
}

/// What the clients of a system ask.
#[derive(Debug)]
struct Target {
    address: SocketAddr,
    /// A node streams its events; Restate answers once, at the end.
    streams: bool,
    /// Of the next request: keys must not repeat.
    number: AtomicU64,
}

/// Slices of one system with so many clients.
#[derive(Debug)]
pub struct Series {
    pub system: usize,
    pub clients: usize,
    pub slices: Vec<Slice>,
}

impl Series {
    pub fn new(system: usize, clients: usize) -> Series {
        Series { system, clients, slices: Vec::new() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub seconds: f64,
    /// CPU time of the node; 0 where it is not ours.
    pub node_cpu_seconds: f64,
    /// From the request to the first event, in microseconds.
    pub first_us: Vec<f32>,
    /// From the request to the end of the answer.
    pub whole_us: Vec<f32>,
}

impl Slice {
    pub fn per_second(&self) -> f64 {
        self.whole_us.len() as f64 / self.seconds
    }
}

impl Target {
    fn new(address: SocketAddr, streams: bool) -> Arc<Target> {
        Arc::new(Target { address, streams, number: AtomicU64::new(1) })
    }

    fn request(&self) -> Vec<u8> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let (path, accept, body) = match self.streams {
            true => ("/v1/executions", "text/event-stream", EXECUTION),
            false => ("/bench/run", "application/json", "\"hi\""),
        };
        format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\naccept: {accept}\r\ncontent-type: application/json\r\n\
             idempotency-key: bench-{}-{number}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            std::process::id(),
            body.len()
        )
        .into_bytes()
    }
}

impl System {
    pub fn node(name: &'static str, dir: &Path) -> Result<System> {
        let node = NodeProcess::start(name, dir)?;
        let target = Target::new(node.address, true);
        Ok(System { name, target, node: Some(node), connections: Vec::new() })
    }

    /// A running Restate server with the service of `benches/http/restate`; the address is that of its ingress.
    pub fn restate(address: SocketAddr) -> System {
        System { name: "restate", target: Target::new(address, false), node: None, connections: Vec::new() }
    }

    pub async fn slice(&mut self, clients: usize, length: Duration) -> Result<Slice> {
        while self.connections.len() < clients {
            self.connections.push(Connection::open(self.target.address).await?);
        }
        let cpu = |node: &Option<NodeProcess>| node.as_ref().map_or(Ok(0.0), NodeProcess::cpu_seconds);
        let cpu_before = cpu(&self.node)?;
        let start = Instant::now();
        let busy = self.connections.drain(..clients);
        let tasks: Vec<_> = busy
            .map(|connection| tokio::spawn(client(connection, Arc::clone(&self.target), start + length)))
            .collect();
        let mut slice = Slice::default();
        for task in tasks {
            let (connection, first_us, whole_us) = task.await.context("a client ended")??;
            self.connections.push(connection);
            slice.first_us.extend(first_us);
            slice.whole_us.extend(whole_us);
        }
        slice.seconds = start.elapsed().as_secs_f64();
        slice.node_cpu_seconds = cpu(&self.node)? - cpu_before;
        Ok(slice)
    }

    pub fn stop(&mut self) -> Result<()> {
        self.connections.clear();
        self.node.as_mut().map_or(Ok(()), NodeProcess::stop)
    }
}

/// Asks until the time is over. Gives the connection back with what it measured.
async fn client(
    mut connection: Connection,
    target: Arc<Target>,
    until: Instant,
) -> Result<(Connection, Vec<f32>, Vec<f32>)> {
    let (mut first_us, mut whole_us) = (Vec::new(), Vec::new());
    while Instant::now() < until {
        let request = target.request();
        let start = Instant::now();
        let answer = connection.ask(&request).await?;
        whole_us.push(start.elapsed().as_secs_f32() * 1e6);
        first_us.push(answer.first.duration_since(start).as_secs_f32() * 1e6);
        let whole = !target.streams || sequences(&answer.body).eq(1..=EVENTS);
        if answer.status != 200 || !whole {
            bail!("status {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
    }
    Ok((connection, first_us, whole_us))
}
