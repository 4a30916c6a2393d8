//! What an earlier process left unfinished: each such execution gets its one terminal event, durable before anything
//! new is taken. Where there is no room for that, what is durable is served and the ends follow when there is. Nothing
//! is ever submitted to a provider again.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use sealog_events::{
    ErrorFact, Event, EventBody, ExecutionId, Materializer, Outcome, PortableCode, Reached, Status, Timestamp,
};
use sealog_journal::{Admission, Journal, JournalError, RecoveryReport, Refusal, Ticket, Unit};

use super::open::{Found, OpenError, fold};
use super::records::Text;
use super::{Shared, records};
use crate::StoreError;

const OUTCOME_UNKNOWN: &str = "Execution was interrupted by a runtime restart; remote outcome is unknown";
const NOTHING_SENT: &str = "Execution was interrupted by a runtime restart; nothing was sent";
/// Between two tries to end what there was no room to end.
const RETRY: Duration = Duration::from_secs(1);

/// An execution that a restart ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    pub id: ExecutionId,
    pub outcome: Outcome,
    /// How far its newest attempt provably came; `None` without an attempt.
    pub reached: Option<Reached>,
}

impl Interrupted {
    fn event(self, sequence: u64, time: Timestamp) -> Event {
        let message = match self.outcome {
            Outcome::Unknown => OUTCOME_UNKNOWN,
            Outcome::NotDispatched => NOTHING_SENT,
        };
        let error = ErrorFact::new(PortableCode::InternalError, message, false).with_outcome(self.outcome);
        Event { sequence, time, body: EventBody::Failed { error, cancelled: false } }
    }
}

/// What came of the interrupted executions.
pub(super) struct Endings {
    pub(super) ended: Vec<Interrupted>,
    /// There was no room for these ends; with the fold of what there is of each.
    pub(super) unended: Vec<(Interrupted, Materializer)>,
}

/// An end on its way.
struct Ending {
    interrupted: Interrupted,
    terminal: Event,
    json_bytes: u64,
    hashed: Unit,
    ticket: Ticket,
}

/// Gives every execution without a terminal event exactly one, all durable when this returns, but for those that there
/// is no room for. `found` are the executions that go on.
pub(super) fn end_all(
    journal: &Journal,
    recovery: &RecoveryReport,
    found: &mut HashMap<ExecutionId, Found>,
    now: Timestamp,
    wait: impl Fn(&Journal, Ticket) -> Result<(), JournalError>,
) -> Result<Endings, OpenError> {
    let mut on_their_way = Vec::new();
    for (stream, _) in &recovery.interrupted {
        let id = ExecutionId::from_bytes(stream.0);
        let Some(found) = found.get(&id) else { continue };
        // Only what is certain is called so: no attempt was ever announced, and neither a cut nor a copy hides one.
        let certain = !found.routed && !found.restored && !recovery.cut_written_bytes();
        let outcome = if certain { Outcome::NotDispatched } else { Outcome::Unknown };
        on_their_way.push(begin(journal, Interrupted { id, outcome, reached: None }, found, now)?);
    }
    let mut endings = Endings { ended: Vec::new(), unended: Vec::new() };
    for Ending { interrupted, terminal, json_bytes, hashed, ticket } in on_their_way {
        let Some(found) = found.get_mut(&interrupted.id) else { continue };
        let ended = match wait(journal, ticket) {
            // A full disk may have room for the ends, if not for the texts beside them.
            Err(JournalError::Full) => wait(journal, submit(journal, hashed, Admission::Reserved)?),
            ended => ended,
        };
        match ended {
            Ok(()) => {
                found.kept.status = Status::Failed;
                found.kept.sequence = terminal.sequence;
                found.kept.bytes += json_bytes;
                found.kept.ended = Some(terminal.time);
                endings.ended.push(interrupted);
            }
            Err(JournalError::Full) => {
                let fold = fold(journal, interrupted.id, found.kept.created_at);
                endings.unended.push((interrupted, fold.map_err(OpenError::NotEnded)?));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(endings)
}

fn begin(
    journal: &Journal,
    mut interrupted: Interrupted,
    found: &Found,
    now: Timestamp,
) -> Result<Ending, OpenError> {
    let event = interrupted.event(found.kept.sequence + 1, now.max(found.time));
    let terminal = records::prepare(interrupted.id, &event).map_err(OpenError::NotEnded)?;
    let mut fold = fold(journal, interrupted.id, found.kept.created_at).map_err(OpenError::NotEnded)?;
    interrupted.reached = fold.attempts().last().map(|attempt| attempt.reached);
    fold.push(&terminal.event);
    let snapshot = fold.into_snapshot();
    let ending = |text| records::ending(&snapshot, &terminal.record, text).map_err(OpenError::NotEnded);
    let (whole, hashed) = (ending(Text::Whole)?, ending(Text::Hashed)?);
    let ticket = submit_whole(journal, whole, &hashed)?;
    let json_bytes = terminal.weight.json_bytes;
    Ok(Ending { interrupted, terminal: terminal.event, json_bytes, hashed, ticket })
}

/// With its text if that leaves the reserve to the ends of the others.
fn submit_whole(journal: &Journal, whole: Unit, hashed: &Unit) -> Result<Ticket, OpenError> {
    if records::fits_reserve(&whole) {
        return submit(journal, whole, Admission::Reserved);
    }
    match submit(journal, whole, Admission::Ordinary) {
        Err(OpenError::Journal(JournalError::Busy)) => submit(journal, hashed.clone(), Admission::Reserved),
        submitted => submitted,
    }
}

fn submit(journal: &Journal, unit: Unit, admission: Admission) -> Result<Ticket, OpenError> {
    journal.submit(unit, admission).map_err(|refusal| match refusal {
        Refusal::Busy(_) => OpenError::Journal(JournalError::Busy),
        Refusal::TooLarge => OpenError::NotEnded(StoreError::Unstorable),
        Refusal::Ended(error) => OpenError::Journal(error),
    })
}

impl Shared {
    /// One try to end what there was no room to end. `true`: nothing is left.
    pub(super) async fn end_unended(self: Arc<Self>) -> Result<bool, StoreError> {
        // One at a time: an end that another try has decided may still be refused.
        let _alone = self.ending.lock().await;
        loop {
            let (interrupted, event) = {
                let state = self.writable()?;
                let Some(interrupted) = state.unended.last().copied() else { return Ok(true) };
                let record = state.records.get(&interrupted.id).ok_or(StoreError::Unknown)?;
                (interrupted, interrupted.event(record.last_sequence + 1, self.now(&state)))
            };
            match Arc::clone(&self).append(interrupted.id, event).await {
                Ok(()) => self.lock().unended.retain(|unended| unended.id != interrupted.id),
                Err(StoreError::Full) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Tries until everything has ended, or the store is gone, closed or failed.
pub(super) async fn end_later(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(RETRY).await;
        let Some(shared) = shared.upgrade() else { return };
        match shared.end_unended().await {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!("there is room again: what was interrupted has ended, new work is taken");
                return;
            }
            Err(error) => {
                tracing::error!(%error, "what was interrupted was not ended");
                return;
            }
        }
    }
}
