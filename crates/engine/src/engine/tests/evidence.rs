//! What providers prove of their attempts, beside the events.

use sealog_events::{Mark, PortableCode, Reached, RequestId, Status};
use sealog_execution::{Failure, ProviderEvent};

use super::harness::*;

fn sent() -> Step {
    Step::Send(ProviderEvent::Mark(Mark::RequestSent))
}

fn answered(request_id: &str) -> Step {
    let request_id = RequestId::new(request_id);
    Step::Send(ProviderEvent::Mark(Mark::ResponseHeaders { request_id }))
}

/// RM-32.
#[tokio::test(start_paused = true)]
async fn every_attempt_shows_how_far_it_came() {
    let busy = Failure::transient(PortableCode::ProviderUnavailable, "m");
    let first = Scripted::new("a", vec![sent(), answered("r-1"), Step::Fail(busy.clone())]);
    let second = Scripted::new("b", vec![Step::Fail(busy.clone())]);
    let third = Scripted::new("c", vec![sent(), Step::Fail(busy)]);
    let fourth = Scripted::new("d", vec![sent(), answered("r-4"), text("x"), completed()]);
    let bench = Setup::new(vec![first, second, third, fourth]).start();
    let story = bench.run(&body(r#""routing":{"allow_fallback":true}"#)).await;
    assert_eq!(story.snapshot.status, Status::Succeeded);
    let shown: Vec<_> = story
        .snapshot
        .attempts
        .iter()
        .map(|attempt| {
            let request_id = attempt.request_id.as_ref().map(RequestId::as_str);
            (
                attempt.number,
                attempt.target.provider.as_str(),
                attempt.reached,
                request_id,
                attempt.error.is_some(),
            )
        })
        .collect();
    let expected = [
        (1, "a", Reached::ResponseHeaders, Some("r-1"), true),
        (2, "b", Reached::Selected, None, true),
        (3, "c", Reached::RequestSent, None, true),
        (4, "d", Reached::FirstOutput, Some("r-4"), false),
    ];
    assert_eq!(shown, expected);
    // Evidence is no event and stops no fallback.
    assert_eq!(story.types.len(), 1 + 4 + 3 + 2);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_under_way_shows_it_too() {
    let bench = bench(vec![sent(), Step::Sleep(1000), completed()]);
    let id = bench.submit(BODY).await.execution_id;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let snapshot = bench.engine.snapshot(id).await.unwrap().unwrap();
    assert_eq!(snapshot.attempts[0].reached, Reached::RequestSent);
    assert_eq!(snapshot.attempts[0].reached.words(), "request was sent, no reply seen");
    assert_eq!(snapshot.last_sequence, 2);
}

#[tokio::test(start_paused = true)]
async fn a_step_is_kept_once_and_in_order() {
    let steps = vec![
        sent(),
        sent(),
        answered("r-1"),
        answered("r-2"),
        sent(),
        text("x"),
        answered("r-3"),
        completed(),
    ];
    let bench = bench(steps);
    let story = bench.run(BODY).await;
    let kept = noted(&bench.log).into_iter().filter(|what| what.starts_with("noted")).collect::<Vec<_>>();
    assert_eq!(kept, ["noted request_sent of 1", "noted response_headers of 1"]);
    assert_eq!(story.snapshot.attempts[0].request_id.as_ref().unwrap().as_str(), "r-1");
}
