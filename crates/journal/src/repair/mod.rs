//! A sound journal out of a damaged one: everything that reads and still has its place, and a list of everything that does
//! not (JB-11). The damaged one is only read; the verdict on it is the scan's.

mod overlay;
mod salvage;

pub use overlay::salvage_view;
pub use salvage::Loss;

use std::sync::Arc;

use sealog_disk::Disk;
use sealog_journal_format::end::EndRecord;
use sealog_journal_format::journal_records::{KIND_RESTORED, Restored};

use crate::audit;
use crate::backup::{Ends, begin, finish, write_one};
use crate::config::Config;
use crate::error::Result;
use crate::head::HeadContent;
use crate::journal::Journal;
use crate::lock;
use crate::record::{Ignore, StreamId};
use crate::recovery::findings::{Gap, Problem, TornTail};
use crate::store::Store;

use salvage::Salvage;

/// What a repair found, kept and lost.
#[derive(Clone, Debug)]
pub struct Repaired {
    pub store_id: [u8; 16],
    /// Records and streams of the new journal, the `restored` record left out.
    pub records: u64,
    pub streams: u64,
    /// Streams that end as interrupted at the next start.
    pub interrupted: Vec<StreamId>,
    pub losses: Vec<Loss>,
    pub gaps: Vec<Gap>,
    pub problems: Vec<Problem>,
    pub tail: Option<TornTail>,
    /// What the new journal does not know, the old one may have known: something may be lost, or the old one is a backup.
    pub lacks_work: bool,
    /// It was read from a backup.
    pub copied: bool,
    /// The new journal is fenced, for that reason or because the old one was.
    pub fenced: bool,
    pub last_sequence: u64,
}

/// Builds in `target` a journal of everything in `source` that reads. Whatever an earlier try left in `target` is
/// removed first.
///
/// # Errors
/// What keeps the scan from starting at all (no keyring that opens, a newer format), `Locked` beside a writer, storage
/// errors. What stands in `target` then is no journal that anybody may use.
pub fn repair(source: &Config, target: &Arc<dyn Disk>) -> Result<Repaired> {
    let store = Store::open(source)?;
    lock::nobody_holds(&*source.disk)?;
    let (_, ends) = audit::once(source, Ends::default())?;
    let from = ends.horizon().map_or(EndRecord::NONE, |reached| reached.end);
    let held = lock::take(&**target, &*source.clock, source.tuning.lock_wait)?;
    begin(&**target)?;
    finish(&store, &**target, &HeadContent::naming(&EndRecord::NONE, [0; 16], 0, true))?;
    drop(held);
    let config = Config { disk: Arc::clone(target), ..source.clone() };
    let (journal, _) = Journal::open_manual(&config, &mut Ignore)?;
    // One pass: a second sink would write everything a second time.
    let (audit, salvage) = audit::once(source, Salvage::into(journal.clone(), Arc::clone(&source.codec)))?;
    let salvaged = salvage.finish()?;
    let lacks_work = audit.may_lack_work() || !salvaged.losses.is_empty();
    let records = journal.durable_sequence();
    let restored = Restored { from, restored_ms: config.clock.wall_ms(), fenced: lacks_work };
    let body = restored.encode().to_vec();
    write_one(&config, &journal, KIND_RESTORED, body)?;
    let streams = journal.streams() as u64;
    journal.close()?;
    Ok(Repaired {
        store_id: store.id().0,
        records,
        streams,
        interrupted: salvaged.open,
        losses: salvaged.losses,
        gaps: audit.gaps,
        problems: audit.problems,
        tail: audit.tail,
        lacks_work,
        copied: audit.copied,
        fenced: lacks_work || salvaged.fence.is_up(),
        last_sequence: journal.durable_sequence(),
    })
}
