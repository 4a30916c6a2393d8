//! Compaction of everything, as `sealog journal compact` does it, cut before every write and sync: what is left is what was
//! or what was to be, run by run, and the same work done again comes to the same end (R23, JD-5).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sealog_disk::sim::SimDisk;

use super::backup::{fill, read};
use super::crash::in_parallel;
use super::crash_judge::{image, picks};
use super::crash_workloads::forget;
use super::setup::{Bench, record, stream};
use crate::{CompactionTotals, Record, StreamId, Unit};

/// More than one run's worth: streams that have ended, some of them forgotten, and one that goes on through all of it.
fn journal() -> Bench {
    let bench = Bench::new();
    let opened = bench.open().unwrap();
    opened.commit(Unit::one(record(90, 1, b"long"))).unwrap();
    for n in 1..=28 {
        fill(&opened, n..n + 1, 3000);
        opened.commit(Unit::one(record(90, u64::from(n) + 1, b"more"))).unwrap();
        if n % 9 == 0 {
            opened.commit(Unit::one(forget(&[stream(n - 1), stream(n - 2)]))).unwrap();
        }
    }
    opened.journal.close().unwrap();
    bench
}

fn compact(bench: &Bench) -> CompactionTotals {
    let opened = bench.open().unwrap();
    let totals = opened.journal.compact_all(&mut |_| {}).unwrap();
    opened.journal.close().unwrap();
    totals
}

fn of_streams(records: &[Record]) -> BTreeMap<StreamId, Vec<Record>> {
    let mut streams: BTreeMap<StreamId, Vec<Record>> = BTreeMap::new();
    for record in records {
        if let Some(stream) = record.stream {
            streams.entry(stream).or_default().push(record.clone());
        }
    }
    streams
}

/// What a cut leaves, held against what was there before and what is there when nothing is cut.
fn judge(disk: &SimDisk, seed: u64, before: &[Record], after: &[Record]) -> Result<(), String> {
    let bench = Bench::on(disk.clone(), seed);
    let (audit, now) = read(&bench.config).map_err(|e| format!("the audit failed: {e}"))?;
    if !audit.is_sound() {
        return Err(format!("called damaged: {:?}", audit.problems));
    }
    let last = before.last().map_or(0, |record| record.sequence);
    let old: Vec<&Record> = now.iter().filter(|record| record.sequence <= last).collect();
    let mut rest = old.iter();
    let mut next = rest.next();
    for known in before {
        if next.is_some_and(|one| *one == known) {
            next = rest.next();
        } else if after.contains(known) {
            return Err(format!("record {} is lost or altered", known.sequence));
        }
    }
    if let Some(one) = next {
        return Err(format!("record {} is altered or out of place", one.sequence));
    }
    // Of a stream all that it had or nothing: no run ends within what it drops.
    let (had, has) = (of_streams(before), of_streams(&now));
    let partly = |(stream, records): (&StreamId, &Vec<Record>)| had.get(stream) != Some(records);
    let kept = of_streams(after);
    if let Some((stream, _)) = has.iter().find(|one| partly(*one) && kept.contains_key(one.0)) {
        return Err(format!("{stream:?} is there in part"));
    }
    compact(&bench);
    let (audit, again) = read(&bench.config).map_err(|e| format!("no audit behind it: {e}"))?;
    match audit.is_sound() && of_streams(&again) == kept {
        true => Ok(()),
        false => Err("done again it does not come to the same end".to_owned()),
    }
}

#[test]
fn compacting_everything_survives_a_cut_at_every_step() {
    let whole = journal();
    let before = read(&whole.config).unwrap().1;
    for direct in [false, true] {
        let disk = whole.disk.fork();
        disk.set_direct(direct);
        let bench = Bench::on(disk, 70);
        bench.disk.record_crash_points();
        let totals = compact(&bench);
        let points = bench.disk.take_crash_points();
        let after = read(&bench.config).unwrap().1;
        assert!(totals.rewrites >= 2 && totals.records_dropped >= 18, "{totals:?}");
        assert!(points.len() > 40, "{}", points.len());
        let images = Mutex::new(0);
        let failures = Mutex::new(Vec::new());
        in_parallel(points.len(), |at| {
            for pick in picks(&points[at], 2, at as u64) {
                *images.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                if let Err(what) = judge(&image(&points[at], pick), 71 + at as u64, &before, &after) {
                    let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                    failures.push(format!("direct {direct}, operation {at}, {pick:?}: {what}"));
                }
            }
        });
        let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert!(failures.is_empty(), "{:#?}", &failures[..failures.len().min(10)]);
        println!("{} operations, {} images", points.len(), images.into_inner().unwrap_or_default());
    }
}
