//! The provider: what it declares, and one attempt from the check of the request to the completion signal.
//!
//! The stream is pulled: nothing happens before its first poll, and an upstream whose events nobody pulls is held
//! by its own connection. Dropping the stream closes that connection.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use http::header::AUTHORIZATION;
use sealog_execution::manifest::PROTOCOL_VERSION;
use sealog_execution::{
    AbortSignal, Failure, ModelCall, ModelManifest, ModelProvider, ProviderEvent, ProviderManifest,
    ProviderStream,
};
use sealog_upstream::{Client, Endpoint, EventStream, Post, Timeouts, UpstreamError};

use crate::config::{Checked, ConfigError, OpenAiChatConfig};
use crate::request;
use crate::translate::Translator;

/// One configured model behind one OpenAI-compatible upstream.
#[derive(Clone, Debug)]
pub struct OpenAiChat {
    upstream: Arc<Upstream>,
}

#[derive(Debug)]
struct Upstream {
    config: Checked,
    client: Client,
    endpoint: Endpoint,
}

impl OpenAiChat {
    /// # Errors
    /// The configuration breaks a rule, or no client can be set up for it. No key is read yet.
    pub fn new(config: OpenAiChatConfig) -> Result<OpenAiChat, ConfigError> {
        OpenAiChat::with_timeouts(config, Timeouts::default())
    }

    /// # Errors
    /// As [`OpenAiChat::new`].
    pub fn with_timeouts(config: OpenAiChatConfig, timeouts: Timeouts) -> Result<OpenAiChat, ConfigError> {
        let config = Checked::new(config)?;
        let client = Client::new(&config.base, timeouts)?;
        // Two fixed segments below a checked base always make an endpoint of it.
        let endpoint = config.base.endpoint(&["chat", "completions"]);
        let endpoint = endpoint.map_err(|_| ConfigError::Client(sealog_upstream::ClientError::Setup))?;
        Ok(OpenAiChat { upstream: Arc::new(Upstream { config, client, endpoint }) })
    }
}

impl ModelProvider for OpenAiChat {
    fn id(&self) -> &str {
        &self.upstream.config.id
    }

    fn manifest(&self) -> Result<ProviderManifest, Failure> {
        let config = &self.upstream.config;
        let model = ModelManifest {
            model: config.model.clone(),
            abilities: config.abilities.clone(),
            input_modalities: config.input_modalities.clone(),
            output_modalities: config.output_modalities.clone(),
            stream: true,
            tools: config.tools,
            structured_output: false,
            asynchronous: false,
            cancel: true,
        };
        Ok(ProviderManifest {
            provider: config.id.clone(),
            protocol_version: PROTOCOL_VERSION.to_owned(),
            models: vec![model],
            limits: None,
        })
    }

    fn execute(&self, call: ModelCall) -> ProviderStream {
        let start = Attempt::Start { upstream: Arc::clone(&self.upstream), call };
        stream::try_unfold(start, Attempt::next).boxed()
    }
}

/// Where one attempt stands.
enum Attempt {
    Start { upstream: Arc<Upstream>, call: ModelCall },
    Streaming(Box<Streaming>),
    Over,
}

struct Streaming {
    events: EventStream,
    translator: Translator,
    /// Translated and not yet pulled.
    ready: VecDeque<ProviderEvent>,
    abort: AbortSignal,
}

impl Attempt {
    async fn next(self) -> Result<Option<(ProviderEvent, Attempt)>, Failure> {
        let mut streaming = match self {
            Attempt::Start { upstream, call } => Box::new(start(&upstream, &call).await?),
            Attempt::Streaming(streaming) => streaming,
            Attempt::Over => return Ok(None),
        };
        let event = streaming.pull().await?;
        let next = match event {
            // The connection closes here: whatever follows the completion signal is not ours to read.
            ProviderEvent::Completed => Attempt::Over,
            ProviderEvent::OutputDelta { .. }
            | ProviderEvent::ToolCallStarted { .. }
            | ProviderEvent::ToolCallArgumentsDelta { .. }
            | ProviderEvent::Progress { .. }
            | ProviderEvent::Result { .. }
            | ProviderEvent::Usage(_) => Attempt::Streaming(streaming),
        };
        Ok(Some((event, next)))
    }
}

async fn start(upstream: &Upstream, call: &ModelCall) -> Result<Streaming, Failure> {
    // The request is judged before a key is read, and the key before a connection is opened.
    if call.model != upstream.config.model {
        return Err(request::unavailable());
    }
    let body = request::body(&upstream.config, &call.request)?;
    let mut post = Post::new(upstream.endpoint.clone(), "text/event-stream", body);
    if let Some(source) = &upstream.config.key {
        let credential = tokio::select! {
            biased;
            () = call.abort.cancelled() => return Err(Failure::cancelled()),
            credential = source.read() => credential?,
        };
        post = post.with_header(AUTHORIZATION, credential.bearer());
    }
    let events = upstream.client.post(post, &call.abort).await?.events()?;
    let translator = Translator::new(upstream.config.tools);
    Ok(Streaming { events, translator, ready: VecDeque::new(), abort: call.abort.clone() })
}

impl Streaming {
    async fn pull(&mut self) -> Result<ProviderEvent, Failure> {
        loop {
            // Also before what is ready: the pull after an abort fails, it does not go on for a while.
            if self.abort.is_cancelled() {
                return Err(Failure::cancelled());
            }
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.events.next().await {
                Some(event) => self.translator.read(&event?, &mut self.ready)?,
                // A clean end of the body, and no end of the answer.
                None => return Err(UpstreamError::Truncated.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
