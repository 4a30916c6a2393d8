//! The classes of steps a run may draw, and what is counted of a run: which classes it drew, and what came of them.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use super::offline::Offline;

macro_rules! classes {
    ($($name:ident = $text:literal,)+) => {
        /// A class of steps, or of what came of them. A campaign that met none of a class has proved nothing about it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Class { $($name,)+ }

        impl Class {
            pub const ALL: &[Class] = &[$(Class::$name,)+];

            pub fn as_str(self) -> &'static str {
                match self { $(Class::$name => $text,)+ }
            }
        }
    };
}

classes! {
    Submit = "submit without key",
    SubmitKeyed = "submit with key",
    SubmitStreaming = "submit and stream",
    SameKeyRace = "same-key race",
    Conflict = "other request under a key",
    Replay = "replay answered",
    Cancel = "cancel",
    Watch = "watch from a cursor",
    SlowReader = "reader that stalls",
    ReaderLeaves = "reader that leaves",
    Read = "snapshot or result",
    List = "list",
    ListPages = "list of several pages",
    Fallback = "another provider asked",
    Evidence = "evidence of an attempt",
    Time = "time passes",
    ClockForward = "clock jumps forward",
    ClockBack = "clock jumps back",
    Sweep = "background expiry",
    Restart = "clean restart",
    Backup = "backup beside a node",
    BackupCut = "power loss during a backup",
    Rekey = "rekey",
    Compact = "compaction of a stopped journal",
    Compacted = "compacted segments",
    Dropped = "forgotten records dropped",
    Export = "export",
    Import = "import into another journal",
    ImportFenced = "import of a fenced journal",
    ImportLimited = "import under a limit of bytes",
    Repair = "repair of a damaged copy",
    ReadOnly = "node that only reads",
    Restore = "restore",
    Unfence = "unfence",
    OfflineCut = "power loss during offline work",
    Fenced = "refused by a fence",
    Kill = "process kill",
    PowerLoss = "power loss between two steps",
    PowerCut = "power loss inside a step",
    CutStart = "power loss during a start",
    FaultIo = "EIO",
    FaultFull = "ENOSPC of one call",
    FaultDescriptors = "EMFILE",
    FaultShort = "short write",
    FaultInterrupted = "EINTR",
    FaultSync = "sync that fails once and lies",
    SmallDisk = "full disk",
    FullStart = "start without room for its ends",
    Large = "run with a large journal",
    Faultless = "run without any fault",
    Interrupted = "interrupted, outcome unknown",
    NotDispatched = "interrupted, not dispatched",
    TornTail = "torn tail cut",
    Poisoned = "writer stopped",
    RefusedFull = "refused for want of room",
    Forgotten = "forgotten durably",
    Rolled = "journal of several segments",
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often each class was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met(BTreeMap<Class, u64>);

impl Met {
    pub(super) fn add(&mut self, class: Class) {
        *self.0.entry(class).or_default() += 1;
    }

    /// Work on a stopped node that counts once it is done.
    pub(super) fn add_done(&mut self, work: Offline) {
        match work {
            Offline::Compact { .. } => self.add(Class::Compact),
            Offline::Transfer { .. } => self.add(Class::Export),
            Offline::Repair { .. } => self.add(Class::Repair),
            Offline::Read { .. } => self.add(Class::ReadOnly),
            // Counted when they are begun, or by what came of them.
            Offline::Rekey { .. } | Offline::Restore { .. } | Offline::Unfence { .. } => {}
        }
    }

    pub fn count(&self, class: Class) -> u64 {
        self.0.get(&class).copied().unwrap_or(0)
    }

    /// Classes that were never met.
    pub fn missing(&self) -> Vec<Class> {
        Class::ALL.iter().copied().filter(|class| self.count(*class) == 0).collect()
    }
}

impl AddAssign<&Met> for Met {
    fn add_assign(&mut self, other: &Met) {
        for (class, count) in &other.0 {
            *self.0.entry(*class).or_default() += count;
        }
    }
}

/// What one run, or many, went through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub steps: u64,
    /// Starts of a node, broken ones among them.
    pub lives: u64,
    /// Disks that a crash left and that were judged.
    pub crash_images: u64,
    /// Disk faults that were ordered.
    pub faults: u64,
    pub acknowledged_executions: u64,
    /// Events that a client was shown, each reader counted.
    pub delivered_events: u64,
    /// Durable records that were held against every later state.
    pub records: u64,
    pub met: Met,
}

impl AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, other: &Totals) {
        self.steps += other.steps;
        self.lives += other.lives;
        self.crash_images += other.crash_images;
        self.faults += other.faults;
        self.acknowledged_executions += other.acknowledged_executions;
        self.delivered_events += other.delivered_events;
        self.records += other.records;
        self.met += &other.met;
    }
}
