//! Head slots and end records.

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::head::{HEAD_MAGIC, slot_offset};
use sealog_journal_format::limits::{END_RECORD_BYTES, HEAD_SLOT_BYTES, HEAD_WRITE_BYTES};
use sealog_journal_format::{EndRecord, FormatError, HeadSlot, Why};

use super::input::{fitted, put};

/// Decodes the bytes as they are, again with magic and checksum put right, and as an end record.
pub(super) fn head(data: &[u8]) {
    let mut slot: [u8; HEAD_SLOT_BYTES] = fitted(data);
    for offset in [0, HEAD_SLOT_BYTES as u64] {
        let _ = judge(data, offset);
        let _ = judge(&slot, offset);
    }
    put(&mut slot, 0, HEAD_MAGIC);
    let crc = crc32(&slot[..160]);
    put(&mut slot, 160, crc.to_le_bytes());
    let both = [0, HEAD_SLOT_BYTES as u64].map(|offset| judge(&slot, offset));
    assert!(!both.iter().all(Result::is_ok), "a slot belongs to one place");
    for error in both.into_iter().filter_map(Result::err) {
        assert!(!matches!(error.why, Why::Crc | Why::Magic | Why::Short), "{error}");
    }
    end(data);
    end(&fitted::<END_RECORD_BYTES>(data));
}

fn judge(bytes: &[u8], offset: u64) -> Result<HeadSlot, FormatError> {
    let (slot, mac) = HeadSlot::decode(bytes, offset)?;
    assert_eq!(slot.check(), Ok(()));
    assert_eq!(slot_offset(slot.counter), offset);
    assert!(bytes[..HEAD_WRITE_BYTES] == slot.encode(&mac), "a slot has one spelling");
    assert!(bytes[HEAD_WRITE_BYTES..].iter().all(|byte| *byte == 0));
    Ok(slot)
}

fn end(bytes: &[u8]) {
    if let Ok(end) = EndRecord::decode(bytes) {
        assert_eq!(end.check(), Ok(()));
        assert!(bytes == end.encode(), "an end record has one spelling");
        assert_eq!(end.is_none(), end == EndRecord::NONE);
    }
}
