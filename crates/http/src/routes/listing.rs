//! `GET /v1/executions`: which executions there are.
//!
//! The query is read strictly: a member that is not known, stands twice or has no meaning is refused, so that a
//! misspelt filter is never answered with everything.

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use sealog_engine::store::ListPosition;
use sealog_engine::store::listing::{ENTRIES_MAX, Filter};
use sealog_events::Status;
use sealog_execution::request::NAME_LENGTH_MAX;

use crate::answer::json_answer;
use crate::cursor::form_decoded;
use crate::error::{ApiError, Asked};
use crate::router::Api;

/// Entries of a page unless the query says otherwise.
const ENTRIES: usize = 20;

#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    filter: Filter,
    after: Option<ListPosition>,
    limit: Option<usize>,
}

pub(crate) async fn executions(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    let query = query(request.uri().query().unwrap_or_default())
        .ok_or_else(|| ApiError::invalid("List query must have known members with valid values"))?;
    let Query { filter, after, limit } = query;
    let listing = api.engine.list(filter, after, limit.unwrap_or(ENTRIES)).await;
    let listing = listing.map_err(|error| ApiError::public(error, Asked::Execution))?;
    Ok(json_answer(StatusCode::OK, listing.json()))
}

fn query(text: &str) -> Option<Query> {
    let mut query = Query::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (form_decoded(name)?, form_decoded(value)?);
        let first = match name.as_str() {
            "status" => query.filter.status.replace(Status::from_name(&value)?).is_none(),
            "ability" if (1..=NAME_LENGTH_MAX).contains(&value.chars().count()) => {
                query.filter.ability.replace(value).is_none()
            }
            "after" => query.after.replace(ListPosition::parse(&value)?).is_none(),
            "limit" => query.limit.replace(limit(&value)?).is_none(),
            _ => false,
        };
        if !first {
            return None;
        }
    }
    Some(query)
}

fn limit(text: &str) -> Option<usize> {
    let is_number = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|limit| is_number && (1..=ENTRIES_MAX).contains(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_members_once_and_nothing_else() {
        let found =
            query("status=failed&ability=a+b%26c&limit=100&after=5-11111111-2222-4333-8444-555555555555");
        let found = found.unwrap();
        assert_eq!(found.filter.status, Some(Status::Failed));
        assert_eq!(found.filter.ability.as_deref(), Some("a b&c"));
        assert_eq!((found.limit, found.after.is_some()), (Some(100), true));
        assert_eq!(query(""), Some(Query::default()));
        for bad in [
            "x=1",
            "status=",
            "status=done",
            "status=failed&status=failed",
            "Status=failed",
            "ability=",
            "after=",
            "after=5",
            "limit=0",
            "limit=101",
            "limit=5.0",
            "limit=+5",
            "limit",
            "ability=%FF",
        ] {
            assert_eq!(query(bad), None, "{bad}");
        }
        assert_eq!(query(&format!("ability={}", "x".repeat(257))), None);
    }
}
