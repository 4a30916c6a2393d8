//! The materialized result: the record beside a terminal event that says what the fold came to.
//!
//! Owns what is stored by value and what by hash. Must never be the only copy of anything: the events are the truth,
//! this is what they are checked against.

use sha2::{Digest, Sha256};

use crate::materialize::RESULT_RULE_VERSION;
use crate::{Snapshot, Status};

/// Length, hash and where it fits the text of a finished execution's `result`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaterializedResult {
    /// [`RESULT_RULE_VERSION`] of the fold that made it.
    pub rule_version: u16,
    /// The execution's terminal status.
    pub status: Status,
    /// Bytes of the result's JSON text; 0 if the execution has no result.
    pub bytes: u64,
    /// SHA-256 of the result's JSON text, of nothing if there is none.
    pub sha256: [u8; 32],
    /// The text itself, if there is one and it was stored by value.
    pub text: Option<String>,
}

impl MaterializedResult {
    /// The record for this snapshot; the text is stored by value if it has at most `text_bytes_max` bytes and at most
    /// [`crate::limits::RESULT_BYTES_MAX`]. `None` while the execution is not terminal.
    #[must_use]
    pub fn of(snapshot: &Snapshot, text_bytes_max: usize) -> Option<Self> {
        if !snapshot.status.is_terminal() {
            return None;
        }
        let bytes_max = text_bytes_max.min(crate::limits::RESULT_BYTES_MAX);
        let text = snapshot.result.as_ref().map_or("", |result| result.as_str());
        Some(Self {
            rule_version: RESULT_RULE_VERSION,
            status: snapshot.status,
            bytes: text.len() as u64,
            sha256: Sha256::digest(text.as_bytes()).into(),
            text: (!text.is_empty() && text.len() <= bytes_max).then(|| text.to_owned()),
        })
    }

    /// Whether this record is what the fold of the same events gives today. `None` if it was made by another version
    /// of the rules, which this program cannot recompute.
    #[must_use]
    pub fn agrees_with(&self, snapshot: &Snapshot) -> Option<bool> {
        if self.rule_version != RESULT_RULE_VERSION {
            return None;
        }
        let text = snapshot.result.as_ref().map_or("", |result| result.as_str());
        let shape = snapshot.status.is_terminal()
            && (snapshot.status, text.len() as u64) == (self.status, self.bytes);
        // A text that was read has been held against its hash, so the text itself tells as much.
        let same = || match &self.text {
            Some(own) => own == text,
            None => <[u8; 32]>::from(Sha256::digest(text.as_bytes())) == self.sha256,
        };
        Some(shape && same())
    }

    /// Whether the parts of the record fit each other: terminal status, text with its length and hash.
    pub(crate) fn is_consistent(&self) -> bool {
        let text_fits = self.text.as_ref().is_none_or(|text| {
            !text.is_empty()
                && text.len() as u64 == self.bytes
                && <[u8; 32]>::from(Sha256::digest(text.as_bytes())) == self.sha256
        });
        let nothing_fits = self.bytes > 0 || self.sha256 == <[u8; 32]>::from(Sha256::digest(b""));
        self.status.is_terminal() && text_fits && nothing_fits
    }
}
