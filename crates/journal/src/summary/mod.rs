//! Summaries of ended segments (`spec/journal.md` section 11): what a start wants to know of a segment without opening
//! its bodies. Derived and never relied on: whatever is wrong with one, it counts as absent.

mod apply;
mod file;
mod gather;
mod taken;
mod work;

pub(crate) use file::{Summary, load};
pub(crate) use work::Summarise;
