//! What the clients of a campaign were told: the one side of every comparison.
//!
//! A record is made before its request leaves, so that a request without an answer is known as well. Bytes that were
//! delivered are kept until the execution has been checked to its end; from then on their digests are. Nothing here
//! speaks to the node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::finding::{Class, Wrong};
use crate::frame::{Frame, is_terminal};
use crate::work::Work;

/// Everything that was ever asked.
#[derive(Debug, Default)]
pub struct History {
    records: Mutex<Vec<Arc<Record>>>,
}

impl History {
    /// Puts a request down, before it is sent.
    pub fn enlist(&self, work: Work, cycle: u64) -> Arc<Record> {
        let record = Arc::new(Record { work, state: Mutex::new(State { cycle, ..State::default() }) });
        self.lock().push(Arc::clone(&record));
        record
    }

    /// All records so far.
    pub fn all(&self) -> Vec<Arc<Record>> {
        self.lock().clone()
    }

    /// The record at this place, counted from the newest.
    pub fn newest(&self, place: usize) -> Option<Arc<Record>> {
        let records = self.lock();
        records.len().checked_sub(place + 1).map(|at| Arc::clone(&records[at]))
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing was asked yet.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Record>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request and everything that was heard of it.
#[derive(Debug)]
pub struct Record {
    pub work: Work,
    state: Mutex<State>,
}

/// What is known of a request.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The life of the node that could last change the execution, from 1.
    pub cycle: u64,
    /// A 202 or 200 came back: from now on the execution must exist.
    pub acknowledged: bool,
    pub id: Option<String>,
    pub created_at: Option<String>,
    /// Answers that said `idempotent_replay: false`.
    pub originals: u64,
    /// The node said that it does not take the request.
    pub refused: bool,
    /// Nothing can be learnt about it any more: no answer, and no key to ask with.
    pub unknowable: bool,
    /// Delivered frames by sequence, until they are settled.
    pub delivered: BTreeMap<u64, Vec<u8>>,
    /// Highest sequence that a snapshot has shown: durable, though its frames may never have been delivered.
    pub shown: u64,
    pub cancel_asked: bool,
    /// The node was asked to stop while this ran, and was killed on its way.
    pub stop_asked: bool,
    /// The node was asked to stop in order while this ran.
    pub stopped_in_order: bool,
    /// Digests of all frames of an execution that has ended and was checked.
    pub settled: Option<Vec<[u8; 16]>>,
}

impl Record {
    /// A copy of what is known. Frames that were delivered come along.
    pub fn state(&self) -> State {
        self.lock().clone()
    }

    /// The execution's identity, if it is known.
    pub fn id(&self) -> Option<String> {
        self.lock().id.clone()
    }

    /// Whether the execution has been checked to its end.
    pub fn is_settled(&self) -> bool {
        self.lock().settled.is_some()
    }

    /// A 202 or 200 came back.
    pub fn acknowledge(&self) {
        self.lock().acknowledged = true;
    }

    /// The node refused the request.
    pub fn refuse(&self) {
        self.lock().refused = true;
    }

    /// Nobody can ask for it any more.
    pub fn give_up(&self) {
        self.lock().unknowable = true;
    }

    /// A cancel is about to be sent.
    pub fn ask_cancel(&self) {
        self.lock().cancel_asked = true;
    }

    /// The node was asked to stop and then killed.
    pub fn ask_stop(&self) {
        self.lock().stop_asked = true;
    }

    /// The node is about to be asked to stop in order.
    pub fn stop_in_order(&self) {
        self.lock().stopped_in_order = true;
    }

    /// The execution lives on in this life of the node.
    pub fn live_in(&self, cycle: u64) {
        self.lock().cycle = cycle;
    }

    /// A snapshot showed this sequence.
    pub fn show(&self, sequence: u64) {
        let mut state = self.lock();
        state.shown = state.shown.max(sequence);
    }

    /// Takes the JSON answer of a submission.
    ///
    /// # Errors
    /// It contradicts an earlier answer.
    pub fn answer(&self, status: u16, answer: &Value) -> Result<(), Wrong> {
        let mut state = self.lock();
        state.acknowledged = true;
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        let (Some(id), Some(created_at)) = (text("execution_id"), text("created_at")) else {
            return Err(Wrong::new(Class::Disagrees, format!("a submission was answered with {answer}")));
        };
        let replay = answer["idempotent_replay"] == Value::Bool(true);
        if replay != (status == 200) {
            return Err(Wrong::new(Class::Disagrees, format!("status {status} came with {answer}")));
        }
        self.bind(&mut state, &id)?;
        if let Some(known) = state.created_at.replace(created_at)
            && state.created_at.as_ref() != Some(&known)
        {
            return Err(Wrong::new(Class::Altered, format!("{id} was created at {known}, now {answer}")));
        }
        state.originals += u64::from(!replay);
        if state.originals > 1 {
            let what = format!("{} made a second original: {answer}", self.work.name);
            return Err(Wrong::new(Class::Phantom, what));
        }
        Ok(())
    }

    /// Takes a frame that was delivered.
    ///
    /// # Errors
    /// It is not what was delivered before, or it belongs elsewhere.
    pub fn deliver(&self, frame: &Frame) -> Result<(), Wrong> {
        let mut state = self.lock();
        let event = frame.event();
        let Some(id) = event["execution_id"].as_str() else {
            return Err(Wrong::new(Class::Disagrees, format!("an event without execution: {event}")));
        };
        self.bind(&mut state, id)?;
        if let Some(digests) = &state.settled {
            let known = usize::try_from(frame.sequence).ok().and_then(|at| digests.get(at.checked_sub(1)?));
            return match known {
                Some(known) if *known == digest(&frame.bytes) => Ok(()),
                Some(_) => Err(altered(id, frame, None)),
                None => Err(behind_the_end(id, frame)),
            };
        }
        let last = state.delivered.last_key_value();
        let ended =
            last.filter(|(_, bytes)| Frame::read(bytes).is_ok_and(ends)).map(|(sequence, _)| *sequence);
        if ended.is_some_and(|end| end < frame.sequence) {
            return Err(behind_the_end(id, frame));
        }
        match state.delivered.get(&frame.sequence) {
            Some(known) if *known == frame.bytes => Ok(()),
            Some(known) => Err(altered(id, frame, Some(known))),
            None => {
                state.delivered.insert(frame.sequence, frame.bytes.clone());
                Ok(())
            }
        }
    }

    /// The execution has ended with exactly these frames, which have been checked.
    pub fn settle(&self, frames: &[Frame]) {
        let mut state = self.lock();
        state.settled = Some(frames.iter().map(|frame| digest(&frame.bytes)).collect());
        state.delivered.clear();
    }

    /// Compares all frames with what was heard of the execution.
    ///
    /// # Errors
    /// Something delivered is missing or has other bytes, or something shown is missing.
    pub fn compare(&self, frames: &[Frame]) -> Result<(), Wrong> {
        let state = self.lock();
        let id = state.id.as_deref().unwrap_or("?");
        let by_sequence: BTreeMap<u64, &Frame> = frames.iter().map(|frame| (frame.sequence, frame)).collect();
        for (sequence, bytes) in &state.delivered {
            match by_sequence.get(sequence) {
                Some(frame) if frame.bytes == *bytes => {}
                Some(frame) => return Err(altered(id, frame, Some(bytes))),
                None => {
                    let what = format!("{id} lost event {sequence}: {}", shown(bytes));
                    return Err(Wrong::new(Class::Lost, what));
                }
            }
        }
        if let Some(digests) = &state.settled
            && *digests != frames.iter().map(|frame| digest(&frame.bytes)).collect::<Vec<_>>()
        {
            let what = format!("{id} had ended with {} events, now {}", digests.len(), frames.len());
            return Err(Wrong::new(Class::Altered, what));
        }
        let last = frames.last().map_or(0, |frame| frame.sequence);
        if last < state.shown {
            let what = format!("a snapshot of {id} showed sequence {}, now it ends at {last}", state.shown);
            return Err(Wrong::new(Class::Lost, what));
        }
        Ok(())
    }

    fn bind(&self, state: &mut State, id: &str) -> Result<(), Wrong> {
        match &state.id {
            Some(known) if known == id => Ok(()),
            Some(known) => {
                let what = format!("{} was execution {known}, now {id}", self.work.name);
                Err(Wrong::new(Class::Phantom, what))
            }
            None => {
                state.id = Some(id.to_owned());
                Ok(())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ends(frame: Option<Frame>) -> bool {
    frame.is_some_and(|frame| is_terminal(&frame.event()))
}

fn digest(bytes: &[u8]) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&Sha256::digest(bytes)[..16]);
    short
}

fn altered(id: &str, frame: &Frame, known: Option<&[u8]>) -> Wrong {
    let before = known.map_or_else(|| "other bytes".to_owned(), shown);
    let what = format!("{id} event {} was {before}, now {}", frame.sequence, shown(&frame.bytes));
    Wrong::new(Class::Altered, what)
}

fn behind_the_end(id: &str, frame: &Frame) -> Wrong {
    let what = format!("{id} went on behind its end: {}", shown(&frame.bytes));
    Wrong::new(Class::Phantom, what)
}

fn shown(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(600)]))
}

#[cfg(test)]
mod tests;
