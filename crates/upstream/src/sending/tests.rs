use http::HeaderValue;
use http::header::AUTHORIZATION;
use sealog_execution::AbortSignal;

use super::*;
use crate::testing::{Script, ScriptedServer};
use crate::{BaseUrl, Client, Post, Timeouts};

fn sending(server: &ScriptedServer, abort: &AbortSignal) -> Sending {
    let base = BaseUrl::parse(&server.url("")).unwrap();
    let client = Client::new(&base, Timeouts::default()).unwrap();
    let post = Post::new(base.endpoint(&["a"]).unwrap(), "application/json", b"{\"k\":1}".to_vec());
    client.post_watched(post, abort)
}

#[tokio::test]
async fn a_request_is_sent_once_and_then_answered() {
    let script = Script::new().head(204, &["x-request-id: r-1"]);
    let server = ScriptedServer::start(vec![script]).await.unwrap();
    let mut sending = sending(&server, &AbortSignal::new());
    assert_eq!((server.connections(), server.requests().len()), (0, 0), "nothing happens before it is asked");
    assert!(matches!(sending.next().await, Ok(Step::Sent)));
    let Ok(Step::Answered(head)) = sending.next().await else { panic!("no head") };
    assert_eq!(head.request_id().map(RequestId::as_str), Some("r-1"));
    assert!(head.accept().is_ok());
    // As a body in one piece: its length is told.
    let [request] = &server.requests()[..] else { panic!("one request") };
    assert_eq!((request.header("content-length"), request.header("transfer-encoding")), (Some("7"), None));
    assert_eq!(request.body, b"{\"k\":1}");
}

#[tokio::test]
async fn whether_it_was_sent_is_known_without_being_told() {
    let server = ScriptedServer::start(vec![Script::new().head(204, &[])]).await.unwrap();
    let mut sending = sending(&server, &AbortSignal::new());
    assert!(!sending.was_sent());
    // The future that would tell is dropped before it does.
    tokio::select! {
        biased;
        _ = sending.next() => panic!("nothing was waited for"),
        () = std::future::ready(()) => {}
    }
    assert!(!sending.was_sent(), "no connection is open yet");
    assert!(matches!(sending.next().await, Ok(Step::Sent)));
    assert!(sending.was_sent());
    assert!(matches!(sending.next().await, Ok(Step::Answered(_))));
    assert!(sending.was_sent());
}

#[tokio::test]
async fn an_identifier_that_holds_the_key_is_none() {
    let script = || Script::new().head(401, &["x-request-id: req-sk-0123456789"]);
    let server = ScriptedServer::start(vec![script(), script()]).await.unwrap();
    for (key, expected) in [("Bearer sk-0123456789", None), ("Bearer another-key", Some("req-sk-0123456789"))]
    {
        let base = BaseUrl::parse(&server.url("")).unwrap();
        let client = Client::new(&base, Timeouts::default()).unwrap();
        let mut value = HeaderValue::from_static(key);
        value.set_sensitive(true);
        let post = Post::new(base.endpoint(&["a"]).unwrap(), "application/json", b"{}".to_vec());
        let mut sending = client.post_watched(post.with_header(AUTHORIZATION, value), &AbortSignal::new());
        assert!(matches!(sending.next().await, Ok(Step::Sent)));
        let Ok(Step::Answered(head)) = sending.next().await else { panic!("no head") };
        assert_eq!(head.request_id().map(RequestId::as_str), expected);
    }
}

#[tokio::test]
async fn what_was_never_connected_was_never_sent() {
    let server = ScriptedServer::absent().await.unwrap();
    let told = sending(&server, &AbortSignal::new()).next().await;
    assert!(matches!(told, Err(UpstreamError::Unreachable)), "{told:?}");
}

#[tokio::test]
async fn an_abort_before_the_start_sends_nothing() {
    let server = ScriptedServer::start(vec![Script::new().stall()]).await.unwrap();
    let abort = AbortSignal::new();
    abort.cancel();
    assert!(matches!(sending(&server, &abort).next().await, Err(UpstreamError::Aborted)));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_request_without_an_answer_was_sent() {
    let server = ScriptedServer::start(vec![Script::new().stall()]).await.unwrap();
    let abort = AbortSignal::new();
    let mut sending = sending(&server, &abort);
    assert!(matches!(sending.next().await, Ok(Step::Sent)));
    server.requested(1).await;
    abort.cancel();
    assert!(matches!(sending.next().await, Err(UpstreamError::Aborted)));
}

#[test]
fn the_first_identifier_counts_and_must_be_one() {
    let headers = |named: &[(&'static str, &'static str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        request_id(&headers).map(|id| id.as_str().to_owned())
    };
    assert_eq!(headers(&[]), None);
    assert_eq!(headers(&[("request-id", "b"), ("x-request-id", "a")]).as_deref(), Some("a"));
    assert_eq!(headers(&[("request-id", "b")]).as_deref(), Some("b"));
    assert_eq!(headers(&[("x-fal-request-id", "c")]).as_deref(), Some("c"));
    assert_eq!(headers(&[("x-request-id", "two words")]), None);
}
