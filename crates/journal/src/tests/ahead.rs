//! Reading ahead: what several threads open of a segment at once is what one would have opened, up to the same place, and
//! the verdict there is the same (JR-3, JR-4), for starts and for read-only tools.

use sealog_disk::sim::SimDisk;
use sealog_journal_format::FrameHeader;

use super::damage_forge::{Forged, forged_body};
use super::damage_image::{End, Image, Seen, open_segment, segment};
use super::damage_table;
use super::setup::Bench;
use crate::{Journal, JournalError, Record, Replay, audit};

/// All that a start replays.
#[derive(Debug, Default, PartialEq, Eq)]
struct Replayed {
    records: Vec<Record>,
}

impl Replay for Replayed {
    fn record(&mut self, record: &Record) {
        self.records.push(record.clone());
    }
}

/// What a read-only tool and a start say, in words, and what they were told.
type Said = (String, Option<Vec<Record>>, String, Replayed);

fn say(disk: &SimDisk, threads: usize) -> Said {
    let bench_on = |seed| {
        let mut bench = Bench::on(disk.fork(), seed);
        bench.config.tuning.check_threads = threads;
        bench
    };
    let told = |error: JournalError| format!("{error:?}");
    let (looked, seen) = match audit(&bench_on(99).config, &mut Seen::default) {
        Ok((found, seen)) => (format!("{found:?} {:?}", seen.frames), Some(seen.records)),
        Err(error) => (told(error), None),
    };
    let mut replayed = Replayed::default();
    let started = match Journal::open_manual(&bench_on(77).config, &mut replayed) {
        Ok((_, report)) => format!("{report:?}"),
        Err(error) => told(error),
    };
    (looked, seen, started, replayed)
}

#[track_caller]
fn alike(disk: &SimDisk, what: &str) {
    let alone = say(disk, 1);
    for threads in [2, 8] {
        assert!(say(disk, threads) == alone, "{what}, {threads} threads: {:?}", say(disk, threads).0);
    }
}

/// JR-3: every row of the decision table.
#[test]
fn every_row_is_found_alike_however_many_read_ahead() {
    damage_table::cases().iter().for_each(|(_, name, disk, _)| alike(disk, name));
}

/// A flip in any part of any frame, newest or ended, covered or not.
#[test]
fn a_flip_stops_every_walk_at_the_same_place() {
    for end in [End::Killed, End::Idle, End::Closed] {
        let image = Image::new(end);
        for at in &image.frames {
            for offset in (at.offset..at.end()).step_by(41) {
                let disk = image.disk.fork();
                disk.flip_bit(&segment(at.segment), offset, (offset % 8) as u8);
                alike(&disk, &format!("{end:?}, segment {}, offset {offset}", at.segment));
            }
        }
    }
}

/// Row 7: only the tag tells, in a batch of its own, at its beginning and inside.
#[test]
fn a_body_that_does_not_authenticate_stops_every_walk_at_the_same_place() {
    for end in [End::Killed, End::Idle, End::Closed] {
        let image = Image::new(end);
        for at in image.frames.iter().filter(|at| at.header.record_count > 0) {
            let disk = image.disk.fork();
            forged_body(&disk, at.segment, at.offset, at.header.body_length);
            alike(&disk, &format!("{end:?}, segment {}, frame {}", at.segment, at.header.index));
        }
    }
}

/// `many` frames behind the newest, each chained to the one before it as a writer would; of the one at `bad` the body is
/// authentic and no group.
fn chained(image: &Image, many: u32, bad: u32) -> SimDisk {
    let (last, disk) = (image.newest(), image.disk.fork());
    let keys = open_segment(&disk, last.segment);
    let mut frame = Forged::behind(image, &last);
    let mut offset = last.end();
    for number in 0..many {
        let written = match number == bad {
            true => frame.clone().holding(&[0xFF; 64]),
            false => frame.clone(),
        };
        let bytes = written.bytes(&keys);
        disk.overwrite(&segment(last.segment), offset, &bytes);
        offset += bytes.len() as u64;
        let header: &[u8] = &bytes[..sealog_journal_format::limits::FRAME_HEADER_BYTES];
        frame = frame.with(|next: &mut FrameHeader| {
            next.index += 1;
            next.first_sequence += 1;
            next.synced_through += 1;
            next.previous_chain = sealog_seal::chain(&next.previous_chain, header);
        });
    }
    disk
}

/// Headers that go on behind a body against the rules lead no reader past it.
#[test]
fn what_was_read_ahead_of_a_bad_body_is_not_taken() {
    let image = Image::new(End::Killed);
    let sound = chained(&image, 9, 99);
    alike(&sound, "sound");
    assert_eq!(say(&sound, 8).3.records.len(), image.records.len() + 9);
    for bad in 0..9 {
        let disk = chained(&image, 9, bad);
        alike(&disk, &format!("the body of frame {bad}"));
        let (looked, seen, started, _) = say(&disk, 8);
        assert!(looked.contains("row: 7") || looked.contains("row: 8"), "{looked}");
        assert!(started.contains("Corrupt"), "{started}");
        // What is behind the hole is shown, the frame itself is not.
        assert_eq!(seen.unwrap().len(), image.records.len() + 8);
    }
}
