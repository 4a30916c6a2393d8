//! One task, from its submission to its result.
//!
//! From the moment the submission is on its way no failure is retryable: the work may have been accepted, and would be
//! paid twice. Only a refusal of the submission by its status keeps its class. A task that is given up before it was
//! seen completed is cancelled upstream, once, within its own time, even when the stream is dropped, and also when the
//! answer that names it is still to come.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use sealog_events::{Mark, Phase, PortableCode};
use sealog_execution::{AbortSignal, Failure, FailureClass, ModelCall, ProviderEvent, ProviderStream};
use sealog_upstream::{Endpoint, Head, Post, Secrets, Sending, Step, UpstreamError};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::answers::{self, Status, Submitted};
use crate::provider::Upstream;
use crate::request;

/// Runs the call from the stream's first poll on.
pub fn run(upstream: Arc<Upstream>, call: ModelCall) -> ProviderStream {
    let run = Run { asking: Asking { upstream, call }, stage: Stage::Submit };
    stream::try_unfold(run, Run::next).boxed()
}

struct Run {
    asking: Asking,
    stage: Stage,
}

/// What is asked for, and of whom.
struct Asking {
    upstream: Arc<Upstream>,
    call: ModelCall,
}

enum Stage {
    Submit,
    Submitted(Submission),
    Watch { task: Box<Task>, asked: u32, shown: Option<Phase> },
    Completed,
    Over,
}

/// An accepted task. Cancelled upstream when dropped before it was seen completed.
struct Task {
    upstream: Arc<Upstream>,
    headers: HeaderMap<HeaderValue>,
    /// `None` once there is nothing to cancel any more.
    cancel: Option<Endpoint>,
    places: Option<Places>,
}

/// A submission until it comes to a task. One that is given up after it was sent is followed to its task for as long as
/// cancelling may take.
struct Submission {
    upstream: Arc<Upstream>,
    headers: HeaderMap<HeaderValue>,
    /// `None` once it came to something, or was given up.
    way: Option<Way>,
}

enum Way {
    Sending(Sending),
    Reading(BoxFuture<'static, Result<Box<Task>, Failure>>),
}

enum Came {
    Mark(Mark),
    Task(Box<Task>),
}

struct Places {
    status: Endpoint,
    response: Endpoint,
}

impl Run {
    async fn next(mut self) -> Result<Option<(ProviderEvent, Run)>, Failure> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Submit => self.stage = Stage::Submitted(self.asking.submit().await?),
                Stage::Submitted(mut submission) => {
                    let came = tokio::select! {
                        biased;
                        () = self.asking.call.abort.cancelled() => None,
                        came = submission.next() => Some(came?),
                    };
                    match came {
                        None => {
                            submission.give_up().await;
                            return Err(Failure::cancelled());
                        }
                        Some(Came::Mark(mark)) => {
                            self.stage = Stage::Submitted(submission);
                            return Ok(Some((ProviderEvent::Mark(mark), self)));
                        }
                        Some(Came::Task(mut task)) if task.places.is_none() => {
                            task.give_up().await;
                            return Err(Failure::protocol("Provider named an unsafe address"));
                        }
                        Some(Came::Task(task)) => self.stage = Stage::Watch { task, asked: 0, shown: None },
                    }
                }
                Stage::Watch { mut task, asked, shown } => {
                    match self.asking.watch(&mut task, asked, shown).await {
                        Ok((event, phase)) => {
                            self.stage = match phase {
                                Some(_) => Stage::Watch { task, asked: asked + 1, shown: phase },
                                None => Stage::Completed,
                            };
                            if let Some(event) = event {
                                return Ok(Some((event, self)));
                            }
                        }
                        Err(failure) => {
                            task.give_up().await;
                            return Err(failure);
                        }
                    }
                }
                Stage::Completed => return Ok(Some((ProviderEvent::Completed, self))),
                Stage::Over => return Ok(None),
            }
        }
    }
}

impl Asking {
    async fn submit(&self) -> Result<Submission, Failure> {
        let Upstream { model, client, submit, .. } = &*self.upstream;
        let abort = &self.call.abort;
        model.supports(&self.call.model, &self.call.request)?;
        let body = request::body(&self.call.request)?;
        let outside =
            Failure::permanent(PortableCode::InvalidRequest, "Provider model is not below its origin");
        let submit = submit.clone().ok_or(outside)?;
        let mut headers = HeaderMap::new();
        if let Some(source) = &model.key {
            let credential = tokio::select! {
                biased;
                () = abort.cancelled() => return Err(Failure::cancelled()),
                credential = source.read() => credential?,
            };
            headers.insert(AUTHORIZATION, credential.header("Key "));
        }
        let mut post = Post::new(submit, "application/json", body);
        post.headers = headers.clone();
        // Its own signal: when the call's fires, the answer still has to say what is to be cancelled.
        let way = Some(Way::Sending(client.post_watched(post, &AbortSignal::new())));
        Ok(Submission { upstream: Arc::clone(&self.upstream), headers, way })
    }

    /// Asks once. What to tell, and the phase the task is in, none once it is completed.
    async fn watch(
        &self,
        task: &mut Task,
        asked: u32,
        shown: Option<Phase>,
    ) -> Result<(Option<ProviderEvent>, Option<Phase>), Failure> {
        let polling = &self.upstream.polling;
        if asked == polling.count_max {
            let message = "Provider did not complete the task in time";
            return Err(Failure::outcome_unknown(PortableCode::DeadlineExceeded, message));
        }
        if asked > 0 {
            tokio::select! {
                biased;
                () = self.call.abort.cancelled() => return Err(Failure::cancelled()),
                () = tokio::time::sleep(polling.wait(asked - 1)) => {}
            }
        }
        let unsafe_address = || Failure::protocol("Provider named an unsafe address");
        let places = task.places.as_ref().ok_or_else(unsafe_address)?;
        let status: Status = answers::read(&self.fetch(&places.status, &task.headers).await?)?;
        let phase = match status.status.as_str() {
            "IN_QUEUE" => Phase::Queued,
            "IN_PROGRESS" => Phase::Processing,
            "COMPLETED" => {
                // There is nothing to cancel any more, whatever comes of fetching it.
                task.cancel = None;
                let secrets = Secrets::of(&task.headers);
                answers::completed(&status).map_err(|failure| secrets.cleaned(failure))?;
                let (result, artifacts) =
                    answers::result(self.fetch(&places.response, &task.headers).await?)?;
                let event = ProviderEvent::Result { result, artifacts: Some(artifacts) };
                return Ok((Some(event), None));
            }
            _ => return Err(Failure::protocol("Provider named an unknown status")),
        };
        let event = (shown != Some(phase)).then_some(ProviderEvent::Progress { phase, progress: None });
        Ok((event, Some(phase)))
    }

    async fn fetch(&self, from: &Endpoint, headers: &HeaderMap<HeaderValue>) -> Result<Vec<u8>, Failure> {
        let fetched = self.upstream.client.get(from, headers.clone(), &self.call.abort).await;
        let fetched = match fetched {
            Ok(response) => response.json_bytes().await,
            Err(error) => Err(error),
        };
        fetched.map_err(|error| not_again(error.into()))
    }
}

/// What an accepted submission is answered with.
async fn answered(
    upstream: Arc<Upstream>,
    head: Head,
    headers: HeaderMap<HeaderValue>,
) -> Result<Box<Task>, Failure> {
    let response = head.accept().map_err(|error| match error {
        // An explicit answer: nothing was accepted.
        UpstreamError::Status(_) => Failure::from(error),
        _ => not_again(error.into()),
    })?;
    let body = response.json_bytes().await.map_err(|error| not_again(error.into()))?;
    let Submitted { cancel_url, status_url, response_url } = answers::read(&body)?;
    let place = |url: Option<String>| upstream.model.base.endpoint_from_upstream(&url?).ok();
    // The way to cancel comes first, so that a task without another way is not left running.
    let cancel = place(cancel_url);
    let places = cancel.is_some().then(|| (place(status_url), place(response_url)));
    let places = places.and_then(|(status, response)| Some(Places { status: status?, response: response? }));
    Ok(Box::new(Task { upstream, headers, cancel, places }))
}

/// The task may have been accepted: trying again could do it twice.
fn not_again(mut failure: Failure) -> Failure {
    if failure.retryable() {
        failure.class = FailureClass::OutcomeUnknown;
    }
    failure
}

impl Submission {
    /// What comes next. Dropping the future loses nothing.
    async fn next(&mut self) -> Result<Came, Failure> {
        let came = match &mut self.way {
            Some(Way::Sending(sending)) => match sending.next().await {
                Ok(Step::Sent) => return Ok(Came::Mark(Mark::RequestSent)),
                Ok(Step::Answered(head)) => {
                    let request_id = head.request_id().cloned();
                    self.way = Some(Way::Reading(self.read(head)));
                    return Ok(Came::Mark(Mark::ResponseHeaders { request_id }));
                }
                Err(error) => Err(not_again(error.into())),
            },
            Some(Way::Reading(reading)) => reading.await.map(Came::Task),
            // Given up.
            None => Err(Failure::cancelled()),
        };
        self.way = None;
        came
    }

    fn read(&self, head: Head) -> BoxFuture<'static, Result<Box<Task>, Failure>> {
        answered(Arc::clone(&self.upstream), head, self.headers.clone()).boxed()
    }

    /// Follows what was sent to the task that came of it, cancels that, and waits for it.
    async fn give_up(&mut self) {
        if let Some(followed) = self.follow() {
            // How it went changes nothing for what led here.
            let _ended = followed.await;
        }
    }

    /// In a task of its own: it must go on when whoever waits for it is gone. `None` where nothing was sent, or it came
    /// to something already.
    fn follow(&mut self) -> Option<JoinHandle<()>> {
        let mut way = self.way.take()?;
        if let Way::Sending(sending) = &mut way
            && !sending.was_sent()
        {
            return None;
        }
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (upstream, headers) = (Arc::clone(&self.upstream), self.headers.clone());
        let until = Instant::now() + self.upstream.polling.cancel;
        Some(runtime.spawn(async move {
            let found = async move {
                loop {
                    way = match way {
                        Way::Sending(mut sending) => match sending.next().await.ok()? {
                            Step::Sent => Way::Sending(sending),
                            Step::Answered(head) => {
                                Way::Reading(answered(Arc::clone(&upstream), head, headers.clone()).boxed())
                            }
                        },
                        Way::Reading(reading) => return reading.await.ok(),
                    };
                }
            };
            if let Ok(Some(mut task)) = tokio::time::timeout_at(until, found).await
                && let Some(cancel) = task.cancel(until)
            {
                let _ended = cancel.await;
            }
        }))
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        drop(self.follow());
    }
}

impl Task {
    /// Cancels upstream unless that was done or there is nothing to cancel, and waits for it.
    async fn give_up(&mut self) {
        if let Some(cancel) = self.cancel(self.until()) {
            // How it went changes nothing for the failure that led here.
            let _ended = cancel.await;
        }
    }

    /// How long cancelling may take from now on.
    fn until(&self) -> Instant {
        Instant::now() + self.upstream.polling.cancel
    }

    /// In a task of its own: it must go on when whoever waits for it is gone.
    fn cancel(&mut self, until: Instant) -> Option<JoinHandle<()>> {
        let endpoint = self.cancel.take()?;
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (upstream, headers) = (Arc::clone(&self.upstream), self.headers.clone());
        Some(runtime.spawn(async move {
            // The call's own signal has fired already.
            let signal = AbortSignal::new();
            let put = upstream.client.put(&endpoint, headers, &signal);
            let done = tokio::time::timeout_at(until, put).await;
            tracing::debug!(cancelled = matches!(done, Ok(Ok(_))), "task given up");
        }))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.cancel(self.until()));
    }
}
