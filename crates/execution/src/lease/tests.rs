use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::poll;

use super::*;

#[track_caller]
fn check(gate: &Gate, active: usize, queued: usize) {
    assert_eq!(gate.counts(), GateCounts { active, queued });
}

#[test]
fn a_lease_is_released_exactly_once() {
    let count = Arc::new(AtomicU32::new(0));
    let lease = |count: &Arc<AtomicU32>| {
        let count = Arc::clone(count);
        Lease::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        })
    };
    lease(&count).release();
    assert_eq!(count.load(Ordering::Relaxed), 1);
    drop(lease(&count));
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

/// RM-14.
#[tokio::test]
async fn facts_41_one_runs_one_waits_and_gets_in_on_release() {
    let gate = Gate::new(1, 1);
    let first = gate.acquire().await.unwrap();
    let mut second = pin!(gate.acquire());
    assert!(poll!(&mut second).is_pending());
    check(&gate, 1, 1);
    assert_eq!(gate.acquire().await.err(), Some(GateFull));
    first.release();
    let second = second.await.unwrap();
    check(&gate, 1, 0);
    second.release();
    check(&gate, 0, 0);
}

/// RM-14.
#[tokio::test]
async fn facts_41_without_a_queue_the_second_is_refused() {
    let gate = Gate::new(1, 0);
    let first = gate.try_acquire().unwrap();
    assert_eq!(gate.acquire().await.err(), Some(GateFull));
    assert_eq!(gate.try_acquire().err(), Some(GateFull));
    drop(first);
    assert!(gate.try_acquire().is_ok());
}

/// RM-14.
#[tokio::test]
async fn facts_41_a_cancelled_waiter_leaves_the_queue() {
    let gate = Gate::new(1, 2);
    let first = gate.acquire().await.unwrap();
    let mut third = pin!(gate.acquire());
    {
        let mut second = pin!(gate.acquire());
        assert!(poll!(&mut second).is_pending());
        assert!(poll!(&mut third).is_pending());
        check(&gate, 1, 2);
    }
    check(&gate, 1, 1);
    first.release();
    drop(third.await.unwrap());
    check(&gate, 0, 0);
}

#[tokio::test]
async fn a_place_handed_to_a_waiter_that_left_goes_to_the_next() {
    let gate = Gate::new(1, 2);
    let first = gate.acquire().await.unwrap();
    let mut third = pin!(gate.acquire());
    {
        let mut second = pin!(gate.acquire());
        assert!(poll!(&mut second).is_pending());
        assert!(poll!(&mut third).is_pending());
        // Handed to the second, which is dropped before it looks.
        first.release();
        check(&gate, 1, 1);
    }
    let third = third.await.unwrap();
    check(&gate, 1, 0);
    drop(third);
    check(&gate, 0, 0);
}

#[tokio::test]
async fn nobody_overtakes_the_queue() {
    let gate = Gate::new(1, 2);
    let first = gate.acquire().await.unwrap();
    let mut second = pin!(gate.acquire());
    assert!(poll!(&mut second).is_pending());
    first.release();
    assert_eq!(gate.try_acquire().err(), Some(GateFull));
    assert!(second.await.is_ok());
}
