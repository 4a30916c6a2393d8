//! A journal's executions as JSON lines and back: what `journal export` writes and `journal import` reads. The format is
//! published in `spec/schema/export.json`.
//!
//! Every record travels as its own encoded body, so that what is imported is what was exported, byte for byte; the JSON
//! beside it is for people and other programs, and is compared on the way in. Forgotten executions do not travel.

mod check;
mod export;
mod import;
pub mod lines;

pub use check::{Broken, Checked, check};
pub use export::{ExportError, Exported, export};
#[cfg(any(test, feature = "testing"))]
pub use import::import_manual;
pub use import::{ImportError, Imported, import};
