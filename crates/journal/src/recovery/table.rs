//! The decision table of `spec/journal.md` section 8 as data. Every verdict about a journal is read off here; no
//! other module decides what is torn and what is damaged.

/// Where the segment stands in the chain of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A successor with a valid link names its end.
    NotLast,
    /// The newest segment with a valid link, or one behind it without any valid frame.
    Last { sealed: bool },
}

/// What stands at the first place where the valid prefix stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A header copy that does not read back.
    HeaderCopy,
    /// Exactly the end that the successor's link (or the compacted segment's own seal) names, then zeros or nothing.
    NamedEnd,
    /// The end of the file, or zeros up to it, at a place nobody names as the end.
    Nothing,
    /// Whole bytes that do not belong here: header CRC right and tag wrong, body CRC right and tag wrong, or an
    /// authentic header with a wrong index, sequence, count or chain value.
    Foreign,
    /// Any other bytes.
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Sound,
    EndOfData,
    TornTail,
    Corruption,
}

/// One row: `None` in a column means that the column does not matter.
struct Row {
    number: u8,
    last: Option<bool>,
    sealed: Option<bool>,
    found: &'static [Found],
    covered: Option<bool>,
    verdict: Verdict,
    what: &'static str,
}

use Found::{Bad, Foreign, HeaderCopy, NamedEnd, Nothing};

const ROWS: [Row; 10] = [
    Row {
        number: 1,
        last: None,
        sealed: None,
        found: &[HeaderCopy],
        covered: None,
        verdict: Verdict::Corruption,
        what: "a copy of the segment header does not read back",
    },
    Row {
        number: 2,
        last: Some(false),
        sealed: None,
        found: &[NamedEnd],
        covered: None,
        verdict: Verdict::Sound,
        what: "sound",
    },
    Row {
        number: 3,
        last: Some(false),
        sealed: None,
        found: &[Nothing, Foreign, Bad],
        covered: None,
        verdict: Verdict::Corruption,
        what: "an ended segment does not end where its successor says",
    },
    Row {
        number: 4,
        last: Some(true),
        sealed: None,
        found: &[Nothing],
        covered: Some(false),
        verdict: Verdict::EndOfData,
        what: "end of data",
    },
    Row {
        number: 5,
        last: Some(true),
        sealed: None,
        found: &[Nothing],
        covered: Some(true),
        verdict: Verdict::Corruption,
        what: "acknowledged frames are missing (a copy taken with plain file tools while the node ran looks like this)",
    },
    Row {
        number: 6,
        last: Some(true),
        sealed: Some(true),
        found: &[Foreign, Bad],
        covered: None,
        verdict: Verdict::TornTail,
        what: "bytes behind the seal",
    },
    Row {
        number: 7,
        last: Some(true),
        sealed: Some(false),
        found: &[Foreign],
        covered: None,
        verdict: Verdict::Corruption,
        what: "a frame that was forged or belongs elsewhere",
    },
    Row {
        number: 8,
        last: Some(true),
        sealed: Some(false),
        found: &[Bad],
        covered: Some(true),
        verdict: Verdict::Corruption,
        what: "an acknowledged frame does not read back",
    },
    Row {
        number: 9,
        last: Some(true),
        sealed: Some(false),
        found: &[Bad],
        covered: Some(false),
        verdict: Verdict::TornTail,
        what: "a write that never finished",
    },
    // The writer never names its own end, so nothing names the end of a last segment. If a reader asks all the
    // same, the answer is the strictest one.
    Row {
        number: 3,
        last: Some(true),
        sealed: None,
        found: &[NamedEnd],
        covered: None,
        verdict: Verdict::Corruption,
        what: "a last segment whose end is named by another",
    },
];

/// The row that applies: its number in the spec, the verdict, and words for an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub row: u8,
    pub verdict: Verdict,
    pub what: &'static str,
}

/// Exactly one row applies to every combination (a test walks all of them).
pub fn decide(position: Position, found: Found, covered: bool) -> Decision {
    let mut rows = matching(position, found, covered);
    let row = rows.next().expect("the table is total: every combination is walked by a test");
    Decision { row: row.number, verdict: row.verdict, what: row.what }
}

fn matching(position: Position, found: Found, covered: bool) -> impl Iterator<Item = &'static Row> {
    let (last, sealed) = match position {
        Position::NotLast => (false, false),
        Position::Last { sealed } => (true, sealed),
    };
    ROWS.iter().filter(move |row| {
        row.last.is_none_or(|want| want == last)
            && row.sealed.is_none_or(|want| want == sealed)
            && row.covered.is_none_or(|want| want == covered)
            && row.found.contains(&found)
    })
}

/// Row 10: what the two slots of the head say about the head itself.
pub fn decide_head(file_present: bool, good_slots: u8) -> Decision {
    match (file_present, good_slots) {
        (false, _) => Decision { row: 10, verdict: Verdict::Corruption, what: "the head file is missing" },
        (true, 0) => Decision { row: 10, verdict: Verdict::Corruption, what: "no slot of the head opens" },
        (true, _) => Decision { row: 10, verdict: Verdict::Sound, what: "sound" },
    }
}

/// Row 11: a segment that the head, a link or the numbering names must be there.
pub fn decide_presence(present: bool) -> Decision {
    match present {
        true => Decision { row: 11, verdict: Verdict::Sound, what: "sound" },
        false => Decision { row: 11, verdict: Verdict::Corruption, what: "a segment is missing: data loss" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITIONS: [Position; 3] =
        [Position::NotLast, Position::Last { sealed: false }, Position::Last { sealed: true }];
    const FOUND: [Found; 5] = [HeaderCopy, NamedEnd, Nothing, Foreign, Bad];

    /// JR-3: one row for every combination, never two.
    #[test]
    fn every_combination_has_exactly_one_row() {
        for position in POSITIONS {
            for found in FOUND {
                for covered in [false, true] {
                    let rows = matching(position, found, covered).count();
                    assert_eq!(rows, 1, "{position:?} {found:?} covered={covered}");
                }
            }
        }
    }

    /// JR-3, JR-6: what evidence covers is never cut, and only a last segment has a tail.
    #[test]
    fn a_tail_is_cut_only_where_nothing_covers_it_or_behind_a_seal() {
        for position in POSITIONS {
            for found in FOUND {
                for covered in [false, true] {
                    let decision = decide(position, found, covered);
                    if decision.verdict == Verdict::TornTail {
                        assert_ne!(position, Position::NotLast);
                        assert!(!covered || position == Position::Last { sealed: true });
                    }
                }
            }
        }
    }
}
