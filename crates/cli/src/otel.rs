//! Traces out, with the cargo feature `otel`: one span per execution, by the GenAI attribute names, without content.
//!
//! Exports where the `OTEL_EXPORTER_OTLP_*` variables say, and nothing without one. The exporter has threads of its
//! own: it is made before the node's runtime and shut down behind it. An export that fails costs spans, never an
//! execution.

use std::collections::BTreeMap;

use opentelemetry::KeyValue;
use opentelemetry::trace::{Span, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span as SdkSpan};
use sealog_engine::{Fact, Failing, Following, Observer};
use sealog_events::{ExecutionId, Status as State, Target, UsageFact};

use crate::failure::{Failure, Result};

/// Any of them switches the export on.
const SWITCHES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// The export of one node.
#[derive(Debug)]
pub struct Export {
    provider: SdkTracerProvider,
}

impl Export {
    /// `None` where nothing says where to.
    ///
    /// # Errors
    /// Exit 2: the variables are not as they must be.
    pub fn start() -> Result<Option<Export>> {
        if SWITCHES.iter().all(|name| std::env::var_os(name).is_none_or(|value| value.is_empty())) {
            return Ok(None);
        }
        // Asked for by an https endpoint; a provider that is installed already is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter =
            SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build().map_err(
                |_| {
                    Failure::usage("bad_otel", "the OTEL_EXPORTER_OTLP_ variables name no place to export to")
                        .next("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318")
                },
            )?;
        let resource = Resource::builder().with_service_name("sealog").build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Some(Export { provider }))
    }

    /// Told of executions.
    pub fn observer(&self) -> Traces {
        Traces { tracer: self.provider.tracer("sealog") }
    }

    /// Exports what is left; blocks for a few seconds at most. Outside every runtime.
    pub fn end(self) {
        if self.provider.shutdown().is_err() {
            tracing::warn!("some traces were not exported");
        }
    }
}

/// Makes spans of executions.
#[derive(Debug)]
pub struct Traces {
    tracer: SdkTracer,
}

fn operation(ability: &str) -> &'static str {
    let has = |word: &str| ability.contains(word);
    if has("embedding") {
        "embeddings"
    } else if ["image", "video", "audio", "multimodal"].into_iter().any(has) {
        "generate_content"
    } else {
        "chat"
    }
}

impl Observer for Traces {
    fn accepted(&self, id: ExecutionId, ability: &str) -> Box<dyn Following> {
        let operation = operation(ability);
        let attributes = [
            KeyValue::new("gen_ai.operation.name", operation),
            KeyValue::new("model_runtime.ability", ability.to_owned()),
        ];
        let builder = self.tracer.span_builder(operation).with_kind(SpanKind::Client);
        let span = builder.with_attributes(attributes).start(&self.tracer);
        let mut execution =
            Execution { span, id: id.to_string(), operation, output_seen: false, usage: BTreeMap::new() };
        execution.event("execution.accepted", 1, State::Accepted, Vec::new());
        Box::new(execution)
    }
}

struct Execution {
    span: SdkSpan,
    id: String,
    operation: &'static str,
    /// One event says that output began; what came out is nobody's business here.
    output_seen: bool,
    usage: BTreeMap<&'static str, f64>,
}

/// The attribute of a usage unit; other units have none.
fn usage_attribute(unit: &str) -> Option<&'static str> {
    Some(match unit {
        "input_token" => "gen_ai.usage.input_tokens",
        "output_token" => "gen_ai.usage.output_tokens",
        "cache_write_token" => "gen_ai.usage.cache_creation.input_tokens",
        "cache_read_token" => "gen_ai.usage.cache_read.input_tokens",
        "reasoning_token" => "gen_ai.usage.reasoning.output_tokens",
        _ => return None,
    })
}

/// A whole number as one: that is what the attributes are.
fn number(value: f64) -> opentelemetry::Value {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value <= WHOLE_MAX { (value as i64).into() } else { value.into() }
}

impl Execution {
    fn event(&mut self, name: &'static str, sequence: u64, state: State, mut more: Vec<KeyValue>) {
        let sequence = i64::try_from(sequence).unwrap_or(i64::MAX);
        more.push(KeyValue::new("gen_ai.response.id", self.id.clone()));
        more.push(KeyValue::new("model_runtime.event.sequence", sequence));
        more.push(KeyValue::new("model_runtime.execution.status", state.as_str()));
        self.span.add_event(name, more);
    }

    fn routed(&mut self, target: &Target) -> Vec<KeyValue> {
        self.span.update_name(format!("{} {}", self.operation, target.model));
        self.span.set_attribute(KeyValue::new("gen_ai.provider.name", target.provider.clone()));
        self.span.set_attribute(KeyValue::new("gen_ai.request.model", target.model.clone()));
        named(target)
    }

    fn used(&mut self, facts: &[UsageFact]) {
        for fact in facts {
            if let Some(attribute) = usage_attribute(&fact.unit) {
                *self.usage.entry(attribute).or_default() += fact.quantity.get();
            }
        }
    }

    fn ended(&mut self) {
        let usage = std::mem::take(&mut self.usage);
        let attributes = usage.into_iter().map(|(name, value)| KeyValue::new(name, number(value)));
        self.span.set_attributes(attributes);
    }
}

fn named(target: &Target) -> Vec<KeyValue> {
    vec![
        KeyValue::new("gen_ai.provider.name", target.provider.clone()),
        KeyValue::new("gen_ai.response.model", target.model.clone()),
    ]
}

fn failing(error: Failing) -> Vec<KeyValue> {
    vec![
        KeyValue::new("error.type", error.code.as_str()),
        KeyValue::new("model_runtime.error.retryable", error.retryable),
    ]
}

impl Following for Execution {
    fn seen(&mut self, sequence: u64, fact: &Fact) {
        match fact {
            Fact::RouteSelected { target, attempt: _ } => {
                self.output_seen = false;
                let attributes = self.routed(target);
                self.event("route.selected", sequence, State::Routing, attributes);
            }
            Fact::AttemptFailed { target: _, error } => {
                self.event("route.attempt_failed", sequence, State::Routing, failing(*error));
            }
            Fact::Output => {
                if !self.output_seen {
                    self.output_seen = true;
                    self.event("output", sequence, State::Running, Vec::new());
                }
            }
            Fact::Progress => self.event("execution.progress", sequence, State::Running, Vec::new()),
            Fact::Usage(facts) => {
                self.used(facts);
                self.event("usage.reported", sequence, State::Running, Vec::new());
            }
            Fact::Completed { target } => {
                self.event("execution.completed", sequence, State::Succeeded, named(target));
                self.ended();
                self.span.set_status(Status::Ok);
            }
            Fact::Failed { error, cancelled } => {
                let state = if *cancelled { State::Cancelled } else { State::Failed };
                self.event("execution.failed", sequence, state, failing(*error));
                self.ended();
                self.span.set_attribute(KeyValue::new("error.type", error.code.as_str()));
                self.span.set_status(Status::error(error.code.as_str()));
            }
        }
    }
}
