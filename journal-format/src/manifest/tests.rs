//! JB-2, JB-3: the manifest's bytes and the names in it.

use super::*;
use crate::head::HeadState;

fn slots(segment: u64, frames: u64) -> [[u8; HEAD_WRITE_BYTES]; 2] {
    [1, 2].map(|counter| {
        let slot = HeadSlot {
            counter,
            key_id: [4; 16],
            store_id: [3; 16],
            lineage: [5; 16],
            epoch: 2,
            segment,
            frames,
            last_sequence: 7 * u64::from(segment > 0),
            chain: if segment > 0 { [6; 16] } else { [0; 16] },
            state: HeadState::Open,
        };
        slot.encode(&[8; 32])
    })
}

fn file(segment: SegmentName, kind: FileKind) -> BackupFile {
    BackupFile { segment, kind, length: 8192 + 160, chain: [0xab; 16], sha256: [0xcd; 32] }
}

fn manifest() -> Manifest {
    let files = vec![
        file(SegmentName::Compacted { first: 1, last: 3, generation: 2 }, FileKind::Ended),
        file(SegmentName::Log { number: 4 }, FileKind::Ended),
        file(SegmentName::Log { number: 5 }, FileKind::Tail),
    ];
    let keyring = vec![9; 100];
    Manifest { store: [1; 128], slots: slots(5, 2), taken_ms: 77, key_id: [4; 16], keyring, files }
}

fn encoded(manifest: &Manifest) -> Vec<u8> {
    manifest.encode(|part| [part.len() as u8; 32]).unwrap()
}

#[test]
fn jb_2_a_manifest_reads_back() {
    let manifest = manifest();
    let bytes = encoded(&manifest);
    let part = MANIFEST_FIXED_BYTES + 100 + 3 * FILE_BYTES;
    assert_eq!(authenticated_part(&bytes).len(), part);
    assert_eq!(Manifest::decode(&bytes), Ok((manifest.clone(), [part as u8; 32])));
    assert_eq!(manifest.head().unwrap().frames, 2);
    let empty = Manifest { slots: slots(0, 0), files: vec![], ..manifest };
    assert!(Manifest::decode(&encoded(&empty)).is_ok());
}

#[test]
fn jb_2_every_flipped_bit_and_every_cut_is_refused() {
    let bytes = encoded(&manifest());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Manifest::decode(&damaged).is_err(), "{at}");
        assert!(Manifest::decode(&bytes[..at]).is_err(), "{at}");
    }
}

#[test]
fn jb_2_lengths_are_held_against_the_bytes_before_anything_is_allocated() {
    let bytes = encoded(&manifest());
    for (at, value) in [(12, u32::MAX), (16, u32::MAX), (12, 65_536), (16, 1 << 18)] {
        let mut grown = bytes.clone();
        put(&mut grown, at, value.to_le_bytes());
        let why = Manifest::decode(&grown).unwrap_err().why;
        assert!(matches!(why, Why::TooLong | Why::Short), "{why:?}");
    }
    let mut newer = bytes;
    put(&mut newer, 8, 2u16.to_le_bytes());
    assert_eq!(Manifest::decode(&newer).unwrap_err().why, Why::NewerVersion(2));
}

#[test]
fn jb_2_files_are_in_order_without_holes_and_end_where_the_head_is() {
    let refused = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = manifest();
        change(&mut manifest);
        assert!(manifest.encode(|_| [0; 32]).is_err(), "{manifest:?}");
    };
    refused(&|m| m.files.swap(0, 1));
    refused(&|m| m.files.retain(|file| file.segment.first() != 4));
    refused(&|m| m.files.truncate(2));
    refused(&|m| m.files[0].kind = FileKind::Tail);
    refused(&|m| m.files[1].kind = FileKind::Tail);
    refused(&|m| m.files[1].length += 8);
    refused(&|m| m.files[1].length = 8192);
    refused(&|m| m.keyring = vec![0; MANIFEST_KEYRING_BYTES_MAX + 1]);
    refused(&|m| m.slots[1][30] ^= 1);
}

#[test]
fn jb_3_a_name_says_what_the_file_holds_and_where_it_ends() {
    let chain = "ab".repeat(16);
    let log = SegmentName::Log { number: 4 };
    let compacted = SegmentName::Compacted { first: 1, last: 3, generation: 2 };
    assert_eq!(file(log, FileKind::Ended).file_name(), format!("000000000004.{chain}.seg"));
    assert_eq!(file(log, FileKind::Tail).file_name(), format!("000000000004.{chain}.tail"));
    assert_eq!(
        file(compacted, FileKind::Ended).file_name(),
        format!("000000000001-000000000003.000000000002.{chain}.seg")
    );
    for segment in [log, compacted] {
        for kind in [FileKind::Ended, FileKind::Tail] {
            assert!(BackupFile::is_file_name(&file(segment, kind).file_name()));
        }
        assert!(!BackupFile::is_file_name(&segment.file_name()), "a journal's own");
    }
    for other in ["copy.tmp", "reserve", "4..seg", &format!("4.{chain}.idx"), &format!("x.{chain}.seg")] {
        assert!(!BackupFile::is_file_name(other), "{other}");
    }
}
