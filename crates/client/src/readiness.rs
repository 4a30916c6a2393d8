//! Whether a node takes new work.

use serde::Deserialize;

use crate::transport::Call;
use crate::{Client, ClientError};

#[derive(Deserialize)]
struct Readiness {
    reasons: Vec<String>,
}

impl Client {
    /// Why the node takes no new work, by its own names for it (`fenced`, `read_only`, `full`, ..); nothing when it
    /// does.
    ///
    /// # Errors
    /// Any [`ClientError`] but `Truncated`.
    pub async fn not_ready(&self) -> Result<Vec<String>, ClientError> {
        let answer = self.ask(Call::get("/readyz".to_owned())).await?;
        match answer.status {
            200 => Ok(Vec::new()),
            503 => {
                let Readiness { reasons } = serde_json::from_str(&answer.text()?)
                    .map_err(|_| ClientError::Protocol("it is no readiness"))?;
                Ok(reasons)
            }
            _ => Err(answer.failure()),
        }
    }
}
