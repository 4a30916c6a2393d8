//! The client's handle: where the node is and how long it may take.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::base_url::{BaseUrl, Place};
use crate::{ClientError, tls};

/// How long this client waits, and how often it comes back.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// For a connection.
    pub connect: Duration,
    /// For the head and for the whole body of an answer that is no stream.
    pub answer: Duration,
    /// For the next byte of a stream. A node sends one at least every 15 s.
    pub stream_silence: Duration,
    /// Attempts in a row without a new event before a stream is given up.
    pub resume_attempts_max: u32,
    /// Before the first of them; doubled for each further one, up to `resume_wait_max`.
    pub resume_wait: Duration,
    /// The longest wait between two of them.
    pub resume_wait_max: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(60),
            stream_silence: Duration::from_secs(45),
            resume_attempts_max: 10,
            resume_wait: Duration::from_millis(100),
            resume_wait_max: Duration::from_secs(5),
        }
    }
}

/// A client of one node. Cheap to clone; every call is a connection of its own.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) base: Arc<BaseUrl>,
    pub(crate) options: ClientOptions,
    /// Whom it trusts; there where the address is https.
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// The value of `Authorization`, marked as sensitive: it is shown nowhere.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Client {
    /// A client of the node at `https://host[:port][/prefix]`, `http://host[:port][/prefix]` or `unix:PATH`. Over
    /// https the system's root certificates say who is trusted. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::BadBaseUrl`], or [`ClientError::NoRootCertificates`].
    pub fn new(base_url: &str) -> Result<Self, ClientError> {
        Self::with_options(base_url, ClientOptions::default())
    }

    /// As [`Client::new`], with other waits.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_options(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let base = BaseUrl::parse(base_url)?;
        let tls = match &base.place {
            Place::Tls { .. } => Some(tls::system_roots()?),
            Place::Plain { .. } | Place::Socket(_) => None,
        };
        Ok(Self { base: Arc::new(base), options, tls, authorization: None })
    }

    /// As [`Client::with_options`], with the certificates of a PEM text in the place of the system's: whoever they
    /// sign, and nobody else, is trusted.
    ///
    /// # Errors
    /// [`ClientError::BadBaseUrl`]; [`ClientError::BadCa`]: the text holds no such certificate;
    /// [`ClientError::BadArgument`]: the address is not https, so that it would count for nothing.
    pub fn with_ca(base_url: &str, options: ClientOptions, ca_pem: &[u8]) -> Result<Self, ClientError> {
        let base = BaseUrl::parse(base_url)?;
        match &base.place {
            Place::Tls { .. } => {}
            Place::Plain { .. } | Place::Socket(_) => {
                return Err(ClientError::BadArgument("certificates of a CA count only for an https address"));
            }
        }
        let tls = Some(tls::only_roots(ca_pem)?);
        Ok(Self { base: Arc::new(base), options, tls, authorization: None })
    }

    /// Shows this bearer token with every request.
    ///
    /// # Errors
    /// [`ClientError::TokenInTheClear`]: the address is plain http to another machine, and whoever is on the way
    /// would hold the token. [`ClientError::BadArgument`]: it is empty or cannot stand in a header.
    pub fn with_token(mut self, token: &str) -> Result<Self, ClientError> {
        if self.base.is_in_the_clear() {
            return Err(ClientError::TokenInTheClear);
        }
        let bad = || ClientError::BadArgument("a token is one word of printable characters");
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad());
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| bad())?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }
}

/// The path of an execution. An id goes in as one segment, whatever its text is.
pub(crate) fn execution_path(id: &str, below: &str) -> String {
    format!("/v1/executions/{}{below}", query_value(id))
}

/// Text that means itself in a path's segment and in a query, whatever it is.
pub(crate) fn query_value(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            escaped.push(char::from(byte));
        } else {
            escaped.push('%');
            escaped.push(char::from(HEX[usize::from(byte >> 4)]));
            escaped.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::execution_path;

    #[test]
    fn an_id_stays_one_segment() {
        assert_eq!(execution_path("1a-b", "/events"), "/v1/executions/1a-b/events");
        assert_eq!(execution_path("../x?é", ""), "/v1/executions/%2E%2E%2Fx%3F%C3%A9");
    }
}
