//! How much each provider is asked at once: two members that every type has.

use sealog_execution::ProviderLimits;
use toml::Table;

use super::Kind;

pub(super) const CONCURRENCY: (&str, Kind) = ("max_concurrency", Kind::Integer);
pub(super) const QUEUE_DEPTH: (&str, Kind) = ("max_queue_depth", Kind::Integer);

/// Largest value of either.
const COUNT_MAX: u32 = 100_000;

/// Takes the two members out of a provider's; an absent one has its default.
///
/// # Errors
/// The member that is out of its range, and why.
pub(super) fn take(values: &mut Table) -> Result<ProviderLimits, (&'static str, String)> {
    let default = ProviderLimits::default();
    Ok(ProviderLimits {
        max_concurrency: count(values, CONCURRENCY.0, 1)?.unwrap_or(default.max_concurrency),
        max_queue_depth: count(values, QUEUE_DEPTH.0, 0)?.unwrap_or(default.max_queue_depth),
    })
}

fn count(values: &mut Table, key: &'static str, min: u32) -> Result<Option<u32>, (&'static str, String)> {
    let Some(value) = values.remove(key) else { return Ok(None) };
    let count = value.as_integer().and_then(|count| u32::try_from(count).ok());
    match count.filter(|count| (min..=COUNT_MAX).contains(count)) {
        Some(count) => Ok(Some(count)),
        None => Err((key, format!("an integer from {min} to {COUNT_MAX}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::*;

    #[track_caller]
    fn check(text: &str, max_concurrency: u32, max_queue_depth: u32) {
        let registry = super::super::parse(text).unwrap().providers;
        let limits = registry.limits(registry.providers()[0].id());
        assert_eq!(limits, Some(ProviderLimits { max_concurrency, max_queue_depth }), "{text}");
    }

    #[test]
    fn every_type_has_limits_and_their_defaults() {
        for kind in ["mock", "openai-chat", "openai-responses", "anthropic-messages", "ollama", "fal-queue"] {
            let rest = match kind {
                "mock" => "",
                "openai-chat" => "model = 'm'\nbase_url = 'http://127.0.0.1:1'\n",
                "ollama" => "model = 'm'\n",
                _ => "model = 'm'\nabilities = ['a']\napi_key_env = 'SOME_KEY'\n",
            };
            let least = format!("[[providers]]\ntype = '{kind}'\n{rest}");
            check(&least, 16, 64);
            check(&format!("{least}max_concurrency = 512\nmax_queue_depth = 0"), 512, 0);
            check(&format!("{least}max_concurrency = 1"), 1, 64);
            check(&format!("{least}max_queue_depth = 100_000"), 16, 100_000);
        }
    }

    #[test]
    fn limits_out_of_their_range_are_refused() {
        let mock = "[[providers]]\ntype = 'mock'\n";
        for value in ["0", "-1", "100001", "99999999999"] {
            refused(
                &format!("{mock}max_concurrency = {value}"),
                3,
                "providers.max_concurrency",
                "integer from 1",
            );
        }
        for value in ["-1", "100001"] {
            refused(
                &format!("{mock}max_queue_depth = {value}"),
                3,
                "providers.max_queue_depth",
                "integer from 0",
            );
        }
        refused(&format!("{mock}max_concurrency = 'hunter2'"), 3, "providers.max_concurrency", "an integer");
        refused(&format!("{mock}max_queue_depth = 1.5"), 3, "providers.max_queue_depth", "an integer");
    }
}
