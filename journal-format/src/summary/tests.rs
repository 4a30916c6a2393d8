use super::*;
use proptest::prelude::*;

fn header() -> SummaryHeader {
    let end = EndRecord {
        segment: 5,
        frames: 3,
        end_offset: 8192 + 480,
        last_sequence: 17,
        chain: [7; 16],
        how: crate::How::Sealed,
    };
    SummaryHeader {
        store_id: [1; 16],
        first: 5,
        last: 5,
        generation: 0,
        end,
        digest_version: 3,
        body_length: 128,
        salt: [2; 32],
        check: [3; 32],
        tag: [4; 16],
    }
}

/// JF-20: no byte of the header is left unchecked.
#[test]
fn every_flipped_bit_of_the_header_is_noticed() {
    let good = header().encode();
    assert_eq!(SummaryHeader::decode(&good), Ok(header()));
    for bit in 0..good.len() * 8 {
        let mut bytes = good;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(SummaryHeader::decode(&bytes).is_err(), "bit {bit}");
    }
}

/// JF-21: the associated data is the header without tag and CRC.
#[test]
fn the_context_leaves_out_what_comes_last() {
    let (mut bytes, context) = (header().encode(), header().context());
    bytes[192..208].fill(0);
    bytes[252..].fill(0);
    assert_eq!(bytes, context);
    let other = SummaryHeader { check: [9; 32], ..header() };
    assert_ne!(other.context(), context);
}

type Piece4 = (u8, u64, u64, Vec<u64>, Vec<u8>);

fn body(owns: &[u64], pieces: &[Piece4]) -> Vec<u8> {
    let mut writer = SummaryWriter::new(100, 1_800_000_000_000);
    for sequence in owns {
        let body = [&[1][..], &[8; 16]].concat();
        let time_ms = 1_800_000_000_000 - sequence;
        writer.own(&OwnRecord { sequence: *sequence, kind: 1, epoch: 4, time_ms, body: &body });
    }
    writer.mark(Mark { sequence: 100, offset: 8352 });
    let mut behind = 0;
    for (id, first, span, offsets, digest) in pieces {
        behind = owns.len().min(behind + 1);
        writer.piece(&piece(*id, behind as u64, *first, *span, digest), offsets);
    }
    writer.finish().expect("in order and within bounds")
}

fn piece(id: u8, behind: u64, first: u64, span: u64, digest: &[u8]) -> Piece<'_> {
    Piece {
        behind,
        stream: [id; 16],
        first_sequence: first,
        last_sequence: first + span,
        records: 1,
        last_event: span,
        closes: id.is_multiple_of(2),
        epoch: 4,
        last_time_ms: 1_799_999_999_990 + span,
        logical_bytes: first,
        stored_bytes: span,
        offsets: Offsets::NONE,
        digest,
    }
}

proptest! {
    /// JF-22: what was written is read again.
    #[test]
    fn a_body_reads_back(
        owns in proptest::collection::btree_set(100_u64..1 << 40, 0..6),
        pieces in proptest::collection::vec(
            (any::<u8>(), 100_u64..1 << 40, 0_u64..9999, proptest::collection::btree_set(1_u64..1 << 20, 1..20),
             proptest::collection::vec(any::<u8>(), 0..40)),
            0..30,
        ),
    ) {
        let owns: Vec<u64> = owns.into_iter().collect();
        let pieces: Vec<Piece4> = pieces.into_iter().map(|(id, first, span, offsets, digest)| {
            (id, first, span, offsets.into_iter().map(|offset| 8192 + offset * 32).collect(), digest)
        }).collect();
        let bytes = body(&owns, &pieces);
        let reader = SummaryReader::new(&bytes).unwrap();
        let sequences: Vec<u64> = reader.own.iter().map(|own| own.sequence).collect();
        prop_assert_eq!(sequences, owns);
        let read: Vec<Piece4> = reader.pieces().map(|piece| {
            let span = piece.last_sequence - piece.first_sequence;
            (piece.stream[0], piece.first_sequence, span, piece.offsets.iter().collect(), piece.digest.to_vec())
        }).collect();
        prop_assert_eq!(reader.piece_count(), pieces.len());
        let last = pieces.iter().flat_map(|piece| piece.3.iter().copied()).max().unwrap_or(8352).max(8352);
        prop_assert_eq!(reader.last_offset(), last);
        prop_assert_eq!(read, pieces);
    }

    /// JF-22: whatever the bytes are, reading ends without a panic, and what is accepted can be walked to its end.
    #[test]
    fn hostile_bodies_are_refused_or_walked(
        at in any::<usize>(),
        change in proptest::collection::vec(any::<u8>(), 1..24),
        cut in 0_usize..4,
    ) {
        let pieces = vec![(3, 100, 4, vec![8352, 9984], vec![1, 2, 3]), (4, 120, 0, vec![16384], vec![])];
        let mut bytes = body(&[110, 115], &pieces);
        let at = at % bytes.len();
        let end = bytes.len().min(at + change.len());
        bytes[at..end].copy_from_slice(&change[..end - at]);
        bytes.truncate(bytes.len().saturating_sub(cut * 64));
        if let Ok(reader) = SummaryReader::new(&bytes) {
            prop_assert_eq!(reader.pieces().count(), reader.piece_count());
        }
    }
}

/// JF-22: a count is held against the bytes that are there before anything is allocated.
#[test]
fn counts_are_bounded() {
    for skip in [0, 1, 2] {
        let mut bytes = vec![100, 1];
        bytes.resize(2 + skip, 0);
        bytes.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        bytes.resize(64, 0);
        assert_eq!(SummaryReader::new(&bytes).map(|_| ()).unwrap_err().why, Why::Short, "{skip}");
    }
    let long = vec![0; SUMMARY_BODY_BYTES_MAX + 64];
    assert_eq!(SummaryReader::new(&long).map(|_| ()).unwrap_err().why, Why::TooLong);
}
