//! `sealog doctor`: whether directory, disk and clock are fit for a journal, and what to expect of them. It opens no
//! journal, takes no lock and leaves no file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sealog_disk::real::{
    Ground, OPEN_TO_OTHERS, OpenOptions, RealClock, RealDisk, Series, SyncTimes, Warning, ground, is_network,
    measure_syncs,
};
use sealog_disk::{Clock, Disk, DiskError, ErrorKind, Folder, Name, io};
use sealog_events::Timestamp;
use sealog_journal::{BackupDisk, Contents, look};
use sealog_journal_format::limits::STORE_BYTES;
use sealog_journal_format::store::StoreFile;
use serde::Serialize;

use crate::again::same_place;
use crate::args::Doctor;
use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};
use crate::places;
use crate::render::Render;

/// Records in one group, as 64 busy producers make them.
const GROUP_RECORDS: usize = 64;
const RECORD_BYTES: usize = 300;
const SINGLE: Series = Series { write_bytes: 4096, writes_max: 400, time_max: Duration::from_millis(1500) };
const GROUPED: Series = Series {
    write_bytes: GROUP_RECORDS * RECORD_BYTES,
    writes_max: 200,
    time_max: Duration::from_millis(1500),
};
/// 2024-01-01: a clock before it was never set.
const CLOCK_FLOOR_MS: u64 = 1_704_067_200_000;
const MIB: u64 = 1 << 20;

/// How one thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Fine,
    /// Works; somebody should know.
    Warning,
    Wrong,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    what: String,
}

#[derive(Debug, Serialize)]
struct DiskBody {
    sync_p50_us: u64,
    sync_p99_us: u64,
    /// One producer that waits for each of its events.
    single_per_s: u64,
    /// Many producers that share each sync.
    grouped_per_s: u64,
    group_records: usize,
    samples: usize,
}

#[derive(Debug, Serialize)]
struct Answer {
    healthy: bool,
    directory: String,
    checks: Vec<Check>,
    disk: Option<DiskBody>,
    expect: Vec<String>,
}

pub fn run(args: &Doctor, render: Render) -> Result<Exit> {
    let dir = match &args.data_dir {
        Some(dir) => dir.clone(),
        None => places::data_dir()?,
    };
    let answer = examine(&dir, args.place.allow_network_fs);
    match render.json {
        true => render.object(&answer)?,
        false => render.data(&answer.text())?,
    }
    let wrong: Vec<&str> =
        answer.checks.iter().filter(|check| check.state == State::Wrong).map(|check| check.name).collect();
    match wrong.is_empty() {
        true => Ok(Exit::Success),
        false => {
            Err(Failure::new(Exit::Failed, "unfit", format!("not fit for a journal: {}", wrong.join(", ")))
                .next(format!(
                    "put right what is marked as wrong, then: sealog doctor --data-dir {}{}",
                    shown(&dir),
                    same_place()
                )))
        }
    }
}

fn examine(dir: &Path, allow_network_fs: bool) -> Answer {
    let mut checks = Vec::new();
    let mut note = |name, state, what: String| checks.push(Check { name, state, what });
    let place = match RealDisk::open(dir, OpenOptions { create: false, allow_network_fs }) {
        Ok(disk) => {
            note("directory", State::Fine, format!("{} is yours alone (0700) and no link", shown(dir)));
            of_directory(disk, &mut note);
            Some(dir.to_owned())
        }
        Err(error) if error.kind == ErrorKind::NotFound => {
            let what = format!("{} does not exist yet; the first start makes it", shown(dir));
            note("directory", State::Warning, what);
            existing_above(dir).filter(|above| of_ground(above, allow_network_fs, &mut note))
        }
        Err(error) if error.detail == Some(OPEN_TO_OTHERS) && places::is_closed_by_start(dir) => {
            let what = format!(
                "{} is empty and open to its group or to others; the first start closes it (0700)",
                shown(dir)
            );
            note("directory", State::Warning, what);
            of_ground(dir, allow_network_fs, &mut note).then(|| dir.to_owned())
        }
        Err(error) => {
            note("directory", State::Wrong, format!("{}: {}", shown(dir), why(&error)));
            None
        }
    };
    clock(&RealClock::new(), &mut note);
    let (disk, expect) = match place {
        Some(place) => measured(&place, &mut note),
        None => (None, Vec::new()),
    };
    let healthy = checks.iter().all(|check| check.state != State::Wrong);
    Answer { healthy, directory: dir.to_string_lossy().into_owned(), checks, disk, expect }
}

/// What is wrong with a directory is in the detail; of a network file system that is its name.
fn why(error: &DiskError) -> String {
    match error.detail {
        Some(name) if is_network(name) => {
            format!(
                "on {name}, a network file system: where locks and syncs are known to hold, --allow-network-fs"
            )
        }
        Some(detail) => detail.to_owned(),
        None => error.to_string(),
    }
}

fn existing_above(dir: &Path) -> Option<PathBuf> {
    let dir = std::path::absolute(dir).ok()?;
    dir.ancestors().find(|above| above.is_dir()).map(Path::to_owned)
}

type Note<'a> = &'a mut dyn FnMut(&'static str, State, String);

/// Of a place where no data directory stands yet. Whether one may stand there.
fn of_ground(place: &Path, allow_network_fs: bool, note: Note<'_>) -> bool {
    match ground(place, allow_network_fs) {
        Ok(Ground { name, warning, space }) => {
            of_file_system(name, warning, note);
            let (state, what) = judge_space(space.available);
            note("free space", state, what);
            true
        }
        Err(error) => {
            note("file system", State::Wrong, why(&error));
            false
        }
    }
}

fn of_file_system(name: &str, warning: Option<Warning>, note: Note<'_>) {
    match warning {
        None => note("file system", State::Fine, name.to_owned()),
        Some(warning @ (Warning::Memory(_) | Warning::Overlay | Warning::Network(_))) => {
            note("file system", State::Warning, warning.to_string());
        }
    }
}

/// What stands in the directory, as a start would find it.
fn of_journal(disk: &Arc<dyn Disk>, others: bool, note: Note<'_>) {
    match BackupDisk::open(disk) {
        Ok(None) => {}
        Ok(Some(_)) => {
            let what = "a backup: it is read as it is, and restored elsewhere; no node writes here";
            return note("journal", State::Warning, what.into());
        }
        Err(error) => return note("journal", State::Wrong, error.to_string()),
    }
    match look(&**disk) {
        Ok(Contents::Empty | Contents::Leftovers { .. }) if others => {
            let what = "none, and something else stands here: one is made in an empty directory only";
            note("journal", State::Wrong, what.into());
        }
        Ok(Contents::Empty) => note("journal", State::Fine, "none yet".into()),
        Ok(Contents::Leftovers { .. }) => {
            note(
                "journal",
                State::Warning,
                "an interrupted creation; the next start completes or replaces it".into(),
            );
        }
        Ok(Contents::Journal { store_id }) => match sealog_journal::examine(&**disk) {
            Ok(()) => note("journal", State::Fine, format!("store {store_id}")),
            Err(error) => note("journal", State::Wrong, error.to_string()),
        },
        Err(error) => note("journal", State::Wrong, error.to_string()),
    }
}

fn of_directory(disk: RealDisk, note: Note<'_>) {
    of_file_system(disk.file_system(), disk.warnings().first().copied(), note);
    // A directory that cannot be listed is found to be so below.
    let others = places::holds_other_files(&disk).unwrap_or(false);
    let disk: Arc<dyn Disk> = Arc::new(disk);
    of_journal(&disk, others, note);
    match disk.is_locked() {
        Ok(true) => note("lock", State::Fine, "held: a node is running".into()),
        Ok(false) => note("lock", State::Fine, "free".into()),
        Err(error) => note("lock", State::Wrong, error.to_string()),
    }
    match disk.space() {
        Ok(space) => {
            let (state, what) = judge_space(space.available);
            note("free space", state, what);
        }
        Err(error) => note("free space", State::Wrong, error.to_string()),
    }
    if let Some(created) = created_ms(&*disk)
        && RealClock::new().wall_ms() < created
    {
        let what = format!("stands before {}, when this journal was made", Timestamp(created));
        note("clock", State::Wrong, what);
    }
}

fn created_ms(disk: &dyn Disk) -> Option<u64> {
    let file = disk.open(&Name::new(Folder::Root, "store")?).ok()?;
    let bytes = io::read_to_vec(&*file, STORE_BYTES).ok()?;
    StoreFile::decode(&bytes, |part| sealog_seal::sha256(&[part])).ok().map(|store| store.created_ms)
}

fn judge_space(available: u64) -> (State, String) {
    let what = format!("{} MiB", available / MIB);
    match available / MIB {
        0..64 => (State::Wrong, format!("{what}: not enough for a journal to work with")),
        64..1024 => (State::Warning, format!("{what}: new work is refused when it is used up")),
        _ => (State::Fine, what),
    }
}

fn clock(clock: &dyn Clock, note: Note<'_>) {
    let now = clock.wall_ms();
    if now < CLOCK_FLOOR_MS {
        note("clock", State::Wrong, format!("it says {}: it was never set", Timestamp(now)));
    } else if clock.boot_id() == [0; 16] {
        let what =
            format!("{}; the system shows no boot id, so a resumed snapshot is not noticed", Timestamp(now));
        note("clock", State::Warning, what);
    } else {
        note("clock", State::Fine, Timestamp(now).to_string());
    }
}

fn measured(place: &Path, note: Note<'_>) -> (Option<DiskBody>, Vec<String>) {
    let both = measure_syncs(place, SINGLE).and_then(|one| Ok((one, measure_syncs(place, GROUPED)?)));
    let (single, grouped) = match both {
        Ok(both) => both,
        Err(error) => {
            note("disk", State::Wrong, format!("a file there cannot be written and synced: {error}"));
            return (None, Vec::new());
        }
    };
    let body = DiskBody {
        sync_p50_us: micros(single.percentile(50)),
        sync_p99_us: micros(single.percentile(99)),
        single_per_s: single.per_second() as u64,
        grouped_per_s: (grouped.per_second() * GROUP_RECORDS as f64) as u64,
        group_records: GROUP_RECORDS,
        samples: single.count() + grouped.count(),
    };
    let (state, what) = judge_syncs(&single);
    note("disk", state, what);
    let expect = vec![
        format!(
            "one client at a time: about {} events a second, each acknowledged when it is on disk",
            body.single_per_s
        ),
        format!(
            "many clients at once: up to about {} events a second, because {GROUP_RECORDS} of them share a sync",
            body.grouped_per_s
        ),
        format!(
            "an event waits about {} for the disk, and one in a hundred {} or longer",
            spoken(body.sync_p50_us),
            spoken(body.sync_p99_us)
        ),
    ];
    (Some(body), expect)
}

/// A disk needs time to make bytes durable; what answers at once kept them in memory.
fn judge_syncs(single: &SyncTimes) -> (State, String) {
    let (middle, slow) = (single.percentile(50), single.percentile(99));
    if middle < Duration::from_micros(8) {
        let what =
            "a sync returns faster than a disk can answer: what it says is durable may be in memory only";
        return (State::Warning, what.into());
    }
    if middle >= Duration::from_millis(50) || slow >= Duration::from_millis(500) {
        let what = format!("a sync takes {}: every acknowledgement waits for it", spoken(micros(middle)));
        return (State::Warning, what);
    }
    (State::Fine, "writes, syncs and waits for them".into())
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn spoken(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} us"),
        _ => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
    }
}

impl Answer {
    fn text(&self) -> String {
        let mut text = String::new();
        for Check { name, state, what } in &self.checks {
            let word = match state {
                State::Fine => "fine",
                State::Warning => "warning",
                State::Wrong => "wrong",
            };
            let _ = writeln!(text, "{word:<8} {name}: {what}");
        }
        if let Some(DiskBody { sync_p50_us, sync_p99_us, samples, .. }) = &self.disk {
            let _ = writeln!(
                text,
                "measured sync p50 {sync_p50_us} us, p99 {sync_p99_us} us, in {samples} writes to a file that is gone again"
            );
        }
        for line in &self.expect {
            let _ = writeln!(text, "expect   {line}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_and_times_have_words() {
        assert_eq!(judge_space(63 * MIB).0, State::Wrong);
        assert_eq!(judge_space(64 * MIB).0, State::Warning);
        assert_eq!(judge_space(1024 * MIB).0, State::Fine);
        assert_eq!(
            (spoken(999), spoken(1000), spoken(12_345)),
            ("999 us".into(), "1.0 ms".into(), "12.3 ms".into())
        );
    }

    #[derive(Debug)]
    struct Stopped(u64, [u8; 16]);

    impl Clock for Stopped {
        fn wall_ms(&self) -> u64 {
            self.0
        }
        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
        fn boot_id(&self) -> [u8; 16] {
            self.1
        }
        fn process_id(&self) -> u32 {
            1
        }
    }

    #[test]
    fn a_clock_that_was_never_set_is_wrong() {
        let found = |wall, boot| {
            let mut state = None;
            clock(&Stopped(wall, boot), &mut |_, found, _| state = Some(found));
            state.unwrap()
        };
        assert_eq!(found(86_400_000, [1; 16]), State::Wrong);
        assert_eq!(found(CLOCK_FLOOR_MS, [1; 16]), State::Fine);
        assert_eq!(found(CLOCK_FLOOR_MS, [0; 16]), State::Warning);
    }
}
