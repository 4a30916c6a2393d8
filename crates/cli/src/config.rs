//! The configuration file: which providers there are, how much runs at once, how much is kept.
//!
//! TOML; what is not known is refused by file, line and key. Must never repeat a value: an operator who pasted a
//! secret into the wrong place must not find it in a log.

mod access;
mod limits;
mod mock;
mod models;
mod near;
pub mod origins;
mod store;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sealog_disk::real::read_file;
use sealog_events::{EventBody, StopReason, Target};
use sealog_execution::{ModelProvider, ProviderLimits, Registry};
use sealog_providers_mock::MockProvider;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use crate::exit::Exit;
use crate::failure::{Failure, Result, shown};

pub use access::{AccessConfig, TlsFiles};
pub use store::StoreConfig;

/// Longest configuration file, in bytes.
const CONFIG_BYTES_MAX: usize = 1024 * 1024;
/// Most executions that may be configured to run at once.
const ACTIVE_EXECUTIONS_MAX: i64 = 100_000;

const UNSUPPORTED: &str = "unsupported or unsafe field";
const TYPES: &str = "one of mock, openai-chat, openai-responses, anthropic-messages, ollama, fal-queue";

/// What the node is made of.
#[derive(Debug)]
pub struct NodeConfig {
    pub max_active_executions: Option<usize>,
    pub store: StoreConfig,
    pub access: AccessConfig,
    pub providers: Registry,
    /// No provider is configured: the mock answers.
    pub mock_only: bool,
    /// Provider keys that are not where the file says. They are read at each call, so that is no refusal.
    pub absent_keys: Vec<AbsentKey>,
}

/// A member that names a place without a key.
#[derive(Debug, PartialEq)]
pub struct AbsentKey {
    /// The configuration file, as it is shown; empty where a text was parsed that is none.
    file: String,
    pub line: usize,
    member: &'static str,
}

impl AbsentKey {
    /// Never the name itself: somebody may have put the key there.
    pub fn words(&self) -> String {
        let AbsentKey { file, line, member } = self;
        let what =
            if *member == "api_key_env" { "variable that is not set" } else { "file that is not there" };
        format!("{file}:{line}: providers.{member} names a {what}; requests fail until it is")
    }
}

impl NodeConfig {
    /// Without a file: the mock provider.
    ///
    /// # Errors
    /// None; the type is that of [`NodeConfig::read`].
    pub fn without_file() -> Result<NodeConfig> {
        let mut providers = Registry::new();
        let registered = providers.register(Arc::new(MockProvider::default()));
        registered.map_err(|error| Failure::new(Exit::Failed, "config", error.to_string()))?;
        Ok(NodeConfig {
            max_active_executions: None,
            store: StoreConfig::default(),
            access: AccessConfig::default(),
            providers,
            mock_only: true,
            absent_keys: Vec::new(),
        })
    }

    /// Reads `path`, or stands in for it.
    ///
    /// # Errors
    /// Exit 1, naming file, line and key.
    pub fn read(path: Option<&Path>) -> Result<NodeConfig> {
        let Some(path) = path else { return NodeConfig::without_file() };
        let text = text_of(path)?;
        let named = |config: NodeConfig| {
            let absent_keys = config.absent_keys.into_iter();
            let absent_keys = absent_keys.map(|absent| AbsentKey { file: shown(path), ..absent }).collect();
            NodeConfig { absent_keys, ..config }
        };
        parse(&text).map(named).map_err(|refused| {
            let Refused { at, key, why } = refused;
            let line = at.map(|at| line_of(&text, at));
            let mut what = shown(path);
            what += &line.map(|line| format!(":{line}")).unwrap_or_default();
            what += &key.map(|key| format!(": {key}")).unwrap_or_default();
            Failure::new(Exit::Failed, "config", format!("{what}: {why}")).next(
                "correct the file; docs/interface.md lists every member, docs/operator.md has an example",
            )
        })
    }
}

/// The text of a configuration file.
///
/// # Errors
/// Exit 1.
fn text_of(path: &Path) -> Result<String> {
    let unreadable = |why: &str| {
        Failure::new(Exit::Failed, "config", format!("{}: {why}", shown(path)))
            .next("name a configuration file (TOML)")
    };
    let content = read_file(path, CONFIG_BYTES_MAX)
        .map_err(|error| unreadable("cannot be read, or is too long").unread(error))?;
    String::from_utf8(content.bytes).map_err(|_| unreadable("is not UTF-8 text"))
}

/// Why a file was refused: the byte where, the key, and words without a value.
#[derive(Debug, PartialEq)]
pub struct Refused {
    pub at: Option<usize>,
    pub key: Option<String>,
    pub why: String,
}

impl Refused {
    fn new(span: Range<usize>, key: &str, why: impl Into<String>) -> Refused {
        Refused { at: Some(span.start), key: Some(printable(key)), why: why.into() }
    }
}

/// A key as it may be printed: somebody may have put a value in its place.
fn printable(key: &str) -> String {
    const KEY_LENGTH_MAX: usize = 40;
    let plain = key.len() <= KEY_LENGTH_MAX
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if plain { key.to_owned() } else { "a key that is not printed".to_owned() }
}

/// What a member holds.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Texts,
    Integer,
    Boolean,
    Table(Members),
}

type Members = &'static [(&'static str, Kind)];

const SECTIONS: [&str; 5] = ["max_active_executions", "store", "http", "tls", "providers"];

/// What the text of a configuration file comes to.
///
/// # Errors
/// The first thing in it that is not known or not allowed.
pub fn parse(text: &str) -> std::result::Result<NodeConfig, Refused> {
    // The parser's own message shows the line that it did not like.
    let document = DeTable::parse(text).map_err(|error| Refused {
        at: error.span().map(|span| span.start),
        key: None,
        why: "not valid TOML".to_owned(),
    })?;
    let mut max_active_executions = None;
    let mut store = StoreConfig::default();
    let mut access = AccessConfig::default();
    let mut tls = None;
    let mut providers = None;
    let mut absent_keys = Vec::new();
    for (key, value) in document.get_ref() {
        match key.get_ref().as_ref() {
            "max_active_executions" => max_active_executions = Some(active_executions(key.span(), value)?),
            "store" => store = store::store(key.span(), value)?,
            "http" => access = access::access(key.span(), value)?,
            "tls" => tls = Some(access::tls(key.span(), value)?),
            "providers" => {
                providers = Some(registry(key.span(), value)?);
                absent_keys = absent_keys_of(text, value);
            }
            other => return Err(Refused::new(key.span(), other, near::unsupported(other, SECTIONS))),
        }
    }
    access.tls = tls;
    let without =
        || NodeConfig::without_file().map_err(|failure| Refused { at: None, key: None, why: failure.what });
    let mock_only = providers.is_none();
    let providers = match providers {
        Some(providers) => providers,
        None => without()?.providers,
    };
    Ok(NodeConfig { max_active_executions, store, access, providers, mock_only, absent_keys })
}

/// Of providers that were accepted.
fn absent_keys_of(text: &str, providers: &Spanned<DeValue<'_>>) -> Vec<AbsentKey> {
    let tables = providers.get_ref().as_array().into_iter().flat_map(|list| list.iter());
    let members = tables.filter_map(|entry| entry.get_ref().as_table()).flat_map(|table| table.iter());
    let absent = members.filter_map(|(key, value)| {
        let place = value.get_ref().as_str()?;
        let (member, is_there) = match key.get_ref().as_ref() {
            "api_key_env" => ("api_key_env", std::env::var_os(place).is_some()),
            "api_key_file" => ("api_key_file", rustix::fs::stat(place).is_ok()),
            _ => return None,
        };
        (!is_there).then(|| AbsentKey { file: String::new(), line: line_of(text, key.span().start), member })
    });
    absent.collect()
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn active_executions(
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> std::result::Result<usize, Refused> {
    let count = integer(value.get_ref()).filter(|count| (1..=ACTIVE_EXECUTIONS_MAX).contains(count));
    count.and_then(|count| usize::try_from(count).ok()).ok_or_else(|| {
        Refused::new(span, "max_active_executions", format!("an integer from 1 to {ACTIVE_EXECUTIONS_MAX}"))
    })
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}

fn registry(span: Range<usize>, value: &Spanned<DeValue<'_>>) -> std::result::Result<Registry, Refused> {
    let list = value.get_ref().as_array().ok_or_else(|| {
        Refused::new(span.clone(), "providers", "a list of tables, each opened by [[providers]]")
    })?;
    if list.iter().next().is_none() {
        return Err(Refused::new(span, "providers", "at least one provider"));
    }
    let mut registry = Registry::new();
    for entry in list {
        let (provider, limits) = provider(entry)?;
        registry
            .register_limited(provider, limits)
            .map_err(|error| Refused::new(entry.span(), "providers.id", error.to_string()))?;
    }
    Ok(registry)
}

type Limited = (Arc<dyn ModelProvider>, ProviderLimits);

fn provider(entry: &Spanned<DeValue<'_>>) -> std::result::Result<Limited, Refused> {
    let table = entry
        .get_ref()
        .as_table()
        .ok_or_else(|| Refused::new(entry.span(), "providers", "a table, opened by [[providers]]"))?;
    let kind = table.iter().find(|(key, _)| key.get_ref().as_ref() == "type");
    let (kind_span, kind) = match kind {
        Some((key, value)) => (key.span(), value.get_ref().as_str().unwrap_or_default()),
        None => return Err(Refused::new(entry.span(), "providers.type", TYPES)),
    };
    let model = models::Type::of(kind);
    let known = match (kind, model) {
        ("mock", _) => mock::MEMBERS,
        (_, Some(model)) => model.members,
        (_, None) => return Err(Refused::new(kind_span, "providers.type", TYPES)),
    };
    let mut values = members(table, known, "providers.")?;
    let limits = limits::take(&mut values).map_err(|(key, why)| at_member(entry, table, key, &why))?;
    let provider = match model {
        Some(model) => model.provider(values).map_err(|(key, why)| at_member(entry, table, key, &why)),
        None => mock::provider(values).map_err(|(key, why)| at_member(entry, table, key, why)),
    };
    let provider = provider?;
    if !can_be_told(&*provider) {
        return Err(at_member(
            entry,
            table,
            "model",
            "id and model are too long for an event that names both",
        ));
    }
    Ok((provider, limits))
}

/// Whether an execution that succeeds could say who did it: a terminal event has a room of its own and no more.
fn can_be_told(provider: &dyn ModelProvider) -> bool {
    let models = provider.manifest().map(|manifest| manifest.models).unwrap_or_default();
    models.into_iter().all(|model| {
        let target = Target { provider: provider.id().to_owned(), model: model.model };
        let completed = |reason| EventBody::Completed { target: target.clone(), stop_reason: Some(reason) };
        StopReason::ALL.iter().all(|reason| sealog_events::limits::check(&completed(*reason)).is_ok())
    })
}

fn at_member(entry: &Spanned<DeValue<'_>>, table: &DeTable<'_>, key: &str, why: &str) -> Refused {
    let member = table.iter().find(|(found, _)| found.get_ref().as_ref() == key);
    let span = member.map_or(entry.span(), |(found, _)| found.span());
    Refused::new(span, &format!("providers.{key}"), why)
}

/// The members of a table as plain values; each must be known and of its kind.
fn members(table: &DeTable<'_>, known: Members, prefix: &str) -> std::result::Result<Table, Refused> {
    let mut values = Table::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let shown = format!("{prefix}{name}");
        let Some((_, kind)) = known.iter().find(|(known, _)| *known == name) else {
            let why = near::unsupported(name, known.iter().map(|(known, _)| *known));
            return Err(Refused::new(key.span(), &shown, why));
        };
        let plain = plain(value.get_ref(), *kind, &shown)?
            .ok_or_else(|| Refused::new(key.span(), &shown, kind.words()))?;
        values.insert(name.to_owned(), plain);
    }
    Ok(values)
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Kind::Text => "a text",
            Kind::Texts => "a list of texts",
            Kind::Integer => "an integer",
            Kind::Boolean => "true or false",
            Kind::Table(_) => "a table",
        }
    }
}

/// `None`: the value is of another kind.
fn plain(value: &DeValue<'_>, kind: Kind, shown: &str) -> std::result::Result<Option<Value>, Refused> {
    Ok(match kind {
        Kind::Text => value.as_str().map(|text| Value::String(text.to_owned())),
        Kind::Integer => integer(value).map(Value::Integer),
        Kind::Boolean => value.as_bool().map(Value::Boolean),
        Kind::Texts => value.as_array().and_then(|list| {
            let texts = list.iter().map(|text| text.get_ref().as_str().map(|text| text.to_owned().into()));
            texts.collect::<Option<Vec<Value>>>().map(Value::Array)
        }),
        Kind::Table(known) => match value.as_table() {
            Some(table) => Some(Value::Table(members(table, known, &format!("{shown}."))?)),
            None => None,
        },
    })
}

/// A provider, or the member that is wrong and why.
type Made<'a, W> = std::result::Result<Arc<dyn ModelProvider>, (&'a str, W)>;

#[cfg(test)]
mod tests;
