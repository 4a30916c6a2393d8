//! Segment headers: one spelling, checksums that mean what they say.

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::limits::HEADER_BYTES;
use sealog_journal_format::segment::SEGMENT_MAGIC;
use sealog_journal_format::{FixedPart, FormatError, SegmentHeader, Why};

use super::input::{fitted, put};

/// Decodes the bytes as they are, and again with magic and checksums put right.
pub(super) fn segment_header(data: &[u8]) {
    let _ = judge(data);
    let mut bytes: [u8; HEADER_BYTES] = fitted(data);
    put(&mut bytes, 0, SEGMENT_MAGIC);
    let fixed = crc32(&bytes[..60]);
    put(&mut bytes, 60, fixed.to_le_bytes());
    let whole = crc32(&bytes[..HEADER_BYTES - 4]);
    put(&mut bytes, HEADER_BYTES - 4, whole.to_le_bytes());
    if let Err(error) = judge(&bytes) {
        // What is whole is never called torn.
        assert!(!matches!(error.why, Why::Crc | Why::Magic | Why::Short), "{error}");
    }
}

fn judge(bytes: &[u8]) -> Result<SegmentHeader, FormatError> {
    let decoded = SegmentHeader::decode(bytes);
    let fixed = FixedPart::decode(bytes);
    if let Ok(header) = &decoded {
        assert_eq!(header.check(), Ok(()));
        assert!(bytes == header.encode(), "a header has one spelling");
        assert_eq!(fixed, Ok(FixedPart { store_id: header.store_id, number: header.number }));
        let context = header.wrap_context();
        assert!(context[168..216] == [0; 48] && context[HEADER_BYTES - 4..] == [0; 4]);
        assert_eq!(context[..168], bytes[..168]);
        assert_eq!(header.fixed_fields()[..], bytes[..136]);
        // JF-4: another store or another root key is told before suite, whole checksum and zeros.
        let other = SegmentHeader::decode_with(bytes, |_| false, |_| true).map_err(|error| error.why);
        assert_eq!(other, Err(Why::Mismatch));
        let unknown = SegmentHeader::decode_with(bytes, |_| true, |_| false).map_err(|error| error.why);
        assert_eq!(unknown, Err(Why::Mismatch));
    }
    if let Err(Why::NewerVersion(_)) = fixed.map_err(|error| error.why) {
        let why = decoded.map_err(|error| error.why).map(|_| ());
        assert!(matches!(why, Err(Why::NewerVersion(_) | Why::Short | Why::Trailing)), "{why:?}");
    }
    decoded
}
