//! Submitting a request.

use bytes::Bytes;
use http::HeaderValue;
use serde::Deserialize;

use crate::transport::Call;
use crate::{Client, ClientError};

/// The node's receipt: the execution is durable.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Submission {
    /// A UUID.
    pub execution_id: String,
    /// `accepted` for a new execution, the current status for a replay.
    pub status: String,
    /// ISO 8601, UTC, milliseconds.
    pub created_at: String,
    /// The key was known with the same request.
    pub idempotent_replay: bool,
}

impl Client {
    /// Submits a request (its JSON text). With a key of 1 to 256 characters it is safe to submit again after a
    /// failure; without one, ask [`ClientError::may_have_taken_effect`].
    ///
    /// # Errors
    /// Any [`ClientError`] but `Truncated`.
    pub async fn submit(&self, body: &[u8], key: Option<&str>) -> Result<Submission, ClientError> {
        let mut call = Call::post("/v1/executions".to_owned());
        call.headers.push(("content-type", HeaderValue::from_static("application/json")));
        if let Some(key) = key {
            let value = HeaderValue::from_bytes(key.as_bytes())
                .map_err(|_| ClientError::BadArgument("the idempotency key cannot stand in a header"))?;
            call.headers.push(("idempotency-key", value));
        }
        call.body = Bytes::copy_from_slice(body);
        let answer = self.ask(call).await?;
        match answer.status {
            200 | 202 => serde_json::from_slice(&answer.body)
                .map_err(|_| ClientError::Protocol("it is not a submission")),
            _ => Err(answer.failure()),
        }
    }
}
