//! Evidence of attempts: handed to the journal without being waited for, shown once it is durable.
//!
//! It is submitted before the execution's next event is, so it is durable no later than that. What there is no room for
//! is not kept: a step without a record is a step that is not proven.

use std::sync::Arc;

use sealog_events::{AttemptEvidence, ExecutionId};
use sealog_journal::{Admission, Ticket, Unit};

use super::live::Live;
use super::{Shared, records};

/// Evidence on its way.
#[derive(Debug)]
pub(super) struct Pending {
    evidence: AttemptEvidence,
    ticket: Ticket,
}

impl Shared {
    pub(super) fn note(&self, id: ExecutionId, evidence: AttemptEvidence) {
        let time = {
            let state = self.lock();
            let record = state.records.get(&id).filter(|record| record.last_sequence > 0);
            if state.over.is_some() || record.is_none_or(|record| record.live.is_none()) {
                return;
            }
            // Not the clock's: evidence moves no time by which anything is kept.
            state.newest
        };
        let Ok(record) = records::evidence(id, &evidence, time) else { return };
        match self.journal.submit(Unit::one(record), Admission::Ordinary) {
            Ok(ticket) => {
                let mut state = self.lock();
                if let Some(live) = state.records.get_mut(&id).and_then(|record| record.live.as_mut()) {
                    live.pending.push(Pending { evidence, ticket });
                }
            }
            Err(_refused) => {
                tracing::debug!("evidence of an attempt was not kept: there is no room just now")
            }
        }
    }
}

impl Live {
    /// Takes over what is durable by now.
    pub(super) fn settle(&mut self) {
        let mut durable = Vec::new();
        self.pending.retain_mut(|pending| match pending.ticket.try_result() {
            None => true,
            Some(result) => {
                if result.is_ok() {
                    durable.push(pending.evidence.clone());
                }
                false
            }
        });
        if !durable.is_empty() {
            let fold = Arc::make_mut(&mut self.fold);
            durable.iter().for_each(|evidence| fold.push_evidence(evidence));
        }
    }
}
