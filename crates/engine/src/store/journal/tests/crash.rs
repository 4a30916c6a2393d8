//! The power goes at every disk operation of a small workload, with every kind of loss the simulated disk knows.
//! Judged against what was acknowledged: that must be there, byte by byte, and every execution has one end.

use std::cell::RefCell;
use std::collections::BTreeMap;

use sealog_disk::sim::{Choice, SimDisk};
use sealog_events::{EventBody, Outcome, materialize};

use super::setup::*;
use crate::store::journal::JournalStore;
use crate::store::{Claim, EventStore, StoreError};

/// Acknowledged event texts, by execution.
type Acknowledged = RefCell<BTreeMap<u8, Vec<String>>>;

/// Three executions in turn: one finishes, one is under way, one was only accepted.
async fn workload(store: &JournalStore, host: &Host, acknowledged: &Acknowledged) -> Result<(), StoreError> {
    for number in 1..=3 {
        create(store, host.now(), number).await?;
        note(store, acknowledged, number).await;
    }
    let long = "x".repeat(3000);
    let steps: [(u8, EventBody); 9] = [
        (1, selected()),
        (2, selected()),
        (1, delta("one")),
        (1, delta(&long)),
        (2, delta("two")),
        (1, completed()),
        (2, delta(&long)),
        (2, delta("three")),
        (2, delta("four")),
    ];
    let mut sequences = [0, 1, 1, 1];
    for (number, body) in steps {
        let sequence = &mut sequences[usize::from(number)];
        *sequence += 1;
        append(store, host.now(), number, *sequence, vec![body]).await?;
        note(store, acknowledged, number).await;
    }
    Ok(())
}

/// Notes the execution's newest event as a reader sees it.
async fn note(store: &JournalStore, acknowledged: &Acknowledged, number: u8) {
    let after = acknowledged.borrow().get(&number).map_or(0, Vec::len) as u64;
    let mut watch = store.watch(id(number), after).await.unwrap().unwrap();
    let event = watch.next().await.unwrap().unwrap();
    acknowledged.borrow_mut().entry(number).or_default().push(event.data.clone());
}

/// Runs the workload until the power goes at operation `cut` behind the opening. Returns whether it ended before.
fn run(cut: u64) -> (Host, BTreeMap<u8, Vec<String>>, bool) {
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    host.disk.cut_at(host.disk.op_count() + cut);
    let acknowledged = Acknowledged::default();
    let done = drive(&journal, workload(&store, &host, &acknowledged)).is_ok();
    (host, acknowledged.into_inner(), done)
}

fn judge(host: &Host, disk: SimDisk, acknowledged: &BTreeMap<u8, Vec<String>>, what: &str) {
    let host = host.after_crash(disk);
    let (store, journal, opened) = host.open_manual().unwrap_or_else(|error| panic!("{what}: {error}"));
    for number in 1..=3 {
        let known = acknowledged.get(&number).map_or(&[][..], Vec::as_slice);
        let Some(brief) = drive(&journal, store.brief(id(number))).unwrap() else {
            assert!(known.is_empty(), "{what}: an acknowledged execution is gone");
            continue;
        };
        let events = drive(&journal, events(&store, id(number), 0));
        for (event, text) in events.iter().zip(known) {
            assert_eq!(event.data, *text, "{what}");
        }
        assert!(events.len() >= known.len(), "{what}: an acknowledged event is gone");
        assert_eq!(
            events.iter().map(|event| event.sequence).collect::<Vec<_>>(),
            (1..=brief.last_sequence).collect::<Vec<_>>()
        );
        let terminals = events.iter().filter(|event| event.terminal).count();
        assert!(terminals == 1 && events.last().unwrap().terminal, "{what}");
        let interrupted = opened.interrupted.iter().find(|one| one.id == id(number));
        let routed = events.iter().any(|event| event.type_name == "route.selected");
        if routed && let Some(interrupted) = interrupted {
            assert_eq!(interrupted.outcome, Outcome::Unknown, "{what}");
        }
        let claim = drive(&journal, store.find(identity(number))).unwrap();
        assert!(matches!(claim, Some(Claim::Replay(owner)) if owner == brief), "{what}: {claim:?}");
        let snapshot = drive(&journal, store.snapshot(id(number))).unwrap().unwrap();
        assert_eq!((snapshot.status, snapshot.last_sequence), (brief.status, brief.last_sequence));
    }
    // A second start finds nothing left to do.
    drop((store, journal));
    let (_, _, again) = host.open_manual().unwrap_or_else(|error| panic!("{what}, again: {error}"));
    assert!(again.interrupted.is_empty(), "{what}");
}

#[test]
fn nothing_acknowledged_is_lost_at_any_cut() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let mut images = 0;
    for cut in 1.. {
        let (host, acknowledged, done) = run(cut);
        let choices = [
            Choice::Nothing,
            Choice::Everything,
            Choice::Prefix(1),
            Choice::Seeded(cut),
            Choice::Seeded(!cut),
        ];
        for choice in choices {
            judge(&host, host.disk.crash_image(choice), &acknowledged, &format!("cut {cut}, {choice:?}"));
            images += 1;
        }
        if done {
            break;
        }
    }
    assert!(images > 100, "only {images} images");
}

#[test]
fn the_stored_result_is_the_fold_of_the_stored_events() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    let acknowledged = Acknowledged::default();
    drive(&journal, workload(&store, &host, &acknowledged)).unwrap();
    let records: Vec<_> =
        journal.read_stream(super::super::records::stream(id(1)), 0).map(|record| record.unwrap()).collect();
    let events: Vec<_> =
        records.iter().filter_map(|record| super::super::records::event(record).unwrap()).collect();
    let snapshot = materialize::materialize(id(1), host.now(), &events);
    let results =
        records.iter().filter(|record| record.kind == sealog_events::RecordKind::MaterializedResult.number());
    let results: Vec<_> =
        results.map(|record| sealog_events::body::decode_result(&record.body).unwrap()).collect();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].agrees_with(&snapshot), Some(true));
    // Class bits say where the stream begins and ends.
    use sealog_journal::Class;
    assert!(records.first().unwrap().class.contains(Class::OPENS | Class::IDENTITY));
    assert!(records.last().unwrap().class.contains(Class::CLOSES));
    assert_eq!(records.iter().filter(|record| record.class.contains(Class::CLOSES)).count(), 1);
}
