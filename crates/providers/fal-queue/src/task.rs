//! One task, from its submission to its result.
//!
//! From the moment the submission is on its way no failure is retryable: the work may have been accepted, and would be
//! paid twice. Only a refusal of the submission by its status keeps its class. A task that is given up before it was
//! seen completed is cancelled upstream, once, within its own time, even when the stream is dropped.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use sealog_events::{Mark, Phase, PortableCode};
use sealog_execution::{AbortSignal, Failure, FailureClass, ModelCall, ProviderEvent, ProviderStream};
use sealog_upstream::{Endpoint, Head, Post, Sending, Step, UpstreamError};
use tokio::task::JoinHandle;

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
    Sending(Sending, HeaderMap<HeaderValue>),
    Answered(Box<Head>, HeaderMap<HeaderValue>),
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

struct Places {
    status: Endpoint,
    response: Endpoint,
}

impl Run {
    async fn next(mut self) -> Result<Option<(ProviderEvent, Run)>, Failure> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Submit => {
                    let (sending, headers) = self.asking.submit().await?;
                    self.stage = Stage::Sending(sending, headers);
                }
                Stage::Sending(mut sending, headers) => {
                    let (mark, stage) = match sending.next().await.map_err(|error| not_again(error.into()))? {
                        Step::Sent => (Mark::RequestSent, Stage::Sending(sending, headers)),
                        Step::Answered(head) => {
                            let request_id = head.request_id().cloned();
                            (Mark::ResponseHeaders { request_id }, Stage::Answered(Box::new(head), headers))
                        }
                    };
                    self.stage = stage;
                    return Ok(Some((ProviderEvent::Mark(mark), self)));
                }
                Stage::Answered(head, headers) => {
                    let mut task = self.asking.answered(*head, headers).await?;
                    if task.places.is_none() {
                        task.give_up().await;
                        return Err(Failure::protocol("Provider named an unsafe address"));
                    }
                    self.stage = Stage::Watch { task, asked: 0, shown: None };
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
    async fn submit(&self) -> Result<(Sending, HeaderMap<HeaderValue>), Failure> {
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
        Ok((client.post_watched(post, abort), headers))
    }

    async fn answered(&self, head: Head, headers: HeaderMap<HeaderValue>) -> Result<Box<Task>, Failure> {
        let model = &self.upstream.model;
        let response = head.accept().map_err(|error| match error {
            // An explicit answer: nothing was accepted.
            UpstreamError::Status(_) => Failure::from(error),
            _ => not_again(error.into()),
        })?;
        let body = response.json_bytes().await.map_err(|error| not_again(error.into()))?;
        let Submitted { cancel_url, status_url, response_url } = answers::read(&body)?;
        let place = |url: Option<String>| model.base.endpoint_from_upstream(&url?).ok();
        // The way to cancel comes first, so that a task without another way is not left running.
        let cancel = place(cancel_url);
        let places = cancel.is_some().then(|| (place(status_url), place(response_url)));
        let places =
            places.and_then(|(status, response)| Some(Places { status: status?, response: response? }));
        Ok(Box::new(Task { upstream: Arc::clone(&self.upstream), headers, cancel, places }))
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
                answers::completed(&status)?;
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

/// The task may have been accepted: trying again could do it twice.
fn not_again(mut failure: Failure) -> Failure {
    if failure.retryable() {
        failure.class = FailureClass::OutcomeUnknown;
    }
    failure
}

impl Task {
    /// Cancels upstream unless that was done or there is nothing to cancel, and waits for it.
    async fn give_up(&mut self) {
        if let Some(cancel) = self.cancel() {
            // How it went changes nothing for the failure that led here.
            let _ended = cancel.await;
        }
    }

    /// In a task of its own: it must go on when whoever waits for it is gone.
    fn cancel(&mut self) -> Option<JoinHandle<()>> {
        let endpoint = self.cancel.take()?;
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let (upstream, headers) = (Arc::clone(&self.upstream), self.headers.clone());
        Some(runtime.spawn(async move {
            // The call's own signal has fired already.
            let signal = AbortSignal::new();
            let put = upstream.client.put(&endpoint, headers, &signal);
            let done = tokio::time::timeout(upstream.polling.cancel, put).await;
            tracing::debug!(cancelled = matches!(done, Ok(Ok(_))), "task given up");
        }))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.cancel());
    }
}
