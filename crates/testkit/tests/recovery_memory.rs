//! R27: what a start and a look at a stopped journal need beside the index is bounded, whatever the journal's size.
//! Counted over all threads, since a start reads ahead and checks on several.

use std::sync::Arc;

use sealog_disk::sim::SimDisk;
use sealog_disk::testing::{ManualClock, SeededEntropy};
use sealog_journal::{
    Admission, Class, Config, Create, Ignore, Journal, NewRecord, Sink, StreamId, Unit, audit,
};
use sealog_seal::{Secret, SlotParams, StoreId};
use sealog_testkit::fuzz::allocation::{Counting, peak_of_all};

#[global_allocator]
static COUNTED: Counting = Counting;

fn config(disk: &SimDisk, seed: u64) -> Config {
    let (clock, entropy) = (ManualClock::new(1_767_225_600_000), SeededEntropy::new(seed));
    let secrets = vec![Secret::raw([9; 32])];
    let mut config = Config::new(Arc::new(disk.clone()), Arc::new(clock), Arc::new(entropy), secrets);
    config.tuning.compact = false;
    config.tuning.summarise = false;
    config.tuning.reserve_bytes = 0;
    config
}

fn event(stream: u8, number: u64, bytes: usize, closes: bool) -> NewRecord {
    let opens = if number == 1 { Class::OPENS } else { Class::NONE };
    NewRecord {
        kind: 90,
        stream: Some(StreamId([stream; 16])),
        class: if closes { Class::CLOSES } else { opens },
        event_number: number,
        time_ms: 1_767_225_600_000,
        logical_size: bytes as u64,
        body: (0..bytes).map(|at| (at % 251) as u8).collect(),
    }
}

/// A journal of so many large records in ten streams, closed in order.
fn journal(records: u64) -> SimDisk {
    const BYTES: usize = 200_000;
    let disk = SimDisk::new();
    let config = config(&disk, 1);
    let create = Create {
        disk: Arc::clone(&config.disk),
        clock: Arc::clone(&config.clock),
        entropy: Arc::clone(&config.entropy),
        store_id: StoreId([3; 16]),
        slot_name: "key",
        secret: &Secret::raw([9; 32]),
        params: SlotParams::FLOOR,
    };
    create.run(&mut || Ok(())).expect("a new journal");
    let (journal, _) = Journal::open_manual(&config, &mut Ignore).expect("a sound journal");
    let each = records / 10;
    for stream in 1..=10 {
        for number in 1..=each {
            let unit = Unit::one(event(stream, number, BYTES, number == each));
            let mut ticket = journal.submit(unit, Admission::Reserved).expect("room");
            while ticket.try_result().is_none() {
                journal.turn();
            }
        }
    }
    journal.close().expect("an orderly end");
    disk
}

struct Nothing;

impl Sink for Nothing {}

#[test]
fn what_a_start_and_a_look_need_has_a_bound_whatever_the_journals_size() {
    let disk = journal(1000);
    let (audited, look) = peak_of_all(|| audit(&config(&disk, 2), &mut || Nothing).map(|found| found.0));
    assert!(audited.is_ok_and(|audit| audit.is_sound() && audit.segments.len() > 3));
    let (opened, start) = peak_of_all(|| Journal::open_manual(&config(&disk, 3), &mut Ignore));
    drop(opened.expect("a sound journal"));
    println!("look {look}, start {start}");
    // Of a journal of 200 MB: what is read ahead, and what each thread has opened. How much of it is there at once is
    // the scheduler's, so only the bound says something, not one size beside another.
    // No more of them than that, however many the machine has room for.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let bound = (12 + 2 * threads) << 20;
    assert!(look.max(start) < bound, "look {look}, start {start}, bound {bound}");
}
