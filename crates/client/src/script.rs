//! A scripted node for tests: one raw answer per connection, and what each connection asked.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::{Client, ClientOptions};

/// A node that gives `answers` in turn and then stops listening. Its handle yields the requests as text.
pub(crate) async fn node(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !is_whole(&request) {
                assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0, "request cut short");
            }
            requests.push(String::from_utf8(request).unwrap());
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
        requests
    });
    (Client::with_options(&url, quick()).unwrap(), serving)
}

/// Waits that only shorten the pauses between two attempts.
pub(crate) fn quick() -> ClientOptions {
    ClientOptions {
        resume_attempts_max: 3,
        resume_wait: Duration::from_millis(1),
        resume_wait_max: Duration::from_millis(2),
        ..ClientOptions::default()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(request) else { return false };
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// A whole JSON answer.
pub(crate) fn json(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A stream that is cut off without the end of its transfer.
pub(crate) fn cut_stream(body: &str) -> String {
    format!("{STREAM_HEAD}{:x}\r\n{body}\r\n", body.len())
}

/// A stream with a clean end of its transfer.
pub(crate) fn ended_stream(body: &str) -> String {
    match body {
        "" => format!("{STREAM_HEAD}0\r\n\r\n"),
        body => format!("{}0\r\n\r\n", cut_stream(body)),
    }
}

/// One frame.
pub(crate) fn event(sequence: u64, type_name: &str) -> String {
    format!("id: {sequence}\nevent: {type_name}\ndata: {{\"sequence\":{sequence}}}\n\n")
}
