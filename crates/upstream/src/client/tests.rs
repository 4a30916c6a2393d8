//! The client against an upstream that misbehaves on purpose.

use futures_util::StreamExt;
use http::header::AUTHORIZATION;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::BODY_BYTES_MAX;
use crate::testing::{Gate, Script, ScriptedServer};

async fn server(script: Script) -> ScriptedServer {
    ScriptedServer::start(vec![script]).await.unwrap()
}

fn client(url: &str) -> (Client, BaseUrl) {
    let base = BaseUrl::parse(url).unwrap();
    (Client::new(&base, Timeouts::default()).unwrap(), base)
}

async fn post_to(url: &str, abort: &CancellationToken) -> Result<Response, UpstreamError> {
    let (client, base) = client(url);
    let post = Post::new(base.endpoint(&["do"]).unwrap(), "text/event-stream", b"{}".to_vec());
    client.post(post, abort).await
}

async fn post(server: &ScriptedServer) -> Result<Response, UpstreamError> {
    post_to(&server.url("/v1"), &CancellationToken::new()).await
}

/// All events' data, and the error that ended them.
async fn drain(response: Response) -> (Vec<String>, Option<UpstreamError>) {
    let mut events = match response.events() {
        Ok(events) => events,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut data = Vec::new();
    while let Some(item) = events.next().await {
        match item {
            Ok(event) => data.push(event.data),
            Err(error) => return (data, Some(error)),
        }
    }
    (data, None)
}

/// The script's events, and how they end, must be these; the request arrives exactly once.
#[track_caller]
fn streams(script: Script, expected: &[&str], error: Option<UpstreamError>) -> impl Future<Output = ()> {
    let expected: Vec<String> = expected.iter().map(|&data| data.to_owned()).collect();
    let place = std::panic::Location::caller();
    async move {
        let server = server(script).await;
        let outcome = drain(post(&server).await.ok().unwrap()).await;
        assert_eq!(outcome, (expected, error), "{place}");
        assert_eq!(server.requests().len(), 1, "{place}");
    }
}

#[tokio::test]
async fn a_request_arrives_once_as_it_was_given() {
    let server = server(Script::new().event_stream().data("a")).await;
    let (client, base) = client(&server.url("/v1/"));
    let mut secret = HeaderValue::from_static("Bearer sk-1");
    secret.set_sensitive(true);
    let post = Post::new(
        base.endpoint(&["chat", "completions"]).unwrap(),
        "text/event-stream",
        b"{\"a\":1}".to_vec(),
    )
    .with_header(AUTHORIZATION, secret);
    let response = client.post(post, &CancellationToken::new()).await.ok().unwrap();
    assert_eq!(drain(response).await, (vec!["a".to_owned()], None));
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(requests[0].body, b"{\"a\":1}");
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-1"));
    assert_eq!(requests[0].header("content-type"), Some("application/json"));
    assert_eq!(requests[0].header("accept"), Some("text/event-stream"));
    assert_eq!(requests[0].header("accept-encoding"), None);
}

#[tokio::test]
async fn a_refusal_is_its_status_and_its_body_is_not_waited_for() {
    for status in [400, 401, 404, 408, 422, 429, 500, 503] {
        let script = Script::new()
            .head(status, &["content-type: application/json", "content-length: 9000000"])
            .send("{\"error\":\"your prompt was\"")
            .stall();
        let server = server(script).await;
        assert_eq!(post(&server).await.err(), Some(UpstreamError::Status(status)));
        server.abandoned(1).await;
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn facts_64_a_redirect_is_refused_and_its_target_never_contacted() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = server(Script::new().event_stream()).await;
        let location = format!("location: {}", elsewhere.url("/v1/do"));
        let server = server(Script::new().head(status, &[&location, "content-length: 0"])).await;
        assert_eq!(post(&server).await.err(), Some(UpstreamError::Redirect(status)));
        assert_eq!((server.connections(), elsewhere.connections()), (1, 0));
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_the_head_is_not_tried_again() {
    let half_head = "HTTP/1.1 200 OK\r\ncontent-ty";
    for script in [
        Script::new(),
        Script::new().reset(),
        Script::new().send(half_head),
        Script::new().send(half_head).reset(),
        Script::new().send("garbage\r\n\r\n"),
    ] {
        let server = server(script).await;
        assert_eq!(post(&server).await.err(), Some(UpstreamError::BrokenBeforeAnswer));
        assert_eq!((server.requests().len(), server.connections()), (1, 1));
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_is_given_up() {
    for script in [Script::new().stall(), Script::new().send("HTTP/1.1 200 OK\r\n").stall()] {
        let server = server(script).await;
        let (answer, ()) = tokio::join!(post(&server), async {
            server.requested(1).await;
            tokio::time::pause();
        });
        tokio::time::resume();
        assert_eq!(answer.err(), Some(UpstreamError::NoAnswer));
        server.abandoned(1).await;
    }
}

#[tokio::test]
async fn silence_within_a_stream_ends_it() {
    let server = server(Script::new().event_stream().data("a").send("data: ha").stall()).await;
    let mut events = post(&server).await.ok().unwrap().events().ok().unwrap();
    assert_eq!(events.next().await.unwrap().ok().unwrap().data, "a");
    tokio::time::pause();
    assert_eq!(events.next().await.unwrap().err(), Some(UpstreamError::Silent));
    assert!(events.next().await.is_none());
    tokio::time::resume();
    server.abandoned(1).await;
}

#[tokio::test]
async fn comments_keep_a_stream_from_being_silent() {
    let gate = Gate::new();
    let script = Script::new().event_stream().send(": ping\n\n").wait(&gate).data("a");
    let server = server(script).await;
    let mut response = post(&server).await.ok().unwrap();
    assert_eq!(response.chunk().await.ok().flatten().as_deref(), Some(&b": ping\n\n"[..]));
    gate.open();
    assert_eq!(drain(response).await, (vec!["a".to_owned()], None));
}

#[tokio::test]
async fn bodies_that_end_early_are_told_apart() {
    let event = "data: a\n\n";
    let announced = |length: usize| format!("content-length: {length}");
    let with_length = |length: usize| {
        Script::new().head(200, &["content-type: text/event-stream", &announced(length)]).send(event)
    };
    streams(with_length(event.len()), &["a"], None).await;
    streams(with_length(event.len() + 1), &["a"], Some(UpstreamError::Broken)).await;
    streams(with_length(event.len() - 1), &[], Some(UpstreamError::Truncated)).await;
    let chunked = Script::new().chunked_event_stream().chunk(event);
    streams(chunked.clone().last_chunk(), &["a"], None).await;
    streams(chunked.clone(), &["a"], Some(UpstreamError::Broken)).await;
    streams(chunked.clone().send("zz\r\n"), &["a"], Some(UpstreamError::Broken)).await;
    streams(chunked.chunk("data: b").last_chunk(), &["a"], Some(UpstreamError::Truncated)).await;
    let closed = Script::new().event_stream().send(event);
    streams(closed.clone(), &["a"], None).await;
    streams(closed.send("data: b\n"), &["a"], Some(UpstreamError::Truncated)).await;
}

#[tokio::test]
async fn a_reset_inside_an_event_is_a_broken_connection() {
    let gate = Gate::new();
    let script = Script::new().event_stream().data("a").send("data: ha").wait(&gate).reset();
    let server = server(script).await;
    let mut events = post(&server).await.ok().unwrap().events().ok().unwrap();
    assert_eq!(events.next().await.unwrap().ok().unwrap().data, "a");
    gate.open();
    assert_eq!(events.next().await.unwrap().err(), Some(UpstreamError::Broken));
}

#[tokio::test]
async fn lines_and_characters_may_be_split_between_packets() {
    let gates = [Gate::new(), Gate::new()];
    let script = Script::new()
        .event_stream()
        .send(": start\n\n")
        .send(b"data: h\xc3".as_slice())
        .wait(&gates[0])
        .send(b"\xa9\r".as_slice())
        .wait(&gates[1])
        .send("\n\rdata: b\n\n");
    let server = server(script).await;
    let mut response = post(&server).await.ok().unwrap();
    let mut seen = Vec::new();
    let mut pieces = Vec::new();
    while let Some(piece) = response.chunk().await.ok().unwrap() {
        seen.extend_from_slice(&piece);
        pieces.push(Ok(piece));
        if seen.ends_with(b"\xc3") {
            gates[0].open();
        }
        if seen.ends_with(b"\r") {
            gates[1].open();
        }
    }
    assert!(pieces.len() >= 3, "the packets stayed apart");
    let events: Vec<_> = crate::EventStream::new(futures_util::stream::iter(pieces).boxed()).collect().await;
    let data: Vec<_> = events.into_iter().map(|item| item.ok().unwrap().data).collect();
    assert_eq!(data, ["h\u{e9}", "b"]);
}

#[tokio::test]
async fn only_an_event_stream_is_read_as_one() {
    for content_type in ["application/json", "text/event-streams", "text/html; a=text/event-stream"] {
        let header = format!("content-type: {content_type}");
        let script = Script::new().head(200, &[&header]).data("a").stall();
        let server = server(script).await;
        assert_eq!(
            drain(post(&server).await.ok().unwrap()).await,
            (vec![], Some(UpstreamError::ContentType))
        );
        server.abandoned(1).await;
    }
    streams(Script::new().head(200, &[]).data("a"), &[], Some(UpstreamError::ContentType)).await;
    streams(Script::new().head(200, &["content-type: Text/Event-Stream ;x=y"]).data("a"), &["a"], None).await;
}

#[tokio::test]
async fn an_endless_event_closes_the_connection() {
    let mut script = Script::new().event_stream().data("a").send("data: ");
    for _ in 0..80 {
        script = script.send(vec![b'x'; 64 * 1024]);
    }
    let server = server(script.stall()).await;
    let outcome = drain(post(&server).await.ok().unwrap()).await;
    assert_eq!(outcome, (vec!["a".to_owned()], Some(UpstreamError::EventTooLarge)));
    server.abandoned(1).await;
}

#[tokio::test]
async fn an_abort_closes_the_upstream_connection_at_every_stage() {
    // Set before: nothing is sent.
    let aborted = CancellationToken::new();
    aborted.cancel();
    let untouched = server(Script::new().event_stream()).await;
    assert_eq!(post_to(&untouched.url("/v1"), &aborted).await.err(), Some(UpstreamError::Aborted));
    assert_eq!(untouched.connections(), 0);

    // While the head is awaited.
    let abort = CancellationToken::new();
    let waiting = server(Script::new().stall()).await;
    let url = waiting.url("/v1");
    let (answer, ()) = tokio::join!(post_to(&url, &abort), async {
        waiting.requested(1).await;
        abort.cancel();
    });
    assert_eq!(answer.err(), Some(UpstreamError::Aborted));
    waiting.abandoned(1).await;

    // Within the body, while somebody still holds the stream.
    let abort = CancellationToken::new();
    let streaming = server(Script::new().event_stream().data("a").stall()).await;
    let mut events = post_to(&streaming.url("/v1"), &abort).await.ok().unwrap().events().ok().unwrap();
    assert!(events.next().await.unwrap().is_ok());
    abort.cancel();
    assert_eq!(events.next().await.unwrap().err(), Some(UpstreamError::Aborted));
    streaming.abandoned(1).await;
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_dropped_stream_closes_the_upstream_connection() {
    let server = server(Script::new().event_stream().data("a").stall()).await;
    let mut events = post(&server).await.ok().unwrap().events().ok().unwrap();
    assert!(events.next().await.unwrap().is_ok());
    drop(events);
    server.abandoned(1).await;
}

#[tokio::test]
async fn a_whole_body_is_bounded_whether_its_length_is_announced_or_not() {
    let fine = server(Script::new().respond(200, "application/json; charset=utf-8", "{\"a\":1}")).await;
    assert_eq!(post(&fine).await.ok().unwrap().json_bytes().await, Ok(b"{\"a\":1}".to_vec()));

    let announced = format!("content-length: {}", BODY_BYTES_MAX + 1);
    let large =
        server(Script::new().head(200, &["content-type: application/json", &announced]).stall()).await;
    assert_eq!(post(&large).await.ok().unwrap().json_bytes().await, Err(UpstreamError::BodyTooLarge));
    large.abandoned(1).await;

    let body = vec![b' '; BODY_BYTES_MAX + 1];
    let silent =
        server(Script::new().head(200, &["content-type: application/json"]).send(body).stall()).await;
    assert_eq!(post(&silent).await.ok().unwrap().json_bytes().await, Err(UpstreamError::BodyTooLarge));
    silent.abandoned(1).await;

    let html = server(Script::new().respond(200, "text/html", "<p>")).await;
    assert_eq!(post(&html).await.ok().unwrap().json_bytes().await, Err(UpstreamError::ContentType));
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let address = {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        listener.local_addr().unwrap()
    };
    let answer = post_to(&format!("http://{address}/v1"), &CancellationToken::new()).await;
    assert_eq!(answer.err(), Some(UpstreamError::Unreachable));
}

#[tokio::test]
async fn a_connection_that_is_never_accepted_is_given_up() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    // Fills the queue of connections: the kernel answers no further greeting.
    let _queued = tokio::net::TcpStream::connect(address).await.unwrap();
    let url = format!("http://{address}/v1");
    tokio::time::pause();
    assert_eq!(post_to(&url, &CancellationToken::new()).await.err(), Some(UpstreamError::Unreachable));
}

#[tokio::test]
async fn https_speaks_tls_or_nothing() {
    use tokio::io::AsyncReadExt;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let base = BaseUrl::parse(&format!("https://{}/v1", listener.local_addr().unwrap())).unwrap();
    let client = match Client::new(&base, Timeouts::default()) {
        Ok(client) => client,
        // A machine without root certificates refuses earlier, and says so.
        Err(error) => return assert_eq!(error, ClientError::NoRootCertificates),
    };
    let post = Post::new(base.endpoint(&["do"]).unwrap(), "text/event-stream", Vec::new());
    let abort = CancellationToken::new();
    let (answer, first) = tokio::join!(client.post(post, &abort), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap()
    });
    assert_eq!(answer.err(), Some(UpstreamError::Unreachable));
    assert_eq!(first, 0x16, "a TLS handshake record");
}
