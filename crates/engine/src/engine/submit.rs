//! From a checked request to a durable execution: idempotent joining, admission, creation.
//!
//! The work runs in a task of its own, so a caller that goes away changes nothing. Order: lookup, admission slot,
//! create, answer; a replay needs no slot.

use std::sync::Arc;

use sealog_events::{Event, EventBody, ExecutionId, Identity, Labels, Status, Timestamp};
use sealog_execution::ExecutionRequest;
use sealog_execution::lease::Lease;
use tokio::sync::{oneshot, watch};

use super::Inner;
use crate::driver::{self, Run};
use crate::model::attempt::StopCause;
use crate::stop::Stop;
use crate::store::{Claim, NewExecution, Watch};
use crate::{Brief, PublicError, Submission};

type Answer = Result<Submission, PublicError>;

/// What a submission came to, and, where that was asked for, its events from the first one on: nothing lets the execution
/// go between the two.
pub(super) struct Accepted {
    pub submission: Submission,
    pub watch: Option<Box<dyn Watch>>,
}

/// A submission under way, for others with the same key to join.
pub(super) struct Pending {
    fingerprint: [u8; 32],
    answer: watch::Receiver<Option<Answer>>,
}

/// Submits, or joins the submission of the same key and request that is under way.
pub(super) async fn submit(
    inner: &Arc<Inner>,
    request: Arc<ExecutionRequest>,
    identity: Option<Identity>,
    watching: bool,
) -> Result<Accepted, PublicError> {
    loop {
        match enter(inner, &request, identity, watching)? {
            Entered::First(answer) => return answer.await.unwrap_or_else(|_| Err(PublicError::internal())),
            Entered::Joined { same_request, mut answer } => {
                let answer = match answer.wait_for(Option::is_some).await {
                    Ok(answer) => answer.clone().unwrap_or_else(|| Err(PublicError::internal())),
                    Err(_) => Err(PublicError::internal()),
                };
                if same_request {
                    return answer.map(|submission| Accepted {
                        submission: Submission { idempotent_replay: true, ..submission },
                        watch: None,
                    });
                }
                // Another request on the same key: what it meets now is in the store, or the key is free.
            }
        }
    }
}

enum Entered {
    First(oneshot::Receiver<Result<Accepted, PublicError>>),
    Joined { same_request: bool, answer: watch::Receiver<Option<Answer>> },
}

/// Starts the submission's task or finds the one to join. One critical section with the shutdown flag: a task that
/// starts is one that shutdown waits for.
fn enter(
    inner: &Arc<Inner>,
    request: &Arc<ExecutionRequest>,
    identity: Option<Identity>,
    watching: bool,
) -> Result<Entered, PublicError> {
    let mut state = inner.state();
    if state.stopping {
        return Err(PublicError::shutting_down());
    }
    if let Some(identity) = identity
        && let Some(pending) = state.pending.get(&identity.key_hash)
    {
        let same_request = pending.fingerprint == identity.fingerprint;
        return Ok(Entered::Joined { same_request, answer: pending.answer.clone() });
    }
    let (first, answer) = oneshot::channel();
    let joinable = identity.map(|identity| {
        let (sender, receiver) = watch::channel(None);
        let pending = Pending { fingerprint: identity.fingerprint, answer: receiver };
        state.pending.insert(identity.key_hash, pending);
        Joinable { inner: Arc::clone(inner), key_hash: identity.key_hash, sender }
    });
    let task = run(Arc::clone(inner), Arc::clone(request), identity, Reply { first, joinable, watching });
    #[cfg(test)]
    let task = super::tests::scheduler::scheduled(task);
    inner.tasks.spawn(task);
    Ok(Entered::First(answer))
}

/// Where a submission's answer goes.
struct Reply {
    first: oneshot::Sender<Result<Accepted, PublicError>>,
    joinable: Option<Joinable>,
    watching: bool,
}

impl Reply {
    /// Sends what is known about `id`; the watch is taken before anybody can be told, while the execution is still kept.
    async fn accepted(self, inner: &Inner, submission: Submission) {
        let id = submission.execution_id;
        let watch = if self.watching { inner.store.watch(id, 0).await } else { Ok(None) };
        match watch {
            Ok(watch) => self.send(Ok(Accepted { submission, watch })),
            Err(error) => self.send(Err(error.into())),
        }
    }

    fn send(self, answer: Result<Accepted, PublicError>) {
        if let Some(joinable) = self.joinable {
            // First the entry, then the answer: whoever was told it looks the key up in the store.
            let sender = joinable.sender.clone();
            drop(joinable);
            let answer = answer.as_ref().map(|accepted| accepted.submission);
            sender.send_replace(Some(answer.map_err(Clone::clone)));
        }
        // A caller that went away does not need it.
        let _ = self.first.send(answer);
    }
}

/// Takes the pending entry away when the answer is known, and also when the task dies without one: joiners then
/// see the closed channel.
struct Joinable {
    inner: Arc<Inner>,
    key_hash: [u8; 32],
    sender: watch::Sender<Option<Answer>>,
}

impl Drop for Joinable {
    fn drop(&mut self) {
        self.inner.state().pending.remove(&self.key_hash);
    }
}

/// An execution's whole life.
async fn run(inner: Arc<Inner>, request: Arc<ExecutionRequest>, identity: Option<Identity>, reply: Reply) {
    match start(&inner, identity, &request).await {
        Ok(Started::Replay(submission)) => reply.accepted(&inner, submission).await,
        Ok(Started::New(started)) => {
            let New { id, created_at, active, slot } = started;
            let status = Status::Accepted;
            let submission = Submission { execution_id: id, status, created_at, idempotent_replay: false };
            reply.accepted(&inner, submission).await;
            let stop = Arc::clone(&active.stop);
            driver::drive(Run::new(inner, id, created_at, request, stop)).await;
            // The terminal event is stored and the provider unwound: only now is the slot free.
            drop(active);
            slot.release();
        }
        Err(error) => reply.send(Err(error)),
    }
}

enum Started {
    New(New),
    Replay(Submission),
}

struct New {
    id: ExecutionId,
    created_at: Timestamp,
    active: Active,
    slot: Lease,
}

async fn start(
    inner: &Arc<Inner>,
    identity: Option<Identity>,
    request: &ExecutionRequest,
) -> Result<Started, PublicError> {
    if let Some(identity) = identity
        && let Some(claim) = inner.store.find(identity).await?
        && let Some(known) = known(claim)?
    {
        return Ok(Started::Replay(known));
    }
    if inner.store.fenced() {
        return Err(PublicError::fenced());
    }
    if inner.store.read_only() {
        return Err(PublicError::read_only());
    }
    let slot = inner.admission.try_acquire()?;
    let mut random = [0; 16];
    inner.entropy.fill(&mut random).map_err(|_| PublicError::internal())?;
    let id = ExecutionId::from_random(random);
    let active = Active::enter(inner, id);
    let created_at = inner.now();
    let accepted = Event { sequence: 1, time: created_at, body: EventBody::Accepted };
    let labels = Some(Labels { ability: request.ability.clone() });
    let origin = request.origin.clone();
    let new = NewExecution { id, created_at, identity, origin, labels, accepted };
    let claim = inner.store.create(new).await?;
    match known(claim)? {
        Some(known) => Ok(Started::Replay(known)),
        None => Ok(Started::New(New { id, created_at, active, slot })),
    }
}

/// The submission of a claim's known execution; `None` for a new one.
fn known(claim: Claim) -> Result<Option<Submission>, PublicError> {
    match claim {
        Claim::New => Ok(None),
        Claim::Replay(Brief { id, created_at, status, last_sequence: _ }) => {
            Ok(Some(Submission { execution_id: id, status, created_at, idempotent_replay: true }))
        }
        Claim::Conflict => Err(PublicError::key_conflict()),
    }
}

/// An entry among the active executions, for as long as this lives.
struct Active {
    inner: Arc<Inner>,
    id: ExecutionId,
    stop: Arc<Stop>,
}

impl Active {
    fn enter(inner: &Arc<Inner>, id: ExecutionId) -> Active {
        let stop = Arc::new(Stop::default());
        let stopping = {
            let mut state = inner.state();
            state.active.insert(id, Arc::clone(&stop));
            state.stopping
        };
        if stopping {
            // Shutdown has already told those it found; this one was still on its way in.
            stop.fire(StopCause::Cancelled);
        }
        Active { inner: Arc::clone(inner), id, stop }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.inner.state().active.remove(&self.id);
    }
}
