//! Frame headers, and the scan that looks for them behind damage.

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::frame::{FRAME_MAGIC, chain_input, header_tag, looks_like_header, tagged_part};
use sealog_journal_format::limits::{BODY_BYTES_MAX, FRAME_HEADER_BYTES, RESYNC_ALIGN};
use sealog_journal_format::{FrameHeader, Why};

use super::input::{fitted, put};

/// Decodes the bytes as they are, as a stretch of a segment, and again with magic and checksum put right.
pub(super) fn frame(data: &[u8]) {
    for at in (0..=data.len()).step_by(RESYNC_ALIGN as usize) {
        judge(&data[at..]);
    }
    let mut bytes: [u8; FRAME_HEADER_BYTES] = fitted(data);
    put(&mut bytes, 0, FRAME_MAGIC);
    let crc = crc32(&bytes[..FRAME_HEADER_BYTES - 4]);
    put(&mut bytes, FRAME_HEADER_BYTES - 4, crc.to_le_bytes());
    judge(&bytes);
    found_again(data, &bytes);
}

fn judge(bytes: &[u8]) {
    let decoded = FrameHeader::decode(bytes);
    let whole =
        !matches!(decoded.as_ref().map_err(|error| error.why), Err(Why::Short | Why::Magic | Why::Crc));
    assert_eq!(looks_like_header(bytes), whole, "the cheap test and the decoder agree");
    let Ok(header) = decoded else { return };
    assert_eq!(header.check(), Ok(()));
    let encoded = header.encode();
    assert!(bytes.starts_with(&encoded), "a header has one spelling");
    assert_eq!(*tagged_part(&encoded), header.tagged_bytes());
    assert_eq!(header_tag(&encoded), header.header_tag);
    assert!(header.body_length as usize <= BODY_BYTES_MAX);
    assert!(header.next_sequence() >= header.first_sequence);
    assert_eq!(header.frame_bytes(), FRAME_HEADER_BYTES as u64 + u64::from(header.body_length));
    // JF-8: any two headers or predecessors differ in what is hashed.
    let input = chain_input(&header.previous_chain, &encoded);
    assert!(input.starts_with(&header.previous_chain) && input.ends_with(&encoded));
    let context = header.body_context(&[7; 16], 9);
    assert!(context.starts_with(&[7; 16]));
    let synced = header.synced_through.checked_add(1) == Some(header.first_sequence);
    assert_eq!(header.check_synced_through().is_ok(), synced);
}

/// A whole header at a multiple of 8 behind other bytes is found there (JR-1).
fn found_again(noise: &[u8], header: &[u8; FRAME_HEADER_BYTES]) {
    let step = RESYNC_ALIGN as usize;
    let noise = &noise[..noise.len().min(256)];
    let place = noise.len().next_multiple_of(step);
    let mut bytes = noise.to_vec();
    bytes.resize(place, 0);
    bytes.extend_from_slice(header);
    let found = (0..bytes.len()).step_by(step).filter(|at| looks_like_header(&bytes[*at..]));
    assert!(found.into_iter().any(|at| at == place), "the header at {place} is not found");
}
