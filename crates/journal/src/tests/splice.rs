//! Files and frames that were deleted, swapped, copied, renamed, replayed or brought in from elsewhere: each is refused
//! or judged by a named row, and nothing of them decodes where it does not belong (R04, R05, R12, R18).

use sealog_disk::sim::{Choice, SimDisk};
use sealog_journal_format::limits::DATA_START;
use sealog_seal::{Secret, SlotParams, StoreId};

use super::damage_image::{
    End, Image, contents, group, look, refusal, refused_at, root, rows, segment, start, try_look,
};
use super::setup::Bench;
use crate::{Create, Gap, JournalError, Record};

fn forked(image: &Image, change: impl FnOnce(&SimDisk)) -> SimDisk {
    let disk = image.disk.fork();
    change(&disk);
    disk
}

/// Nothing is shown that is not a record of this journal.
#[track_caller]
fn only_own_records(disk: &SimDisk, image: &Image) {
    let seen = look(disk).1.records;
    assert!(seen.iter().all(|record| image.records.contains(record)));
    let sequences: Vec<u64> = seen.iter().map(|record| record.sequence).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
}

fn span(records: &[Record], image: &Image, number: u64) -> (u64, u64) {
    let frames = image.frames_of(number);
    let first = frames[0].header.first_sequence;
    let last = frames.last().unwrap().header.next_sequence() - 1;
    assert!(records.iter().any(|r| r.sequence == first) && records.iter().any(|r| r.sequence == last));
    (first, last)
}

/// R05, row 11: any published segment; the rest is shown and the gap is exact where a link or a closed head tells.
#[test]
fn a_deleted_segment_is_data_loss() {
    for end in [End::Killed, End::Idle, End::Closed] {
        let image = Image::new(end);
        for number in [1, 2, 3] {
            let disk = forked(&image, |disk| disk.delete(&segment(number)));
            refused_at(&disk, number, 0, 11);
            let (found, seen) = look(&disk);
            assert_eq!(rows(&found.problems), [(number, 0, 11)], "{end:?}");
            let (first, last) = span(&image.records, &image, number);
            let known = number < 3 || end == End::Closed;
            let last_sequence = known.then_some(last);
            assert_eq!(
                found.gaps,
                [Gap { segment: number, offset: 0, first_sequence: first, last_sequence }]
            );
            let kept = image.records.iter().filter(|r| r.sequence < first || r.sequence > last);
            assert_eq!(seen.records, kept.cloned().collect::<Vec<_>>());
        }
    }
}

/// R05, R12: several at once, and all of them: never a fresh journal (JD-3).
#[test]
fn several_deleted_segments_are_one_gap_and_all_are_no_fresh_journal() {
    let image = Image::new(End::Closed);
    let last = image.records.last().unwrap().sequence;
    let gap = |segment, first_sequence, last_sequence| Gap {
        segment,
        offset: 0,
        first_sequence,
        last_sequence: Some(last_sequence),
    };
    let third = span(&image.records, &image, 3).0;
    let second = span(&image.records, &image, 2).0;
    for (deleted, gap) in [
        (vec![1, 2], gap(1, 1, third - 1)),
        (vec![2, 3], gap(2, second, last)),
        (vec![1, 2, 3], gap(1, 1, last)),
    ] {
        let disk = forked(&image, |disk| deleted.iter().for_each(|n| disk.delete(&segment(*n))));
        refused_at(&disk, deleted[0], 0, 11);
        assert_eq!(look(&disk).0.gaps, [gap], "{deleted:?}");
    }
}

/// JD-3, R12: `store`, head or both keyrings beside data; also beside nothing but a head that names a segment.
#[test]
fn a_missing_store_head_or_keyring_is_data_loss() {
    let image = Image::new(End::Closed);
    let all = |disk: &SimDisk| [1, 2, 3].into_iter().for_each(|n| disk.delete(&segment(n)));
    let missing = |disk: &SimDisk, wanted: &str| {
        match refusal(disk) {
            JournalError::Missing { file } => assert_eq!(file, wanted),
            other => panic!("{other:?}"),
        }
        let before = contents(disk);
        let created = Bench::on(disk.clone(), 8).try_create();
        assert!(created.is_err(), "never a fresh journal (R12)");
        assert!(contents(disk) == before);
    };
    for segments in [true, false] {
        let without = |files: &[&str]| {
            forked(&image, |disk| {
                files.iter().for_each(|file| disk.delete(&root(file)));
                if !segments {
                    all(disk);
                }
            })
        };
        missing(&without(&["store"]), "store");
        missing(&without(&["keyring.0", "keyring.1"]), "keyring");
        missing(&without(&["store", "keyring.0", "keyring.1"]), "store");
        assert!(start_is_refused(&without(&["head"])));
    }
    missing(&forked(&image, |disk| disk.delete(&root("head"))), "head");
    let one = forked(&image, |disk| disk.delete(&root("keyring.1")));
    assert!(start(&one).report.repairs.keyring_levelled);
    assert_eq!(one.durable_files()["keyring.1"], one.durable_files()["keyring.0"]);
}

fn start_is_refused(disk: &SimDisk) -> bool {
    let _ = refusal(disk);
    true
}

/// R05: files under another segment's name. The number is in the header, so row 1 names each of them.
#[test]
fn swapped_duplicated_and_renamed_segments_are_named() {
    let image = Image::new(End::Closed);
    let bytes = |n| image.bytes(n);
    for (a, b) in [(1, 2), (2, 3), (1, 3)] {
        let disk = forked(&image, |disk| {
            disk.put(&segment(a), &bytes(b));
            disk.put(&segment(b), &bytes(a));
        });
        refused_at(&disk, a, 0, 1);
        let named = rows(&look(&disk).0.problems);
        assert_eq!(named, [(a, 0, 1), (b, 0, 1)]);
        only_own_records(&disk, &image);
    }
    for (from, to) in [(1, 4), (3, 4), (2, 9)] {
        let disk = forked(&image, |disk| disk.copy(&segment(from), &segment(to)));
        refused_at(&disk, if to == 9 { 4 } else { to }, 0, if to == 9 { 11 } else { 1 });
        only_own_records(&disk, &image);
    }
    for (from, to) in [(1, 7), (2, 7), (3, 4)] {
        let disk = forked(&image, |disk| {
            disk.copy(&segment(from), &segment(to));
            disk.delete(&segment(from));
        });
        refused_at(&disk, from, 0, 11);
        only_own_records(&disk, &image);
    }
}

/// A name that is none of a segment hides the segment; under a name of a compacted one a log segment is none.
#[test]
fn a_segment_under_a_name_of_no_segment_is_missing() {
    let image = Image::new(End::Closed);
    let named = |file: &str| sealog_disk::Name::new(sealog_disk::Folder::Segments, file).unwrap();
    for file in ["2.seg", "0000000000002.seg", "000000000002.seg.bak", "000000000002.SEG", "000000000000.seg"]
    {
        let disk = forked(&image, |disk| {
            disk.copy(&segment(2), &named(file));
            disk.delete(&segment(2));
        });
        refused_at(&disk, 2, 0, 11);
    }
    let huge = forked(&image, |disk| disk.copy(&segment(3), &named("18446744073709551615.seg")));
    refused_at(&huge, 4, 0, 11);
    let compacted = "000000000001-000000000002.000000000001.seg";
    // Beside the segments that it says to stand for it is a damaged replacement, and is set aside (JR-15).
    let disk = forked(&image, |disk| disk.copy(&segment(1), &named(compacted)));
    match super::setup::Bench::on(disk.clone(), 77).open() {
        Err(JournalError::Corrupt { place, row, .. }) => {
            assert_eq!((place.segment, place.offset, row), (1, 0, 1));
        }
        other => panic!("{:?}", other.map(|opened| opened.report)),
    }
    assert!(disk.bytes(&named(compacted)).is_none());
    assert_eq!(start(&disk).records, image.records);
    let disk = forked(&image, |disk| {
        disk.put_foreign(sealog_disk::Folder::Segments, "000000000004.seg", sealog_disk::FileKind::Other);
    });
    assert!(matches!(refusal(&disk), JournalError::CorruptFile { .. }));
}

/// R04: a whole frame at another offset of its segment, in another segment, over another frame.
#[test]
fn frames_copied_elsewhere_never_decode() {
    for end in [End::Killed, End::Idle] {
        let image = Image::new(end);
        let behind = image.newest().end();
        for number in [1, 2, 3] {
            for frame in image.frames_of(number) {
                let bytes = image.frame_bytes(&frame);
                let disk = forked(&image, |disk| disk.overwrite(&segment(3), behind, &bytes));
                refused_at(&disk, 3, behind, 7);
                only_own_records(&disk, &image);
                // Not at the place itself it is no more than garbage behind the end.
                let disk = forked(&image, |disk| disk.overwrite(&segment(3), behind + 32, &bytes));
                let (found, seen) = look(&disk);
                assert_eq!((rows(&found.problems), seen.records), (vec![], image.records.clone()));
                assert_eq!(found.tail.unwrap().place.offset, behind);
            }
        }
        let (second, third) = (image.frame(3, 2), image.frame(3, 3));
        let disk =
            forked(&image, |disk| disk.overwrite(&segment(3), second.offset, &image.frame_bytes(&third)));
        refused_at(&disk, 3, second.offset, 7);
        only_own_records(&disk, &image);
        let first = image.frame(2, 1);
        let other = image.frame_bytes(&image.frame(1, 1));
        let disk = forked(&image, |disk| disk.overwrite(&segment(2), first.offset, &other));
        refused_at(&disk, 2, first.offset, 3);
        only_own_records(&disk, &image);
    }
}

/// R18: frames of one segment in another order, one left out, one twice; covered or not it is row 7 (ended: row 3).
#[test]
fn reordered_dropped_and_duplicated_frames_are_damage() {
    for (number, end, row) in [(3, End::Killed, 7), (3, End::Idle, 7), (2, End::Idle, 3), (1, End::Closed, 3)]
    {
        let image = Image::new(end);
        let (first, second) = (image.frame(number, 1), image.frame(number, 2));
        let [one, two] = [first, second].map(|at| image.frame_bytes(&at));
        let rest = image.bytes(number)[second.end() as usize..].to_vec();
        for spliced in [
            [two.as_slice(), &one, &rest].concat(),
            [two.as_slice(), &rest].concat(),
            [two.as_slice(), &two, &rest].concat(),
        ] {
            let disk = forked(&image, |disk| disk.overwrite(&segment(number), first.offset, &spliced));
            refused_at(&disk, number, first.offset, row);
            only_own_records(&disk, &image);
        }
        let twice = [one.as_slice(), &one, &two, &rest].concat();
        let disk = forked(&image, |disk| disk.overwrite(&segment(number), first.offset, &twice));
        refused_at(&disk, number, first.end(), row);
        only_own_records(&disk, &image);
    }
}

/// R18, R05: an older state of a whole segment put back. What the head does not cover yet only an anchor would miss.
#[test]
fn an_older_version_of_a_segment_is_missed_by_what_covers_it() {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    let old = bench.disk.bytes(&segment(1)).unwrap();
    opened.commit(group(1, 3)).unwrap();
    let killed = Image::of(Bench::on(bench.disk.fork(), 1));
    bench.clock.advance(bench.config.tuning.head_idle);
    opened.journal.maintain();
    let idle = Image::of(Bench::on(bench.disk.fork(), 1));
    drop(opened);
    let again = bench.open().unwrap();
    again.commit(group(1, 5)).unwrap();
    drop(again);
    let ended = Image::of(bench);
    let lost = idle.frame(1, 2);
    let replayed = |image: &Image| forked(image, |disk| disk.put(&segment(1), &old));
    refused_at(&replayed(&idle), 1, lost.offset, 5);
    refused_at(&replayed(&ended), 1, lost.offset, 3);
    assert_eq!(start(&replayed(&killed)).records, killed.records_without(&lost), "the residue (JR-6)");
}

/// An older head beside newer segments proves less and is no damage; a newer head beside older segments is.
#[test]
fn a_head_of_another_time() {
    let killed = Image::new(End::Killed);
    let closed = Image::new(End::Closed);
    let old = killed.disk.bytes(&root("head")).unwrap();
    let disk = forked(&closed, |disk| disk.put(&root("head"), &old));
    assert_eq!(start(&disk).records, closed.records);
    let earlier = Image::new(End::Idle).disk.bytes(&root("head")).unwrap();
    let disk = forked(&killed, |disk| disk.put(&root("head"), &earlier));
    let opened = start(&disk);
    opened.commit(group(9, 1)).unwrap();
    drop(opened);
    let grown = disk.crash_point().image(Choice::Everything);
    // Its head names segment 4; with the segments of before it is data loss.
    let disk = forked(&killed, |disk| disk.put(&root("head"), &grown.bytes(&root("head")).unwrap()));
    refused_at(&disk, 4, 0, 11);
}

/// Two copies of one stopped journal, both opened and written: `(image of a, image of b)`.
fn clones(end: End) -> (Image, Image) {
    let base = Image::new(End::Closed);
    let grow = |seed: u64| {
        let bench = Bench::on(base.disk.fork(), seed);
        for round in 0..2 {
            let opened = bench.open().unwrap();
            opened.commit(group(4, 1 + round)).unwrap();
            opened.commit(group(5, 1 + round)).unwrap();
            match end {
                End::Killed => {}
                End::Idle => {
                    bench.clock.advance(bench.config.tuning.head_idle);
                    opened.journal.maintain();
                }
                End::Closed => opened.journal.close().unwrap(),
            }
        }
        Image::of(bench)
    };
    (grow(101), grow(202))
}

/// R18: segments of a clone authenticate under the same keys and continue the same chain; lineage and links tell.
#[test]
fn segments_of_a_clone_do_not_fit() {
    for end in [End::Killed, End::Idle, End::Closed] {
        let (ours, theirs) = clones(end);
        assert_eq!(ours.frames.len(), theirs.frames.len());
        let with = |numbers: &[u64]| {
            forked(&ours, |disk| numbers.iter().for_each(|n| disk.put(&segment(*n), &theirs.bytes(*n))))
        };
        let ending = ours.end_of(4);
        refused_at(&with(&[4]), 4, ending, 3);
        let (found, _) = look(&with(&[4]));
        assert!(rows(&found.problems).contains(&(5, 0, 7)), "its successor has another predecessor");
        refused_at(&with(&[5]), 4, ending, 3);
        // Both: a whole line of the other clone, but the head is ours.
        refused_at(&with(&[4, 5]), 5, 0, 7);
        let disk = with(&[4, 5]);
        disk.put(&root("head"), &theirs.disk.bytes(&root("head")).unwrap());
        assert_eq!(start(&disk).records, theirs.records, "then nothing is left of ours");
    }
}

/// R04, R18: another journal under the same secret has other keys: nothing of it opens here.
#[test]
fn files_of_another_journal_are_refused() {
    let ours = Image::new(End::Closed);
    let bench = Bench::on(SimDisk::new(), 55);
    let secret = Secret::raw([9; 32]);
    let create = Create {
        disk: bench.config.disk.clone(),
        clock: bench.config.clock.clone(),
        entropy: bench.config.entropy.clone(),
        store_id: StoreId([4; 16]),
        slot_name: "key",
        secret: &secret,
        params: SlotParams::DEFAULT,
    };
    create.run(&mut || Ok(())).unwrap();
    let opened = bench.open().unwrap();
    opened.commit(group(1, 1)).unwrap();
    opened.journal.close().unwrap();
    let other = bench.disk.crash_point().image(Choice::Everything);
    let file = |name: &str| other.bytes(&root(name)).unwrap();
    let foreign = other.bytes(&segment(1)).unwrap();
    for number in [1, 4] {
        let disk = forked(&ours, |disk| disk.put(&segment(number), &foreign));
        refused_at(&disk, number, 0, 1);
        only_own_records(&disk, &ours);
    }
    let frame = &foreign[DATA_START as usize + 160..DATA_START as usize + 160 + 224];
    let behind = forked(&ours, |disk| disk.truncate(&segment(3), ours.newest().offset));
    behind.overwrite(&segment(3), ours.newest().offset, frame);
    refused_at(&behind, 3, ours.newest().offset, 7);
    let disk = forked(&ours, |disk| disk.put(&root("store"), &file("store")));
    assert!(matches!(refusal(&disk), JournalError::WrongStore));
    assert!(matches!(try_look(&disk), Err(JournalError::WrongStore)));
    for copies in [vec!["keyring.0"], vec!["keyring.1"], vec!["keyring.0", "keyring.1"]] {
        let disk = forked(&ours, |disk| copies.iter().for_each(|name| disk.put(&root(name), &file(name))));
        assert!(matches!(refusal(&disk), JournalError::WrongStore));
    }
    let disk = forked(&ours, |disk| disk.put(&root("head"), &file("head")));
    assert!(matches!(refusal(&disk), JournalError::CorruptFile { .. }));
}
