//! Snapshots, watches, lists, and the store's end.

use sealog_events::{Dialect, Origin, json, materialize};

use sealog_events::{Labels, Snapshot, Status};

use super::*;
use crate::store::ListPosition;
use crate::store::listing::{Filter, Page, list};

pub async fn origins_are_kept_with_their_execution(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    let origin = Origin {
        dialect: Dialect::OpenAiResponses,
        model: "m".to_owned(),
        max_tokens: Some(9),
        background: true,
    };
    let new = NewExecution { origin: Some(origin.clone()), ..subject.new_execution(1, None) };
    assert_eq!(subject.store.create(new).await, Ok(Claim::New));
    subject.create(2).await;
    assert_eq!(subject.store.origin(id(1)).await, Ok(Some(origin.clone())));
    assert_eq!(subject.store.origin(id(2)).await, Ok(None));
    assert_eq!(subject.store.origin(id(3)).await, Ok(None));
    assert_eq!(subject.append(1, 2, failed("m")).await, Ok(()));
    assert_eq!(subject.store.origin(id(1)).await, Ok(Some(origin)));
}

pub async fn snapshots_are_the_fold_of_the_events(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    subject.create(1).await;
    let created_at = subject.now();
    let mut events = vec![subject.new_execution(1, None).accepted];
    for (body, sequence) in [selected(), delta("a"), delta("b"), completed()].into_iter().zip(2..) {
        subject.advance_ms(3);
        let event = Event { sequence, time: subject.now(), body };
        assert_eq!(subject.store.append(id(1), event.clone()).await, Ok(()));
        events.push(event);
        let expected = materialize::materialize(id(1), created_at, &events);
        assert_eq!(subject.store.snapshot(id(1)).await, Ok(Some(expected)));
    }
    let text = subject.store.snapshot(id(1)).await.ok().flatten().and_then(|snapshot| snapshot.result);
    assert!(text.is_some_and(|result| result.as_str().contains("\"ab\"")));
}

pub async fn watches_replay_and_follow_to_the_terminal(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    subject.create(1).await;
    let mut early = subject.watch(1, 0).await;
    assert!(matches!(poll(&mut early), Pulled::Event(event) if event.sequence == 1));
    assert_eq!(poll(&mut early), Pulled::Waiting);
    let follower = tokio::spawn(async move { rest(&mut early).await });
    tokio::task::yield_now().await;
    assert_eq!(subject.append(1, 2, selected()).await, Ok(()));
    let mut late = subject.watch(1, 0).await;
    assert_eq!(subject.append(1, 3, delta("x")).await, Ok(()));
    assert_eq!(subject.append(1, 4, completed()).await, Ok(()));
    assert_eq!(follower.await.expect("the follower ends"), [2, 3, 4]);
    assert_eq!(rest(&mut late).await, [1, 2, 3, 4]);
    assert_eq!(poll(&mut late), Pulled::End);
    assert_eq!(rest(&mut subject.watch(1, 0).await).await, [1, 2, 3, 4]);
}

pub async fn watches_start_behind_their_cursor(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    subject.create(1).await;
    let mut ahead = subject.watch(1, 3).await;
    let mut far = subject.watch(1, u64::MAX).await;
    for (body, sequence) in [selected(), delta("x"), delta("y")].into_iter().zip(2..) {
        assert_eq!(poll(&mut ahead), Pulled::Waiting);
        assert_eq!(subject.append(1, sequence, body).await, Ok(()));
    }
    assert!(matches!(poll(&mut ahead), Pulled::Event(event) if event.sequence == 4));
    assert_eq!(poll(&mut far), Pulled::Waiting);
    assert_eq!(subject.append(1, 5, completed()).await, Ok(()));
    assert_eq!(rest(&mut ahead).await, [5]);
    assert_eq!(poll(&mut far), Pulled::End);
    for after in [5, 6, u64::MAX] {
        assert_eq!(poll(&mut subject.watch(1, after).await), Pulled::End);
    }
    assert_eq!(rest(&mut subject.watch(1, 3).await).await, [4, 5]);
}

pub async fn dropped_pulls_lose_nothing(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    subject.create(1).await;
    let mut watch = subject.watch(1, 1).await;
    for sequence in 2..20 {
        assert_eq!(poll(&mut watch), Pulled::Waiting);
        assert_eq!(poll(&mut watch), Pulled::Waiting);
        assert_eq!(subject.append(1, sequence, delta("x")).await, Ok(()));
        assert!(matches!(poll(&mut watch), Pulled::Event(event) if event.sequence == sequence));
    }
}

pub async fn watched_text_is_the_events_json(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    subject.create(1).await;
    let event = Event { sequence: 2, time: subject.now(), body: delta("\"\n\u{1F600}") };
    assert_eq!(subject.store.append(id(1), event.clone()).await, Ok(()));
    assert_eq!(subject.append(1, 3, failed("m")).await, Ok(()));
    let mut watch = subject.watch(1, 1).await;
    let Pulled::Event(stored) = poll(&mut watch) else { panic!("the event is durable") };
    assert_eq!(stored.data, json::event_json(id(1), &event));
    assert_eq!((stored.type_name, stored.terminal), ("output.delta", false));
    let Pulled::Event(stored) = poll(&mut watch) else { panic!("the event is durable") };
    assert_eq!((stored.type_name, stored.terminal), ("execution.failed", true));
}

pub async fn lists_page_in_creation_order(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    for number in [5, 3, 4] {
        subject.create(number).await;
        subject.advance_ms(1);
    }
    let numbers = |list: Vec<crate::Brief>| list.into_iter().map(|brief| brief.id).collect::<Vec<_>>();
    let first = subject.store.list(None, 2).await.expect("the store works");
    let position = first.last().map(|brief| ListPosition { created_at: brief.created_at, id: brief.id });
    assert_eq!(numbers(first), [id(5), id(3)]);
    let second = subject.store.list(position, 2).await.expect("the store works");
    assert_eq!(numbers(second), [id(4)]);
    assert_eq!(subject.store.list(None, 0).await, Ok(Vec::new()));
}

pub async fn closing_wakes_readers_and_refuses_calls(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    subject.create(1).await;
    let mut watch = subject.watch(1, 1).await;
    let waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    assert!(subject.store.available());
    assert_eq!(subject.store.close().await, Ok(()));
    let woken = waiting.await.expect("the reader ends").expect("not the end of the stream");
    assert_eq!(woken.expect_err("the store is closed").to_failure().code, PortableCode::InternalError);
    assert!(!subject.store.available());
    assert!(subject.store.brief(id(1)).await.is_err());
    assert!(subject.append(1, 2, selected()).await.is_err());
    assert!(subject.store.create(subject.new_execution(2, None)).await.is_err());
    assert!(subject.store.watch(id(1), 0).await.is_err());
    assert_eq!(subject.store.close().await, Ok(()));
}

pub async fn pages_show_the_youngest_first_and_go_on_behind_their_place(
    make: &impl Fn(StoreLimits) -> Subject,
) {
    let subject = make(StoreLimits::default());
    let everything = Filter::default;
    assert_eq!(subject.store.page(everything(), None, 5).await, Ok(Page::default()));
    for number in [5, 3, 4, 1] {
        subject.create(number).await;
        subject.advance_ms(1);
    }
    let numbers = |page: &Page| page.listed.iter().map(|listed| listed.brief.id).collect::<Vec<_>>();
    let first = subject.store.page(everything(), None, 2).await.expect("the store works");
    assert_eq!(numbers(&first), [id(1), id(4)]);
    // What comes and goes meanwhile moves nothing.
    subject.create(9).await;
    assert_eq!(subject.append(4, 2, failed("m")).await, Ok(()));
    let second = subject.store.page(everything(), first.next, 2).await.expect("the store works");
    assert_eq!((numbers(&second), second.next), (vec![id(3), id(5)], None));
    let all = subject.store.page(everything(), None, 100).await.expect("the store works");
    assert_eq!((all.listed.len(), all.next), (5, None));
}

pub async fn a_page_ends_before_too_much_was_read_for_it(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    let text = "x".repeat(1_000_000);
    for number in 1..=4 {
        subject.create(number).await;
        assert_eq!(subject.append(number, 2, selected()).await, Ok(()));
        for sequence in 3..=5 {
            assert_eq!(subject.append(number, sequence, delta(&text)).await, Ok(()));
        }
        subject.advance_ms(1);
    }
    let page = async |before| {
        let listing = list(&*subject.store, Filter::default(), before, 100).await.expect("the store works");
        assert!(listing.entries.iter().all(|entry| entry.len() < 1000));
        (listing.entries.len(), listing.next)
    };
    let (entries, next) = page(None).await;
    assert_eq!((entries, next.map(|place| place.id)), (3, Some(id(2))));
    assert_eq!(page(next).await, (1, None));
}

pub async fn outlines_are_the_snapshots_without_results_as_far_as_they_fit(
    make: &impl Fn(StoreLimits) -> Subject,
) {
    let subject = make(StoreLimits::default());
    for number in 1..=3 {
        subject.create(number).await;
    }
    // One under way, one at hand, one that must be read.
    assert_eq!(subject.append(1, 2, failed("m")).await, Ok(()));
    assert_eq!(subject.append(2, 2, selected()).await, Ok(()));
    assert_eq!(subject.append(2, 3, delta("x")).await, Ok(()));
    let asked = vec![id(9), id(3), id(1), id(8), id(2)];
    let all = subject.store.outlines(asked.clone(), usize::MAX).await.expect("the store works");
    for (id, outline) in asked.iter().zip(&all) {
        let snapshot = subject.store.snapshot(*id).await.expect("the store works");
        let expected = snapshot
            .map(|snapshot| json::snapshot_json(&Snapshot { result: None, artifacts: None, ..snapshot }));
        assert_eq!(*outline, expected);
    }
    assert_eq!(all.len(), 5);
    let length = |at: usize| all[at].as_ref().map_or(0, String::len);
    for (bytes_max, count) in [
        (0, 2),
        (length(1), 2),
        (length(1) + length(2) - 1, 2),
        (length(1) + length(2), 4),
        (length(1) + length(2) + length(4), 5),
    ] {
        let some = subject.store.outlines(asked.clone(), bytes_max).await.expect("the store works");
        assert_eq!(some, all[..count], "{bytes_max}");
    }
}

pub async fn pages_take_what_the_filter_names(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    for (number, ability) in [(1, Some("a")), (2, Some("b")), (3, None), (4, Some("a"))] {
        let mut new = subject.new_execution(number, None);
        new.labels = ability.map(|ability| Labels { ability: ability.to_owned() });
        assert_eq!(subject.store.create(new).await, Ok(Claim::New));
        subject.advance_ms(1);
    }
    assert_eq!(subject.append(4, 2, failed("m")).await, Ok(()));
    let page = async |status: Option<Status>, ability: Option<&str>| {
        let filter = Filter { status, ability: ability.map(str::to_owned) };
        let page = subject.store.page(filter, None, 100).await.expect("the store works");
        assert_eq!(page.next, None);
        page.listed.into_iter().map(|listed| (listed.brief.id, listed.ability)).collect::<Vec<_>>()
    };
    let a = || Some("a".to_owned());
    assert_eq!(page(None, Some("a")).await, [(id(4), a()), (id(1), a())]);
    assert_eq!(page(Some(Status::Failed), Some("a")).await, [(id(4), a())]);
    assert_eq!(page(Some(Status::Failed), Some("b")).await, []);
    assert_eq!(
        page(Some(Status::Accepted), None).await,
        [(id(3), None), (id(2), Some("b".to_owned())), (id(1), a())]
    );
    subject.advance_ms(StoreLimits::default().retention_ms);
    assert_eq!(page(None, Some("a")).await, [(id(1), a())]);
}
