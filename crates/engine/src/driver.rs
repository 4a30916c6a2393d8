//! Runs one execution from its first event to its terminal one.
//!
//! One task, one emitter: an execution's events have a single author, which is why it ends exactly once whatever
//! races. An append is always awaited to its end before anything else is asked of the provider.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use sealog_events::{
    AttemptEvidence, Event, EventBody, ExecutionId, Mark, PortableCode, Reached, StopReason, Target,
    Timestamp,
};
use sealog_execution::emitter::{EmitError, Emitter, EventSink};
use sealog_execution::{AbortSignal, ExecutionRequest, Failure, ModelCall, ModelProvider, ProviderStream};
use tokio::time::Instant;

use crate::catalog;
use crate::engine::Inner;
use crate::model::attempt::{self, Allowance, Completion, Ending, FailedAttempt, StopCause};
use crate::model::deadline::{Due, Timing};
use crate::model::output::{self, Report};
use crate::model::route;
use crate::observe::{Fact, Following};
use crate::public::QUEUE_FULL;
use crate::stop::Stop;
use crate::{EventStore, StoreError};

/// An execution whose first event is durable.
pub(crate) struct Run {
    inner: Arc<Inner>,
    id: ExecutionId,
    request: Arc<ExecutionRequest>,
    stop: Arc<Stop>,
    emitter: Emitter<StoreSink>,
    /// The deadline's clock: it starts behind admission and creation.
    started: Instant,
    timing: Timing,
}

struct StoreSink {
    store: Arc<dyn EventStore>,
    id: ExecutionId,
    following: Option<Box<dyn Following>>,
}

impl EventSink for StoreSink {
    type Error = StoreError;

    async fn append(&mut self, event: Event) -> Result<(), StoreError> {
        let fact = self.following.as_ref().and_then(|_| Fact::of(&event));
        let sequence = event.sequence;
        self.store.append(self.id, event).await?;
        if let (Some(following), Some(fact)) = (&mut self.following, fact) {
            following.seen(sequence, &fact);
        }
        Ok(())
    }
}

/// How long a future may go on after the execution was stopped.
#[derive(Clone, Copy)]
enum Patience {
    /// Not at all.
    None,
    /// For the cleanup time.
    Cleanup,
}

/// Why the run cannot go on to its planned end.
enum Abandoned {
    /// The attempt failed; the execution may still conclude.
    Attempt(Failure),
    /// The store refused an event; the execution ends with the store's error.
    Store(StoreError),
}

impl From<Failure> for Abandoned {
    fn from(failure: Failure) -> Abandoned {
        Abandoned::Attempt(failure)
    }
}

impl Run {
    pub(crate) fn new(
        inner: Arc<Inner>,
        id: ExecutionId,
        created_at: Timestamp,
        request: Arc<ExecutionRequest>,
        stop: Arc<Stop>,
    ) -> Run {
        let following = inner.observer.as_ref().map(|observer| observer.accepted(id, &request.ability));
        let sink = StoreSink { store: Arc::clone(&inner.store), id, following };
        let timing = Timing::new(request.deadline_ms, inner.options.cleanup_ms);
        let emitter = Emitter::after(sink, 1, created_at);
        Run { inner, id, request, stop, emitter, started: Instant::now(), timing }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Why the execution is to stop; a deadline that passed unseen, while an event was stored, counts.
    fn stop_cause(&self) -> Option<StopCause> {
        match self.timing.due(self.elapsed_ms()) {
            Due::Deadline => self.stop.fire(StopCause::DeadlineExceeded),
            Due::Nothing | Due::GiveUp => {}
        }
        self.stop.cause()
    }

    async fn emit(&mut self, body: EventBody) -> Result<(), Abandoned> {
        let now = self.inner.now();
        match self.emitter.emit(now, body).await {
            Ok(_) => Ok(()),
            Err(EmitError::Sink(error)) => Err(Abandoned::Store(error)),
            // The driver emits nothing behind a failed append or a terminal event.
            Err(EmitError::AfterTerminal | EmitError::Broken) => Err(Abandoned::Store(StoreError::Ended)),
        }
    }

    /// Keeps evidence without waiting for it: nothing is to be slower for it, and what is lost is not proven.
    fn note(&self, attempt: u32, mark: Mark) {
        self.inner.store.note(self.id, AttemptEvidence { attempt, mark });
    }

    /// Waits for `future` while watching the stop and the deadline. `None` once the execution is stopped and
    /// patience is over.
    async fn until_stopped<F: Future>(&mut self, future: F, patience: Patience) -> Option<F::Output> {
        let mut future = pin!(future);
        let stop = Arc::clone(&self.stop);
        loop {
            match self.timing.due(self.elapsed_ms()) {
                Due::Nothing => {}
                Due::Deadline => stop.fire(StopCause::DeadlineExceeded),
                Due::GiveUp => return None,
            }
            if stop.cause().is_some() {
                self.timing.stopped(self.elapsed_ms());
                if let Patience::None = patience {
                    return None;
                }
            }
            let wake = self.timing.next_ms().map(|ms| self.started + Duration::from_millis(ms));
            let alarm = async move {
                match wake {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            // The stop and the alarm come first, so a future that is always ready cannot outrun them.
            tokio::select! {
                biased;
                () = stop.abort().cancelled(), if !self.timing.is_stopped() => {}
                () = alarm => {}
                output = &mut future => return Some(output),
            }
        }
    }
}

/// Runs the execution to its end. Returns when the terminal event is durable, or when the store took none.
pub(crate) async fn drive(mut run: Run) {
    let ending = match route_and_attempt(&mut run).await {
        Ok(end) => attempt::conclude(end, run.stop.cause(), run.emitter.output_exposed()),
        Err(Abandoned::Attempt(failure)) => attempt::failed(failure),
        Err(Abandoned::Store(error)) => attempt::failed(error.to_failure()),
    };
    finish(&mut run, ending).await;
}

/// Picks candidates and attempts one after the other. What fails before an attempt is abandoned with that failure,
/// whatever the stop says; the inner result is the last attempt's end.
async fn route_and_attempt(run: &mut Run) -> Result<Result<Completion, Failure>, Abandoned> {
    let manifests = catalog::read(&run.inner.providers())?;
    let candidates = route::candidates(&run.request, &manifests);
    if candidates.is_empty() {
        return Err(route::unavailable(&run.request, &manifests).into());
    }
    if let Some(cause) = run.stop_cause() {
        return Err(cause.to_failure().into());
    }
    let allowance = Allowance::new(&run.request.routing, candidates.len());
    allowance.may_start(run.elapsed_ms())?;
    let mut end = Err(route::unavailable(&run.request, &manifests));
    for (number, target) in (1..).zip(candidates) {
        let failure = match attempt(run, &target, number).await {
            Ok(stop_reason) => return Ok(Ok(Completion { target, stop_reason })),
            Err(Abandoned::Attempt(failure)) => failure,
            Err(Abandoned::Store(error)) => return Err(Abandoned::Store(error)),
        };
        let (stop, output_exposed) = (run.stop_cause(), run.emitter.output_exposed());
        let elapsed_ms = run.elapsed_ms();
        let failed = FailedAttempt { number, failure: &failure, stop, output_exposed, elapsed_ms };
        let (follow, error) = (allowance.may_follow(&failed), failure.to_fact());
        end = Err(failure);
        if !follow {
            break;
        }
        // From here on another attempt is announced whatever happens, but for a store that does not take it.
        run.emit(EventBody::RouteAttemptFailed { target, attempt: number, error }).await?;
    }
    Ok(end)
}

/// One attempt: announced, admitted by the provider's gate, run, and its lease given back.
async fn attempt(run: &mut Run, target: &Target, number: u32) -> Result<Option<StopReason>, Abandoned> {
    // Durable before the provider can send a byte: recovery tells from this event that something may have left.
    run.emit(EventBody::RouteSelected { target: target.clone(), attempt: number }).await?;
    let gate = run.inner.provider_gate(&target.provider);
    let Some(admitted) = run.until_stopped(gate.acquire(), Patience::None).await else {
        return Err(Failure::cancelled().into());
    };
    let lease = admitted.map_err(|_| Failure::transient(PortableCode::QueueFull, QUEUE_FULL))?;
    let provider = run.inner.provider(&target.provider).map_err(|error| error.to_failure())?;
    let end = run_provider(run, provider.as_ref(), target, number).await;
    lease.release();
    end
}

async fn run_provider(
    run: &mut Run,
    provider: &dyn ModelProvider,
    target: &Target,
    number: u32,
) -> Result<Option<StopReason>, Abandoned> {
    // The wait at the gate may have been long; a provider is free to have changed what it declares.
    route::recheck(&run.request, &target.model, &catalog::manifest(provider)?)?;
    if run.stop.cause().is_some() {
        return Err(Failure::cancelled().into());
    }
    let abort = run.stop.abort().child_token();
    let call = ModelCall {
        execution_id: run.id,
        request: Arc::clone(&run.request),
        model: target.model.clone(),
        abort: abort.clone(),
    };
    let mut stream = contain(|| provider.execute(call))?;
    let end = pull(run, &mut stream, number).await;
    unwind(stream, &abort, end.is_err());
    end
}

/// Pulls and records until the provider completes, for the reason that it said, or cannot. An event is durable before
/// the next one is pulled.
async fn pull(
    run: &mut Run,
    stream: &mut ProviderStream,
    number: u32,
) -> Result<Option<StopReason>, Abandoned> {
    let mut reached = Reached::Selected;
    let mut stop_reason = None;
    loop {
        // A provider and a store that are always ready must not keep the thread for themselves.
        tokio::task::consume_budget().await;
        let next = AssertUnwindSafe(stream.next()).catch_unwind();
        let Some(next) = run.until_stopped(next, Patience::Cleanup).await else {
            tracing::warn!("a provider ignored its abort signal and was dropped");
            return Err(Failure::cancelled().into());
        };
        let event = match next {
            Err(_) => return Err(panicked().into()),
            Ok(None) => return Err(Failure::protocol("Provider ended without completing").into()),
            Ok(Some(item)) => item?,
        };
        match output::report(event)? {
            Report::Completed => return Ok(stop_reason),
            Report::Stopped(reason) => stop_reason = Some(reason),
            // Each step once and in order, whatever the provider says.
            Report::Mark(mark) if mark.reached() > reached => {
                reached = mark.reached();
                run.note(number, mark);
            }
            Report::Mark(_) => {}
            Report::Events(bodies) => {
                for body in bodies {
                    run.emit(body).await?;
                }
            }
        }
    }
}

/// Gives the provider's stream up. Its drop is foreign code like everything else of it.
fn unwind(stream: ProviderStream, abort: &AbortSignal, failed: bool) {
    if failed {
        abort.cancel();
    }
    // A panic here changes nothing: the attempt's end is already known.
    let _ = contain(move || drop(stream));
}

fn contain<T>(call: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| panicked())
}

fn panicked() -> Failure {
    tracing::error!("a provider panicked");
    Failure::outcome_unknown(PortableCode::ProviderUnavailable, "Provider execution failed")
}

/// Writes the terminal event. If the store does not take it, one short failure with the store's error is tried.
async fn finish(run: &mut Run, ending: Ending) {
    let body = match ending {
        Ending::Completed(Completion { target, stop_reason }) => EventBody::Completed { target, stop_reason },
        Ending::Failed { failure, cancelled } => failed(&failure, cancelled),
    };
    let Err(Abandoned::Store(error)) = run.emit(body).await else { return };
    tracing::warn!(%error, "a terminal event was refused; trying a short one");
    if let Err(Abandoned::Store(error)) = run.emit(failed(&error.to_failure(), false)).await {
        tracing::error!(%error, "an execution has no terminal event until the store is opened again");
    }
}

fn failed(failure: &Failure, cancelled: bool) -> EventBody {
    EventBody::Failed { error: failure.to_fact(), cancelled }
}
