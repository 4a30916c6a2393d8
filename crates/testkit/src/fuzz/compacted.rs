//! The bodies that only compacted segments have, and those of the journal's own records.

use sealog_journal_format::compacted::{FoldedGroup, Sources};
use sealog_journal_format::journal_records::{Forget, Restored, Unfenced};
use sealog_journal_format::limits::padded;

use super::allocation::within;

/// The first byte chooses the body.
pub(super) fn compacted(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let mut whole = body.to_vec();
    whole.resize(padded(body.len()), 0);
    let memory = 8 * whole.len() + 4096;
    match choice % 5 {
        0 => {
            if let Ok(sources) = within(memory, || Sources::decode(&whole)) {
                assert_eq!(sources.encode().as_deref(), Ok(whole.as_slice()), "sources have one spelling");
            }
        }
        1 => {
            if let Ok(streams) = within(memory, || FoldedGroup::decode(&whole)) {
                let again = FoldedGroup::encode(&streams);
                assert_eq!(again.as_deref(), Ok(whole.as_slice()), "a folded group has one spelling");
            }
        }
        2 => {
            if let Ok(forget) = within(memory, || Forget::decode(body)) {
                assert_eq!(forget.encode().as_deref(), Ok(body), "a forget record has one spelling");
            }
        }
        3 => {
            if let Ok(restored) = Restored::decode(body) {
                assert_eq!(restored.encode()[..], *body, "a restored record has one spelling");
            }
        }
        _ => assert_eq!(Unfenced::decode(body).is_ok(), body.is_empty()),
    }
}
