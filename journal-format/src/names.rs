//! File names below the data directory (section 2): numbers are twelve or more decimal digits, zero padded. Parsing
//! takes exactly the names that are made here; any other file is not of the journal.

use std::fmt;

/// Digits of every number in a name, more only when it needs them.
const DIGITS_MIN: usize = 12;

pub const LOCK: &str = "LOCK";
pub const STORE: &str = "store";
pub const KEYRINGS: [&str; 2] = ["keyring.0", "keyring.1"];
pub const HEAD: &str = "head";
pub const SEGMENTS: &str = "segments";
pub const QUARANTINE: &str = "quarantine";
/// In `segments`: the prepared next segment.
pub const NEXT: &str = "next";
/// In `segments`: headroom for compaction.
pub const RESERVE: &str = "reserve";

/// Which segments a file holds. `Display` is the stem, without extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentName {
    /// `<number>`
    Log { number: u64 },
    /// `<first>-<last>.<generation>`
    Compacted { first: u64, last: u64, generation: u64 },
}

impl SegmentName {
    pub const fn first(&self) -> u64 {
        match *self {
            Self::Log { number } => number,
            Self::Compacted { first, .. } => first,
        }
    }

    pub const fn last(&self) -> u64 {
        match *self {
            Self::Log { number } => number,
            Self::Compacted { last, .. } => last,
        }
    }

    /// The segment file's name, in `segments`.
    pub fn file_name(&self) -> String {
        format!("{self}.seg")
    }

    /// The name of its derived summary, in `segments`.
    pub fn summary_name(&self) -> String {
        format!("{self}.idx")
    }

    /// A segment file's name; `None` for any other name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::parse_stem(name.strip_suffix(".seg")?)
    }

    /// A summary's name; `None` for any other name.
    pub fn parse_summary(name: &str) -> Option<Self> {
        Self::parse_stem(name.strip_suffix(".idx")?)
    }

    pub(crate) fn parse_stem(stem: &str) -> Option<Self> {
        let Some((first, rest)) = stem.split_once('-') else {
            return Some(Self::Log { number: positive(stem)? });
        };
        let (last, generation) = rest.split_once('.')?;
        let (first, last) = (positive(first)?, positive(last)?);
        let generation = positive(generation)?;
        (first <= last).then_some(Self::Compacted { first, last, generation })
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Log { number } => write!(f, "{number:0DIGITS_MIN$}"),
            Self::Compacted { first, last, generation } => {
                write!(f, "{first:0DIGITS_MIN$}-{last:0DIGITS_MIN$}.{generation:0DIGITS_MIN$}")
            }
        }
    }
}

/// A tail cut at a place, in `quarantine`. `Display` is the stem, without extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarantineName {
    pub segment: u64,
    pub frame: u64,
}

impl QuarantineName {
    /// The cut bytes.
    pub fn tail_name(&self) -> String {
        format!("{self}.tail")
    }

    /// The report of numbers beside them.
    pub fn report_name(&self) -> String {
        format!("{self}.txt")
    }

    /// The name of a tail or of its report; `None` for any other name.
    pub fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".tail").or_else(|| name.strip_suffix(".txt"))?;
        let (segment, frame) = stem.split_once('-')?;
        Some(Self { segment: positive(segment)?, frame: number(frame)? })
    }
}

impl fmt::Display for QuarantineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, frame } = *self;
        write!(f, "{segment:0DIGITS_MIN$}-{frame:0DIGITS_MIN$}")
    }
}

fn positive(digits: &str) -> Option<u64> {
    number(digits).filter(|&number| number > 0)
}

/// At least twelve digits; a thirteenth only in front of which no zero stands.
fn number(digits: &str) -> Option<u64> {
    let padded = digits.len() > DIGITS_MIN && digits.starts_with('0');
    if digits.len() < DIGITS_MIN || padded || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests;
