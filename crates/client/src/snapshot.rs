//! What an execution is and what came of it.

use serde::Deserialize;

use crate::client::execution_path;
use crate::transport::Call;
use crate::{Client, ClientError};

/// The state of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// `accepted`, `routing`, `running`, `succeeded`, `failed` or `cancelled`.
    pub status: String,
    /// 0 before the first event.
    pub last_sequence: u64,
    /// The whole answer, as the node sent it.
    pub json: String,
}

/// What came of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded; the whole answer with its result, as the node sent it.
    Succeeded {
        /// `{execution_id, target, result, artifacts, usage}`
        json: String,
    },
    /// It has not succeeded, or not yet.
    Unfinished {
        /// `accepted`, `routing`, `running`, `failed` or `cancelled`.
        status: String,
        /// The whole answer, `{status, error?}`.
        json: String,
    },
}

#[derive(Deserialize)]
struct SnapshotHead {
    status: String,
    last_sequence: u64,
}

#[derive(Deserialize)]
struct UnfinishedHead {
    status: String,
}

impl Client {
    /// The state of an execution; `None` if the node does not know it.
    ///
    /// # Errors
    /// Any [`ClientError`] but `Truncated`.
    pub async fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, ClientError> {
        let answer = self.ask(Call::get(execution_path(id, ""))).await?;
        match answer.status {
            200 => {
                let json = answer.text()?;
                let SnapshotHead { status, last_sequence } =
                    serde_json::from_str(&json).map_err(|_| ClientError::Protocol("it is not a snapshot"))?;
                Ok(Some(Snapshot { status, last_sequence, json }))
            }
            404 => Ok(None),
            _ => Err(answer.failure()),
        }
    }

    /// What came of an execution; `None` if the node does not know it.
    ///
    /// # Errors
    /// Any [`ClientError`] but `Truncated`.
    pub async fn result(&self, id: &str) -> Result<Option<Outcome>, ClientError> {
        let answer = self.ask(Call::get(execution_path(id, "/result"))).await?;
        match answer.status {
            200 => Ok(Some(Outcome::Succeeded { json: answer.text()? })),
            409 => {
                let json = answer.text()?;
                let UnfinishedHead { status } =
                    serde_json::from_str(&json).map_err(|_| ClientError::Protocol("it is not a status"))?;
                Ok(Some(Outcome::Unfinished { status, json }))
            }
            404 => Ok(None),
            _ => Err(answer.failure()),
        }
    }
}
