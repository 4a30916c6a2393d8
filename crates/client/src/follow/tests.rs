use super::*;
use crate::script::{cut_stream, ended_stream, event, json, node, quick};

const DELTA: &str = "output.delta";
const COMPLETED: &str = "execution.completed";

fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

/// Follows to the end or to an error.
async fn drain(follow: &mut Follow) -> (Vec<u64>, Option<ClientError>) {
    let mut sequences = Vec::new();
    loop {
        match follow.next().await {
            Ok(Some(event)) => sequences.push(event.sequence),
            Ok(None) => return (sequences, None),
            Err(error) => return (sequences, Some(error)),
        }
    }
}

#[tokio::test]
async fn a_broken_stream_is_resumed_behind_its_last_whole_frame() {
    let half = &event(3, DELTA)[..20];
    let first = cut_stream(&format!("{}: heartbeat\n\n{}{half}", event(1, DELTA), event(2, DELTA)));
    let second = ended_stream(&format!("{}{}", event(3, DELTA), event(4, COMPLETED)));
    let (client, serving) = node(vec![first, second]).await;
    let mut follow = client.follow("id", 0);
    let (sequences, error) = drain(&mut follow).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(sequences, [1, 2, 3, 4]);
    assert_eq!(follow.resumed(), 1);
    let requests = serving.await.unwrap();
    let paths: Vec<&str> = requests.iter().map(|request| path(request)).collect();
    assert_eq!(paths, ["/v1/executions/id/events?after=0", "/v1/executions/id/events?after=2"]);
    assert!(follow.next().await.unwrap().is_none(), "the end stays the end");
}

#[tokio::test]
async fn a_clean_end_after_a_nonterminal_event_is_truncation() {
    let (client, serving) =
        node(vec![ended_stream(&event(1, DELTA)), ended_stream(&event(2, "execution.failed"))]).await;
    let (sequences, error) = drain(&mut client.follow("id", 0)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(sequences, [1, 2]);
    assert_eq!(path(&serving.await.unwrap()[1]), "/v1/executions/id/events?after=1");
}

#[tokio::test]
async fn an_incomplete_last_frame_before_a_clean_end_is_discarded() {
    let body = format!("{}{}", event(1, DELTA), event(2, COMPLETED).trim_end_matches('\n'));
    let (client, _serving) = node(vec![ended_stream(&body), ended_stream(&event(2, COMPLETED))]).await;
    assert_eq!(drain(&mut client.follow("id", 0)).await.0, [1, 2]);
}

#[tokio::test]
async fn nothing_behind_the_cursor_is_an_end() {
    let (client, serving) = node(vec![ended_stream("")]).await;
    let (sequences, error) = drain(&mut client.follow("id", 7)).await;
    assert!(sequences.is_empty() && error.is_none());
    assert_eq!(path(&serving.await.unwrap()[0]), "/v1/executions/id/events?after=7");
}

#[tokio::test]
async fn repeated_events_come_out_once() {
    let body = format!("{}{}{}", event(1, DELTA), event(1, DELTA), event(2, COMPLETED));
    let (client, _serving) = node(vec![ended_stream(&body)]).await;
    assert_eq!(drain(&mut client.follow("id", 0)).await.0, [1, 2]);
}

#[tokio::test]
async fn a_gap_is_no_event_stream() {
    let body = format!("{}{}", event(1, DELTA), event(3, COMPLETED));
    let (client, _serving) = node(vec![ended_stream(&body)]).await;
    let (sequences, error) = drain(&mut client.follow("id", 0)).await;
    assert_eq!(sequences, [1]);
    assert!(matches!(error, Some(ClientError::Protocol(_))), "{error:?}");
}

#[tokio::test]
async fn a_stream_that_keeps_breaking_is_given_up() {
    let mut answers = vec![cut_stream(&event(1, DELTA))];
    answers.resize(1 + quick().resume_attempts_max as usize, cut_stream(": nothing new\n\n"));
    let (client, serving) = node(answers).await;
    let (sequences, error) = drain(&mut client.follow("id", 0)).await;
    assert_eq!(sequences, [1]);
    assert!(matches!(error, Some(ClientError::Truncated { last_sequence: 1, attempts: 3 })), "{error:?}");
    assert_eq!(serving.await.unwrap().len(), 4);
}

#[tokio::test]
async fn attempts_are_counted_since_the_last_new_event() {
    let answers: Vec<String> = (1..=8).map(|sequence| cut_stream(&event(sequence, DELTA))).collect();
    let (client, _serving) =
        node(answers.into_iter().chain([ended_stream(&event(9, COMPLETED))]).collect()).await;
    let (sequences, error) = drain(&mut client.follow("id", 0)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(sequences, (1..=9).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_refusal_is_final_and_a_failing_node_is_asked_again() {
    let not_found = r#"{"error":{"code":"not_found","message":"Execution not found"}}"#;
    let (client, _serving) = node(vec![json("404 Not Found", not_found)]).await;
    let (_, error) = drain(&mut client.follow("id", 0)).await;
    assert!(
        matches!(error, Some(ClientError::Api(failure)) if failure.status == 404 && failure.code == "not_found")
    );

    let (client, _serving) =
        node(vec![json("503 Service Unavailable", "{}"), ended_stream(&event(1, COMPLETED))]).await;
    assert_eq!(drain(&mut client.follow("id", 0)).await.0, [1]);
}

#[tokio::test]
async fn a_node_that_is_gone_is_reported_as_such() {
    let (client, serving) = node(vec![]).await;
    serving.await.unwrap();
    let (_, error) = drain(&mut client.follow("id", 0)).await;
    assert!(matches!(error, Some(ClientError::Connect(_))), "{error:?}");
}

#[tokio::test]
async fn a_frame_without_end_is_refused() {
    let body = format!("data: {}", "x".repeat(crate::FRAME_BYTES_MAX));
    let (client, serving) = node(vec![ended_stream(&body)]).await;
    let (_, error) = drain(&mut client.follow("id", 0)).await;
    assert!(matches!(error, Some(ClientError::TooLarge { .. })), "{error:?}");
    drop(serving);
}
