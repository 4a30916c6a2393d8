//! Several observers as one.

use sealog_engine::{Fact, Following, Observer};
use sealog_events::ExecutionId;
use std::sync::Arc;

/// Tells all of them.
#[derive(Debug)]
pub struct Observers(pub Vec<Arc<dyn Observer>>);

struct All(Vec<Box<dyn Following>>);

impl Observer for Observers {
    fn accepted(&self, id: ExecutionId, ability: &str) -> Box<dyn Following> {
        Box::new(All(self.0.iter().map(|observer| observer.accepted(id, ability)).collect()))
    }
}

impl Following for All {
    fn seen(&mut self, sequence: u64, fact: &Fact) {
        for one in &mut self.0 {
            one.seen(sequence, fact);
        }
    }
}
