use std::collections::VecDeque;

use axum::routing::get;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::testing::Raw;

const GET: &str = "GET /now HTTP/1.1\r\nhost: a\r\n\r\n";

/// Gives what it was told to give and reports every call.
struct Script {
    results: VecDeque<io::Result<DuplexStream>>,
    calls: mpsc::UnboundedSender<Instant>,
}

impl Listen for Script {
    type Socket = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        self.calls.send(Instant::now()).unwrap();
        match self.results.pop_front() {
            Some(result) => result,
            None => std::future::pending().await,
        }
    }
}

fn start(
    results: impl IntoIterator<Item = io::Result<DuplexStream>>,
    options: ServerOptions,
) -> (tokio::task::JoinHandle<io::Error>, mpsc::UnboundedReceiver<Instant>) {
    let (calls, called) = mpsc::unbounded_channel();
    let router = Router::new().route("/now", get(|| async { "now" }));
    let listener = Script { results: results.into_iter().collect(), calls };
    let accepting = accept_loop(listener, router, Arc::new(options), Lifetime::default());
    (tokio::spawn(accepting), called)
}

fn os(code: i32) -> io::Result<DuplexStream> {
    Err(io::Error::from_raw_os_error(code))
}

#[tokio::test(start_paused = true)]
async fn out_of_descriptors_backs_off_and_goes_on() {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    let (ours, theirs) = duplex(4096);
    let mut results: Vec<_> = (0..12).map(|n| os(if n % 2 == 0 { EMFILE } else { ENFILE })).collect();
    results.push(Ok(theirs));
    let (accepting, mut called) = start(results, ServerOptions::default());
    assert_eq!(Raw::new(ours).ask(GET).await.1, "now");
    let mut waits = Vec::new();
    let mut before = called.recv().await.unwrap();
    for _ in 0..12 {
        let now = called.recv().await.unwrap();
        waits.push(now - before);
        before = now;
    }
    assert!(waits[0] >= BACK_OFF_FIRST, "{waits:?}");
    assert!(
        waits.is_sorted() && *waits.last().unwrap() <= BACK_OFF_LAST + Duration::from_millis(10),
        "{waits:?}"
    );
    assert!(!accepting.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_gave_up_costs_no_wait() {
    const ECONNABORTED: i32 = 103;
    let (ours, theirs) = duplex(4096);
    let start_at = Instant::now();
    let (_accepting, _called) =
        start([os(ECONNABORTED), os(ECONNABORTED), Ok(theirs)], ServerOptions::default());
    assert_eq!(Raw::new(ours).ask(GET).await.1, "now");
    assert!(start_at.elapsed() < BACK_OFF_FIRST);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_none_any_more_ends_the_loop() {
    let (accepting, _called) = start([os(9)], ServerOptions::default());
    assert_eq!(accepting.await.unwrap().raw_os_error(), Some(9));
}

#[tokio::test(start_paused = true)]
async fn above_the_cap_nothing_is_accepted_until_a_connection_ends() {
    let (first, first_theirs) = duplex(4096);
    let (second, second_theirs) = duplex(4096);
    let options = ServerOptions { max_connections: 1, ..ServerOptions::default() };
    let (_accepting, mut called) = start([Ok(first_theirs), Ok(second_theirs)], options);
    let mut first = Raw::new(first);
    assert_eq!(first.ask(GET).await.1, "now");
    called.recv().await.unwrap();
    // Virtual time passes only when nothing else can happen.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(called.try_recv().is_err());
    drop(first);
    assert_eq!(Raw::new(second).ask(GET).await.1, "now");
}
