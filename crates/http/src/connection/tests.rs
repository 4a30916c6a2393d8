//! The bounds of a connection, on a pipe and with a clock that stands until everybody waits.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::get;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use sealog_engine::store::Watch;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::drive::Ended;
use super::*;
use crate::ServerOptions;
use crate::sse::EventStream;
use crate::testing::{Raw, Step, scripted};

const GET: &str = "GET /now HTTP/1.1\r\nhost: a\r\n\r\n";
const GET_STREAM: &str = "GET /stream HTTP/1.1\r\nhost: a\r\n\r\n";
const PIPE_BYTES: usize = 4096;
const BIG_BYTES: usize = 40_000;

/// `/now` and `/big` answer at once, `/stream` streams `watch`.
fn router(watch: Option<Box<dyn Watch>>) -> Router {
    let watch = Arc::new(Mutex::new(watch));
    let stream = move |request: Request| {
        let watch = watch.lock().unwrap().take().expect("one stream a test");
        let activity = request.extensions().get::<Arc<Activity>>().map(Arc::clone);
        async move { Response::new(Body::new(EventStream::new(watch, Duration::from_secs(10), activity))) }
    };
    Router::new()
        .route("/now", get(|| async { "now" }))
        .route("/big", get(|| async { "x".repeat(BIG_BYTES) }))
        .route("/stream", get(stream))
}

fn serve_pipe(router: Router) -> (DuplexStream, JoinHandle<Ended>, Lifetime) {
    let (ours, theirs) = duplex(PIPE_BYTES);
    let lifetime = Lifetime::default();
    let options = Arc::new(ServerOptions::default());
    let serving = tokio::spawn(serve(theirs, router, options, lifetime.clone()));
    (ours, serving, lifetime)
}

fn pipe(router: Router) -> (Raw<DuplexStream>, JoinHandle<Ended>, Lifetime) {
    let (ours, serving, lifetime) = serve_pipe(router);
    (Raw::new(ours), serving, lifetime)
}

#[track_caller]
fn check_elapsed(start: Instant, wait_ms: u64) {
    let (elapsed, wait) = (start.elapsed(), Duration::from_millis(wait_ms));
    assert!(elapsed >= wait && elapsed <= wait + Duration::from_secs(2), "{elapsed:?} instead of {wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed() {
    let (_client, serving, _) = pipe(router(None));
    let start = Instant::now();
    serving.await.unwrap();
    check_elapsed(start, ServerOptions::default().idle_timeout_ms);
}

#[tokio::test(start_paused = true)]
async fn silence_between_two_requests_is_bounded_by_the_idle_time_not_the_head_time() {
    let (mut client, serving, _) = pipe(router(None));
    sleep(Duration::from_secs(50)).await;
    assert_eq!(client.ask(GET).await.1, "now");
    sleep(Duration::from_secs(50)).await;
    assert_eq!(client.ask(GET).await.1, "now");
    let start = Instant::now();
    serving.await.unwrap();
    check_elapsed(start, ServerOptions::default().idle_timeout_ms);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_in_is_given_up() {
    for first in ["", GET] {
        let (mut client, serving, _) = pipe(router(None));
        if !first.is_empty() {
            client.ask(first).await;
        }
        let start = Instant::now();
        let trickle = async {
            client.send("GET /now HTTP/1.1\r\nx: ").await;
            loop {
                sleep(Duration::from_secs(1)).await;
                client.send("y").await;
            }
        };
        let ended = tokio::select! {
            ended = serving => ended.unwrap(),
            () = trickle => unreachable!("it never ends"),
        };
        assert_eq!(ended, Ended::Overdue(super::activity::Overdue::Head));
        check_elapsed(start, ServerOptions::default().header_read_timeout_ms);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_bytes_of_an_http2_preface_do_not_buy_time() {
    let (mut client, serving, _) = pipe(router(None));
    let start = Instant::now();
    client.send("PRI * HT").await;
    serving.await.unwrap();
    check_elapsed(start, ServerOptions::default().header_read_timeout_ms);
}

#[tokio::test(start_paused = true)]
async fn facts_48_a_paused_reader_is_given_few_events_and_its_watch_ends_with_it() {
    let (watch, observed) = scripted((1..=200).map(|sequence| Step::Event(sequence, 128 * 1024)));
    let (mut client, serving, _) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    assert_eq!(client.head().await.status, 200);
    sleep(Duration::from_millis(80)).await;
    assert_eq!(observed.pulled(), 1, "the first frame does not fit into the pipe, so no second one is made");
    drop(client);
    observed.dropped().await;
    serving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_paused_reader_costs_one_frame_beyond_its_socket() {
    let (watch, observed) = scripted((1..=200).map(|sequence| Step::Event(sequence, 900)));
    let (mut client, _serving, _) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    client.head().await;
    sleep(Duration::from_millis(80)).await;
    // About 950 bytes each, of which the pipe and the bytes read along with the head hold a few.
    let pulled = observed.pulled();
    assert!(pulled <= 2 * PIPE_BYTES / 900 + 1, "{pulled}");
    for expected in 1..=pulled {
        assert!(client.chunk().await.unwrap().starts_with(&format!("id: {expected}\n")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_asks_for_the_next_event_when_the_frame_before_is_out() {
    let (watch, observed) = scripted([Step::Event(1, 6000), Step::Event(2, 6000), Step::Terminal(3)]);
    let (mut client, _serving, _) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    client.head().await;
    for expected in ["id: 1\n", "id: 2\n", "id: 3\n"] {
        assert!(client.chunk().await.unwrap().starts_with(expected));
    }
    assert_eq!(client.chunk().await.unwrap(), "");
    observed.dropped().await;
    assert_eq!(client.ask(GET).await.1, "now", "the connection goes on after a stream");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_is_dropped_and_one_that_takes_little_is_not() {
    let (watch, observed) = scripted([Step::Event(1, 40_000), Step::Wait]);
    let (mut client, serving, _) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    client.head().await;
    let mut little = vec![0; 3000];
    for _ in 0..5 {
        sleep(Duration::from_secs(250)).await;
        client.io.read_exact(&mut little).await.unwrap();
    }
    let start = Instant::now();
    assert_eq!(serving.await.unwrap(), Ended::Overdue(super::activity::Overdue::Reader));
    check_elapsed(start, ServerOptions::default().reader_stall_ms);
    observed.dropped().await;
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_may_be_taken_slowly() {
    let (mut client, serving, _) = pipe(router(None));
    client.send("GET /big HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.head().await;
    for _ in 0..BIG_BYTES / 4000 {
        sleep(Duration::from_secs(250)).await;
        client.exactly(4000).await.unwrap();
    }
    assert_ne!(serving.await.unwrap(), Ended::Overdue(super::activity::Overdue::Reader));
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_outlives_every_wait() {
    let (watch, _observed) = scripted([Step::Event(1, 0), Step::Wait]);
    let (mut client, _serving, _) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    client.head().await;
    client.chunk().await.unwrap();
    let start = Instant::now();
    for _ in 0..100 {
        assert_eq!(client.chunk().await.unwrap(), crate::SSE_HEARTBEAT);
    }
    assert!(start.elapsed() >= Duration::from_secs(990));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_breaks_the_transfer_between_two_frames() {
    let (watch, _observed) = scripted([Step::Event(1, 0), Step::Fail]);
    let (mut client, _serving, _) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    client.head().await;
    assert!(client.chunk().await.unwrap().ends_with("\n\n"));
    assert!(client.chunk().await.is_err(), "no last chunk may follow");
}

#[tokio::test(start_paused = true)]
async fn stop_closes_what_is_idle_and_finishes_what_is_not() {
    let (mut idle, idle_serving, stop_idle) = pipe(router(None));
    idle.ask(GET).await;
    let (watch, _observed) = scripted([Step::Event(1, 0), Step::Event(2, 6000), Step::Terminal(3)]);
    let (mut client, serving, stop) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    client.head().await;
    client.chunk().await.unwrap();
    stop.stop.cancel();
    stop_idle.stop.cancel();
    assert_eq!(idle_serving.await.unwrap(), Ended::Finished);
    assert!(client.chunks().await.unwrap().contains("id: 3\n"));
    assert_eq!(serving.await.unwrap(), Ended::Finished);
}

#[tokio::test(start_paused = true)]
async fn stop_does_not_wait_for_who_says_nothing() {
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for begun in ["", "GET /now HT", preface] {
        let (mut client, serving, lifetime) = pipe(router(None));
        client.send(begun).await;
        sleep(Duration::from_millis(10)).await;
        let start = Instant::now();
        lifetime.stop.cancel();
        serving.await.unwrap();
        assert!(start.elapsed() <= Duration::from_millis(1050), "{begun:?}: {:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn kill_drops_what_is_left() {
    let (watch, observed) = scripted([Step::Wait]);
    let (mut client, serving, lifetime) = pipe(router(Some(watch)));
    client.send(GET_STREAM).await;
    client.head().await;
    lifetime.kill.cancel();
    assert_eq!(serving.await.unwrap(), Ended::Killed);
    observed.dropped().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_head_is_answered_like_everything_else() {
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(101));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(66_000));
    for (request, status) in
        [("BAD\r\n\r\n", 400), ("GET / HTTP/9.9\r\n\r\n", 400), (&many, 431), (&long, 431)]
    {
        for first in [false, true] {
            let (mut client, _serving, _) = pipe(router(None));
            if first {
                assert_eq!(client.ask(GET).await.1, "now");
            }
            // The server may close before it took the whole of an oversized head.
            let sending = tokio::io::AsyncWriteExt::write_all(&mut client.io, request.as_bytes()).await;
            assert!(sending.is_ok() || status != 400, "{sending:?}");
            let (head, body) = client.answer().await;
            assert_eq!(head.status, status);
            head.check_fixed_headers();
            assert_eq!(head.header("content-type"), Some("application/json; charset=utf-8"));
            assert_eq!(
                body,
                r#"{"error":{"code":"invalid_request","message":"Request head could not be read","retryable":false}}"#
            );
            assert_eq!(client.closed().await, b"");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order() {
    let (mut client, _serving, _) = pipe(router(None));
    client.send(GET.repeat(3) + "GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n").await;
    for expected in [200, 200, 200, 404] {
        let (head, _) = client.answer().await;
        assert_eq!(head.status, expected);
    }
}

/// An HTTP/2 client on a pipe, with a window of its own choice.
async fn http2_client(
    pipe: DuplexStream,
    window: u32,
) -> hyper::client::conn::http2::SendRequest<Empty<bytes::Bytes>> {
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(window)
        .handshake(TokioIo::new(pipe))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

fn http2_get(path: &str) -> http::Request<Empty<bytes::Bytes>> {
    http::Request::get(format!("http://a{path}")).body(Empty::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn http2_is_served_and_its_silence_is_bounded() {
    let (watch, observed) = scripted([Step::Event(1, 0), Step::Terminal(2)]);
    let (pipe, serving, _) = serve_pipe(router(Some(watch)));
    let mut client = http2_client(pipe, 65_535).await;
    sleep(Duration::from_secs(5)).await;
    let answer = client.send_request(http2_get("/stream")).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.ends_with(b"\n\n") && body.starts_with(b"id: 1\n"));
    observed.dropped().await;
    let start = Instant::now();
    serving.await.unwrap();
    check_elapsed(start, ServerOptions::default().idle_timeout_ms);
    assert!(client.send_request(http2_get("/now")).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_http2_reader_that_opens_no_window_is_dropped_although_its_socket_works() {
    let (watch, observed) = scripted((1..=200).map(|sequence| Step::Event(sequence, 128 * 1024)));
    let (pipe, serving, _) = serve_pipe(router(Some(watch)));
    let mut client = http2_client(pipe, 65_535).await;
    let answer = client.send_request(http2_get("/stream")).await.unwrap();
    let start = Instant::now();
    assert_eq!(serving.await.unwrap(), Ended::Overdue(super::activity::Overdue::Reader));
    check_elapsed(start, ServerOptions::default().reader_stall_ms);
    assert!(observed.pulled() <= 2, "one frame in the window and one behind it: {}", observed.pulled());
    observed.dropped().await;
    drop(answer);
}
