//! Creating, claiming and appending.

use futures_util::future::join_all;
use sealog_events::{Status, limits::NAME_BYTES_MAX};

use super::*;
use crate::store::Brief;

pub async fn create_replays_and_conflicts(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    let (mine, other) = (identity(1, 1), identity(1, 2));
    assert_eq!(subject.store.find(mine).await, Ok(None));
    subject.create_as(1, Some(mine)).await;
    let created_at = subject.now();
    subject.advance_ms(5);
    let brief = |status, last_sequence| Brief { id: id(1), created_at, status, last_sequence };
    let replay = Claim::Replay(brief(Status::Accepted, 1));
    assert_eq!(subject.store.create(subject.new_execution(2, Some(mine))).await, Ok(replay));
    assert_eq!(subject.store.find(mine).await, Ok(Some(replay)));
    assert_eq!(subject.store.create(subject.new_execution(2, Some(other))).await, Ok(Claim::Conflict));
    assert_eq!(subject.store.find(other).await, Ok(Some(Claim::Conflict)));
    assert!(!subject.exists(2).await);
    // A replay tells the current status, also of a failed execution.
    assert_eq!(subject.append(1, 2, failed("m")).await, Ok(()));
    let replay = Claim::Replay(brief(Status::Failed, 2));
    assert_eq!(subject.store.find(mine).await, Ok(Some(replay)));
    subject.create_as(3, Some(identity(2, 1))).await;
}

pub async fn concurrent_creates_agree_on_one_execution(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    let creates =
        (1..=64).map(|number| subject.store.create(subject.new_execution(number, Some(identity(7, 7)))));
    let claims = join_all(creates).await;
    assert_eq!(claims.iter().filter(|claim| **claim == Ok(Claim::New)).count(), 1);
    let mut winners = Vec::new();
    for claim in claims {
        match claim.expect("there is room") {
            Claim::New => {}
            Claim::Replay(brief) => winners.push(brief.id),
            Claim::Conflict => panic!("the requests are equal"),
        }
    }
    winners.dedup();
    assert_eq!(winners.len(), 1);
    assert_eq!(subject.store.list(None, 100).await.map(|list| list.len()), Ok(1));
}

pub async fn facts_01_order_is_enforced_and_nothing_follows_a_terminal(
    make: &impl Fn(StoreLimits) -> Subject,
) {
    let subject = make(StoreLimits::default());
    let mut second_first = subject.new_execution(1, None);
    second_first.accepted.sequence = 2;
    let refused = subject.store.create(second_first).await.expect_err("sequence 2 is not first");
    assert_eq!(refused.to_failure().code, PortableCode::InternalError);
    subject.create(1).await;
    for wrong in [1, 3] {
        assert_eq!(subject.append(1, wrong, selected()).await, Err(StoreError::OutOfOrder));
    }
    assert_eq!(subject.append(1, 2, selected()).await, Ok(()));
    assert_eq!(subject.append(1, 2, selected()).await, Err(StoreError::OutOfOrder));
    assert_eq!(subject.append(1, 3, completed()).await, Ok(()));
    for body in [completed(), delta("x"), failed("m")] {
        let refused = subject.append(1, 4, body).await.expect_err("the execution has ended");
        assert_eq!(refused, StoreError::Ended);
        assert_eq!(refused.to_failure().code, PortableCode::InternalError);
    }
    let brief = subject.store.brief(id(1)).await.expect("the store works").expect("it is there");
    assert_eq!((brief.status, brief.last_sequence), (Status::Succeeded, 3));
}

pub async fn unknown_executions_are_absent(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    assert_eq!(subject.store.brief(id(1)).await, Ok(None));
    assert_eq!(subject.store.snapshot(id(1)).await, Ok(None));
    assert!(matches!(subject.store.watch(id(1), 0).await, Ok(None)));
    assert_eq!(subject.append(1, 2, selected()).await, Err(StoreError::Unknown));
    assert!(subject.store.available());
}

pub async fn unstorable_events_are_refused(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits::default());
    subject.create(1).await;
    let call_id = "c".repeat(NAME_BYTES_MAX + 1);
    let started = EventBody::ToolCallStarted { call_id, name: "n".to_owned() };
    assert_eq!(subject.append(1, 2, started).await, Err(StoreError::Unstorable));
    assert_eq!(subject.append(1, 2, selected()).await, Ok(()));
}
