//! Drives one connection to its end: hyper, the deadlines, and the two ways to be stopped.
//!
//! hyper's own head timeout stays armed behind ours, as the bound of a pipelined head that came in while an
//! answer was still going out.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::activity::{Activity, Due, InFlight, Overdue, Waits};
use super::executor::TrackedExecutor;
use super::io::NotedIo;
use crate::options::ServerOptions;

/// A peer told to go away gets this long to read the farewell.
const FAREWELL: Duration = Duration::from_secs(1);

/// How the connections of one server end together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lifetime {
    /// Finish what is in flight, take nothing more.
    pub stop: CancellationToken,
    /// Drop everything now.
    pub kill: CancellationToken,
    /// Every connection and every HTTP/2 stream still running.
    pub tasks: TaskTracker,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// hyper finished, with or without an error of the peer.
    Finished,
    /// A wait was over; the socket is dropped.
    Overdue(Overdue),
    /// The grace time was over.
    Killed,
}

fn builder(options: &ServerOptions, lifetime: &Lifetime) -> auto::Builder<TrackedExecutor> {
    let executor = TrackedExecutor { tasks: lifetime.tasks.clone(), kill: lifetime.kill.clone() };
    let mut builder = auto::Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.idle_timeout() + options.header_read_timeout())
        .max_headers(options.max_headers)
        .max_buf_size(options.max_buf_bytes.max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(options.max_concurrent_streams)
        .max_header_list_size(u32::try_from(options.max_buf_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20))
        .max_send_buf_size(options.max_buf_bytes.max(8192));
    builder
}

/// Serves one connection until it ends.
pub(crate) async fn serve<S>(
    socket: S,
    router: Router,
    options: Arc<ServerOptions>,
    lifetime: Lifetime,
) -> Ended
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Activity::new();
    let waits = Waits {
        idle: options.idle_timeout(),
        head: options.header_read_timeout(),
        reader: options.reader_stall(),
    };
    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |request: Request<Incoming>| {
            let in_flight = activity.begin(request.version());
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Arc::clone(&activity));
            let router = router.clone();
            async move {
                let response = router.oneshot(request).await?;
                Ok::<_, std::convert::Infallible>(response.map(|body| Answer { body, _in_flight: in_flight }))
            }
        }
    });
    let builder = builder(&options, &lifetime);
    let io = TokioIo::new(NotedIo::new(socket, Arc::clone(&activity)));
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut timer = pin!(sleep_until(Instant::now()));
    let mut stop = pin!(lifetime.stop.cancelled());
    let mut kill = pin!(lifetime.kill.cancelled());
    let mut left_at: Option<Instant> = None;
    poll_fn(move |cx| {
        loop {
            if kill.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ended::Killed);
            }
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ended::Finished);
            }
            if left_at.is_none() && stop.as_mut().poll(cx).is_ready() {
                left_at = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
                continue;
            }
            let Some(due) = activity.due(&waits, cx.waker()) else { return Poll::Pending };
            let at = deadline(due, left_at);
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match due.overdue {
                Overdue::Idle if left_at.is_none() => {
                    left_at = Some(Instant::now());
                    connection.as_mut().graceful_shutdown();
                }
                Overdue::Idle | Overdue::Head | Overdue::Reader => {
                    return Poll::Ready(Ended::Overdue(due.overdue));
                }
            }
        }
    })
    .await
}

/// Who was told to go away and has no request of ours under way gets the time of a farewell: a peer that is
/// gone, or never finishes its head, must not use up the grace time of the others.
fn deadline(due: Due, left_at: Option<Instant>) -> Instant {
    match (left_at, due.overdue) {
        (Some(left_at), Overdue::Idle | Overdue::Head) => due.since.max(left_at) + due.wait.min(FAREWELL),
        (None, Overdue::Idle | Overdue::Head) | (_, Overdue::Reader) => due.since + due.wait,
    }
}

/// The body of an answer, which keeps its request in flight.
#[derive(Debug)]
struct Answer {
    body: Body,
    _in_flight: InFlight,
}

impl http_body::Body for Answer {
    type Data = bytes::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
