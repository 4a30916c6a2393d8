//! One attempt: a POST, and what comes back piece by piece until the upstream's own end marker.
//!
//! The stream is pulled: nothing happens before its first poll, and an upstream whose events nobody pulls is held
//! by its own connection. Dropping the stream closes that connection. Nothing is sent twice.

use std::collections::VecDeque;

use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http::HeaderName;
use sealog_events::Mark;
use sealog_execution::{AbortSignal, Failure, ProviderEvent, ProviderStream};

use crate::{Client, CredentialSource, Head, Post, Secrets, Sending, ServerEvent, Step, UpstreamError};

/// Reads one upstream's pieces in order.
pub trait Translator: Send + 'static {
    /// Reads one piece and appends what it means. After [`ProviderEvent::Completed`] nothing is read.
    ///
    /// # Errors
    /// What the upstream reports about itself, or whatever is not its protocol.
    fn read(&mut self, piece: &ServerEvent, out: &mut VecDeque<ProviderEvent>) -> Result<(), Failure>;
}

/// How the pieces of an answer are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    ServerSentEvents,
    /// One JSON value a line.
    JsonLines,
}

impl Framing {
    pub fn media_type(self) -> &'static str {
        match self {
            Framing::ServerSentEvents => "text/event-stream",
            Framing::JsonLines => "application/x-ndjson",
        }
    }
}

/// A key, still unread, and the header that it goes into.
#[derive(Clone, Debug)]
pub struct Key {
    pub source: CredentialSource,
    pub header: HeaderName,
    /// Stands before the secret, such as `Bearer `.
    pub prefix: &'static str,
}

/// Everything an attempt needs, made from a request that was judged already.
#[expect(missing_debug_implementations, reason = "holds a caller's content")]
pub struct Prepared<T> {
    pub client: Client,
    pub post: Post,
    pub key: Option<Key>,
    pub framing: Framing,
    pub translator: T,
}

/// Runs `prepare` at the first poll, and the attempt after it.
pub fn attempt<T: Translator>(
    abort: AbortSignal,
    prepare: impl FnOnce() -> Result<Prepared<T>, Failure> + Send + 'static,
) -> ProviderStream {
    let start = Attempt::Start { prepare, abort };
    stream::try_unfold(start, Attempt::next).boxed()
}

enum Attempt<F, T> {
    Start { prepare: F, abort: AbortSignal },
    Sending(Box<Sent<T>>, Sending),
    Answered(Box<Sent<T>>, Box<Head>),
    Streaming(Box<Streaming<T>>),
    Over,
}

/// What the answer will be read with.
struct Sent<T> {
    framing: Framing,
    translator: T,
    abort: AbortSignal,
    secrets: Secrets,
}

struct Streaming<T> {
    pieces: BoxStream<'static, Result<ServerEvent, UpstreamError>>,
    translator: T,
    /// Translated and not yet pulled.
    ready: VecDeque<ProviderEvent>,
    abort: AbortSignal,
    secrets: Secrets,
}

impl<F, T> Attempt<F, T>
where
    F: FnOnce() -> Result<Prepared<T>, Failure>,
    T: Translator,
{
    async fn next(mut self) -> Result<Option<(ProviderEvent, Attempt<F, T>)>, Failure> {
        loop {
            self = match self {
                // The request is judged before a key is read, and the key before a connection is opened.
                Attempt::Start { prepare, abort } => {
                    let (sent, sending) = start(prepare()?, abort).await?;
                    Attempt::Sending(Box::new(sent), sending)
                }
                Attempt::Sending(sent, mut sending) => match sending.next().await? {
                    Step::Sent => {
                        let mark = ProviderEvent::Mark(Mark::RequestSent);
                        return Ok(Some((mark, Attempt::Sending(sent, sending))));
                    }
                    Step::Answered(head) => {
                        let request_id = head.request_id().cloned();
                        let mark = ProviderEvent::Mark(Mark::ResponseHeaders { request_id });
                        return Ok(Some((mark, Attempt::Answered(sent, Box::new(head)))));
                    }
                },
                Attempt::Answered(sent, head) => Attempt::Streaming(Box::new(answered(*sent, *head)?)),
                Attempt::Streaming(mut streaming) => {
                    let event = streaming.pull().await?;
                    // The connection closes with the completion signal: whatever follows it is not ours to read.
                    let over = matches!(event, ProviderEvent::Completed);
                    let next = if over { Attempt::Over } else { Attempt::Streaming(streaming) };
                    return Ok(Some((event, next)));
                }
                Attempt::Over => return Ok(None),
            }
        }
    }
}

async fn start<T>(prepared: Prepared<T>, abort: AbortSignal) -> Result<(Sent<T>, Sending), Failure> {
    let Prepared { client, mut post, key, framing, translator } = prepared;
    if let Some(Key { source, header, prefix }) = key {
        let credential = tokio::select! {
            biased;
            () = abort.cancelled() => return Err(Failure::cancelled()),
            credential = source.read() => credential?,
        };
        post = post.with_header(header, credential.header(prefix));
    }
    let secrets = Secrets::of(&post.headers);
    let sending = client.post_watched(post, &abort);
    Ok((Sent { framing, translator, abort, secrets }, sending))
}

fn answered<T>(sent: Sent<T>, head: Head) -> Result<Streaming<T>, Failure> {
    let Sent { framing, translator, abort, secrets } = sent;
    let response = head.accept()?;
    let pieces = match framing {
        Framing::ServerSentEvents => response.events()?.boxed(),
        Framing::JsonLines => response.lines(framing.media_type())?,
    };
    Ok(Streaming { pieces, translator, ready: VecDeque::new(), abort, secrets })
}

impl<T: Translator> Streaming<T> {
    async fn pull(&mut self) -> Result<ProviderEvent, Failure> {
        loop {
            // Also before what is ready: the pull after an abort fails, it does not go on for a while.
            if self.abort.is_cancelled() {
                return Err(Failure::cancelled());
            }
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.pieces.next().await {
                Some(piece) => {
                    let read = self.translator.read(&piece?, &mut self.ready);
                    read.map_err(|failure| self.secrets.cleaned(failure))?;
                }
                // A clean end of the body, and no end of the answer.
                None => return Err(UpstreamError::Truncated.into()),
            }
        }
    }
}
