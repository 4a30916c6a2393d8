//! Which executions a node keeps, page by page, the youngest first.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::query_value;
use crate::transport::Call;
use crate::{Client, ClientError};

/// What is asked for; absent members ask for everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Only executions of this status.
    pub status: Option<String>,
    /// Only executions of this ability.
    pub ability: Option<String>,
    /// Goes on behind a page: its `next`.
    pub after: Option<String>,
    /// Most entries of the page, 1 to 100.
    pub limit: Option<u32>,
}

/// A page of executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// Each a JSON object as the node sent it: a snapshot without result and artifacts, with `ability` where known.
    pub entries: Vec<String>,
    /// Asks for the next page; `None` behind the last one. A page may be short or empty and still have a next one.
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    data: Vec<Box<RawValue>>,
    next: Option<String>,
}

impl Client {
    /// A page of the executions that the node keeps.
    ///
    /// # Errors
    /// Any [`ClientError`] but `Truncated`.
    pub async fn list(&self, query: &ListQuery) -> Result<ListPage, ClientError> {
        let limit = query.limit.map(|limit| limit.to_string());
        let members = [
            ("status", &query.status),
            ("ability", &query.ability),
            ("after", &query.after),
            ("limit", &limit),
        ];
        let mut path = String::from("/v1/executions");
        for (name, value) in members {
            if let Some(value) = value {
                path.push(if path.contains('?') { '&' } else { '?' });
                path.push_str(name);
                path.push('=');
                path.push_str(&query_value(value));
            }
        }
        let answer = self.ask(Call::get(path)).await?;
        if answer.status != 200 {
            return Err(answer.failure());
        }
        let Page { data, next } = serde_json::from_slice(&answer.body)
            .map_err(|_| ClientError::Protocol("it is not a list of executions"))?;
        Ok(ListPage { entries: data.into_iter().map(|entry| entry.get().to_owned()).collect(), next })
    }
}
