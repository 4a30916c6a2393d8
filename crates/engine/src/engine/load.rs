//! How much is under way and how much waits. Only looks; must never change a gate.

use sealog_execution::lease::GateCounts;

use super::Engine;

/// The engine's gates at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Executions that are not terminal.
    pub admission: GateCounts,
    /// Attempts of each provider that was asked at least once, by its id, in the order of ids.
    pub providers: Vec<(String, GateCounts)>,
}

impl Engine {
    /// The load now.
    pub fn load(&self) -> Load {
        let mut providers: Vec<(String, GateCounts)> = {
            let state = self.inner.state();
            state.provider_gates.iter().map(|(id, gate)| (id.clone(), gate.counts())).collect()
        };
        providers.sort_by(|one, other| one.0.cmp(&other.0));
        Load { admission: self.inner.admission.counts(), providers }
    }
}
