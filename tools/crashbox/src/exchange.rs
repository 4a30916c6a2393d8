//! The exchanges of the protocol, each told to the history before anything else is done with it.
//!
//! Owns how an answer is read. It never retries, and it never decides whether a broken transfer was expected.

use serde_json::Value;

use crate::finding::{Class, Stop, Wrong};
use crate::frame::{Frame, Frames, Next, is_terminal};
use crate::history::Record;
use crate::http::{Client, Opened, Reply, Request};

const SUBMIT: &str = "/v1/executions";

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    New,
    Replay,
    /// Too much work at once.
    Refused,
}

/// How long to read an event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// To its end.
    End,
    /// So many frames, then leave.
    Frames(u64),
}

/// Submits and takes the JSON answer.
///
/// # Errors
/// The transport, or an answer that is neither 202, 200 nor 503.
pub fn submit(client: &mut Client, record: &Record) -> Result<Submitted, Stop> {
    let reply = send(client, record, &record.work.body, None)?;
    match reply.status {
        200 | 202 => {
            record.answer(reply.status, &json(&reply)?)?;
            Ok(if reply.status == 202 { Submitted::New } else { Submitted::Replay })
        }
        503 => {
            record.refuse();
            Ok(Submitted::Refused)
        }
        _ => Err(unexpected("a submission", &reply).into()),
    }
}

/// Sends a body under the record's key and returns whatever comes back.
///
/// # Errors
/// The transport.
pub fn send(
    client: &mut Client,
    record: &Record,
    body: &[u8],
    accept: Option<&str>,
) -> std::io::Result<Reply> {
    let headers = headers(record, accept);
    client.ask(&Request::post(SUBMIT, &headers, body))
}

fn headers<'a>(record: &'a Record, accept: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(record.work.key.as_deref().map(|key| ("idempotency-key", key)));
    headers.extend(accept.map(|accept| ("accept", accept)));
    headers
}

/// Submits and reads the events of the answer; false when the node refused.
///
/// # Errors
/// As [`submit`] and [`follow`].
pub fn submit_streaming(client: &mut Client, record: &Record, until: Until) -> Result<bool, Stop> {
    let headers = headers(record, Some("text/event-stream"));
    let opened = client.open(&Request::post(SUBMIT, &headers, &record.work.body))?;
    if opened.status == 503 {
        record.refuse();
        return Ok(false);
    }
    if opened.status == 200 {
        record.acknowledge();
    }
    read_stream(client, record, opened, 0, until)?;
    Ok(true)
}

/// Reads the events behind `after`. Returns the frames, which are in the history already.
///
/// # Errors
/// The transport, a stream that ends without a terminal event, or frames that contradict the history.
pub fn follow(
    client: &mut Client,
    record: &Record,
    id: &str,
    after: u64,
    until: Until,
) -> Result<Vec<Frame>, Stop> {
    // Both ways to give a cursor are used; which one, the cursor says.
    let (query, cursor) = (format!("/v1/executions/{id}/events?after={after}"), after.to_string());
    let header = [("last-event-id", cursor.as_str())];
    let path = format!("/v1/executions/{id}/events");
    let request = if after.is_multiple_of(2) {
        Request::get(&query)
    } else {
        Request { headers: &header, ..Request::get(&path) }
    };
    let opened = client.open(&request)?;
    read_stream(client, record, opened, after, until)
}

fn read_stream(
    client: &mut Client,
    record: &Record,
    opened: Opened,
    after: u64,
    until: Until,
) -> Result<Vec<Frame>, Stop> {
    let Opened { status, headers, body } = opened;
    let kind = headers.get("content-type").unwrap_or_default();
    if status != 200 || !kind.starts_with("text/event-stream") {
        let what = format!("events of {} were answered {status} {kind}", record.work.name);
        let class = if status == 404 { Class::Lost } else { Class::Disagrees };
        return Err(Wrong::new(class, what).into());
    }
    let mut stream = Frames::new(body);
    let mut frames: Vec<Frame> = Vec::new();
    let mut ended = false;
    loop {
        let next = stream.read_next()?.map_err(|what| Wrong::new(Class::Disagrees, what))?;
        let frame = match next {
            Next::Frame(frame) => frame,
            Next::End => break,
        };
        record.deliver(&frame)?;
        let expected = frames.last().map_or(after, |last| last.sequence) + 1;
        if frame.sequence != expected {
            let what = format!("{} sent {} where {expected} was due", record.work.name, frame.sequence);
            return Err(Wrong::new(Class::Lost, what).into());
        }
        ended = is_terminal(&frame.event());
        frames.push(frame);
        if !ended && until == Until::Frames(frames.len() as u64) {
            return Ok(frames);
        }
    }
    // A cursor at or behind the end gives an empty stream; everything else ends with the terminal event.
    let behind_the_end = frames.is_empty() && after > 0;
    if !ended && !behind_the_end {
        let what = format!("the stream of {} ended behind {} frames", record.work.name, frames.len());
        return Err(Wrong::new(Class::Stuck, what).into());
    }
    client.rest(stream.into_body());
    Ok(frames)
}

/// The snapshot, told to the history.
///
/// # Errors
/// The transport, or an answer other than 200.
pub fn snapshot(client: &mut Client, record: &Record, id: &str) -> Result<Value, Stop> {
    let reply = client.ask(&Request::get(&format!("/v1/executions/{id}")))?;
    if reply.status == 404 {
        return Err(Wrong::new(Class::Lost, format!("{id} was acknowledged and is unknown")).into());
    }
    if reply.status != 200 {
        return Err(unexpected("a snapshot", &reply).into());
    }
    let snapshot = json(&reply)?;
    record.show(snapshot["last_sequence"].as_u64().unwrap_or(0));
    Ok(snapshot)
}

/// `/result` as its status and body.
///
/// # Errors
/// The transport, or a body that is not JSON.
pub fn result(client: &mut Client, id: &str) -> Result<(u16, Value), Stop> {
    let reply = client.ask(&Request::get(&format!("/v1/executions/{id}/result")))?;
    Ok((reply.status, json(&reply)?))
}

/// Asks for a cancellation; whether it was taken up.
///
/// # Errors
/// The transport, or an answer other than 202 and 404.
pub fn cancel(client: &mut Client, record: &Record, id: &str) -> Result<bool, Stop> {
    record.ask_cancel();
    let path = format!("/v1/executions/{id}/cancel");
    let reply = client.ask(&Request::post(&path, &[], b""))?;
    match reply.status {
        202 => Ok(true),
        404 => Ok(false),
        _ => Err(unexpected("a cancel", &reply).into()),
    }
}

fn json(reply: &Reply) -> Result<Value, Wrong> {
    serde_json::from_slice(&reply.body)
        .map_err(|_| Wrong::new(Class::Disagrees, format!("not JSON: {}", reply.text())))
}

/// An answer that nothing explains.
pub fn unexpected(what: &str, reply: &Reply) -> Wrong {
    Wrong::new(Class::Node, format!("{what} was answered {}: {}", reply.status, reply.text()))
}
