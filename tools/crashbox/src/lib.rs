//! Kills the real binary under load, again and again, and checks what survived.
//!
//! The clients of a campaign write down everything they were told; after each kill the offline tools and the
//! restarted node are held against it. Nothing here knows the product's code: requests, events and rules are
//! written down once more, so that two implementations have to agree. The README beside this crate says what is
//! checked and how to read a finding.
#![expect(clippy::disallowed_methods, reason = "a development tool owns its own directory, not a journal")]

pub mod campaign;
pub mod check;
pub mod exchange;
pub mod finding;
pub mod fold;
pub mod frame;
pub mod history;
pub mod http;
pub mod judge;
pub mod load;
pub mod node;
pub mod offline;
pub mod random;
pub mod summary;
pub mod upstream;
pub mod work;
