//! What can go wrong between a request and the end of its answer, and the portable failure each becomes.
//!
//! Nothing of the upstream's text survives here: a status is a number, everything else a fixed sentence.

use sealog_events::PortableCode;
use sealog_execution::Failure;

/// A failed upstream call. Whether the request may have been worked on decides the failure's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    #[error("the call was aborted")]
    Aborted,
    /// No connection: refused, unknown host, TLS, connect timeout.
    #[error("no connection to the upstream")]
    Unreachable,
    /// The request was sent and the response head did not come in time.
    #[error("the upstream did not answer in time")]
    NoAnswer,
    /// The connection ended after the request and before a response head.
    #[error("the connection ended before an answer")]
    BrokenBeforeAnswer,
    /// 429, 408, 4xx, 5xx.
    #[error("the upstream answered with status {0}")]
    Status(u16),
    /// 3xx; never followed.
    #[error("the upstream's redirect ({0}) was refused")]
    Redirect(u16),
    #[error("the response has the wrong content type")]
    ContentType,
    /// The connection broke, or ended before the announced length, after the response head.
    #[error("the connection broke within the response")]
    Broken,
    /// No byte for longer than the idle timeout, after the response head.
    #[error("the upstream fell silent within the response")]
    Silent,
    #[error("the response body is larger than allowed")]
    BodyTooLarge,
    #[error("an event is larger than allowed")]
    EventTooLarge,
    #[error("the event stream is not UTF-8")]
    NotUtf8,
    /// The body ended, cleanly, in the middle of an event.
    #[error("the event stream ended inside an event")]
    Truncated,
}

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Failure {
        use PortableCode::{ProviderUnavailable, RateLimited};
        match error {
            UpstreamError::Aborted => Failure::cancelled(),
            UpstreamError::Unreachable => {
                Failure::transient(ProviderUnavailable, "Provider could not be reached")
            }
            UpstreamError::NoAnswer => {
                Failure::transient(ProviderUnavailable, "Provider did not answer in time")
            }
            UpstreamError::BrokenBeforeAnswer => {
                Failure::transient(ProviderUnavailable, "Provider closed the connection without an answer")
            }
            UpstreamError::Status(429) => {
                Failure::transient(RateLimited, "Provider rate limit was reached").with_provider_code("429")
            }
            UpstreamError::Status(status @ (408 | 500..)) => {
                Failure::transient(ProviderUnavailable, "Provider is unavailable")
                    .with_provider_code(&status.to_string())
            }
            UpstreamError::Status(status) => {
                Failure::permanent(ProviderUnavailable, "Provider refused the request")
                    .with_provider_code(&status.to_string())
            }
            // The request itself was not accepted anywhere, and the next try may meet no redirect.
            UpstreamError::Redirect(status) => {
                Failure::transient(ProviderUnavailable, "Provider redirect was refused")
                    .with_provider_code(&status.to_string())
            }
            UpstreamError::Broken => {
                Failure::outcome_unknown(ProviderUnavailable, "Provider connection broke within the response")
            }
            UpstreamError::Silent => {
                Failure::outcome_unknown(ProviderUnavailable, "Provider fell silent within the response")
            }
            UpstreamError::ContentType => Failure::protocol("Provider response has the wrong content type"),
            UpstreamError::BodyTooLarge => Failure::protocol("Provider response is too large"),
            UpstreamError::EventTooLarge => Failure::protocol("Provider event is too large"),
            UpstreamError::NotUtf8 => Failure::protocol("Provider response is not valid UTF-8"),
            UpstreamError::Truncated => Failure::protocol("Provider response was truncated"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: UpstreamError, code: PortableCode, retryable: bool, provider_code: Option<&str>) {
        let failure = Failure::from(error);
        assert_eq!(
            (failure.code, failure.retryable(), failure.provider_code.as_deref()),
            (code, retryable, provider_code),
            "{error}"
        );
    }

    #[test]
    fn every_status_has_its_portable_code() {
        use PortableCode::{ProviderUnavailable, RateLimited};
        check(UpstreamError::Status(429), RateLimited, true, Some("429"));
        check(UpstreamError::Status(408), ProviderUnavailable, true, Some("408"));
        check(UpstreamError::Status(500), ProviderUnavailable, true, Some("500"));
        check(UpstreamError::Status(503), ProviderUnavailable, true, Some("503"));
        check(UpstreamError::Status(599), ProviderUnavailable, true, Some("599"));
        for status in [400, 401, 403, 404, 409, 422, 499] {
            check(UpstreamError::Status(status), ProviderUnavailable, false, Some(&status.to_string()));
        }
        check(UpstreamError::Redirect(307), ProviderUnavailable, true, Some("307"));
    }

    #[test]
    fn transport_failures_are_retryable_only_before_an_answer() {
        use PortableCode::{Cancelled, ProviderProtocolError, ProviderUnavailable};
        check(UpstreamError::Unreachable, ProviderUnavailable, true, None);
        check(UpstreamError::NoAnswer, ProviderUnavailable, true, None);
        check(UpstreamError::BrokenBeforeAnswer, ProviderUnavailable, true, None);
        check(UpstreamError::Broken, ProviderUnavailable, false, None);
        check(UpstreamError::Silent, ProviderUnavailable, false, None);
        check(UpstreamError::Truncated, ProviderProtocolError, false, None);
        check(UpstreamError::EventTooLarge, ProviderProtocolError, false, None);
        check(UpstreamError::Aborted, Cancelled, false, None);
    }
}
