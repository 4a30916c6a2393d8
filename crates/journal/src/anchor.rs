//! Anchors: a place of a journal kept elsewhere, which tells a journal that was set back, or that went another way, from
//! one that went on (JB-10). It judges history only; what is damaged is the scan's verdict.

use std::any::Any;
use std::fmt;

use crate::audit::Audit;
use crate::backup::{Ends, writer_of};
use crate::recovery::findings::{FrameView, Parts, Sink};
use sealog_journal_format::compacted::Sources;
use sealog_journal_format::end::EndRecord;

/// A place behind a frame, by what cannot be made up: the chain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub store_id: [u8; 16],
    pub lineage: [u8; 16],
    pub epoch: u64,
    /// The last sequence there.
    pub sequence: u64,
    pub chain: [u8; 16],
}

/// How a journal stands to an anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The journal ends exactly there.
    Matches,
    /// The journal went on from there.
    Contained,
    /// The journal ends before it: it was set back, or is an older copy.
    Behind,
    /// The journal went another way.
    Diverged,
    /// The anchor is of another journal.
    OtherJournal,
}

const WORD: &str = "sealog-anchor-1";

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |f: &mut fmt::Formatter<'_>, bytes: &[u8; 16]| -> fmt::Result {
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        f.write_str(WORD)?;
        f.write_str(" store ")?;
        hex(f, &self.store_id)?;
        f.write_str(" lineage ")?;
        hex(f, &self.lineage)?;
        write!(f, " epoch {} sequence {} chain ", self.epoch, self.sequence)?;
        hex(f, &self.chain)
    }
}

impl Anchor {
    /// The text that `Display` makes, with any white space around its words; `None` for anything else.
    pub fn parse(text: &str) -> Option<Anchor> {
        let words: Vec<&str> = text.split_ascii_whitespace().take(12).collect();
        let [WORD, "store", store, "lineage", lineage, "epoch", epoch, "sequence", sequence, "chain", chain] =
            words.as_slice()
        else {
            return None;
        };
        Some(Anchor {
            store_id: sixteen(store)?,
            lineage: sixteen(lineage)?,
            epoch: number(epoch)?,
            sequence: number(sequence)?,
            chain: sixteen(chain)?,
        })
    }
}

/// 32 hexadecimal digits.
fn sixteen(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = [0; 16];
    for (byte, at) in out.iter_mut().zip((0..32).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(out)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The sink that finds where a journal stands.
#[derive(Clone, Debug)]
pub struct Anchoring {
    ends: Ends,
    sought: Option<Anchor>,
    found: bool,
}

impl Anchoring {
    /// Looks for an anchor, or only for the place where the journal ends.
    pub fn new(sought: Option<Anchor>) -> Anchoring {
        Anchoring { ends: Ends::default(), sought, found: false }
    }

    /// The anchor of the journal as it is now: where its newest segment that holds anything ends.
    pub fn here(&self, audit: &Audit) -> Anchor {
        let end = self.end();
        let (lineage, epoch) = writer_of(audit, &end);
        let EndRecord { last_sequence: sequence, chain, .. } = end;
        Anchor { store_id: audit.store_id, lineage, epoch, sequence, chain }
    }

    fn end(&self) -> EndRecord {
        self.ends.horizon().map_or(EndRecord::NONE, |reached| reached.end)
    }

    /// How the journal stands to the anchor that was sought; `None` if none was.
    pub fn standing(&self, audit: &Audit) -> Option<Standing> {
        let sought = self.sought?;
        let here = self.here(audit);
        if sought.store_id != here.store_id {
            return Some(Standing::OtherJournal);
        }
        let beginning = sought.sequence == 0 && sought.chain == [0; 16];
        Some(match (self.found || beginning, sought.chain == here.chain) {
            (true, true) => Standing::Matches,
            (true, false) => Standing::Contained,
            (false, _) if self.folded(&sought) => Standing::Contained,
            (false, _) => self.apart(audit, &sought, &here),
        })
    }

    /// The frames of a compacted segment are gone; its sources tell which writer's sequences it holds.
    fn folded(&self, sought: &Anchor) -> bool {
        let mut before = 0;
        self.ends.sources.iter().any(|(end, lineage)| {
            let first = std::mem::replace(&mut before, end.last_sequence);
            *lineage == sought.lineage && (first..=end.last_sequence).contains(&sought.sequence)
        })
    }

    /// The place is not here. It lies ahead if its writer is the one that wrote last here and came no further, be it no
    /// further than to a segment of its own without a group, or if it is a later writer; any other one went another way.
    fn apart(&self, audit: &Audit, sought: &Anchor, here: &Anchor) -> Standing {
        let folded = self.ends.sources.iter().any(|(_, lineage)| *lineage == sought.lineage);
        let known = folded || audit.segments.iter().any(|facts| facts.lineage == sought.lineage);
        let ahead = sought.sequence >= here.sequence;
        let newest = audit.segments.last().map_or(here.lineage, |facts| facts.lineage);
        let is_newest = [here.lineage, newest].contains(&sought.lineage);
        let later = if known { is_newest } else { sought.epoch > here.epoch };
        if ahead && later { Standing::Behind } else { Standing::Diverged }
    }
}

impl Sink for Anchoring {
    fn parts(&self) -> Option<Parts> {
        let sought = self.sought;
        Some(Parts::new(move || Anchoring::new(sought)))
    }

    fn absorb(&mut self, part: Box<dyn Any>) {
        if let Ok(part) = part.downcast::<Anchoring>() {
            self.ends.take(part.ends);
            self.found |= part.found;
        }
    }

    fn sources(&mut self, sources: &Sources) {
        self.ends.sources(sources);
    }

    fn frame(&mut self, frame: &FrameView) {
        self.ends.frame(frame);
        let (Some(sought), Some(reached)) = (&self.sought, self.ends.segments.last()) else { return };
        let EndRecord { last_sequence, chain, .. } = reached.end;
        self.found |=
            chain == sought.chain && last_sequence == sought.sequence && frame.epoch == sought.epoch;
    }
}
