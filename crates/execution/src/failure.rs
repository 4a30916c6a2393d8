//! Typed failures of the execution layer.
//!
//! A failure carries a portable code and a fixed public sentence. It never carries text of a caller, an upstream
//! or an exception: what is known beyond the code goes to tracing at the place where it was seen.

use sealog_events::{ErrorFact, PortableCode};

/// Longest `provider_code` that reaches an event, in bytes.
pub const PROVIDER_CODE_BYTES_MAX: usize = 64;

/// What a failure says about the work that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// Nothing was done that a second try could repeat; trying again may help.
    Transient,
    /// Trying the same again fails the same way.
    Permanent,
    /// The work may have been done. Never retried.
    OutcomeUnknown,
}

/// A failure as it may be shown to anybody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .code.as_str())]
pub struct Failure {
    pub code: PortableCode,
    /// A fixed public sentence.
    pub message: &'static str,
    pub class: FailureClass,
    /// The upstream's own status or error type; diagnostic evidence, never a replacement for `code`.
    pub provider_code: Option<String>,
}

impl Failure {
    pub fn new(code: PortableCode, class: FailureClass, message: &'static str) -> Failure {
        Failure { code, message, class, provider_code: None }
    }

    pub fn transient(code: PortableCode, message: &'static str) -> Failure {
        Failure::new(code, FailureClass::Transient, message)
    }

    pub fn permanent(code: PortableCode, message: &'static str) -> Failure {
        Failure::new(code, FailureClass::Permanent, message)
    }

    pub fn outcome_unknown(code: PortableCode, message: &'static str) -> Failure {
        Failure::new(code, FailureClass::OutcomeUnknown, message)
    }

    /// The upstream spoke something that is not its protocol, or stopped in the middle of it.
    pub fn protocol(message: &'static str) -> Failure {
        Failure::outcome_unknown(PortableCode::ProviderProtocolError, message)
    }

    /// What a provider reports when it stopped because its abort signal was set.
    pub fn cancelled() -> Failure {
        Failure::outcome_unknown(PortableCode::Cancelled, "Execution was cancelled")
    }

    /// Attaches the upstream's code. Anything but 1 to 64 printable ASCII characters without spaces is left
    /// out: an upstream's code is an identifier, and its sentences do not reach events.
    #[must_use]
    pub fn with_provider_code(mut self, code: &str) -> Failure {
        let identifier = (1..=PROVIDER_CODE_BYTES_MAX).contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_graphic());
        self.provider_code = identifier.then(|| code.to_owned());
        self
    }

    /// Whether a caller or a router may try the same request again.
    pub fn retryable(&self) -> bool {
        match self.class {
            FailureClass::Transient => true,
            FailureClass::Permanent | FailureClass::OutcomeUnknown => false,
        }
    }

    /// The same failure after output was exposed: code, message and provider code stay, the retry is gone.
    #[must_use]
    pub fn after_output(mut self) -> Failure {
        if self.retryable() {
            self.class = FailureClass::OutcomeUnknown;
        }
        self
    }

    /// The failure as an event carries it.
    pub fn to_fact(&self) -> ErrorFact {
        ErrorFact {
            code: self.code,
            message: self.message.to_owned(),
            retryable: self.retryable(),
            provider_code: self.provider_code.clone(),
            outcome: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_failures_are_retryable_and_output_ends_that() {
        let transient = Failure::transient(PortableCode::RateLimited, "m").with_provider_code("429");
        assert!(transient.retryable());
        let exposed = transient.clone().after_output();
        assert!(!exposed.retryable());
        assert_eq!((exposed.code, exposed.message), (transient.code, transient.message));
        assert_eq!(exposed.provider_code.as_deref(), Some("429"));
        assert!(!Failure::permanent(PortableCode::RateLimited, "m").retryable());
        assert!(!Failure::protocol("m").retryable());
        assert_eq!(
            Failure::permanent(PortableCode::RateLimited, "m").after_output().class,
            FailureClass::Permanent
        );
    }

    #[test]
    fn a_provider_code_is_an_identifier_or_absent() {
        let code = |text: &str| Failure::protocol("m").with_provider_code(text).provider_code;
        assert_eq!(code("overloaded_error").as_deref(), Some("overloaded_error"));
        assert_eq!(code(""), None);
        assert_eq!(code("your prompt was: x"), None);
        assert_eq!(code("\u{e9}"), None);
        assert_eq!(code(&"9".repeat(64)).map(|c| c.len()), Some(64));
        assert_eq!(code(&"9".repeat(65)), None);
    }

    #[test]
    fn a_fact_repeats_the_failure() {
        let fact = Failure::transient(PortableCode::QueueFull, "m").to_fact();
        assert_eq!((fact.code, fact.message.as_str(), fact.retryable), (PortableCode::QueueFull, "m", true));
        assert!(fact.outcome.is_none());
    }
}
