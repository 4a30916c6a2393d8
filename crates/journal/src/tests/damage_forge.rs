//! Frames that a thief of the keys, or a bug, would write: right checksums and wrong content. They are damage, never a
//! torn tail, and never decode (R04, row 7).

use sealog_disk::sim::SimDisk;
use sealog_journal_format::checksum::crc32;
use sealog_journal_format::end::{EndRecord, How};
use sealog_journal_format::limits::{BODY_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_TAGGED_BYTES};
use sealog_journal_format::record::GroupEncoder;
use sealog_journal_format::{FrameHeader, FrameKind};
use sealog_seal::testing::seal_forged;

use super::damage_image::{At, End, Image, look, open_segment, refused_at, rows, segment, start};
use super::setup::{START_MS, record};
use crate::segment::Segment;
use crate::writer::core::as_ref;

/// A frame to be forged; starts as the one that would be right.
#[derive(Clone, Debug)]
pub(crate) struct Forged {
    pub header: FrameHeader,
    pub plaintext: Vec<u8>,
    /// Done to the header bytes before its tag is made.
    raw: Vec<(usize, Vec<u8>)>,
    /// XORed into the tags behind their back.
    body_tag: u8,
    header_tag: u8,
}

/// A group of one record.
pub(crate) fn plaintext() -> Vec<u8> {
    let mut group = GroupEncoder::new(START_MS);
    group.push(&as_ref(&record(8, 1, b"forged"))).unwrap();
    group.finish()
}

impl Forged {
    /// What the writer would have written behind `last`.
    pub fn behind(image: &Image, last: &At) -> Forged {
        let bytes = image.frame_bytes(last);
        let header = FrameHeader {
            body_length: 0,
            index: last.header.index + 1,
            kind: FrameKind::Group,
            first_sequence: last.header.next_sequence(),
            record_count: 1,
            synced_through: last.header.next_sequence() - 1,
            previous_chain: sealog_seal::chain(&last.header.previous_chain, bytes[..96].try_into().unwrap()),
            body_crc: 0,
            body_tag: [0; 16],
            header_tag: [0; 16],
        };
        Forged { header, plaintext: plaintext(), raw: vec![], body_tag: 0, header_tag: 0 }
    }

    pub fn with(mut self, change: impl FnOnce(&mut FrameHeader)) -> Forged {
        change(&mut self.header);
        self
    }

    pub fn holding(mut self, plaintext: &[u8]) -> Forged {
        self.plaintext = plaintext.to_vec();
        self
    }

    pub fn raw(mut self, at: usize, bytes: &[u8]) -> Forged {
        self.raw.push((at, bytes.to_vec()));
        self
    }

    pub fn with_wrong_tag(self) -> Forged {
        Forged { header_tag: 1, ..self }
    }

    pub fn bytes(&self, segment: &Segment) -> Vec<u8> {
        let mut header = self.header;
        header.body_length = self.plaintext.len() as u32;
        let mut body = self.plaintext.clone();
        let context = header.body_context(&segment.header.store_id, segment.number);
        header.body_tag = seal_forged(&segment.keys.body, u64::from(header.index), &context, &mut body);
        header.body_tag[3] ^= self.body_tag;
        header.body_crc = crc32(&body);
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[..FRAME_TAGGED_BYTES].copy_from_slice(&header.tagged_bytes());
        for (at, raw) in &self.raw {
            bytes[*at..at + raw.len()].copy_from_slice(raw);
        }
        let mut tag = segment.keys.header.tag(&bytes[..FRAME_TAGGED_BYTES]);
        tag[5] ^= self.header_tag;
        bytes[FRAME_TAGGED_BYTES..FRAME_TAGGED_BYTES + 16].copy_from_slice(&tag);
        let crc = crc32(&bytes[..FRAME_HEADER_BYTES - 4]);
        bytes[FRAME_HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        [bytes.as_slice(), &body].concat()
    }

    /// A fork of the image with this frame behind the newest one.
    pub fn behind_all(&self, image: &Image) -> SimDisk {
        let last = image.newest();
        let disk = image.disk.fork();
        let bytes = self.bytes(&open_segment(&disk, last.segment));
        disk.overwrite(&segment(last.segment), last.end(), &bytes);
        disk
    }
}

/// Row 7: refused at its place, and its records are not shown.
#[track_caller]
fn forged(image: &Image, frame: &Forged, what: &str) {
    let last = image.newest();
    let disk = frame.behind_all(image);
    refused_at(&disk, last.segment, last.end(), 7);
    let (found, seen) = look(&disk);
    assert_eq!(rows(&found.problems), [(last.segment, last.end(), 7)], "{what}");
    assert_eq!((found.tail, seen.records), (None, image.records.clone()), "{what}");
}

/// The control: what is forged here without a fault is taken, so that the tests below fail for their own reason.
#[test]
fn a_frame_with_the_right_keys_and_places_is_taken() {
    for end in [End::Killed, End::Idle] {
        let image = Image::new(end);
        let disk = Forged::behind(&image, &image.newest()).behind_all(&image);
        let opened = start(&disk);
        assert_eq!(opened.records.len(), image.records.len() + 1);
        assert_eq!(opened.records.last().unwrap().body, b"forged");
    }
}

/// JF-7, JF-8, JF-10: a tag that is wrong behind a right checksum; an index, sequence or chain value of another place.
#[test]
fn whole_frames_that_do_not_belong_here_are_damage() {
    for end in [End::Killed, End::Idle] {
        let image = Image::new(end);
        let right = || Forged::behind(&image, &image.newest());
        forged(&image, &right().with_wrong_tag(), "header tag");
        forged(&image, &Forged { body_tag: 1, ..right() }, "body tag");
        forged(&image, &right().with(|h| h.index += 1), "index ahead");
        forged(&image, &right().with(|h| h.index -= 1), "index behind");
        forged(&image, &right().with(|h| h.synced_through -= 1), "synced-through behind");
        forged(&image, &right().with(|h| h.synced_through += 1), "synced-through ahead");
        let shift = |by: i64| {
            right().with(|h| {
                h.first_sequence = h.first_sequence.strict_add_signed(by);
                h.synced_through = h.synced_through.strict_add_signed(by);
            })
        };
        forged(&image, &right().with(|h| h.first_sequence += 1), "first sequence ahead of synced-through");
        forged(&image, &right().with(|h| h.first_sequence -= 1), "first sequence behind");
        forged(&image, &shift(1), "a sequence was left out (JF-13)");
        forged(&image, &shift(-1), "a sequence again (JF-13)");
        forged(&image, &right().with(|h| h.previous_chain[0] ^= 1), "chain value");
        forged(&image, &right().with(|h| h.previous_chain = [0; 16]), "no chain value");
    }
}

/// JF-9: kinds and their places in a log segment; JF-11: limits; the bytes that must be zero.
#[test]
fn authentic_headers_against_the_rules_are_damage() {
    let image = Image::new(End::Killed);
    let right = || Forged::behind(&image, &image.newest());
    let link = EndRecord { segment: 2, frames: 3, end_offset: 9000, how: How::Sealed, ..EndRecord::NONE };
    let link = EndRecord { end_offset: 8192 + 32 * 60, ..link }.encode();
    let bare = |kind| move |h: &mut FrameHeader| (h.kind, h.record_count) = (kind, 0);
    forged(&image, &right().with(bare(FrameKind::Link)).holding(&link), "a link that is not frame 0");
    forged(&image, &right().with(bare(FrameKind::Sources)), "sources in a log segment");
    forged(&image, &right().with(|h| h.kind = FrameKind::Folded), "a folded group in a log segment");
    forged(&image, &right().with(|h| h.record_count = 0), "a group without a record");
    forged(&image, &right().raw(12, &[9]), "an unknown kind");
    forged(&image, &right().raw(13, &[1]), "flags");
    forged(&image, &right().raw(14, &[1]), "a byte that must be zero");
    for length in [0, 1, 63, 65, BODY_BYTES_MAX as u32 + 64, u32::MAX - 63, u32::MAX] {
        forged(&image, &right().raw(4, &length.to_le_bytes()), "body length");
    }
    for count in [65_537, u32::MAX] {
        forged(&image, &right().raw(24, &u32::to_le_bytes(count)), "record count");
    }
    let far = u64::MAX.to_le_bytes();
    forged(&image, &right().raw(16, &far).raw(32, &(u64::MAX - 1).to_le_bytes()), "no next sequence");
    forged(&image, &right().raw(16, &[0; 8]).raw(32, &far), "sequence 0");
}

/// JF-12: an authentic body that is no group, a seal that names another end.
#[test]
fn authentic_bodies_against_the_rules_are_damage() {
    let image = Image::new(End::Killed);
    let right = || Forged::behind(&image, &image.newest());
    let good = plaintext();
    forged(&image, &right().with(|h| h.record_count = 2), "fewer records than counted");
    let mut more = good.clone();
    *more.last_mut().unwrap() = 1;
    forged(&image, &right().holding(&more), "padding that is not zero");
    forged(&image, &right().holding(&[good.as_slice(), &[0; 64]].concat()), "too much padding");
    forged(&image, &right().holding(&[0xFF; 64]), "an endless varint");
    forged(&image, &right().holding(&[0; 64]), "a record of kind 0");
    let newest = image.newest();
    let here = EndRecord {
        segment: 3,
        frames: u64::from(newest.header.index) + 1,
        end_offset: newest.end(),
        last_sequence: newest.header.next_sequence() - 1,
        chain: right().header.previous_chain,
        how: How::Sealed,
    };
    let seal = |end: EndRecord| {
        right().with(|h| (h.kind, h.record_count) = (FrameKind::Seal, 0)).holding(&end.encode())
    };
    assert_eq!(start(&seal(here).behind_all(&image)).records, image.records, "the right seal is taken");
    forged(&image, &seal(EndRecord { segment: 2, ..here }), "a seal of another segment");
    forged(&image, &seal(EndRecord { frames: here.frames - 1, ..here }), "a seal of fewer frames");
    forged(&image, &seal(EndRecord { end_offset: here.end_offset - 32, ..here }), "a seal of another offset");
    forged(&image, &seal(EndRecord { last_sequence: here.last_sequence + 1, ..here }), "another sequence");
    forged(&image, &seal(EndRecord { chain: [5; 16], ..here }), "another chain value");
    forged(&image, &seal(EndRecord { how: How::CutAtRecovery, ..here }), "a seal that says it was cut");
}

/// JF-9, JR-2: a follower whose frame 0 is authentic and no link to its neighbour.
#[test]
fn a_link_to_anything_but_the_neighbour_is_damage() {
    let image = Image::new(End::Closed);
    let disk = super::tails::published_fourth(&image);
    let fourth = open_segment(&disk, 4);
    let seal = image.newest();
    let end = EndRecord {
        segment: 3,
        frames: u64::from(seal.header.index) + 1,
        end_offset: seal.end(),
        last_sequence: seal.header.next_sequence() - 1,
        chain: Forged::behind(&image, &seal).header.previous_chain,
        how: How::Sealed,
    };
    let link = |named: EndRecord| {
        let set = |h: &mut FrameHeader| (h.kind, h.record_count, h.index) = (FrameKind::Link, 0, 0);
        Forged::behind(&image, &seal).with(set).holding(&named.encode())
    };
    let put = |frame: &Forged| {
        let disk = disk.fork();
        disk.overwrite(&segment(4), 8192, &frame.bytes(&fourth));
        disk
    };
    assert_eq!(start(&put(&link(end))).records, image.records, "the right link is taken");
    refused_at(&put(&link(EndRecord { segment: 2, ..end })), 4, 8192, 7);
    refused_at(&put(&link(EndRecord { segment: 7, ..end })), 4, 8192, 7);
    refused_at(&put(&link(EndRecord { chain: [7; 16], ..end })), 4, 8192, 7);
    refused_at(&put(&link(EndRecord { last_sequence: end.last_sequence - 1, ..end })), 4, 8192, 7);
    refused_at(&put(&link(end).with(|h| h.index = 1)), 4, 8192, 7);
    refused_at(&put(&link(end).holding(&[0; 64])), 4, 8192, 7);
    let group = Forged::behind(&image, &seal).raw(8, &[0; 4]);
    refused_at(&put(&group), 4, 8192, 7);
    // A link that continues what it names, but names another end than segment 3 has: segment 3 does not end there.
    for wrong in [
        EndRecord { frames: end.frames - 1, ..end },
        EndRecord { end_offset: end.end_offset - 32, ..end },
        EndRecord { how: How::CutAtRecovery, ..end },
    ] {
        let disk = put(&link(wrong));
        let (found, _) = look(&disk);
        assert_eq!((found.problems[0].row, found.problems[0].place.segment), (3, 3));
        assert!(super::damage_image::verdict(&disk).is_err());
    }
}

/// Changes a body so that its CRC stays what it was: by a multiple of the polynomial.
pub(crate) fn forged_body(disk: &SimDisk, number: u64, offset: u64, length: u32) {
    let from = offset as usize + FRAME_HEADER_BYTES;
    let mut body = disk.bytes(&segment(number)).unwrap()[from..from + length as usize].to_vec();
    let crc = crc32(&body);
    // Bits of the message go lowest first, powers of the polynomial highest first.
    let polynomial = 0x1_04C1_1DB7_u64;
    for power in (0..=32).filter(|power| polynomial >> power & 1 == 1) {
        let bit = 40 * 8 + (32 - power);
        body[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(crc32(&body), crc);
    disk.overwrite(&segment(number), from as u64, &body);
}

/// Row 7 without any key: bytes that differ by a multiple of the CRC's polynomial have the same CRC, so only the body's
/// tag tells. Covered or not, ended or not, also under a running reader.
#[test]
fn a_body_with_the_right_crc_and_the_wrong_tag_is_damage() {
    for (end, number, row) in [(End::Killed, 3, 7), (End::Idle, 3, 7), (End::Closed, 2, 3)] {
        let image = Image::new(end);
        let at = *image.frames_of(number).iter().rfind(|at| at.header.record_count > 0).unwrap();
        let opened = start(&image.disk);
        forged_body(&image.disk, number, at.offset, at.header.body_length);
        let error = opened.journal.read_from(at.header.first_sequence).find_map(Result::err).unwrap();
        let crate::JournalError::Corrupt { place, what, .. } = error else { panic!("{error:?}") };
        assert_eq!((place.offset, what), (at.offset, "a frame body does not authenticate"));
        drop(opened);
        refused_at(&image.disk, number, at.offset, row);
        assert_eq!(look(&image.disk).1.records, image.records_without(&at));
    }
}
