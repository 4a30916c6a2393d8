//! Every size and limit of the format, one place for writer and reader (JF-11). Sizes in bytes unless named otherwise.

/// One copy of a segment header; also the distance of the two copies and of the two head slots.
pub const HEADER_BYTES: usize = 4096;
/// Where the frames of a segment begin.
pub const DATA_START: u64 = 8192;
/// The part of a segment header that keeps its place in every version (JF-4).
pub const FIXED_PART_BYTES: usize = 64;
/// The header fields that go into the derivation of the data key (JF-5).
pub const FIXED_FIELDS_BYTES: usize = 136;
pub const FRAME_HEADER_BYTES: usize = 96;
/// The part of a frame header under the header tag.
pub const FRAME_TAGGED_BYTES: usize = 72;
/// Associated data of a frame body (JF-7).
pub const BODY_CONTEXT_BYTES: usize = 46;
/// A body's length is a multiple of this.
pub const BODY_ALIGN: usize = 64;
/// A frame starts at a multiple of this.
pub const FRAME_ALIGN: u64 = 32;
/// The smallest frame: a header and one aligned body.
pub const FRAME_BYTES_MIN: u64 = (FRAME_HEADER_BYTES + BODY_ALIGN) as u64;
/// A scan that resynchronises looks at every multiple of this (JR-1).
pub const RESYNC_ALIGN: u64 = 8;
/// Written whole or not at all (JA-1).
pub const SECTOR_BYTES: usize = 512;
pub const END_RECORD_BYTES: usize = 64;
pub const STORE_BYTES: usize = 128;
/// The `head` file.
pub const HEAD_BYTES: usize = 8192;
/// The part of `head` that one slot occupies, zeros included.
pub const HEAD_SLOT_BYTES: usize = 4096;
/// The part of a slot that is written.
pub const HEAD_WRITE_BYTES: usize = 512;
/// The part of a slot under its MAC.
pub const HEAD_SEALED_BYTES: usize = 128;

/// A commit unit, encoded in a group of its own.
pub const UNIT_BYTES_MAX: usize = 4 << 20;
/// The body of any frame, padding included.
pub const BODY_BYTES_MAX: usize = UNIT_BYTES_MAX + (64 << 10);
/// The body of one record, its envelope not counted: moving a record to another frame never changes whether it fits.
pub const RECORD_BYTES_MAX: usize = 2 << 20;
/// Records of one frame.
pub const RECORDS_MAX: u32 = 65_536;
/// A group is closed before a unit that would take it past this.
pub const GROUP_BYTES_SOFT: usize = 256 << 10;
/// A segment, unless one unit needs more.
pub const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// The last sequence there can be: each has a next one.
pub const SEQUENCE_MAX: u64 = u64::MAX - 1;
/// Times are at most this, so that the distance of any two fits a signed 64-bit number.
pub const TIME_MS_MAX: u64 = i64::MAX as u64;
/// The longest envelope of a record: kind 3, class 1, stream 1 + 16, event number, time and logical size 10 each, length 4.
pub const ENVELOPE_BYTES_MAX: usize = 3 + 1 + 17 + 3 * 10 + 4;
/// The shortest record: seven one-byte fields and an empty body.
pub const RECORD_BYTES_MIN: usize = 7;
/// The header of a summary.
pub const SUMMARY_HEADER_BYTES: usize = 256;
/// The body of a summary, padding included; a segment that needs more has none.
pub const SUMMARY_BODY_BYTES_MAX: usize = 16 << 20;
/// The journal's own records in a summary, and its marks: what is held of it at once stays small.
pub const SUMMARY_OWN_MAX: usize = 262_144;
pub const SUMMARY_MARKS_MAX: usize = 65_536;
/// What the journal's owner may keep of one stream in a summary.
pub const DIGEST_BYTES_MAX: usize = 1024;
/// The longest varint.
pub const VARINT_BYTES_MAX: usize = 10;

/// `length` rounded up to [`BODY_ALIGN`].
pub const fn padded(length: usize) -> usize {
    length.next_multiple_of(BODY_ALIGN)
}
