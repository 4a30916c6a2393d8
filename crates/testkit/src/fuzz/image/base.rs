//! The journals that are damaged: small, made once, the same in every run.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use sealog_disk::sim::SimDisk;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_disk::{Folder, Name};
use sealog_journal::{
    Admission, Class, Config, Create, Ignore, Journal, NewRecord, Record, StreamId, Turn, Unit,
};
use sealog_seal::{Secret, SlotParams, StoreId};

const START_MS: u64 = 1_800_000_000_000;
const SEGMENT_BYTES: u64 = 16 << 10;

/// A journal on a quiet disk and everything that was acknowledged, from sequence 1.
#[derive(Debug)]
pub(super) struct Base {
    pub disk: SimDisk,
    /// Its files by name, in the order of the names, for damage by number.
    pub names: Vec<Name>,
    pub records: Vec<Record>,
    /// A head of an earlier moment.
    pub older_head: Vec<u8>,
}

/// Closed in order; left by a crash; several writers, the last one crashed; without any segment.
pub(super) static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    vec![
        build(&[Session { units: 24, payload: 900, ends: Ends::Closed }]),
        build(&[Session { units: 5, payload: 40, ends: Ends::Crash }]),
        build(&[
            Session { units: 20, payload: 700, ends: Ends::Crash },
            Session { units: 3, payload: 10, ends: Ends::Closed },
            Session { units: 4, payload: 300, ends: Ends::AfterPause },
            Session { units: 2, payload: 2000, ends: Ends::Crash },
        ]),
        build(&[]),
    ]
});

struct Session {
    units: u64,
    payload: usize,
    ends: Ends,
}

#[derive(PartialEq)]
enum Ends {
    Closed,
    Crash,
    /// The head was rewritten, then the crash came.
    AfterPause,
}

/// The same keys over any disk; `seed` chooses the randomness of one process.
pub(super) fn config(disk: &SimDisk, seed: u64) -> Config {
    let clock = Arc::new(ManualClock::new(START_MS));
    with_clock(disk, seed, clock)
}

fn with_clock(disk: &SimDisk, seed: u64, clock: Arc<ManualClock>) -> Config {
    let entropy = Arc::new(SeededEntropy::new(seed));
    let mut config = Config::new(Arc::new(disk.clone()), clock, entropy, vec![secret()]);
    config.tuning.first_segment_bytes = SEGMENT_BYTES;
    config.tuning.segment_bytes_min = SEGMENT_BYTES;
    config.tuning.segment_bytes_max = 2 * SEGMENT_BYTES;
    config.tuning.lock_wait = Duration::ZERO;
    config.tuning.reader_wait = Duration::ZERO;
    config
}

fn secret() -> Secret {
    Secret::raw([9; 32])
}

/// One record of stream `stream`.
pub(super) fn event(stream: u8, number: u64) -> Unit {
    Unit::one(record(stream, number, b"one more"))
}

fn record(stream: u8, number: u64, body: &[u8]) -> NewRecord {
    NewRecord {
        kind: 83,
        stream: Some(StreamId([stream; 16])),
        class: if number == 1 { Class::OPENS } else { Class::NONE },
        event_number: number,
        time_ms: START_MS + number,
        logical_size: body.len() as u64,
        body: body.to_vec(),
    }
}

fn build(sessions: &[Session]) -> Base {
    let disk = SimDisk::new();
    let first = config(&disk, 1);
    let secret = secret();
    let create = Create {
        disk: first.disk.clone(),
        clock: first.clock.clone(),
        entropy: first.entropy.clone(),
        store_id: StoreId([3; 16]),
        slot_name: "key",
        secret: &secret,
        params: SlotParams::DEFAULT,
    };
    create.run(&mut || Ok(())).expect("an empty disk takes a journal");
    let head = Name::new(Folder::Root, "head").expect("a plain name");
    let older_head = disk.bytes(&head).unwrap_or_default();
    let mut records = Vec::new();
    for (seed, session) in (2..).zip(sessions) {
        let clock = Arc::new(ManualClock::new(START_MS));
        let config = with_clock(&disk, seed, clock.clone());
        let (journal, _) = Journal::open_manual(&config, &mut Ignore).expect("the journal is sound");
        write(&journal, session, records.len() as u64);
        records = journal.read_from(1).map(|r| r.expect("a sound journal reads back")).collect();
        match session.ends {
            Ends::Closed => journal.close().expect("a healthy disk takes the end"),
            Ends::Crash => {}
            Ends::AfterPause => {
                clock.advance(Duration::from_millis(300));
                while journal.maintain() {}
            }
        }
    }
    // A crash of the process, not of the machine: everything written stands.
    let disk = disk.fork();
    for name in names(&disk) {
        let bytes = disk.bytes(&name).unwrap_or_default();
        disk.put(&name, &bytes);
    }
    Base { names: names(&disk), disk, records, older_head }
}

/// Units of one to three records over three streams.
fn write(journal: &Journal, session: &Session, before: u64) {
    for number in 0..session.units {
        let stream = (number % 3) as u8 + 1;
        let records = 1 + number % 3;
        let body = vec![number as u8; session.payload];
        let unit = (0..records).map(|at| record(stream, before + number + at + 1, &body)).collect();
        let mut ticket =
            journal.submit(Unit { records: unit }, Admission::Reserved).expect("an empty queue takes a unit");
        assert_eq!(journal.turn(), Turn::Decided(1));
        assert!(matches!(ticket.try_result(), Some(Ok(()))));
    }
}

fn names(disk: &SimDisk) -> Vec<Name> {
    let of = |path: &String| match path.split_once('/') {
        None => Name::new(Folder::Root, path),
        Some(("segments", file)) => Name::new(Folder::Segments, file),
        Some((_, file)) => Name::new(Folder::Quarantine, file),
    };
    disk.files().keys().filter_map(of).collect()
}
