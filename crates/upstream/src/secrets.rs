//! The secrets of one request, so that none comes back in what its upstream says about itself.
//!
//! Of an answer's head and of its failures identifiers are kept. An upstream that puts a credential there must not
//! make it known to whoever may read executions. No secret is ever shown here.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use sealog_execution::Failure;

/// A shorter secret is looked for as a whole only: it may stand in an innocent word.
const WITHIN_LENGTH_MIN: usize = 8;

/// Those of one request.
#[derive(Clone, Default)]
pub struct Secrets(Vec<HeaderValue>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// The headers that are marked sensitive.
    pub fn of(headers: &HeaderMap<HeaderValue>) -> Secrets {
        Secrets(headers.values().filter(|value| value.is_sensitive()).cloned().collect())
    }

    /// Whether one of them stands in this text.
    pub fn stand_in(&self, text: &str) -> bool {
        self.0.iter().any(|value| {
            // Behind the word that says what kind of credential it is.
            let secret = value.as_bytes().rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let text = text.as_bytes();
            match secret.len() {
                0 => false,
                1..WITHIN_LENGTH_MIN => text == secret,
                length => text.windows(length).any(|window| window == secret),
            }
        })
    }

    /// The failure, without an upstream's code that holds one of them.
    #[must_use]
    pub fn cleaned(&self, mut failure: Failure) -> Failure {
        failure.provider_code = failure.provider_code.filter(|code| !self.stand_in(code));
        failure
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use http::header::{ACCEPT, AUTHORIZATION};
    use sealog_events::PortableCode;

    use super::*;

    fn secrets(name: HeaderName, value: &'static str) -> Secrets {
        let mut value = HeaderValue::from_static(value);
        value.set_sensitive(name != ACCEPT);
        Secrets::of(&HeaderMap::from_iter([(name, value)]))
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands() {
        let long = secrets(AUTHORIZATION, "Bearer sk-0123456789");
        for text in ["sk-0123456789", "req-sk-0123456789", "sk-0123456789.1"] {
            assert!(long.stand_in(text), "{text}");
        }
        for text in ["", "sk-012345678", "Bearer", "rate_limit_exceeded"] {
            assert!(!long.stand_in(text), "{text}");
        }
        let short = secrets(HeaderName::from_static("x-api-key"), "limit");
        assert!(short.stand_in("limit") && !short.stand_in("rate_limit_exceeded"));
        assert!(!secrets(ACCEPT, "application/json").stand_in("application/json"));
        assert!(!secrets(AUTHORIZATION, "").stand_in(""));
        assert_eq!(format!("{long:?}"), "Secrets");
    }

    #[test]
    fn a_failure_loses_a_code_that_holds_one() {
        let secrets = secrets(AUTHORIZATION, "Key 0123456789");
        let failed = |code| Failure::transient(PortableCode::RateLimited, "m").with_provider_code(code);
        assert_eq!(secrets.cleaned(failed("0123456789")).provider_code, None);
        assert_eq!(secrets.cleaned(failed("429")).provider_code.as_deref(), Some("429"));
    }
}
