//! The type `mock`: what may stand in its configuration, and the provider that it makes.

use std::sync::Arc;

use sealog_execution::{Modality, ModelProvider};
use sealog_providers_mock::{MockCapabilities, MockProvider};
use sealog_upstream::model::{Capabilities, modalities};
use serde::Deserialize;
use toml::{Table, Value};

use super::{Kind, Made, Members, limits, models};

const NAME_LENGTH_MAX: usize = 256;

pub(super) const MEMBERS: Members = &[
    ("type", Kind::Text),
    ("id", Kind::Text),
    ("model", Kind::Text),
    ("abilities", Kind::Texts),
    ("capabilities", Kind::Table(models::CAPABILITIES)),
    limits::CONCURRENCY,
    limits::QUEUE_DEPTH,
];

pub(super) fn provider(mut values: Table) -> Made<'static, &'static str> {
    let name = |key: &'static str, default: &str| match values.get(key).and_then(Value::as_str) {
        None => Ok(default.to_owned()),
        Some(text) if is_name(text) => Ok(text.to_owned()),
        Some(_) => Err((key, "1 to 256 characters")),
    };
    let default = MockProvider::default();
    let (id, model) = (name("id", default.id())?, name("model", "model-alpha")?);
    let abilities = match values.get("abilities").and_then(Value::as_array) {
        None => vec!["text-generation".to_owned()],
        Some(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    let different = (1..abilities.len()).all(|at| !abilities[..at].contains(&abilities[at]));
    if abilities.is_empty() || !different || !abilities.iter().all(|ability| is_name(ability)) {
        return Err(("abilities", "a list of different names of 1 to 256 characters"));
    }
    let capabilities = capabilities(values.remove("capabilities")).map_err(|why| ("capabilities", why))?;
    Ok(Arc::new(MockProvider::new(id, model, abilities).with_capabilities(capabilities)))
}

/// A script can answer with anything, so that anything may be declared.
fn capabilities(written: Option<Value>) -> Result<MockCapabilities, &'static str> {
    let default = MockCapabilities::default();
    let Some(written) = written else { return Ok(default) };
    let Capabilities { input_modalities, output_modalities, tools } =
        Capabilities::deserialize(written).map_err(|_| "lists of modalities, and tools true or false")?;
    let list = |names, default: &[Modality]| modalities(names, default, &Modality::ALL);
    Ok(MockCapabilities {
        input_modalities: list(input_modalities, &default.input_modalities)
            .ok_or("input_modalities must be a list of different modalities")?,
        output_modalities: list(output_modalities, &default.output_modalities)
            .ok_or("output_modalities must be a list of different modalities")?,
        tools: tools.unwrap_or(default.tools),
    })
}

fn is_name(text: &str) -> bool {
    (1..=NAME_LENGTH_MAX).contains(&text.chars().count())
}
