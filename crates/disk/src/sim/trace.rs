//! What was called, for debugging and for assertions about order.

use crate::{ErrorKind, Operation};

/// One method of the seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Lock,
    IsLocked,
    CheckIdentity,
    MakeFolder,
    List,
    Open,
    OpenForWrite,
    OpenDirect,
    Create,
    Rename,
    RenameNew,
    Remove,
    SyncFolder,
    Space,
    Length,
    Read,
    ReadUncached,
    Write,
    WriteDurable,
    SyncData,
    SyncAll,
    SetLength,
    Links,
    Close,
}

impl Call {
    /// The class of call sites a fault plan speaks about.
    pub fn operation(self) -> Operation {
        match self {
            Call::Lock | Call::IsLocked => Operation::Lock,
            Call::MakeFolder | Call::Create => Operation::Create,
            Call::List => Operation::List,
            Call::Open | Call::OpenForWrite | Call::OpenDirect => Operation::Open,
            Call::Rename | Call::RenameNew => Operation::Rename,
            Call::Remove => Operation::Remove,
            Call::SyncFolder => Operation::SyncDirectory,
            Call::Space => Operation::Space,
            Call::CheckIdentity | Call::Length | Call::Links => Operation::Stat,
            Call::Read | Call::ReadUncached => Operation::Read,
            Call::Write | Call::WriteDurable => Operation::Write,
            Call::SyncData | Call::SyncAll => Operation::Sync,
            Call::SetLength => Operation::SetLength,
            Call::Close => Operation::Close,
        }
    }

    /// Whether the call can change what a crash leaves; only these are counted as operations.
    pub fn changes_the_disk(self) -> bool {
        match self {
            Call::MakeFolder
            | Call::Create
            | Call::Rename
            | Call::RenameNew
            | Call::Remove
            | Call::SyncFolder
            | Call::Write
            | Call::WriteDurable
            | Call::SyncData
            | Call::SyncAll
            | Call::SetLength => true,
            Call::Lock
            | Call::IsLocked
            | Call::CheckIdentity
            | Call::List
            | Call::Open
            | Call::OpenForWrite
            | Call::OpenDirect
            | Call::Space
            | Call::Length
            | Call::Read
            | Call::ReadUncached
            | Call::Links
            | Call::Close => false,
        }
    }
}

/// One traced call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    pub call: Call,
    /// `folder/file`, a folder as `segments/`, the disk as `./`; a rename as `from -> to`.
    pub file: String,
    pub offset: u64,
    pub len: u64,
    /// Number of the operation, if the call is one ([`Call::changes_the_disk`]).
    pub op: Option<u64>,
    pub error: Option<ErrorKind>,
}
