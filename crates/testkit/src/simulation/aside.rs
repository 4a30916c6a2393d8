//! What an operator does with a stopped node's journal beside it: export and import, repair of a damaged copy, a node
//! that only reads. Owns what each of them must give back; none of them may change the journal that it is given.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use http::Request;
use http_body_util::BodyExt;
use sealog_disk::sim::{Choice, SimDisk};
use sealog_disk::{Disk, Folder, Name};
use sealog_engine::store::StoreLimits;
use sealog_engine::store::journal::JournalStore;
use sealog_engine::store::journal::transfer::{check, export, import_manual};
use sealog_engine::{Engine, EngineOptions, EventStore};
use sealog_events::json::snapshot_json;
use sealog_events::{ExecutionId, RecordKind};
use sealog_http::{ServerOptions, router};
use sealog_journal::{
    Config, Contents, Create, Fence, Record, Repaired, StreamId, audit, look, repair, salvage_view,
};
use sealog_journal_format::journal_records::{Forget, KIND_FORGET, KIND_RESTORED};
use sealog_seal::{Secret, SlotParams, StoreId};

use super::client::{Ask, text};
use super::host::{Host, KEY, Records};
use super::offline::Cut;
use super::random::Random;
use super::script::{providers, request_body};
use super::world::World;

/// Executions that a reading node is asked for.
const LOOKS_MAX: usize = 6;

fn records(host: &Host, disk: &SimDisk) -> Result<(bool, Vec<Record>), String> {
    let told = |e| format!("a journal that was made beside the old one does not read: {e}");
    let (found, records) = audit(&host.config(&disk.fork()), &mut Records::default).map_err(told)?;
    Ok((found.is_sound() && found.tail.is_none(), records.0))
}

/// The lines of an export, without those that speak of the journal that it was made of.
fn exported(host: &Host, disk: &SimDisk) -> Result<(Vec<u8>, Vec<String>), String> {
    let mut lines = Vec::new();
    export(&host.config(disk), None, &mut lines).map_err(|e| format!("an export failed: {e}"))?;
    let told = String::from_utf8(lines.clone()).map_err(|_| "an export is no text")?;
    let told: Vec<String> = told.lines().map(str::to_owned).collect();
    let middle = told.get(1..told.len().saturating_sub(1)).unwrap_or_default().to_vec();
    Ok((lines, middle))
}

/// Exports the journal and imports the lines into a new one, which must export the same lines; that one, and what it
/// holds. What is cut short is thrown away and done again, as an import does.
///
/// # Errors
/// What it violates.
pub(super) fn transfer(host: &Host, cut: Cut) -> Result<(SimDisk, Vec<Record>), String> {
    let before = host.disk.fingerprint();
    let (lines, middle) = exported(host, &host.disk)?;
    if host.disk.fingerprint() != before {
        return Err("an export changed the journal".to_owned());
    }
    let mut target = SimDisk::new();
    if let Some((after, keep)) = cut {
        target.cut_at(after);
        let made = imported(host, &target, &lines);
        if !target.is_off() {
            made?;
        }
        target = target.crash_point().image(keep);
        judge_part(host, &target, &lines)?;
        target = SimDisk::new();
    }
    imported(host, &target, &lines)?;
    // All of it is durable before the new journal is given its place.
    let target = target.crash_point().image(Choice::Nothing);
    if exported(host, &target)?.1 != middle {
        return Err("export and import do not give the same lines".to_owned());
    }
    match records(host, &target)? {
        (true, records) => Ok((target, records)),
        (false, _) => Err("an imported journal is not sound".to_owned()),
    }
}

fn imported(host: &Host, target: &SimDisk, lines: &[u8]) -> Result<(), String> {
    let checked = check(&mut &lines[..]).map_err(|e| format!("an export does not check: {e}"))?;
    let mut config = host.config(target);
    // Lines take more room than what was folded.
    config.tuning.disk_bytes_max = u64::MAX;
    let create = Create {
        disk: Arc::clone(&config.disk),
        clock: Arc::clone(&config.clock),
        entropy: Arc::clone(&config.entropy),
        store_id: StoreId([4; 16]),
        slot_name: "key",
        secret: &Secret::raw(KEY),
        params: SlotParams::FLOOR,
    };
    create.run(&mut || Ok(())).map_err(|e| format!("no journal could be made: {e}"))?;
    let made = import_manual(&config, &mut &lines[..], &checked);
    made.map(|_| ()).map_err(|e| format!("an import failed: {e}"))
}

/// An import that was cut leaves no journal, or a sound one with a beginning of the lines' records.
fn judge_part(host: &Host, cut: &SimDisk, lines: &[u8]) -> Result<(), String> {
    match look(cut).map_err(|e| format!("an import that was cut: {e}"))? {
        Contents::Empty | Contents::Leftovers { .. } => return Ok(()),
        Contents::Journal { .. } => {}
    }
    let told = |e| format!("an import that was cut does not read: {e}");
    let (found, part) = audit(&host.config(&cut.fork()), &mut Records::default).map_err(told)?;
    if let Some(problem) = found.problems.first() {
        return Err(format!("an import that was cut is called damaged: {problem:?}"));
    }
    let whole = SimDisk::new();
    imported(host, &whole, lines)?;
    let (_, whole) = records(host, &whole)?;
    let is_beginning = part.0.len() <= whole.len()
        && part.0.iter().map(told_of).eq(whole.iter().take(part.0.len()).map(told_of));
    is_beginning.then_some(()).ok_or_else(|| "an import that was cut holds something else".to_owned())
}

/// What a record says, wherever it stands.
fn told_of(record: &Record) -> (u16, Option<StreamId>, u64, u64, &[u8]) {
    (record.kind, record.stream, record.event_number, record.time_ms, &record.body)
}

/// Damages a copy of the journal and repairs it: what the repair keeps is what was there, of each stream a beginning,
/// and whatever is missing has been named.
///
/// # Errors
/// What it violates.
pub(super) fn repaired(host: &Host, damage: u64, cut: Cut) -> Result<(), String> {
    let (_, all) = records(host, &host.disk)?;
    let damaged = host.disk.fork();
    wreck(&damaged, &mut Random::of(damage, 0));
    let before = damaged.fingerprint();
    let mut target = SimDisk::new();
    if let Some((after, keep)) = cut {
        target.cut_at(after);
        // It may also come to its end before the power goes.
        let _ = run_repair(host, &damaged, &target);
        target = target.crash_point().image(keep);
    }
    let done = run_repair(host, &damaged, &target)?;
    if damaged.fingerprint() != before {
        return Err("a repair changed the damaged journal".to_owned());
    }
    let target = target.crash_point().image(Choice::Nothing);
    let source = source(host, &damaged)?;
    let head =
        audit(&source, &mut Records::default).map_err(|e| format!("no look at the damage: {e}"))?.0.head;
    let evident = head.map_or(0, |head| head.last_sequence);
    judge_repaired(host, &target, &done, &all, evident)
}

/// The damaged journal as a repair reads it.
fn source(host: &Host, damaged: &SimDisk) -> Result<Config, String> {
    let disk: Arc<dyn Disk> = Arc::new(damaged.clone());
    let view = salvage_view(&disk).map_err(|e| format!("no view of the damage: {e}"))?;
    Ok(Config { disk: view, ..host.config(damaged) })
}

fn run_repair(host: &Host, damaged: &SimDisk, target: &SimDisk) -> Result<Repaired, String> {
    let target: Arc<dyn Disk> = Arc::new(target.clone());
    repair(&source(host, damaged)?, &target).map_err(|e| format!("a repair failed: {e}"))
}

/// Damage of every kind that leaves a keyring that opens.
fn wreck(disk: &SimDisk, random: &mut Random) {
    let root = |file| Name::new(Folder::Root, file).filter(|name| disk.bytes(name).is_some());
    let length = |name: &Name| disk.bytes(name).map_or(0, |bytes| bytes.len() as u64);
    for _ in 0..random.between(1, 3) {
        let entries = disk.list(Folder::Segments).unwrap_or_default();
        let files = entries.iter().filter(|entry| entry.file.ends_with(".seg"));
        let segments: Vec<Name> =
            files.filter_map(|entry| Name::new(Folder::Segments, &entry.file)).collect();
        let place = random.below(segments.len() as u64) as usize;
        let segment = segments.get(place).filter(|name| length(name) > 0);
        match (random.below(8), segment) {
            (0..=2, Some(name)) => {
                let offset = random.below(length(name));
                disk.flip_bit(name, offset, random.below(8) as u8);
            }
            (3, Some(name)) => disk.truncate(name, random.below(length(name))),
            (4, Some(name)) => disk.overwrite(name, length(name), &[0xa5; 700]),
            // Without any segment there is no journal.
            (5, Some(name)) if segments.len() > 1 => disk.delete(name),
            (6, _) => {
                if let Some(head) = root("head") {
                    disk.flip_bit(&head, 100, 1);
                    disk.flip_bit(&head, 4196, 1);
                }
            }
            _others => {
                // Nor without `store`, where there are no records that it would belong to.
                let file = random.pick(&["store", "keyring.0", "head"]);
                let file = if segments.is_empty() { "keyring.0" } else { file };
                root(file).iter().for_each(|name| disk.delete(name));
            }
        }
    }
}

/// `evident`: the last sequence that the damaged journal's head still tells of.
fn judge_repaired(
    host: &Host,
    target: &SimDisk,
    done: &Repaired,
    all: &[Record],
    evident: u64,
) -> Result<(), String> {
    let (sound, mut kept) = records(host, target)?;
    let last = kept.pop().map(|record| record.kind);
    if !sound || last != Some(KIND_RESTORED) || kept.len() as u64 != done.records {
        return Err(format!("a repaired journal is not what the repair says: {done:?}"));
    }
    let mut rest = all.iter();
    if let Some(made_up) = kept.iter().find(|one| !rest.any(|was| told_of(was) == told_of(one))) {
        return Err(format!("PHANTOM record {} in a repaired journal", made_up.sequence));
    }
    let forgets = all.iter().filter(|record| record.kind == KIND_FORGET);
    let forgotten: BTreeSet<[u8; 16]> =
        forgets.filter_map(|record| Forget::ids(&record.body).ok()).flatten().collect();
    let by_stream = |records: &[Record]| {
        let mut streams: BTreeMap<StreamId, usize> = BTreeMap::new();
        for stream in records.iter().filter_map(|record| record.stream) {
            *streams.entry(stream).or_default() += 1;
        }
        streams
    };
    let (was, is) = (by_stream(all), by_stream(&kept));
    // What was forgotten may go, and has to where compaction already took its beginning.
    let missing =
        was.iter().any(|(stream, count)| !forgotten.contains(&stream.0) && is.get(stream) != Some(count));
    let silent = done.losses.is_empty() && done.gaps.is_empty() && done.problems.is_empty();
    // Nobody can tell damage to nothing but an end that no evidence covers from a write that never finished (JR-6): then
    // exactly a beginning is there, and it reaches as far as the head tells.
    let first_missing = all.get(kept.len()).map(|record| record.sequence);
    let residue = first_missing.is_some_and(|sequence| sequence > evident)
        && kept.iter().map(told_of).eq(all.iter().take(kept.len()).map(told_of));
    if silent && missing && !residue {
        return Err("LOST by a repair that names nothing".to_owned());
    }
    // Evidence has no number: where it does not read, nothing of its stream tells of a hole, but a gap is named.
    let counts = |record: &&Record| silent || record.kind != RecordKind::AttemptEvidence.number();
    for stream in is.keys() {
        let was = all.iter().filter(|record| record.stream == Some(*stream)).filter(counts);
        let there = kept.iter().filter(|record| record.stream == Some(*stream)).filter(counts);
        if !was.map(told_of).zip(there.clone().map(told_of)).all(|(was, there)| was == there) {
            return Err(format!("a repair kept of {stream:?} what is no beginning"));
        }
    }
    let config = host.config(&target.fork());
    let fence = audit(&config, &mut Fence::default).map_err(|e| e.to_string())?.1;
    // A fence that stood before stays.
    let stood = audit(&host.config(&host.disk.fork()), &mut Fence::default).map_err(|e| e.to_string())?.1;
    let right = done.fenced == fence.is_up() && (done.lacks_work || !fence.is_up() || stood.is_up());
    if !right || (!silent && missing && !residue && !done.lacks_work) {
        return Err(format!("a repair that lost something stands behind no fence: {done:?}"));
    }
    let opened = JournalStore::open_manual(&config, StoreLimits::NODE);
    let (_, _, opened) = opened.map_err(|e| format!("a repaired journal does not open: {e}"))?;
    let ended: BTreeSet<[u8; 16]> = opened.interrupted.iter().map(|one| *one.id.as_bytes()).collect();
    match ended == done.interrupted.iter().map(|stream| stream.0).collect() {
        true => Ok(()),
        false => Err("a repair names other interrupted executions than the start".to_owned()),
    }
}

/// Serves the stopped journal for reading alone: everything that is kept is shown, byte for byte, nothing can be
/// changed, and not a byte of the disk is.
///
/// # Errors
/// What it violates.
pub(super) fn reading(host: &Host, world: &Rc<RefCell<World>>, looks: u64) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|_| "no runtime could be made")?;
    let before = host.disk.fingerprint();
    runtime.block_on(read(host, world, looks))?;
    match host.disk.fingerprint() == before {
        true => Ok(()),
        false => Err("a node that only reads changed the journal".to_owned()),
    }
}

async fn read(host: &Host, world: &Rc<RefCell<World>>, looks: u64) -> Result<(), String> {
    let store = JournalStore::open_reading_manual(&host.config(&host.disk));
    let store = store.map_err(|e| format!("a journal does not open for reading: {e}"))?;
    let listed = store.list(None, usize::MAX).await.map_err(|e| format!("no list for reading: {e}"))?;
    let listed: BTreeSet<ExecutionId> = listed.iter().map(|brief| brief.id).collect();
    let (seed, kept) = (world.borrow().seed, world.borrow().log.executions.clone());
    if !listed.iter().eq(kept.keys()) {
        return Err(format!("{} executions are shown for reading, not all that are kept", listed.len()));
    }
    let registry = providers(seed, false, &Arc::default());
    let (clock, events) = (Arc::new(host.clock.clone()), Arc::new(store) as Arc<dyn EventStore>);
    let engine = Engine::start(EngineOptions::default(), registry, events, clock, host.entropy(3));
    let ask = Ask { world: Rc::clone(world), router: router(engine, Arc::new(ServerOptions::default())) };
    let ended: Vec<_> = kept.iter().filter(|(_, execution)| execution.ended.is_some()).collect();
    let from = Random::of(looks, 1).below(ended.len().max(1) as u64) as usize;
    for (id, execution) in ended.into_iter().cycle().skip(from).take(LOOKS_MAX.min(kept.len())) {
        let mut cursor = looks % (execution.last_sequence() + 1);
        if execution.copied.is_some_and(|copied| cursor > copied) {
            cursor = 0;
        }
        let events = ask.get(&format!("/v1/executions/{id}/events?after={cursor}")).await;
        let shown = events.into_body().collect().await.map(|whole| whole.to_bytes()).unwrap_or_default();
        if shown != execution.frames[cursor as usize..].concat() {
            return Err(format!("the events of {id} behind {cursor} are others for reading"));
        }
        let snapshot = text(ask.get(&format!("/v1/executions/{id}")).await).await;
        if snapshot != snapshot_json(&execution.snapshot(*id)) {
            return Err(format!("the snapshot of {id} is another for reading"));
        }
    }
    let request = Request::post("/v1/executions").header("content-type", "application/json");
    let refused = ask.send(request, request_body(seed, 1)).await.status().as_u16();
    (refused == 503)
        .then_some(())
        .ok_or_else(|| format!("a node that only reads answered a submission with {refused}"))
}
