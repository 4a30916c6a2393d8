//! What a restarted node says about an execution, against everything that was heard of it before.
//!
//! Speaks to the node over HTTP only. Whoever calls it says which executions cannot be running any more.

use serde_json::Value;

use crate::exchange::{self, Submitted, Until};
use crate::finding::{Class, Stop, Wrong};
use crate::fold;
use crate::frame::Frame;
use crate::history::{Record, State};
use crate::http::Client;
use crate::judge::{Ending, judge};
use crate::random::Random;
use crate::upstream::Upstream;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// It is there, whole, and ended like this.
    Ended(Ending),
    /// It was never acknowledged, did not exist, and was started now under its key.
    StartedNow,
    /// It was never acknowledged and nobody can ask for it: without a key, or refused.
    Unknown,
}

/// Checks one request whose execution, if there is one, cannot be running.
///
/// # Errors
/// The first contradiction, or a transport that broke.
pub fn check(
    client: &mut Client,
    record: &Record,
    upstream: &Upstream,
    random: &mut Random,
) -> Result<Checked, Stop> {
    if record.id().is_none()
        && let Some(known) = find(client, record, upstream)?
    {
        return Ok(known);
    }
    let Some(id) = record.id() else { return Ok(Checked::Unknown) };
    let snapshot = exchange::snapshot(client, record, &id)?;
    if !matches!(snapshot["status"].as_str(), Some("succeeded" | "failed" | "cancelled")) {
        return Err(Wrong::new(Class::Stuck, format!("after a restart: {snapshot}")).into());
    }
    let frames = exchange::follow(client, record, &id, 0, Until::End)?;
    record.compare(&frames)?;
    let calls = if record.work.counted { upstream.count(&record.work.name) } else { 0 };
    let ending = judge(&record.work, &record.state(), &frames, calls)?;
    views(client, record, &id, &frames, &snapshot)?;
    resume(client, record, &id, &frames, random)?;
    key(client, record, &snapshot)?;
    if exchange::cancel(client, record, &id)? {
        return Err(Wrong::new(Class::Disagrees, format!("{id} has ended and took a cancel")).into());
    }
    record.settle(&frames);
    Ok(Checked::Ended(ending))
}

/// Asks for a request whose answer was lost, by its key.
fn find(client: &mut Client, record: &Record, upstream: &Upstream) -> Result<Option<Checked>, Stop> {
    let State { acknowledged, .. } = record.state();
    if record.work.key.is_none() {
        return Ok(Some(Checked::Unknown));
    }
    let calls = upstream.count(&record.work.name);
    match exchange::submit(client, record)? {
        Submitted::Replay => Ok(None),
        Submitted::Refused => Ok(Some(Checked::Unknown)),
        Submitted::New if acknowledged => {
            let what = format!("{} was acknowledged and is unknown", record.work.name);
            Err(Wrong::new(Class::Lost, what).into())
        }
        Submitted::New if calls > 0 => {
            let what = format!("{} reached its provider and is unknown", record.work.name);
            Err(Wrong::new(Class::Phantom, what).into())
        }
        Submitted::New => Ok(Some(Checked::StartedNow)),
    }
}

/// Snapshot and result are what the events make.
fn views(
    client: &mut Client,
    record: &Record,
    id: &str,
    frames: &[Frame],
    snapshot: &Value,
) -> Result<(), Stop> {
    let events: Vec<Value> = frames.iter().map(Frame::event).collect();
    let mut expected = fold::snapshot(&events);
    // The creation is no event; its time is known from an answer, or from the first look.
    let State { created_at, .. } = record.state();
    expected["created_at"] = created_at.map_or_else(|| snapshot["created_at"].clone(), Value::from);
    let mut told = snapshot.clone();
    let attempts = told.as_object_mut().and_then(|told| told.remove("attempts"));
    if expected != told || !fold::attempts_agree(&events, attempts.as_ref()) {
        let what = format!("the snapshot of {id} is {snapshot}, its events make {expected}");
        return Err(Wrong::new(Class::Disagrees, what).into());
    }
    let (result, expected) = (exchange::result(client, id)?, fold::result(&expected));
    if result != expected {
        let what = format!("the result of {id} is {result:?}, its events make {expected:?}");
        return Err(Wrong::new(Class::Disagrees, what).into());
    }
    Ok(())
}

/// Any cursor gives exactly the rest, also the one behind the end.
fn resume(
    client: &mut Client,
    record: &Record,
    id: &str,
    frames: &[Frame],
    random: &mut Random,
) -> Result<(), Stop> {
    let after = random.within(1..=frames.len() as u64);
    let rest = exchange::follow(client, record, id, after, Until::End)?;
    if rest != frames[after as usize..] {
        let what = format!("{id} has {} events behind {after}, not the same ones", rest.len());
        return Err(Wrong::new(Class::Altered, what).into());
    }
    Ok(())
}

/// The key still names the execution, and no other request.
fn key(client: &mut Client, record: &Record, snapshot: &Value) -> Result<(), Stop> {
    if record.work.key.is_none() {
        return Ok(());
    }
    let reply = exchange::send(client, record, &record.work.body, None)?;
    if reply.status != 200 {
        return Err(exchange::unexpected("a known key", &reply).into());
    }
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    record.answer(200, &answer)?;
    if answer["status"] != snapshot["status"] {
        return Err(Wrong::new(Class::Disagrees, format!("{answer} and {snapshot}")).into());
    }
    let reply = exchange::send(client, record, &record.work.different(), None)?;
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    if reply.status != 400 || answer["error"]["code"] != "invalid_request" {
        return Err(exchange::unexpected("another request under a known key", &reply).into());
    }
    Ok(())
}
