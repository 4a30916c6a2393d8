//! What readers cost a node: many that wait for the next event, and some that stopped reading.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::connection::{Answer, Connection, sequences};
use crate::process::NodeProcess;

/// Executions that the idle subscribers are spread over.
const STREAMS: usize = 100;
/// One event, then silence: a subscriber is idle after it.
const SILENT: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}],"extensions":{"mock":{"stall_after":1}}}"#;
/// What a paused reader does not read: 2 MiB of text in 1000 events.
const LONG: &str = r#"{"ability":"text-generation","input":[{"type":"text","text":"hi"}],"extensions":{"mock":{"chunks":1000,"chunk_bytes":2048}}}"#;
/// A connection that takes in little holds back the node's writes soon.
const SMALL_BUFFER_BYTES: u32 = 4096;
/// The node's memory counts as settled when two looks so far apart agree within [`SETTLED_BYTES`].
const LOOK: Duration = Duration::from_millis(500);
const SETTLED_BYTES: u64 = 256 << 10;
const LOOKS_MAX: usize = 60;

/// Growth of the node's resident set from no subscriber to `count`.
pub async fn subscribers(dir: &Path, count: usize, as_json: bool) -> Result<()> {
    let mut node = NodeProcess::start("journal", dir)?;
    let mut ids = Vec::new();
    let mut control = Connection::open(node.address).await?;
    for _ in 0..STREAMS {
        ids.push(submit(&mut control, SILENT, node.address).await?);
    }
    // Whatever a first subscriber makes the node load once is not a subscriber's.
    let mut readers = vec![subscribe(node.address, &ids[0]).await?];
    let before = settled(&node).await?;
    for number in 0..count {
        readers.push(subscribe(node.address, &ids[number % STREAMS]).await?);
    }
    let after = settled(&node).await?;
    let each = after.saturating_sub(before) / count as u64;
    print(
        as_json,
        &json!({
            "subscribers": count,
            "resident_before_bytes": before,
            "resident_after_bytes": after,
            "bytes_each": each,
        }),
    );
    drop(readers);
    node.stop()
}

/// Growth of the node's resident set by readers that stopped after the head; afterwards each reads on to the end.
pub async fn paused(dir: &Path, count: usize, as_json: bool) -> Result<()> {
    let mut node = NodeProcess::start("journal", dir)?;
    let mut control = Connection::open(node.address).await?;
    let id = submit(&mut control, LONG, node.address).await?;
    // One reader to the end: the execution is over, and what all readers share is in memory.
    let whole = read_on(&mut follow(node.address, &id, None).await?).await?;
    let before = settled(&node).await?;
    let mut readers = Vec::new();
    for _ in 0..count {
        readers.push(follow(node.address, &id, Some(SMALL_BUFFER_BYTES)).await?);
    }
    let after = settled(&node).await?;
    let each = after.saturating_sub(before) / count as u64;
    for reader in &mut readers {
        if read_on(reader).await? != whole {
            bail!("a reader that paused got another stream than one that did not");
        }
    }
    print(
        as_json,
        &json!({
            "paused_readers": count,
            "stream_bytes": whole.len(),
            "events": sequences(&whole).count(),
            "resident_before_bytes": before,
            "resident_after_bytes": after,
            "bytes_each": each,
            "lost": 0,
        }),
    );
    node.stop()
}

fn print(as_json: bool, result: &Value) {
    match (as_json, result.as_object()) {
        (false, Some(members)) => members.iter().for_each(|(name, value)| println!("{name:<24} {value}")),
        _ => println!("{result}"),
    }
}

async fn submit(control: &mut Connection, body: &str, address: SocketAddr) -> Result<String> {
    let request = format!(
        "POST /v1/executions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: \
         {}\r\n\r\n{body}",
        body.len()
    );
    let Answer { status, body, .. } = control.ask(request.as_bytes()).await?;
    let answer: Value = serde_json::from_slice(&body)?;
    let id = answer["execution_id"].as_str().with_context(|| format!("status {status}: {answer}"))?;
    Ok(id.to_owned())
}

/// Asks for an execution's events and reads no further than the answer's head.
async fn follow(address: SocketAddr, id: &str, buffer_bytes: Option<u32>) -> Result<Connection> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    let mut connection = Connection::over(socket.connect(address).await.context("no connection")?)?;
    let request = format!("GET /v1/executions/{id}/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    connection.send(request.as_bytes()).await?;
    let (status, _) = connection.head().await?;
    if status != 200 {
        bail!("status {status}");
    }
    Ok(connection)
}

/// A subscriber that has seen everything there is: two events of the run and the delta.
async fn subscribe(address: SocketAddr, id: &str) -> Result<Connection> {
    let mut connection = follow(address, id, None).await?;
    let mut seen = Vec::new();
    while !seen.windows(12).any(|window| window == b"output.delta") {
        if !connection.chunk(&mut seen).await? {
            bail!("a stream ended that should have waited");
        }
    }
    Ok(connection)
}

/// The rest of a stream. It must be whole: every event once, in order.
async fn read_on(connection: &mut Connection) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    while connection.chunk(&mut body).await? {}
    let count = sequences(&body).count() as u64;
    if count == 0 || !sequences(&body).eq(1..=count) {
        bail!("events are missing, or stand twice");
    }
    Ok(body)
}

async fn settled(node: &NodeProcess) -> Result<u64> {
    let mut before = node.resident_bytes()?;
    for _ in 0..LOOKS_MAX {
        tokio::time::sleep(LOOK).await;
        let now = node.resident_bytes()?;
        if now.abs_diff(before) <= SETTLED_BYTES {
            return Ok(now);
        }
        before = now;
    }
    bail!("the node's memory does not settle")
}
