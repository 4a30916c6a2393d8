//! Pages of the list: the books say what there is, the beginning of a stream says what it is found by.
//!
//! Labels are read when they are asked for and kept nowhere else: what a node keeps of many executions in memory must
//! not grow with the names that callers give.

use std::sync::Arc;

use sealog_events::{Labels, RecordKind, body};
use sealog_journal::Journal;

use super::error::failed;
use super::read::Pin;
use super::{Shared, records};
use crate::store::listing::{Filter, LOOKED_AT_MAX, Listed, Page};
use crate::store::{Brief, ListPosition, StoreError};

impl Shared {
    pub(super) async fn page(
        self: Arc<Self>,
        filter: Filter,
        before: Option<ListPosition>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let places = self.readable()?.ledger.places_before(before, LOOKED_AT_MAX);
        let shared = Arc::clone(&self);
        self.blocking(move || shared.take(&filter, &places, limit)).await?
    }

    fn take(
        self: &Arc<Self>,
        filter: &Filter,
        places: &[ListPosition],
        limit: usize,
    ) -> Result<Page, StoreError> {
        let mut page = Page::default();
        for place in places {
            if page.listed.len() == limit {
                return Ok(page);
            }
            page.next = Some(*place);
            let Some((brief, _pin)) = self.pinned(*place)? else { continue };
            if !filter.takes_status(brief.status) {
                continue;
            }
            let ability = labels(&self.journal, *place)?.map(|labels| labels.ability);
            if filter.takes_ability(ability.as_deref()) {
                page.listed.push(Listed { brief, ability });
            }
        }
        let more = self.readable()?.ledger.places_before(page.next, 1);
        if more.is_empty() {
            page.next = None;
        }
        Ok(page)
    }

    /// What may be seen of the execution, which must not be forgotten while it is read.
    fn pinned(self: &Arc<Self>, place: ListPosition) -> Result<Option<(Brief, Pin)>, StoreError> {
        let mut state = self.readable()?;
        let Some(brief) = self.visible(&state, place.id) else { return Ok(None) };
        state.ledger.pin(place.id);
        Ok(Some((brief, Pin { shared: Arc::clone(self), id: place.id })))
    }
}

/// They stand between the creation and the first event, so nothing behind that is looked at.
fn labels(journal: &Journal, place: ListPosition) -> Result<Option<Labels>, StoreError> {
    for record in journal.read_stream(records::stream(place.id), 1) {
        let record = record.map_err(|error| failed("a stream could not be read", &error))?;
        if record.kind == RecordKind::Labels.number() {
            return body::decode_labels(&record.body).map(Some).map_err(|error| {
                tracing::error!(%error, "an execution's labels could not be read");
                StoreError::Failed
            });
        }
        if record.event_number > 0 {
            break;
        }
    }
    Ok(None)
}
