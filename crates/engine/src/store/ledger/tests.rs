use super::*;

/// When calls are made that go by no key's age.
const NOW: Timestamp = Timestamp(1000);

fn id(number: u8) -> ExecutionId {
    ExecutionId::from_random([number; 16])
}

fn weight(sequence: u64, json_bytes: u64) -> Weight {
    Weight { sequence, terminal: false, json_bytes }
}

fn terminal(sequence: u64, json_bytes: u64) -> Weight {
    Weight { sequence, terminal: true, json_bytes }
}

fn limits(max_executions: usize, max_bytes: u64) -> StoreLimits {
    StoreLimits { max_executions, max_bytes, retention_ms: 100, ..StoreLimits::default() }
}

/// Opens and ends an execution at `time`; counts 256 + 100 + 100 bytes.
fn finished(ledger: &mut Ledger, number: u8, time: u64) -> Vec<ExecutionId> {
    let evicted = ledger.open(id(number), Timestamp(time), None, weight(1, 100), NOW).unwrap();
    ledger.admit(id(number), terminal(2, 100), NOW).unwrap();
    ledger.settle(id(number), Status::Succeeded, Timestamp(time));
    evicted
}

fn invariants(ledger: &Ledger) {
    let all: Vec<&accounts::Account> = ledger.created.iter().map(|slot| &ledger.accounts[slot]).collect();
    assert_eq!(ledger.bytes, all.iter().map(|account| account.bytes).sum::<u64>());
    assert_eq!(all.len(), ledger.accounts.len());
    assert!(all.is_sorted_by_key(|account| account.by_creation()));
    let ended = all.iter().filter(|account| account.ended.is_some()).count();
    let over = all.iter().filter(|account| account.over).count();
    for order in [&ledger.ended.keyed, &ledger.ended.keyless] {
        assert!(order.iter().map(|slot| ledger.accounts[slot].by_end()).is_sorted());
    }
    assert_eq!(ledger.ended.keyed.len() + ledger.ended.keyless.len() + over, ended);
    let of_key = |account: &&&accounts::Account| {
        account.identity.is_some_and(|identity| {
            ledger.accounts.of_key(&identity.key_hash).is_some_and(|owner| owner.id == account.id)
        })
    };
    assert_eq!(all.iter().filter(of_key).count(), ledger.accounts.owners());
}

/// RM-30.
#[test]
fn the_longest_ended_goes_first() {
    let mut ledger = Ledger::new(limits(3, 10_000));
    finished(&mut ledger, 1, 30);
    finished(&mut ledger, 2, 10);
    finished(&mut ledger, 3, 20);
    assert_eq!(finished(&mut ledger, 4, 40), [id(2)]);
    ledger.pin(id(3));
    assert_eq!(finished(&mut ledger, 5, 50), [id(1)]);
    ledger.unpin(id(3));
    assert_eq!(finished(&mut ledger, 6, 60), [id(3)]);
    invariants(&ledger);
}

#[test]
fn bytes_press_like_counts_and_a_vain_eviction_does_not_happen() {
    let mut ledger = Ledger::new(limits(100, 1000));
    finished(&mut ledger, 1, 10);
    ledger.open(id(2), Timestamp(20), None, weight(1, 100), NOW).unwrap();
    // 456 + 356 are kept; 300 more need the first one's room.
    assert_eq!(ledger.admit(id(2), weight(2, 188), NOW), Ok(vec![]));
    assert_eq!(ledger.admit(id(2), weight(3, 457), NOW), Err(StoreError::Full));
    assert!(ledger.visible(id(1), Timestamp(20)));
    assert_eq!(ledger.admit(id(2), weight(3, 456), NOW), Ok(vec![id(1)]));
    assert_eq!(ledger.admit(id(2), weight(4, 1), NOW), Err(StoreError::Full));
    assert_eq!(ledger.admit(id(2), terminal(4, 2048), NOW), Ok(vec![]));
    invariants(&ledger);
}

/// RM-30: above seven eighths of the disk's budget, one sixteenth of it goes: by the ends, never what runs, is read, or
/// has a key that is too young.
#[test]
fn a_share_of_the_disk_is_given_back_by_what_ended_first() {
    let aged = StoreLimits {
        max_disk_bytes: 1600,
        min_key_age_ms: 100,
        retention_ms: 10_000,
        ..limits(100, 1 << 20)
    };
    let mut ledger = Ledger::new(aged);
    for number in 1..=14 {
        finished(&mut ledger, number, u64::from(number) * 10);
    }
    ledger.open(id(15), Timestamp(0), None, weight(1, 356), NOW).unwrap();
    assert_eq!(ledger.relieve(1400, 0, NOW), []);
    assert_eq!(ledger.relieve(1150, 250, NOW), [], "what runs is given room beside it");
    assert_eq!(ledger.relieve(1000, u64::MAX, NOW), [], "a quarter at most");
    // 1401 of the disk are 14 times 456 and 612: a fourteenth of that is one of them and a little.
    ledger.pin(id(1));
    assert_eq!(ledger.relieve(1401, 0, NOW), [id(2), id(3)]);
    ledger.unpin(id(1));
    invariants(&ledger);
    assert_eq!(ledger.relieve(u64::MAX, 0, NOW).len(), 12, "all that ended");
    assert!(ledger.visible(id(15), NOW));
    assert_eq!(ledger.relieve(u64::MAX, 0, NOW), []);
    invariants(&ledger);

    let key = |number| Some(Identity { key_hash: [number; 32], fingerprint: [0; 32] });
    for (number, ended) in [(20, 900), (21, 901)] {
        ledger.open(id(number), Timestamp(0), key(number), weight(1, 100), NOW).unwrap();
        ledger.admit(id(number), terminal(2, 100), NOW).unwrap();
        ledger.settle(id(number), Status::Succeeded, Timestamp(ended));
    }
    assert_eq!(ledger.relieve(u64::MAX, 0, NOW), [id(20)], "the other one is 99 ms old");
    invariants(&ledger);
}

#[test]
fn active_and_undurable_executions_stay() {
    let mut ledger = Ledger::new(limits(1, 10_000));
    ledger.open(id(1), Timestamp(0), None, weight(1, 100), NOW).unwrap();
    assert_eq!(ledger.open(id(2), Timestamp(0), None, weight(1, 1), NOW), Err(StoreError::Full));
    ledger.admit(id(1), terminal(2, 100), NOW).unwrap();
    assert_eq!(ledger.open(id(2), Timestamp(0), None, weight(1, 1), NOW), Err(StoreError::Full));
    ledger.settle(id(1), Status::Succeeded, Timestamp(0));
    assert_eq!(ledger.open(id(2), Timestamp(0), None, weight(1, 1), NOW), Ok(vec![id(1)]));
    invariants(&ledger);
}

#[test]
fn an_execution_has_limits_of_its_own() {
    let own = StoreLimits { max_execution_bytes: 700, max_events: 3, ..StoreLimits::default() };
    let mut ledger = Ledger::new(own);
    ledger.open(id(1), Timestamp(0), None, weight(1, 150), NOW).unwrap();
    assert_eq!(ledger.admit(id(1), weight(2, 217), NOW), Ok(vec![]));
    assert_eq!(ledger.admit(id(1), weight(3, 78), NOW), Err(StoreError::ExecutionFull));
    assert_eq!(ledger.admit(id(1), weight(3, 77), NOW), Ok(vec![]));
    assert_eq!(ledger.admit(id(1), weight(4, 0), NOW), Err(StoreError::ExecutionFull));
    assert_eq!(ledger.admit(id(1), terminal(4, 2049), NOW), Err(StoreError::TerminalTooLarge));
    assert_eq!(ledger.admit(id(1), terminal(4, 2048), NOW), Ok(vec![]));
    assert_eq!(ledger.open(id(2), Timestamp(0), None, weight(1, 445), NOW), Err(StoreError::ExecutionFull));
    invariants(&ledger);
}

#[test]
fn pa_32_no_limit_lets_an_execution_outgrow_what_clients_read() {
    let boundless =
        StoreLimits { max_execution_bytes: u64::MAX, max_bytes: u64::MAX, ..StoreLimits::default() };
    let mut ledger = Ledger::new(boundless);
    ledger.open(id(1), Timestamp(0), None, weight(1, 150), NOW).unwrap();
    let left = EXECUTION_BYTES_CEILING - EXECUTION_BYTES - 150;
    assert_eq!(ledger.admit(id(1), weight(2, left + 1), NOW), Err(StoreError::ExecutionFull));
    assert_eq!(ledger.admit(id(1), weight(2, left), NOW), Ok(vec![]));
    assert_eq!(ledger.admit(id(1), terminal(3, 2048), NOW), Ok(vec![]));
    invariants(&ledger);
}

#[test]
fn order_is_kept_and_nothing_follows_a_terminal() {
    let mut ledger = Ledger::new(StoreLimits::default());
    assert_eq!(ledger.admit(id(1), weight(2, 1), NOW), Err(StoreError::Unknown));
    assert_eq!(ledger.open(id(1), Timestamp(0), None, weight(2, 1), NOW), Err(StoreError::OutOfOrder));
    ledger.open(id(1), Timestamp(0), None, weight(1, 1), NOW).unwrap();
    assert_eq!(ledger.open(id(1), Timestamp(0), None, weight(1, 1), NOW), Err(StoreError::OutOfOrder));
    for wrong in [1, 3] {
        assert_eq!(ledger.admit(id(1), weight(wrong, 1), NOW), Err(StoreError::OutOfOrder));
        assert_eq!(ledger.admit(id(1), terminal(wrong, 1), NOW), Err(StoreError::OutOfOrder));
    }
    ledger.admit(id(1), terminal(2, 1), NOW).unwrap();
    assert_eq!(ledger.admit(id(1), terminal(3, 1), NOW), Err(StoreError::Ended));
    assert_eq!(ledger.admit(id(1), weight(3, 1), NOW), Err(StoreError::Ended));
}

#[test]
fn keys_live_and_die_with_their_execution() {
    let mut ledger = Ledger::new(limits(10, 10_000));
    let identity = Identity { key_hash: [1; 32], fingerprint: [2; 32] };
    let other = Identity { fingerprint: [3; 32], ..identity };
    assert_eq!(ledger.owner(&identity, Timestamp(0)), None);
    ledger.open(id(1), Timestamp(0), Some(identity), weight(1, 1), NOW).unwrap();
    assert_eq!(ledger.owner(&identity, Timestamp(0)), Some(Owner { id: id(1), same_request: true }));
    assert_eq!(ledger.owner(&other, Timestamp(0)), Some(Owner { id: id(1), same_request: false }));
    ledger.admit(id(1), terminal(2, 1), NOW).unwrap();
    ledger.settle(id(1), Status::Failed, Timestamp(50));
    assert!(ledger.owner(&identity, Timestamp(149)).is_some());
    assert_eq!(ledger.owner(&identity, Timestamp(150)), None);
    assert!(!ledger.visible(id(1), Timestamp(150)));
    // Read when it expired: it stays for its reader, and the key already belongs to a newer execution.
    ledger.pin(id(1));
    assert!(ledger.expire(Timestamp(150)).is_empty());
    ledger.open(id(2), Timestamp(150), Some(other), weight(1, 1), NOW).unwrap();
    ledger.unpin(id(1));
    assert_eq!(ledger.expire(Timestamp(150)), [id(1)]);
    assert_eq!(ledger.owner(&other, Timestamp(150)), Some(Owner { id: id(2), same_request: true }));
    invariants(&ledger);
}

#[test]
fn lists_are_in_creation_order_and_hide_what_expired() {
    let mut ledger = Ledger::new(limits(10, 10_000));
    ledger.open(id(9), Timestamp(5), None, weight(1, 1), NOW).unwrap();
    ledger.open(id(1), Timestamp(5), None, weight(1, 1), NOW).unwrap();
    finished(&mut ledger, 4, 1);
    assert_eq!(ledger.list(None, 10, Timestamp(50)), [id(4), id(1), id(9)]);
    assert_eq!(ledger.list(None, 2, Timestamp(50)), [id(4), id(1)]);
    let after = Some(ListPosition { created_at: Timestamp(5), id: id(1) });
    assert_eq!(ledger.list(after, 10, Timestamp(50)), [id(9)]);
    assert_eq!(ledger.list(None, 10, Timestamp(101)), [id(1), id(9)]);
}

fn keyed(ledger: &mut Ledger, number: u8, time: u64) {
    let identity = Identity { key_hash: [number; 32], fingerprint: [0; 32] };
    ledger.open(id(number), Timestamp(time), Some(identity), weight(1, 100), Timestamp(time)).unwrap();
    ledger.admit(id(number), terminal(2, 100), Timestamp(time)).unwrap();
    ledger.settle(id(number), Status::Succeeded, Timestamp(time));
}

/// RM-30.
#[test]
fn a_young_key_is_never_evicted() {
    let aged = StoreLimits { min_key_age_ms: 50, retention_ms: 1000, ..limits(3, 10_000) };
    let mut ledger = Ledger::new(aged);
    keyed(&mut ledger, 1, 10);
    finished(&mut ledger, 2, 20);
    keyed(&mut ledger, 3, 30);
    let open = |ledger: &mut Ledger, number, now| {
        ledger.open(id(number), Timestamp(now), None, weight(1, 1), Timestamp(now))
    };
    // Younger keys are passed over for what has none.
    assert_eq!(open(&mut ledger, 4, 59), Ok(vec![id(2)]));
    assert_eq!(open(&mut ledger, 5, 59), Err(StoreError::Full));
    assert_eq!(ledger.admit(id(4), weight(2, 20_000), Timestamp(79)), Err(StoreError::Full));
    assert_eq!(open(&mut ledger, 5, 60), Ok(vec![id(1)]));
    assert_eq!(open(&mut ledger, 6, 79), Err(StoreError::Full));
    assert_eq!(open(&mut ledger, 6, 80), Ok(vec![id(3)]));
    invariants(&ledger);
}

#[test]
fn keyed_and_keyless_go_in_one_order() {
    let mut ledger = Ledger::new(limits(4, 10_000));
    finished(&mut ledger, 1, 30);
    keyed(&mut ledger, 2, 20);
    keyed(&mut ledger, 3, 40);
    finished(&mut ledger, 4, 10);
    let order: Vec<_> = (5..9).map(|number| finished(&mut ledger, number, 50)).collect();
    assert_eq!(order, [[id(4)], [id(2)], [id(1)], [id(3)]]);
    invariants(&ledger);
}

#[test]
fn what_expired_stays_hidden_when_the_clock_is_set_back() {
    let mut ledger = Ledger::new(limits(10, 10_000));
    finished(&mut ledger, 1, 10);
    finished(&mut ledger, 2, 10);
    ledger.pin(id(1));
    assert_eq!(ledger.expire(Timestamp(110)), [id(2)]);
    invariants(&ledger);
    assert!(!ledger.visible(id(1), Timestamp(20)));
    assert!(ledger.list(None, 10, Timestamp(20)).is_empty());
    ledger.unpin(id(1));
    assert_eq!(ledger.expire(Timestamp(20)), [id(1)]);
    invariants(&ledger);
}

/// R27: the engine's part of what a retained execution takes, at the number where its tables are emptiest. The journal's
/// part is its index's to test: 80, so that both are at most 280.
#[test]
fn an_ended_execution_takes_little_memory() {
    const EXECUTIONS: u64 = (1 << 17) + 1;
    let mut ledger = Ledger::new(StoreLimits::NODE);
    for number in 0..EXECUTIONS {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        let identity =
            Identity { key_hash: [bytes, bytes].concat().try_into().unwrap(), fingerprint: [7; 32] };
        let (created_at, ended) = (Timestamp(number), Some(Timestamp(number + 900)));
        let (sequence, status) = (12, Status::Succeeded);
        let kept = Kept { created_at, identity: Some(identity), bytes: 3000, sequence, status, ended };
        ledger.restore(ExecutionId::from_bytes(bytes), kept);
    }
    let orders = [&ledger.created, &ledger.ended.keyed, &ledger.ended.keyless];
    let orders: usize = orders.into_iter().map(accounts::Order::memory_bytes).sum();
    let each = (ledger.accounts.memory_bytes() + orders) as u64 / EXECUTIONS;
    assert!(each <= 200, "{each} bytes");
    assert_eq!(ledger.accounts.len() as u64, EXECUTIONS);
}
