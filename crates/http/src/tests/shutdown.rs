//! How a server ends.

use sealog_engine::EngineOptions;
use tokio::net::TcpStream;

use super::node::{Node, STALLING, Setup, get, post_json};
use crate::{BindError, Server, ServerOptions, Shutdown};

/// PA-30.
#[tokio::test]
async fn an_open_stream_receives_its_terminal_event_before_the_end() {
    let mut listening = Node::new(Setup::default()).listen().await;
    let id = listening.node.submit(STALLING).await;
    let mut idle = listening.connect().await;
    assert_eq!(idle.ask(get("/v1/runtime")).await.0.status, 200);
    let mut client = listening.connect().await;
    client.send(get(&format!("/v1/executions/{id}/events"))).await;
    client.head().await;
    for _accepted_routed_and_two_deltas in 0..4 {
        client.chunk().await.unwrap();
    }
    listening.stop();
    let rest = client.chunks().await.unwrap();
    assert!(rest.starts_with("id: 5\nevent: execution.failed\n"), "{rest}");
    assert!(rest.contains(r#""status":"cancelled""#), "{rest}");
    assert_eq!(client.closed().await, b"");
    assert_eq!(idle.closed().await, b"");
    let address = listening.address;
    assert_eq!(listening.ended().await, Shutdown::Clean);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_unfinished_request_body_outlasts_the_grace_time() {
    let server = ServerOptions { grace_ms: 100, ..ServerOptions::default() };
    let mut listening = Node::new(Setup { server, ..Setup::default() }).listen().await;
    let mut client = listening.connect().await;
    // Asking first proves that the server took the request up before the stop.
    client
        .send("POST /v1/executions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 50\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status, 100);
    listening.stop();
    assert_eq!(listening.ended().await, Shutdown::GraceExpired);
    client.closed().await;
}

#[tokio::test]
async fn work_that_does_not_end_is_no_clean_end() {
    let server = ServerOptions { grace_ms: 50, ..ServerOptions::default() };
    let engine = EngineOptions { cleanup_ms: 3_600_000, shutdown_ms: 3_600_000, ..EngineOptions::default() };
    let mut listening = Node::new(Setup { server, engine, ..Setup::default() }).listen().await;
    let ignoring =
        STALLING.replace(r#""stall_after":2"#, r#""chunks":1000,"delay_ms":3600000,"ignore_cancel":true"#);
    let mut client = listening.connect().await;
    assert_eq!(client.ask(post_json(&ignoring)).await.0.status, 202);
    listening.stop();
    assert_eq!(listening.ended().await, Shutdown::GraceExpired);
}

#[tokio::test]
async fn an_address_beyond_loopback_needs_permission() {
    let address = "0.0.0.0:0".parse().unwrap();
    let refused = Server::bind(address, ServerOptions::default()).await;
    assert!(matches!(refused, Err(BindError::NonLoopback(_))), "{refused:?}");
    let options = ServerOptions { allow_non_loopback: true, ..ServerOptions::default() };
    assert_ne!(Server::bind(address, options).await.unwrap().local_addr().unwrap().port(), 0);
}

#[tokio::test]
async fn a_taken_port_is_reported() {
    let first = Server::bind("127.0.0.1:0".parse().unwrap(), ServerOptions::default()).await.unwrap();
    let second = Server::bind(first.local_addr().unwrap(), ServerOptions::default()).await;
    assert!(matches!(second, Err(BindError::Listen { .. })), "{second:?}");
}
