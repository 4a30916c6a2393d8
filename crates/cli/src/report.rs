//! A scan's findings as JSON shapes and as sentences, the same for `inspect`, `verify` and `replay`.
//!
//! Owns the words about torn tails, damage and gaps. Holds places and counts only, never content.

pub mod keys;

use std::fmt::Write as _;
use std::path::Path;

use sealog_events::Timestamp;
use sealog_journal::{Audit, Gap, HeadFacts, KeyringCopy, Place, Problem, SegmentFacts, TornTail};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, shown, whereabouts, with_damage};
use crate::survey::Finding;

/// Said wherever a torn tail is reported.
pub const TAIL_WORDS: &str = "it cannot be told apart from damage to what was written within the last 250 ms";

/// What a scan came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Sound,
    TornTail,
    Damaged,
}

impl Verdict {
    /// Of the journal's own judgement, and of what was found in its records.
    pub fn of(audit: &Audit, findings: &[Finding]) -> Verdict {
        match (audit.is_sound() && findings.is_empty(), &audit.tail) {
            (false, _) => Verdict::Damaged,
            (true, Some(_)) => Verdict::TornTail,
            (true, None) => Verdict::Sound,
        }
    }
}

#[derive(Serialize)]
pub struct TailBody {
    segment: u64,
    offset: u64,
    bytes: u64,
    sectors: u64,
    zero_sectors: u64,
    note: &'static str,
}

impl TailBody {
    pub fn new(tail: &TornTail) -> TailBody {
        let TornTail { place, bytes, zero_sectors, sectors } = tail;
        let Place { segment, offset, .. } = *place;
        TailBody {
            segment,
            offset,
            bytes: *bytes,
            sectors: *sectors,
            zero_sectors: *zero_sectors,
            note: TAIL_WORDS,
        }
    }

    pub fn line(&self) -> String {
        let TailBody { segment, offset, bytes, sectors, zero_sectors, note } = self;
        format!(
            "torn tail: segment {segment}, offset {offset}, {bytes} bytes, {zero_sectors} of {sectors} sectors \
             still zero; {note}"
        )
    }
}

#[derive(Serialize)]
pub struct ProblemBody {
    segment: u64,
    offset: u64,
    sequence: u64,
    /// Of the recovery table; absent for what was found in the records themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u8>,
    what: &'static str,
}

impl ProblemBody {
    pub fn line(&self) -> String {
        let ProblemBody { segment, offset, sequence, row, what } = self;
        let place = Place { segment: *segment, frame: 0, offset: *offset, sequence: *sequence };
        match row {
            Some(row) => format!("{}: {what}", whereabouts(&place, *row)),
            None => format!("segment {segment}, frame at offset {offset}, sequence {sequence}: {what}"),
        }
    }
}

/// Problems of the files first, then findings in the records.
pub fn problem_bodies(problems: &[Problem], findings: &[Finding]) -> Vec<ProblemBody> {
    let of_files = problems.iter().map(|problem| ProblemBody {
        segment: problem.place.segment,
        offset: problem.place.offset,
        sequence: problem.place.sequence,
        row: Some(problem.row),
        what: problem.what,
    });
    let of_records = findings.iter().map(|finding| ProblemBody {
        segment: finding.segment,
        offset: finding.offset,
        sequence: finding.sequence,
        row: None,
        what: finding.what.words(),
    });
    of_files.chain(of_records).collect()
}

#[derive(Serialize)]
pub struct GapBody {
    kind: &'static str,
    segment: u64,
    offset: u64,
    first_sequence: u64,
    /// `null`: the end is not known.
    last_sequence: Option<u64>,
}

impl GapBody {
    pub fn line(&self) -> String {
        let GapBody { kind, segment, offset, first_sequence, last_sequence } = self;
        match last_sequence {
            Some(last) => {
                format!("{kind}: sequences {first_sequence} to {last} (segment {segment}, offset {offset})")
            }
            None if *first_sequence == 0 => format!("{kind}: all of segment {segment}"),
            None => format!("{kind}: sequence {first_sequence} and on (segment {segment}, offset {offset})"),
        }
    }
}

pub fn gap_bodies(gaps: &[Gap]) -> Vec<GapBody> {
    let body = |gap: &Gap| GapBody {
        kind: "corrupt",
        segment: gap.segment,
        offset: gap.offset,
        first_sequence: gap.first_sequence,
        last_sequence: gap.last_sequence,
    };
    gaps.iter().map(body).collect()
}

#[derive(Serialize)]
pub struct SegmentBody {
    number: u64,
    file: String,
    length: u64,
    epoch: u64,
    lineage: String,
    key_id: String,
    created_at: String,
    frames: u64,
    records: u64,
    first_sequence: u64,
    last_sequence: u64,
    end_offset: u64,
    sealed: bool,
}

impl SegmentBody {
    pub fn new(facts: &SegmentFacts) -> SegmentBody {
        SegmentBody {
            number: facts.number,
            file: facts.file.clone(),
            length: facts.length,
            epoch: facts.epoch,
            lineage: hex(&facts.lineage),
            key_id: hex(&facts.key_id),
            created_at: Timestamp(facts.created_ms).to_string(),
            frames: facts.frames,
            records: facts.records,
            first_sequence: facts.first_sequence,
            last_sequence: facts.last_sequence,
            end_offset: facts.end_offset,
            sealed: facts.sealed,
        }
    }

    pub fn line(&self) -> String {
        let SegmentBody { number, epoch, frames, records, first_sequence, last_sequence, .. } = self;
        let SegmentBody { length, end_offset, sealed, .. } = self;
        let end = if *sealed { "sealed" } else { "not sealed" };
        format!(
            "segment {number}: epoch {epoch}, {}, {}, sequences {first_sequence} to {last_sequence}, {end_offset} of \
             {length} bytes, {end}\n",
            counted(*frames, "frame"),
            counted(*records, "record"),
        )
    }
}

/// One line a segment, or what they come to where those would be more than a screenful: then the newest ones follow.
pub fn segment_lines(segments: &[SegmentBody], all: bool) -> String {
    const SCREENFUL: usize = 20;
    const NEWEST: usize = 3;
    let lines = |segments: &[SegmentBody]| segments.iter().map(SegmentBody::line).collect::<String>();
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return String::new() };
    if all || segments.len() <= SCREENFUL {
        return lines(segments);
    }
    let sum = |of: fn(&SegmentBody) -> u64| segments.iter().map(of).sum::<u64>();
    let compacted = segments.iter().filter(|segment| segment.file.contains('-')).count();
    format!(
        "segments: {} files ({compacted} compacted), epochs {} to {}, {} frames, {} records, sequences {} to {}, {} bytes; \
         --segments lists them all, the newest are\n{}",
        segments.len(),
        first.epoch,
        last.epoch,
        sum(|segment| segment.frames),
        sum(|segment| segment.records),
        first.first_sequence,
        segments.iter().map(|segment| segment.last_sequence).max().unwrap_or(0),
        sum(|segment| segment.length),
        lines(&segments[segments.len() - NEWEST..]),
    )
}

#[derive(Serialize)]
pub struct HeadBody {
    good_slots: u8,
    counter: u64,
    epoch: u64,
    lineage: String,
    segment: u64,
    frames: u64,
    last_sequence: u64,
    chain: String,
    closed: bool,
}

impl HeadBody {
    pub fn new(head: &HeadFacts) -> HeadBody {
        HeadBody {
            good_slots: head.good_slots,
            counter: head.counter,
            epoch: head.epoch,
            lineage: hex(&head.lineage),
            segment: head.segment,
            frames: head.frames,
            last_sequence: head.last_sequence,
            chain: hex(&head.chain),
            closed: head.closed,
        }
    }

    pub fn line(&self) -> String {
        let HeadBody { epoch, segment, frames, last_sequence, closed, .. } = self;
        let state = if *closed { "closed in order" } else { "open" };
        format!(
            "head: {state}, epoch {epoch}, segment {segment}, {}, sequence {last_sequence}\n",
            counted(*frames, "frame")
        )
    }
}

#[derive(Serialize)]
pub struct KeyringBody {
    generation: u64,
    copies: [&'static str; 2],
    slots: Vec<SlotBody>,
}

#[derive(Serialize)]
struct SlotBody {
    name: String,
    kind: &'static str,
}

impl KeyringBody {
    pub fn new(audit: &Audit) -> KeyringBody {
        let slots = audit.slots.iter().map(|slot| SlotBody { name: slot.name.clone(), kind: slot.kind });
        KeyringBody {
            generation: audit.keyring_generation,
            copies: audit.keyring_copies.map(copy_word),
            slots: slots.collect(),
        }
    }

    pub fn line(&self) -> String {
        let slots: Vec<String> =
            self.slots.iter().map(|slot| format!("{} ({})", slot.name, slot.kind)).collect();
        let [first, second] = self.copies;
        let slots = slots.join(", ");
        format!("keyring: generation {}, copies {first} and {second}, slots: {slots}\n", self.generation)
    }
}

pub fn copy_word(copy: KeyringCopy) -> &'static str {
    match copy {
        KeyringCopy::Good => "good",
        KeyringCopy::Stale => "stale",
        KeyringCopy::Damaged => "damaged",
        KeyringCopy::Missing => "missing",
    }
}

/// `1 segment`, `2 segments`.
pub fn counted(count: u64, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What the operator should know of an otherwise sound journal.
pub fn remarks(audit: &Audit) -> Vec<String> {
    let mut remarks = Vec::new();
    for (number, copy) in audit.keyring_copies.iter().enumerate() {
        if *copy != KeyringCopy::Good {
            let word = copy_word(*copy);
            remarks
                .push(format!("keyring.{number} is {word}; the next start rewrites it from the other copy"));
        }
    }
    if let Some(head) = audit.head.as_ref().filter(|head| head.good_slots == 1 && head.counter > 1) {
        remarks.push(format!("one slot of head is unreadable; counter {} counts", head.counter));
    }
    if let Some(segment) = audit.empty_segment {
        remarks.push(format!("segment {segment} holds no frame yet; the next start removes it"));
    }
    if audit.live {
        remarks.push("a node is running: what is proven durable was read".to_owned());
    }
    remarks
}

/// The failure of a verb that found damage and printed what reads all the same.
pub fn damaged(audit: &Audit, findings: &[Finding], dir: &Path) -> Failure {
    let (what, place) = match (audit.problems.first(), findings.first()) {
        (Some(problem), _) => {
            let Problem { place, row, what } = problem;
            (format!("{what} ({})", whereabouts(place, *row)), Some(Box::new((*place, *row))))
        }
        (None, Some(finding)) => {
            let Finding { segment, offset, sequence, what, stream: _ } = finding;
            let what = what.words();
            (format!("{what} (segment {segment}, offset {offset}, sequence {sequence})"), None)
        }
        (None, None) => ("damaged".to_owned(), None),
    };
    let failure = Failure::new(Exit::Damaged, "damaged", what)
        .safe("no byte on disk was changed; everything that still reads can be exported")
        .next(with_damage(&shown(dir)));
    Failure { place, ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u64) -> SegmentBody {
        let compacted = number == 1;
        let file = if compacted { "segments/1-1.1.seg".to_owned() } else { format!("segments/{number}.seg") };
        SegmentBody::new(&SegmentFacts {
            number,
            last_number: number,
            generation: u64::from(compacted),
            file,
            length: 10_000,
            epoch: number + 6,
            lineage: [0; 16],
            key_id: [0; 16],
            created_ms: 0,
            frames: 2,
            records: 5,
            first_sequence: number * 5 - 4,
            last_sequence: number * 5,
            end_offset: 9000,
            sealed: true,
        })
    }

    #[test]
    fn more_than_a_screenful_of_segments_is_summed_up() {
        let lines = |count: u64, all| {
            let segments: Vec<SegmentBody> = (1..=count).map(segment).collect();
            let text = segment_lines(&segments, all);
            (text.lines().filter(|line| line.starts_with("segment ")).count(), text)
        };
        assert_eq!(lines(0, false), (0, String::new()));
        assert_eq!(lines(20, false).0, 20);
        assert_eq!(lines(300, true).0, 300);
        let (listed, text) = lines(300, false);
        assert_eq!((listed, text.lines().count()), (3, 4));
        let sum = "segments: 300 files (1 compacted), epochs 7 to 306, 600 frames, 1500 records, sequences 1 to 1500, 3000000 bytes; ";
        assert!(text.starts_with(sum), "{text}");
        assert!(text.contains("--segments lists them all") && text.contains("\nsegment 300: "), "{text}");
    }
}
