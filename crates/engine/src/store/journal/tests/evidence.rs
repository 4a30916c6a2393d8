//! Evidence of attempts in the journal: not waited for, not shown before it is durable, and kept by all that rewrites a
//! journal.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::Disk;
use sealog_disk::sim::SimDisk;
use sealog_events::{Attempt, AttemptEvidence, Mark, Outcome, Reached, RequestId, json};
use sealog_journal::{FrameView, Record, Sink, StreamId, Turn, audit, repair};

use super::setup::*;
use crate::store::journal::JournalStore;
use crate::store::journal::transfer::{Broken, check, export, import_manual};
use crate::store::{EventStore, StoreLimits};

fn note(store: &JournalStore, number: u8, mark: Mark) {
    store.note(id(number), AttemptEvidence { attempt: 1, mark });
}

fn answered() -> Mark {
    Mark::ResponseHeaders { request_id: RequestId::new("req\"1") }
}

async fn attempts(store: &JournalStore, number: u8) -> Vec<Attempt> {
    store.snapshot(id(number)).await.unwrap().unwrap().attempts
}

#[test]
fn evidence_is_shown_once_it_is_durable_and_nobody_waits_for_it() {
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    drive(&journal, create(&store, host.now(), 1)).unwrap();
    drive(&journal, append(&store, host.now(), 1, 2, vec![selected()])).unwrap();
    note(&store, 1, Mark::RequestSent);
    let reached = || futures_util::FutureExt::now_or_never(attempts(&store, 1)).unwrap()[0].reached;
    assert_eq!(reached(), Reached::Selected, "not durable yet");
    while journal.turn() != Turn::Idle {}
    assert_eq!(reached(), Reached::RequestSent);
    note(&store, 1, answered());
    assert_eq!(reached(), Reached::RequestSent);
    // The next event takes it along.
    drive(&journal, append(&store, host.now(), 1, 3, vec![delta("x")])).unwrap();
    assert_eq!(reached(), Reached::FirstOutput);
    let attempt = futures_util::FutureExt::now_or_never(attempts(&store, 1)).unwrap().remove(0);
    assert_eq!(attempt.request_id.unwrap().as_str(), "req\"1");
}

/// Executions that stopped at every step; what the next start says of each.
#[test]
fn a_start_reports_how_far_interrupted_work_came() {
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    for number in 1..=5 {
        drive(&journal, create(&store, host.now(), number)).unwrap();
        if number > 1 {
            drive(&journal, append(&store, host.now(), number, 2, vec![selected()])).unwrap();
        }
        if number > 2 {
            note(&store, number, Mark::RequestSent);
        }
        if number > 3 {
            note(&store, number, answered());
        }
    }
    drive(&journal, append(&store, host.now(), 5, 3, vec![delta("x")])).unwrap();
    while journal.turn() != Turn::Idle {}
    journal.close().unwrap();

    let (store, journal, opened) = host.open_manual().unwrap();
    let mut found: Vec<_> = opened.interrupted.iter().map(|one| (one.id, one.outcome, one.reached)).collect();
    found.sort_by_key(|(id, ..)| *id);
    let unknown = |number, reached| (id(number), Outcome::Unknown, Some(reached));
    let expected = [
        (id(1), Outcome::NotDispatched, None),
        unknown(2, Reached::Selected),
        unknown(3, Reached::RequestSent),
        unknown(4, Reached::ResponseHeaders),
        unknown(5, Reached::FirstOutput),
    ];
    assert_eq!(found, expected);
    let ended = drive(&journal, store.snapshot(id(3))).unwrap().unwrap();
    assert_eq!(ended.attempts[0].reached.words(), "request was sent, no reply seen");
    assert_eq!(ended.error.unwrap().outcome, Some(Outcome::Unknown));
}

async fn write(store: &JournalStore, host: &Host, count: u8) {
    for number in 1..=count {
        create(store, host.now(), number).await.unwrap();
        append(store, host.now(), number, 2, vec![selected()]).await.unwrap();
        note(store, number, Mark::RequestSent);
        note(store, number, answered());
        let text = delta(&format!("\u{e9}{number} ").repeat(900));
        append(store, host.now(), number, 3, vec![text, completed()]).await.unwrap();
        host.clock.advance(Duration::from_millis(3));
    }
}

async fn shown(store: &JournalStore, count: u8) -> Vec<String> {
    let mut shown = Vec::new();
    for number in 1..=count {
        let snapshot = store.snapshot(id(number)).await.unwrap().unwrap();
        assert_eq!(snapshot.attempts[0].request_id.as_ref().unwrap().as_str(), "req\"1");
        shown.push(json::snapshot_json(&snapshot));
    }
    shown
}

#[tokio::test]
async fn evidence_outlives_folding_and_restart() {
    let host = Host::new();
    let (store, _) = host.open(StoreLimits::NODE);
    write(&store, &host, 20).await;
    let before = shown(&store, 20).await;
    host.clock.advance(Duration::from_secs(601));
    super::compaction::compacted(&host).await;
    assert_eq!(shown(&store, 20).await, before);
    store.close().await.unwrap();
    let (store, opened) = host.open(StoreLimits::NODE);
    assert!(opened.interrupted.is_empty());
    assert_eq!(shown(&store, 20).await, before);
}

#[test]
fn evidence_travels_with_an_export() {
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    drive(&journal, write(&store, &host, 2));
    // And one that goes on.
    drive(&journal, create(&store, host.now(), 3)).unwrap();
    drive(&journal, append(&store, host.now(), 3, 2, vec![selected()])).unwrap();
    note(&store, 3, Mark::RequestSent);
    while journal.turn() != Turn::Idle {}
    let before = drive(&journal, shown(&store, 2));
    journal.close().unwrap();
    let export_of = |host: &Host| {
        let mut output = Vec::new();
        export(&host.config(), None, &mut output).unwrap();
        output
    };
    let exported = export_of(&host);
    let text = std::str::from_utf8(&exported).unwrap();
    assert_eq!(text.matches("{\"evidence\":").count(), 5);
    let line = format!(
        "{{\"evidence\":{{\"execution_id\":\"{}\",\"time_ms\":{START_MS},\"attempt\":1,\"reached\":\"response_headers\",\
         \"request_id\":\"req\\\"1\",\"body\":\"010301057265712231\"}}}}",
        id(1)
    );
    assert!(text.contains(&line), "{text}");
    let found = check(&mut &exported[..]).unwrap();
    let other = Host::new();
    import_manual(&other.config(), &mut &exported[..], &found).unwrap();
    let lines = |export: &[u8]| -> Vec<String> {
        let all: Vec<String> = std::str::from_utf8(export).unwrap().lines().map(str::to_owned).collect();
        all[1..all.len() - 1].to_vec()
    };
    assert_eq!(lines(&export_of(&other)), lines(&exported));
    let (store, journal, opened) = other.open_manual().unwrap();
    assert_eq!(drive(&journal, shown(&store, 2)), before);
    assert_eq!(opened.interrupted[0].reached, Some(Reached::RequestSent));

    // Evidence behind the end, or of nobody, is no export.
    let of = |number: u8| format!("{{\"evidence\":{{\"execution_id\":\"{}", id(number));
    for (from, to, why) in [
        (1, 2, "it speaks of an execution that has not begun"),
        (2, 1, "evidence of an attempt stands before the end of its execution"),
    ] {
        let moved = text.replace(&of(from), &of(to));
        match check(&mut moved.as_bytes()) {
            Err(Broken::Order { what, .. }) => assert_eq!(what, why),
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Default)]
struct Told(Vec<(u16, Option<StreamId>, u64, Vec<u8>)>);

impl Sink for Told {
    fn record(&mut self, _frame: &FrameView, record: &Record) {
        self.0.push((record.kind, record.stream, record.event_number, record.body.clone()));
    }
}

/// JB-11: in their order, also what belongs to no event; and what stands last of an execution that goes on.
#[test]
fn a_repair_keeps_evidence_at_its_place() {
    let host = Host::new();
    let (store, journal, _) = host.open_manual().unwrap();
    for number in 1..=3 {
        drive(&journal, create(&store, host.now(), number)).unwrap();
        drive(&journal, append(&store, host.now(), number, 2, vec![selected()])).unwrap();
    }
    for mark in [Mark::RequestSent, answered()] {
        for number in 1..=3 {
            note(&store, number, mark.clone());
        }
        drive(&journal, append(&store, host.now(), 3, 3 + u64::from(mark == answered()), vec![delta("x")]))
            .unwrap();
    }
    drive(&journal, append(&store, host.now(), 1, 3, vec![completed()])).unwrap();
    journal.close().unwrap();
    let elsewhere = SimDisk::new();
    let target: Arc<dyn Disk> = Arc::new(elsewhere.clone());
    let done = repair(&host.config(), &target).unwrap();
    assert!(!done.fenced && done.losses.is_empty(), "{done:?}");
    let there = host.after_crash(elsewhere);
    let before = audit(&host.config(), &mut Told::default).unwrap().1.0;
    let mut after = audit(&there.config(), &mut Told::default).unwrap().1.0;
    after.pop();
    assert_eq!(after, before);
    let (store, journal, opened) = there.open_manual().unwrap();
    let reached: Vec<_> = opened.interrupted.iter().map(|one| (one.id, one.reached)).collect();
    assert!(reached.contains(&(id(2), Some(Reached::ResponseHeaders))), "{reached:?}");
    assert_eq!(drive(&journal, attempts(&store, 1))[0].reached, Reached::ResponseHeaders);
}
