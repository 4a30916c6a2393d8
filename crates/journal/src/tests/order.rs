//! The order of writes and syncs, read off the trace of the simulated disk, and what never changes on it.

use std::collections::{BTreeMap, BTreeSet};

use sealog_disk::sim::{Call, SimDisk, TraceEntry};
use sealog_journal_format::names::SegmentName;

use super::crash_workloads::{WORKLOADS, recover};
use super::crash_world::World;
use super::setup::record;
use crate::Unit;

/// One pass over a trace that knows what is not durable yet.
#[derive(Default)]
struct Durability {
    /// File -> end of its unsynced bytes.
    dirty: BTreeMap<String, u64>,
    /// Folders with entries that are not durable.
    folders: BTreeMap<&'static str, Vec<String>>,
    /// Files whose last sync was that of this process's start, before they are read past the cache.
    synced: BTreeSet<String>,
    /// Head rewrites, each synced, since something else was synced.
    head_rewrites: u32,
    /// Segments whose entries are durable.
    ranges: Vec<SegmentName>,
    /// Since the last sync of a frame nobody has looked for the directory entry.
    unlooked: bool,
}

fn is_segment(file: &str) -> bool {
    file.ends_with(".seg")
}

fn segment_of(file: &str) -> Option<SegmentName> {
    SegmentName::parse(file.strip_prefix("segments/")?)
}

fn folder_of(file: &str) -> &'static str {
    match file {
        file if file.starts_with("segments/") => "segments/",
        file if file.starts_with("quarantine/") => "quarantine/",
        _ => "./",
    }
}

impl Durability {
    fn step(&mut self, entry: &TraceEntry) -> Result<(), String> {
        if entry.error.is_some() || entry.file == "LOCK" {
            return Ok(());
        }
        let file = entry.file.as_str();
        match entry.call {
            Call::Write | Call::WriteDurable => self.write(entry)?,
            Call::SyncData | Call::SyncAll => {
                self.dirty.remove(file);
                self.synced.insert(file.to_owned());
                self.unlooked = is_segment(file);
                self.head_rewrites = if file == "head" { self.head_rewrites + 1 } else { 0 };
            }
            Call::SetLength => {
                self.dirty.insert(file.to_owned(), entry.offset);
            }
            Call::Links => self.unlooked = false,
            Call::Create | Call::MakeFolder => self.entry(file),
            Call::Rename | Call::RenameNew => {
                let (from, to) = file.split_once(" -> ").ok_or("a rename has two names")?;
                if self.dirty.contains_key(from) {
                    return Err(format!("{from} gets its name before its bytes are durable (JC-1, JD-2)"));
                }
                if is_segment(to) && self.loose_segment().is_some() {
                    return Err(format!(
                        "{to} is published before an earlier change of segments is durable (R13)"
                    ));
                }
                self.entry(to);
            }
            Call::Remove => self.remove(file)?,
            Call::SyncFolder => {
                let entries = self.folders.remove(file).unwrap_or_default();
                self.ranges.extend(entries.iter().filter_map(|entry| segment_of(entry)));
            }
            Call::Lock => self.synced.clear(),
            Call::ReadUncached if is_segment(file) && !self.synced.contains(file) => {
                return Err("read from the device before what is in the cache was synced (JR-7)".into());
            }
            Call::IsLocked
            | Call::CheckIdentity
            | Call::List
            | Call::Open
            | Call::OpenForWrite
            | Call::OpenDirect
            | Call::Space
            | Call::Length
            | Call::Read
            | Call::ReadUncached
            | Call::Close => {}
        }
        Ok(())
    }

    fn entry(&mut self, file: &str) {
        self.folders.entry(folder_of(file)).or_default().push(file.to_owned());
    }

    /// A segment's entry that is not durable.
    fn loose_segment(&self) -> Option<&String> {
        self.folders.get("segments/")?.iter().find(|entry| is_segment(entry))
    }

    fn write(&mut self, entry: &TraceEntry) -> Result<(), String> {
        let file = entry.file.as_str();
        let continued = self.dirty.get(file).is_some_and(|end| *end == entry.offset);
        if is_segment(file) {
            if self.dirty.contains_key(file) && !continued {
                return Err("a frame is written before the one before it is durable (JC-4)".into());
            }
            if let Some(entry) = self.loose_segment() {
                return Err(format!("a frame is written before {entry} is durable (JC-1, R13)"));
            }
            if self.dirty.contains_key("head") {
                return Err("a frame is written before the head is durable (JC-1)".into());
            }
        }
        if file == "head" {
            if self.dirty.contains_key("head") {
                return Err("two slots of the head in the air (JF-3)".into());
            }
            if let Some(segment) = self.dirty.keys().find(|file| is_segment(file)) {
                return Err(format!("the head is written before {segment} is durable"));
            }
            if let Some(entry) = self.loose_segment() {
                return Err(format!("the head names {entry} before its entry is durable (JC-1)"));
            }
        }
        match entry.call {
            Call::WriteDurable => self.unlooked = is_segment(file),
            _ => {
                self.dirty.insert(file.to_owned(), entry.offset + entry.len);
            }
        }
        Ok(())
    }

    fn remove(&mut self, file: &str) -> Result<(), String> {
        // Replaced: its range stands, and that is durable (JD-5).
        let replaced = segment_of(file).is_some_and(|segment| {
            self.ranges.iter().any(|range| {
                *range != segment && range.first() <= segment.first() && segment.last() <= range.last()
            })
        });
        if is_segment(file) && self.head_rewrites < 2 && !replaced {
            return Err("a segment goes before neither head slot names it (JC-3)".into());
        }
        self.ranges.retain(|range| segment_of(file) != Some(*range));
        self.entry(file);
        self.dirty.remove(file);
        Ok(())
    }

    /// JC-5, JC-8: what an acknowledgement rests on.
    fn acknowledge(&self) -> Result<(), String> {
        if let Some(segment) = self.dirty.keys().find(|file| is_segment(file)) {
            return Err(format!("acknowledged before {segment} is durable (JC-5)"));
        }
        match self.unlooked {
            true => Err("acknowledged before the directory entry was looked for (JC-8)".into()),
            false => Ok(()),
        }
    }
}

fn check_trace(world: &mut World) -> Result<usize, String> {
    world.trace.extend(world.bench.disk.take_trace());
    let mut durability = Durability::default();
    for (at, entry) in world.trace.iter().enumerate() {
        if world.acknowledged_at.contains(&at) {
            durability.acknowledge()?;
        }
        durability.step(entry).map_err(|e| format!("call {at}, {:?} {}: {e}", entry.call, entry.file))?;
    }
    if world.acknowledged_at.contains(&world.trace.len()) {
        durability.acknowledge()?;
    }
    Ok(world.acknowledged_at.len())
}

/// R11, R13; JC-1, JC-3, JC-4, JC-5, JC-8, JD-2, JF-3: in every workload, its creation and the recovery behind it.
#[test]
fn nothing_is_relied_upon_before_it_is_durable() {
    for direct in [false, true] {
        for (name, workload) in WORKLOADS {
            let mut world = World::on(SimDisk::new(), direct, 7);
            world.start_trace();
            world.create().unwrap();
            workload(&mut world).unwrap();
            world.kill();
            // What is left unsynced is the next process's concern.
            recover(&mut world).unwrap();
            let acknowledged = check_trace(&mut world).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(acknowledged >= 3, "{name}");
        }
    }
}

/// The same for the starts after every crash of a workload that leaves empty segments and torn groups.
#[test]
fn a_recovery_relies_on_nothing_that_is_not_durable() {
    for (name, workload) in WORKLOADS.iter().filter(|(name, _)| name.contains("opened again")) {
        let mut world = World::on(SimDisk::new(), false, 7);
        world.create().unwrap();
        world.bench.disk.record_crash_points();
        workload(&mut world).unwrap();
        world.kill();
        let mut removed = 0;
        for (at, point) in world.bench.disk.take_crash_points().iter().enumerate() {
            for choice in [sealog_disk::sim::Choice::Everything, sealog_disk::sim::Choice::Seeded(at as u64)]
            {
                let expected = world.history.at(u64::MAX);
                let mut next = World::resume(point.image(choice), false, 9, &expected.exactly(0));
                next.start_trace();
                let opened = next.bench.open().unwrap();
                removed += u64::from(opened.report.repairs.empty_segment_removed.is_some());
                opened.commit(Unit::one(record(77, 1, b"next"))).unwrap();
                opened.journal.close().unwrap();
                check_trace(&mut next).unwrap_or_else(|e| panic!("{name}, point {at}, {choice:?}: {e}"));
            }
        }
        assert!(removed > 10, "only {removed} starts had an empty segment to remove");
    }
}

/// What a killed process left in the cache is as little durable for the next one: the rules hold across the two.
#[test]
fn a_killed_process_leaves_nothing_in_the_air() {
    let mut starts = 0;
    for (name, workload) in
        WORKLOADS.iter().filter(|(name, _)| name.contains("head") || name.contains("open"))
    {
        let mut cut = 0;
        loop {
            let mut world = World::on(SimDisk::new(), false, 7);
            world.create().unwrap();
            world.start_trace();
            world.bench.disk.cut_at(world.bench.disk.op_count() + cut);
            // Where it noticed is all the same.
            workload(&mut world).unwrap_or_default();
            world.kill();
            if !world.bench.disk.is_off() {
                break;
            }
            let mut before = std::mem::take(&mut world.trace);
            before.extend(world.bench.disk.take_trace());
            let mut next = World::resume(world.bench.disk.fork(), false, 9, &world.history.now());
            next.start_trace();
            recover(&mut next).unwrap_or_else(|e| panic!("{name}, killed at {cut}: {e:?}"));
            next.trace.extend(next.bench.disk.take_trace());
            let earlier = before.len();
            next.acknowledged_at.iter_mut().for_each(|at| *at += earlier);
            before.append(&mut next.trace);
            next.trace = before;
            check_trace(&mut next).unwrap_or_else(|e| panic!("{name}, killed at {cut}: {e}"));
            (cut, starts) = (cut + 1, starts + 1);
        }
    }
    assert!(starts > 150, "only {starts} starts");
}

/// JC-1: the whole of a publication, call by call.
#[test]
fn a_segment_is_published_in_this_order() {
    let mut world = World::on(SimDisk::new(), false, 7);
    world.create().unwrap();
    world.open().unwrap();
    world.start_trace();
    world.commit(Unit::one(record(1, 1, b"first"))).unwrap();
    let steps: Vec<(Call, &str, u64)> = world
        .trace
        .iter()
        .filter(|entry| entry.call.changes_the_disk() && entry.error.is_none())
        .map(|entry| (entry.call, entry.file.as_str(), entry.offset))
        .collect();
    let (next, segment) = ("segments/next", "segments/000000000001.seg");
    // The prepared length, then the zeros behind it up to the target.
    let wanted = [
        (Call::Create, next, 0),
        (Call::Write, next, 0),
        (Call::Write, next, 4096),
        (Call::Write, next, 8192),
        (Call::SyncAll, next, 0),
        (Call::RenameNew, "segments/next -> segments/000000000001.seg", 0),
        (Call::SyncFolder, "segments/", 0),
        (Call::Write, "head", 4096),
        (Call::SyncData, "head", 0),
        (Call::Write, segment, 8192),
        (Call::SyncData, segment, 0),
        (Call::Write, segment, 8192 + 160),
        (Call::SyncData, segment, 0),
    ];
    let fill = steps.iter().position(|step| *step == wanted[3]).unwrap();
    let synced = steps.iter().position(|step| *step == wanted[4]).unwrap();
    assert!(steps[fill..synced].iter().all(|step| step.0 == Call::Write && step.1 == next), "{steps:#?}");
    assert_eq!(steps[..=fill], wanted[..4]);
    assert_eq!(steps[synced..], wanted[4..]);
}

/// R08; JD-4, JF-3: at every operation of every workload, what stood in a published segment before its end stands
/// there still, and a number that comes back comes with another key.
#[test]
fn no_written_byte_ever_changes() {
    for direct in [false, true] {
        for (name, workload) in WORKLOADS {
            let mut world = World::on(SimDisk::new(), direct, 7);
            world.create().unwrap();
            world.bench.disk.record_crash_points();
            workload(&mut world).unwrap();
            world.kill();
            recover(&mut world).unwrap();
            let points = world.bench.disk.take_crash_points();
            let mut before: BTreeMap<String, Vec<u8>> = BTreeMap::new();
            let mut keys: BTreeMap<Vec<u8>, String> = BTreeMap::new();
            for (at, point) in points.iter().enumerate() {
                let now = point.image(sealog_disk::sim::Choice::Everything).files();
                for (file, bytes) in now.iter().filter(|(file, _)| is_segment(file)) {
                    let key = bytes[136..200].to_vec();
                    let owner = keys.entry(key).or_insert_with(|| file.clone());
                    assert_eq!(owner, file, "{name}, operation {at}: two segments share a key");
                    let Some(old) = before.get(file).filter(|old| old[136..200] == bytes[136..200]) else {
                        continue;
                    };
                    let end = old.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                    let same = bytes.get(..end).is_some_and(|here| *here == old[..end]);
                    assert!(same, "{name}, operation {at}: {file} changed below {end}");
                }
                before = now;
            }
        }
    }
}
