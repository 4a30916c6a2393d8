//! The verbs of a journal's directory. All but `init` only read, also beside a running node.

pub mod init;
pub mod inspect;
pub mod replay;
pub mod verify;
