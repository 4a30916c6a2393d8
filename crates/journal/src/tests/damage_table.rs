//! A walk over the whole decision table with real images: each row reached, the same verdict from a start, from a
//! read-only tool, and again from a second look (JR-3, JR-4, R03).

use std::collections::BTreeSet;

use sealog_disk::sim::SimDisk;
use sealog_journal_format::limits::DATA_START;

use super::damage_forge::Forged;
use super::damage_image::{End, Image, look, refusal, root, rows, segment, start, tail_place};
use super::tails::published_fourth;
use crate::JournalError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Sound,
    Torn(u64, u64),
    /// Damage at a segment and an offset.
    Damage(u64, u64),
    /// A file that does not read, a file that is not there.
    File(&'static str),
    Missing(&'static str),
}

use Outcome::{Damage, File, Missing, Sound, Torn};

/// The row of the table, words, the image, and what is said of it.
pub(crate) type Case = (u8, &'static str, SimDisk, Outcome);

fn changed(image: &Image, change: impl FnOnce(&SimDisk)) -> SimDisk {
    let disk = image.disk.fork();
    change(&disk);
    disk
}

fn rows_1_to_3(idle: &Image, closed: &Image) -> Vec<Case> {
    let second = idle.frame(2, 1);
    let flip = |number, offset| changed(idle, |disk| disk.flip_bit(&segment(number), offset, 1));
    vec![
        (1, "a copy of an ended segment's header", flip(1, 100), Damage(1, 0)),
        (1, "the second copy", flip(2, 4096 + 4000), Damage(2, 4096)),
        (1, "a copy of the last segment's header", flip(3, 300), Damage(3, 0)),
        (2, "the named end and the end of the file", closed.disk.fork(), Sound),
        (
            2,
            "the named end, then zeros",
            changed(closed, |disk| disk.overwrite(&segment(1), closed.end_of(1), &[0; 4000])),
            Sound,
        ),
        (3, "a damaged frame", flip(2, second.offset + 150), Damage(2, second.offset)),
        (
            3,
            "an ended segment is cut",
            changed(idle, |disk| disk.truncate(&segment(2), second.offset)),
            Damage(2, second.offset),
        ),
        (
            3,
            "bytes behind the named end",
            changed(idle, |disk| disk.overwrite(&segment(2), idle.end_of(2) + 600, &[1])),
            Damage(2, idle.end_of(2)),
        ),
        (
            3,
            "bytes behind the seal of an ended segment",
            changed(idle, |disk| disk.overwrite(&segment(1), idle.end_of(1), &[1])),
            Damage(1, idle.end_of(1)),
        ),
    ]
}

fn rows_4_to_6(killed: &Image, idle: &Image, closed: &Image) -> Vec<Case> {
    let newest = idle.newest();
    let zeros = |image: &Image| {
        let length = image.bytes(3).len() as u64;
        let zeros = vec![0; (length - newest.offset) as usize];
        changed(image, |disk| disk.overwrite(&segment(3), newest.offset, &zeros))
    };
    let cut = |image: &Image| changed(image, |disk| disk.truncate(&segment(3), newest.offset));
    vec![
        (4, "zeros to the end of the file", killed.disk.fork(), Sound),
        (4, "the end of the file", closed.disk.fork(), Sound),
        (4, "an uncovered group is gone, cut", cut(killed), Sound),
        (4, "an uncovered group is gone, zeroed", zeros(killed), Sound),
        (4, "an empty follower", published_fourth(closed), Sound),
        (5, "a covered group is gone, cut", cut(idle), Damage(3, newest.offset)),
        (5, "a covered group is gone, zeroed", zeros(idle), Damage(3, newest.offset)),
        (
            5,
            "a segment that the head counts is empty",
            changed(idle, |disk| disk.truncate(&segment(3), DATA_START)),
            Damage(3, DATA_START),
        ),
        (
            6,
            "bytes behind the seal",
            changed(closed, |disk| disk.overwrite(&segment(3), closed.end_of(3) + 700, &[1])),
            Torn(3, closed.end_of(3)),
        ),
        (
            6,
            "a whole frame behind the seal",
            Forged::behind(closed, &closed.newest()).behind_all(closed),
            Torn(3, closed.end_of(3)),
        ),
    ]
}

fn rows_7_to_9(killed: &Image, idle: &Image, closed: &Image) -> Vec<Case> {
    let newest = killed.newest();
    let flip = |image: &Image, offset| changed(image, |disk| disk.flip_bit(&segment(3), offset, 1));
    let older = killed.frame_bytes(&killed.frame(3, 1));
    let follower = published_fourth(closed);
    follower.overwrite(&segment(4), DATA_START + 40, &[9; 9]);
    vec![
        (
            7,
            "a frame that was copied behind the end",
            changed(killed, |disk| disk.overwrite(&segment(3), newest.end(), &older)),
            Damage(3, newest.end()),
        ),
        (
            7,
            "a forged frame",
            Forged::behind(idle, &idle.newest()).with(|h| h.index += 1).behind_all(idle),
            Damage(3, idle.newest().end()),
        ),
        (8, "a covered group is damaged", flip(idle, newest.offset + 99), Damage(3, newest.offset)),
        (8, "a covered link is damaged", flip(killed, DATA_START + 99), Damage(3, DATA_START)),
        (
            8,
            "a covered seal is damaged",
            flip(closed, closed.newest().offset + 99),
            Damage(3, closed.newest().offset),
        ),
        (9, "an uncovered group is damaged", flip(killed, newest.offset + 99), Torn(3, newest.offset)),
        (9, "bytes behind the end of the data", flip(idle, newest.end() + 99), Torn(3, newest.end())),
        (9, "a follower's place 0", follower, Torn(4, DATA_START)),
    ]
}

fn rows_10_and_11(idle: &Image) -> Vec<Case> {
    let without = |file: &str| changed(idle, |disk| disk.delete(&root(file)));
    let no_segment = |number| changed(idle, |disk| disk.delete(&segment(number)));
    let head = |flips: &[u64]| {
        changed(idle, |disk| flips.iter().for_each(|at| disk.flip_bit(&root("head"), *at, 2)))
    };
    let no_keyring = changed(idle, |disk| {
        disk.delete(&root("keyring.0"));
        disk.delete(&root("keyring.1"));
    });
    vec![
        (10, "slot A is damaged", head(&[30]), Sound),
        (10, "slot B is damaged", head(&[4096 + 130]), Sound),
        (10, "both slots are damaged", head(&[30, 4096 + 130]), File("head")),
        (10, "there is no head", without("head"), Missing("head")),
        (11, "the first segment is gone", no_segment(1), Damage(1, 0)),
        (11, "a segment in the middle is gone", no_segment(2), Damage(2, 0)),
        (11, "the segment that the head names is gone", no_segment(3), Damage(3, 0)),
        (11, "there is no store", without("store"), Missing("store")),
        (11, "there is no keyring", no_keyring, Missing("keyring")),
    ]
}

#[track_caller]
fn same_verdict(case: &Case) {
    let (row, name, disk, outcome) = case;
    match outcome {
        Sound | Torn(..) => {
            let (found, seen) = look(disk);
            assert_eq!(rows(&found.problems), [], "{name}");
            let opened = start(&disk.fork());
            assert_eq!(opened.report.tail, found.tail, "{name}");
            assert_eq!(opened.records, seen.records, "{name}");
            let torn = tail_place(found.tail.as_ref()).map_or(Sound, |(number, at)| Torn(number, at));
            assert_eq!(torn, *outcome, "{name}");
        }
        Damage(number, offset) => {
            assert_eq!(rows(&look(disk).0.problems), [(*number, *offset, *row)], "{name}");
            super::damage_image::refused_at(disk, *number, *offset, *row);
        }
        File(file) => match refusal(disk) {
            JournalError::CorruptFile { file: found, .. } => assert_eq!(&found, file, "{name}"),
            other => panic!("{name}: {other:?}"),
        },
        Missing(file) => match refusal(disk) {
            JournalError::Missing { file: found } => assert_eq!(&found, file, "{name}"),
            other => panic!("{name}: {other:?}"),
        },
    }
}

/// Every row of the table.
pub(crate) fn cases() -> Vec<Case> {
    let [killed, idle, closed] = [End::Killed, End::Idle, End::Closed].map(Image::new);
    let mut cases = rows_1_to_3(&idle, &closed);
    cases.extend(rows_4_to_6(&killed, &idle, &closed));
    cases.extend(rows_7_to_9(&killed, &idle, &closed));
    cases.extend(rows_10_and_11(&idle));
    cases
}

#[test]
fn every_row_is_reached_by_an_image_and_judged_alike() {
    let cases = cases();
    cases.iter().for_each(same_verdict);
    let reached: BTreeSet<u8> = cases.iter().map(|case| case.0).collect();
    assert_eq!(reached, (1..=11).collect());
}
