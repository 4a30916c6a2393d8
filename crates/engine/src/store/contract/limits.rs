//! Room, retention, pins.

use super::*;

fn limits(max_executions: usize) -> StoreLimits {
    StoreLimits { max_executions, retention_ms: 1000, ..StoreLimits::default() }
}

pub async fn facts_04_a_reader_pins_a_terminal_record(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(limits(1));
    subject.finished(1).await;
    let watch = subject.watch(1, 0).await;
    let refused =
        subject.store.create(subject.new_execution(2, None)).await.expect_err("the only record is read");
    assert_eq!(refused, StoreError::Full);
    let failure = refused.to_failure();
    assert_eq!((failure.code, failure.retryable()), (PortableCode::QueueFull, false));
    drop(watch);
    subject.create(2).await;
    assert!(!subject.exists(1).await);
    // An active execution is never evicted.
    assert_eq!(subject.store.create(subject.new_execution(3, None)).await, Err(StoreError::Full));
    assert!(subject.exists(2).await);
}

pub async fn facts_05_retention_takes_record_and_identity(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { retention_ms: 10, ..StoreLimits::default() });
    subject.create_as(1, Some(identity(1, 1))).await;
    subject.advance_ms(1000);
    // Retention counts from the terminal event.
    assert!(subject.exists(1).await);
    assert_eq!(subject.append(1, 2, failed("m")).await, Ok(()));
    subject.advance_ms(9);
    assert!(subject.exists(1).await);
    subject.advance_ms(1);
    assert!(!subject.exists(1).await);
    assert_eq!(subject.store.snapshot(id(1)).await, Ok(None));
    assert!(matches!(subject.store.watch(id(1), 0).await, Ok(None)));
    assert_eq!(subject.store.list(None, 10).await, Ok(Vec::new()));
    assert_eq!(subject.store.find(identity(1, 2)).await, Ok(None));
    subject.create_as(2, Some(identity(1, 2))).await;
}

pub async fn an_expired_execution_is_served_to_its_reader_only(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { retention_ms: 10, ..StoreLimits::default() });
    subject.finished(1).await;
    let mut watch = subject.watch(1, 0).await;
    subject.advance_ms(10);
    assert!(!subject.exists(1).await);
    assert_eq!(rest(&mut watch).await, [1, 2]);
}

pub async fn facts_06_one_executions_bytes_are_limited(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { max_execution_bytes: 700, ..StoreLimits::default() });
    subject.create(1).await;
    assert_eq!(subject.append(1, 2, selected()).await, Ok(()));
    let refused = subject.append(1, 3, delta(&"x".repeat(1000))).await.expect_err("over 700 bytes");
    let failure = refused.to_failure();
    assert_eq!((failure.code, failure.retryable()), (PortableCode::QueueFull, false));
    assert_eq!(subject.append(1, 3, failed("m")).await, Ok(()));
}

/// The limits allow more, and still the snapshot stays what every client reads.
pub async fn pa_32_no_snapshot_outgrows_what_clients_read(make: &impl Fn(StoreLimits) -> Subject) {
    const CLIENTS_READ: usize = 4 << 20;
    let wide = StoreLimits { max_execution_bytes: 1 << 30, max_bytes: 1 << 30, ..StoreLimits::default() };
    let subject = make(wide);
    subject.create(1).await;
    assert_eq!(subject.append(1, 2, selected()).await, Ok(()));
    // Escaped to six bytes each, in the event as in the snapshot.
    let text = "\u{1}".repeat(20_000);
    let mut sequence = 3;
    let refused = loop {
        match subject.append(1, sequence, delta(&text)).await {
            Ok(()) => sequence += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, StoreError::ExecutionFull);
    assert_eq!(subject.append(1, sequence, failed(&"m".repeat(1000))).await, Ok(()));
    let snapshot = subject.store.snapshot(id(1)).await.expect("the store works").expect("it is there");
    let bytes = sealog_events::json::snapshot_json(&snapshot).len();
    assert!(bytes <= CLIENTS_READ && bytes > CLIENTS_READ - 200_000, "{bytes}");
}

pub async fn one_executions_events_are_limited(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { max_events: 3, ..StoreLimits::default() });
    subject.create(1).await;
    assert_eq!(subject.append(1, 2, selected()).await, Ok(()));
    assert_eq!(subject.append(1, 3, delta("x")).await, Ok(()));
    assert_eq!(subject.append(1, 4, delta("x")).await, Err(StoreError::ExecutionFull));
    assert_eq!(subject.append(1, 4, completed()).await, Ok(()));
}

pub async fn all_bytes_are_limited_and_the_oldest_terminal_goes(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { max_bytes: 3000, ..StoreLimits::default() });
    for number in [1, 2, 3] {
        subject.finished(number).await;
        subject.advance_ms(1);
    }
    subject.create(4).await;
    // What ended first makes room, and only as much as is needed.
    assert_eq!(subject.append(4, 2, delta(&"x".repeat(1200))).await, Ok(()));
    assert!(!subject.exists(1).await);
    assert!(subject.exists(3).await);
    // More than there will ever be evicts nothing.
    assert_eq!(subject.append(4, 3, delta(&"x".repeat(4000))).await, Err(StoreError::Full));
    assert!(subject.exists(3).await);
    assert_eq!(subject.append(4, 3, failed("m")).await, Ok(()));
}

pub async fn a_young_key_is_refused_for_and_not_evicted(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { min_key_age_ms: 100, max_executions: 2, ..StoreLimits::default() });
    subject.create_as(1, Some(identity(1, 1))).await;
    subject.advance_ms(1000);
    // The age counts from the end: until then nobody could have been told.
    assert_eq!(subject.append(1, 2, failed("m")).await, Ok(()));
    subject.finished(2).await;
    subject.advance_ms(99);
    // What has no key makes room first, though it ended later.
    subject.create(3).await;
    assert!(subject.exists(1).await && !subject.exists(2).await);
    let refused = subject.store.create(subject.new_execution(4, None)).await.expect_err("the key is young");
    assert_eq!(refused, StoreError::Full);
    let failure = refused.to_failure();
    assert_eq!((failure.code, failure.retryable()), (PortableCode::QueueFull, false));
    assert!(matches!(subject.store.find(identity(1, 1)).await, Ok(Some(Claim::Replay(_)))));
    subject.advance_ms(1);
    subject.create(4).await;
    assert_eq!(subject.store.find(identity(1, 1)).await, Ok(None));
    assert!(subject.exists(3).await);
}

pub async fn what_expired_is_gone_whatever_the_clock_says_later(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { retention_ms: 10, ..StoreLimits::default() });
    subject.create_as(1, Some(identity(1, 1))).await;
    assert_eq!(subject.append(1, 2, failed("m")).await, Ok(()));
    subject.finished(2).await;
    let mut watch = subject.watch(2, 0).await;
    subject.advance_ms(10);
    assert!(!subject.exists(1).await);
    subject.clock.jump_wall_ms(-10_000);
    for number in [1, 2] {
        assert!(!subject.exists(number).await);
        assert_eq!(subject.store.snapshot(id(number)).await, Ok(None));
        assert!(matches!(subject.store.watch(id(number), 0).await, Ok(None)));
    }
    assert_eq!(subject.store.list(None, 10).await, Ok(Vec::new()));
    assert_eq!(subject.store.find(identity(1, 1)).await, Ok(None));
    subject.create_as(3, Some(identity(1, 2))).await;
    assert_eq!(rest(&mut watch).await, [1, 2]);
}

pub async fn a_key_is_free_while_its_expired_execution_is_still_read(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { retention_ms: 10, ..StoreLimits::default() });
    subject.create_as(1, Some(identity(1, 1))).await;
    assert_eq!(subject.append(1, 2, failed("m")).await, Ok(()));
    let mut watch = subject.watch(1, 0).await;
    subject.advance_ms(10);
    subject.create_as(2, Some(identity(1, 2))).await;
    assert_eq!(rest(&mut watch).await, [1, 2]);
    drop(watch);
    subject.store.sweep().await.expect("the store works");
    // The older one took its record with it, not the key of the younger one.
    let found = subject.store.find(identity(1, 2)).await;
    assert!(matches!(found, Ok(Some(Claim::Replay(brief))) if brief.id == id(2)));
}

pub async fn a_sweep_takes_only_what_expired(make: &impl Fn(StoreLimits) -> Subject) {
    let subject = make(StoreLimits { retention_ms: 10, max_executions: 3, ..StoreLimits::default() });
    subject.finished(1).await;
    subject.create(2).await;
    subject.advance_ms(5);
    subject.finished(3).await;
    subject.advance_ms(5);
    subject.store.sweep().await.expect("the store works");
    assert!(!subject.exists(1).await && subject.exists(2).await && subject.exists(3).await);
    // Its room is free without an eviction.
    subject.create(4).await;
    assert!(subject.exists(3).await);
    subject.store.close().await.expect("the store closes");
    assert_eq!(subject.store.sweep().await, Err(StoreError::Closed));
}

pub async fn facts_20_a_terminal_event_has_its_own_limit_only(make: &impl Fn(StoreLimits) -> Subject) {
    let tight = StoreLimits {
        max_executions: 1,
        max_bytes: 420,
        max_execution_bytes: 420,
        max_events: 1,
        ..limits(1)
    };
    let subject = make(tight);
    subject.create(1).await;
    assert_eq!(subject.append(1, 2, delta("")).await, Err(StoreError::ExecutionFull));
    let quotes = "\"".repeat(1000);
    assert_eq!(subject.append(1, 2, failed(&quotes)).await, Err(StoreError::TerminalTooLarge));
    assert_eq!(StoreError::TerminalTooLarge.to_failure().code, PortableCode::InternalError);
    assert_eq!(subject.append(1, 2, failed(&"x".repeat(1000))).await, Ok(()));
}
