//! A start that takes digests knows what one that reads every record knows.

use std::sync::Arc;
use std::time::Duration;

use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::{Folder, Name};
use sealog_events::{Outcome, Snapshot};

use sealog_journal::Journal;

use super::setup::*;
use crate::store::journal::{JournalStore, Opened};
use crate::store::{Brief, EventStore, StoreLimits, StoredEvent};

/// Everything that a store answers about executions 1 to 60.
#[derive(Debug, PartialEq)]
struct Answers {
    interrupted: Vec<(sealog_events::ExecutionId, Outcome)>,
    listed: Vec<Brief>,
    claims: Vec<Option<crate::store::Claim>>,
    snapshots: Vec<Option<Snapshot>>,
    events: Vec<Vec<Arc<StoredEvent>>>,
}

const LIMITS: StoreLimits = StoreLimits { max_executions: 40, min_key_age_ms: 0, ..StoreLimits::NODE };

/// Without compaction, which would leave fewer segments than this wants to see.
fn open(host: &Host) -> (JournalStore, Journal, Opened) {
    let mut config = host.config();
    config.tuning.compact = false;
    JournalStore::open_manual(&config, LIMITS).unwrap()
}

/// Executions over several starts: finished, failed by a restart, evicted by later ones. Whether summaries were written.
fn history() -> (Host, usize) {
    let host = Host::new();
    for round in 0..4_u8 {
        let (store, journal, _) = open(&host);
        for number in round * 14 + 1..=round * 14 + 14 {
            host.clock.advance(Duration::from_millis(700));
            drive(&journal, create(&store, host.now(), number)).unwrap();
            let text = "text ".repeat(usize::from(number) * 40);
            let bodies = match number % 5 {
                0 => vec![],
                1 => vec![selected()],
                _ => vec![selected(), delta(&text), delta("more"), completed()],
            };
            drive(&journal, append(&store, host.now(), number, 2, bodies)).unwrap();
        }
        // A clock that is set back: what ended settles by the newest time.
        host.clock.jump_wall_ms(-5_000);
        while journal.tend() {}
    }
    let summaries = host.disk.files().keys().filter(|file| file.ends_with(".idx")).count();
    (host, summaries)
}

fn answers(host: &Host, disk: SimDisk) -> (Answers, usize) {
    let host = host.after_crash(disk);
    let (store, journal, opened) = open(&host);
    let interrupted = opened.interrupted.iter().map(|one| (one.id, one.outcome)).collect();
    let listed: Vec<Brief> = drive(&journal, store.list(None, 1000)).unwrap();
    let numbers = 1..=60;
    let answers = Answers {
        interrupted,
        claims: numbers.clone().map(|n| drive(&journal, store.find(identity(n))).unwrap()).collect(),
        snapshots: numbers.map(|n| drive(&journal, store.snapshot(id(n))).unwrap()).collect(),
        events: listed.iter().map(|brief| drive(&journal, events(&store, brief.id, 0))).collect(),
        listed,
    };
    (answers, opened.recovery.unchecked.len())
}

/// R15.
#[test]
fn digests_and_records_come_to_the_same() {
    let (host, summaries) = history();
    assert!(summaries >= 3, "{summaries}");
    let disk = host.disk.crash_point().image(Choice::Everything);
    let (fast, used) = answers(&host, disk.fork());
    assert!(used >= 3, "{used}");
    for file in disk.files().keys().filter_map(|file| file.strip_prefix("segments/")) {
        if file.ends_with(".idx") {
            disk.delete(&Name::new(Folder::Segments, file).unwrap());
        }
    }
    let (plain, used) = answers(&host, disk);
    assert_eq!(used, 0);
    assert!(!plain.interrupted.is_empty() && plain.listed.len() > 20);
    assert!(plain.interrupted.iter().any(|(_, outcome)| *outcome == Outcome::Unknown));
    assert!(plain.interrupted.iter().any(|(_, outcome)| *outcome == Outcome::NotDispatched));
    assert_eq!(fast, plain);
}
