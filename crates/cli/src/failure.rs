//! A failure as the command line reports it: a stable code word, what happened, what is safe, the next command.
//!
//! Must never hold a key, a passphrase, a request or a byte of a record.

use std::fmt::Write as _;
use std::path::Path;

use sealog_disk::real::{FOREIGN_OWNER, OPEN_TO_OTHERS, is_network};
use sealog_disk::{DiskError, ErrorKind};
use sealog_events::Timestamp;
use sealog_journal::{JournalError, Place, SET_ASIDE};
use serde::Serialize;

use crate::again::{same_key, same_place};
use crate::exit::{self, Exit};

/// Why a verb gave up.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// A stable word for scripts.
    pub code: &'static str,
    pub what: String,
    /// What the failure did not touch, or what may have happened all the same.
    pub safe: &'static str,
    /// The command or action that comes next.
    pub next: String,
    /// Where in the journal, with the row of the recovery table.
    pub place: Option<Box<(Place, u8)>>,
    /// What lies below, outermost first; printed once.
    pub cause: Option<anyhow::Error>,
}

pub type Result<T> = std::result::Result<T, Failure>;

pub const NOTHING_CHANGED: &str = "nothing was changed";

/// Nothing follows for whoever stopped reading, as `head` does: in text one line says it all.
pub const READER_LEFT: &str = "read to the end what is to be seen whole";

impl Failure {
    pub fn new(exit: Exit, code: &'static str, what: impl Into<String>) -> Failure {
        Failure {
            exit,
            code,
            what: what.into(),
            safe: NOTHING_CHANGED,
            next: otherwise(code).into(),
            place: None,
            cause: None,
        }
    }

    /// The command line, the environment or a file named there is not as it must be.
    pub fn usage(code: &'static str, what: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, code, what)
    }

    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Failure {
        self.next = next.into();
        self
    }

    #[must_use]
    pub fn safe(mut self, safe: &'static str) -> Failure {
        self.safe = safe;
        self
    }

    /// A file beside the journal could not be read. Where only the system had nothing left just now, nothing is wrong with
    /// the file.
    #[must_use]
    pub fn unread(self, error: DiskError) -> Failure {
        let failure = match error.kind {
            ErrorKind::Full | ErrorKind::Descriptors | ErrorKind::Interrupted => {
                let (exit, code) = exit::of_disk(&error);
                Failure { exit, code, ..self }
                    .next("free descriptors or memory, then run the same command again")
            }
            _ => self,
        };
        failure.because(error)
    }

    #[must_use]
    pub fn because(mut self, cause: impl Into<anyhow::Error>) -> Failure {
        self.cause = Some(cause.into());
        self
    }

    /// What making a directory out of another one said: a storage call that failed for good was one of the writing
    /// ones, anything else is about what was read.
    pub fn making(error: JournalError, from: &Path, to: &Path) -> Failure {
        let at_target =
            matches!(error, JournalError::Disk(_) | JournalError::Full | JournalError::Poisoned { .. });
        Failure::journal(error, if at_target { to } else { from })
    }

    /// What opening or reading the journal in `dir` said.
    pub fn journal(error: JournalError, dir: &Path) -> Failure {
        let (exit, code) = exit::of_journal(&error);
        let place = match &error {
            JournalError::Corrupt { place, row, .. } => Some(Box::new((*place, *row))),
            _ => None,
        };
        let what = match &error {
            JournalError::Locked { holder: Some(holder) } => format!("{error} ({})", holder_text(holder)),
            JournalError::Corrupt { place, row, what } => format!("{what} ({})", whereabouts(place, *row)),
            JournalError::CorruptFile { file, what } => format!("{file}: {what}"),
            JournalError::Disk(disk) if disk.kind == ErrorKind::NotFound => "there is no journal here".into(),
            JournalError::Disk(disk) => disk_text(disk),
            other => other.to_string(),
        };
        let (safe, next) = match &error {
            JournalError::Corrupt { what, .. } if *what == SET_ASIDE => (
                "the damaged file stands in quarantine; nothing else was changed, and nothing is lost",
                "run the same command again".into(),
            ),
            JournalError::KeyringDamaged => lost_keyring(&shown(dir)),
            JournalError::Missing { file } if file == "keyring" => lost_keyring(&shown(dir)),
            JournalError::Missing { file } | JournalError::CorruptFile { file, .. } if file == "store" => {
                lost_store(&shown(dir))
            }
            JournalError::NoManifest => (NOTHING_CHANGED, without_manifest(&shown(dir))),
            JournalError::CorruptFile { file, .. } if file == "manifest" => damaged_manifest(),
            JournalError::Disk(DiskError { kind: ErrorKind::Unsafe, detail, .. }) => {
                (NOTHING_CHANGED, unsafe_place(*detail, &shown(dir)))
            }
            _ => advice(exit, code, &shown(dir)),
        };
        Failure { place, ..Failure::new(exit, code, what).safe(safe).next(next) }
    }

    /// What the data directory `dir` itself said.
    pub fn directory(error: DiskError, dir: &Path) -> Failure {
        Failure::journal(JournalError::Disk(error), dir)
    }

    /// One JSON object on one line: `{"error": {...}}`.
    pub fn json(&self) -> String {
        let body = Body {
            code: self.code,
            exit_code: self.exit.code(),
            message: &self.what,
            safe: self.safe,
            next: &self.next,
            place: self.place.as_deref().map(|(place, row)| PlaceBody::new(place, *row)),
            causes: self.causes(),
        };
        serde_json::to_string(&Envelope { error: body })
            .unwrap_or_else(|_| format!("{{\"error\":{{\"code\":\"{}\"}}}}", self.code))
    }

    pub fn text(&self) -> String {
        // A node's words are among them, and must not look like a line of ours.
        let mut text = format!("sealog: {}: {}\n", self.code, one_line(&self.what));
        if self.next == READER_LEFT {
            return text;
        }
        for cause in self.causes() {
            let _ = writeln!(text, "  because: {}", one_line(&cause));
        }
        let _ = writeln!(text, "  safe: {}\n  next: {}", self.safe, one_line(&self.next));
        text
    }

    fn causes(&self) -> Vec<String> {
        let chain = self.cause.iter().flat_map(|cause| cause.chain()).map(ToString::to_string);
        // Each level once: the outermost is often what was said already.
        chain.filter(|cause| *cause != self.what).collect()
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Body<'a>,
}

#[derive(Serialize)]
struct Body<'a> {
    code: &'a str,
    exit_code: u8,
    message: &'a str,
    safe: &'a str,
    next: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<PlaceBody>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
}

/// A place as every `--json` output shows it.
#[derive(Debug, Serialize)]
pub struct PlaceBody {
    segment: u64,
    offset: u64,
    sequence: u64,
    row: u8,
}

impl PlaceBody {
    pub fn new(place: &Place, row: u8) -> PlaceBody {
        PlaceBody { segment: place.segment, offset: place.offset, sequence: place.sequence, row }
    }
}

/// Where damage is, for people. What stands beside the segments, as the head does, has no place in one.
pub fn whereabouts(place: &Place, row: u8) -> String {
    if place.segment == 0 { format!("row {row}") } else { format!("{place}, row {row}") }
}

/// What comes next where nobody says more.
fn otherwise(code: &str) -> &'static str {
    match code {
        "internal" => "run it again; if it fails again, report what it printed",
        "protocol" => "see that it is a node of this release that answers there",
        "aborted" => {
            "run the same command again and type it; a file that holds it does as well: --passphrase-file FILE"
        }
        "no_terminal" => "give the secret in a file: --passphrase-file FILE",
        "listen_failed" => "pick another address: --listen",
        _ => "sealog help",
    }
}

/// The note in `LOCK` as people read it: the time of its start as a date.
fn holder_text(note: &str) -> String {
    let since = note.rsplit_once("started ").and_then(|(before, rest)| {
        let started_ms = rest.strip_suffix(" ms")?.parse().ok()?;
        Some(format!("{before}started {}", Timestamp(started_ms)))
    });
    since.unwrap_or_else(|| note.to_owned())
}

fn disk_text(error: &DiskError) -> String {
    // What is wrong with a directory is in the detail; the call that noticed it tells nobody anything.
    match (error.kind, error.detail) {
        (ErrorKind::Unsafe, Some(name)) if is_network(name) => {
            return format!("the directory is on a network file system ({name})");
        }
        (ErrorKind::Unsafe, Some(detail)) => return detail.to_owned(),
        _ => {}
    }
    let mut text = error.to_string();
    if let Some(detail) = error.detail {
        let _ = write!(text, ": {detail}");
    }
    // The other kinds have one number each, or their words say it.
    if let (ErrorKind::Io | ErrorKind::Unsupported, Some(errno)) = (error.kind, error.errno) {
        let _ = write!(text, ": {}", std::io::Error::from_raw_os_error(errno));
    }
    text
}

/// What helps with a directory that is refused as it stands.
fn unsafe_place(detail: Option<&str>, dir: &str) -> String {
    match detail {
        Some(FOREIGN_OWNER) => format!(
            "run the same command as the user that {dir} belongs to; a key that only root reads comes in on a \
             descriptor: runuser -u USER -- sealog .. --key-fd 3 3<FILE"
        ),
        Some(OPEN_TO_OTHERS) => {
            format!("name a directory of your own; if this is the journal's own: chmod 700 {dir}")
        }
        Some(name) if is_network(name) => {
            "name a directory on a local disk; where locks and syncs are known to hold: --allow-network-fs"
                .into()
        }
        Some(_) | None => "name a directory of your own, on a local disk and no link".into(),
    }
}

/// What comes next with a damaged journal, worst loss last.
pub fn with_damage(dir: &str) -> String {
    let key = same_key();
    format!(
        "keep a copy of {dir} as it is; then restore a backup (sealog journal restore BACKUP NEWDIR{key}), or make a \
         journal of what reads: sealog journal repair {dir} NEWDIR{key}"
    )
}

/// Without a keyring nothing opens, so no verb that opens the journal helps.
fn lost_keyring(dir: &str) -> (&'static str, String) {
    let key = same_key();
    (
        "no byte on disk was changed; without a keyring no key opens the journal",
        format!(
            "put an exported keyring back: sealog journal rekey {dir} import-keyring FILE{key}; without one, restore a \
             backup, which has the keyring in it: sealog journal restore BACKUP NEWDIR{key}"
        ),
    )
}

/// Without `store` nothing but a repair reads the journal, and that needs nothing of it.
fn lost_store(dir: &str) -> (&'static str, String) {
    ("no byte on disk was changed; executions do not depend on this file", with_damage(dir))
}

/// A first backup that did not come to its end, or one that lost its manifest.
fn without_manifest(dir: &str) -> String {
    let key = same_key();
    format!(
        "take the backup again, which keeps what is whole of it: sealog journal backup JOURNAL {dir}{key}; without that \
         journal restore another backup, and for a new one name another directory"
    )
}

/// Every verb reads a backup through its manifest, a repair too.
fn damaged_manifest() -> (&'static str, String) {
    let key = same_key();
    (
        "no byte on disk was changed; nothing reads a backup without its manifest",
        format!(
            "restore another backup (sealog journal restore BACKUP NEWDIR{key}), or take a new one in another \
             directory: sealog journal backup JOURNAL NEWDIR{key}"
        ),
    )
}

/// What is safe and what comes next, for everything a journal can say.
fn advice(exit: Exit, code: &'static str, dir: &str) -> (&'static str, String) {
    let (key, place) = (same_key(), same_place());
    match exit {
        Exit::NoJournal if code == "journal_elsewhere" => (
            "nothing was created: an empty directory must not become a new journal beside the old key",
            format!("mount or restore the volume that belongs at {dir}, then run the same command again"),
        ),
        Exit::NoJournal => (
            NOTHING_CHANGED,
            format!(
                "check the path, and that its volume is mounted; only for a new journal: sealog journal init \
                 {dir}{key}"
            ),
        ),
        Exit::Locked => (
            "the other process keeps the journal; nothing was changed",
            format!(
                "stop that process, or go on beside it: `sealog ps`, `show`, `tail` and `run` without --data-dir ask \
                 its node (--url as its first line says it, --token-file FILE where it wants a token), and this looks: sealog \
                 journal inspect {dir}{key}"
            ),
        ),
        Exit::WrongKey => (
            "the journal is as it was; only the key did not fit",
            format!(
                "name the key file or the passphrase of this journal: sealog journal inspect {dir}{place} --key-file FILE, \
                 or --passphrase-file FILE"
            ),
        ),
        Exit::Damaged => (
            "no byte on disk was changed; everything that still reads can be exported",
            format!("sealog journal verify {dir}{key} names every place; {}", with_damage(dir)),
        ),
        Exit::NewerFormat => (NOTHING_CHANGED, "use the release of sealog that wrote this journal".into()),
        Exit::TryAgain => (
            "everything acknowledged before is durable",
            "free space, descriptors or memory, check the disk, then run the same command again".into(),
        ),
        Exit::Failed if code == "already_exists" => {
            ("the journal that is there was not touched", format!("sealog journal inspect {dir}{key}"))
        }
        Exit::Failed => (NOTHING_CHANGED, format!("check who owns {dir} and how it is mounted")),
        Exit::Success
        | Exit::Usage
        | Exit::NotFound
        | Exit::ExecutionFailed
        | Exit::OutcomeUnknown
        | Exit::Cancelled => (NOTHING_CHANGED, "sealog help".into()),
    }
}

/// Text of somebody else's as a part of one line, whatever stands in it.
pub fn one_line(text: &str) -> String {
    const BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.replace(BREAKS, "\u{fffd}")
}

/// A path as it can be pasted into a shell.
pub fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    let clean: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("'{}'", clean.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_next_with_a_bug_is_no_list_of_flags() {
        for code in ["internal", "protocol", "aborted", "no_terminal", "listen_failed"] {
            assert!(!Failure::new(Exit::Failed, code, "x").next.contains("help"), "{code}");
        }
    }

    #[test]
    fn a_failure_says_four_things_in_both_forms() {
        let failure = Failure::journal(JournalError::WrongKey, Path::new("/data/my journal"));
        let text = failure.text();
        assert!(text.starts_with("sealog: wrong_key: no key given here opens this journal\n"), "{text}");
        assert!(text.contains("\n  safe: ") && text.contains("sealog journal inspect '/data/my "), "{text}");
        let json: serde_json::Value = serde_json::from_str(&failure.json()).unwrap();
        assert_eq!(json["error"]["code"], "wrong_key");
        assert_eq!(json["error"]["exit_code"], 12);
        assert!(json["error"]["safe"].is_string() && json["error"]["next"].is_string());
        assert!(json["error"].get("place").is_none());
    }

    #[test]
    fn what_somebody_else_said_makes_no_line_of_ours() {
        let failure = Failure::new(Exit::Failed, "protocol", "a\nsealog: ok: b\r  safe: c\u{2028}d")
            .because(anyhow::anyhow!("e\n  next: rm"));
        let text = failure.text();
        let starts: Vec<&str> = text.lines().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(starts, ["sealog", "  because", "  safe", "  next"], "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_opened_just_now_is_not_called_wrong() {
        let unread = |kind| {
            let error = DiskError::new(sealog_disk::Operation::Open, kind, None);
            let failure = Failure::usage("bad_key_file", "k: cannot be read").unread(error);
            (failure.exit.code(), failure.code)
        };
        assert_eq!(unread(ErrorKind::Descriptors), (75, "too_many_files"));
        assert_eq!(unread(ErrorKind::Interrupted), (75, "storage_interrupted"));
        assert_eq!(unread(ErrorKind::PermissionDenied), (2, "bad_key_file"));
    }

    #[test]
    fn damage_names_its_place() {
        let place = Place { segment: 2, frame: 1, offset: 8288, sequence: 17 };
        let error = JournalError::Corrupt { place, row: 8, what: "a frame does not read back" };
        let failure = Failure::journal(error, Path::new("d"));
        assert!(failure.what.contains("segment 2, offset 8288, sequence 17"), "{}", failure.what);
        let json: serde_json::Value = serde_json::from_str(&failure.json()).unwrap();
        assert_eq!(json["error"]["place"]["offset"], 8288);
        assert_eq!(json["error"]["place"]["row"], 8);
        let error = JournalError::Corrupt { place: Place::default(), row: 10, what: "the head is gone" };
        assert_eq!(Failure::journal(error, Path::new("d")).what, "the head is gone (row 10)");
    }

    #[test]
    fn a_lost_keyring_is_not_sent_in_a_circle() {
        for error in [JournalError::KeyringDamaged, JournalError::Missing { file: "keyring".into() }] {
            let failure = Failure::journal(error, Path::new("d"));
            assert!(failure.next.contains("sealog journal rekey d import-keyring FILE"), "{}", failure.next);
            assert!(!failure.next.contains("verify"), "{}", failure.next);
        }
        let store = Failure::journal(JournalError::Missing { file: "store".into() }, Path::new("d"));
        assert!(store.next.contains("repair d NEWDIR") && !store.next.contains("verify"), "{}", store.next);
        let other = Failure::journal(JournalError::Missing { file: "head".into() }, Path::new("d"));
        assert!(other.next.contains("verify"), "{}", other.next);
    }

    #[test]
    fn what_was_set_aside_is_not_called_unchanged() {
        let error = JournalError::Corrupt { place: Place::default(), row: 3, what: SET_ASIDE };
        let failure = Failure::journal(error, Path::new("d"));
        assert_eq!((failure.exit.code(), failure.next.as_str()), (13, "run the same command again"));
        assert!(failure.safe.contains("quarantine"), "{}", failure.safe);
    }

    #[test]
    fn a_lock_says_since_when_and_a_foreign_note_stands_as_it_is() {
        let holder = Some("pid 7, started 1767225600000 ms".to_owned());
        let failure = Failure::journal(JournalError::Locked { holder }, Path::new("d"));
        assert!(failure.what.ends_with("(pid 7, started 2026-01-01T00:00:00.000Z)"), "{}", failure.what);
        for note in ["pid 7", "started  ms", "started x ms"] {
            assert_eq!(holder_text(note), note);
        }
    }

    #[test]
    fn an_unsafe_directory_says_what_is_wrong_with_it() {
        let error = DiskError::new(sealog_disk::Operation::Open, ErrorKind::Unsafe, None);
        let failure = |detail| {
            let error = DiskError { detail: Some(detail), ..error.clone() };
            Failure::directory(error, Path::new("d"))
        };
        let linked = failure("a link, or not a directory");
        assert_eq!(linked.what, "a link, or not a directory");
        // Each with what helps: closing a directory does not make it ours.
        let helps: Vec<&str> = ["chmod 700 d", "--key-fd 3 3<FILE", "--allow-network-fs", "no link"].into();
        for (detail, help) in
            [(OPEN_TO_OTHERS, 0), (FOREIGN_OWNER, 1), ("NFS", 2), ("a link, or not a directory", 3)]
        {
            let next = failure(detail).next;
            let given: Vec<usize> = (0..helps.len()).filter(|at| next.contains(helps[*at])).collect();
            assert_eq!(given, [help], "{detail}: {next}");
        }
        assert_eq!(failure("NFS").what, "the directory is on a network file system (NFS)");
    }

    #[test]
    fn paths_can_be_pasted() {
        assert_eq!(shown(Path::new("/a/b-c_1.key")), "/a/b-c_1.key");
        assert_eq!(shown(Path::new("a b")), "'a b'");
        assert_eq!(shown(Path::new("it's")), "'it'\\''s'");
        assert_eq!(shown(Path::new("x\x1b[2J")), "'x\u{fffd}[2J'");
    }
}
