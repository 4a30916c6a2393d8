//! Summaries of ended segments: the header, and an opened body.

use sealog_journal_format::checksum::crc32;
use sealog_journal_format::limits::{DATA_START, SUMMARY_HEADER_BYTES, padded};
use sealog_journal_format::summary::{Mark, SummaryReader, SummaryWriter};
use sealog_journal_format::{FormatError, SummaryHeader, Why};

use super::allocation::within;
use super::input::{fitted, put};

/// First byte even: a header, as it is and with magic and checksum put right. Odd: a body, padded.
pub(super) fn summary(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    if choice.is_multiple_of(2) {
        let _ = header(rest);
        let mut bytes: [u8; SUMMARY_HEADER_BYTES] = fitted(rest);
        put(&mut bytes, 0, *b"SEALOGIX");
        let crc = crc32(&bytes[..252]);
        put(&mut bytes, 252, crc.to_le_bytes());
        if let Err(error) = header(&bytes) {
            assert!(!matches!(error.why, Why::Crc | Why::Magic | Why::Short), "{error}");
        }
    } else {
        let mut bytes = rest.to_vec();
        bytes.resize(padded(rest.len()), 0);
        body(&bytes);
    }
}

fn header(bytes: &[u8]) -> Result<SummaryHeader, FormatError> {
    let header = SummaryHeader::decode(bytes)?;
    assert!(bytes == header.encode(), "a header has one spelling");
    let context = header.context();
    assert!(bytes[..192] == context[..192] && context[192..].iter().all(|byte| *byte == 0));
    Ok(header)
}

fn body(bytes: &[u8]) {
    // JF-11: an own record or a mark takes at least an eighth of its value's room; pieces take none.
    let read = within(16 * bytes.len() + 4096, || SummaryReader::new(bytes));
    let Ok(read) = read else { return };
    let pieces: Vec<_> = read.pieces().collect();
    assert_eq!(pieces.len(), read.piece_count(), "a checked body reads to its end");
    let offsets: Vec<Vec<u64>> = pieces.iter().map(|piece| piece.offsets.iter().collect()).collect();
    let counts: Vec<usize> = pieces.iter().map(|piece| piece.offsets.len()).collect();
    assert!(offsets.iter().map(Vec::len).eq(counts), "and so do its offsets");
    assert!(offsets.iter().all(|offsets| offsets.windows(2).all(|pair| pair[0] < pair[1])));
    assert!(pieces.iter().all(|piece| piece.behind <= read.own.len() as u64));
    let marked = read.marks.last().copied().unwrap_or(Mark { sequence: 0, offset: DATA_START });
    let owned = read.own.last().map_or(0, |own| own.sequence);
    let sequence = pieces.iter().map(|piece| piece.last_sequence).chain([owned, marked.sequence]).max();
    let offset = offsets.iter().flatten().copied().chain([DATA_START, marked.offset]).max();
    assert_eq!((Some(read.last_sequence()), Some(read.last_offset())), (sequence, offset));

    let opened = SummaryReader::open(bytes).expect("what was checked opens");
    assert!(
        opened.own == read.own && opened.marks == read.marks && opened.pieces().eq(pieces.iter().cloned())
    );

    let mut writer = SummaryWriter::new(read.first_sequence(), read.newest_time_ms());
    read.own.iter().for_each(|own| writer.own(own));
    read.marks.iter().for_each(|mark| writer.mark(*mark));
    pieces.iter().zip(&offsets).for_each(|(piece, offsets)| writer.piece(piece, offsets));
    assert_eq!(writer.finish().as_deref(), Ok(bytes), "a body has one spelling");
}
