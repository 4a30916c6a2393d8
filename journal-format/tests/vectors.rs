//! Runs `spec/vectors/journal`: each file names what it is, what must come of it, and for good ones the values.
//! A file, key or word that is not understood fails the run. The form of the files: the README beside them.

#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its vectors; the disk seam is on a higher floor"
)]

use sealog_journal_format::compacted::{FoldedGroup, Sources};
use sealog_journal_format::manifest::{BackupFile, Manifest};
use sealog_journal_format::names::SegmentName;
use sealog_journal_format::summary::{SummaryReader, SummaryWriter};
use sealog_journal_format::{
    EndRecord, FormatError, FrameHeader, GroupEncoder, GroupReader, HeadSlot, HeadState, How, RecordRef,
    SegmentHeader, SegmentKind, StoreFile, SummaryHeader, Why,
};
use sha2::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A vector as its file spells it.
#[derive(Default)]
struct Vector {
    keys: BTreeMap<String, String>,
    records: Vec<String>,
    bytes: Vec<u8>,
}

/// What a decoder made of the bytes: every value it read, and the bytes that its encoder writes for them.
struct Decoded {
    fields: Vec<(&'static str, String)>,
    records: Vec<String>,
    again: Vec<u8>,
}

type Outcome = Result<Decoded, String>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../spec/vectors/journal")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a vector is text")
}

fn parse(text: &str) -> Vector {
    let (head, body) = text.split_once("\n\n").expect("a blank line before the bytes");
    let mut vector = Vector::default();
    for line in head.lines() {
        let (key, value) = line.split_once(": ").expect("`key: value`");
        if key == "record" {
            vector.records.push(value.to_owned());
        } else {
            let known = ["expect", "what", "comment", "records", "slot", "fields"];
            assert!(known.contains(&key), "the key {key} is not understood");
            assert!(vector.keys.insert(key.to_owned(), value.to_owned()).is_none(), "{key} stands twice");
        }
    }
    for word in body.split_ascii_whitespace() {
        let (byte, times) = word.split_once('*').unwrap_or((word, "1"));
        assert_eq!(byte.len(), 2);
        let byte = u8::from_str_radix(byte, 16).expect("two hex digits");
        let times: usize = times.parse().expect("a repetition");
        vector.bytes.resize(vector.bytes.len() + times, byte);
    }
    vector
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(bytes).into()
}

fn how(how: How) -> u8 {
    match how {
        How::None => 0,
        How::Sealed => 1,
        How::CutAtRecovery => 2,
    }
}

macro_rules! fields {
    ($value:ident: plain $($plain:ident)*; hex $($hex:ident)*) => {
        vec![
            $((stringify!($plain), $value.$plain.to_string()),)*
            $((stringify!($hex), hex(&$value.$hex)),)*
        ]
    };
}

fn segment_header(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let header = SegmentHeader::decode(bytes)?;
    let mut fields = fields!(header: plain number suite codec epoch created_ms range_last generation;
        hex store_id lineage predecessor_lineage key_id);
    let wrap = header.wrap;
    fields.extend(fields!(wrap: plain; hex salt sealed tag check));
    let kind = match header.kind {
        SegmentKind::Log => 1,
        SegmentKind::Compacted => 2,
    };
    fields.push(("kind", kind.to_string()));
    fields.push(("link_in", header.link_in.segment.to_string()));
    fields.push(("link_out", header.link_out.segment.to_string()));
    Ok(Decoded { fields, records: vec![], again: header.encode().to_vec() })
}

fn frame_header(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let header = FrameHeader::decode(bytes)?;
    let mut fields = fields!(header: plain body_length index first_sequence record_count synced_through body_crc;
        hex previous_chain body_tag header_tag);
    fields.push(("kind", header.kind.number().to_string()));
    Ok(Decoded { fields, records: vec![], again: header.encode().to_vec() })
}

fn end(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let end = EndRecord::decode(bytes)?;
    let mut fields = fields!(end: plain segment frames end_offset last_sequence; hex chain);
    fields.push(("how", how(end.how).to_string()));
    Ok(Decoded { fields, records: vec![], again: end.encode().to_vec() })
}

fn head_slot(bytes: &[u8], offset: u64) -> Result<Decoded, FormatError> {
    let (slot, mac) = HeadSlot::decode(bytes, offset)?;
    let mut fields =
        fields!(slot: plain counter epoch segment frames last_sequence; hex key_id store_id lineage chain);
    let state = match slot.state {
        HeadState::Open => 1,
        HeadState::Closed => 2,
    };
    fields.push(("state", state.to_string()));
    fields.push(("mac", hex(&mac)));
    let mut again = slot.encode(&mac).to_vec();
    again.resize(4096, 0);
    Ok(Decoded { fields, records: vec![], again })
}

fn store(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let store = StoreFile::decode(bytes, sha256)?;
    let fields = fields!(store: plain created_ms; hex store_id);
    Ok(Decoded { fields, records: vec![], again: store.encode(sha256).to_vec() })
}

fn manifest(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let (manifest, mac) = Manifest::decode(bytes)?;
    let names = manifest.files.iter().map(BackupFile::file_name).collect();
    let fields = vec![
        ("key_id", hex(&manifest.key_id)),
        ("taken_ms", manifest.taken_ms.to_string()),
        ("mac", hex(&mac)),
        ("keyring", manifest.keyring.len().to_string()),
        ("files", listed(names)),
    ];
    Ok(Decoded { fields, records: vec![], again: manifest.encode(|_| mac)? })
}

fn shown(record: &RecordRef<'_>) -> String {
    let stream = record.stream.map_or("-".to_owned(), |stream| hex(&stream));
    let body = if record.body.is_empty() { "-".to_owned() } else { hex(record.body) };
    format!(
        "kind={} class={} stream={stream} event={} time={} logical={} body={body}",
        record.kind,
        record.class.bits(),
        record.event_number,
        record.time_ms,
        record.logical_size
    )
}

fn group(bytes: &[u8], count: u32) -> Result<Decoded, FormatError> {
    let reader = GroupReader::new(bytes, count)?;
    let mut group = GroupEncoder::new(reader.base_time_ms());
    let mut records = Vec::new();
    for record in reader {
        let record = record?;
        records.push(shown(&record));
        group.push(&record)?;
    }
    Ok(Decoded { fields: vec![], records, again: group.finish() })
}

fn listed(parts: Vec<String>) -> String {
    if parts.is_empty() { "-".to_owned() } else { parts.join(",") }
}

fn sources(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let sources = Sources::decode(bytes)?;
    let numbers = sources.sources.iter().map(|source| source.end.segment.to_string()).collect();
    let runs = sources.dropped.iter().map(|run| format!("{}-{}", run.first, run.last)).collect();
    let fields = vec![("sources", listed(numbers)), ("runs", listed(runs))];
    Ok(Decoded { fields, records: vec![], again: sources.encode()? })
}

fn folded(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let streams = FoldedGroup::decode(bytes)?;
    let each = streams.iter().map(|folded| {
        let range = format!("{}-{}", folded.smallest_sequence, folded.largest_sequence);
        format!("{}:{range}:{}", hex(&folded.stream), hex(folded.bytes))
    });
    let fields = vec![("streams", listed(each.collect()))];
    Ok(Decoded { fields, records: vec![], again: FoldedGroup::encode(&streams)? })
}

fn summary_header(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let header = SummaryHeader::decode(bytes)?;
    let mut fields = fields!(header: plain first last generation digest_version body_length;
        hex store_id salt check tag);
    fields.push(("end", header.end.segment.to_string()));
    Ok(Decoded { fields, records: vec![], again: header.encode().to_vec() })
}

fn summary_body(bytes: &[u8]) -> Result<Decoded, FormatError> {
    let body = SummaryReader::new(bytes)?;
    let mut again = SummaryWriter::new(body.first_sequence(), body.newest_time_ms());
    body.own.iter().for_each(|own| again.own(own));
    body.marks.iter().for_each(|mark| again.mark(*mark));
    let own = body.own.iter().map(|own| format!("{}:{}", own.sequence, own.kind)).collect();
    let marks = body.marks.iter().map(|mark| format!("{}:{}", mark.sequence, mark.offset)).collect();
    let mut pieces = Vec::new();
    for piece in body.pieces() {
        let offsets: Vec<u64> = piece.offsets.iter().collect();
        again.piece(&piece, &offsets);
        let offsets = listed(offsets.iter().map(u64::to_string).collect());
        let range = format!("{}-{}", piece.first_sequence, piece.last_sequence);
        let (stream, digest) = (hex(&piece.stream), hex(piece.digest));
        pieces.push(format!("{}:{stream}:{range}:{offsets}:{digest}", piece.behind));
    }
    let fields = vec![("own", listed(own)), ("marks", listed(marks)), ("pieces", listed(pieces))];
    Ok(Decoded { fields, records: vec![], again: again.finish()? })
}

/// A name is one or it is not: its only class of failure is `name`.
fn name(bytes: &[u8]) -> Outcome {
    let text = std::str::from_utf8(bytes).map_err(|_| "name".to_owned())?;
    let name = SegmentName::parse(text).ok_or("name")?;
    let generation = match name {
        SegmentName::Log { .. } => 0,
        SegmentName::Compacted { generation, .. } => generation,
    };
    let numbers = [("first", name.first()), ("last", name.last()), ("generation", generation)];
    let fields = numbers.map(|(key, number)| (key, number.to_string())).to_vec();
    Ok(Decoded { fields, records: vec![], again: name.file_name().into_bytes() })
}

fn decode(vector: &Vector) -> Outcome {
    let number = |key: &str| {
        let text = vector.keys.get(key).unwrap_or_else(|| panic!("{key} is missing"));
        text.parse::<u64>().unwrap_or_else(|_| panic!("{key} is no number"))
    };
    let bytes = &vector.bytes;
    let decoded = match vector.keys["what"].as_str() {
        "segment-header" => segment_header(bytes),
        "frame-header" => frame_header(bytes),
        "group" => group(bytes, u32::try_from(number("records")).expect("a count")),
        "end" => end(bytes),
        "head-slot" => head_slot(bytes, number("slot")),
        "store" => store(bytes),
        "manifest" => manifest(bytes),
        "sources" => sources(bytes),
        "folded" => folded(bytes),
        "summary-header" => summary_header(bytes),
        "summary-body" => summary_body(bytes),
        "name" => return name(bytes),
        other => panic!("what: {other} is not understood"),
    };
    decoded.map_err(|error| error.why.name().to_owned())
}

#[track_caller]
fn check(vector: &Vector) {
    let expected = vector.keys["expect"].as_str();
    match decode(vector) {
        Err(class) => assert_eq!(class, expected),
        Ok(decoded) => {
            assert_eq!(expected, "ok", "it was accepted");
            assert!(decoded.again == vector.bytes, "its encoder writes other bytes");
            assert_eq!(decoded.records, vector.records);
            let values: BTreeMap<_, _> = decoded.fields.into_iter().collect();
            for field in vector.keys.get("fields").map_or("", String::as_str).split_ascii_whitespace() {
                let (key, value) = field.split_once('=').expect("`field=value`");
                assert_eq!(values.get(key).map(String::as_str), Some(value), "{key}");
            }
        }
    }
}

/// Every class there is, as vectors spell them.
fn classes() -> BTreeSet<&'static str> {
    let all = [
        Why::Short,
        Why::Trailing,
        Why::Magic,
        Why::Crc,
        Why::Digest,
        Why::NewerVersion(2),
        Why::Unsupported(2),
        Why::NotZero,
        Why::OutOfRange,
        Why::NotMinimal,
        Why::TooLong,
        Why::Mismatch,
    ];
    all.into_iter().map(Why::name).chain(["ok", "name"]).collect()
}

#[test]
fn vectors() {
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut failed = Vec::new();
    for entry in std::fs::read_dir(folder()).expect("the folder of vectors") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned();
        if ["README.md", "make.py"].contains(&name.as_str()) {
            continue;
        }
        let stem = name.strip_suffix(".txt").unwrap_or_else(|| panic!("{name} is no vector"));
        let text = read(&path);
        let run = std::panic::catch_unwind(|| {
            let vector = parse(&text);
            let (what, expect) = (vector.keys["what"].clone(), vector.keys["expect"].clone());
            assert!(classes().contains(expect.as_str()), "expect: {expect} is not understood");
            assert!(stem.starts_with(&what), "the name begins with what it is");
            assert!(vector.keys["comment"].starts_with(['J', 's']), "the comment begins with a clause");
            check(&vector);
            (what, expect)
        });
        match run {
            Ok(kind) => *seen.entry(kind).or_default() += 1,
            Err(_) => failed.push(name),
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
    // Nothing may quietly stop being run.
    assert!(seen.values().sum::<usize>() >= 120);
    let expected: BTreeSet<_> = seen.keys().map(|(_, expect)| expect.as_str()).collect();
    assert_eq!(expected, classes());
    let good: BTreeSet<_> = seen.keys().filter(|(_, expect)| expect == "ok").map(|(what, _)| what).collect();
    assert_eq!(good.len(), 12, "each kind of vector has a good one: {good:?}");
}
