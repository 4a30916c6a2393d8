//! The client's handle: where the node is and how long it may take.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use crate::ClientError;
use crate::base_url::BaseUrl;

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
    /// The value of `Authorization`, marked as sensitive: it is shown nowhere.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Client {
    /// A client of the node at `http://host[:port][/prefix]`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::HttpsUnsupported`], or [`ClientError::BadBaseUrl`].
    pub fn new(base_url: &str) -> Result<Self, ClientError> {
        Self::with_options(base_url, ClientOptions::default())
    }

    /// As [`Client::new`], with other waits.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_options(base_url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        Ok(Self { base: Arc::new(BaseUrl::parse(base_url)?), options, authorization: None })
    }

    /// Shows this bearer token with every request.
    ///
    /// # Errors
    /// [`ClientError::BadArgument`]: it is empty or cannot stand in a header.
    pub fn with_token(mut self, token: &str) -> Result<Self, ClientError> {
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
