//! The provider against a scripted queue, over a real socket.

use futures_util::{FutureExt, StreamExt};
use sealog_events::{Phase, PortableCode};
use sealog_execution::{AbortSignal, ProviderEvent, conformance};
use sealog_upstream::testing::{self, Gate, Script, ScriptedServer};
use serde_json::{Value, json};

use super::*;

const MODEL: &str = "fal-ai/some/model";
const POLLING: Polling =
    Polling { interval: Duration::from_millis(1), count_max: 120, cancel: Duration::from_secs(60) };
/// Short enough to wait for, where nothing else happens, and long enough for all that comes before.
const SHORT: Duration = Duration::from_secs(1);
/// For cancels that nobody answers.
const GIVING_UP: Polling = Polling { cancel: SHORT, ..POLLING };

/// Only a script that falls silent is not waited for.
fn times(script: &Script) -> Timeouts {
    let usual = Timeouts::default();
    if script.stalls() { Timeouts { head: SHORT, idle: SHORT, ..usual } } else { usual }
}

/// A queue: the first script answers the submission and must name its own addresses, which the server has only once it
/// runs; relative ones are below the base.
fn submitted() -> Script {
    let body = json!({"request_id": "r", "cancel_url": "/r/cancel", "status_url": "/r/status", "response_url": "/r"});
    json_answer(200, body)
}

fn json_answer(status: u16, body: Value) -> Script {
    Script::new().respond(status, "application/json", &body.to_string())
}

fn status(name: &str) -> Script {
    json_answer(200, json!({"status": name, "queue_position": 1}))
}

fn image() -> Script {
    json_answer(200, json!({"images": [{"url": "https://h/1.png", "content_type": "image/png"}]}))
}

async fn queue(scripts: Vec<Script>) -> ScriptedServer {
    ScriptedServer::start(scripts).await.unwrap()
}

/// No secret: what must be found in the header and nowhere else.
const KEY_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/provider/canary.key");

fn provider_of(server: &ScriptedServer, model: &str, timeouts: Timeouts, polling: Polling) -> FalQueue {
    let url = server.url("");
    let text = format!(
        "model = '{model}'\nabilities = ['image-generation']\nbase_url = '{url}'\napi_key_file = '{KEY_FILE}'"
    );
    FalQueue::with_times(toml::from_str(&text).unwrap(), timeouts, polling).unwrap()
}

fn provider(server: &ScriptedServer) -> FalQueue {
    provider_of(server, MODEL, Timeouts::default(), POLLING)
}

fn call(model: &str, abort: &AbortSignal) -> ModelCall {
    let body = json!({"ability": "image-generation", "input": [{"type": "text", "text": "a cat"}]});
    testing::call(&body, model, abort)
}

type Outcome = (Vec<ProviderEvent>, Option<Failure>);

async fn run(provider: &FalQueue) -> Outcome {
    let mut stream =
        testing::unmarked(provider.execute(call(&provider.upstream.model.model, &AbortSignal::new())));
    let (mut events, mut failure) = (Vec::new(), None);
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(failed) => failure = Some(failed),
        }
    }
    (events, failure)
}

fn asked(server: &ScriptedServer) -> Vec<String> {
    server.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

#[track_caller]
fn failed(outcome: &Outcome, code: PortableCode, retryable: bool, provider_code: Option<&str>) {
    let failure = outcome.1.as_ref().expect("a failure");
    assert_eq!((failure.code, failure.retryable()), (code, retryable), "{failure:?}");
    assert_eq!(failure.provider_code.as_deref(), provider_code);
    assert!(!format!("{failure} {failure:?}").contains("canary"));
}

const SUBMIT: &str = "POST /fal-ai/some/model";

/// A refusal whose body nobody must wait for.
fn endless(status: u16) -> Script {
    let headers = ["content-type: application/json", "content-length: 1000000"];
    Script::new().head(status, &headers).send("{").stall()
}

/// What a queue cannot do is refused before anything is sent.
#[tokio::test]
async fn requirements_that_a_queue_cannot_meet_are_refused() {
    let server = queue(vec![submitted()]).await;
    let provider = provider(&server);
    for needs in [
        json!({"stream": true}),
        json!({"tools": true}),
        json!({"structured_output": true}),
        json!({"output_modalities": ["video"]}),
        json!({"input_modalities": ["image"]}),
    ] {
        let body = json!({"ability": "image-generation", "input": [{"type": "text", "text": "a"}], "requirements": needs});
        let refused = provider.execute(testing::call(&body, MODEL, &AbortSignal::new())).next().await;
        assert_eq!(refused.unwrap().unwrap_err().code, PortableCode::CapabilityUnavailable, "{needs}");
    }
    assert_eq!(server.connections(), 0);
}

/// Statement 60.
#[tokio::test]
async fn facts_60_a_task_is_submitted_watched_and_fetched() {
    let server = queue(vec![
        submitted(),
        status("IN_QUEUE"),
        status("IN_QUEUE"),
        status("IN_PROGRESS"),
        status("COMPLETED"),
        image(),
    ])
    .await;
    let (events, failure) = run(&provider(&server)).await;
    assert_eq!(failure, None);
    let phase = |phase| ProviderEvent::Progress { phase, progress: None };
    assert_eq!(events[..2], [phase(Phase::Queued), phase(Phase::Processing)]);
    let [_, _, ProviderEvent::Result { result, artifacts: Some(artifacts) }, ProviderEvent::Completed] =
        &events[..]
    else {
        panic!("a result and the completion signal");
    };
    assert!(result.contains("images"));
    assert_eq!((artifacts.len(), artifacts[0].media_type.as_deref()), (1, Some("image/png")));
    let seen = asked(&server);
    assert_eq!((seen[0].as_str(), seen[1].as_str(), seen[5].as_str()), (SUBMIT, "GET /r/status", "GET /r"));
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Key sk-canary")));
    assert!(requests.iter().all(|request| request.holds_only_in("authorization", "sk-canary")));
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(body, json!({"prompt": "a cat"}));
}

#[tokio::test]
async fn the_conformance_suite_passes() {
    let once = [submitted(), status("IN_QUEUE"), status("COMPLETED"), image()];
    let again = [submitted(), status("IN_QUEUE"), Script::new().stall(), json_answer(202, json!({}))];
    let server = queue(once.into_iter().chain(again).collect()).await;
    let report = conformance::run(Arc::new(provider(&server))).await;
    assert!(report.passed, "{:?}", report.failed());
    assert_eq!(report.provider, "fal");
}

/// Statement 62.
#[tokio::test]
async fn facts_62_an_abort_cancels_the_task_once() {
    let server =
        queue(vec![submitted(), status("IN_QUEUE"), Script::new().stall(), json_answer(202, json!({}))])
            .await;
    let abort = AbortSignal::new();
    let mut stream = testing::unmarked(provider(&server).execute(call(MODEL, &abort)));
    assert!(matches!(stream.next().await, Some(Ok(ProviderEvent::Progress { .. }))));
    let (failure, ()) = tokio::join!(stream.next(), async {
        server.requested(3).await;
        abort.cancel();
    });
    assert_eq!(failure.unwrap().unwrap_err().code, PortableCode::Cancelled);
    assert!(stream.next().await.is_none());
    drop(stream);
    assert_eq!(asked(&server)[3..], ["PUT /r/cancel"]);
    assert_eq!(server.requests()[3].header("authorization"), Some("Key sk-canary"));
}

#[tokio::test]
async fn facts_62_a_cancel_that_stalls_is_bounded_and_the_failure_stays() {
    let server = queue(vec![submitted(), json_answer(503, json!({})), Script::new().stall()]).await;
    let outcome = run(&provider_of(&server, MODEL, Timeouts::default(), GIVING_UP)).await;
    failed(&outcome, PortableCode::ProviderUnavailable, false, Some("503"));
    assert_eq!(asked(&server)[2..], ["PUT /r/cancel"]);
    server.abandoned(1).await;
}

#[tokio::test]
async fn a_dropped_stream_cancels_the_task() {
    let server = queue(vec![submitted(), status("IN_QUEUE"), json_answer(202, json!({}))]).await;
    let mut stream = testing::unmarked(provider(&server).execute(call(MODEL, &AbortSignal::new())));
    assert!(matches!(stream.next().await, Some(Ok(_))));
    drop(stream);
    server.requested(3).await;
    assert_eq!(asked(&server)[2..], ["PUT /r/cancel"]);
}

/// A submission whose answer is held back until the gate opens: before its head, or behind it.
fn held(before_the_head: bool, gate: &Gate) -> Script {
    let body =
        json!({"cancel_url": "/r/cancel", "status_url": "/r/status", "response_url": "/r"}).to_string();
    let head = |script: Script| {
        let length = format!("content-length: {}", body.len());
        script.head(200, &["content-type: application/json", &length])
    };
    let script =
        if before_the_head { head(Script::new().wait(gate)) } else { head(Script::new()).wait(gate) };
    script.send(body.clone())
}

/// A stream of which so many marks were taken.
async fn marked(provider: &FalQueue, abort: &AbortSignal, marks: usize) -> ProviderStream {
    let mut stream = provider.execute(call(MODEL, abort));
    for _ in 0..marks {
        assert!(matches!(stream.next().await, Some(Ok(ProviderEvent::Mark(_)))));
    }
    stream
}

#[tokio::test]
async fn a_task_that_was_not_named_yet_is_cancelled_once_it_is() {
    for before_the_head in [true, false] {
        let marks = if before_the_head { 1 } else { 2 };
        for dropped in [true, false] {
            let gate = Gate::new();
            let server = queue(vec![held(before_the_head, &gate), json_answer(202, json!({}))]).await;
            let abort = AbortSignal::new();
            let provider = provider(&server);
            let mut stream = marked(&provider, &abort, marks).await;
            server.requested(1).await;
            if dropped {
                drop(stream);
                gate.open();
            } else {
                // Half the way in, and then told to stop.
                assert!(stream.next().now_or_never().is_none());
                abort.cancel();
                assert!(stream.next().now_or_never().is_none(), "the task is being looked for");
                gate.open();
                assert_eq!(stream.next().await.unwrap().unwrap_err().code, PortableCode::Cancelled);
                assert!(stream.next().await.is_none());
            }
            server.requested(2).await;
            assert_eq!(asked(&server), [SUBMIT, "PUT /r/cancel"]);
            assert_eq!(server.requests()[1].header("authorization"), Some("Key sk-canary"));
        }
    }
}

#[tokio::test]
async fn a_task_that_is_never_named_is_not_looked_for_longer_than_a_cancel_takes() {
    for before_the_head in [true, false] {
        for dropped in [true, false] {
            let server = queue(vec![held(before_the_head, &Gate::new())]).await;
            let abort = AbortSignal::new();
            let provider = provider_of(&server, MODEL, Timeouts::default(), GIVING_UP);
            let mut stream = marked(&provider, &abort, if before_the_head { 1 } else { 2 }).await;
            server.requested(1).await;
            if dropped {
                drop(stream);
            } else {
                abort.cancel();
                assert_eq!(stream.next().await.unwrap().unwrap_err().code, PortableCode::Cancelled);
            }
            server.abandoned(1).await;
            assert_eq!(asked(&server), [SUBMIT]);
        }
    }
}

#[tokio::test]
async fn facts_62_what_was_completed_is_not_cancelled() {
    let server = queue(vec![submitted(), status("COMPLETED"), json_answer(503, json!({}))]).await;
    failed(&run(&provider(&server)).await, PortableCode::ProviderUnavailable, false, Some("503"));
    let error = json!({"status": "COMPLETED", "error": "canary", "error_type": "timeout"});
    let other = queue(vec![submitted(), json_answer(200, error)]).await;
    failed(&run(&provider(&other)).await, PortableCode::ProviderUnavailable, false, Some("timeout"));
    for server in [server, other] {
        assert!(asked(&server).iter().all(|line| !line.starts_with("PUT")));
    }
}

#[tokio::test]
async fn a_task_that_never_ends_is_given_up() {
    let mut scripts = vec![submitted(), status("IN_PROGRESS"), status("IN_PROGRESS")];
    scripts.push(json_answer(202, json!({})));
    let server = queue(scripts).await;
    let polling = Polling { count_max: 2, ..POLLING };
    let outcome = run(&provider_of(&server, MODEL, Timeouts::default(), polling)).await;
    failed(&outcome, PortableCode::DeadlineExceeded, false, None);
    assert_eq!(asked(&server)[3..], ["PUT /r/cancel"]);
    assert_eq!(POLLING.wait(0) * 16, POLLING.wait(119));
}

#[tokio::test]
async fn a_refused_submission_keeps_its_class_and_a_lost_one_is_never_retried() {
    use PortableCode::{ProviderProtocolError, ProviderUnavailable, RateLimited};
    let named = |name: &str| json!({"cancel_url": "/c", "status_url": "/s", name: "https://evil.example/x"});
    let huge = "x".repeat(4 * 1024 * 1024 + 1);
    for (script, code, retryable, provider_code) in [
        (json_answer(429, json!({"canary": 1})), RateLimited, true, Some("429")),
        (json_answer(503, json!({"canary": 1})), ProviderUnavailable, true, Some("503")),
        (json_answer(422, json!({"canary": 1})), ProviderUnavailable, false, Some("422")),
        (endless(503), ProviderUnavailable, true, Some("503")),
        (endless(400), ProviderUnavailable, false, Some("400")),
        (Script::new(), ProviderUnavailable, false, None),
        (Script::new().reset(), ProviderUnavailable, false, None),
        (Script::new().send("HTTP/1.1 200 OK\r\ncont").stall(), ProviderUnavailable, false, None),
        (Script::new().respond(200, "text/html", "canary"), ProviderProtocolError, false, None),
        (Script::new().respond(200, "application/json", "{"), ProviderProtocolError, false, None),
        (Script::new().respond(200, "application/json", &huge), ProviderProtocolError, false, None),
        (json_answer(200, json!({})), ProviderProtocolError, false, None),
        (json_answer(200, named("cancel_url")), ProviderProtocolError, false, None),
    ] {
        let times = times(&script);
        let server = queue(vec![script]).await;
        let outcome = run(&provider_of(&server, MODEL, times, POLLING)).await;
        failed(&outcome, code, retryable, provider_code);
        assert_eq!((asked(&server), server.connections()), (vec![SUBMIT.to_owned()], 1));
    }
}

#[tokio::test]
async fn a_submission_whose_answer_falls_silent_is_lost() {
    let idle = Timeouts { idle: SHORT, ..Timeouts::default() };
    let half = Script::new().head(200, &["content-type: application/json"]).send("{\"cancel_url\":");
    let server = queue(vec![half.stall()]).await;
    let outcome = run(&provider_of(&server, MODEL, idle, POLLING)).await;
    failed(&outcome, PortableCode::ProviderUnavailable, false, None);
    assert_eq!(asked(&server), [SUBMIT]);
}

/// The n-th answer of a task that goes well, cut anywhere and ended cleanly.
#[tokio::test]
async fn an_answer_cut_at_any_byte_never_completes() {
    let bodies = [
        r#"{"cancel_url":"/r/cancel","status_url":"/r/status","response_url":"/r"}"#,
        r#"{"status":"COMPLETED"}"#,
        r#"{"url":"https://h/\u00e9.png"}"#,
    ];
    let answer = |body: &[u8]| Script::new().head(200, &["content-type: application/json"]).send(body);
    for (at, body) in bodies.iter().enumerate() {
        for cut in 0..body.len() {
            let mut scripts: Vec<Script> = bodies[..at].iter().map(|body| answer(body.as_bytes())).collect();
            scripts.push(answer(&body.as_bytes()[..cut]));
            // A task that may be running is cancelled; one that was completed is not.
            scripts.push(json_answer(202, json!({})));
            let server = queue(scripts).await;
            let outcome = run(&provider(&server)).await;
            failed(&outcome, PortableCode::ProviderProtocolError, false, None);
            assert!(!outcome.0.contains(&ProviderEvent::Completed), "answer {at} cut at {cut}");
            let cancelled = asked(&server).iter().any(|line| line == "PUT /r/cancel");
            assert_eq!(cancelled, at == 1, "answer {at} cut at {cut}");
        }
    }
}

#[tokio::test]
async fn an_unsafe_address_beside_a_safe_cancel_gives_the_task_up() {
    for name in ["status_url", "response_url"] {
        let mut body = json!({"cancel_url": "/r/cancel", "status_url": "/s", "response_url": "/r"});
        body[name] = "https://evil.example/x".into();
        let server = queue(vec![json_answer(200, body), json_answer(202, json!({}))]).await;
        failed(&run(&provider(&server)).await, PortableCode::ProviderProtocolError, false, None);
        assert_eq!(asked(&server), [SUBMIT, "PUT /r/cancel"]);
    }
}

/// Statement 64.
#[tokio::test]
async fn facts_64_redirects_are_never_followed() {
    let elsewhere = queue(vec![image()]).await;
    let location = format!("location: {}", elsewhere.url("/r"));
    for code in [301, 302, 303, 307, 308] {
        let redirect = || Script::new().head(code, &[&location, "content-length: 0"]);
        for scripts in [
            vec![redirect()],
            vec![submitted(), redirect(), redirect()],
            vec![submitted(), status("COMPLETED"), redirect()],
        ] {
            let server = queue(scripts).await;
            let code = code.to_string();
            failed(&run(&provider(&server)).await, PortableCode::ProviderUnavailable, false, Some(&code));
        }
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn answers_while_watching_that_are_none_give_the_task_up() {
    use PortableCode::{ProviderProtocolError, ProviderUnavailable};
    let huge = format!("\"{}\"", "x".repeat(4 * 1024 * 1024));
    let half = Script::new().head(200, &["content-type: application/json", "content-length: 100"]).send("{");
    for (script, code) in [
        (status("canary"), ProviderProtocolError),
        (Script::new().respond(200, "application/json", "[1]"), ProviderProtocolError),
        (Script::new().respond(200, "text/plain", "{}"), ProviderProtocolError),
        (half.clone(), ProviderUnavailable),
        (half.clone().reset(), ProviderUnavailable),
        (half.stall(), ProviderUnavailable),
        (Script::new(), ProviderUnavailable),
        (Script::new().reset(), ProviderUnavailable),
        (Script::new().stall(), ProviderUnavailable),
        (Script::new().send("HTTP/1.1 200 OK\r\ncont").stall(), ProviderUnavailable),
        (Script::new().respond(200, "application/json", &huge), ProviderProtocolError),
        (
            Script::new().head(200, &["content-type: application/json"]).send(*b"{\"status\":\"\xff\"}"),
            ProviderProtocolError,
        ),
    ] {
        let server = queue(vec![submitted(), script.clone(), json_answer(202, json!({}))]).await;
        failed(&run(&provider_of(&server, MODEL, times(&script), POLLING)).await, code, false, None);
        assert_eq!(asked(&server)[2..], ["PUT /r/cancel"]);
    }
}

/// Once it was seen completed there is nothing to cancel, whatever comes of fetching it.
#[tokio::test]
async fn results_that_are_none_fail_and_cancel_nothing() {
    use PortableCode::{ProviderProtocolError, ProviderUnavailable};
    let huge = format!("\"{}\"", "x".repeat(4 * 1024 * 1024));
    let half = Script::new().head(200, &["content-type: application/json", "content-length: 100"]).send("{");
    for (script, code, provider_code) in [
        (json_answer(404, json!({"canary": 1})), ProviderUnavailable, Some("404")),
        (endless(503), ProviderUnavailable, Some("503")),
        (json_answer(429, json!({"canary": 1})), PortableCode::RateLimited, Some("429")),
        (json_answer(500, json!({"canary": 1})), ProviderUnavailable, Some("500")),
        (half.clone().reset(), ProviderUnavailable, None),
        (half.clone(), ProviderUnavailable, None),
        (half.stall(), ProviderUnavailable, None),
        (Script::new().stall(), ProviderUnavailable, None),
        (Script::new().respond(200, "text/html", "canary"), ProviderProtocolError, None),
        (Script::new().respond(200, "application/json", &huge), ProviderProtocolError, None),
    ] {
        let times = times(&script);
        let server = queue(vec![submitted(), status("COMPLETED"), script]).await;
        failed(&run(&provider_of(&server, MODEL, times, POLLING)).await, code, false, provider_code);
        assert_eq!(asked(&server)[1..], ["GET /r/status", "GET /r"]);
    }
}

#[tokio::test]
async fn a_model_that_leaves_the_origin_is_invalid_and_nothing_is_sent() {
    let server = queue(vec![submitted()]).await;
    for model in ["https://evil.example/x", "../x", "a?b", "a#b", "a//b", "/", "u@h"] {
        let provider = provider_of(&server, model, Timeouts::default(), POLLING);
        failed(&run(&provider).await, PortableCode::InvalidRequest, false, None);
    }
    let provider = provider(&server);
    let other = provider.execute(call("other", &AbortSignal::new())).next().await.unwrap().unwrap_err();
    assert_eq!(other.code, PortableCode::CapabilityUnavailable);
    drop(provider.execute(call(MODEL, &AbortSignal::new())));
    assert_eq!(server.connections(), 0);
    assert!(!format!("{provider:?}").contains("sk-canary"));
}

#[tokio::test]
async fn an_answer_in_other_pieces_is_the_same_answer() {
    let body = "{\r\n\"url\":\"https://h/\u{e9}\u{1f600}.png\",\r\"n\":1}\r\n";
    let head = || Script::new().head(200, &["content-type: application/json; charset=utf-8"]);
    let bytewise = body.bytes().fold(head(), |script, byte| script.send([byte]));
    for script in [head().send(body), bytewise] {
        let server = queue(vec![submitted(), status("COMPLETED"), script]).await;
        let (events, failure) = run(&provider(&server)).await;
        assert_eq!(failure, None);
        let [ProviderEvent::Result { result, artifacts: Some(artifacts) }, ProviderEvent::Completed] =
            &events[..]
        else {
            panic!("a result and the completion signal");
        };
        assert_eq!((result.as_str(), artifacts.len()), (body, 1));
        assert_eq!(artifacts[0].uri, "https://h/\u{e9}\u{1f600}.png");
    }
}
