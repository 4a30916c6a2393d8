//! The whole simulated disk as one value, and the gate that every call passes: counting, power, faults, trace.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::crash::CrashPoint;
use super::fault::{Armed, FaultKind, due};
use super::folder::{Folders, InodeId};
use super::inode::Inode;
use super::pages::PAGE;
use super::trace::{Call, TraceEntry};
use crate::{DiskError, ErrorKind, FileKind, Folder, Name, Operation, Space};

pub(super) type Result<T> = std::result::Result<T, DiskError>;

/// What a call is about.
#[derive(Clone, Debug)]
pub(super) enum Site {
    Disk,
    Folder(Folder),
    File(Option<Name>),
    Two(Name, Name),
}

impl Site {
    /// The text that fault patterns are matched with.
    fn text(&self) -> String {
        match self {
            Site::Disk | Site::Folder(Folder::Root) => "./".to_owned(),
            Site::Folder(folder) => format!("{}/", folder.as_str()),
            Site::File(None) => String::new(),
            Site::File(Some(name)) | Site::Two(name, _) => name.to_string(),
        }
    }

    fn trace_text(&self) -> String {
        match self {
            Site::Two(from, to) => format!("{from} -> {to}"),
            one => one.text(),
        }
    }

    fn name(&self) -> Option<&Name> {
        match self {
            Site::Disk | Site::Folder(_) | Site::File(None) => None,
            Site::File(Some(name)) | Site::Two(name, _) => Some(name),
        }
    }
}

/// How a call goes on behind the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Normal,
    Short(usize),
    Fail(FaultKind),
    /// The power goes during this call.
    PowerCut,
}

/// What a file system and its device can do.
#[derive(Clone, Debug)]
pub(super) struct Abilities {
    pub(super) capacity: Option<u64>,
    pub(super) direct: bool,
    pub(super) uncached: bool,
}

/// Everything that a fork copies.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) inodes: BTreeMap<InodeId, Arc<Inode>>,
    pub(super) folders: Folders,
    /// Entries that are not files of ours: links, pipes, directories.
    pub(super) foreign: Vec<(Folder, String, FileKind)>,
    pub(super) next_inode: InodeId,
    pub(super) abilities: Abilities,
    /// Ascending number of every change, across forks.
    pub(super) clock: u64,
}

/// A disk as one running system sees it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) content: Content,
    pub(super) handles: BTreeMap<InodeId, u32>,
    pub(super) lock: Option<u64>,
    pub(super) next_lock: u64,
    pub(super) calls: u64,
    pub(super) operations: u64,
    pub(super) cut_at: Option<u64>,
    pub(super) off: bool,
    pub(super) moved: bool,
    pub(super) faults: Vec<Armed>,
    pub(super) trace: Option<Vec<TraceEntry>>,
    pub(super) points: Option<Vec<CrashPoint>>,
}

impl Content {
    pub(super) fn empty() -> Content {
        Content {
            inodes: BTreeMap::new(),
            folders: Folders::new(),
            foreign: Vec::new(),
            next_inode: 1,
            abilities: Abilities { capacity: None, direct: true, uncached: true },
            clock: 0,
        }
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn lookup(&self, name: &Name) -> Option<InodeId> {
        let entries = &self.folders.of(name.folder()).cached;
        entries.files.get(name.file()).copied().filter(|_| entries.exists)
    }

    pub(super) fn inode(&self, id: InodeId) -> Option<&Arc<Inode>> {
        self.inodes.get(&id)
    }

    pub(super) fn inode_mut(&mut self, id: InodeId) -> Option<&mut Inode> {
        self.inodes.get_mut(&id).map(Arc::make_mut)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.inodes.values().map(|inode| inode.cached.allocated() * PAGE as u64).sum()
    }

    pub(super) fn space(&self) -> Space {
        // Without a limit: as much as nobody simulates.
        let total = self.abilities.capacity.unwrap_or(1 << 40);
        Space { available: total.saturating_sub(self.used_bytes()), total }
    }
}

impl State {
    pub(super) fn new(content: Content) -> State {
        State {
            content,
            handles: BTreeMap::new(),
            lock: None,
            next_lock: 1,
            calls: 0,
            operations: 0,
            cut_at: None,
            off: false,
            moved: false,
            faults: Vec::new(),
            trace: None,
            points: None,
        }
    }

    /// Passes the gate and runs the call. `body` gets the fate of the call; errors of the plan that it does not
    /// treat itself come from [`State::refuse`].
    pub(super) fn call<T>(
        &mut self,
        call: Call,
        site: &Site,
        range: (u64, u64),
        body: impl FnOnce(&mut State, Fate) -> Result<T>,
    ) -> Result<T> {
        let number = self.operations;
        let fate = self.gate(call, site)?;
        let result = body(self, fate);
        if let Some(trace) = &mut self.trace {
            let error = result.as_ref().err().map(|error| error.kind);
            let op = call.changes_the_disk().then_some(number);
            trace.push(TraceEntry {
                call,
                file: site.trace_text(),
                offset: range.0,
                len: range.1,
                op,
                error,
            });
        }
        result
    }

    fn gate(&mut self, call: Call, site: &Site) -> Result<Fate> {
        let op = call.operation();
        if self.off {
            return Err(power_off(op, site.name()));
        }
        self.calls += 1;
        if call.changes_the_disk() {
            if self.points.is_some() {
                let point = CrashPoint::of(&self.content);
                self.points.get_or_insert_default().push(point);
            }
            self.operations += 1;
            if self.cut_at.is_some_and(|at| self.operations > at) {
                self.off = true;
                return Ok(Fate::PowerCut);
            }
        }
        if self.faults.is_empty() {
            return Ok(Fate::Normal);
        }
        let writes = matches!(call, Call::Write | Call::WriteDurable);
        Ok(match due(&mut self.faults, op, &site.text()) {
            None => Fate::Normal,
            Some(FaultKind::ShortWrite(max)) if writes => Fate::Short(max),
            Some(FaultKind::ShortWrite(_)) => Fate::Normal,
            Some(kind) => Fate::Fail(kind),
        })
    }

    /// The error of a call that is to fail without any effect.
    pub(super) fn refuse(fate: Fate, call: Call, site: &Site) -> Result<()> {
        let op = call.operation();
        match fate {
            Fate::Normal | Fate::Short(_) => Ok(()),
            Fate::Fail(kind) => Err(kind.error(op, site.name())),
            Fate::PowerCut => Err(power_off(op, site.name())),
        }
    }

    /// A durable write shows its sectors as undecided at its own crash point.
    pub(super) fn replace_last_point(&mut self) {
        let point = CrashPoint::of(&self.content);
        if let Some(last) = self.points.as_mut().and_then(|points| points.last_mut()) {
            *last = point;
        }
    }

    /// A call without special faults.
    pub(super) fn plain<T>(
        &mut self,
        call: Call,
        site: &Site,
        body: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        self.call(call, site, (0, 0), |state, fate| {
            State::refuse(fate, call, site)?;
            body(state)
        })
    }

    pub(super) fn release(&mut self, id: InodeId) {
        if let Some(count) = self.handles.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.handles.remove(&id);
                let named = self.content.inode(id).and_then(|inode| inode.name.as_ref());
                if named.is_none_or(|name| self.content.lookup(name) != Some(id)) {
                    self.collect();
                }
            }
        }
    }

    /// Forgets files that no entry, no undecided change and no handle leads to. Those without a visible entry or
    /// handle keep their durable bytes for a crash but give their space back.
    pub(super) fn collect(&mut self) {
        let reachable = self.content.folders.reachable();
        let handles = &self.handles;
        self.content.inodes.retain(|id, _| handles.contains_key(id) || reachable.binary_search(id).is_ok());
        let gone: Vec<InodeId> =
            self.content.inodes.keys().copied().filter(|id| !handles.contains_key(id)).collect();
        for id in gone {
            if self.content.folders.links(id) == 0
                && let Some(inode) = self.content.inode_mut(id)
            {
                inode.cached = super::pages::Image::default();
                inode.lied = true;
            }
        }
    }
}

pub(super) fn power_off(op: Operation, file: Option<&Name>) -> DiskError {
    DiskError { detail: Some("the simulated power is off"), ..DiskError::new(op, ErrorKind::Io, file) }
}
