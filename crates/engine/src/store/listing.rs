//! Lists of executions: what is asked for, where a page goes on, what an entry says.
//!
//! Owns the text of a place in the list and of an entry. The youngest come first; a page ends at its number of entries,
//! at its size, or after a bounded number of executions was looked at or bytes were read, whichever comes first.

use std::fmt;

use sealog_events::json::{snapshot_json, string_json};
use sealog_events::{ExecutionId, Snapshot, Status, Timestamp};

use super::{Brief, EventStore, ListPosition, StoreError};

/// Most entries of a page.
pub const ENTRIES_MAX: usize = 100;
/// A page is not begun anew for an entry that makes it longer than this. One entry is never longer than what clients
/// take of an answer.
const PAGE_BYTES: usize = 1 << 20;
/// No further execution is read once results of so many bytes were put together for a page, to be left out of it again:
/// whoever lists large executions must not keep the node from everything else.
const READ_BYTES: usize = 8 << 20;
/// Most executions that a store looks at for one page.
pub(crate) const LOOKED_AT_MAX: usize = 1000;

/// Which executions are meant; what is absent constrains nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub status: Option<Status>,
    pub ability: Option<String>,
}

impl Filter {
    pub(crate) fn takes_status(&self, status: Status) -> bool {
        self.status.is_none_or(|wanted| wanted == status)
    }

    /// An execution that is kept without its ability is not known to have any.
    pub(crate) fn takes_ability(&self, ability: Option<&str>) -> bool {
        self.ability.as_deref().is_none_or(|wanted| ability == Some(wanted))
    }
}

/// An execution that a filter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub brief: Brief,
    /// Absent for one that was created before abilities were kept.
    pub ability: Option<String>,
}

impl Listed {
    fn place(&self) -> ListPosition {
        ListPosition { created_at: self.brief.created_at, id: self.brief.id }
    }
}

/// What a store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub listed: Vec<Listed>,
    /// The last one that was looked at, where there may be more behind it.
    pub next: Option<ListPosition>,
}

/// A page as it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// JSON objects: a snapshot without result and artifacts, and the ability where it is known.
    pub entries: Vec<String>,
    pub next: Option<ListPosition>,
}

impl Listing {
    /// `{"data":[..],"next":".."}`, `next` only where there is one.
    #[must_use]
    pub fn json(&self) -> String {
        let data = self.entries.join(",");
        match self.next {
            None => format!("{{\"data\":[{data}]}}"),
            Some(next) => format!("{{\"data\":[{data}],\"next\":\"{next}\"}}"),
        }
    }
}

/// A page of the executions that `filter` takes and that were created before `before`.
///
/// # Errors
/// The store failed.
pub async fn list(
    store: &dyn EventStore,
    filter: Filter,
    before: Option<ListPosition>,
    limit: usize,
) -> Result<Listing, StoreError> {
    let page = store.page(filter, before, limit.min(ENTRIES_MAX)).await?;
    let ids = page.listed.iter().map(|listed| listed.brief.id).collect();
    let outlines = store.outlines(ids, PAGE_BYTES).await?;
    // What did not fit is for the next page.
    let next = match page.listed.get(outlines.len()) {
        None => page.next,
        Some(_) => page.listed.get(..outlines.len()).and_then(<[Listed]>::last).map(Listed::place),
    };
    let mut entries = Vec::new();
    for (Listed { ability, .. }, outline) in page.listed.iter().zip(outlines) {
        // Between the two calls it may have been let go.
        let Some(mut entry) = outline else { continue };
        if let Some(ability) = ability {
            entry.truncate(entry.len() - 1);
            entry += &format!(",\"ability\":{}}}", string_json(ability));
        }
        entries.push(entry);
    }
    Ok(Listing { entries, next })
}

/// A snapshot without result and artifacts.
#[must_use]
pub fn outline(mut snapshot: Snapshot) -> String {
    snapshot.result = None;
    snapshot.artifacts = None;
    snapshot_json(&snapshot)
}

/// Outlines as they are collected.
#[derive(Debug)]
pub(crate) struct Outlines {
    pub texts: Vec<Option<String>>,
    /// Room for the next ones.
    bytes: usize,
    /// Bytes of results that were read for them.
    read: usize,
}

impl Outlines {
    pub fn new(bytes_max: usize) -> Outlines {
        Outlines { texts: Vec::new(), bytes: bytes_max, read: 0 }
    }

    /// Takes the next one if it fits; `false`: none behind it is wanted.
    pub fn take(&mut self, snapshot: Option<Snapshot>) -> bool {
        let result = snapshot.as_ref().and_then(|snapshot| snapshot.result.as_ref());
        self.read += result.map_or(0, |result| result.as_str().len());
        let text = snapshot.map(outline);
        let length = text.as_ref().map_or(0, String::len);
        let is_first = self.texts.iter().all(Option::is_none);
        if length > self.bytes && !is_first {
            return false;
        }
        self.bytes = self.bytes.saturating_sub(length);
        self.texts.push(text);
        self.read < READ_BYTES
    }
}

impl fmt::Display for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.created_at.0, self.id)
    }
}

impl ListPosition {
    /// Longest decimal number of milliseconds.
    const DIGITS_MAX: usize = 15;

    /// The place that [`ListPosition`] prints; it need not be that of an execution that is there.
    #[must_use]
    pub fn parse(text: &str) -> Option<ListPosition> {
        let (time, id) = text.split_once('-')?;
        let digits =
            (1..=Self::DIGITS_MAX).contains(&time.len()) && time.bytes().all(|byte| byte.is_ascii_digit());
        let created_at = Timestamp(time.parse().ok().filter(|_| digits)?);
        Some(ListPosition { created_at, id: ExecutionId::parse(id)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_and_nothing_else_does() {
        let place =
            ListPosition { created_at: Timestamp(1_767_225_600_000), id: ExecutionId::from_random([7; 16]) };
        let text = place.to_string();
        assert_eq!(ListPosition::parse(&text), Some(place));
        let id = place.id;
        for bad in [
            "",
            "-",
            "1",
            &id.to_string(),
            &format!("+1-{id}"),
            &format!("1-{id}0"),
            &format!("-{id}"),
            &format!("1111111111111111-{id}"),
            &format!("1 -{id}"),
        ] {
            assert_eq!(ListPosition::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_page_is_json_with_or_without_a_next_one() {
        let mut listing = Listing { entries: vec!["{}".to_owned(), "{\"a\":1}".to_owned()], next: None };
        assert_eq!(listing.json(), "{\"data\":[{},{\"a\":1}]}");
        listing.next =
            Some(ListPosition { created_at: Timestamp(5), id: ExecutionId::from_bytes([0x11; 16]) });
        assert!(listing.json().ends_with("],\"next\":\"5-11111111-1111-1111-1111-111111111111\"}"));
    }
}
