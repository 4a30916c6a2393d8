//! An event as both stores stream and count it.

use sealog_events::limits::{self, Unproducible};
use sealog_events::{Event, ExecutionId, json};

use super::ledger::Weight;
use super::{StoreError, StoredEvent};

/// An event's text and what the ledger counts of it.
///
/// # Errors
/// The event cannot exist ([`limits::check`]).
pub(crate) fn render(id: ExecutionId, event: &Event) -> Result<(StoredEvent, Weight), StoreError> {
    limits::check(&event.body).map_err(refused)?;
    let terminal = event.body.is_terminal();
    let data = json::event_json(id, event);
    let weight = Weight { sequence: event.sequence, terminal, json_bytes: data.len() as u64 };
    Ok((StoredEvent { sequence: event.sequence, type_name: event.body.type_name(), terminal, data }, weight))
}

/// The store's word for an event that cannot exist.
pub(crate) fn refused(unproducible: Unproducible) -> StoreError {
    match unproducible {
        Unproducible::TerminalTooLong => StoreError::TerminalTooLarge,
        Unproducible::EventTooLong
        | Unproducible::FieldTooLong
        | Unproducible::FieldEmpty
        | Unproducible::TooManyItems
        | Unproducible::AttemptZero
        | Unproducible::CancelledCode => StoreError::Unstorable,
    }
}
