//! The verbs of a journal's directory. `inspect`, `verify` and `replay` only read, also beside a running node.

pub mod backup;
pub mod compact;
pub mod export;
pub mod import;
pub mod init;
pub mod inspect;
pub mod rekey;
pub mod repair;
pub mod replay;
pub mod restore;
pub mod unfence;
pub mod verify;
