//! What the server and the engine's gates show.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use sealog_engine::Engine;
use sealog_http::ServerStats;

use super::page::Page;

#[derive(Debug)]
pub(super) struct Serving {
    pub engine: Engine,
    pub server: Arc<ServerStats>,
}

impl Collector for Serving {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page(encoder);
        let counts = self.server.view();
        page.counter("http_connections", "Connections accepted", counts.connections)?;
        page.gauge("http_connections_open", "Connections open now", counts.connections_open)?;
        page.counter("http_streams", "Event streams begun", counts.streams)?;
        page.gauge("http_streams_open", "Event streams open now", counts.streams_open)?;
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(counts.answers);
        page.counters("http_answers", "Answers by the first digit of the status", "class", classes)?;
        page.counters("http_refused", "Requests refused by the guard, by rule", "rule", counts.refused)?;
        let load = self.engine.load();
        page.gauge(
            "admission_active",
            "Executions that hold an admission slot",
            load.admission.active as u64,
        )?;
        let active = load.providers.iter().map(|(id, gate)| (id.as_str(), gate.active as u64));
        page.gauges("provider_active", "Attempts under way, by provider", "provider", active)?;
        let queued = load.providers.iter().map(|(id, gate)| (id.as_str(), gate.queued as u64));
        page.gauges("provider_queued", "Attempts waiting for a provider's gate", "provider", queued)
    }
}
