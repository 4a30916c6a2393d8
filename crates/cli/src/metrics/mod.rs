//! The node's metrics: one registry per node, written out when somebody asks.
//!
//! Owns every name and label. What the layers below count is read at that moment; only executions are counted here,
//! as the engine tells of them. A label is never anything that a caller chose.

mod executions;
mod journal;
mod page;
mod server;

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use sealog_engine::Engine;
use sealog_engine::store::journal::{JournalStore, Opened};
use sealog_events::Outcome;
use sealog_http::{Operation, ServerStats};
use sealog_journal::Health;

pub use executions::Executions;

/// What the start of a node found and did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovered {
    pub epoch: u64,
    pub records: u64,
    pub torn_tail_bytes: u64,
    /// Ended by this start, not known what became of them.
    pub outcome_unknown: u64,
    /// Ended by this start before anything was sent for them.
    pub not_dispatched: u64,
    pub expired: u64,
    /// Not read to the last byte by this start; the scrub does that.
    pub unchecked_bytes: u64,
}

impl Recovered {
    pub fn of(opened: &Opened) -> Recovered {
        let found = &opened.recovery;
        let not_dispatched =
            opened.interrupted.iter().filter(|one| one.outcome == Outcome::NotDispatched).count() as u64;
        Recovered {
            epoch: found.epoch,
            records: found.segments.iter().map(|segment| segment.records).sum(),
            torn_tail_bytes: found.tail.as_ref().map_or(0, |tail| tail.bytes),
            outcome_unknown: opened.interrupted.len() as u64 - not_dispatched,
            not_dispatched,
            expired: opened.clock.expired,
            unchecked_bytes: found.unchecked.iter().map(|segment| segment.bytes).sum(),
        }
    }
}

/// What `/readyz` and `/metrics` are answered from.
pub struct NodeOperation {
    registry: Registry,
    store: Arc<JournalStore>,
    read_only: bool,
}

impl NodeOperation {
    /// Over the parts of one node.
    pub fn new(
        engine: Engine,
        store: Arc<JournalStore>,
        recovered: Option<Recovered>,
        executions: &Executions,
        server: Arc<ServerStats>,
    ) -> NodeOperation {
        let mut registry = Registry::with_prefix("sealog");
        executions.register(&mut registry);
        registry.register_collector(Box::new(server::Serving { engine, server }));
        let read_only = recovered.is_none();
        if let Some(recovered) = recovered {
            let store = Arc::clone(&store);
            registry.register_collector(Box::new(journal::Storing { store, recovered }));
        }
        NodeOperation { registry, store, read_only }
    }
}

impl Operation for NodeOperation {
    fn unready(&self) -> Vec<&'static str> {
        if self.read_only {
            return vec!["read_only"];
        }
        let mut reasons = match self.store.health() {
            Health::Ready | Health::Closed => Vec::new(),
            Health::Full => vec!["full"],
            Health::Stalled => vec!["stalled"],
            Health::Poisoned { .. } if self.store.damage().is_some() => vec!["damaged"],
            Health::Poisoned { .. } => vec!["poisoned"],
        };
        if self.store.unended() > 0 {
            reasons.push("unended");
        }
        reasons
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl fmt::Debug for NodeOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeOperation").field("read_only", &self.read_only).finish_non_exhaustive()
    }
}
