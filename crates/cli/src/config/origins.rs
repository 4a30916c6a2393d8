//! Where each value of the configuration comes from.
//!
//! Reads a file that was accepted once more, for its lines. Must never show the name of a key's variable or file:
//! somebody may have put the key itself there.

use std::path::Path;

use sealog_execution::Modality;
use toml::de::{DeTable, DeValue};

use super::{NodeConfig, StoreConfig, integer, line_of, text_of};
use crate::failure::{Result, shown};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// File and line.
    File(String, usize),
    /// The variable.
    Environment(&'static str),
    Flag,
}

impl Origin {
    pub fn words(&self) -> String {
        match self {
            Origin::Default => "default".to_owned(),
            Origin::File(file, line) => format!("{file}:{line}"),
            Origin::Environment(name) => format!("environment, {name}"),
            Origin::Flag => "flag".to_owned(),
        }
    }
}

/// One value as it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub value: String,
    pub origin: Origin,
}

/// Everything that a configuration file may say, also where none does.
///
/// # Errors
/// As [`NodeConfig::read`].
pub fn of_file(path: Option<&Path>, config: &NodeConfig) -> Result<Vec<Setting>> {
    let mut settings = match path {
        Some(path) => written(&shown(path), &text_of(path)?),
        None => Vec::new(),
    };
    let known: Vec<String> = settings.iter().map(|setting| setting.key.clone()).collect();
    let mut defaults = defaults();
    defaults.extend(of_providers(config));
    defaults.retain(|setting| !known.contains(&setting.key));
    settings.extend(defaults);
    settings.sort_by(|left, right| left.key.cmp(&right.key));
    Ok(settings)
}

/// What stands in the file.
fn written(file: &str, text: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    // It was accepted a moment ago; a file that changed since then shows what still reads.
    if let Ok(document) = DeTable::parse(text) {
        members(file, text, "", document.get_ref(), &mut settings);
    }
    settings
}

fn members(file: &str, text: &str, prefix: &str, table: &DeTable<'_>, settings: &mut Vec<Setting>) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) => members(file, text, &format!("{name}."), inner, settings),
            DeValue::Array(list) if list.iter().any(|item| item.get_ref().as_table().is_some()) => {
                for (at, item) in list.iter().enumerate() {
                    if let Some(inner) = item.get_ref().as_table() {
                        members(file, text, &format!("{name}[{at}]."), inner, settings);
                    }
                }
            }
            value => settings.push(Setting {
                value: if names_a_key(key.get_ref()) { "(not shown)".to_owned() } else { plain(value) },
                origin: Origin::File(file.to_owned(), line_of(text, key.span().start)),
                key: name,
            }),
        }
    }
}

fn names_a_key(name: &str) -> bool {
    ["api_key_env", "api_key_file", "token_file", "cert_file", "key_file"].contains(&name)
}

fn plain(value: &DeValue<'_>) -> String {
    if let Some(text) = value.as_str() {
        return format!("{text:?}");
    }
    if let Some(list) = value.as_array() {
        return format!("[{}]", list.iter().map(|item| plain(item.get_ref())).collect::<Vec<_>>().join(", "));
    }
    match (integer(value), value.as_bool()) {
        (Some(number), _) => number.to_string(),
        (None, Some(flag)) => flag.to_string(),
        (None, None) => "(not shown)".to_owned(),
    }
}

fn defaults() -> Vec<Setting> {
    let store = StoreConfig::default();
    let limits = store.limits;
    let active = sealog_engine::EngineOptions::default().max_active_executions;
    let rows = [
        ("max_active_executions", active.to_string()),
        ("store.max_executions", limits.max_executions.to_string()),
        ("store.max_bytes", limits.max_bytes.to_string()),
        ("store.max_execution_bytes", limits.max_execution_bytes.to_string()),
        ("store.max_events", limits.max_events.to_string()),
        ("store.retention_ms", limits.retention_ms.to_string()),
        ("store.min_key_age_ms", limits.min_key_age_ms.to_string()),
        ("store.max_disk_bytes", store.limits.max_disk_bytes.to_string()),
        ("store.reader_stall_ms", store.reader_stall_ms.to_string()),
        ("store.boot_check_bytes", store.boot_check_bytes.to_string()),
    ];
    rows.into_iter()
        .map(|(key, value)| Setting { key: key.to_owned(), value, origin: Origin::Default })
        .collect()
}

/// What every provider has whether or not the file says so.
fn of_providers(config: &NodeConfig) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (at, provider) in config.providers.providers().iter().enumerate() {
        let mut row = |name: &str, value: String| {
            settings.push(Setting { key: format!("providers[{at}].{name}"), value, origin: Origin::Default });
        };
        if config.mock_only {
            row("type", "\"mock\"".to_owned());
        }
        if let Some(model) = provider.manifest().ok().and_then(|manifest| manifest.models.into_iter().next())
        {
            row("model", format!("{:?}", model.model));
            row("abilities", format!("{:?}", model.abilities));
            let names =
                |list: &[Modality]| format!("{:?}", list.iter().map(|one| one.as_str()).collect::<Vec<_>>());
            row("capabilities.input_modalities", names(&model.input_modalities));
            row("capabilities.output_modalities", names(&model.output_modalities));
            row("capabilities.tools", model.tools.to_string());
        }
        row("id", format!("{:?}", provider.id()));
        let options = sealog_engine::EngineOptions::default();
        let (concurrency, queue) = match config.providers.limits(provider.id()) {
            Some(limits) => (limits.max_concurrency.to_string(), limits.max_queue_depth.to_string()),
            None => (options.provider_concurrency.to_string(), options.provider_queue.to_string()),
        };
        row("max_concurrency", concurrency);
        row("max_queue_depth", queue);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_line_and_no_key_is_shown() {
        let text = "max_active_executions = 4\n[store]\n\nmax_events = 1_000\n[[providers]]\ntype = 'mock'\n\
                    abilities = ['a', 'b']\napi_key_env = 'canary'\n";
        let found: Vec<String> = written("f.toml", text)
            .iter()
            .map(|setting| format!("{} = {} # {}", setting.key, setting.value, setting.origin.words()))
            .collect();
        let mut expected = [
            "max_active_executions = 4 # f.toml:1",
            "store.max_events = 1000 # f.toml:4",
            "providers[0].type = \"mock\" # f.toml:6",
            "providers[0].abilities = [\"a\", \"b\"] # f.toml:7",
            "providers[0].api_key_env = (not shown) # f.toml:8",
        ];
        let mut sorted = found.clone();
        sorted.sort();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn without_a_file_everything_is_a_default() {
        let config = NodeConfig::without_file().unwrap();
        let settings = of_file(None, &config).unwrap();
        assert!(settings.iter().all(|setting| setting.origin == Origin::Default));
        for key in
            ["store.max_bytes", "max_active_executions", "providers[0].id", "providers[0].max_concurrency"]
                .into_iter()
                .chain(["providers[0].model", "providers[0].abilities", "providers[0].capabilities.tools"])
        {
            assert!(settings.iter().any(|setting| setting.key == key), "{key}");
        }
    }
}
