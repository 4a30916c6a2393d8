//! Faults to order: which call fails, how often, and in which way.

use crate::{DiskError, ErrorKind, Name, Operation};

/// What an injected fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// EIO. Dirty data stay dirty; a failed durable write may have reached the device in part.
    Io,
    Full,
    Descriptors,
    ReadOnly,
    Interrupted,
    /// A write takes at most this many bytes, 0 included, and says so. Other calls are not touched.
    ShortWrite(usize),
    /// A sync, or a durable write, fails once and marks its pages (or entries) clean: the next sync succeeds, the
    /// cache still shows the data, a crash loses them. On other calls like `Io`.
    FsyncLies,
}

impl FaultKind {
    pub(super) fn error(self, op: Operation, file: Option<&Name>) -> DiskError {
        let (kind, errno) = match self {
            FaultKind::Io | FaultKind::FsyncLies | FaultKind::ShortWrite(_) => (ErrorKind::Io, 5),
            FaultKind::Full => (ErrorKind::Full, 28),
            FaultKind::Descriptors => (ErrorKind::Descriptors, 24),
            FaultKind::ReadOnly => (ErrorKind::ReadOnly, 30),
            FaultKind::Interrupted => (ErrorKind::Interrupted, 4),
        };
        DiskError { errno: Some(errno), ..DiskError::new(op, kind, file) }
    }
}

/// Which calls a fault is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultAt {
    /// Every call, whatever it does.
    Call,
    /// Calls of one operation on files that match a pattern: a name such as `segments/next`, with `*` for any
    /// characters. Folders are `./`, `segments/` and `quarantine/`, and so is everything about the whole disk (`./`).
    Site { op: Operation, file: String },
}

/// A planned fault: the `nth` (from 0) call that matches fails, and every later one too if `forever`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: FaultAt,
    pub nth: u64,
    pub forever: bool,
    pub kind: FaultKind,
}

impl Fault {
    /// Fails the call with this number, counted by [`super::SimDisk::call_count`] from the moment of injection.
    pub fn call(nth: u64, kind: FaultKind) -> Fault {
        Fault { at: FaultAt::Call, nth, forever: false, kind }
    }

    /// Fails the `nth` call of `op` on files that match `file`.
    pub fn site(op: Operation, file: &str, nth: u64, kind: FaultKind) -> Fault {
        Fault { at: FaultAt::Site { op, file: file.to_owned() }, nth, forever: false, kind }
    }

    /// The same fault, for every later match as well.
    pub fn forever(self) -> Fault {
        Fault { forever: true, ..self }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Armed {
    pub(super) fault: Fault,
    pub(super) seen: u64,
}

/// Counts the call in every plan and returns what the first that is due does.
pub(super) fn due(plans: &mut [Armed], op: Operation, file: &str) -> Option<FaultKind> {
    let mut found = None;
    for plan in plans {
        let about = match &plan.fault.at {
            FaultAt::Call => true,
            FaultAt::Site { op: wanted, file: pattern } => *wanted == op && matches_pattern(pattern, file),
        };
        if !about {
            continue;
        }
        let hit = plan.seen == plan.fault.nth || (plan.fault.forever && plan.seen > plan.fault.nth);
        plan.seen += 1;
        if hit && found.is_none() {
            found = Some(plan.fault.kind);
        }
    }
    found
}

fn matches_pattern(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| matches_pattern(tail, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("head", "head", true),
            ("head", "header", false),
            ("segments/*.seg", "segments/0001.seg", true),
            ("segments/*.seg", "segments/next", false),
            ("*", "", true),
            ("*/next", "segments/next", true),
            ("a*b*c", "a--b-c", true),
            ("a*b*c", "a--c-b", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn once_and_forever() {
        let site = Fault::site(Operation::Write, "*", 1, FaultKind::Io);
        for (fault, expected) in [(site.clone(), [false, true, false]), (site.forever(), [false, true, true])]
        {
            let mut plans = [Armed { fault, seen: 0 }];
            let hits = [(); 3].map(|()| due(&mut plans, Operation::Write, "x").is_some());
            assert_eq!(hits, expected);
            assert_eq!(due(&mut plans, Operation::Read, "x"), None);
        }
    }
}
