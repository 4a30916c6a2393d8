use http_body_util::BodyExt;

use tokio::time::Instant;

use super::*;
use crate::sse::frame::HEARTBEAT;
use crate::testing::{Step, scripted};

fn stream(steps: impl IntoIterator<Item = Step>, heartbeat_ms: u64) -> EventStream {
    let options = crate::ServerOptions { heartbeat_ms, ..crate::ServerOptions::default() };
    EventStream::new(scripted(steps).0, options.heartbeat(), None)
}

async fn text(stream: &mut EventStream) -> Option<Result<String, Broken>> {
    let frame = stream.frame().await?;
    Some(frame.map(|frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()))
}

#[tokio::test]
async fn the_terminal_event_is_the_end() {
    let mut stream = stream([Step::Event(1, 0), Step::Terminal(2), Step::Event(3, 0)], 10_000);
    assert!(text(&mut stream).await.unwrap().unwrap().starts_with("id: 1\n"));
    assert!(!stream.is_end_stream());
    assert!(text(&mut stream).await.unwrap().unwrap().starts_with("id: 2\n"));
    assert!(stream.is_end_stream());
    assert!(text(&mut stream).await.is_none());
}

/// PA-27.
#[tokio::test]
async fn nothing_above_the_cursor_is_a_clean_end() {
    assert!(text(&mut stream([], 10_000)).await.is_none());
}

/// PA-27.
#[tokio::test]
async fn an_end_without_a_terminal_event_breaks_the_transfer() {
    for last in [vec![Step::Event(1, 0)], vec![Step::Event(1, 0), Step::Fail]] {
        let mut stream = stream(last, 10_000);
        assert!(text(&mut stream).await.unwrap().is_ok());
        assert_eq!(text(&mut stream).await, Some(Err(Broken)));
        assert!(text(&mut stream).await.is_none());
    }
    assert_eq!(text(&mut stream([Step::Fail], 10_000)).await, Some(Err(Broken)));
}

/// PA-28.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_carries_a_comment_at_every_interval() {
    let mut stream = stream([Step::Event(1, 0), Step::Wait], 10_000);
    assert!(text(&mut stream).await.unwrap().unwrap().starts_with("id: 1\n"));
    let start = Instant::now();
    for beats in 1..=3u32 {
        assert_eq!(text(&mut stream).await.unwrap().unwrap(), HEARTBEAT);
        let silent = start.elapsed();
        let expected = Duration::from_secs(10) * beats;
        assert!(silent >= expected && silent < expected + Duration::from_millis(50), "{silent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_option_makes_the_silence_longer_than_clients_bear() {
    let mut stream = stream([Step::Wait], 3_600_000);
    let start = Instant::now();
    assert_eq!(text(&mut stream).await.unwrap().unwrap(), HEARTBEAT);
    assert!(start.elapsed() <= Duration::from_millis(15_050), "{:?}", start.elapsed());
}
