//! A run as data: what a seed draws. The steps name everything by number, never by what an earlier step brought, so
//! that any of them can be left out and the rest still means the same.

use sealog_disk::Operation;
use sealog_disk::sim::{Choice, Fault, FaultKind};
use sealog_engine::EngineOptions;
use sealog_engine::store::StoreLimits;
use sealog_events::Status;

use super::class::Class;
use super::offline::{Change, Cut, Offline};
use super::random::Random;

/// One step and how the machine goes on behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub action: Action,
    pub pump: Pump,
}

/// What the scheduler does behind an action: rounds of polling, and the journal's turns between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pump {
    pub rounds: u8,
    /// Bit `n`: the writer turns in round `n`.
    pub turns: u8,
    pub maintain: bool,
    pub tend: bool,
}

/// How a client reads a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    ToTheEnd,
    /// Takes so many frames, then none until it is told to go on.
    Stalls(u8),
    /// Goes away after so many frames.
    Leaves(u8),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Submit {
        request: u32,
        key: Option<u8>,
        stream: Option<Manner>,
    },
    /// Several at once under one key; every second one with the other request, if there is one.
    Race {
        request: u32,
        other: Option<u32>,
        key: u8,
        clients: u8,
    },
    Cancel {
        pick: u64,
    },
    Watch {
        pick: u64,
        cursor: u64,
        manner: Manner,
    },
    /// Readers that stall go on.
    Resume,
    Read {
        pick: u64,
        result: bool,
    },
    /// All pages of a list, or of those that have this status.
    List {
        limit: u8,
        status: Option<Status>,
    },
    Wait {
        ms: u64,
    },
    Jump {
        ms: i64,
    },
    /// What is due is let go, as a node does from time to time.
    Sweep,
    /// A backup, beside the node.
    Backup {
        cut: Cut,
    },
    /// A clean shutdown, then work on the stopped node.
    Offline(Offline),
    Restart,
    Kill,
    PowerLoss {
        keep: Choice,
        start_cut: Option<(u64, Choice)>,
    },
    /// The power goes at the `after`-th operation from now on.
    PowerCut {
        after: u64,
        keep: Choice,
    },
    Fault(Fault),
    /// So many bytes are left on the disk from now on; `None` for all one wants.
    Space {
        spare: Option<u64>,
    },
    /// The disk fills up but for so many bytes, and the process dies.
    Starve {
        spare: u64,
    },
    Nothing,
}

/// What a run may draw and how its node is set up.
#[derive(Clone, Debug)]
pub struct Swarm {
    pub faults: bool,
    pub large: bool,
    pub direct: bool,
    pub uncached: bool,
    pub limits: StoreLimits,
    pub options: EngineOptions,
    pub segment_bytes: u64,
    pub disk_bytes_max: u64,
    pub keys: u8,
    weights: Vec<(Class, u32)>,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub swarm: Swarm,
    pub steps: Vec<Step>,
}

/// Subjects of [`Random::of`].
const SWARM: u64 = 1;
const STEPS: u64 = 2;
pub(super) const SCRIPTS: u64 = 3;
pub(super) const LOOKS: u64 = 4;

impl Plan {
    /// What the seed draws, with at most so many steps.
    pub fn draw(seed: u64, steps_max: Option<usize>) -> Plan {
        let swarm = Swarm::draw(&mut Random::of(seed, SWARM));
        let mut random = Random::of(seed, STEPS);
        let count = random.pick(&[20, 40, 80, 120]).min(steps_max.unwrap_or(usize::MAX));
        let mut drawn = Drawn { random, swarm: &swarm, fresh: 1000 };
        let steps = (0..count).map(|_| drawn.step()).collect();
        Plan { seed, swarm, steps }
    }
}

/// Classes whose steps are no fault, with their weights.
const PEACEFUL: &[(Class, u32)] = &[
    (Class::Submit, 12),
    (Class::SubmitKeyed, 12),
    (Class::SubmitStreaming, 8),
    (Class::SameKeyRace, 5),
    (Class::Conflict, 3),
    (Class::Cancel, 5),
    (Class::Watch, 10),
    (Class::SlowReader, 4),
    (Class::ReaderLeaves, 4),
    (Class::Read, 5),
    (Class::List, 2),
    (Class::Time, 12),
    (Class::ClockForward, 2),
    (Class::ClockBack, 2),
    (Class::Restart, 2),
    (Class::Sweep, 2),
    (Class::Backup, 3),
    (Class::Rekey, 1),
    (Class::Compact, 2),
    (Class::Export, 1),
    (Class::Import, 1),
    (Class::Repair, 1),
    (Class::ReadOnly, 1),
    (Class::Restore, 1),
    (Class::Unfence, 1),
];

const FAULTS: &[(Class, u32)] = &[
    (Class::Kill, 4),
    (Class::PowerLoss, 5),
    (Class::PowerCut, 12),
    (Class::CutStart, 3),
    (Class::FaultIo, 2),
    (Class::FaultFull, 2),
    (Class::FaultDescriptors, 1),
    (Class::FaultShort, 1),
    (Class::FaultInterrupted, 1),
    (Class::FaultSync, 2),
    (Class::SmallDisk, 2),
    (Class::FullStart, 2),
];

impl Swarm {
    fn draw(random: &mut Random) -> Swarm {
        let faults = random.percent(80);
        let large = random.percent(10);
        let mut weights = Vec::new();
        for (class, weight) in PEACEFUL {
            // Work first: a run without submissions says nothing.
            let keep = match class {
                Class::Submit | Class::SubmitKeyed | Class::Time => true,
                _other => random.percent(70),
            };
            if keep {
                weights.push((*class, weight * random.between(1, 4) as u32));
            }
        }
        for (class, weight) in FAULTS.iter().filter(|_| faults) {
            if random.percent(50) {
                weights.push((*class, weight * random.between(1, 3) as u32));
            }
        }
        let limits = StoreLimits {
            max_executions: random.pick(&[4, 10, 1000]),
            max_bytes: random.pick(&[20_000, 1 << 20, 64 << 20]),
            max_execution_bytes: random.pick(&[4_000, 4 << 20]),
            max_events: random.pick(&[8, 4096]),
            retention_ms: random.pick(&[2_000, 60_000, 86_400_000]),
            min_key_age_ms: random.pick(&[0, 0, 1_000, 600_000]),
            max_disk_bytes: u64::MAX,
        };
        let options = EngineOptions {
            max_active_executions: random.pick(&[2, 8, 32]),
            cleanup_ms: random.pick(&[50, 5_000]),
            provider_concurrency: random.pick(&[1, 4, 16]),
            provider_queue: random.pick(&[1, 64]),
            shutdown_ms: 10_000,
        };
        let mut swarm = Swarm {
            faults,
            large,
            direct: random.percent(50),
            uncached: random.percent(80),
            limits: if large {
                StoreLimits { max_executions: 1000, max_bytes: 64 << 20, ..limits }
            } else {
                limits
            },
            options,
            segment_bytes: random.pick(&[16 << 10, 64 << 10, 256 << 10]),
            disk_bytes_max: random.pick(&[u64::MAX, u64::MAX, 100_000]),
            keys: random.pick(&[2, 6]),
            weights,
        };
        swarm.limits.max_disk_bytes = swarm.disk_bytes_max;
        swarm
    }
}

struct Drawn<'a> {
    random: Random,
    swarm: &'a Swarm,
    /// Numbers of requests that stand under no key.
    fresh: u32,
}

impl Drawn<'_> {
    fn step(&mut self) -> Step {
        let index = self.random.weighted(self.swarm.weights.iter().map(|one| one.1));
        let action = self.action(self.swarm.weights[index].0);
        let pump = Pump {
            rounds: self.random.between(0, 6) as u8,
            turns: self.random.next() as u8 & self.random.next() as u8 | self.random.pick(&[0, 0, 0xff]),
            maintain: self.random.percent(30),
            tend: self.random.percent(20),
        };
        Step { action, pump }
    }

    fn fresh(&mut self) -> u32 {
        self.fresh += 1;
        self.fresh
    }

    fn key(&mut self) -> u8 {
        self.random.below(u64::from(self.swarm.keys)) as u8
    }

    fn manner(&mut self) -> Manner {
        Manner::ToTheEnd
    }

    fn watch(&mut self, manner: Manner) -> Action {
        let cursor = match self.random.below(3) {
            0 => 0,
            1 => self.random.below(6),
            _ => self.random.below(60),
        };
        Action::Watch { pick: self.random.next(), cursor, manner }
    }

    fn choice(&mut self) -> Choice {
        match self.random.below(6) {
            0 => Choice::Nothing,
            1 => Choice::Everything,
            2 => Choice::Prefix(self.random.below(40) as usize),
            _ => Choice::Seeded(self.random.next()),
        }
    }

    /// Faultless runs draw none.
    fn cut(&mut self, after: u64) -> Cut {
        let (cut, after, keep) = (self.random.percent(30), self.random.below(after), self.choice());
        (cut && self.swarm.faults).then_some((after, keep))
    }

    fn fault(&mut self, kind: FaultKind) -> Action {
        let nth = self.random.below(12);
        let operation = self.random.pick(&[
            Operation::Write,
            Operation::Write,
            Operation::Sync,
            Operation::Sync,
            Operation::SyncDirectory,
            Operation::Create,
            Operation::Rename,
            Operation::Open,
            Operation::Read,
            Operation::SetLength,
            Operation::Remove,
            Operation::Close,
        ]);
        let fault = match self.random.below(3) {
            0 => Fault::call(nth, kind),
            1 => Fault::site(operation, "*", nth, kind),
            _ => {
                let file = self.random.pick(&["segments/*.seg", "segments/next", "head"]);
                Fault::site(operation, file, nth, kind)
            }
        };
        Action::Fault(if self.random.percent(15) { fault.forever() } else { fault })
    }

    /// A key's own request has the key's number, so a later submission of the key repeats it.
    fn submit(&mut self, keyed: bool, stream: Option<Manner>) -> Action {
        match keyed.then(|| self.key()) {
            Some(key) => Action::Submit { request: u32::from(key), key: Some(key), stream },
            None => Action::Submit { request: self.fresh(), key: None, stream },
        }
    }

    fn list(&mut self) -> Action {
        let limit = self.random.pick(&[1, 2, 5, 100]);
        let ends = [Status::Succeeded, Status::Failed, Status::Cancelled].map(Some);
        Action::List { limit, status: self.random.pick(&[None, None, None, ends[0], ends[1], ends[2]]) }
    }

    /// What is done to the machine.
    fn harm(&mut self, class: Class) -> Action {
        match class {
            Class::Kill => Action::Kill,
            Class::PowerLoss => Action::PowerLoss { keep: self.choice(), start_cut: None },
            Class::CutStart => {
                let cut = (self.random.below(30), self.choice());
                Action::PowerLoss { keep: self.choice(), start_cut: Some(cut) }
            }
            Class::PowerCut => Action::PowerCut { after: self.random.below(25), keep: self.choice() },
            Class::FaultIo => self.fault(FaultKind::Io),
            Class::FaultFull => self.fault(FaultKind::Full),
            Class::FaultDescriptors => self.fault(FaultKind::Descriptors),
            Class::FaultShort => {
                let bytes = self.random.pick(&[0, 1, 100, 512, 3000]);
                self.fault(FaultKind::ShortWrite(bytes))
            }
            Class::FaultInterrupted => self.fault(FaultKind::Interrupted),
            // What no read past the cache can see, no start can know (F2); it says that it judged the cache.
            Class::FaultSync if !self.swarm.uncached => self.fault(FaultKind::Io),
            Class::FaultSync => self.fault(FaultKind::FsyncLies),
            Class::SmallDisk => {
                let spare = self.random.pick(&[Some(0), Some(20_000), Some(200_000), None]);
                Action::Space { spare }
            }
            Class::FullStart => Action::Starve { spare: self.random.pick(&[0, 4_000, 20_000, 70_000]) },
            _peaceful => Action::Nothing,
        }
    }

    fn action(&mut self, class: Class) -> Action {
        match class {
            Class::Submit => self.submit(false, None),
            Class::SubmitKeyed => self.submit(true, None),
            Class::SubmitStreaming => {
                let (keyed, manner) = (self.random.percent(30), self.manner());
                self.submit(keyed, Some(manner))
            }
            Class::SameKeyRace => {
                let other = self.random.percent(30).then(|| self.fresh());
                let key = self.key();
                let clients = self.random.pick(&[2, 3, 8]);
                Action::Race { request: u32::from(key), other, key, clients }
            }
            Class::Conflict => Action::Submit { request: self.fresh(), key: Some(self.key()), stream: None },
            Class::Cancel => Action::Cancel { pick: self.random.next() },
            Class::Watch => self.watch(Manner::ToTheEnd),
            Class::SlowReader if self.random.percent(40) => Action::Resume,
            Class::SlowReader => {
                let frames = self.random.below(5) as u8;
                self.watch(Manner::Stalls(frames))
            }
            Class::ReaderLeaves => {
                let frames = self.random.below(5) as u8;
                self.watch(Manner::Leaves(frames))
            }
            Class::Read => Action::Read { pick: self.random.next(), result: self.random.percent(50) },
            Class::List => self.list(),
            Class::Time => Action::Wait { ms: self.random.pick(&[1, 10, 100, 300, 1_000, 6_000]) },
            Class::ClockForward => {
                Action::Jump { ms: self.random.pick(&[500, 61_000, 3_600_000, 90_000_000]) }
            }
            Class::ClockBack => Action::Jump { ms: self.random.pick(&[-500, -61_000, -3_600_000]) },
            Class::Sweep => Action::Sweep,
            Class::Backup => Action::Backup { cut: self.cut(40) },
            Class::Rekey => {
                let change = self.random.pick(&[Change::Slot, Change::Slot, Change::Replace, Change::Rotate]);
                Action::Offline(Offline::Rekey { change, cut: self.cut(25) })
            }
            Class::Compact => Action::Offline(Offline::Compact { cut: self.cut(60) }),
            Class::Export | Class::Import => {
                Action::Offline(Offline::Transfer { replace: class == Class::Import, cut: self.cut(60) })
            }
            Class::Repair => {
                Action::Offline(Offline::Repair { damage: self.random.next(), cut: self.cut(60) })
            }
            Class::ReadOnly => Action::Offline(Offline::Read { looks: self.random.next() }),
            Class::Restore => {
                let from_backup = self.random.percent(70);
                Action::Offline(Offline::Restore { from_backup, cut: self.cut(60) })
            }
            Class::Unfence => Action::Offline(Offline::Unfence { cut: self.cut(20) }),
            Class::Restart => Action::Restart,
            Class::Kill
            | Class::PowerLoss
            | Class::CutStart
            | Class::PowerCut
            | Class::FaultIo
            | Class::FaultFull
            | Class::FaultDescriptors
            | Class::FaultShort
            | Class::FaultInterrupted
            | Class::FaultSync
            | Class::SmallDisk
            | Class::FullStart => self.harm(class),
            // The others come of steps and are none.
            _outcome => Action::Nothing,
        }
    }
}

impl Action {
    /// What the step counts as when it is run.
    pub(super) fn class(&self) -> Option<Class> {
        Some(match self {
            Action::Submit { stream: Some(_), .. } => Class::SubmitStreaming,
            Action::Submit { request, key: Some(key), .. } if *request != u32::from(*key) => Class::Conflict,
            Action::Submit { key: Some(_), .. } => Class::SubmitKeyed,
            Action::Submit { key: None, .. } => Class::Submit,
            Action::Race { .. } => Class::SameKeyRace,
            Action::Cancel { .. } => Class::Cancel,
            Action::Watch { manner: Manner::ToTheEnd, .. } => Class::Watch,
            Action::Watch { manner: Manner::Stalls(_), .. } => Class::SlowReader,
            Action::Watch { manner: Manner::Leaves(_), .. } => Class::ReaderLeaves,
            Action::Read { .. } => Class::Read,
            Action::List { .. } => Class::List,
            Action::Wait { .. } => Class::Time,
            Action::Jump { ms } if *ms < 0 => Class::ClockBack,
            Action::Jump { .. } => Class::ClockForward,
            Action::Sweep => Class::Sweep,
            Action::Backup { .. } => Class::Backup,
            Action::Offline(Offline::Rekey { .. }) => Class::Rekey,
            // Counted when it was done.
            Action::Offline(
                Offline::Restore { .. }
                | Offline::Compact { .. }
                | Offline::Transfer { .. }
                | Offline::Repair { .. }
                | Offline::Read { .. },
            ) => return None,
            Action::Offline(Offline::Unfence { .. }) => Class::Unfence,
            Action::Restart => Class::Restart,
            Action::Kill => Class::Kill,
            Action::PowerLoss { start_cut: None, .. } => Class::PowerLoss,
            Action::PowerLoss { start_cut: Some(_), .. } => Class::CutStart,
            Action::Space { spare: Some(_) } => Class::SmallDisk,
            Action::Fault(fault) => match fault.kind {
                FaultKind::Io | FaultKind::ReadOnly => Class::FaultIo,
                FaultKind::Full => Class::FaultFull,
                FaultKind::Descriptors => Class::FaultDescriptors,
                FaultKind::Interrupted => Class::FaultInterrupted,
                FaultKind::ShortWrite(_) => Class::FaultShort,
                FaultKind::FsyncLies => Class::FaultSync,
            },
            // Counted when it strikes.
            Action::PowerCut { .. } | Action::Starve { .. } => return None,
            Action::Space { spare: None } | Action::Resume | Action::Nothing => return None,
        })
    }
}
