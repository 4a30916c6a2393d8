//! Folded executions: unfolded within bounds, and what unfolds can be folded again.

use sealog_events::ExecutionId;
use sealog_events::folded::{fold, unfold};

use super::allocation::within;

const ID: ExecutionId = ExecutionId::from_bytes([0x11; 16]);

pub(super) fn folded(data: &[u8]) {
    // A row takes a hundred bytes and may stand for one; a result may be as long as the bound of results, several times
    // while it is made.
    let memory = 1024 * data.len() + (8 << 20);
    let Ok(rows) = within(memory, || unfold(ID, 1, data)) else { return };
    assert!(!rows.is_empty() && rows.len() <= data.len());
    assert!(rows.windows(2).all(|pair| pair[0].sequence < pair[1].sequence), "sequences ascend");
    // Bytes of another maker may spell a column otherwise, and be longer for it; what `fold` makes unfolds.
    if let Some(again) = fold(ID, &rows) {
        assert_eq!(unfold(ID, 1, &again).as_deref(), Ok(rows.as_slice()), "the same records");
    }
}
