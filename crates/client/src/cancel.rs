//! Asking an execution to stop.

use crate::client::execution_path;
use crate::transport::Call;
use crate::{Client, ClientError};

impl Client {
    /// Asks for cancellation. `false` when there is nothing to cancel: the execution is unknown or has ended.
    /// `true` says only that it was asked; the terminal event says what came of it.
    ///
    /// # Errors
    /// Any [`ClientError`] but `Truncated`.
    pub async fn cancel(&self, id: &str) -> Result<bool, ClientError> {
        let answer = self.ask(Call::post(execution_path(id, "/cancel"))).await?;
        match answer.status {
            202 => Ok(true),
            404 => Ok(false),
            _ => Err(answer.failure()),
        }
    }
}
