//! Pages of the list: the books say what there is, the beginning of a stream says what it is found by.
//!
//! Labels are read when they are asked for and kept nowhere else: what a node keeps of many executions in memory must
//! not grow with the names that callers give.

use std::sync::Arc;

use sealog_events::{RecordKind, body};

use super::{Shared, read};
use crate::store::listing::{Filter, LOOKED_AT_MAX, Listed, Page};
use crate::store::{ListPosition, StoreError};

/// Most executions whose labels are read for one page: some milliseconds, where few or none are of the ability.
pub(super) const LABELS_READ_MAX: usize = 200;

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
        let mut labels_read = 0;
        for place in places {
            if page.listed.len() == limit || labels_read == LABELS_READ_MAX {
                return Ok(page);
            }
            page.next = Some(*place);
            let Some((brief, _pin)) = self.pinned(place.id)? else { continue };
            if !filter.takes_status(brief.status) {
                continue;
            }
            labels_read += 1;
            let labels =
                read::beside_creation(&self.journal, place.id, RecordKind::Labels, body::decode_labels)?;
            let ability = labels.map(|labels| labels.ability);
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
}
