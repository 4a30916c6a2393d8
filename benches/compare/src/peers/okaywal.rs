//! okaywal: one entry a group. It keeps no index, and uses a file again once that is checkpointed; with a manager that
//! needs nothing checkpointed that is the least work it can have.

use std::path::Path;

use anyhow::Result;
use okaywal::{Configuration, LogVoid, WriteAheadLog};
use sealog_benches::handover::Sink;
use sealog_benches::workload::Keyed;

/// Files as long as those of the journal it is compared with.
const FILE_BYTES: u32 = 64 << 20;

pub struct OkayWal {
    log: WriteAheadLog,
    buffer: Vec<u8>,
}

impl OkayWal {
    pub fn open(folder: &Path) -> Result<OkayWal> {
        let configuration = Configuration::default_for(folder.join("log"))
            .preallocate_bytes(FILE_BYTES)
            .checkpoint_after_bytes(u64::from(FILE_BYTES) * 3 / 4);
        Ok(OkayWal { log: configuration.open(LogVoid)?, buffer: Vec::new() })
    }
}

impl Sink for OkayWal {
    fn commit(&mut self, group: &[Keyed]) -> Result<u64> {
        self.buffer.clear();
        for event in group {
            self.buffer.extend_from_slice(&event.key);
            self.buffer.extend_from_slice(&event.json);
        }
        let mut entry = self.log.begin_entry()?;
        entry.write_chunk(&self.buffer)?;
        entry.commit()?;
        Ok(self.buffer.len() as u64)
    }
}
