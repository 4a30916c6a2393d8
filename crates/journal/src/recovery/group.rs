//! An opened group, decoded once: its plaintext, and what stands in it. Whoever hands out its records need not know again
//! that they keep the rules.

use std::ops::Range;

use sealog_journal_format::record::{GroupReader, RecordRef};

use crate::record::Record;

/// A record of a group, its body by place.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    envelope: RecordRef<'static>,
    body: Range<usize>,
}

/// Takes the records of a group if all of it keeps the rules (JF-12); otherwise none.
pub(crate) fn decode(plaintext: &[u8], record_count: u32, entries: &mut Vec<Entry>) -> bool {
    let before = entries.len();
    let whole = GroupReader::new(plaintext, record_count).is_ok_and(|mut group| {
        while let Some(read) = group.next() {
            let Ok(record) = read else { return false };
            let end = group.read_bytes();
            let body = end - record.body.len()..end;
            entries.push(Entry { envelope: RecordRef { body: &[], ..record }, body });
        }
        true
    });
    if !whole {
        entries.truncate(before);
    }
    whole
}

/// Authentic, and every record checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    pub plaintext: &'a [u8],
    pub entries: &'a [Entry],
}

impl Group<'_> {
    /// A frame that holds no records, or whose body stays closed.
    pub const NONE: Group<'static> = Group { plaintext: &[], entries: &[] };

    /// Its records one after the other, in the same memory.
    pub fn each(&self, first_sequence: u64, epoch: u64, mut take: impl FnMut(&Record)) {
        let mut record = Record::blank();
        for (entry, sequence) in self.entries.iter().zip(first_sequence..) {
            let body = self.plaintext.get(entry.body.clone()).unwrap_or_default();
            record.take(&RecordRef { body, ..entry.envelope }, sequence, epoch);
            take(&record);
        }
    }

    pub fn to_owned(self) -> OwnedGroup {
        OwnedGroup { plaintext: self.plaintext.to_vec(), entries: self.entries.to_vec() }
    }
}

/// A group that outlives the walk over its segment.
#[derive(Debug)]
pub(crate) struct OwnedGroup {
    plaintext: Vec<u8>,
    entries: Vec<Entry>,
}

impl OwnedGroup {
    pub fn group(&self) -> Group<'_> {
        Group { plaintext: &self.plaintext, entries: &self.entries }
    }
}
